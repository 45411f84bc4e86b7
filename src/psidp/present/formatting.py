"""Numbers as people read them: few digits, rounded to the private side."""

from decimal import ROUND_CEILING, Decimal
from math import isfinite

from psidp.maths.rounding import digits_down, digits_up, meant

__all__ = ["down", "per_thousand", "up"]


def up(value: float, digits: int = 4) -> str:
    """`value` with so many significant digits, never below it.

    Examples:
        >>> up(4.37717), up(0.38292), up(1.0), up(9.3e-7, 2)
        ('4.378', '0.383', '1', '9.3e-7')
    """
    return _shown(digits_up(value, digits)) if isfinite(value) else str(value)


def down(value: float, digits: int = 4) -> str:
    """`value` with so many significant digits, never above it.

    Examples:
        >>> down(0.30854), down(float("inf"))
        ('0.3085', 'inf')
    """
    return _shown(digits_down(value, digits)) if isfinite(value) else str(value)


def per_thousand(rate: float, of: int = 1000) -> str:
    """A rate as a count of people, never below it.

    Examples:
        >>> per_thousand(0.0924), per_thousand(2e-5), per_thousand(2e-5, of=1_000_000)
        ('93', '1', '20')
    """
    return f"{int((meant(rate) * of).to_integral_value(ROUND_CEILING)):,}"


def _shown(number: Decimal) -> str:
    """Plain notation from 0.0001 to 100,000, powers of ten outside; digits that carry nothing are dropped."""
    if number == 0:
        return "0"
    if not -4 <= number.adjusted() < 6:
        mantissa, exponent = f"{number:e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{number:f}"
