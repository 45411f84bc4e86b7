"""Gaussian thresholding of keys: the chance kappa that a key which only one unit has is released.

A unit that touches m keys adds w_m to the count of each, m = 1 to k. Keys whose noisy count exceeds tau are released.
Where a unit's keys are its own, none of them is released with probability Phi((tau - w_m)/sigma)^m.
"""

from collections.abc import Sequence

import numpy as np

from psidp.maths.bisection import bracket, within
from psidp.maths.normal import UNIT, tail, tail_error

__all__ = ["kappa_from_threshold", "threshold_from_kappa"]


def kappa_from_threshold(threshold: float, sigma: float, weights: Sequence[float]) -> float:
    r"""Largest chance that a key of one unit alone is released, rounded up.

    .. math:: \kappa = \max_{1 \le m \le k} 1 - \Phi\left(\frac{\tau - w_m}{\sigma}\right)^m

    Args:
        threshold: tau, what a noisy count has to exceed.
        sigma: standard deviation of the noise, (0, inf).
        weights: w_1, ..., w_k, what a unit adds to each of its 1, ..., k keys.

    Examples:
        >>> kappa_from_threshold(6.0, 1.0, [1.0])
        2.866...e-07
    """
    w = np.asarray(weights, dtype=np.float64)
    m = np.arange(1.0, w.size + 1.0)
    x = (threshold - w) / sigma
    slack = 4.0 * UNIT * (np.abs(threshold) + np.abs(w)) / sigma  # error of x
    above = np.minimum(tail(x - slack) * (1.0 + tail_error(x - slack)), 1.0)
    with np.errstate(divide="ignore"):
        chances = -np.expm1(m * np.log1p(-above))
    return float(min(1.0, np.max(chances) * (1.0 + 64.0 * UNIT)))


def threshold_from_kappa(kappa: float, sigma: float, weights: Sequence[float]) -> float:
    """Smallest threshold whose kappa is no larger, to a millionth of sigma and from above.

    Examples:
        >>> tau = threshold_from_kappa(1e-9, 2.0, [1.0, 0.7])
        >>> kappa_from_threshold(tau, 2.0, [1.0, 0.7]) <= 1e-9
        True
    """
    if not 0.0 < kappa < 1.0:
        raise ValueError(f"kappa (probability of outright failure) must be in (0, 1) here, got kappa={kappa}.")
    low = max(weights) - 40.0 * sigma
    high = max(weights) + 40.0 * sigma
    if not kappa_from_threshold(high, sigma, weights) <= kappa:
        raise ValueError(f"kappa (probability of outright failure) must be at least 1e-300, got kappa={kappa}.")
    return bracket(
        lambda threshold: not kappa_from_threshold(threshold, sigma, weights) <= kappa, low, high, within(1e-6 * sigma)
    )[1]
