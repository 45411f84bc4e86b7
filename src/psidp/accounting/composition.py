"""The composition: sampled Gaussian steps seen from one direction, merged into columns the contour can read.

Letters follow docs/design/accounting.md. One step adds sigma*g with g ~ N(0, 1); with t = g/sigma - 1/(2 sigma^2)
the likelihood ratio is F(g) = 1 - q + q e^t and the loss l = log F. The moment generating function of the loss is
A(1+z) in the remove direction and A(-z) in the add direction, A(s) = E[F(g)^s].
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "ComplexArray", "Composition", "loss"]

Array = NDArray[Any]
"""Real numbers, of double or extended precision."""
ComplexArray = NDArray[Any]


def loss(sigma: Array, q: Array, g: Array) -> tuple[Array, Array]:
    """l = log F(g) and v = q e^t/F(g), the derivative of l being v/sigma; v increases with g from 0 to 1."""
    t = g / sigma - 0.5 / (sigma * sigma)
    capped = np.minimum(t, 700.0)
    log_f = np.log1p(q * np.expm1(capped)) + (t - capped)
    return log_f, q * np.exp(t - log_f)


@dataclass(frozen=True)
class Composition:
    """`count` steps each of the sampled Gaussian (sigma, q), some of them mirrored, and plain Gaussians
    whose squared psi add up to `gauss`.

    `sign` is +1 where the record is removed (the mixture is the numerator), -1 where it is added, and 2 for
    C_gamma, the symmetric bound for batches drawn without replacement.
    """

    sigma: Array
    q: Array
    count: Array
    sign: Array
    gauss: float = 0.0

    @classmethod
    def merge(cls, rows: Iterable[tuple[float, float, float, int]], gauss: float = 0.0) -> "Composition":
        """The composition of rows (sigma, q, count, sign), equal rows added up, unsampled ones moved into gauss."""
        counts: dict[tuple[float, float, int], float] = {}
        for sigma, q, count, sign in rows:
            if q == 1.0:
                gauss += count / (sigma * sigma)
            elif q > 0.0:
                counts[sigma, q, sign] = counts.get((sigma, q, sign), 0.0) + count
        keys = sorted(counts)
        columns = np.array([(s, q, counts[s, q, sign], sign) for s, q, sign in keys], dtype=np.float64).reshape(-1, 4)
        return cls(columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3], gauss)

    @property
    def mirrored(self) -> "Composition":
        """The same steps seen from the other direction."""
        sign = np.where(self.sign == 2.0, 2.0, -self.sign)
        return Composition(self.sigma, self.q, self.count, sign, self.gauss)

    @cached_property
    def steps(self) -> float:
        """How many sampled steps there are."""
        return float(self.count.sum())

    def order(self, c: float) -> Array:
        """Real part of s on the line Re z = c, per group."""
        return np.where(self.sign > 0, 1.0 + c, -c)
