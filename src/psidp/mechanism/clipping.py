"""Sums of clipped records whose sensitivity is a theorem: integers only, so that no rounding can raise it."""

from dataclasses import dataclass, field
from fractions import Fraction
from math import frexp, inf, isqrt, ldexp
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from psidp.maths.sensitivity import Adjacency, clipped_vector
from psidp.symbols import Symbol, nullable

__all__ = ["SHIFT", "ClippedSum", "IntegerGrid", "clip_sum"]

SHIFT = 30
"""Clipping in SQL multiplies by an integer weight of at most 2^30 and drops so many bits."""

FINEST = 30
"""A norm bound is at most 2^30 to 2^31 steps, so that its square fits into 63 bits."""

NORM = Symbol("norm", "C", "largest L2 norm of one record", "(0,inf)", "any")
MOST_ROWS = 2**30
MOST_COLUMNS = 2**31
EXPONENTS = (-900, 900)
ENTRIES = 65536

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class IntegerGrid:
    """Whole multiples of 2^unit, among which a unit of privacy adds a vector of norm at most `bound`.

    Args:
        norm: the bound on a unit's L2 norm, in the aggregate's own scale.
        unit: binary exponent of the step.
        bound: floor(norm / 2^unit), below 2^31.

    Guarantees:
        bound 2^unit <= norm, and coordinates * bound^2 < 2^62, so that the squares of a vector whose entries are cut at
        `most` add up below 2^122, which a decimal of 38 digits holds.

    Examples:
        >>> IntegerGrid.fitting(1.0, coordinates=1)
        IntegerGrid(norm=1.0, unit=-30, bound=1073741824)
        >>> IntegerGrid.fitting(100.0, coordinates=1000)
        IntegerGrid(norm=100.0, unit=-19, bound=52428800)
    """

    norm: float
    unit: int
    bound: int

    @classmethod
    def fitting(cls, norm: float, coordinates: int = 1, of: str = "unit") -> Self:
        """The finest grid for vectors of so many coordinates, one vector for each unit of privacy (`of`: its name)."""
        exponent = frexp(norm)[1] - 1
        low, high = EXPONENTS
        if not (0 < norm < inf and low <= exponent <= high):
            raise ValueError(f"norm (largest L2 norm of one {of}) must be in [2^{low}, 2^{high + 1}), got norm={norm}.")
        fineness = min(FINEST, (60 - (max(1, coordinates) - 1).bit_length()) // 2)
        if not fineness >= 10:
            raise ValueError(f"coordinates (groups times bins) must be at most 2^40, got coordinates={coordinates}.")
        unit = exponent - fineness
        return cls(norm, unit, int(Fraction(float(norm)) / Fraction(2) ** unit))

    @property
    def most(self) -> int:
        """2^30 bounds, below 2^61: an entry beyond that counts as that."""
        return self.bound << SHIFT

    @property
    def step(self) -> float:
        """2^unit."""
        return ldexp(1.0, self.unit)

    @property
    def scale(self) -> float:
        """2^-unit."""
        return ldexp(1.0, -self.unit)

    def truncated(self, value: float) -> int:
        """`value` in steps, toward zero."""
        return int(Fraction(value) / Fraction(2) ** self.unit)

    def part(self, parts: int) -> int:
        """The largest integer of which so many, as coordinates of one row, have norm at most 1."""
        return isqrt(self.truncated(1.0) ** 2 // parts)


@dataclass(frozen=True, slots=True, eq=False)
class ClippedSum:
    """A sum of records clipped to L2 norm `norm`, as integers in units of 2^unit; not yet private.

    Its repr never shows the totals. `one_entry` where each record adds to one entry alone and takes nothing away, as in
    a table of counts.
    """

    norm: float
    unit: int
    totals: Ints = field(repr=False)
    one_entry: bool = False

    def sensitivity(self, adjacency: Adjacency) -> float:
        """How far one record can move the sum: norm for add-remove, twice that for replace-one, or sqrt 2 times it
        where a record is in one entry alone."""
        return clipped_vector(self.norm, adjacency, one_entry=self.one_entry)


def clip_sum(rows: Any, norm: float) -> ClippedSum:
    r"""Sum of the rows, each shrunk to L2 norm at most `norm` and cut toward zero to a power-of-two grid.

    A row v becomes integers k = trunc(v 2^-unit) in units of 2^unit, with B = floor(norm 2^-unit) in [2^30,
    2^31). If S = sum k_i^2 exceeds B^2, k is replaced by sign(k_i) floor(|k_i| B / r) for an integer r with
    r^2 >= S.

    Guarantees:
        Every row adds a vector of norm at most `norm`, with no exception and no rounding error: S <= B^2,
        or the sum of floor(|k_i| B / r)^2 <= B^2 S / r^2 <= B^2, all in integers that do not overflow. The
        totals are exact integers, so that the order of the rows cannot matter. NaN counts as 0 and
        infinities as the largest double. A row within the norm loses less than 2^-30 norm per coordinate.
        The bound is proved in docs/design/noise.md, claim 9, and tried in tests/mechanism/test_clipping.py.

    Args:
        rows: n numbers or an n by d matrix, n up to 2^30, one row for each unit of privacy: what a person has in
            several rows must be added up first, or the guarantee is per row. Masked arrays, and arrays of pandas'
            nullable types, Arrow and Polars, are refused by their type.
        norm: the bound, in [2^-900, 2^901).

    Examples:
        >>> clip_sum([[3.0, 4.0], [0.25, 0.0]], norm=1.0).totals * 2.0**-30
        array([0.85, 0.8 ])

    References:
        Casacuberta, Shoemate, Vadhan and Wagaman, "Widespread underestimation of sensitivity in
        differentially private libraries and how to fix it", CCS 2022.
    """
    matrix, flat = _matrix(rows)
    norm = NORM.at_most(norm)
    grid = IntegerGrid.fitting(norm, of="record")
    bound, unit = grid.bound, grid.unit
    totals = np.zeros(matrix.shape[1], np.int64)
    height = max(1, ENTRIES // max(1, matrix.shape[1]))
    with np.errstate(all="ignore"):
        for start in range(0, matrix.shape[0], height):
            totals += _clipped(matrix[start : start + height], norm, bound, unit).sum(axis=0)
    return ClippedSum(norm, unit, totals.reshape(()) if flat else totals)


def _matrix(rows: Any) -> tuple[NDArray[Any], bool]:
    """The rows as a matrix, and whether they were plain numbers; refused by type and shape alone, never by an entry."""
    if nullable(rows):
        raise TypeError(
            f"rows must be an array of numbers without a mask or missing values, got {type(rows).__name__}. Fill it "
            "first: rows.filled(numpy.nan) of a masked array, rows.to_numpy(...) of a frame. NaN counts as 0."
        )
    try:
        matrix = np.asarray(rows)
    except ValueError:
        raise TypeError("rows must be numbers in one dimension or two, each record as long as the others.") from None
    if not (matrix.dtype.kind in "iuf" and matrix.dtype.itemsize <= 8) or matrix.ndim not in (1, 2):
        raise TypeError(
            "rows must be numbers in one dimension or two (a record per row), integers or floats of at most 64 bits, "
            f"got {matrix.ndim} dimensions of type {matrix.dtype}."
        )
    flat = matrix.ndim == 1
    matrix = matrix.reshape(-1, 1) if flat else matrix
    if not (matrix.shape[0] <= MOST_ROWS and matrix.shape[1] <= MOST_COLUMNS):
        raise ValueError(f"rows must be at most 2^30 by 2^31, got {matrix.shape}.")
    return matrix, flat


def _clipped(rows: NDArray[Any], norm: float, bound: int, unit: int) -> Ints:
    """Each row in units, of norm at most `bound`: clipped in doubles, then checked and corrected in integers."""
    values = np.nan_to_num(rows.astype(np.float64), nan=0.0)
    largest = np.abs(values).max(axis=1, keepdims=True, initial=0.0)
    over = largest > norm
    values = np.where(over, values / np.where(over, largest, 1.0) * norm, values)
    values = np.ldexp(values, -unit)
    length = np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
    values *= np.where(length > bound, bound / np.where(length > bound, length, 1.0), 1.0)
    units = values.astype(np.int64)  # toward zero
    return _shrunk(units, bound)


def _shrunk(units: Ints, bound: int) -> Ints:
    """Integer rows, shrunk where their norm exceeds `bound`; the squares of a row must add up below 2^63."""
    square = np.einsum("ij,ij->i", units, units)[:, None]
    root = np.ceil(np.sqrt(square.astype(np.float64))).astype(np.int64)
    root += root * root < square
    over = square > bound * bound
    sizes: Ints = np.abs(units) * np.where(over, bound, 1) // np.where(over, root, 1)
    return np.sign(units) * sizes
