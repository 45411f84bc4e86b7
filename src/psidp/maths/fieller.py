"""Ratios of two noisy numbers: standard error, and Fieller's interval, which holds every ratio that they allow."""

import numpy as np
from numpy.typing import NDArray

from psidp.maths.elementwise import Reals
from psidp.maths.normal import UNIT

__all__ = ["bounded_ratio", "ratio_error", "ratio_interval"]

Floats = NDArray[np.float64]


def ratio_interval(
    a: Reals, b: Reals, variance_a: Reals, variance_b: Reals, covariance: Reals, z: float
) -> tuple[Floats, Floats]:
    r"""Lower and upper end of the ratios t with :math:`(a - t b)^2 \le z^2 Var(a - t b)`.

    .. math:: (b^2 - z^2 v_b) t^2 - 2 (a b - z^2 c) t + a^2 - z^2 v_a \le 0

    Guarantees:
        For normal a and b the true ratio is inside with the chance that |N| <= z, exactly. Where b cannot be told from
        0 at this z the set is no interval, and (-inf, inf) comes back, which covers too.

    Examples:
        >>> low, high = ratio_interval(50.0, 100.0, 4.0, 4.0, 0.0, z=1.96)
        >>> float(low.round(3)), float(high.round(3))
        (0.457, 0.545)

    References:
        Fieller, "Some problems in interval estimation", J. R. Statist. Soc. B 16 (1954).
    """
    a, b, va, vb, c = (np.asarray(x, np.float64) for x in (a, b, variance_a, variance_b, covariance))
    square = b * b - z * z * vb
    known = square > 0.0
    ratio, below = np.where(known, a, 0.0) / np.where(known, b, 1.0), np.where(known, square, 1.0)
    # With t = a/b + x: below x^2 + 2 z^2 shared x - z^2 left <= 0. The squares of large a and b never cancel.
    left = np.maximum(0.0, va - 2.0 * ratio * c + ratio * ratio * vb)
    shared = z * (c - ratio * vb)
    root = np.sqrt(shared * shared + left * below)
    low, high = ratio - z * (root + shared) / below, ratio + z * (root - shared) / below
    return np.where(known, low, -np.inf), np.where(known, high, np.inf)


def ratio_error(ratio: Reals, b: Reals, variance_a: Reals, variance_b: Reals, covariance: Reals = 0.0) -> Floats:
    """Standard error of a ratio a/b, sqrt(Var(a - ratio b))/|b|; inf where b is 0, nan where the ratio is.

    Examples:
        >>> float(ratio_error(0.5, 100.0, 4.0, 4.0).round(4))
        0.0224
    """
    ratio, b, va, vb, c = (np.asarray(x, np.float64) for x in (ratio, b, variance_a, variance_b, covariance))
    with np.errstate(all="ignore"):
        error = np.sqrt(np.maximum(0.0, va - 2.0 * ratio * c + ratio * ratio * vb)) / np.abs(b)
    return np.where(b == 0.0, np.inf, error)


def bounded_ratio(
    a: Reals, b: Reals, variance_a: Reals, variance_b: Reals, z: float, lower: float = -1.0, upper: float = 1.0
) -> tuple[Floats, Floats, Floats, Floats]:
    """A mean within bounds, from a noisy sum a of values in [-1, 1] and a noisy count b: value, error, interval.

    -1 is shown as `lower` and 1 as `upper`. Where there seems to be nobody (b <= 0) the value is the middle, and the
    interval is all there is between the bounds.

    Guarantees:
        The ends are those of `ratio_interval` for independent noise, rounded outward and cut at the bounds.

    Examples:
        >>> value, error, low, high = bounded_ratio(50.0, 100.0, 4.0, 4.0, z=1.96, lower=0.0, upper=10.0)
        >>> float(value), float(error.round(3)), float(low.round(3)), float(high.round(3))
        (7.5, 0.112, 7.285, 7.723)
    """
    some = np.asarray(b) > 0.0
    ratio = np.where(some, np.clip(a / np.where(some, b, 1.0), -1.0, 1.0), 0.0)
    error = np.where(some, np.minimum(ratio_error(ratio, b, variance_a, variance_b), 1.0), 1.0)
    low, high = (
        np.where(some, end, side)
        for end, side in zip(ratio_interval(a, b, variance_a, variance_b, 0.0, z), (-np.inf, np.inf), strict=True)
    )
    middle, half = (lower + upper) / 2.0, (upper - lower) / 2.0
    slack = 4.0 * UNIT * (abs(middle) + half)
    low, high = np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)
    ends = middle + half * low - slack, middle + half * high + slack
    return middle + half * ratio, half * error, np.maximum(ends[0], lower), np.minimum(ends[1], upper)
