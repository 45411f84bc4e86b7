"""Steps above the grid: paths with one of them are counted in closed form, since such a step decides by itself."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from psidp.accounting.composition import Array, Composition, cut
from psidp.accounting.pld.step_law import ADD, Law

__all__ = ["Aside"]

DOUBTS = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0)
"""Logarithms of the chance granted to what the other steps may undo; the first that is small enough beside delta."""


@dataclass(frozen=True)
class Aside:
    """The laws of all groups, up to where a grid reaches.

    With a chance of e^-doubt at most, the other steps lose more than `least`, whatever the step above the grid does.
    """

    laws: list[Any]
    exact: bool = False
    least: float = np.inf
    doubt: float = 0.0

    @classmethod
    def around(cls, steps: Composition, laws: list[Any], epsilon: float, log_delta: float, room: float) -> "Aside":
        """Laws cut where a step decides at `epsilon` and a little beyond; as they are where no step decides."""
        if steps.pairs or not (steps.sign == 1.0).all():
            return cls(laws)
        orders = np.geomspace(1e-3, 1e6, 28) / max(float(steps.q.max(initial=0.0)), 1e-12)
        totals = np.array([sum(law.count * law.log_moment_below(order) for law in laws) for order in orders.tolist()])
        for wide, doubt in product((room, 3.0 * room, 0.1), DOUBTS):
            least = _floor(orders, totals, doubt)
            far = (1.0 + wide) * epsilon + (1.0 + 0.1 * wide) * least
            capped = [law if law.q == 1.0 else replace(law, high=_cap(law, far)) for law in laws]
            lost = max(float(np.log(law.count)) + law.beyond[1] for law in capped)
            if lost + (1.0 + wide) * epsilon - doubt <= log_delta - 16.0:
                break
        return cls(capped, True, least, doubt)

    def log_bounds(self, epsilon: Array, shift: float) -> tuple[Array, Array]:
        """What paths with a step above the grid add to delta: P(any) - e^epsilon Q(any) where that step decides.

        It does unless the others lose more than `least`, which is independent of that step: so each step has its own
        share of what is undecided, and the sum of all counts. `shift` is how far the losses may be off.
        """
        counts, logs = np.array([law.count for law in self.laws]), np.array([law.beyond for law in self.laws])
        removed = np.array([law.kind != ADD for law in self.laws])
        anyone, settled, under = (
            _any(counts[rows], logs[rows, i]) for rows, i in ((removed | True, 0), (removed, 0), (removed, 1))
        )
        slack = max(law.beyond_error for law in self.laws)
        low = _minus(settled - slack, epsilon + under + slack)
        top = min((law.losses[1] for law in self.laws if law.kind != ADD), default=-np.inf) - shift
        decided = self.exact & (top * (1.0 - 1e-11) >= self.least + epsilon)
        each = np.logaddexp.reduce(np.log(counts[removed]) + logs[removed, 1]) if removed.any() else -np.inf
        undecided = epsilon + each + slack - self.doubt
        exactly = np.logaddexp(_minus(anyone + slack, epsilon + under - slack), undecided)
        return low, np.where(decided, exactly, anyone + slack)


def _floor(orders: Array, totals: Array, doubt: float) -> float:
    """An x with P(sum of the losses < -x) <= e^-doubt under the denominator: Chernoff's bound at the best order."""
    found = np.where(np.isfinite(totals), (totals + doubt) / orders + 1e-12 * (np.abs(totals) + doubt) / orders, np.inf)
    return max(float(found.min()), 0.0)


def _cap(law: Law, far: float) -> float:
    """The noise up to which losses below `far` reach, within the law's own range."""
    return float(min(law.high, max(float(cut(law.sigma, law.q, np.array(far))), law.low + 1.0)))


def _any(counts: Array, log_p: Array) -> float:
    """log of 1 - prod (1 - p)^count."""
    total = float(np.logaddexp.reduce(np.append(np.log(counts) + np.log(_stretched(log_p)) + log_p, -np.inf)))
    return float(np.log(-np.expm1(-np.exp(total)))) if total > -30.0 else total


def _stretched(log_p: Array) -> Array:
    """-log(1 - p)/p."""
    p = np.exp(np.minimum(log_p, 0.0))
    return np.where(p > 1e-9, -np.log1p(-p) / np.maximum(p, 1e-300), 1.0 + 0.5 * p)


def _minus(a: float, b: Array) -> Array:
    """log(e^a - e^b); -inf where that is not positive."""
    return np.where(b < a, a + np.log1p(-np.exp(np.minimum(b - a, 0.0))), -np.inf)
