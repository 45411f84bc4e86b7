"""Rounding to the private side: products and roots as floats, and the few digits that people read."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import inf, isqrt, nextafter

from psidp.symbols import float_above, float_below

__all__ = ["bounded", "digits_down", "digits_up", "integer_root", "meant", "product_up", "root_above", "root_below"]


def integer_root(square: int) -> Fraction:
    """The root of a whole number of at least 1, rounded up by less than 2^-64.

    Examples:
        >>> integer_root(9), integer_root(2) ** 2 >= 2
        (Fraction(3, 1), True)
    """
    return Fraction(isqrt((square << 128) - 1) + 1, 2**64)


def bounded(value: float) -> float:
    """`value` itself; refused where it is inf, because no float is as large as the result."""
    if not value < inf:
        raise ValueError("the result is too large for a float: the guarantee would be empty.")
    return value


def product_up(a: float, b: float) -> float:
    """a b, never rounded down.

    Examples:
        >>> product_up(0.1, 3.0) >= Fraction(0.1) * 3
        True
    """
    return float_above(Fraction(a) * Fraction(b))


def root_below(square: Fraction) -> float:
    """The largest float whose square is at or below `square`.

    Examples:
        >>> root_below(Fraction(9, 16)), root_below(Fraction(2)) < root_above(Fraction(2))
        (0.75, True)
    """
    if not square > 0:
        return 0.0
    shift = max(0, 128 + square.denominator.bit_length() - square.numerator.bit_length())
    shift += shift % 2
    # The whole root has more bits than a float, so that no float lies between it and the true one.
    return float_below(Fraction(isqrt((square.numerator << shift) // square.denominator), 1 << (shift // 2)))


def root_above(square: Fraction) -> float:
    """The smallest float whose square is at or above `square`; inf where there is none."""
    below = root_below(square)
    return below if Fraction(below) ** 2 == max(square, 0) else nextafter(below, inf)


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
