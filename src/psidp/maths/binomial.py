"""Binomial tails and the rates they allow: exact (Clopper-Pearson) limits, and quantiles of order statistics."""

from typing import cast

import numpy as np
from scipy.special import betainc, betaincc, betainccinv, betaincinv

from psidp.maths.elementwise import Array, Reals

__all__ = [
    "binomial_tail",
    "order_statistic",
    "order_statistic_above",
    "order_statistic_below",
    "rate_above",
    "rate_below",
]

ROUNDING = 1e-9
"""Relative error granted to an incomplete beta function or its inverse; tests/maths/test_binomial.py measures 1e-11."""


def binomial_tail(count: Reals, trials: Reals, rate: Reals) -> Array:
    """P(at least `count` successes in `trials`) at a success rate, never rounded down.

    Examples:
        >>> float(round(binomial_tail(2, 2, 0.5), 6))
        0.25
    """
    count, trials, rate = np.asarray(count, float), np.asarray(trials, float), np.asarray(rate, float)
    a, b = np.maximum(count, 0.5), np.maximum(trials - count + 1.0, 0.5)
    tail = np.where(count > trials, 0.0, np.where(count > 0.0, betainc(a, b, rate), 1.0))
    return np.minimum(tail * (1.0 + ROUNDING), 1.0)[()]


def rate_above(successes: Reals, trials: Reals, alpha: Reals) -> Array:
    """Largest success rate that so few successes leave possible, wrong with probability alpha at most; rounded up.

    Examples:
        >>> float(round(rate_above(0, 100, 0.05), 4))
        0.0295

    References:
        Clopper and Pearson 1934.
    """
    successes, trials = np.asarray(successes, float), np.asarray(trials, float)
    missed = trials - successes
    above = betainccinv(successes + 1.0, np.maximum(missed, 0.5), alpha) * (1.0 + ROUNDING)
    return np.where(missed > 0.0, np.minimum(above, 1.0), 1.0)[()]


def rate_below(successes: Reals, trials: Reals, alpha: Reals) -> Array:
    """Smallest success rate that so many successes leave possible, wrong with probability alpha at most; rounded down.

    Examples:
        >>> float(round(rate_below(100, 100, 0.05), 4))
        0.9705
    """
    successes, trials = np.asarray(successes, float), np.asarray(trials, float)
    below = betaincinv(np.maximum(successes, 0.5), trials - successes + 1.0, alpha) * (1.0 - ROUNDING)
    return np.where(successes > 0.0, below, 0.0)[()]


def order_statistic(rank: Reals, size: Reals, low: Reals, high: Reals) -> Array:
    """Quantile of the rank-th smallest of `size` uniforms, rounded up: with mass `low` below it and `high` above.

    Both masses are given so that neither is lost to rounding when it is small.
    """
    a, b = np.asarray(rank, float), np.asarray(size, float) - rank + 1.0
    low, high = np.asarray(low, float), np.asarray(high, float)
    x = np.where(low < high, betaincinv(a, b, np.minimum(low, 0.5)), betainccinv(a, b, np.minimum(high, 0.5)))
    return cast("Array", np.minimum(x * (1.0 + ROUNDING), 1.0)[()])


def order_statistic_below(rank: int, size: int, rate: float) -> float:
    """P(the rank-th smallest of `size` uniforms is at most `rate`)."""
    return float(betainc(rank, size - rank + 1.0, rate))


def order_statistic_above(rank: int, size: int, rate: float) -> float:
    """P(the rank-th smallest of `size` uniforms is at least `rate`)."""
    return float(betaincc(rank, size - rank + 1.0, rate))
