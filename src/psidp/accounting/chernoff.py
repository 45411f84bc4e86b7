"""Chernoff's guess: about where a composition with pairs has a given delta, so that a lattice is made for there."""

import numpy as np

from psidp.accounting.composition import Array, Composition
from psidp.accounting.pld.loss_grid import Lattice

__all__ = ["epsilon_near", "log_delta_near"]

PLACES = 1024
TILTS = np.geomspace(1e-4, 1e7, 177)


def epsilon_near(steps: Composition, log_delta: float) -> float:
    """About the epsilon at which this composition has this log delta; a guess, 0 where delta is never as large."""
    epsilon, found = _curve(steps, log_delta)
    return float(np.interp(-log_delta, -found, epsilon))


def log_delta_near(steps: Composition, epsilon: float) -> float:
    """About the log delta at this epsilon; a guess."""
    log_delta = -30.0
    for _ in range(3):
        at, found = _curve(steps, log_delta)
        log_delta = min(max(float(np.interp(epsilon, at, found)), -745.0), -1e-3)
    return log_delta


@np.errstate(all="ignore")
def _curve(steps: Composition, log_delta: float) -> tuple[Array, Array]:
    """epsilon, increasing, and log delta by the saddle point formula, falling, for a range of tilts."""
    at, found = np.zeros(TILTS.size), np.zeros(TILTS.size)
    width = np.zeros(TILTS.size)
    for law in Lattice.laws_of(steps, log_delta):
        low, high = law.losses
        eta = max(high - low, 1e-12) / PLACES
        masses = law.upwards(eta)
        some = np.flatnonzero(masses.mass)
        value = (masses.first + some) * eta + masses.base
        x = np.log(masses.mass[some]) + TILTS[:, None] * value
        top = x.max(axis=1)
        weight = np.exp(x - top[:, None])
        total = weight.sum(axis=1)
        mean, square = (weight @ v / total for v in (value, value * value))
        at += law.count * mean
        found += law.count * (top + np.log(total) - TILTS * mean)
        width += law.count * np.maximum(square - mean * mean, 1e-300)
    found -= np.log1p(TILTS) + 0.5 * np.log1p(2.0 * np.pi * width * TILTS**2)
    return np.maximum.accumulate(np.maximum(at, 0.0)), np.minimum.accumulate(np.minimum(found, 0.0))
