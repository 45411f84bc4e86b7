"""Bands: what the scores say about the attack itself, whatever the mechanism, with its error in finite samples."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from psidp.auditing.scores import Scores
from psidp.maths.binomial import order_statistic_above, order_statistic_below, rate_above, rate_below
from psidp.maths.bisection import between

__all__ = ["RocBand", "roc_band", "tpr_interval"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RocBand:
    """The empirical ROC curve with a band that holds the true one at every fpr at once."""

    fpr: Array
    tpr: Array
    lower: Array
    upper: Array


def roc_band(scores: Scores, fpr: Array, alpha: float) -> RocBand:
    """The curve at these false positive rates; the whole true curve leaves the band with probability alpha at most.

    Both empirical distribution functions are within sqrt(log(4/alpha)/(2n)) of the true ones except with probability
    alpha/2 each (Dvoretzky, Kiefer and Wolfowitz 1956; Massart 1990).
    """
    wide_in, wide_out = (sqrt(log(4.0 / alpha) / (2 * n)) for n in (scores.n_in, scores.n_out))
    lower = np.maximum(_hits(scores, fpr - wide_out) - wide_in, 0.0)
    upper = np.minimum(_hits(scores, fpr + wide_out) + wide_in, 1.0)
    return RocBand(fpr, _hits(scores, fpr), lower, np.where(fpr < 1.0, upper, 1.0))


def _hits(scores: Scores, fpr: Array) -> Array:
    """Largest empirical true positive rate of a threshold with at most this empirical false positive rate."""
    allowed = np.floor(np.clip(fpr, -1.0, 1.0) * scores.n_out * (1.0 + 1e-12)).astype(np.int64)
    rank = np.clip(scores.n_out - 1 - allowed, 0, scores.n_out - 1)
    hits = scores.above(scores.outs[rank]) / scores.n_in
    return np.where(allowed < 0, 0.0, np.where(allowed >= scores.n_out, 1.0, hits))


def tpr_interval(scores: Scores, fpr: float, alpha: float) -> tuple[float, float]:
    """Interval for the largest true positive rate of a threshold whose true false positive rate is at most fpr.

    The out-score whose rank makes its false positive rate surely (alpha/4) at most, or at least, fpr serves as
    threshold; the in-scores, which know nothing of it, are counted above it (Clopper and Pearson, alpha/4).
    """
    n = scores.n_out
    sure = 1.0 - alpha / 4.0
    few = _largest(n, lambda k: order_statistic_below(k + 1, n, fpr) >= sure)
    many = n - 1 - _largest(n, lambda j: order_statistic_above(n - j, n, fpr) >= sure)
    lower, upper = 0.0, 1.0
    if few >= 0:
        hits = int(scores.above(scores.outs[n - 1 - few]))
        lower = float(rate_below(hits, scores.n_in, alpha / 4.0))
    if many < n:
        hits = scores.n_in - int(np.searchsorted(scores.ins, scores.outs[n - 1 - many], side="left"))
        upper = float(rate_above(hits, scores.n_in, alpha / 4.0))
    return lower, upper


def _largest(n: int, holds: Callable[[int], bool]) -> int:
    """Largest k in [0, n) for which a falling condition holds, or -1."""
    return between(holds, -1, n)[0]
