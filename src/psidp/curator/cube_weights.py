"""Weights of units in a cube: one whole number for all rows of a unit, so that its image stays within a bound.

Doubles propose a quotient or a root, integers decide: the weight is the same on every engine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add, or_
from typing import Any, ClassVar

from psidp.curator.cube_columns import CubeColumn, finished, listed
from psidp.curator.row_sql import ibis_library, real, whole
from psidp.curator.unit import owners, same_unit, units_in

__all__ = ["FULL", "MOST_COLUMNS", "OWN", "SIZE", "ImageBound", "RowBound", "with_words"]

FULL = 2**20
"""The weight of a unit within the bound."""

MOST_ROWS = 2.0**20
MOST_COLUMNS = 10
MOST_BLOCK = 4096
MOST_GRAM = 2**30
SIZE, OWN = "size", "own"
"""What a unit is worth, in steps of `one` for a row; and how many rows it has."""

WORD = 62
"""Bits of a word in which keys are packed."""


@dataclass(frozen=True, slots=True)
class RowBound:
    """A bound on a unit's rows: w = min(2^20, floor(contribution 2^20 / rows)).

    Guarantees:
        w rows <= contribution 2^20, in integers.
    """

    contribution: float

    def __post_init__(self) -> None:
        check_rows(self.contribution)

    @property
    def most(self) -> int:
        """contribution 2^20, rounded down."""
        return int(Fraction(self.contribution) * FULL)

    def check(self, columns: Sequence[CubeColumn]) -> None:
        """Rows can be counted whatever the columns are."""

    one: ClassVar[int] = 1
    """The size of a unit of one row."""

    def weights(self, rows: Any, columns: Sequence[CubeColumn]) -> Any:
        """One row a unit, its size and its weight beside it."""
        units = rows.group_by(units_in(rows)).aggregate(size=rows.count())
        return weighed(units.mutate(own=units.size), self.most)


@dataclass(frozen=True, slots=True)
class ImageBound:
    """A bound on the norm of a unit's image under the strategy, from pairs of its rows.

    Rows of a unit are dealt in key order to ceil(rows/block) blocks. A block's square is the sum of gram[pattern] over
    its ordered pairs of rows, pattern being the columns in which they agree, and its root is rounded up; R is the sum
    of the roots, and w = min(2^20, floor(contribution 2^20 2^12 / R)).

    Args:
        contribution: how many rows' worth a unit may add.
        gram: for each pattern, bit i set where column i agrees, an integer of at least 2^24 g(pattern) at psi = 1; the
        last is that of a row with itself, about 2^24. block: the largest number of rows that are paired.

    Guarantees:
        |w u|_G <= contribution 2^20 psi, docs/design/cubes.md.
    """

    contribution: float
    gram: tuple[int, ...]
    block: int = 64

    def __post_init__(self) -> None:
        check_rows(self.contribution)
        if not 1 <= self.block <= MOST_BLOCK:
            raise ValueError(f"block (rows that are paired) must be in [1, {MOST_BLOCK}], got block={self.block}.")
        if not all(isinstance(g, int) and -MOST_GRAM <= g <= MOST_GRAM for g in self.gram):
            raise ValueError("gram must be integers of at most 2^30 in size, about 2^24 for a row with itself.")

    @property
    def most(self) -> int:
        """contribution 2^32, rounded down."""
        return int(Fraction(self.contribution) * (FULL << 12))

    def check(self, columns: Sequence[CubeColumn]) -> None:
        """Refuse columns for which agreement does not tell the product of two rows."""
        ordered = [column.name for column in columns if column.ordered]
        if ordered:
            raise ValueError(
                f"the image norm must have columns without an order, got {ordered[0]!r}: with an ordered one the "
                "products of rows depend on more than where they agree. Bound units by their rows instead."
            )
        if not 1 <= len(columns) <= MOST_COLUMNS:
            raise ValueError(
                f"the image norm must have 1 to {MOST_COLUMNS} columns, got {len(columns)}. Bound units by their rows."
            )
        if len(self.gram) != 1 << len(columns):
            raise ValueError(f"gram must have {1 << len(columns)} entries, one a pattern, got {len(self.gram)}.")

    one: ClassVar[int] = 1 << 12
    """The size of a unit of one row."""

    def weights(self, rows: Any, columns: Sequence[CubeColumn]) -> Any:
        """One row a unit, with size and weight; rows are coded, and stored, since they are read several times."""
        unit = units_in(rows)
        units = rows.group_by(unit).aggregate(size=rows.count())
        many = units.filter(units.size > whole(self.block))
        many = many.select(**owners(many), parts=self._parts(many.size))
        words = [f"x{i}" for i in range(len(_layout(columns)))]
        few = finished(rows.anti_join(many, same_unit(rows, many)), [*unit, *words])
        dealt = finished(rows.inner_join(many, same_unit(rows, many)), [*unit, *words, "parts"])
        place = ibis_library().row_number().over(group_by=unit, order_by=words).cast("!int64")
        dealt = dealt.mutate(place=place)
        dealt = dealt.select(*unit, *words, part=dealt.place % dealt.parts)
        blocks = self._roots(dealt, [*unit, "part"], words, columns)
        added = blocks.group_by(unit).aggregate(size=blocks["root"].sum().cast("!int64"))
        whole_units = self._roots(few, unit, words, columns)
        sizes = whole_units.select(*unit, size=whole_units["root"].cast("!int64")).union(added)
        own = units.select(**owners(units), **{OWN: units["size"]})
        sizes = finished(sizes.inner_join(own, same_unit(sizes, own)), [*unit, SIZE, OWN])
        return weighed(sizes, self.most)

    def _parts(self, size: Any) -> Any:
        """ceil(size / block): the half keeps the quotient away from whole numbers, however it is rounded."""
        shifted = size.cast("float64") + real(self.block - 0.5)
        return (shifted / real(float(self.block))).floor().cast("int64")

    def _roots(self, rows: Any, by: Sequence[str], words: Sequence[str], columns: Sequence[CubeColumn]) -> Any:
        """ceil(sqrt(S)) of each block: pairs of rows in order, those of different keys counted twice."""
        other = rows.select(**{f"{name}_b": rows[name] for name in (*by, *words)})
        same = [rows[name] == other[f"{name}_b"] for name in by]
        pairs = rows.inner_join(other, [*same, _at_most([(rows[w], other[f"{w}_b"]) for w in words])])
        pairs = finished(pairs, [*by, *words, *(f"{name}_b" for name in words)])
        pairs = pairs.select(*by, pattern=_pattern(pairs, words, columns))
        twice = [str(g if p == len(self.gram) - 1 else 2 * g) for p, g in enumerate(self.gram)]
        grams = listed([(text, p) for p, text in enumerate(twice)])
        grams = grams.select(agreed=grams.number.cast("int32"), gram=grams.text.cast("int64"))
        valued = finished(pairs.inner_join(grams, pairs.pattern == grams.agreed), [*by, "gram"])
        squares = valued.group_by(list(by)).aggregate(square=valued.gram.sum().cast("!int64"))
        tried = squares.mutate(tried=_root(squares.square))
        enough = tried.tried * tried.tried >= tried.square
        return tried.select(*by, root=ibis_library().cases((enough, tried.tried), else_=tried.tried + whole(1)))


def with_words(rows: Any, columns: Sequence[CubeColumn]) -> Any:
    """Coded rows, the numbers of their keys side by side in words x0, x1, ... of at most 62 bits."""
    words = {}
    for n, word in enumerate(_layout(columns)):
        words[f"x{n}"] = reduce(or_, [rows[f"k{i}"].cast("int64") << whole(shift) for i, shift, _ in word])
    return rows.mutate(**words)


def _layout(columns: Sequence[CubeColumn]) -> list[list[tuple[int, int, int]]]:
    """For each word its columns, each with where it begins and how many bits it has."""
    words: list[list[tuple[int, int, int]]] = [[]]
    used = 0
    for i, column in enumerate(columns):
        bits = max(1, (column.size - 1).bit_length())
        if used + bits > WORD:
            words.append([])
            used = 0
        words[-1].append((i, used, bits))
        used += bits
    return words


def _pattern(pairs: Any, words: Sequence[str], columns: Sequence[CubeColumn]) -> Any:
    """Bit i is set where the two rows agree in column i."""
    agreed = []
    for name, word in zip(words, _layout(columns), strict=True):
        apart = pairs[name] ^ pairs[f"{name}_b"]
        for i, shift, bits in word:
            agreed.append(((apart & whole(((1 << bits) - 1) << shift)) == whole(0)).cast("int32") * _int(1 << i))
    return reduce(add, agreed)


def _at_most(words: Sequence[tuple[Any, Any]]) -> Any:
    """Whether the words of one row come before those of the other, or are the same."""
    (one, other), rest = words[0], words[1:]
    return (one < other) | ((one == other) & _at_most(rest)) if rest else one <= other


def _root(square: Any) -> Any:
    """ceil(sqrt(square)) or one less, in doubles that are off by less than 2^-20; a square is below 2^55."""
    root = ibis_library().cases((square <= whole(0), real(0.5)), else_=square.cast("float64").sqrt())
    return (root - real(2.0**-10)).floor().cast("int64") + whole(1)


def _int(value: int) -> Any:
    """A 32-bit integer in SQL."""
    return ibis_library().literal(value, "int32")


def check_rows(contribution: float) -> None:
    """Refuse a contribution that is no number of rows."""
    if not 1.0 <= contribution <= MOST_ROWS:
        raise ValueError(
            f"contribution (rows' worth one unit may add) must be in [1, 2^20], got contribution={contribution}."
        )


def weighed(units: Any, most: int) -> Any:
    """Units with w = min(2^20, floor(most / size))."""
    tried = units.mutate(tried=_quotient(units.size, most))
    fits = tried.tried * tried.size <= whole(most)
    weight = ibis_library().cases(
        (tried.size <= whole(most // FULL), whole(FULL)), (fits, tried.tried), else_=tried.tried - whole(1)
    )
    return tried.select(**owners(tried), size=tried["size"], own=tried[OWN], weight=weight.cast("int32"))


def _quotient(size: Any, most: int) -> Any:
    """floor(most / size) or one more, for size > most/2^20: in doubles, off by less than 2^-19."""
    small = most // FULL
    divisor = ibis_library().cases((size <= whole(small), real(float(most))), else_=size.cast("float64"))
    return (real(float(most)) / divisor - real(2.0**-10)).floor().cast("int64") + whole(1)
