"""The easier direction: whether it stays below an epsilon that the other direction has, from cheap bounds alone."""

from dataclasses import replace

import numpy as np

from psidp.accounting.composition import Composition
from psidp.accounting.contours.error_bounds import NotCertified, Survey
from psidp.accounting.contours.mgf_table import ULP
from psidp.accounting.contours.saddle import saddle_at_delta, saddle_at_epsilon
from psidp.accounting.crude import least_unsampled, unsampled
from psidp.accounting.pld.loss_grid import Lattice
from psidp.accounting.search import SMALLEST, smallest

__all__ = ["stays_below"]

FEW = 200
"""Steps up to which a small lattice is quicker than a contour."""


@np.errstate(all="ignore")
def stays_below(steps: Composition, epsilon: float, log_delta: float) -> bool:
    """Whether delta(epsilon) <= delta is certain already from a cheap bound; a quick no means nothing.

    The largest loss; or Chernoff, delta(epsilon) <= M(c) e^(-c epsilon) c^c/(1+c)^(1+c), with the survey's proved bound
    of M(c); or a small lattice.
    """
    if not steps.ordinary:
        return False
    plain = not steps.count.size or bool(steps.pairs) or bool((steps.sign == 2.0).any())
    if not plain and _chernoff(steps, epsilon, log_delta):
        return True
    if least_unsampled(steps, log_delta) <= epsilon and unsampled(steps, log_delta) <= epsilon:
        return True
    if plain:
        return False
    rest, left = _without_small(steps, epsilon)
    if rest.count.size < steps.count.size and _chernoff(rest, left, log_delta):
        return True
    if not steps.steps <= FEW:
        return False
    lattice = Lattice(steps, max(epsilon, SMALLEST), log_delta, smallest(steps))
    return bool(lattice.log_delta(np.array([epsilon]))[1][0] <= log_delta)


def _without_small(steps: Composition, epsilon: float) -> tuple[Composition, float]:
    """The composition without added groups that lose little at most, and what epsilon is left for the rest."""
    most = np.where(steps.sign == -1.0, -steps.count * np.log1p(-steps.q), np.inf) * (1.0 + 1e-12)
    order = np.argsort(most)
    spent = np.cumsum(most[order])
    small = int((spent <= 0.5 * epsilon).sum())
    rest = np.sort(order[small:])
    left = epsilon - (spent[small - 1] * (1.0 + 1e-12) if small else 0.0)
    return replace(steps, **{name: getattr(steps, name)[rest] for name in ("sigma", "q", "count", "sign")}), float(left)


def _chernoff(steps: Composition, epsilon: float, log_delta: float) -> bool:
    """Whether Chernoff's bound says so."""
    if not steps.count.size:
        return unsampled(steps, log_delta) <= epsilon
    saddle = saddle_at_epsilon(steps, epsilon, rounds=1)
    if not saddle.c < 1e6:  # epsilon is far beyond all that happens; a smaller one will do
        epsilon = min(epsilon, 1.5 * saddle_at_delta(steps, log_delta).epsilon)
        saddle = saddle_at_epsilon(steps, epsilon)
    c = saddle.c
    margin = c * np.log(c) - (1.0 + c) * np.log1p(c)
    if not (c < 1e6 and saddle.log_delta < log_delta - 0.5):
        return False
    tilted = replace(saddle, c=c / 1.5, beyond_c=np.array([c]), beyond_k=np.array([0.0]))
    try:
        bound = Survey(steps, tilted, None, 0.5).log_m2 - c * epsilon + margin
    except NotCertified:
        return False
    return bool(bound + 1e-9 * (1.0 + abs(bound)) + 8.0 * ULP * c * (epsilon + 1.0 + abs(np.log(c))) <= log_delta)
