r"""The profile inverted: epsilon from (psi, delta) and psi from (epsilon, delta).

delta(psi, epsilon) is an undiscounted Black call with forward 1, strike e^epsilon and total volatility psi; so these
are its implied strike and implied volatility. Each takes a rational starting value and a fixed number of Householder
steps of order four, whose derivatives are free once the Mills ratios are known;
docs/design/profile.md derives them.
"""

from math import pi, sqrt
from typing import overload

import numpy as np

from psidp.maths.elementwise import Array, Mask, Reals, elementwise, select
from psidp.maths.mills import mills, mills_difference
from psidp.maths.normal import SQRT_2PI, TINY, UNIT, quantile
from psidp.maths.profile import Point, delta_from_psi, log_delta_from_psi

__all__ = ["epsilon_from_log_delta", "epsilon_from_psi", "psi_from_epsilon_delta"]

C = sqrt(2.0 / pi)
G = sqrt(pi / 2.0)
EPSILON_SLACK = 26.0
PSI_SLACK = 25.0
"""Roundings by which a result is moved to the private side; tests/maths/test_profile_inverse.py shows they suffice."""


@overload
def epsilon_from_psi(psi: float, delta: float) -> float: ...
@overload
def epsilon_from_psi(psi: Reals, delta: Reals) -> Array: ...
@elementwise
def epsilon_from_psi(psi: Array, delta: Array) -> Array:
    r"""Smallest epsilon for which a psi-mechanism is (epsilon, delta)-DP, never rounded down.

    .. math:: \delta = \Phi(\psi/2 - \varepsilon/\psi) - e^{\varepsilon}\,\Phi(-\psi/2 - \varepsilon/\psi)

    Guarantees:
        delta_from_psi(psi, result) <= delta, as computed for delta >= 1e-300 and in truth below; above the true epsilon
        by at most 1e-14 (epsilon + psi) and 32 ulp of it, against balls in tests/maths/test_profile_inverse.py.

    Args:
        psi: sensitivity index, [0, inf).
        delta: probability slack, [0, 1]; 0 gives inf unless psi is 0.

    Examples:
        >>> epsilon_from_psi(1.0, 1e-5)
        4.37717...
        >>> epsilon_from_psi([0.5, 1.0, 2.0], 1e-5)
        array([1.993..., 4.377..., 9.997...])

    References:
        Balle and Wang 2018, Theorem 8, solved for epsilon; the paper's equation for epsilon_{psi, delta}.
    """
    safe = select(psi > 0.0, psi, 1.0)
    m, _ = _solve_m(safe, delta, 0.0 * delta, 1.0 - delta)
    epsilon = safe * m
    epsilon += EPSILON_SLACK * UNIT * (epsilon + safe)
    epsilon += select(epsilon < 1e-290, 16.0 * TINY, 0.0)  # where floats have no relative slack
    epsilon = select((delta > 0.0) & (psi < 1e150), epsilon, np.inf)  # psi^2 overflows soon after
    zero = m == 0.0
    if zero.any():
        epsilon = select(zero & (np.asarray(delta_from_psi(psi, 0.0)) <= delta), 0.0, epsilon)
    return select(psi > 0.0, epsilon, 0.0)


@overload
def epsilon_from_log_delta(psi: float, log_delta: float) -> float: ...
@overload
def epsilon_from_log_delta(psi: Reals, log_delta: Reals) -> Array: ...
@elementwise
def epsilon_from_log_delta(psi: Array, log_delta: Array) -> Array:
    """Smallest epsilon for which a psi-mechanism is (epsilon, exp(log_delta))-DP, never rounded down.

    Guarantees:
        log_delta_from_psi(psi, result) <= log_delta, as computed; above the true epsilon by at most 1e-14
        (epsilon + psi) plus what 26 roundings of log_delta are worth, against ball arithmetic in
        tests/maths/test_profile_inverse.py.

    Args:
        psi: sensitivity index, [0, inf).
        log_delta: natural logarithm of delta, [-inf, 0].

    Examples:
        >>> epsilon_from_log_delta(1.0, -1e6)
        1414.70...

    References:
        As epsilon_from_psi.
    """
    safe = select(psi > 0.0, psi, 1.0)
    m, slope = _solve_m(safe, 1.0 + 0.0 * safe, log_delta, np.maximum(-np.expm1(log_delta), TINY))
    epsilon = safe * m
    epsilon += EPSILON_SLACK * UNIT * (epsilon + safe * (1.0 + np.abs(log_delta / slope)))
    epsilon += select(epsilon < 1e-290, 16.0 * TINY, 0.0)
    epsilon = select((epsilon >= 0.0) & (log_delta > -np.inf) & (psi < 1e150), epsilon, np.inf)
    zero = m == 0.0
    if zero.any():
        epsilon = select(zero & (np.asarray(log_delta_from_psi(psi, 0.0)) <= log_delta), 0.0, epsilon)
    return select(psi > 0.0, epsilon, 0.0)


def _solve_m(psi: Array, delta: Array, shift: Array, rest: Array) -> tuple[Array, Array]:
    """m = epsilon/psi where phi(a) D = delta e^shift, and d log delta/dm there; rest is 1 - delta e^shift."""
    m = _start_m(psi, np.log(delta) + shift)
    upper = rest < 0.6  # else a > -0.625, and D does not cancel
    if upper.any():
        m = select(upper, _start_m_upper(psi, rest), m)
    for _ in range(3 if (psi > 1e6).any() else 2):  # b - 1/R(b) has lost its digits there, and a step its order
        m, slope = _step_m(psi, m, delta, shift, rest, upper)
    return m, slope


def _start_m(psi: Array, log_delta: Array) -> Array:
    """m solving phi(a) psi/((a + c)(b + g)) = delta by one quadratic and one Newton step."""
    width = psi + G
    d = np.log(psi / (width * C * SQRT_2PI)) - log_delta
    beta = 1.0 / C + 1.0 / width
    a = 2.0 * d / (beta + np.sqrt(np.maximum(beta * beta + 2.0 * d, 0.0)))
    u, v = a / C, a / width
    gap = 0.5 * a * a + _log1p_rough(u) + _log1p_rough(v) - d
    a = a - gap / (a + 1.0 / (C + a) + 1.0 / (width + a))
    a = select(d < 0.0, d / (beta - 0.6), a)
    return np.maximum(a + 0.5 * psi, 0.0)


def _start_m_upper(psi: Array, rest: Array) -> Array:
    """m solving 1 - delta = Phi(a) (1 + R(b)/R(-a)) by three rounds with the bracket held fixed."""
    a = quantile(0.5 * rest)
    for _ in range(3):
        a = quantile(rest / (1.0 + mills(np.maximum(a + psi, 0.0)) / mills(np.maximum(-a, -0.625))))
    return np.maximum(a + 0.5 * psi, 0.0)


def _log1p_rough(x: Array) -> Array:
    """log(1 + x) for x >= 0, good near 0 and harmless far off, without a logarithm."""
    return x * (6.0 + x) / (6.0 + 4.0 * x)


def _step_m(psi: Array, m: Array, delta: Array, shift: Array, rest: Array, upper: Mask) -> tuple[Array, Array]:
    """One Householder step for m, on log delta or, where delta is large, on log(1 - delta)."""
    a, b = m - 0.5 * psi, m + 0.5 * psi
    point = Point.on(a, m, psi, upper)
    f = _log_ratio(point.D, select(upper, rest, delta)) - 0.5 * a * a - select(upper, 0.0, shift)
    inverse = 1.0 / mills(b)
    slope = psi / (inverse * select(upper, point.D, -point.D))
    k = psi - inverse - slope
    h3 = k * k + (b - inverse) * inverse - slope * k
    return np.maximum(m + _householder(a, f, slope, k, h3), 0.0), slope


def _log_ratio(D: Array, delta: Array) -> Array:
    """log(D/(sqrt(2 pi) delta)), where D is as small as delta as well as where the quotient overflows."""
    ratio = D / SQRT_2PI / delta
    if (ratio < 1e300).all():
        return np.log(ratio)
    return select(ratio < 1e300, np.log(ratio), np.log(D / SQRT_2PI) - np.log(delta))


def _householder(a: Array, f: Array, slope: Array, k: Array, h3: Array) -> Array:
    """The step of order four for f = 0, given its slope and its second and third derivative over the slope."""
    if (a > 300.0).any():  # where k and h3 have cancelled
        k, h3 = select(a > 300.0, 1.0 / a, k), select(a > 300.0, 0.0, h3)
    nu = -f / slope
    return _damped(nu, k * nu, h3 * nu * nu)


def _damped(nu: Array, k: Array, h3: Array) -> Array:
    """The Newton step nu made a step of order four, or nu itself where that would be wild; k and h3 in units of nu."""
    damping = (1.0 + 0.5 * k) / (1.0 + k + h3 / 6.0)
    return select((damping > 0.1) & (damping < 10.0), nu * damping, nu)


@overload
def psi_from_epsilon_delta(epsilon: float, delta: float) -> float: ...
@overload
def psi_from_epsilon_delta(epsilon: Reals, delta: Reals) -> Array: ...
@elementwise
def psi_from_epsilon_delta(epsilon: Array, delta: Array) -> Array:
    r"""Largest psi for which the Gaussian mechanism is (epsilon, delta)-DP, never rounded up.

    .. math:: \delta = \Phi(\psi/2 - \varepsilon/\psi) - e^{\varepsilon}\,\Phi(-\psi/2 - \varepsilon/\psi)

    Guarantees:
        delta_from_psi(result, epsilon) <= delta, as computed for delta >= 1e-300 and in truth below; below the true psi
        by a relative 1e-14 and 32 ulp at most where delta < 0.3, and by the conditioning of 1 - delta above, against
        ball arithmetic in tests/maths/test_profile_inverse.py.

    Args:
        epsilon: privacy loss bound, [0, inf]; inf allows any psi and gives inf.
        delta: probability slack, [0, 1]; 0 gives 0, 1 gives inf.

    Examples:
        >>> psi_from_epsilon_delta(1.0, 1e-5)
        0.268...
        >>> 1.0 / psi_from_epsilon_delta([0.1, 1.0, 10.0], 1e-5)  # noise per unit of sensitivity
        array([30.74..., 3.730..., 0.499...])

    References:
        Balle and Wang 2018, Algorithm 1, here without bisection.
    """
    finite = epsilon < np.inf
    epsilon = select(epsilon < 2.3e-308, 0.0, np.minimum(epsilon, 1e300))  # so far out, a slightly smaller psi will do
    inflection = np.sqrt(2.0 * epsilon)
    below = delta <= inflection / (inflection + G) * (G / SQRT_2PI)  # of delta there, to five per cent
    psi = _by_road(below, (delta < 0.3) | ((delta < 0.46) & (epsilon < 1.0)), epsilon, delta) * (1.0 - PSI_SLACK * UNIT)
    psi = select(psi < 1e-290, np.maximum(psi - 16.0 * TINY, 0.0), psi)  # where floats have no relative slack
    psi = select((delta < 1.0) & finite, psi, np.inf)
    return select(delta > 0.0, psi, 0.0)


def _by_road(below: Mask, small: Mask, epsilon: Array, delta: Array) -> Array:
    """psi, each entry by the unknown in which its equation is nearly linear or nearly quadratic."""
    roads = ((below, _psi_in_m), (~below & small, _psi_itself), (~below & ~small, _psi_in_a))
    for road, solve in roads:
        if road.all():
            return solve(epsilon, delta)
    psi = np.empty_like(epsilon)
    for road, solve in roads:
        chosen = np.flatnonzero(road)
        psi[chosen] = solve(epsilon[chosen], delta[chosen])
    return psi


def _psi_in_m(epsilon: Array, delta: Array) -> Array:
    """psi below its inflection sqrt(2 epsilon), through m = epsilon/psi on log delta."""
    least = np.sqrt(0.5 * epsilon)
    m = _start_m_at_epsilon(epsilon, np.log(epsilon / SQRT_2PI) - np.log(delta))
    for _ in range(3):
        h = 0.5 * epsilon / m
        a, b, psi = m - h, m + h, 2.0 * h
        D = mills_difference(a, m, psi)
        f = _log_ratio(D, delta) - 0.5 * a * a
        slope = -psi / (m * D)
        curve = a * b / m
        k = -2.0 / m - slope - curve
        h3 = k * k + 2.0 / (m * m) - slope * k - (1.0 + 3.0 * (h / m) ** 2)
        m = np.maximum(m + _householder(a, f, slope, k, h3), 0.75 * least)
    return epsilon / m


def _start_m_at_epsilon(epsilon: Array, target: Array) -> Array:
    """m solving phi(a) psi/((a + c)(b + g)) = delta, target = log(epsilon/(sqrt(2 pi) delta))."""
    least = np.sqrt(0.5 * epsilon)
    log_y = np.logaddexp(0.0, target)
    flat = log_y / np.sqrt(1.0 + 0.5 * log_y)  # solves it to leading order at both ends when epsilon is small
    d = np.maximum(target - np.log(least * C * (2.0 * least + G)), 0.0)
    beta = 0.5 / least + 1.0 / C
    a = 2.0 * d / (beta + np.sqrt(beta * beta + 2.0 * d))
    m = np.maximum(select(epsilon < 0.5, flat, 0.5 * (a + np.sqrt(a * a + 2.0 * epsilon))), least)
    for _ in range(2):
        h = 0.5 * epsilon / m
        a, b = m - h, m + h
        gap = 0.5 * a * a + np.log(m * (a + C) * (b + G)) - target
        slope = (a * b + 1.0 + b / (a + C) + a / (b + G)) / m
        m = np.maximum(m - gap / slope, np.maximum(least, 0.25 * m))
    return m


def _psi_itself(epsilon: Array, delta: Array) -> Array:
    """psi above its inflection while delta is nearly linear in psi."""
    growth = np.expm1(epsilon)
    t, g = delta + 0.5 * growth, growth / sqrt(pi)
    psi: Array = SQRT_2PI / (2.0 + growth) * (t + np.sqrt(np.maximum(t - g, 0.0)) * np.sqrt(t + g))
    for _ in range(3):
        m = epsilon / psi
        a, b = m - 0.5 * psi, m + 0.5 * psi
        nu = delta * SQRT_2PI * np.exp(0.5 * a * a) - mills_difference(a, m, psi)
        relative = nu / psi
        k = a * b * relative
        psi = psi + _damped(nu, k, k * k - 3.0 * (m * relative) ** 2 - 0.25 * nu * nu)
    return psi


def _psi_in_a(epsilon: Array, delta: Array) -> Array:
    """psi above its inflection when delta is large, through a = epsilon/psi - psi/2 < 0 on log(1 - delta)."""
    rest = 1.0 - delta
    a = quantile(0.5 * rest)
    for _ in range(2):
        b = np.sqrt(a * a + 2.0 * epsilon)
        a = quantile(np.minimum(rest / (1.0 + mills(b) / mills(-a)), 0.5))
    for _ in range(3):
        b = np.sqrt(a * a + 2.0 * epsilon)
        E = mills(-a) + mills(b)
        f = _log_ratio(E, rest) - 0.5 * a * a
        slope = (b - a) / (b * E)
        ratio = a / b
        k = -(1.0 + ratio) / b - a - slope
        h3 = k * k + (ratio - 1.0 + 2.0 * ratio * ratio) / (b * b) - 1.0 - slope * k
        a = np.minimum(a + _householder(a, f, slope, k, h3), 0.3)
    return np.sqrt(a * a + 2.0 * epsilon) - a
