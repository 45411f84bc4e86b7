r"""The Mann-Whitney statistic of a Guarantee's own experiment: its moments, and a proved bound on its upper tail.

The experiment: out-scores are N(0,1), in-scores N(psi,1); with probability kappa an in-score is +inf, an out-score
-inf. S is the share of (in, out) pairs that the in-score wins. S = E S + H + R, where H sums independent terms, one a
score, and R is degenerate and smaller by a factor sqrt(n). docs/design/audit.md proves each line used here.
"""

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from scipy.special import ndtr, owens_t

__all__ = ["MannWhitney"]

SHEVTSOVA = (0.4748, 0.33554, 0.415)
"""Berry-Esseen for equal laws: min(.4748 r, .33554 (r + .415))/sqrt(N), r = E|X|^3/sd^3 (Shevtsova 2011)."""
SHEVTSOVA_UNEQUAL = 0.56
"""Berry-Esseen for unequal laws: .56 sum E|X_i|^3/(sum Var X_i)^(3/2) (Shevtsova 2010)."""
NODES = np.linspace(-9.0, 9.0, 721)
WEIGHTS = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()
SLACK = 1e-7
"""Relative error granted to moments by quadrature and to Owen's T; tests/maths/test_mann_whitney.py measures less."""


@dataclass(frozen=True)
class MannWhitney:
    """The share of pairs won by the in-score, for n_in and n_out independent scores under (psi, kappa)."""

    psi: float
    kappa: float
    n_in: int
    n_out: int

    @cached_property
    def loss(self) -> float:
        """1 - E S: the chance that an out-score wins, (1 - kappa)^2 Phi(-psi/sqrt 2)."""
        return float((1.0 - self.kappa) ** 2 * ndtr(-self.psi / sqrt(2.0)))

    @cached_property
    def term_variance(self) -> float:
        """Variance of E[S | one score]: of 1 - V = (1 - kappa) Phi(-N(psi,1)), or 0 with probability kappa."""
        h = self.psi / sqrt(2.0)
        square = (1.0 - self.kappa) ** 3 * (ndtr(-h) - 2.0 * owens_t(h, 1.0 / sqrt(3.0)))
        return max(float(square) - self.loss**2, 0.0)

    @cached_property
    def term_third(self) -> float:
        """E|V - E V|^3, rounded up."""
        values = (1.0 - self.kappa) * ndtr(-(self.psi + NODES))
        finite = float(WEIGHTS @ np.abs(values - self.loss) ** 3)
        return ((1.0 - self.kappa) * finite + self.kappa * self.loss**3) * (1.0 + SLACK)

    @cached_property
    def sd(self) -> float:
        """Standard deviation of H."""
        return sqrt(self.term_variance * (1.0 / self.n_in + 1.0 / self.n_out))

    @cached_property
    def normal_error(self) -> float:
        """Largest distance of H's distribution function from the normal one (Berry and Esseen)."""
        if not self.term_variance > 0.0:
            return 1.0
        ratio = self.term_third / self.term_variance**1.5
        if self.n_in == self.n_out:
            one, two, three = SHEVTSOVA
            return float(min(one * ratio, two * (ratio + three)) / sqrt(2.0 * self.n_in) * (1.0 + SLACK))
        weights = (1.0 / self.n_in**2 + 1.0 / self.n_out**2) / (1.0 / self.n_in + 1.0 / self.n_out) ** 1.5
        return float(SHEVTSOVA_UNEQUAL * ratio * weights * (1.0 + SLACK))

    @cached_property
    def rest_fourth(self) -> float:
        """Bound on E R^4: (9 s^4 + 3 s^2 (1/n_in + 1/n_out) + 4 s^2/(n_in n_out))/(n_in n_out)^2, s^2 = E h^2."""
        square = self.loss * (1.0 - self.loss) - 2.0 * self.term_variance
        square = max(square, 0.0) + SLACK * self.loss
        pairs = self.n_in * self.n_out
        inner = 9.0 * square**2 + 3.0 * square * (1.0 / self.n_in + 1.0 / self.n_out) + 4.0 * square / pairs
        return inner / float(pairs) ** 2

    def tail(self, lost: float) -> float:
        """Upper bound on P(share of pairs lost <= `lost`): the proved p-value of so good an attack.

        P(H + R >= s) <= P(H >= s - r) + P(R >= r) <= Phi(-(s - r)/sd) + normal_error + E R^4/r^4, for the best r.
        """
        s = self.loss - lost
        if not (s > 0.0 and self.sd > 0.0):
            return 1.0
        r = self.rest_fourth**0.25 * np.geomspace(1.5, 60.0, 40)
        bound = ndtr(-(s - r) / self.sd * (1.0 - SLACK)) + self.normal_error + self.rest_fourth / r**4
        return min(float(bound.min()) * (1.0 + SLACK), 1.0)

    def estimate(self, lost: float) -> float:
        """The bare normal approximation to the same probability: a starting point, never a certificate."""
        pairs = self.n_in * self.n_out
        rest = max(self.loss * (1.0 - self.loss) - 2.0 * self.term_variance, 0.0) / pairs
        return float(ndtr((lost - self.loss) / sqrt(self.sd**2 + rest + 1e-300)))
