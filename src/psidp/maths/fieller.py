"""Fieller's interval: which ratios two noisy numbers allow."""

import numpy as np
from numpy.typing import NDArray

from psidp.maths.elementwise import Reals

__all__ = ["ratio_interval"]

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
