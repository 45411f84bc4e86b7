r"""Thresholds: many thresholds at once, each an exact test, their maximum paid for.

Rung k is the (k+1)-th largest out-score, for k on a fixed ladder of counts that is fine at both ends. Its false
positive rate is Beta(k+1, n_out - k) whatever the scores, and given it the in-scores above are at most Binomial(n_in,
R(rate)): one exact test a rung, with no half of alpha for either side. The rungs together are paid for by Bonferroni,
or less where a stored calibration shows that their dependence leaves room (psidp.auditing.calibration).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from psidp.auditing.calibration import LOWEST, level, paid
from psidp.auditing.curves import Curves, Gaussian
from psidp.auditing.scores import Scores
from psidp.maths.binomial import binomial_tail, order_statistic, rate_above, rate_below
from psidp.maths.bisection import bracket, within
from psidp.maths.normal import quantile, tail

__all__ = ["Thresholds", "rung_p_values", "rungs"]

CELLS = np.linspace(-6.5, 7.0, 109)
"""Ends of the cells into which a rung's false positive rate is cut, in normal scores."""
CANDIDATES = 4
"""Rungs that are looked at closely; looking at fewer than all can only lower the bound."""
PRECISION = 1e-6
Array = NDArray[np.float64]


def rungs(n_out: int) -> NDArray[np.int64]:
    """The ladder of counts of out-scores above the threshold, from both ends in steps of sqrt 2.

    Examples:
        >>> rungs(30).tolist()
        [0, 1, 2, 3, 5, 7, 10, 19, 22, 24, 26, 27, 28, 29]
    """
    counts = np.unique(np.round(2.0 ** (np.arange(2 * n_out.bit_length()) / 2.0))).astype(np.int64) - 1
    low = counts[counts <= (n_out - 1) // 2]
    return np.unique(np.concatenate([low, n_out - 1 - low]))


@dataclass(frozen=True, eq=False)
class Thresholds:
    """The thresholds of given scores: what they prove about any ordered family of curves."""

    scores: Scores

    @cached_property
    def rungs(self) -> NDArray[np.int64]:
        """Out-scores above each threshold, counted without ties."""
        return rungs(self.scores.n_out)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """In-scores strictly above each threshold."""
        return self.scores.above(self.scores.outs[self.scores.n_out - 1 - self.rungs])

    def p_value(self, curves: Curves, strength: float) -> float:
        """P(some rung so good) at most, if no attack beats this curve."""
        best = self._candidates(curves, LOWEST / self.rungs.size)
        p = rung_p_values(curves, strength, self.rungs[best], self.counts[best], self.scores.n_in, self.scores.n_out)
        return paid(float(p.min()), self.rungs.size, self.scores, _calibrated(curves))

    def strength(self, curves: Curves, alpha: float) -> float:
        """Lower bound on the strength of the curve, wrong with probability alpha at most, rounded down."""
        each = level(alpha, self.rungs.size, self.scores, _calibrated(curves))
        best = self._candidates(curves, each)
        k, m, n_in, n_out = self.rungs[best], self.counts[best], self.scores.n_in, self.scores.n_out
        rate, mass = _cells(k, n_out)

        def refuted(strength: float) -> bool:
            return bool((_upper_sum(curves, strength, rate, mass, m, n_in) <= each).any())

        if not refuted(0.0):
            return 0.0
        low, high = 0.0, curves.largest
        guess = float(np.max(self._crude(curves, each)[best]))
        for start in (guess * 0.95 - 0.02, guess * 1.05 + 0.02):
            if low < start < high:
                low, high = (start, high) if refuted(start) else (low, start)
        return bracket(refuted, low, high, within(PRECISION))[0] * (1.0 - 1e-12)

    def _crude(self, curves: Curves, each: float) -> Array:
        """Each rung's bound, roughly: the two rates moved apart by 0.8 of the level's normal score each."""
        side = float(tail(np.float64(-0.8 * quantile(each))))
        fpr = rate_above(self.rungs, self.scores.n_out, side)
        tpr = rate_below(self.counts, self.scores.n_in, side)
        return np.asarray(curves.implied(tpr, fpr))

    def _candidates(self, curves: Curves, each: float) -> NDArray[np.intp]:
        return np.argsort(self._crude(curves, each))[-CANDIDATES:]


def rung_p_values(
    curves: Curves, strength: float, k: NDArray[np.int64], m: NDArray[np.int64], n_in: int, n_out: int
) -> Array:
    """For each rung P(at least m in-scores above the (k+1)-th largest out-score) at most, under a curve."""
    rate, mass = _cells(k, n_out)
    return _upper_sum(curves, strength, rate, mass, m, n_in)


def _cells(k: NDArray[np.int64], n_out: int) -> tuple[Array, Array]:
    """The largest false positive rate in each cell, and the cell's mass; the last cell reaches to 1."""
    below, above = tail(-CELLS), tail(CELLS)
    rate = order_statistic(k[:, None] + 1.0, float(n_out), below, above)
    rate = np.concatenate([rate, np.ones((k.size, 1))], axis=1)
    mass = np.concatenate([below[:1], above[:-1] - above[1:], above[-1:]])
    return rate, mass


def _upper_sum(curves: Curves, strength: float, rate: Array, mass: Array, m: NDArray[np.int64], n_in: int) -> Array:
    """Mass times the tail at the cell's largest rate, summed: an upper bound, since the tail grows with the rate."""
    tails = binomial_tail(m[:, None], n_in, curves.roc(strength, rate))
    return np.asarray(np.minimum(tails @ mass * (1.0 + 1e-9), 1.0))


def _calibrated(curves: Curves) -> bool:
    """Whether the stored calibration speaks of this family: Gaussian curves without failure."""
    return isinstance(curves, Gaussian) and curves.kappa == 0.0
