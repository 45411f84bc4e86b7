"""How often the audit's bounds exceed the truth: every psi, size and attack, thousands of repetitions a cell.

A bound exceeds psi exactly when its test refutes psi, so each cell computes the tests' critical values once, with the
package's own functions, and then only counts. Some repetitions go through psidp.audit itself as a check.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from bench.timing import Report
from psidp import Guarantee, audit
from psidp.auditing.calibration import level
from psidp.auditing.curves import Gaussian
from psidp.auditing.fixed_threshold import Fixed
from psidp.auditing.pairs import pair_p_value
from psidp.auditing.ranks import DRAWS, SIMULATED, Experiment
from psidp.auditing.scores import Scores
from psidp.auditing.thresholds import rung_p_values, rungs
from psidp.maths.mann_whitney import MannWhitney

PSIS, SIZES, ALPHA, THRESHOLD = (0.0, 0.25, 1.0, 2.0, 3.0), (30, 100, 1000, 10_000), 0.05, 0.5
METHODS = ("pairs", "ranks", "threshold", "both", "clopper-pearson")
ATTACKS: dict[str, Callable[[NDArray, np.random.Generator], NDArray]] = {
    "identity": lambda x, rng: x,
    "tanh": lambda x, rng: np.tanh(x),
    "cube": lambda x, rng: x**3,
    "exp": lambda x, rng: np.exp(x),
    "sign": lambda x, rng: np.sign(x - 0.5),
    "five bins": lambda x, rng: np.clip(np.round(x), -2, 2),
    "added noise": lambda x, rng: x + rng.standard_normal(x.shape),
    "mixture": lambda x, rng: np.where(rng.random(x.shape) < 0.5, x, rng.standard_normal(x.shape)),
    "negative": lambda x, rng: -x,
}


def run(full: bool, seed: int) -> list[Report]:
    """Violation rates by method and size: the worst cell and all cells together."""
    repetitions = 2000 if full else 200
    report = Report(f"Bounds that exceed psi, {repetitions} repetitions a cell, 5 psi x 9 attacks a line")
    cell_limit = 0.069 if full else float(binom.isf(1e-4, repetitions, ALPHA)) / repetitions
    for n in SIZES:
        wrong = {name: [] for name in METHODS}
        agreed, asked = 0, 0
        for psi in PSIS:
            tests = Critical.of(psi, n, seed)
            for which, attack in enumerate(ATTACKS):
                rng = np.random.default_rng([seed, n, int(100 * psi), which])
                counts, same, tried = tests.violations(attack, repetitions, rng)
                agreed, asked = agreed + same, asked + tried
                for name in METHODS:
                    wrong[name].append(counts[name] / repetitions)
        for name in METHODS:
            report.add(f"{name}, n = {n}, worst cell", max(wrong[name]), "", cell_limit)
            pooled = 0.052 if full else None
            report.add(f"{name}, n = {n}, all cells", float(np.mean(wrong[name])), "", pooled)
        report.say(f"psidp.audit agrees, n = {n}", f"{agreed} of {asked}")
    return [report]


@dataclass(frozen=True)
class Critical:
    """Where each test begins to refute psi, for n scores a side."""

    psi: float
    n: int
    pairs: int
    rungs: NDArray
    counts: dict[float, NDArray]
    """By alpha: the smallest refuted count of each rung."""
    lost: dict[float, float]
    """By alpha: the largest refuted share of lost pairs, where the ranks are bounded."""
    null: NDArray
    """Simulated Mann-Whitney counts, where the ranks are simulated."""

    @classmethod
    def of(cls, psi: float, n: int, seed: int) -> "Critical":
        """All critical values from the package's own p-values."""
        claim, k = Guarantee(psi), rungs(n)
        pairs = _first(lambda wins: pair_p_value(wins, n, claim) <= ALPHA, n)
        some = Scores(np.zeros(n), np.zeros(n))
        counts = {a: _counts(psi, k, n, level(a, k.size, some, True)) for a in (ALPHA, ALPHA / 2)}
        law = MannWhitney(psi, 0.0, n, n)
        lost = {a: _first(lambda u, a=a: law.tail(1 - u / n**2) <= a, n * n) for a in (ALPHA, ALPHA / 2)}
        null = np.concatenate([_null(psi, n, seed + b) for b in range(5)]) if n <= SIMULATED else np.empty(0)
        return cls(psi, n, pairs, k, counts, lost, np.sort(null))

    def violations(self, attack: str, repetitions: int, rng: np.random.Generator) -> tuple[dict[str, int], int, int]:
        """How often each test refutes psi, and how often psidp.audit agreed when asked."""
        wrong, agreed, asked = dict.fromkeys(METHODS, 0), 0, 0
        for r in range(repetitions):
            ins, outs = (ATTACKS[attack](rng.normal(mean, 1, self.n), rng) for mean in (self.psi, 0.0))
            refuted = self._refuted(ins, outs, rng)
            for name in METHODS:
                wrong[name] += refuted[name]
            if r < 2:
                asked += 1
                agreed += (audit(ins, outs, 1 - ALPHA, "threshold").psi > self.psi) == refuted["threshold"]
        return wrong, agreed, asked

    def _refuted(self, ins: NDArray, outs: NDArray, rng: np.random.Generator) -> dict[str, bool]:
        scores = Scores(np.sort(ins), np.sort(outs))
        above = scores.above(scores.outs[self.n - 1 - self.rungs])
        by_rung = {a: bool((above >= self.counts[a]).any()) for a in self.counts}
        by_rank = {a: self._ranks(scores.wins, a, rng) for a in self.counts}
        return {
            "pairs": int((ins > outs).sum()) >= self.pairs,
            "ranks": by_rank[ALPHA],
            "threshold": by_rung[ALPHA],
            "both": by_rank[ALPHA / 2] or by_rung[ALPHA / 2],
            "clopper-pearson": Fixed.of(scores, THRESHOLD).psi(ALPHA) > self.psi,
        }

    def _ranks(self, wins: int, alpha: float, rng: np.random.Generator) -> bool:
        """The rank test; of the simulated experiments so many reach the count as a fresh draw would give."""
        if self.n > SIMULATED:
            return wins >= self.lost[alpha]
        share = 1.0 - np.searchsorted(self.null, wins) / self.null.size
        return bool(1 + rng.binomial(DRAWS, share) <= alpha * (DRAWS + 1))


def _null(psi: float, n: int, seed: int) -> NDArray:
    return Experiment.draw(n, n, 0.0, 2000, np.random.default_rng([seed, n, 3])).wins(psi, np.arange(2000))


def _counts(psi: float, k: NDArray, n: int, each: float) -> NDArray:
    """For each rung the smallest count that is refuted."""
    low, high = np.zeros(k.size, dtype=np.int64), np.full(k.size, n + 1, dtype=np.int64)
    while (high - low > 1).any():
        middle = (low + high) // 2
        refuted = rung_p_values(Gaussian(), psi, k, middle, n, n) <= each
        low, high = np.where(refuted, low, middle), np.where(refuted, middle, high)
    return high


def _first(holds: Callable[[int], bool], most: int) -> int:
    """Smallest whole number up to most + 1 for which a rising condition holds."""
    low, high = -1, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
