"""Different values in the engine: how many a column has by group, where one unit counts for a bounded number of them.

A unit with m pairs of group and value has the weight w = W where m <= k, else floor(W k/m), W = 2^20: m w <= W k. A
pair counts min(W, sum of its units' weights). Adding a unit moves each of its m pairs by at most w, so that the totals
move by at most W k in L1 norm, and in L2 norm too. No order of values is needed, on which engines do not agree.
"""

from dataclasses import dataclass
from typing import Any

from psidp.curator.aggregate import Aggregate
from psidp.curator.column_types import with_keys
from psidp.curator.contribution_sql import key_name
from psidp.curator.row_sql import Coordinate, coordinates, ibis_library, real, whole
from psidp.curator.unit import Unit, named_units, owners, same_unit, units_in, with_units
from psidp.mechanism.clipping import IntegerGrid

__all__ = ["DistinctTotals"]

VALUE = "value"
WHOLE = 1 << 20
"""W: what a value counts for."""


@dataclass(frozen=True, slots=True)
class DistinctTotals:
    """Exact totals by group of one `ask.distinct`, in steps of 2^-20; the same names as `Totals` has."""

    rows: Any
    unit: Unit
    by: tuple[str, ...]
    aggregate: Aggregate

    @property
    def grid(self) -> IntegerGrid:
        """Steps of 2^-20 and the bound k in them."""
        most = float(self.aggregate.contribution or 1.0)
        return IntegerGrid(most, -20, int(most * WHOLE))

    @property
    def parts(self) -> tuple[tuple[Aggregate, IntegerGrid], ...]:
        """The aggregate with its grid."""
        return ((self.aggregate, self.grid),)

    @property
    def coordinates(self) -> tuple[tuple[Coordinate, ...], ...]:
        """One number for each group."""
        return (coordinates(self.aggregate, self.grid),)

    @property
    def measured(self) -> tuple[int, ...]:
        """Nothing is said about what the cap takes."""
        return ()

    @property
    def groups(self) -> list[str]:
        """Names of the key columns."""
        return [key_name(i) for i in range(len(self.by))]

    def expression(self) -> Any:
        """Groups and their totals c0."""
        column = str(self.aggregate.column)
        rows = with_keys(self.rows, (column,))
        rows = rows.filter(rows[column].notnull())
        names = {key_name(i): rows[name] for i, name in enumerate(self.by)} | {VALUE: rows[column]}
        if self.unit is None:
            pairs = rows.select(**names).distinct()
            return self._added(pairs.mutate(s=whole(WHOLE)))
        rows = with_units(rows, self.unit)
        owned = rows.select(**named_units(rows, self.unit), **{n: rows[c.get_name()] for n, c in names.items()})
        owned = owned.distinct()
        units = owned.group_by(units_in(owned)).aggregate(m=owned.count())
        weights = units.select(**owners(units), w=self._weight(units.m))
        joined = owned.inner_join(weights, same_unit(owned, weights))
        pairs = joined.group_by([*self.groups, VALUE]).aggregate(s=joined.w.sum())
        capped = ibis_library().cases((pairs.s >= whole(WHOLE), whole(WHOLE)), else_=pairs.s.cast("!int64"))
        return self._added(pairs.mutate(s=capped))

    def _weight(self, m: Any) -> Any:
        """W where m <= k, else floor(W k/m): integers decide between the quotient in doubles and one less."""
        most = self.grid.bound
        quotient = (real(float(most)) / m.cast("float64") - real(2.0**-10)).floor().cast("int64") + whole(1)
        fits = quotient * m <= whole(most)
        return ibis_library().cases(
            (m * whole(WHOLE) <= whole(most), whole(WHOLE)), (fits, quotient), else_=quotient - whole(1)
        )

    def _added(self, pairs: Any) -> Any:
        """What the pairs of each group count for, added up."""
        total = {"c0": pairs.s.sum().cast("decimal(38, 0)")}
        return pairs.group_by(self.groups).aggregate(**total) if self.groups else pairs.aggregate(**total)
