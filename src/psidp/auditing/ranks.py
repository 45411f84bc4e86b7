r"""Ranks: all (in, out) pairs at once, the Mann-Whitney count inverted under the Gaussian experiment.

Whatever the attack, its in-scores rank no higher than those of the Gaussian experiment coupled with it
(docs/design/audit.md), so psi is refuted once the count is too large for that experiment. Up to SIMULATED scores on the
smaller side the experiment is simulated, and the test is exact with its own dice counted in; beyond, its tail is
bounded by a theorem (psidp.maths.mann_whitney) whose every error is charged to alpha.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import floor

import numpy as np
from numpy.typing import NDArray

from psidp.auditing.scores import Scores
from psidp.maths.bisection import bracket, halvings, within
from psidp.maths.mann_whitney import MannWhitney

__all__ = ["SIMULATED", "Ranks"]

SIMULATED = 1500
"""Largest smaller side for which the experiment is simulated."""
UNEVEN = 4
"""In a simulation the larger side keeps this many times the smaller one at most, drawn at random."""
DRAWS, MOST_DRAWS, MOST_NUMBERS = 1999, 20_000, 15_000_000
PRECISION = 1e-7
FAR, SPACING, CACHED = 40.0, 128.0, 20_000
"""An infinite score, the distance at which copies are laid out in one line, and how many scores such a line holds."""
ROUNDING = 1e-10
"""Laying copies out in one line moves their scores by 1e-12 at most."""
LARGEST = 12.0
"""No larger psi is ever claimed: its AUC differs from one by 1e-17."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """Copies of the experiment at psi = 0, each sorted; psi is added to all in-scores of all copies at once."""

    ins: NDArray[np.float64]
    outs: NDArray[np.float64]

    @classmethod
    def draw(cls, n_in: int, n_out: int, kappa: float, copies: int, rng: np.random.Generator) -> "Experiment":
        """`copies` independent experiments."""
        ins, outs = rng.standard_normal((copies, n_in)), rng.standard_normal((copies, n_out))
        if kappa > 0.0:
            ins[rng.random(ins.shape) < kappa] = FAR
            outs[rng.random(outs.shape) < kappa] = -FAR
        ins.sort(axis=1)
        outs.sort(axis=1)
        return cls(ins, outs)

    def wins(self, psi: float, which: NDArray[np.intp]) -> NDArray[np.int64]:
        """Pairs that the in-score wins at psi, in each of the chosen copies."""
        n_in, n_out = self.ins.shape[1], self.outs.shape[1]
        rows = max(CACHED // (n_in + n_out), 1)
        counts = np.empty(which.size, dtype=np.int64)
        for start in range(0, which.size, rows):
            part = which[start : start + rows]
            apart = SPACING * np.arange(part.size)[:, None]
            line = (self.outs[part] + apart).reshape(-1)
            places = np.searchsorted(line, (self.ins[part] + (psi + apart)).reshape(-1))
            counts[start : start + rows] = places.reshape(part.size, n_in).sum(axis=1)
            counts[start : start + rows] -= n_in * n_out * np.arange(part.size)
        return counts

    def reach(self, wins: int, psi: float, which: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of the chosen copies win at least so many pairs at psi; once true, true for every larger psi."""
        return self.wins(psi, which) >= wins


@dataclass(frozen=True, eq=False)
class Ranks:
    """The rank test of (psi, kappa) for given scores: p-values, and the lower bound on psi they prove."""

    scores: Scores
    alpha: float
    kappa: float = 0.0
    seed: int = 0

    @staticmethod
    def reach(n_in: int, n_out: int, kappa: float, alpha: float) -> bool:
        """Whether the test can refute anything at this alpha and these sizes."""
        if min(n_in, n_out) <= SIMULATED:
            return alpha * (_copies(n_in, n_out, alpha) + 1) >= 2.0
        return MannWhitney(0.0, kappa, n_in, n_out).normal_error < 0.5 * alpha

    @property
    def simulated(self) -> bool:
        """Whether the experiment is simulated rather than bounded."""
        return min(self.scores.n_in, self.scores.n_out) <= SIMULATED

    def p_value(self, psi: float) -> float:
        """P(so many wins) at most, under (psi, kappa)."""
        if not self.simulated:
            return self._law(psi).tail(self.scores.lost)
        part, experiment = self._prepared
        reached = experiment.reach(part.wins, psi, np.arange(len(experiment.ins)))
        return (1 + int(reached.sum())) / (1 + reached.size)

    def psi(self) -> float:
        """Lower bound on psi, wrong with probability alpha at most, rounded down."""
        if not self.simulated:
            return _last(lambda psi: self._law(psi).tail(self.scores.lost) <= self.alpha, self._guess())
        part, experiment = self._prepared
        allowed = floor(self.alpha * (len(experiment.ins) + 1) * (1.0 + 1e-12)) - 1
        if allowed < 0:
            return 0.0
        undecided, below = np.arange(len(experiment.ins)), 0

        def refuted(psi: float) -> bool:
            nonlocal undecided, below
            reached = experiment.reach(part.wins, psi, undecided)
            if below + int(reached.sum()) <= allowed:
                below, undecided = below + int(reached.sum()), undecided[~reached]
                return True
            undecided = undecided[reached]
            return False

        return _last(refuted, self._guess())

    def _law(self, psi: float) -> MannWhitney:
        return MannWhitney(psi, self.kappa, self.scores.n_in, self.scores.n_out)

    def _guess(self) -> float:
        """Where the bound will be, by the normal approximation: only the search starts there."""
        return bracket(lambda psi: self._law(psi).estimate(self.scores.lost) <= self.alpha, 0.0, LARGEST, halvings(30))[
            0
        ]

    @cached_property
    def _prepared(self) -> tuple[Scores, Experiment]:
        """The scores that are kept, and the simulated experiments of their size."""
        most = UNEVEN * min(self.scores.n_in, self.scores.n_out)
        rng = self.scores.dice(self.seed, 1)
        part = Scores(_part(self.scores.ins, most, rng), _part(self.scores.outs, most, rng))
        copies = _copies(part.n_in, part.n_out, self.alpha)
        return part, Experiment.draw(part.n_in, part.n_out, self.kappa, copies, rng)


def _copies(n_in: int, n_out: int, alpha: float) -> int:
    """How many experiments are drawn: enough for alpha, within bounded memory."""
    kept = min(n_in, UNEVEN * n_out) + min(n_out, UNEVEN * n_in)
    return max(DRAWS, min(int(20.0 / alpha), MOST_DRAWS, MOST_NUMBERS // kept))


def _part(row: NDArray[np.float64], most: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """The row itself, or a random part of so many of its scores, sorted."""
    return np.sort(rng.choice(row, most, replace=False)) if row.size > most else row


def _last(refuted: Callable[[float], bool], guess: float) -> float:
    """A psi that is refuted, as large as bisection finds, or 0; asked at each psi once, in shrinking intervals."""
    step, low, high = 0.02 + 0.05 * guess, 0.0, LARGEST
    if not refuted(0.0):
        return 0.0
    for start in (guess - step, guess + step):
        if low < start < high:
            low, high = (start, high) if refuted(start) else (low, start)
    low, _ = bracket(refuted, low, high, within(PRECISION))
    return max(low * (1.0 - 1e-12) - ROUNDING, 0.0)
