"""The upper ends of a privacy curve as plain numbers: what may be promised of a run, read as one reads a Guarantee."""

from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from psidp.accounting.composition import Array, Composition
from psidp.accounting.curve import PrivacyCurve
from psidp.accounting.methods import Known, delta_bounds
from psidp.maths.sensitivity import Adjacency
from psidp.symbols import symbol

__all__ = ["UpperEnds"]

LEAST = 1e-9
"""Tangents reach to the epsilon at which delta is this; rates far below it have a looser bound."""
NODES = 64
CLOSE = 1e-5
"""How close the bounds of log delta come to each other at a tangent."""
UP = 1.0 + 2.0**-48


class UpperEnds:
    """Every number of a curve at its upper end, so that none understates the loss.

    Guarantees:
        epsilon, delta, advantage and auc are the upper ends of the curve's intervals. roc lies on tangents of the upper
        ends of the profile, so it is a bound at every rate; from 1e-4 on it is above curve.roc(fpr).upper by a relative
        1e-5 at most, and many rates cost little more than one (tests/accounting/test_upper.py).

    Examples:
        >>> from psidp.accounting import DPSGD, account
        >>> ends = UpperEnds(account(DPSGD(1.0, 0.01, 1000)))
        >>> round(ends.epsilon(1e-5), 6), round(ends.roc(0.01), 5)
        (1.828237, 0.02914)
    """

    def __init__(self, curve: PrivacyCurve) -> None:
        self._curve = curve
        self._sides = [_Side(steps) for steps in curve.above]

    @property
    def kappa(self) -> float:
        """Probability of outright failure that the events themselves have."""
        return self._curve.kappa

    @property
    def adjacency(self) -> Adjacency:
        """add-remove or replace-one."""
        return self._curve.adjacency

    @property
    def unit(self) -> str:
        """Whose data is protected."""
        return self._curve.unit

    def epsilon(self, delta: Any) -> Any:
        """Smallest epsilon for which (epsilon, delta)-DP is proved."""
        return self._curve.epsilon(delta).upper

    def delta(self, epsilon: Any) -> Any:
        """Smallest delta for which (epsilon, delta)-DP is proved."""
        return self._curve.delta(epsilon).upper

    @cached_property
    def advantage(self) -> float:
        """Largest TPR - FPR of any attack."""
        return float(self._curve.advantage.upper)

    @cached_property
    def auc(self) -> float:
        """Largest area under the ROC curve of any attack."""
        return float(self._curve.auc.upper)

    def roc(self, fpr: Any, fine: float = 5e-3) -> Any:
        """Largest true positive rate of any attack at a false positive rate, in the worse of both directions.

        Tangents are looked for until their epsilons are `fine` apart.
        """
        values = symbol("fpr").array(fpr)
        inner = np.minimum(values.ravel() / (1.0 - self.kappa) * UP, 1.0)
        pairs = zip(self._sides, self._sides[::-1], strict=True)
        rate = np.max([_rate(one, other, inner, self._reach, fine) for one, other in pairs], axis=0)
        rate = self._failed(rate)
        return rate.reshape(values.shape) if values.ndim else float(rate[0])

    def odds_multiplier(self, probability: float) -> float:
        """Factor by which a release multiplies an attacker's odds at most, except with this probability.

        P(L >= t) <= delta(s)/(1 - e^(s - t)) for every s < t; so t = s - log(1 - delta(s)/p) will do, for the best s.
        """
        probability = symbol("probability").number(probability)
        s, best = _nodes(self._reach), inf
        for _ in range(3):
            delta = self._failed(np.max([side.delta(s) for side in self._sides], axis=0))
            share = delta / probability * UP if probability else np.full(s.size, inf)
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                odds = np.where(share < 1.0, np.exp(s - np.log1p(-share)) * UP, inf)
            at = int(np.argmin(odds))
            best = min(best, float(odds[at]))
            s = np.linspace(s[max(at - 1, 0)], s[min(at + 1, s.size - 1)], NODES // 4)
        return best

    def _failed(self, rate: Array) -> Array:
        """kappa + (1 - kappa) rate, rounded up."""
        return np.minimum((self.kappa + (1.0 - self.kappa) * rate) * UP, 1.0) if self.kappa else rate

    @cached_property
    def _reach(self) -> float:
        """The epsilon beyond which nobody looks."""
        return min(float(self._curve.epsilon(max(LEAST, 2.0 * self.kappa)).upper), 700.0)


class _Side:
    """delta of one direction, rounded up; each epsilon is asked for once."""

    def __init__(self, steps: Composition) -> None:
        self._steps, self._known = steps, Known()
        self._deltas: dict[float, float] = {}

    def delta(self, epsilon: Array) -> Array:
        """Upper bounds of delta at each epsilon >= 0."""
        new = np.array([e for e in np.unique(epsilon) if float(e) not in self._deltas])
        if new.size:
            found = np.exp(delta_bounds(self._steps, new, CLOSE, self._known)[1]) * UP
            self._deltas |= dict(zip(new.tolist(), np.minimum(found, 1.0).tolist(), strict=True))
        return np.array([self._deltas[float(e)] for e in epsilon])


def _nodes(reach: float) -> Array:
    """Epsilons to begin with, the same for every question, so that each is answered once."""
    return np.linspace(0.0, reach, NODES + 1)


def _rate(one: _Side, other: _Side, fpr: Array, reach: float, fine: float) -> Array:
    """The lowest tangent at each rate: TPR <= D(a) + a FPR for every a = e^epsilon, with epsilon of either sign.

    For a < 1 the other direction is read, D(a) = 1 - a + a D'(1/a), so that small rates keep their digits.
    """
    nodes = _nodes(reach)
    nodes = np.concatenate([-nodes[:0:-1], nodes])
    while True:
        ahead = np.exp(nodes)
        flat = np.where(nodes < 0.0, -np.expm1(nodes), 0.0)
        height = np.where(nodes < 0.0, ahead * other.delta(np.abs(nodes)), one.delta(np.abs(nodes)))
        lines = (flat + height + ahead * fpr[:, None]) * UP
        at = np.argmin(lines, axis=1)
        beside = nodes[np.clip(at[:, None] + np.array([-1, 0, 1]), 0, nodes.size - 1)]
        new = (0.5 * (beside[:, 1:] + beside[:, :-1]))[np.diff(beside, axis=1) > fine]
        if not new.size:
            return np.where(fpr == 0.0, 0.0, np.clip(lines.min(axis=1), fpr, 1.0))
        nodes = np.unique(np.concatenate([nodes, new]))
