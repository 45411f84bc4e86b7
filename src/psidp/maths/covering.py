r"""The smallest psi whose profile covers a given bound on delta: what a claim about an arbitrary mechanism is worth.

A claim gives a non-increasing bound B(epsilon) on delta. (psi, kappa) covers it when
B(epsilon) <= kappa + (1 - kappa) delta_psi(epsilon) for every epsilon >= 0. Between two grid points B is at most its
left value and delta_psi at least its right one, so psi(right, left) covers the whole cell: a proof, not a sample.
"""

from collections.abc import Callable
from math import inf

import numpy as np

from psidp.maths.bisection import bracket, halvings
from psidp.maths.elementwise import Array
from psidp.maths.normal import UNIT, log_tail
from psidp.maths.profile_inverse import psi_from_epsilon_delta
from psidp.maths.roc import psi_from_advantage
from psidp.maths.rounding import product_up

__all__ = ["psi_covering", "psi_covering_pure", "psi_covering_rdp", "psi_covering_zcdp"]

Bound = Callable[[Array], Array]
CELLS = 512
ROUNDS = 40
ROOT_HALF_PI = 1.2533141373155004
"""sqrt(pi/2), rounded up."""
UP = 1.0 + 64.0 * UNIT
"""Turns "largest psi that fits, rounded down" into "psi that covers, rounded up": 32 ulp of price, twice."""


def psi_covering_pure(epsilon: float) -> float:
    r"""Smallest psi for which psi-GDP follows from epsilon-DP, rounded up.

    .. math:: \psi = 2\,\Phi^{-1}\bigl(e^{\varepsilon}/(1 + e^{\varepsilon})\bigr)

    Randomised response needs it whole: its advantage is tanh(epsilon/2), and that of psi is 2 Phi(psi/2) - 1.

    Examples:
        >>> round(psi_covering_pure(1.0), 4)
        1.232
    """
    if epsilon == inf:
        return inf
    if epsilon < 1e-8:  # psi <= sqrt(pi/2) epsilon, and both are equal to the last digit here
        return product_up(epsilon, ROOT_HALF_PI)
    tanh = float(np.tanh(0.5 * epsilon))
    if tanh >= 0.9:  # the advantage has lost its digits: solve for 1 - advantage = 2/(1 + e^epsilon) instead
        return _psi_from_small_rest(epsilon)
    return float(psi_from_advantage(tanh * (1.0 + 4.0 * UNIT))) * UP


def _psi_from_small_rest(epsilon: float) -> float:
    """2 Phi^-1(1 - p), p = 1/(1 + e^epsilon), from log p alone: Newton on log Phi(-y), then up."""
    goal = -float(np.logaddexp(0.0, epsilon))
    y = float(np.sqrt(2.0) * np.sqrt(-goal))
    for _ in range(60):
        value, slope = log_tail(y)
        y = max(y + (value - goal) / slope, 0.0)
    return 2.0 * y * (1.0 + 64.0 * UNIT) + 64.0 * UNIT


def psi_covering_rdp(alpha: float, rho: float, kappa: float) -> float:
    r"""Smallest psi that, with kappa, covers every mechanism that is (alpha, rho)-RDP, rounded up.

    RDP of order alpha gives RDP of every lower order with the same rho, so the bound is the improved conversion, with
    t cut at 1e9, beyond which it would only lose digits; order infinity is rho-DP itself. Where rho is so large (35,
    say) that the bound at epsilon = 0 is 1 to the last digit, see _weak: finite, but no longer the smallest.

    .. math:: \delta \le \min_{0 < t \le \alpha - 1} e^{t(\rho - \varepsilon)}\, t^t/(1 + t)^{1 + t}

    Examples:
        >>> round(psi_covering_rdp(8.0, 0.5, 1e-6), 3)
        1.03
    """
    if alpha == inf:
        return psi_covering_pure(rho)

    def bound(epsilon: Array) -> Array:
        gap = rho - epsilon
        with np.errstate(divide="ignore", over="ignore"):
            t = np.where(gap > 0.0, 1.0 / np.expm1(np.maximum(gap, 1e-300)), inf)
        return _conversion(np.minimum(t, min(alpha - 1.0, 1e9)), np.full_like(epsilon, rho), epsilon)

    return _weak(bound, kappa)


def psi_covering_zcdp(rho: float, kappa: float) -> float:
    r"""Smallest psi that, with kappa, covers every mechanism that is rho-zCDP, rounded up; for rho above 35 see _weak.

    .. math:: \delta \le \min_{t > 0} e^{t((1 + t)\rho - \varepsilon)}\, t^t/(1 + t)^{1 + t}

    Examples:
        >>> round(psi_covering_zcdp(0.5, 1e-6), 3)
        1.54
    """

    def bound(epsilon: Array) -> Array:
        low, high = (
            np.full_like(epsilon, -60.0),
            np.full_like(epsilon, 60.0),
        )  # log t: the exponent is convex in t
        for _ in range(60):
            middle = 0.5 * (low + high)
            t = np.exp(middle)
            rising = rho * (1.0 + 2.0 * t) - epsilon - np.log1p(1.0 / t) > 0.0
            low, high = np.where(rising, low, middle), np.where(rising, middle, high)
        t = np.exp(0.5 * (low + high))
        return _conversion(t, (1.0 + t) * rho, epsilon)

    return _weak(bound, kappa)


def _weak(bound: Bound, kappa: float) -> float:
    """psi_covering where it is finite; else what the claim's own (epsilon, kappa)-DP is worth.

    A mechanism with delta(epsilon) <= kappa is (epsilon, kappa)-DP, and psi_covering_pure(epsilon), with kappa, covers
    every such mechanism. That is at most about twice the smallest psi, and comes closer to it as rho grows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        psi = psi_covering(bound, kappa)
        return psi if psi < inf else psi_covering_pure(_where_bound_reaches(bound, kappa))


def _conversion(t: Array, rho: Array, epsilon: Array) -> Array:
    """e^(t (rho - epsilon)) t^t/(1 + t)^(1 + t), rounded up: valid at any t, so t itself need not be exact."""
    t = np.maximum(t, 1e-300)
    terms = t * (rho - epsilon) - t * np.log1p(1.0 / t) - np.log1p(t)
    size = t * (rho + epsilon) + np.abs(t * np.log1p(1.0 / t)) + np.log1p(t)
    with np.errstate(over="ignore"):
        return np.minimum(np.exp(terms + 8.0 * UNIT * (1.0 + size)), 1.0)


def psi_covering(bound: Bound, kappa: float) -> float:
    """Smallest psi with bound(epsilon) <= kappa + (1 - kappa) delta_psi(epsilon) for all epsilon >= 0, rounded up.

    Cells that might need more than the best psi so far are cut in two until the excess is a relative 1e-9; or, for a
    bound that is Gaussian itself, so that every cell is critical, until there are 65,536 of them: 1e-2 at most.
    """
    end = _where_bound_reaches(bound, kappa)
    if not end < inf:
        return inf
    edges = np.concatenate([[0.0], np.geomspace(1e-6 * end, end, CELLS)]) if end > 0.0 else np.zeros(2)
    left, right = edges[:-1], edges[1:]
    settled = float(_needed(left, bound(left), kappa).max())
    for _ in range(ROUNDS):
        upper = _needed(right, bound(left), kappa)
        doubtful = upper > settled * (1.0 + 1e-9)
        left, right = left[doubtful], right[doubtful]
        if not 0 < left.size <= 2**16:
            break
        middle = 0.5 * (left + right)
        settled = max(settled, float(_needed(middle, bound(middle), kappa).max()))
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    rest = _needed(right, bound(left), kappa) if left.size else np.zeros(1)
    return max(settled * (1.0 + 1e-9), float(rest.max()))


def _needed(epsilon: Array, delta: Array, kappa: float) -> Array:
    """psi rounded up that gives delta at epsilon, 0 where kappa alone covers it."""
    rest = np.clip((delta - kappa) / (1.0 - kappa) * (1.0 + 4.0 * UNIT), 0.0, 1.0)
    psi: Array = np.asarray(psi_from_epsilon_delta(epsilon, rest)) * UP
    return psi


def _where_bound_reaches(bound: Bound, kappa: float) -> float:
    """An epsilon beyond which the bound is at most kappa, to a relative 1e-12 from above."""
    low, high = 0.0, 1.0
    while high < inf and not float(bound(np.array([high]))[0]) <= kappa:
        low, high = high, 2.0 * high
    wide = halvings(60 if high > low else 0)
    return bracket(lambda epsilon: float(bound(np.array([epsilon]))[0]) > kappa, low, high, wide)[1]
