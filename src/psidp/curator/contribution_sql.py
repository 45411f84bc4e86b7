"""Contribution bounding in the engine: every unit's vector over all groups, clipped to its L2 bound in whole numbers.

Rows become integers; a unit's rows in a group add up to a cell; each unit has one weight w for each aggregate, and its
cells add sign(u) ((|u| w) >> 30): w = 2^30 where S = sum u^2 is at most B^2, else w = floor(B 2^30 / sqrt S), exactly.
Group by, aggregate, join and CASE alone. docs/design/curator.md proves that no unit moves the totals beyond B.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from psidp.curator.ask import Aggregate
from psidp.curator.period_cap import PERIOD, PeriodCap
from psidp.curator.row_sql import Coordinate, coordinates, ibis_library, number, real, stairs, usable, whole
from psidp.curator.unit import Unit, named_units, owners, same_unit, units_in, with_units
from psidp.mechanism.clipping import SHIFT, IntegerGrid

__all__ = ["BIN", "SIZES", "Totals", "key_name"]

BIN = "bin"
ENTRY = "entry"
"""Column that tells totals (-1) from numbers of units by size (aggregate * 64 + size)."""

SIZES = tuple(2.0**k for k in range(21))
"""Norms, in rows' worth, between which units are counted: at most 1, at most 2, ..., at most 2^20, above."""

WIDE = "decimal(38, 0)"


@dataclass(frozen=True, slots=True)
class Totals:
    """Exact integer totals by group of aggregates that share one grouping: those without bins, or one with.

    Args:
        rows: the table after every filter. unit: its column or columns that name units, or None where each row is one.
        by: the columns that make groups. parts: the aggregates with their lattices. narrow: the engine adds up 64-bit
        integers in 64 bits, and has to be told to use more. measured: numbers of the aggregates for which units are
        counted by the size of their norm. period: the column that numbers periods, in each of which a unit has a norm
        and a weight of its own, as if it were another unit there. cap: which of its periods count.
    """

    rows: Any
    unit: Unit
    by: tuple[str, ...]
    parts: tuple[tuple[Aggregate, IntegerGrid], ...]
    narrow: bool = False
    measured: tuple[int, ...] = ()
    period: str | None = None
    cap: PeriodCap | None = None

    @property
    def coordinates(self) -> tuple[tuple[Coordinate, ...], ...]:
        """The coordinates of each aggregate."""
        return tuple(coordinates(aggregate, lattice) for aggregate, lattice in self.parts)

    @property
    def groups(self) -> list[str]:
        """Names of the columns that identify a total: keys, the period, and the bin of a histogram."""
        binned = [BIN] if self.parts[0][0].edges else []
        return [key_name(i) for i in range(len(self.by))] + self._periods + binned

    @property
    def _periods(self) -> list[str]:
        return [] if self.period is None else [PERIOD]

    def expression(self) -> Any:
        """Groups and their totals c0, c1, ...; for rows that are their own units, before Coordinate.in_steps.

        Where units are measured a last column tells totals from numbers of units by size, which stand in c0.
        """
        flat = [c for vector in self.coordinates for c in vector]
        rows = self._prepared(flat)
        if self.unit is None:
            return self._summed(rows, {f"c{i}": rows[f"c{i}"] for i in range(len(flat))})
        cells = self._cells(rows, flat)
        if self.period is not None:
            weighted = self._weighted_by_period(cells)
            return self._summed(weighted, self._added(weighted))
        norms = self._norms(cells)
        weighted = self._weighted(cells, norms)
        totals = self._summed(weighted, self._added(weighted))
        return self._with_sizes(totals, norms) if self.measured else totals

    def sizes(self) -> Any:
        """How many units have a norm of each size, for the measured aggregates alone: entry and n."""
        flat = [c for vector in self.coordinates for c in vector]
        norms = self._norms(self._cells(self._prepared(flat), flat))
        counted = [self._counted(norms, j) for j in self.measured]
        return reduce(lambda a, b: a.union(b), counted)

    def _prepared(self, flat: Sequence[Coordinate]) -> Any:
        """Only what is needed, under names of ours: unit, keys, bin, and what is summed."""
        rows, first = with_units(self.rows, self.unit), self.parts[0][0]
        if first.edges:
            rows = rows.filter(usable(rows[first.column]))
        chosen = {key_name(i): rows[name] for i, name in enumerate(self.by)}
        chosen |= named_units(rows, self.unit)
        chosen |= {PERIOD: rows[self.period]} if self.period is not None else {}
        if first.edges:
            inner = [real(edge) for edge in first.edges[1:-1]]
            chosen[BIN] = stairs(number(rows[first.column]), inner, range(len(inner) + 1))
        return rows.select(**chosen, **{f"c{i}": c.row(rows) for i, c in enumerate(flat)})

    def _cells(self, rows: Any, flat: Sequence[Coordinate]) -> Any:
        """A unit's integers in each group it touches."""
        sums = {f"c{i}": self._over_rows(rows, f"c{i}", c) for i, c in enumerate(flat)}
        names = [*units_in(rows), *self.groups]
        cells = rows.group_by(names).aggregate(**sums)
        return cells.select(*names, **{f"c{i}": c.of_unit(cells[f"c{i}"]) for i, c in enumerate(flat)})

    def _over_rows(self, rows: Any, name: str, coordinate: Coordinate) -> Any:
        """The exact sum over a unit's rows in a group."""
        if coordinate.power:
            return self._sum(rows[name])
        return rows.count() if coordinate.counts_all else rows.count(where=rows[name] == whole(1))

    def _norms(self, cells: Any) -> Any:
        """One row a unit: its squared norms s0, s1, ... under each aggregate, exact; with the cell where it is one."""
        parts = [_squares(self._vector(cells, j)) for j in range(len(self.parts))]
        small = {f"q{j}": part for j, (part, _) in enumerate(parts)}
        large = {f"b{j}": part for j, (_, part) in enumerate(parts)}
        if not self.groups:
            squared = cells.mutate(**small, **large)
            added = {f"s{j}": _together(squared[f"q{j}"], squared[f"b{j}"]) for j in range(len(self.parts))}
            return squared.mutate(**added)
        squared = cells.select(*units_in(cells), **small, **large)
        sums = {name: self._sum(squared[name]) for name in small} | {name: squared[name].sum() for name in large}
        units = squared.group_by(units_in(squared)).aggregate(**sums)
        added = {f"s{j}": _together(units[f"q{j}"], units[f"b{j}"]) for j in range(len(self.parts))}
        return units.select(*units_in(units), **added)

    def _vector(self, cells: Any, j: int) -> list[Any]:
        """The columns of cells that belong to an aggregate."""
        first = sum(len(vector) for vector in self.coordinates[:j])
        return [cells[f"c{first + n}"] for n in range(len(self.coordinates[j]))]

    def _weighted_by_period(self, cells: Any) -> Any:
        """Cells that count, with their unit's weights in their period: window functions in the order of the periods."""
        cap = self.cap or PeriodCap()
        cells = cap.in_buckets(cells)
        shifts = {j: shift for j in range(len(self.parts)) if (shift := self._shift(j))}
        squares = {f"s{j}": _wide_square(self._vector(cells, j)) for j in range(len(self.parts)) if j not in shifts}
        sums = (
            {name: square.sum().over(cap.of_period(cells)) for name, square in squares.items()} if self.by else squares
        )
        for j, shift in shifts.items():  # c is rows times 2^shift: rows are squared, in 64 bits
            rows = cells[f"c{j}"] >> shift
            square = rows * rows
            sums[f"s{j}"] = self._sum(square).over(cap.of_period(cells)) if self.by else square
        cells = cap.kept(cells.mutate(**sums, **cap.seen(cells)))
        beyond = {f"s{j}": self._beyond(cells[f"s{j}"], j, shift) for j, shift in shifts.items()}
        return self._with_weights(cells.mutate(**beyond))

    def _shift(self, j: int) -> int:
        """Where an aggregate is a number of rows that fits 31 bits, each 2^shift: that shift; else 0."""
        vector, grid = self.coordinates[j], self.parts[j][1]
        row = vector[0].weight
        plain = len(vector) == 1 and not vector[0].power and row.bit_count() == 1 and grid.bound >= row
        return row.bit_length() - 1 if plain and grid.most >> (row.bit_length() - 1) <= 1 << 31 else 0

    def _beyond(self, rows: Any, j: int, shift: int) -> Any:
        """S of so many squared rows, each 2^shift; 0, of the same weight, where that is at most B^2."""
        within = rows <= whole(self.parts[j][1].bound ** 2 >> 2 * shift)
        square = rows.cast(f"!{WIDE}") * _decimal(4**shift).cast("decimal(19, 0)")
        return ibis_library().cases((within, _decimal(0)), else_=square)

    def _with_weights(self, norms: Any) -> Any:
        """With the weights w0, w1, ... that squared norms s0, s1, ... have."""
        numbered = list(enumerate(lattice for _, lattice in self.parts))
        tried = norms.mutate(**{f"n{j}": _quotient(norms[f"s{j}"], lattice) for j, lattice in numbered})
        return tried.mutate(**{f"w{j}": _weight(tried[f"s{j}"], tried[f"n{j}"], lattice) for j, lattice in numbered})

    def _weighted(self, cells: Any, norms: Any) -> Any:
        """Cells with their unit's weights w0, w1, ...; where there is one group, a unit is one cell."""
        tried = self._with_weights(norms)
        if not self.groups:
            return tried
        units = tried.select(**owners(tried), **{f"w{j}": tried[f"w{j}"] for j in range(len(self.parts))})
        return cells.inner_join(units, same_unit(cells, units))

    def _added(self, weighted: Any) -> dict[str, Any]:
        """What each cell adds to the totals."""
        added, i = {}, 0
        for j, vector in enumerate(self.coordinates):
            for coordinate in vector:
                cell, weight = weighted[f"c{i}"], weighted[f"w{j}"].cast("int64")
                added[f"c{i}"] = _shrink(cell, weight, coordinate.signed)
                i += 1
        return added

    def _summed(self, rows: Any, added: dict[str, Any]) -> Any:
        """Totals by group."""
        named = rows.select(*self.groups, **added)
        totals = {name: self._sum(named[name]).cast(WIDE) for name in added}
        return named.group_by(self.groups).aggregate(**totals) if self.groups else named.aggregate(**totals)

    def _with_sizes(self, totals: Any, norms: Any) -> Any:
        """The totals, and below them how many units have a norm of each size."""
        ibis = ibis_library()
        schema = totals.schema()
        parts = [totals.mutate(**{ENTRY: whole(-1)})]
        for j in self.measured:
            counted = self._counted(norms, j)
            blank = {name: ibis.null(kind) for name, kind in schema.items() if name != "c0"}
            columns = blank | {"c0": counted.n.cast(WIDE)}
            parts.append(counted.select(**{name: columns[name] for name in schema}, **{ENTRY: counted[ENTRY]}))
        return reduce(lambda a, b: a.union(b), parts)

    def _counted(self, norms: Any, j: int) -> Any:
        """How many units have a norm of each size under one aggregate."""
        aggregate, lattice = self.parts[j]
        over = [_decimal(lattice.truncated(size * aggregate.reach) ** 2 + 1) for size in SIZES]
        sized = norms.select(**{ENTRY: stairs(norms[f"s{j}"], over, [64 * j + k for k in range(len(SIZES) + 1)])})
        return sized.group_by(ENTRY).aggregate(n=sized.count())

    def _sum(self, column: Any) -> Any:
        """A sum that cannot overflow."""
        return column.cast(WIDE).sum() if self.narrow else column.sum()


def key_name(index: int) -> str:
    """What the key column of this number is called inside."""
    return f"k{index}"


def _squares(cell: Sequence[Any]) -> tuple[Any, Any]:
    """The squared norm of a cell in two parts, one of which is nothing: in 64 bits where its entries are at most 2^30,
    else in decimals of 38 digits, which are slow. Of 18 digits DuckDB would make 64 bits, and fail by the data."""
    ibis, most = ibis_library(), 1 << SHIFT
    small = reduce(and_, [(c <= whole(most)) & (c >= whole(-most)) for c in cell])
    narrow = reduce(lambda a, b: a + b, [c * c for c in cell])
    large = ibis.cases((small, ibis.null(WIDE)), else_=_wide_square(cell))
    return ibis.cases((small, narrow), else_=whole(0)), large


def _wide_square(cell: Sequence[Any]) -> Any:
    """The squared norm of a cell in decimals of 38 digits."""
    wide = [c.cast("decimal(19, 0)") for c in cell]
    return reduce(lambda a, b: a + b, [(c * c).cast(WIDE) for c in wide])


def _together(small: Any, large: Any) -> Any:
    """S: the two parts of a squared norm."""
    return small.cast(f"!{WIDE}") + large.fill_null(_decimal(0))


def _quotient(square: Any, lattice: IntegerGrid) -> Any:
    """floor(B 2^30 / sqrt S) or one more, for S > B^2: the quotient in doubles, off by less than 2^-19; else 2^30."""
    ibis, within = ibis_library(), square <= _decimal(lattice.bound**2)
    root = ibis.cases((within, real(float(lattice.bound))), else_=square.cast("float64").sqrt())  # never 0
    quotient = (real(float(lattice.most)) / root - real(2.0**-10)).floor().cast("int64") + whole(1)
    return ibis.cases((within, whole(1 << SHIFT)), else_=quotient)


def _weight(square: Any, quotient: Any, lattice: IntegerGrid) -> Any:
    """2^30 within the bound, else floor(B 2^30 / sqrt S): integers decide between the quotient and one less."""
    fits = square * (quotient * quotient).cast("decimal(19, 0)") <= _decimal(lattice.most**2)
    return (
        ibis_library()
        .cases((square <= _decimal(lattice.bound**2), whole(1 << SHIFT)), (fits, quotient), else_=quotient - whole(1))
        .cast("int32")
    )


def _shrink(cell: Any, weight: Any, signed: bool) -> Any:
    """sign(u) ((|u| w) >> 30)."""
    if not signed:
        return (cell * weight) >> SHIFT
    return ibis_library().cases((cell < whole(0), -((-cell * weight) >> SHIFT)), else_=(cell * weight) >> SHIFT)


def _decimal(value: int) -> Any:
    """A whole number of up to 38 digits in SQL."""
    return ibis_library().literal(str(value)).cast(WIDE)
