"""PeriodCap: in which periods of a stream a unit counts, by window functions in the order of the periods.

A rule looks back only: whether a unit counts in a period depends on its rows of that period and of earlier ones. So a
period that is over never changes, and no later row pushes out what was published.
"""

from dataclasses import dataclass
from typing import Any

from psidp.curator.row_sql import ibis_library, stairs, whole

__all__ = ["OWNER", "PERIOD", "UNIT", "PeriodCap"]

UNIT, OWNER, PERIOD = "unit", "owner", "period"


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

    def kept(self, cells: Any) -> Any:
        """The cells of a unit, by period and group, that count."""
        pairs = cells.select(UNIT, PERIOD).distinct()
        if self.apart > 1:
            pairs = self._after_a_break(pairs)
        if self.buckets is not None:
            bucket = stairs(pairs[PERIOD], [whole(n) for n in self.buckets[1:]], range(len(self.buckets)))
            pairs = _first(pairs.mutate(bucket=bucket), [UNIT, "bucket"], 1)
        if self.at_most is not None:
            pairs = _first(pairs, [UNIT], self.at_most)
        counted = pairs.select(counted_unit=pairs[UNIT], counted_period=pairs[PERIOD])
        same = [cells[UNIT] == counted.counted_unit, cells[PERIOD] == counted.counted_period]
        return cells.inner_join(counted, same).select(*cells.columns)

    def _after_a_break(self, pairs: Any) -> Any:
        """Periods before which the unit has no row for long enough."""
        order = ibis_library().window(group_by=UNIT, order_by=PERIOD)
        seen = pairs.mutate(before=pairs[PERIOD].lag().over(order))
        far = seen.before.isnull() | (seen[PERIOD] - seen.before >= whole(self.apart))
        return seen.filter(far).select(UNIT, PERIOD)


def _first(pairs: Any, names: list[str], number: int) -> Any:
    """The first periods, so many, of each of these."""
    ibis = ibis_library()
    numbered = pairs.mutate(place=ibis.row_number().over(ibis.window(group_by=names, order_by=PERIOD)))
    return numbered.filter(numbered.place < whole(number)).select(UNIT, PERIOD)
