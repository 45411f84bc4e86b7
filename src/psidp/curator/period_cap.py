"""PeriodCap: in which periods of a stream a unit counts, by window functions in the order of the periods.

A rule looks back only: whether a unit counts in a period depends on its rows of that period and of earlier ones. So a
period that is over never changes, and no later row pushes out what was published.
"""

from dataclasses import dataclass
from typing import Any

from psidp.curator.row_sql import ibis_library, stairs, whole

__all__ = ["OWNER", "PERIOD", "UNIT", "PeriodCap", "in_order", "of_period"]

UNIT, OWNER, PERIOD, PLACE, BEFORE = "unit", "owner", "period", "place", "before"


@dataclass(frozen=True, slots=True)
class PeriodCap:
    """The first so many periods of a unit; the first of each bucket; those after so many without it.

    Args:
        at_most: how many periods count in all; None for any number.
        apart: a period counts where the unit has no row in the apart - 1 periods before it.
        buckets: the periods in which buckets begin, from the first on; of each, the unit's first period counts. None
            where there are no buckets.
    """

    at_most: int | None = None
    apart: int = 1
    buckets: tuple[int, ...] | None = None

    def seen(self, cells: Any) -> dict[str, Any]:
        """What decides, as columns over `in_order`: the number of the period, or the unit's period before it."""
        ibis = ibis_library()
        if not self._looks_back:
            return {PLACE: ibis.dense_rank().over(in_order())} if self.at_most is not None else {}
        before = ibis.range_window(group_by=UNIT, order_by=PERIOD, preceding=(None, 1), following=None)
        return {BEFORE: cells[PERIOD].max().over(before)}

    def kept(self, cells: Any) -> Any:
        """The cells that count, of those with what was `seen`."""
        if self._looks_back:
            cells = cells.filter(cells[BEFORE].isnull() | self._far(cells))
            if self.at_most is not None:
                cells = cells.mutate(**{PLACE: ibis_library().dense_rank().over(in_order())})
        return cells if self.at_most is None else cells.filter(cells[PLACE] < whole(self.at_most))

    @property
    def _looks_back(self) -> bool:
        return self.apart > 1 or self.buckets is not None

    def _far(self, cells: Any) -> Any:
        """Whether the period before is far enough away, or in another bucket."""
        far = cells[PERIOD] - cells[BEFORE] >= whole(self.apart)
        if self.buckets is None:
            return far
        return far & (cells[BEFORE] < stairs(cells[PERIOD], [whole(n) for n in self.buckets[1:]], self.buckets))


def in_order() -> Any:
    """A unit's cells in the order of their periods; those of one period are peers."""
    return ibis_library().window(group_by=UNIT, order_by=PERIOD)


def of_period() -> Any:
    """A unit's cells of one period, in the same order, so that one sort serves both."""
    return ibis_library().range_window(group_by=UNIT, order_by=PERIOD, preceding=0, following=0)
