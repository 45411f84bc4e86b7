"""Scorers: from an output to one number, by a likelihood ratio learnt on runs that the audit itself never uses."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from psidp.auditing.curves import Gaussian
from psidp.auditing.scores import Scores
from psidp.auditing.thresholds import Thresholds

__all__ = ["Scorer", "chosen"]

BINS = 24
Array = NDArray[np.float64]


class Scorer(Protocol):
    """A score for each output, high where the second dataset is likelier."""

    @property
    def name(self) -> str:
        """What it looks at, in words."""

    def __call__(self, rows: Array) -> Array:
        """One score a row."""


@dataclass(frozen=True, eq=False)
class Linear:
    """The likelihood ratio of two normal laws with one covariance: a weighted sum of the coordinates."""

    weights: Array
    centre: Array
    name: str = "linear"

    @classmethod
    def fit(cls, outs: Array, ins: Array) -> "Linear":
        """Weights from the difference of the means and the pooled covariance, shrunk where runs are few."""
        centre = 0.5 * (outs.mean(axis=0) + ins.mean(axis=0))
        step = ins.mean(axis=0) - outs.mean(axis=0)
        spread = np.concatenate([outs - outs.mean(axis=0), ins - ins.mean(axis=0)])
        variances = spread.var(axis=0)
        floor = 1e-12 * (variances.max() + float(step @ step)) + 1e-300
        if outs.shape[1] > len(spread) // 10:
            return cls(step / (variances + floor), centre)
        covariance = spread.T @ spread / len(spread) + floor * np.eye(step.size)
        return cls(np.linalg.solve(covariance, step), centre)

    def __call__(self, rows: Array) -> Array:
        """The weighted sum."""
        return np.asarray((rows - self.centre) @ self.weights)


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The likelihood ratio of normal laws that differ in mean and spread, coordinate by coordinate."""

    means: tuple[Array, Array]
    variances: tuple[Array, Array]
    name: str = "quadratic"

    @classmethod
    def fit(cls, outs: Array, ins: Array) -> "Quadratic":
        """Mean and variance of each coordinate on each side."""
        floor = 1e-12 * (np.concatenate([outs, ins]).var(axis=0)) + 1e-300
        return cls((outs.mean(0), ins.mean(0)), (outs.var(0) + floor, ins.var(0) + floor))

    def __call__(self, rows: Array) -> Array:
        """The logarithm of the ratio."""
        out, into = (
            (rows - mean) ** 2 / variance + np.log(variance)
            for mean, variance in zip(self.means, self.variances, strict=True)
        )
        return np.asarray(0.5 * (out - into).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Histogram:
    """The ratio of counts in bins of the linear score: for laws of any shape."""

    line: Linear
    edges: Array
    ratios: Array
    name: str = "histogram"

    @classmethod
    def fit(cls, outs: Array, ins: Array) -> "Histogram":
        """Bins of equal counts."""
        line = Linear.fit(outs, ins)
        low, high = line(outs), line(ins)
        edges = np.unique(np.quantile(np.concatenate([low, high]), np.linspace(0, 1, BINS + 1)[1:-1]))
        counts = [np.bincount(np.searchsorted(edges, row), minlength=edges.size + 1) + 0.5 for row in (low, high)]
        return cls(line, edges, np.log(counts[1] / counts[0] * (len(outs) / len(ins))))

    def __call__(self, rows: Array) -> Array:
        """The logarithm of the ratio in the output's bin."""
        return np.asarray(self.ratios[np.searchsorted(self.edges, self.line(rows))])


@dataclass(frozen=True, eq=False)
class Grain:
    """The ratio of counts of the lowest bit that is set: for noise whose floating-point grid follows the data."""

    ratios: Array
    name: str = "lowest bit"

    @classmethod
    def fit(cls, outs: Array, ins: Array) -> "Grain":
        """Counts of each lowest bit, over all coordinates."""
        counts = [np.bincount(lowest_bit(rows).reshape(-1), minlength=2200) + 0.5 for rows in (outs, ins)]
        return cls(np.log(counts[1] / counts[0] * (outs.size / ins.size)))

    def __call__(self, rows: Array) -> Array:
        """The logarithm of the ratio, summed over coordinates."""
        return np.asarray(self.ratios[lowest_bit(rows)].sum(axis=1))


def lowest_bit(rows: Array) -> NDArray[np.int64]:
    """The exponent of the lowest bit that is set, plus 1100; 0 for zero and infinity.

    Examples:
        >>> (lowest_bit(np.array([1.0, 0.75, 6.0, 0.0])) - 1100).tolist()
        [0, -2, 1, -1100]
    """
    mantissa, exponent = np.frexp(np.where(np.isfinite(rows), rows, 0.0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    low = np.where(whole > 0, whole & -whole, 1)
    place = exponent - 53 + np.round(np.log2(low.astype(np.float64))).astype(np.int64) + 1100
    return np.where(whole > 0, np.clip(place, 0, 2199), 0).astype(np.int64)


KINDS: tuple[type[Linear] | type[Quadratic] | type[Histogram] | type[Grain], ...] = (
    Linear,
    Quadratic,
    Histogram,
    Grain,
)
ENOUGH = 0.85
"""A simpler scorer is kept unless another one proves more than this says."""


def chosen(outs: Array, ins: Array) -> Scorer:
    """The first scorer that is nearly the best: tried on one half of these runs, then fitted to all of them."""
    half_out, half_in = len(outs) // 2, len(ins) // 2
    values = []
    with np.errstate(all="ignore"):
        for kind in KINDS:
            scorer = kind.fit(outs[:half_out], ins[:half_in])
            values.append(_worth(scorer, outs[half_out:], ins[half_in:]))
        good = [kind for kind, value in zip(KINDS, values, strict=True) if value >= ENOUGH * max(values)]
        return good[0].fit(outs, ins)


def _worth(scorer: Scorer, outs: Array, ins: Array) -> float:
    """How much the scorer proves about psi on runs that it has not seen, at even odds."""
    low, high = scorer(outs), scorer(ins)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        return 0.0
    scores = Scores.of(high, low)
    return max(Thresholds(scores).strength(Gaussian(), 0.5), 2.5 * (scores.auc - 0.5), 0.0)
