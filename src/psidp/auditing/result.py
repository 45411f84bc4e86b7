"""AuditResult: what attack scores prove about a mechanism, each statement with its own confidence."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from psidp.auditing.bands import RocBand, roc_band, tpr_interval
from psidp.auditing.curves import Approximate
from psidp.auditing.pairs import pair_auc, pair_wins
from psidp.auditing.scores import Scores
from psidp.auditing.thresholds import Thresholds
from psidp.guarantee import Guarantee
from psidp.maths.bisection import bracket, halvings
from psidp.maths.profile import delta_from_psi
from psidp.notebook_view import NotebookView
from psidp.symbols import symbol

__all__ = ["FORM", "AuditResult"]

FORM = "psidp-audit-1"


@dataclass(frozen=True, eq=False)
class AuditResult(NotebookView):
    """A lower bound on psi, and what else the same scores say. Each statement holds with the stated confidence.

    psi is a lower bound on the sensitivity index of every mechanism that could have made these scores, kappa being its
    chance of outright failure (that of the claim, else 0). No audit can prove privacy: psi = 0 says that nothing was
    found, not that there is nothing.
    """

    psi: float
    """Lower bound, rounded down."""
    estimate: float
    """sqrt 2 Phi^-1 of the empirical AUC: the psi that the ranks suggest, with no guarantee."""
    method: str
    used: tuple[str, ...]
    """The tests that made the bound, in case the method chose among several."""
    confidence: float
    kappa: float
    claimed: Guarantee | None
    p_value: float | None
    """Smallest alpha at which the claim is refuted; None without a claim."""
    seed: int
    """Of the random pairs and of the simulated experiments: give it to audit to see the same numbers again."""
    scores: Scores = field(repr=False)

    @property
    def n_in(self) -> int:
        """How many in-scores there were."""
        return self.scores.n_in

    @property
    def n_out(self) -> int:
        """How many out-scores there were."""
        return self.scores.n_out

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted at this confidence; False without a claim."""
        return self.p_value is not None and self.p_value <= self.alpha

    @property
    def alpha(self) -> float:
        """1 - confidence."""
        return 1.0 - self.confidence

    def epsilon(self, delta: float, mechanism: Literal["any", "gaussian"] = "any") -> float:
        """Lower bound on epsilon at delta, rounded down.

        For any mechanism it is read off the thresholds. Say "gaussian" only of a mechanism known to be Gaussian: then
        psi decides and the bound is far larger; of randomised response with epsilon = 1 it would claim 5.58.
        """
        delta = symbol("delta").number(delta)
        if mechanism == "any":
            return Thresholds(self.scores).strength(Approximate(delta), self.alpha)
        if mechanism != "gaussian":
            raise ValueError(f'mechanism must be "any" or "gaussian", got mechanism={mechanism!r}.')
        return _epsilon_below(self.psi, delta)

    def roc(self, fpr: Any = None) -> RocBand:
        """The empirical ROC curve with a band that holds the true one everywhere at once."""
        grid = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 257)]) if fpr is None else symbol("fpr").array(fpr)
        return roc_band(self.scores, np.atleast_1d(grid), self.alpha)

    def tpr(self, fpr: float) -> tuple[float, float]:
        """Interval for the attack's true positive rate at a false positive rate."""
        return tpr_interval(self.scores, symbol("fpr").number(fpr), self.alpha)

    @property
    def auc(self) -> float:
        """Area under the empirical ROC curve; ties count one half."""
        return self.scores.auc

    @cached_property
    def auc_interval(self) -> tuple[float, float]:
        """Interval for the attack's AUC, exact for all distributions of scores: from the disjoint pairs."""
        return pair_auc(*pair_wins(self.scores, self.seed), self.alpha)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        return {
            "form": FORM,
            "psi": self.psi,
            "estimate": self.estimate,
            "method": self.method,
            "used": list(self.used),
            "confidence": self.confidence,
            "kappa": self.kappa,
            "n_in": self.n_in,
            "n_out": self.n_out,
            "claimed": None if self.claimed is None else self.claimed.to_dict(),
            "p_value": self.p_value,
            "refuted": self.refuted,
            "auc": self.auc,
            "auc_interval": list(self.auc_interval),
            "epsilon": {"delta": 1e-5, "lower": self.epsilon(1e-5)},
            "tpr": [{"fpr": x, "interval": list(self.tpr(x))} for x in (0.001, 0.01, 0.1)],
            "seed": self.seed,
        }


def _epsilon_below(psi: float, delta: float) -> float:
    """Largest epsilon at which a psi-mechanism still exceeds delta, rounded down."""

    def exceeds(epsilon: float) -> bool:
        return delta_from_psi(psi, epsilon) > delta * (1.0 + 1e-9)

    high = 1.0
    while exceeds(high) and high < 1e6:
        high *= 2.0
    return bracket(exceeds, 0.0, high, halvings(80))[0]
