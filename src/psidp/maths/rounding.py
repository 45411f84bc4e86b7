"""Rounding to the private side: the float next to an exact number, and the few digits that people read."""

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import inf, isqrt, nextafter

__all__ = ["digits_down", "digits_up", "meant", "product_up", "psi_below", "up_until"]


def up_until(value: float, enough: Callable[[float], bool]) -> float:
    """The smallest float at or above `value` that is enough, a few steps away at most.

    Examples:
        >>> up_until(0.1, lambda x: Fraction(x) >= Fraction(1, 10))
        0.1
    """
    if not value < inf:
        raise ValueError("the result is too large for a float: the guarantee would be empty.")
    below = nextafter(value, 0.0)
    value = below if enough(below) else value
    while not enough(value):
        value = nextafter(value, inf)
    return value


def product_up(a: float, b: float) -> float:
    """a b, never rounded down.

    Examples:
        >>> product_up(0.1, 3.0) >= Fraction(0.1) * 3
        True
    """
    product = a * b
    return product if Fraction(product) >= Fraction(a) * Fraction(b) else nextafter(product, inf)


def psi_below(square: Fraction) -> float:
    """The largest double whose square is at or below `square`.

    Examples:
        >>> psi_below(Fraction(9, 16))
        0.75
    """
    if not square > 0:
        return 0.0
    shift = max(0, 128 + square.denominator.bit_length() - square.numerator.bit_length())
    shift += shift % 2
    root = Fraction(isqrt((square.numerator << shift) // square.denominator), 1 << (shift // 2))
    psi = float(root)
    while Fraction(psi) ** 2 > square:
        psi = nextafter(psi, 0.0)
    while Fraction(nextafter(psi, inf)) ** 2 <= square:
        psi = nextafter(psi, inf)
    return psi


def meant(value: float) -> Decimal:
    """The decimal a person means: to fourteen digits, so that 1.0000000000000004 is one."""
    return Context(prec=14).create_decimal_from_float(value)


def digits_up(value: float, digits: int) -> Decimal:
    """`value` with so many significant digits, never below it.

    Examples:
        >>> digits_up(4.37717, 4), digits_down(4.37717, 4)
        (Decimal('4.378'), Decimal('4.377'))
    """
    return Context(prec=digits, rounding=ROUND_CEILING).plus(meant(value)).normalize()


def digits_down(value: float, digits: int) -> Decimal:
    """`value` with so many significant digits, never above it."""
    return Context(prec=digits, rounding=ROUND_FLOOR).plus(meant(value)).normalize()
