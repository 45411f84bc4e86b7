"""Truncation: how likely a Poisson batch is to exceed its largest size, bounded from above."""

from decimal import Context, Decimal, localcontext
from math import expm1, factorial, log1p

__all__ = ["any_of", "overflow"]

DIGITS = 60
SMALL = 512
"""Factorials up to here are computed; beyond, Stirling's series encloses their logarithm to 1e-17."""
ENOUGH = 1e-18
SAFE = 1.0 + 2.0**-30


def overflow(records: int, sampling_rate: float, size: int) -> float:
    """Upper bound of the chance that `size` or more of the records are sampled; exceeds the truth by a part in 1e9.

    The chance of `size` exactly, in 60 digits, times the sum of the ratios of the chances that follow; each of them is
    smaller than the one before, so that a geometric series bounds the rest.

    Examples:
        >>> overflow(10, 0.5, 10) * 1024
        1.0000000...
        >>> overflow(59_999, 0.01, 800)
        3.18994...e-15
    """
    if size <= 0 or not size > records * sampling_rate:
        return 1.0
    if size > records or sampling_rate == 0.0:
        return 0.0
    odds = sampling_rate / (1.0 - sampling_rate)
    total, term, j = 1.0, 1.0, size
    while j < records:
        ratio = (records - j) / (j + 1.0) * odds
        term, j = term * ratio, j + 1
        total += term
        if term <= ENOUGH * total:
            total += term * ratio / (1.0 - ratio)
            break
    safe = SAFE + (j - size) * 2.0**-50  # each ratio has a few roundings, and so has each term all those before it
    with localcontext(Context(prec=DIGITS)):
        q = Decimal(sampling_rate)
        chance = _log_factorial(records) - _log_factorial(size) - _log_factorial(records - size)
        chance += size * q.ln() + (records - size) * (1 - q).ln()
        return min(max(float((chance + Decimal(total).ln()).exp()) * safe, 5e-324), 1.0)


def any_of(chance: float, steps: int) -> float:
    """Upper bound of 1 - (1 - chance)^steps.

    Examples:
        >>> any_of(1e-12, 1000)
        1.00000000...e-09
    """
    return min(-expm1(steps * log1p(-chance)) * SAFE, 1.0) if chance < 1.0 else 1.0


def _log_factorial(n: int) -> Decimal:
    """log n!, to a relative 1e-17 or better."""
    if n <= SMALL:
        return Decimal(factorial(n)).ln()
    x, two_pi = Decimal(n), Decimal("6.28318530717958647692528676655900576839433879875021164194988918461563281257242")
    series = 1 / (12 * x) - 1 / (360 * x**3) + 1 / (1260 * x**5) - 1 / (1680 * x**7)
    return x * x.ln() - x + (two_pi * x).ln() / 2 + series
