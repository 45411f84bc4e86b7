r"""The privacy profile of the Gaussian mechanism: delta as a function of epsilon, in linear and in log space.

.. math:: \delta(\varepsilon) = \Phi(\psi/2 - \varepsilon/\psi) - e^{\varepsilon}\,\Phi(-\psi/2 - \varepsilon/\psi)
                              = \varphi(a)\,(R(a) - R(b)), \quad a = \varepsilon/\psi - \psi/2,\; b = a + \psi

with the Mills ratio R. Written so, nothing overflows and nothing cancels; 1 - delta = phi(a) (R(-a) + R(b)) serves
where delta is near one. docs/design/profile.md tells why, and what was measured.
"""

from dataclasses import dataclass
from math import log, pi
from typing import Self, overload

import numpy as np

from psidp.maths.elementwise import Array, Mask, Reals, elementwise, select
from psidp.maths.mills import mills, mills_difference
from psidp.maths.normal import SQRT_2PI, TINY, UNIT

__all__ = ["delta_from_psi", "log_delta_from_psi"]

LOG_SQRT_2PI = 0.5 * log(2.0 * pi)
COMPLEMENT_SLACK = 8.0 * UNIT
"""Relative error granted to 1 - delta when a promise is rounded; tests/maths/test_profile.py measures less."""


@dataclass(frozen=True, slots=True)
class Point:
    """A place on the profile, with the one combination of Mills ratios that does not cancel there."""

    a: Array
    D: Array
    """R(a) - R(b), so that phi(a) D is delta; in the complement R(-a) + R(b), so that phi(a) D is 1 - delta."""
    complement: Mask

    @classmethod
    def on(cls, a: Array, m: Array, psi: Array, complement: Mask) -> Self:
        """The point with a = m - psi/2 that the caller gives, seen from the side that the caller chooses."""
        if complement.all():
            return cls(a, _mills_sum(a, m, psi), complement)
        D = mills_difference(a, m, psi)
        if complement.any():
            D = select(complement, _mills_sum(a, m, psi), D)
        return cls(a, D, complement)


def _mills_sum(a: Array, m: Array, psi: Array) -> Array:
    """R(-a) + R(b)."""
    return mills(np.maximum(-a, -0.625)) + mills(m + 0.5 * psi)


def _evaluate(psi: Array, epsilon: Array) -> tuple[Point, Array, Array]:
    """The point of (psi, epsilon), psi > 0, and a^2/2 as the unrounded sum of two floats."""
    a, a_rest = _offset(psi, epsilon)
    square, rest = _product(a, a)
    point = Point.on(a, epsilon / psi, psi, (a < -0.3) & (psi > 1.25))
    return point, 0.5 * square, select(square < 1e30, 0.5 * rest + a * a_rest, 0.0)


def _log_of_difference(point: Point, psi: Array, epsilon: Array) -> Array:
    """log D, where D itself underflows too: there psi is so small that D is proportional to it."""
    lost = (point.D < 1e-290) & (psi > 0.0) & (psi < 1.0) & (epsilon < np.inf)
    if not lost.any():
        return np.log(point.D)
    a = np.maximum(point.a, 1e3)
    far = np.log1p(-3.0 / a / a) - 2.0 * np.log(a)
    slope = select(
        point.a > 1e3,
        far,
        np.log(mills_difference(np.minimum(point.a, 1e3), np.minimum(point.a, 1e3), 1e-30 + 0.0 * psi)) - log(1e-30),
    )
    return select(lost, np.log(np.maximum(psi, TINY)) + slope, np.log(np.maximum(point.D, TINY)))


def _offset(psi: Array, epsilon: Array) -> tuple[Array, Array]:
    """a = epsilon/psi - psi/2 = (2 epsilon - psi^2)/(2 psi) as the unrounded sum of two floats."""
    square, square_rest = _product(psi, psi)
    small = psi < 1e-100  # psi^2 does not count, and products would underflow
    if small.any():
        lift = select(small, 2.0**600, 1.0)
        psi, epsilon, square = psi * lift, epsilon * lift, select(small, 0.0, square)
    top = 2.0 * epsilon - square
    back = top - 2.0 * epsilon
    top_rest = (2.0 * epsilon - (top - back)) - (square + back) - square_rest
    a = (top + top_rest) / (2.0 * psi)
    product, product_rest = _product(a, 2.0 * psi)
    a_rest = (((top - product) - product_rest) + top_rest) / (2.0 * psi)
    plain = (psi < 1e100) & (np.abs(a) < 1e100)
    if plain.all():
        return a, a_rest
    rough = epsilon / psi - 0.5 * psi * (1.0 + 8.0 * UNIT)
    return select(plain, a, rough), select(plain, a_rest, 0.0)


def _product(x: Array, y: Array) -> tuple[Array, Array]:
    """x y as the unrounded sum of two floats (Dekker 1971)."""
    x_high, y_high = x * 134217729.0, y * 134217729.0  # 2^27 + 1
    x_high, y_high = x_high - (x_high - x), y_high - (y_high - y)
    x_low, y_low = x - x_high, y - y_high
    product = x * y
    rest = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, rest


def _slack(psi: Array) -> Array:
    """Relative error granted to delta when a promise is rounded; tests/maths/test_profile.py measures less."""
    return UNIT * select(psi > 1.25, 12.5, 9.5)


def _one_minus(small: Array) -> Array:
    """1 - small rounded up, 1 - small >= 1/4."""
    one_minus = 1.0 - small
    return select(1.0 - one_minus > small, np.nextafter(one_minus, 1.0), one_minus)


@overload
def delta_from_psi(psi: float, epsilon: float) -> float: ...
@overload
def delta_from_psi(psi: Reals, epsilon: Reals) -> Array: ...
@elementwise
def delta_from_psi(psi: Array, epsilon: Array) -> Array:
    r"""Smallest delta for which a psi-mechanism is (epsilon, delta)-DP, never rounded down.

    .. math:: \delta = \Phi(\psi/2 - \varepsilon/\psi) - e^{\varepsilon}\,\Phi(-\psi/2 - \varepsilon/\psi)

    Guarantees:
        At least the true delta, and above it by a relative 3e-15 at most where it exceeds 1e-300, against
        ball arithmetic in tests/maths/test_profile.py. A delta too small for a float comes back as 5e-324, not 0.

    Args:
        psi: sensitivity index, [0, inf).
        epsilon: privacy loss bound, [0, inf].

    Examples:
        >>> delta_from_psi(1.0, 1.0)
        0.1269367...
        >>> delta_from_psi(1.0, [0.0, 1.0, 10.0])
        array([3.82924923e-01, 1.26936738e-01, 9.81...e-23])

    References:
        Balle and Wang 2018, Theorem 8; the paper's final theorem, first statement.
    """
    point, square, rest = _evaluate(select(psi > 0.0, psi, 1.0), epsilon)
    shift = select(square > 600.0, 100.0, 0.0)  # so that only the last product can be subnormal
    small = np.exp(shift - square) * (1.0 - rest) / SQRT_2PI * point.D
    delta = small * (1.0 + _slack(psi)) * np.exp(-shift) + TINY
    if point.complement.any():
        delta = select(point.complement, _one_minus(small * (1.0 - COMPLEMENT_SLACK)), delta)
    return select((psi > 0.0) & (epsilon < np.inf), delta, 0.0)


@overload
def log_delta_from_psi(psi: float, epsilon: float) -> float: ...
@overload
def log_delta_from_psi(psi: Reals, epsilon: Reals) -> Array: ...
@elementwise
def log_delta_from_psi(psi: Array, epsilon: Array) -> Array:
    r"""Natural logarithm of the delta of a psi-mechanism at epsilon, never rounded down, with no underflow.

    .. math:: \log\delta = -a^2/2 - \log\sqrt{2\pi} + \log(R(a) - R(b)), \quad a = \varepsilon/\psi - \psi/2

    Guarantees:
        At least the true value, and above it by a relative 1e-14 at most where log delta < -1e-3, against ball
        arithmetic in tests/maths/test_profile.py.

    Args:
        psi: sensitivity index, [0, inf); 0 gives -inf.
        epsilon: privacy loss bound, [0, inf]; inf gives -inf.

    Examples:
        >>> log_delta_from_psi(0.1, 20.0)
        -20003.81...

    References:
        As delta_from_psi.
    """
    point, square, rest = _evaluate(select(psi > 0.0, psi, 1.0), epsilon)
    tail = (_log_of_difference(point, psi, epsilon) - LOG_SQRT_2PI - rest) - square
    tail = tail * (1.0 - 6.0 * UNIT) + _slack(psi)
    if point.complement.any():
        small = np.exp(-square) * (1.0 - rest) / SQRT_2PI * point.D * (1.0 - COMPLEMENT_SLACK)
        tail = select(point.complement, np.log1p(-np.minimum(small, 0.75)), tail)
    log_delta = np.maximum(np.minimum(tail, 0.0), -np.finfo(float).max)
    return select((psi > 0.0) & (epsilon < np.inf), log_delta, -np.inf)
