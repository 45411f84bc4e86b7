"""ImageBound: units of a cube weighed by the norm of their image under the noise, from pairs of their rows.

A unit whose rows lie in different cells moves the noisy residuals by less than one whose rows lie in one cell: its rows
may count for more. docs/design/cubes.md proves the bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from psidp.tables.axes import Axis, stairs
from psidp.tables.contribution import RowBound
from psidp.tables.engines.base import Dialect

__all__ = ["MOST_COLUMNS", "ImageBound"]

MOST_COLUMNS = 10
MOST_BITS = 12
MOST_GRAM = 2**30

WORD = 62
"""Bits of the words of keys by which rows are put in order."""


@dataclass(frozen=True)
class ImageBound(RowBound):
    """A bound on the norm of a unit's image under the noise: w = min(2^20, floor(contribution 2^20 2^12 / R)).

    The rows of a unit are dealt, in the order of their keys, to ceil(rows/64) blocks. The square of a block is the sum
    of gram[pattern] over its ordered pairs of rows, where the pattern is the columns in which they agree. Its root is
    rounded up, and R is the sum of the roots.

    Args:
        contribution: how many rows' worth a unit may add. gram: for each pattern, bit i set where column i agrees, an
        integer of at least 2^24 times the product of two such rows at psi = 1; the last is that of a row with itself,
        about 2^24. bits: a block has at most 2^bits rows.

    Guarantees:
        The norm of a unit's image is at most contribution 2^20 psi, in whole numbers (docs/design/cubes.md).
    """

    gram: tuple[int, ...] = ()
    bits: int = 6
    unit: ClassVar[int] = 1 << 12

    def __post_init__(self) -> None:
        RowBound.__post_init__(self)
        if not 0 <= self.bits <= MOST_BITS:
            raise ValueError(f"bits (of the largest block) must be in [0, {MOST_BITS}], got bits={self.bits}.")
        if not all(isinstance(g, int) and -MOST_GRAM <= g <= MOST_GRAM for g in self.gram):
            raise ValueError("gram must be integers of at most 2^30 in size, about 2^24 for a row with itself.")
        if self.gram and (len(self.gram) & (len(self.gram) - 1) or len(self.gram) > 1 << MOST_COLUMNS):
            raise ValueError(f"gram must have an entry for each pattern of 1 to {MOST_COLUMNS} columns.")

    @property
    def most(self) -> int:
        """w times R is at most this."""
        return int(Fraction(self.contribution) * (self.full * self.unit))

    def units(self, unit: Sequence[str], axes: Sequence[Axis], dialect: Dialect) -> list[tuple[str, str]]:
        """From rows over pairs of rows to units. Doubles propose a root, whole numbers decide."""
        keys = [f"k{i}" for i in range(len(axes))]
        if len(self.gram) != 1 << len(keys):
            raise ValueError(f"gram must have {1 << len(keys)} entries, one a pattern, got {len(self.gram)}.")
        own = ", ".join(unit)
        place = f"row_number() OVER (PARTITION BY {own} ORDER BY {', '.join(_in_order(axes))}) - 1 AS place"
        rows = f"count(*) OVER (PARTITION BY {own}) AS own"
        same = " AND ".join([f"a.{name} = b.{name}" for name in (*unit, "part")] + ["a.place <= b.place"])
        agreed = " + ".join(f"CASE WHEN a.{key} = b.{key} THEN {1 << i} ELSE 0 END" for i, key in enumerate(keys))
        chosen = ", ".join(f"a.{name}" for name in (*unit, "part"))
        both = "CASE WHEN a.place = b.place THEN 1 ELSE 2 END"  # a pair counts in both orders
        product = stairs("agreed", [str(pattern) for pattern in range(1, len(self.gram))], self.gram)
        square = f"CAST(sum(times * ({product})) AS BIGINT) AS square"
        root = f"sqrt(CAST(CASE WHEN square <= 0 THEN 0 ELSE square END AS {dialect.double}))"
        tried = f"{dialect.whole(f'floor({root} - {dialect.real(2.0**-10)})')} + 1"
        rounded = "CASE WHEN tried > 0 AND tried * tried >= square THEN tried ELSE tried + 1 END"
        return [
            ("dealt", f"SELECT {', '.join([own, *keys])}, {place}, {rows} FROM cells"),
            ("parted", f"SELECT *, place % ((own + {(1 << self.bits) - 1}) >> {self.bits}) AS part FROM dealt"),
            ("pairs", f"SELECT {chosen}, {agreed} AS agreed, {both} AS times FROM parted a JOIN parted b ON {same}"),
            ("squares", f"SELECT {own}, {square} FROM pairs GROUP BY {own}, part"),
            ("roots", f"SELECT {own}, square, {tried} AS tried FROM squares"),
            ("units", f"SELECT {own}, CAST(sum({rounded}) AS BIGINT) AS s0 FROM roots GROUP BY {own}"),
        ]  # fmt: skip


def _in_order(axes: Sequence[Axis]) -> list[str]:
    """Keys in the order of words of 62 bits into which they would be packed, the first in the lowest bits."""
    words: list[list[str]] = [[]]
    used = 0
    for i, axis in enumerate(axes):
        bits = max(1, (axis.size - 1).bit_length())
        if used + bits > WORD:
            words.append([])
            used = 0
        words[-1].insert(0, f"k{i}")
        used += bits
    return [key for word in words for key in word]
