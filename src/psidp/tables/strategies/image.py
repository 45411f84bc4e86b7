"""ImageBound: units of a cube weighed by the norm of their image under the noise, from pairs of their rows.

A unit whose rows lie in different cells moves the noisy residuals by less than one whose rows lie in one cell: its rows
may count for more. docs/design/cubes.md proves the bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from psidp.tables.axes import Axis
from psidp.tables.engines.engine import Dialect
from psidp.tables.unit_bounds import RowBound

__all__ = ["MOST_COLUMNS", "ImageBound"]

MOST_COLUMNS = 10
MOST_BITS = 12
MOST_GRAM = 2**30

WORD = 62
"""Bits of a word in which keys are packed: one column to sort and to compare, where there would be several."""


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
        if len(self.gram) != 1 << len(axes):
            raise ValueError(f"gram must have {1 << len(axes)} entries, one a pattern, got {len(self.gram)}.")
        own, words = ", ".join(unit), _words(axes)
        names = [f"x{n}" for n in range(len(words))]
        packed = [" + ".join(f"CAST(k{i} AS BIGINT) * {1 << shift}" for i, shift, _ in word) for word in words]
        dealt = [f"{text} AS {name}" for text, name in zip(packed, names, strict=True)]
        place = f"row_number() OVER (PARTITION BY {own} ORDER BY {', '.join(names)}) - 1 AS place"
        rows = f"count(*) OVER (PARTITION BY {own}) AS own"
        same = " AND ".join([f"a.{name} = b.{name}" for name in (*unit, "part")] + ["a.place <= b.place"])
        agreed = " + ".join(
            f"CASE WHEN (a.{name} & {mask}) = (b.{name} & {mask}) THEN {1 << i} ELSE 0 END"
            for name, word in zip(names, words, strict=True)
            for i, _, mask in word
        )
        chosen = ", ".join(f"a.{name}" for name in (*unit, "part"))
        both = "CASE WHEN a.place = b.place THEN 1 ELSE 2 END"  # a pair counts in both orders
        lines = ", ".join(f"({pattern}, {product})" for pattern, product in enumerate(self.gram))
        grams = f"(VALUES {lines}) AS grams(pattern, product)"  # a join is three times as fast as CASE
        root = f"sqrt(CAST(CASE WHEN square <= 0 THEN 0 ELSE square END AS {dialect.double}))"
        tried = f"{dialect.whole(f'floor({root} - {dialect.real(2.0**-10)})')} + 1"
        rounded = "CASE WHEN tried > 0 AND tried * tried >= square THEN tried ELSE tried + 1 END"
        return [
            ("packed", f"SELECT {', '.join([own, *dealt])} FROM cells"),
            ("dealt", f"SELECT *, {place}, {rows} FROM packed"),
            ("parted", f"SELECT *, place % ((own + {(1 << self.bits) - 1}) >> {self.bits}) AS part FROM dealt"),
            ("pairs", f"SELECT {chosen}, {agreed} AS agreed, {both} AS times FROM parted a JOIN parted b ON {same}"),
            ("squares", f"SELECT {own}, CAST(sum(times * CAST(product AS BIGINT)) AS BIGINT) AS square "
                        f"FROM pairs JOIN {grams} ON agreed = pattern GROUP BY {own}, part"),
            ("roots", f"SELECT {own}, square, {tried} AS tried FROM squares"),
            ("units", f"SELECT {own}, CAST(sum({rounded}) AS BIGINT) AS s0 FROM roots GROUP BY {own}"),
        ]  # fmt: skip


def _words(axes: Sequence[Axis]) -> list[list[tuple[int, int, int]]]:
    """Keys side by side in words of 62 bits, the first in the lowest bits: for each its axis, shift and mask."""
    words: list[list[tuple[int, int, int]]] = [[]]
    used = 0
    for i, axis in enumerate(axes):
        bits = max(1, (axis.size - 1).bit_length())
        if used + bits > WORD:
            words.append([])
            used = 0
        words[-1].append((i, used, ((1 << bits) - 1) << used))
        used += bits
    return words
