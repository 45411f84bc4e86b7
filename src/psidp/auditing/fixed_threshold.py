"""FixedThreshold: one threshold chosen before the scores were seen, and the exact limits of its two error rates."""

from dataclasses import dataclass

from psidp.auditing.curves import Gaussian
from psidp.auditing.scores import Scores
from psidp.guarantee import Guarantee
from psidp.maths.binomial import rate_above, rate_below
from psidp.maths.bisection import bracket, ratio_of

__all__ = ["FixedThreshold"]


@dataclass(frozen=True, slots=True)
class FixedThreshold:
    """Counts at one threshold: a score strictly above it says "in"."""

    hits: int
    n_in: int
    alarms: int
    n_out: int

    @classmethod
    def of(cls, scores: Scores, threshold: float) -> "FixedThreshold":
        """The counts of these scores."""
        hits, alarms = int(scores.above(threshold)), int(scores.outs_above(threshold))
        return cls(hits, scores.n_in, alarms, scores.n_out)

    def rates(self, alpha: float) -> tuple[float, float]:
        """Lower limit of the true positive rate and upper limit of the false one, each wrong with alpha/2 at most."""
        tpr = rate_below(self.hits, self.n_in, alpha / 2.0)
        return float(tpr), float(rate_above(self.alarms, self.n_out, alpha / 2.0))

    def psi(self, alpha: float, kappa: float = 0.0) -> float:
        """Lower bound on psi, wrong with probability alpha at most, rounded down."""
        tpr, fpr = self.rates(alpha)
        if not (tpr > fpr and fpr < 1.0):
            return 0.0
        return float(Gaussian(kappa).implied(tpr, fpr)) * (1.0 - 1e-9)

    def p_value(self, claimed: Guarantee) -> float:
        """Smallest alpha at which the claim is refuted, to a relative 1e-9, rounded up."""
        if not self._refutes(claimed, 1.0):
            return 1.0
        wide = ratio_of(1.0 + 1e-9)
        return bracket(lambda alpha: not self._refutes(claimed, alpha), 1e-300, 1.0, wide, geometric=True)[1]

    def _refutes(self, claimed: Guarantee, alpha: float) -> bool:
        tpr, fpr = self.rates(alpha)
        return tpr > float(claimed.roc(fpr))
