"""Plain Gaussians and failure probabilities, added up in whole numbers: no sum loses a digit, no square underflows."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isqrt

from psidp.symbols import float_above, float_below

__all__ = ["BITS", "NOTHING", "UNIT", "Squares", "failure", "power"]

BITS = 2400
"""A unit of 2^-2400 is below 2^-250 of the square of the smallest float."""
UNIT = 1 << BITS
TINY = 1 << (BITS - 960)
"""Squares below 2^-960 have no place in a sum of floats."""
HUGE = 1 << (BITS + 1023)
"""And those above 2^1023 have none in it."""


@dataclass(frozen=True)
class Squares:
    """A sum of squared psi, known to lie between two whole numbers of units 2^-2400."""

    low: int = 0
    high: int = 0

    @classmethod
    def of(cls, terms: Iterable[tuple[Fraction, int]]) -> "Squares":
        """The sum of count * square over the terms (square, count)."""
        low = high = 0
        for square, count in terms:
            scaled = (square.numerator * count) << BITS
            low += scaled // square.denominator
            high -= -scaled // square.denominator
        return cls(low, high)

    def __add__(self, other: "Squares") -> "Squares":
        return Squares(self.low + other.low, self.high + other.high)

    @cached_property
    def value(self) -> float:
        """The sum as a float; below 2^-960 it says 0 (`between` is for that), and inf where it is too large."""
        return float_above(Fraction(self.high, 1 << BITS)) if self.high >= TINY else 0.0

    @cached_property
    def rest(self) -> float:
        """What `value` leaves out, as a float: together they have more than 100 bits."""
        return float(Fraction(self.high, 1 << BITS) - Fraction(self.value)) if TINY <= self.high < HUGE else 0.0

    @cached_property
    def psi(self) -> tuple[float, float]:
        """The root of the sum, rounded down and up."""
        low, high = isqrt(self.low), isqrt(self.high)
        high += high * high < self.high
        return (float_below(Fraction(low, 1 << BITS // 2)), float_above(Fraction(high, 1 << BITS // 2)))

    def between(self) -> tuple["Squares", "Squares"]:
        """Two sums that floats can hold, one not above and one not below: the sum itself, twice, unless it is tiny."""
        return (self, self) if self.high >= TINY or not self.high else (Squares(), Squares(TINY, TINY))


NOTHING = Squares()


def failure(kappas: Iterable[float]) -> tuple[float, float]:
    """1 - prod(1 - kappa), rounded down and up."""
    one = 1 << BITS
    low = high = one
    for kappa in kappas:
        kept = one - int(Fraction(kappa) * one)  # exact: no float is finer than 2^-1074
        low, high = (low * kept) >> BITS, -((-high * kept) >> BITS)
    return float_below(Fraction(one - high, one)), float_above(Fraction(one - low, one))


def power(x: int, n: int) -> tuple[int, int]:
    """(x/UNIT)^n, down and up."""
    low = high = UNIT
    square_low = square_high = x
    while n:
        if n & 1:
            low, high = (low * square_low) >> BITS, -((-high * square_high) >> BITS)
        square_low, square_high, n = (square_low * square_low) >> BITS, -((-square_high * square_high) >> BITS), n >> 1
    return low, high
