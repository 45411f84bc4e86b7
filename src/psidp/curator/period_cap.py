"""PeriodCap: in which periods of a stream a unit counts, by window functions in the order of the periods.

A rule looks back only: whether a unit counts in a period depends on its rows of that period and of earlier ones. So a
period that is over never changes, and no later row pushes out what was published.
"""

from dataclasses import dataclass
from typing import Any

from psidp.curator.row_sql import ibis_library, stairs, whole
from psidp.curator.unit import units_in

__all__ = ["PERIOD", "PeriodCap"]

PERIOD, BUCKET, PLACE, EARLIEST = "period", "bucket", "place", "earliest"


@dataclass(frozen=True, slots=True)
class PeriodCap:
    """The first so many periods of a unit; the first of each bucket; those after so many without it.

    All windows of one cap have the same partitions and the same order, so that the engine sorts once.

    Args:
        at_most: how many periods count in all; None for any number.
        apart: a period counts where the unit has no row in the apart - 1 periods before it.
        buckets: the periods in which buckets begin, from the first on; of each, the unit's first period counts. None
            where there are no buckets. Not together with apart.
    """

    at_most: int | None = None
    apart: int = 1
    buckets: tuple[int, ...] | None = None

    def in_buckets(self, cells: Any) -> Any:
        """Cells with the period in which their bucket begins, where there are buckets."""
        if self.buckets is None:
            return cells
        begun = stairs(cells[PERIOD], [whole(n) for n in self.buckets[1:]], self.buckets)
        return cells.mutate(**{BUCKET: begun.cast(cells[PERIOD].type())})

    def of_period(self, cells: Any) -> Any:
        """A unit's cells of one period."""
        return self._back(cells, 0)

    def seen(self, cells: Any) -> dict[str, Any]:
        """What decides: the number of the period, or the unit's earliest period of those that must be without it."""
        if self.apart > 1:
            return {EARLIEST: cells[PERIOD].first().over(self._back(cells, self.apart - 1))}
        return {} if self.buckets is None and self.at_most is None else {PLACE: _place(self._of_unit(cells))}

    def kept(self, cells: Any) -> Any:
        """The cells that count, of those with what was `seen`."""
        if self.apart > 1:
            cells = cells.filter(cells[EARLIEST] == cells[PERIOD])
        elif self.buckets is not None:
            cells = cells.filter(cells[PLACE] == whole(0))
        if self.at_most is None:
            return cells
        if self.apart > 1 or self.buckets is not None:
            cells = cells.mutate(**{PLACE: _place(units_in(cells))})
        return cells.filter(cells[PLACE] < whole(self.at_most))

    def _of_unit(self, cells: Any) -> list[str]:
        """The columns whose cells are ordered by period: a unit's, or a unit's in a bucket."""
        return units_in(cells) if self.buckets is None else [*units_in(cells), BUCKET]

    def _back(self, cells: Any, periods: int) -> Any:
        """A unit's cells from so many periods before up to a cell's own period, all of that included."""
        return ibis_library().range_window(
            group_by=self._of_unit(cells), order_by=PERIOD, preceding=periods, following=0
        )


def _place(columns: list[str]) -> Any:
    """The number of a period among those of a unit, from 0 on; cells of one period have the same."""
    ibis = ibis_library()
    return ibis.dense_rank().over(ibis.window(group_by=columns, order_by=PERIOD))
