"""Lattice: the integers in which one aggregate is clipped and summed, so that every engine gets the same totals."""

from dataclasses import dataclass
from fractions import Fraction
from math import frexp, isqrt, ldexp
from typing import Self

__all__ = ["SHIFT", "Lattice"]

SHIFT = 30
"""Clipping multiplies by an integer weight of at most 2^30 and drops so many bits."""

FINEST = 30
EXPONENTS = (-900, 900)


@dataclass(frozen=True, slots=True)
class Lattice:
    """Whole multiples of 2^unit, among which a unit of privacy adds a vector of norm at most `bound`.

    Args:
        norm: the bound on a unit's L2 norm, in the aggregate's own scale.
        unit: binary exponent of the step.
        bound: floor(norm / 2^unit), below 2^31.

    Guarantees:
        bound 2^unit <= norm, and coordinates * bound^2 < 2^62, so that the squares of a vector whose entries are cut at
        `most` add up below 2^122, which a decimal of 38 digits holds.

    Examples:
        >>> Lattice.fitting(1.0, coordinates=1)
        Lattice(norm=1.0, unit=-30, bound=1073741824)
        >>> Lattice.fitting(100.0, coordinates=1000)
        Lattice(norm=100.0, unit=-19, bound=52428800)
    """

    norm: float
    unit: int
    bound: int

    @classmethod
    def fitting(cls, norm: float, coordinates: int) -> Self:
        """The finest lattice for vectors of so many coordinates."""
        exponent = frexp(norm)[1] - 1
        low, high = EXPONENTS
        if not (norm > 0 and low <= exponent <= high):
            raise ValueError(f"norm (largest L2 norm of one unit) must be in [2^{low}, 2^{high + 1}), got norm={norm}.")
        fineness = min(FINEST, (60 - (max(1, coordinates) - 1).bit_length()) // 2)
        if not fineness >= 10:
            raise ValueError(f"coordinates (groups times bins) must be at most 2^40, got coordinates={coordinates}.")
        unit = exponent - fineness
        return cls(norm, unit, int(Fraction(norm) / Fraction(2) ** unit))

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
