"""Marginals: all wanted tables over some columns as sums of residuals: what no smaller table determines.

A table over columns A is the sum, over subsets S of A, of residual S spread evenly over the other columns. Residuals
are released one by one, so all tables decoded from them are consistent with each other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations
from math import isqrt, prod
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from psidp.strategies.basis import Basis
from psidp.strategies.haar import Haar
from psidp.strategies.ordered import Ordered

__all__ = ["Marginals", "Scales", "Table", "basis_from_dict"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Table = tuple[int, ...]
"""Numbers of columns, ascending."""

MOST_COLUMNS = 16
"""Columns of a table: it has a residual for each subset of them."""

SCALE_BITS = 30
"""Scales are whole numbers in [2^30, 2^31] over a power of two: at most 2^-30 above the norms they stand for."""


class Scales(NamedTuple):
    """m_k of each coefficient of a residual as multiple / 2^shift, never below the norm it stands for."""

    multiple: Ints
    shift: Ints

    @property
    def value(self) -> Floats:
        """m_k in doubles."""
        return np.ldexp(self.multiple.astype(np.float64), -self.shift)


@final
@dataclass(frozen=True, slots=True)
class Marginals:
    """Columns by their bases, the tables that are wanted, and the residuals that these are made of.

    Args:
        bases: one for each column.
        tables: the wanted tables, as ascending numbers of columns; () is the total.

    Examples:
        >>> two = Marginals((Haar(2), Haar(3)), ((0,), (0, 1)))
        >>> two.residuals
        ((), (0,), (1,), (0, 1))
        >>> counts = np.array([[3, 1, 2], [5, 0, 4]])
        >>> released = {s: two.encode(s, (0, 1), counts).astype(float) for s in two.residuals}  # no noise here
        >>> two.decode((0,), released)
        array([6., 9.])
    """

    bases: tuple[Basis, ...]
    tables: tuple[Table, ...]
    residuals: tuple[Table, ...] = field(init=False, repr=False)
    _maximal: tuple[Table, ...] = field(init=False, repr=False, compare=False)
    _homes: dict[Table, Table] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        columns = range(len(self.bases))
        for table in self.tables:
            if not (all(i in columns for i in table) and list(table) == sorted(set(table))):
                raise ValueError(f"a table must be ascending numbers of columns below {len(columns)}, got {table}.")
            if not len(table) <= MOST_COLUMNS:
                raise ValueError(f"a table must have at most {MOST_COLUMNS} columns, got {len(table)}.")
        if not self.tables:
            raise ValueError("tables must be one table at least, got none.")
        maximal, homes = self._covering()
        object.__setattr__(self, "residuals", tuple(sorted(homes, key=lambda part: (len(part), part))))
        object.__setattr__(self, "_maximal", maximal)
        object.__setattr__(self, "_homes", homes)

    def _covering(self) -> tuple[tuple[Table, ...], dict[Table, Table]]:
        """The maximal tables, and for each residual the first of them that has it."""
        kept: list[Table] = []
        homes: dict[Table, Table] = {}
        covered: set[Table] = set()
        for table in sorted(set(self.tables), key=lambda t: (-len(t), t)):
            if table in covered:
                continue
            kept.append(table)
            covered |= {part for order in range(len(table)) for part in combinations(table, order)}
            for part in self.parts(table):
                homes.setdefault(part, table)
        return tuple(kept), homes

    def parts(self, table: Table) -> list[Table]:
        """Subsets of a table that have a residual: a column of one value has none."""
        varied = [i for i in table if self.bases[i].size > 1]
        return [part for order in range(len(varied) + 1) for part in combinations(varied, order)]

    def shape(self, table: Table) -> tuple[int, ...]:
        """How many values each column of a table has."""
        return tuple(self.bases[i].size for i in table)

    def cells(self, table: Table) -> int:
        """How many cells a table has."""
        return prod(self.shape(table))

    @property
    def coefficients(self) -> int:
        """How many numbers are released."""
        return sum(prod(n - 1 for n in self.shape(part)) for part in self.residuals)

    @property
    def maximal(self) -> tuple[Table, ...]:
        """The tables that no other wanted table contains: all others are sums of these."""
        return self._maximal

    def home(self, part: Table) -> Table:
        """The first maximal table that contains these columns; refused where none does."""
        for table in self._maximal if part not in self._homes else (self._homes[part],):
            if set(part) <= set(table):
                return table
        raise KeyError(f"no table of this cube holds the columns {', '.join(map(str, part))} together.")

    def encode(self, part: Table, table: Table, totals: NDArray[Any]) -> NDArray[Any]:
        """The coefficients of a residual from the exact totals of a table that contains it, in whole numbers."""
        rest = tuple(axis for axis, i in enumerate(table) if i not in part)
        if totals.dtype != object and not _sizes(totals) * prod(self.bases[i].reach for i in part) < 2**62:
            totals = totals.astype(object)  # before anything is added up: no sum on the way is larger
        found: NDArray[Any] = np.asarray(totals.sum(axis=rest) if rest else totals, totals.dtype)
        for axis, i in enumerate(part):
            found = np.moveaxis(self.bases[i].encode(np.moveaxis(found, axis, 0)), 0, axis)
        return np.asarray(found)

    def scales(self, part: Table, steps: int = 1) -> Scales:
        """m_k for every coefficient of a residual of totals in which a row is so many steps: at least its norm."""
        distinct = [sorted(set(self.bases[i].squares)) for i in part]
        places = [np.searchsorted(d, self.bases[i].squares) for d, i in zip(distinct, part, strict=True)]
        products = reduce(lambda a, b: [x * y for x in a for y in b], distinct, [steps * steps])
        pairs = [_scale(square) for square in products]
        shape = tuple(len(d) for d in distinct)
        grid = np.ix_(*places) if part else ()
        multiple, shift = (np.array([pair[j] for pair in pairs], np.int64).reshape(shape)[grid] for j in (0, 1))
        return Scales(np.asarray(multiple), np.asarray(shift))

    def decode(self, table: Table, residuals: Mapping[Table, Floats]) -> Floats:
        """The cells of a table from the coefficients of its residuals, whatever noise these have."""
        found = np.zeros(self.shape(table))
        for part in self.parts(table):
            found[self._block(table, part)] = residuals[part].reshape(self._padded(table, part))
        for axis, i in enumerate(table):
            moved = np.moveaxis(found, axis, 0)
            spread = np.broadcast_to(moved[:1] / self.bases[i].size, moved.shape)
            found = np.moveaxis(spread + self.bases[i].decode(moved[1:]), 0, axis)
        return found

    def weights(self, table: Table, question: Floats) -> dict[Table, Floats]:
        """Weights of each residual's coefficients in the answer to a question, a number for each cell of a table."""
        found = np.asarray(question, np.float64)
        for axis, i in enumerate(table):
            moved = np.moveaxis(found, axis, 0)
            mean = moved.sum(axis=0, keepdims=True) / self.bases[i].size
            found = np.moveaxis(np.concatenate([mean, self.bases[i].weights(moved)]), 0, axis)
        shapes = {part: tuple(self.bases[i].size - 1 for i in part) for part in self.parts(table)}
        return {part: found[self._block(table, part)].reshape(shape) for part, shape in shapes.items()}

    def _block(self, table: Table, part: Table) -> tuple[slice, ...]:
        """Where a residual stands in a table of means (first) and coefficients (the others)."""
        return tuple(slice(1, None) if i in part else slice(0, 1) for i in table)

    def _padded(self, table: Table, part: Table) -> tuple[int, ...]:
        return tuple(self.bases[i].size - 1 if i in part else 1 for i in table)

    def to_dict(self) -> dict[str, Any]:
        """The tables and the whole numbers of every basis, as plain values."""
        return {"bases": [basis.to_dict() for basis in self.bases], "tables": [list(table) for table in self.tables]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Marginals":
        """The marginals that to_dict wrote."""
        bases = tuple(basis_from_dict(basis) for basis in values["bases"])
        return cls(bases, tuple(tuple(table) for table in values["tables"]))


def basis_from_dict(values: Mapping[str, Any]) -> Basis:
    """The basis that its to_dict wrote."""
    kinds: dict[str, Any] = {"haar": Haar, "ordered": Ordered}
    return kinds[values["kind"]].from_dict(dict(values))  # type: ignore[no-any-return]


def _scale(square: int) -> tuple[int, int]:
    """Multiple and shift of a root, rounded up: multiple / 2^shift >= sqrt(square), multiple in [2^30, 2^31]."""
    shift = SCALE_BITS - (square.bit_length() - 1) // 2
    wide = square << 2 * shift if shift >= 0 else -(-square >> -2 * shift)
    return isqrt(wide - 1) + 1, shift


def _sizes(totals: NDArray[Any]) -> float:
    """The sum of all sizes of 64-bit integers, rounded up."""
    return float(np.abs(totals.astype(np.float64)).sum()) * (1.0 + 2.0**-20)
