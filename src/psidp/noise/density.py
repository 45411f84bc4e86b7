"""The normal density between two integers: bounds to any precision, from integer arithmetic alone."""

from functools import lru_cache
from math import isqrt

__all__ = ["density_bounds"]


def density_bounds(low: int, high: int, shift: int, precision: int) -> tuple[int, int]:
    """Integers l and h with l <= 2^precision phi(x) <= h for every x in [low, high] 2^-shift, 0 <= low.

    Guarantees:
        Proved bounds: every step rounds outward. They close in as the interval narrows and precision grows:
        for one point they are at most 3 apart (tests/noise/test_density.py, against ball arithmetic).
    """
    working = precision + 8
    below, above = _root_of_two_pi(working)
    least = (_exp_bounds(high * high, 2 * shift + 1, working)[0] << working) // above
    most = (_exp_bounds(low * low, 2 * shift + 1, working)[1] << working) // below
    return least >> 8, (most >> 8) + 1


def _exp_bounds(number: int, shift: int, precision: int) -> tuple[int, int]:
    """Bounds of 2^precision exp(-number 2^-shift): halve the exponent, sum the series, square back."""
    halvings = max(0, number.bit_length() - shift + 1)
    working = precision + 2 * halvings + 24
    y = (number << working) >> (shift + halvings)  # the exponent lies in [y, y + 1), and y < 2^(working - 1)
    total, term, k = 0, 1 << working, 0
    while term:
        total += term if k % 2 == 0 else -term
        k += 1
        term = (term * y >> working) // k
    # Each term is below the true one by less than 4 units, the first that vanished was below 5, and y + 1 for
    # y moves the sum by at most 1: k terms and these two are off by less than 4 k + 6 units together.
    low, high = max(0, total - 4 * k - 6), total + 4 * k + 6
    for _ in range(halvings):
        low, high = low * low >> working, (high * high >> working) + 1
    return low >> (working - precision), (high >> (working - precision)) + 1


@lru_cache(maxsize=16)
def _root_of_two_pi(precision: int) -> tuple[int, int]:
    """Bounds of 2^precision sqrt(2 pi), by Machin's formula."""
    working = precision + 16
    pi = 16 * _inverse_tangent(5, working) - 4 * _inverse_tangent(239, working)
    slack = 20 * (working + 2)  # a series of fewer than working + 2 terms, each off by at most one unit
    low, high = isqrt(2 * (pi - slack) << working), isqrt(2 * (pi + slack) << working) + 1
    return low >> 16, (high >> 16) + 1


def _inverse_tangent(n: int, precision: int) -> int:
    """About 2^precision atan(1/n): each term off by at most one unit, fewer than `precision` terms."""
    power, total, k = (1 << precision) // n, 0, 1
    while power:
        total += power // k if k % 4 == 1 else -(power // k)
        power //= n * n
        k += 2
    return total
