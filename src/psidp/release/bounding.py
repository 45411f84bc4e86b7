"""Contribution bounding in the engine: every unit's vector over all groups, clipped to its L2 bound in whole numbers.

Rows become integers; a unit's rows in a group add up to a cell; each unit has a weight w, and its cells add
sign(u) ((|u| w) >> 30): w = 2^30 where S = sum u^2 is at most B^2, else w = floor(B 2^30 / r) - 1 with r = ceil(sqrt S)
+ 1. Group by, aggregate, join and CASE alone. docs/design/curator.md proves that no unit moves the totals beyond B.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psidp.release.ask import Aggregate
from psidp.release.cell import Coordinate, coordinates, ibis_library, number, real, stairs, usable, whole
from psidp.release.lattice import SHIFT, Lattice

__all__ = ["BIN", "Totals", "key_name"]

BIN = "bin"
UNIT, OWNER = "unit", "owner"


@dataclass(frozen=True, slots=True)
class Totals:
    """Exact integer totals by group of aggregates that share one grouping: those without bins, or one with.

    Args:
        rows: the table after every filter. unit: its column that names units, or None where each row is its own.
        by: the columns that make groups. parts: the aggregates with their lattices. narrow: the engine adds up 64-bit
        integers in 64 bits, and has to be told to use more.
    """

    rows: Any
    unit: str | None
    by: tuple[str, ...]
    parts: tuple[tuple[Aggregate, Lattice], ...]
    narrow: bool = False

    @property
    def coordinates(self) -> tuple[tuple[Coordinate, ...], ...]:
        """The coordinates of each aggregate."""
        return tuple(coordinates(aggregate, lattice) for aggregate, lattice in self.parts)

    @property
    def groups(self) -> list[str]:
        """Names of the columns that identify a total: keys, and the bin of a histogram."""
        binned = [BIN] if self.parts[0][0].edges else []
        return [key_name(i) for i in range(len(self.by))] + binned

    def expression(self) -> Any:
        """Groups and their totals c0, c1, ...; for rows that are their own units, before Coordinate.in_steps."""
        flat = [c for vector in self.coordinates for c in vector]
        rows = self._prepared(flat)
        if self.unit is None:
            return self._summed(rows, {f"c{i}": rows[f"c{i}"] for i in range(len(flat))})
        weighted = self._weighted(self._cells(rows, flat))
        return self._summed(weighted, self._added(weighted))

    def norms(self) -> Any:
        """One row for each unit: q0, q1, ..., its squared norms under each aggregate's clamp."""
        flat = [c for vector in self.coordinates for c in vector]
        return self._norms(self._cells(self._prepared(flat), flat))

    def _prepared(self, flat: Sequence[Coordinate]) -> Any:
        """Only what is needed, under names of ours: unit, keys, bin, and what is summed."""
        rows, first = self.rows, self.parts[0][0]
        if self.unit is not None:
            rows = rows.filter(rows[self.unit].notnull())
        if first.edges:
            rows = rows.filter(usable(rows[first.column]))
        chosen = {key_name(i): rows[name] for i, name in enumerate(self.by)}
        chosen |= {UNIT: rows[self.unit]} if self.unit is not None else {}
        if first.edges:
            inner = [real(edge) for edge in first.edges[1:-1]]
            chosen[BIN] = stairs(number(rows[first.column]), inner, range(len(inner) + 1))
        return rows.select(**chosen, **{f"c{i}": c.row(rows) for i, c in enumerate(flat)})

    def _cells(self, rows: Any, flat: Sequence[Coordinate]) -> Any:
        """A unit's integers in each group it touches."""
        sums = {f"c{i}": self._over_rows(rows, f"c{i}", c) for i, c in enumerate(flat)}
        names = [UNIT, *self.groups]
        cells = rows.group_by(names).aggregate(**sums)
        return cells.select(*names, **{f"c{i}": c.of_unit(cells[f"c{i}"]) for i, c in enumerate(flat)})

    def _over_rows(self, rows: Any, name: str, coordinate: Coordinate) -> Any:
        """The sum over a unit's rows in a group, before it is clamped: exact, or beyond every bound."""
        if _counts_all(coordinate):
            return rows.count()
        return rows[name].cast("float64").sum() if coordinate.saturates else self._sum(rows[name])

    def _squares(self, cells: Any) -> dict[str, Any]:
        """The squared norm of a cell under each aggregate."""
        squares, i = {}, 0
        for j, vector in enumerate(self.coordinates):
            terms = [cells[f"c{i + n}"].cast("int64") for n in range(len(vector))]
            squares[f"q{j}"] = sum((x * x for x in terms[1:]), terms[0] * terms[0])
            i += len(vector)
        return squares

    def _norms(self, cells: Any) -> Any:
        """One row a unit with its squared norms."""
        squared = cells.select(UNIT, **self._squares(cells))
        if not self.groups:
            return squared
        return squared.group_by(UNIT).aggregate(**{f"q{j}": squared[f"q{j}"].sum() for j in range(len(self.parts))})

    def _weighted(self, cells: Any) -> Any:
        """Cells with their unit's weights w0, w1, ...; where there is one group, a unit is one cell."""
        norms = self._norms(cells) if self.groups else cells.mutate(**self._squares(cells))
        weights = {f"w{j}": _weight(norms[f"q{j}"], lattice.bound) for j, (_, lattice) in enumerate(self.parts)}
        if not self.groups:
            return norms.mutate(**weights)
        units = norms.select(**{OWNER: norms[UNIT]}, **weights)
        return cells.inner_join(units, cells[UNIT] == units[OWNER])

    def _added(self, weighted: Any) -> dict[str, Any]:
        """What each cell adds to the totals."""
        added, i = {}, 0
        for j, vector in enumerate(self.coordinates):
            for coordinate in vector:
                cell, weight = weighted[f"c{i}"].cast("int64"), weighted[f"w{j}"].cast("int64")
                added[f"c{i}"] = _shrink(cell, weight, coordinate.signed)
                i += 1
        return added

    def _summed(self, rows: Any, added: dict[str, Any]) -> Any:
        """Totals by group."""
        named = rows.select(*self.groups, **added)
        totals = {name: self._sum(named[name]).cast("decimal(38, 0)") for name in added}
        return named.group_by(self.groups).aggregate(**totals) if self.groups else named.aggregate(**totals)

    def _sum(self, column: Any) -> Any:
        """A sum that cannot overflow."""
        return column.cast("decimal(38, 0)").sum() if self.narrow else column.sum()


def key_name(index: int) -> str:
    """What the key column of this number is called inside."""
    return f"k{index}"


def _counts_all(coordinate: Coordinate) -> bool:
    """Whether every row counts, so that the engine need not look at a value."""
    return coordinate.power == 0 and (coordinate.aggregate.parts == 1)


def _weight(square: Any, bound: int) -> Any:
    """2^30 within the bound, else floor(B 2^30 / r) - 1, r = ceil(sqrt S) + 1: both one beyond a double's error."""
    root = square.cast("float64").sqrt().ceil() + real(1.0)
    shrinking = (real(float(bound << SHIFT)) / root).floor().cast("int64") - whole(1)
    return ibis_library().cases((square > whole(bound**2), shrinking), else_=whole(1 << SHIFT)).cast("int32")


def _shrink(cell: Any, weight: Any, signed: bool) -> Any:
    """sign(u) ((|u| w) >> 30)."""
    if not signed:
        return (cell * weight) >> SHIFT
    return ibis_library().cases((cell < whole(0), -((-cell * weight) >> SHIFT)), else_=(cell * weight) >> SHIFT)
