"""The envelope: the smallest psi that, with kappa, covers a whole privacy curve, proved between grid points too.

delta is convex in a = e^epsilon, so between two points it lies below their chord. A line A - B a lies below the profile
of psi everywhere exactly when the test with TPR A and FPR B is allowed, psi >= Phi^-1(A) - Phi^-1(B); so the largest
such psi over the chords of upper bounds covers the curve, and cells are split until it is close to what is needed.
"""

from collections.abc import Callable

import numpy as np

from psidp.accounting.composition import Array, Composition
from psidp.accounting.crude import unsampled_psi
from psidp.accounting.interval import Interval, agreed
from psidp.accounting.methods import Known, delta_bounds, epsilon_bounds
from psidp.guarantee import Guarantee
from psidp.maths.normal import quantile, quantile_error
from psidp.maths.profile_inverse import psi_from_epsilon_delta

__all__ = ["covering_psi", "regret"]

TIGHT = 2e-10
ROUNDS = 14
PATIENCE, SLOWEST = 2, 0.8
"""After so many rounds, splitting goes on only while it takes off a fifth of what the cover has to spare.

It does not where cells are as small as the bounds of delta are wide.
"""
CELLS, MOST = 24, 2048
"""Cells to begin with, and points at which a curve that is Gaussian nearly everywhere has cost enough."""


@np.errstate(all="ignore")
def covering_psi(directions: tuple[Composition, ...], kappa: float) -> float:
    """Smallest psi with delta(epsilon) <= kappa + (1 - kappa) delta_psi(epsilon) for every epsilon >= 0; rounded up."""
    need, found = 0.0, 0.0
    for steps in directions:
        high, low = _cover(steps, kappa, need)
        need, found = max(need, low), max(found, high)
    return found


def _cover(steps: Composition, kappa: float, need: float) -> tuple[float, float]:
    """psi that covers one direction, and psi that it needs at least; cells below `need` are not looked into."""
    end = epsilon_bounds(steps, float(np.log(kappa)) - 1e-15)[1]
    best, last, own = unsampled_psi(steps), np.inf, 0.0
    if end == 0.0 or not end < np.inf:
        return (0.0 if end == 0.0 else best), need
    cells = CELLS if need == 0.0 else CELLS // 3
    epsilon = end * (1.0 - np.linspace(1.0, 0.0, cells + 1) ** 2)
    known = Known()
    low, high = _reduced(steps, epsilon, kappa, 1e-5, known)
    for turn in range(ROUNDS):
        high[-1] = min(high[-1], 0.0)
        own = max(own, float(np.max(_implied(epsilon, low))))
        need = max(need, own)
        chords = _chords(epsilon, high)
        if not np.isfinite(chords).all():
            high = np.fmin(high, _below_chords(epsilon, high))
            chords = _chords(epsilon, high)
        best = min(best, float(np.max(chords)))
        agreed("psi", own, best)
        found = max(float(np.max(chords)), need)
        if turn >= PATIENCE and not (found - need < SLOWEST * (last - need) and epsilon.size < MOST):
            break
        last = found
        open_cells = np.flatnonzero(chords > need * (1.0 + TIGHT))
        new = _inside(epsilon, open_cells)
        if not new.size:
            break
        more_low, more_high = _reduced(steps, new, kappa, 1e-9, known)
        order = np.argsort(np.concatenate((epsilon, new)), kind="stable")
        epsilon = np.concatenate((epsilon, new))[order]
        low, high = np.concatenate((low, more_low))[order], np.concatenate((high, more_high))[order]
    return best, need


def _inside(epsilon: Array, cells: Array) -> Array:
    """New points inside the cells, several where few cells are left."""
    parts = 8 if cells.size <= 3 else (4 if cells.size <= 8 else 2)
    left, right = epsilon[cells], epsilon[cells + 1]
    wide = right - left > 1e-9 * right
    share = np.arange(1, parts)[:, None] / parts
    return np.asarray((left[wide] + share * (right - left)[wide]).ravel())


def _reduced(steps: Composition, epsilon: Array, kappa: float, close: float, known: Known) -> tuple[Array, Array]:
    """Bounds of (delta - kappa)/(1 - kappa), what is left for delta_psi to cover."""
    log_low, log_high, _ = delta_bounds(steps, epsilon, close, known)
    low, high = np.exp(log_low) * (1.0 - 1e-15), np.exp(log_high) * (1.0 + 1e-15)
    return (low - kappa) / (1.0 - kappa) * (1.0 - 1e-15), (high - kappa) / (1.0 - kappa) * (1.0 + 1e-15)


def _implied(epsilon: Array, delta: Array) -> Array:
    """The psi whose profile passes through each point; 0 where nothing is left to cover."""
    some = delta > 0.0
    psi = np.zeros(epsilon.size)
    psi[some] = psi_from_epsilon_delta(epsilon[some], delta[some])
    return psi


def _chords(epsilon: Array, delta: Array) -> Array:
    """The psi that covers each chord, rounded up; 0 where both ends need no cover."""
    a = np.exp(epsilon)
    left, right = np.maximum(delta[:-1], 0.0), delta[1:]
    fpr = (left - right) / (a[1:] - a[:-1])
    tpr = left + fpr * a[:-1]
    psi = np.zeros(left.size)
    some = (left > 0.0) & (fpr > 0.0)
    if (left > 0.0)[~some].any():
        psi[(left > 0.0) & ~some] = np.inf
    t, x = np.minimum(tpr[some] * (1.0 + 1e-14), 1.0), fpr[some] * (1.0 - 1e-14)
    z, y = quantile(t), quantile(x)
    psi[some] = (z - y) + quantile_error(z) + quantile_error(y)
    return psi


def _below_chords(epsilon: Array, delta: Array) -> Array:
    """Upper bounds of delta lowered to the chords of any two of them, not of neighbours alone; rounded up."""
    a = np.exp(epsilon)
    corners: list[int] = []
    for i in range(a.size):
        while len(corners) > 1 and (delta[corners[-1]] - delta[corners[-2]]) * (a[i] - a[corners[-2]]) >= (
            delta[i] - delta[corners[-2]]
        ) * (a[corners[-1]] - a[corners[-2]]):
            corners.pop()
        corners.append(i)
    return np.asarray(np.interp(a, a[corners], delta[corners]) + 1e-14 * np.abs(delta).max())


@np.errstate(all="ignore")
def regret(guarantee: Guarantee, delta: Callable[[Array], Interval]) -> Interval:
    """Bounds of max (delta_guarantee - delta)/(1 + e^epsilon) over epsilon >= 0."""
    top = guarantee.epsilon(max(2.0 * guarantee.kappa, 1e-12)) if guarantee.psi > 0 else 0.0
    epsilon = np.concatenate((np.linspace(0.0, 1.0, 33) ** 2 * float(top), [np.inf]))
    for _ in range(6):
        values = delta(epsilon)
        mine = np.asarray(guarantee.delta(epsilon))
        ahead = 1.0 + np.exp(epsilon)
        at = np.where(np.isfinite(epsilon), (mine * (1.0 - 1e-14) - values.upper) / ahead, 0.0)
        cell = np.maximum((mine[:-1] - values.lower[1:]) / ahead[:-1], 0.0)
        lower, upper = max(float(at.max()) * (1.0 - 1e-12), 0.0), float(cell.max()) * (1.0 + 1e-12)
        open_cells = np.flatnonzero((cell > lower * 1.01 + 1e-15) & np.isfinite(epsilon[1:]))
        if not open_cells.size:
            break
        epsilon = np.sort(np.concatenate((epsilon, _inside(epsilon, open_cells))))
    agreed("the regret", lower, upper)
    return Interval(lower, upper)
