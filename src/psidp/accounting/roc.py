"""Rates of the best attack in one direction, from the profile alone.

R(x) = min over a > 0 of D(a) + a x with D(a) = delta(log a) convex in a, and f(x) = 1 - R(x). Any a gives an upper
bound of R; a lower bound comes from three values of D around the minimum and convexity. For a < 1 the profile is read
from the other direction, D(a) = 1 - a + a D'(1/a), so that a small false negative rate keeps its digits too.
"""

from collections.abc import Callable

import numpy as np

from psidp.accounting.composition import Array, Composition
from psidp.accounting.interval import ROUNDING, agreed, between
from psidp.accounting.methods import Known, delta_bounds

__all__ = ["false_negative_rate", "true_positive_rate"]

SPACINGS = np.array([1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 1e-2, 0.1, 0.5])
STEP = 1e-5
PIECES = 256
FARTHEST = 700.0
"""Below e^-700 no likelihood ratio matters to a false positive rate that a float can hold beside 1."""
Terms = Callable[["Sides", Array, float], tuple[Array, Array]]


@np.errstate(all="ignore")
def true_positive_rate(steps: Composition, fpr: Array) -> tuple[Array, Array]:
    """Proved bounds of the largest TPR at each FPR."""
    sides = Sides(steps)
    pairs = [_largest(sides, float(x)) for x in fpr]
    return np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])


@np.errstate(all="ignore")
def false_negative_rate(steps: Composition, fpr: Array) -> tuple[Array, Array]:
    """Proved bounds of the smallest FNR at each FPR."""
    sides = Sides(steps)
    pairs = [_smallest(sides, float(x)) for x in fpr]
    return np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])


class Sides:
    """A composition seen from one side, and from the other; what was built to answer one question answers the next."""

    def __init__(self, steps: Composition, other: "Sides | None" = None) -> None:
        self.steps, self.known = steps, Known()
        self.mirrored: Sides = Sides(steps.mirrored, self) if other is None else other

    def log_delta(self, epsilon: Array) -> tuple[Array, Array]:
        """Proved bounds of log delta."""
        low, high, _ = delta_bounds(self.steps, epsilon, known=self.known)
        return low, high


def _largest(sides: Sides, x: float) -> tuple[float, float]:
    if x in (0.0, 1.0):
        return x, x
    low, high = _bound(sides, x, _tpr_terms)
    return max(low, x), min(high, 1.0)


def _smallest(sides: Sides, x: float) -> tuple[float, float]:
    if x in (0.0, 1.0):
        return 1.0 - x, 1.0 - x
    low, high = _bound(sides, x, _fnr_terms)
    return max(-high, 0.0), min(-low, 1.0 - x)


def _tpr_terms(sides: Sides, epsilon: Array, x: float) -> tuple[Array, Array]:
    """Bounds of D(a) + a x at a = e^epsilon, of either sign."""
    low, high = _profile(sides, epsilon)
    ahead = np.exp(epsilon)
    flat = np.where(epsilon < 0, -np.expm1(epsilon), 0.0)
    scale = np.minimum(ahead, 1.0)
    return (flat + scale * low + ahead * x) * (1.0 - ROUNDING), (flat + scale * high + ahead * x) * (1.0 + ROUNDING)


def _fnr_terms(sides: Sides, epsilon: Array, x: float) -> tuple[Array, Array]:
    """Bounds of D(a) + a x - 1, written without cancellation for a < 1: -a (1 - x - D'(1/a))."""
    low, high = _profile(sides, epsilon)
    ahead = np.exp(epsilon)
    below = epsilon < 0
    slack = ROUNDING * np.where(below, ahead, 1.0 + low + ahead * x)
    return (
        np.where(below, -ahead * (1.0 - x - low), low + ahead * x - 1.0) - slack,
        np.where(below, -ahead * (1.0 - x - high), high + ahead * x - 1.0) + slack,
    )


def _profile(sides: Sides, epsilon: Array) -> tuple[Array, Array]:
    """delta at |epsilon|: of this direction for epsilon >= 0, of the other one for epsilon < 0."""
    low, high = np.empty(epsilon.size), np.empty(epsilon.size)
    for side, one in ((epsilon >= 0, sides), (epsilon < 0, sides.mirrored)):
        if side.any():
            low[side], high[side] = between(*one.log_delta(np.abs(epsilon[side])))
    return low, high


def _bound(sides: Sides, x: float, evaluate: Terms) -> tuple[float, float]:
    """Bounds of the minimum over a: an upper one from every point tried, a lower one from triples around the best."""
    best = _threshold(sides, x)
    lower, upper = -np.inf, np.inf
    grid = best + np.concatenate((-SPACINGS[::-1], [0.0], SPACINGS))
    low, high = evaluate(sides, grid, x)
    middle = SPACINGS.size
    for i in range(1, middle + 1):
        triple = [middle - i, middle, middle + i]
        upper = min(upper, float(high[triple].min()))
        lower = max(lower, _convex_floor(np.exp(grid[triple]), low[triple], high[triple]))
    lower = lower if lower > -np.inf else _monotone_floor(sides, x, evaluate)
    agreed("a rate", lower, upper)
    return lower, upper


def _threshold(sides: Sides, x: float) -> float:
    """epsilon of the likelihood ratio test with false positive rate x; a guess, found by bisection and secant."""
    if _slope(sides, 0.0) >= x:
        return _root(lambda e: np.log(_slope(sides, e)) - np.log(x), -np.log(x))
    other, high = sides.mirrored, 1.0

    def gap(epsilon: float) -> float:
        return float(np.log(_mass(other, epsilon)) - np.log1p(-x))

    while gap(high) > 0.0 and high < FARTHEST:
        high = min(2.0 * high, FARTHEST)
    return -_root(gap, high)


def _slope(sides: Sides, epsilon: float) -> float:
    """-dD/da, the false positive rate of the test with threshold epsilon, roughly."""
    high = np.exp(sides.log_delta(epsilon + np.array([0.0, STEP]))[1])
    return max(float(high[0] - high[1]), 0.0) / float(np.exp(epsilon) * np.expm1(STEP))


def _mass(sides: Sides, epsilon: float) -> float:
    """D - a dD/da, the true positive rate of the test with threshold epsilon, roughly."""
    delta = np.exp(sides.log_delta(np.array([epsilon]))[1][0])
    return float(delta + np.exp(epsilon) * _slope(sides, epsilon))


def _root(f: Callable[[float], float], high: float) -> float:
    """Where a falling function crosses 0 between 0 and `high`, to about 1e-6."""
    low, f_low, f_high = 0.0, f(0.0), -np.inf
    for i in range(40):
        falls = np.isfinite(f_high) and f_low > f_high and i % 3
        secant = low + (high - low) * f_low / (f_low - f_high) if falls else 0.5 * (low + high)
        here = min(max(secant, low + 1e-3 * (high - low)), high - 1e-3 * (high - low))
        value = f(here)
        low, f_low, high, f_high = (here, value, high, f_high) if value > 0 else (low, f_low, here, value)
        if high - low <= 1e-6 * high or abs(value) <= 1e-7:
            return here
    return 0.5 * (low + high)


def _monotone_floor(sides: Sides, x: float, evaluate: Terms) -> float:
    """Lower bound of the minimum where a profile near 1 shows no slope: D falls, so D(a) + b x is below it on [b, a].

    Beyond a = 1/x the minimum is no less than D(0) = 1.
    """
    epsilon = np.linspace(0.0, -np.log(x), PIECES)
    low, _ = evaluate(sides, epsilon, x)
    ahead = np.exp(epsilon)
    piece = np.diff(ahead, prepend=0.0) * x
    found = float(np.min(low - piece - ROUNDING * (1.0 + ahead * x)))
    return found if found == found else -np.inf


def _convex_floor(a: Array, low: Array, high: Array) -> float:
    """Lower bound of a convex function from bounds at three points, or -inf if its minimum may lie outside them."""
    a = a / a[1]  # a slope that belongs to a large a would be too small for a float
    rising = (low[2] - high[1]) / (a[2] - a[1])
    falling = (high[1] - low[0]) / (a[1] - a[0])
    if not (rising >= 0.0 and falling <= 0.0):
        return -np.inf
    right = low[1] + min((low[1] - high[0]) / (a[1] - a[0]), 0.0) * (a[2] - a[1])
    left = low[1] - max((high[2] - low[1]) / (a[2] - a[1]), 0.0) * (a[1] - a[0])
    return float(min(low[0], low[2], right, left) - ROUNDING * np.abs(high).max())
