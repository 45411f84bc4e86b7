"""The law of the loss of one step, cut into cells of a lattice and rounded to either side."""

from dataclasses import dataclass

import numpy as np

from psidp.accounting.composition import Array, cut, loss
from psidp.accounting.table import LIBM, ULP
from psidp.maths.normal import tail

__all__ = ["Law"]

REMOVE, ADD, GAUSS, SYMMETRIC = 1, -1, 0, 2


@dataclass(frozen=True)
class Law:
    """The loss of one step of one group under numerator and denominator, and which losses the grid keeps.

    `kind` is the sign of the composition's column: 1 remove, -1 add, 2 the symmetric C_gamma of batches drawn without
    replacement (the loss of "remove" where it is positive, its mirror image where it is negative, the rest at 0);
    0 is a plain Gaussian, whose sigma is 1/psi.
    """

    sigma: float
    q: float
    count: float
    kind: int
    low: float
    high: float

    def beyond(self, eta: float) -> tuple[float, float]:
        """Mass above the grid under the numerator and under the denominator of the likelihood ratio."""
        if self.kind == ADD:
            return 0.0, 0.0
        x = np.array([np.ceil(self.high / eta) * eta])
        return tuple(float(above[0]) for above, _ in self._tails(x)[0])  # type: ignore[return-value]

    def masses(self, eta: float, up: bool) -> tuple[int, Array, float]:
        """First lattice point, the masses from there on, and how far the losses may be from where they are put.

        Upwards, every loss moves to both ends of its cell so that both measures keep their mass (connecting the dots),
        and roundings go to the upper end; downwards, to the lower end.
        """
        first, last = int(np.floor(self.low / eta)), int(np.ceil(self.high / eta))
        x = np.arange(first, last + 1) * eta
        tails, size, off = self._tails(x)
        (mass, noise), (other, other_noise) = (_cells(above, below, size) for above, below in tails)
        if not up:
            return first, np.maximum(mass - noise, 0.0), off
        mass = np.maximum(mass + noise, 0.0)
        ahead = np.exp(x[:-1])
        share = (mass - ahead * other + 2.0 * noise + ahead * other_noise) / -np.expm1(-eta)
        share = np.where(np.isfinite(share), np.clip(share, 0.0, mass), mass)
        placed = np.zeros(mass.size + 1)
        placed[:-1] += mass - share
        placed[1:] += share
        placed[1] += tails[0][1][0]
        return first, placed, off

    def _tails(self, x: Array) -> tuple[tuple[tuple[Array, Array], tuple[Array, Array]], Array, float]:
        """(P(L > x), P(L <= x)) under numerator and denominator, a scale of their rounding, and the cuts' error."""
        if self.kind == GAUSS:
            psi = 1.0 / self.sigma
            g = (x - 0.5 * psi * psi) * self.sigma
            off = 8.0 * ULP * float(np.abs(x).max() + psi * psi)
            return (_both(g), _both(g + psi)), np.minimum(g * g, 3600.0) + psi, off
        at = np.abs(x) if self.kind == SYMMETRIC else self.kind * x
        g = cut(self.sigma, self.q, at)
        plain, mixed = _both(g), self._mixture(g)
        size, off = np.minimum(g * g, 3600.0) + 8.0 / self.sigma, self._error(g, at)
        if self.kind == REMOVE:
            return (mixed, plain), size, off
        if self.kind == ADD:
            return (plain[::-1], mixed[::-1]), size, off
        up = x >= 0
        one = np.where(up, mixed[0], 1.0 - plain[0]), np.where(up, 1.0 - mixed[0], plain[0])
        two = np.where(up, plain[0], 1.0 - mixed[0]), np.where(up, 1.0 - plain[0], mixed[0])
        return (one, two), size, off

    def _error(self, g: Array, x: Array) -> float:
        """How far the losses at the cuts g may be from x, where there is any mass."""
        inside = np.abs(g) < 60.0 + 2.0 / self.sigma
        at, v = loss(np.array(self.sigma), np.array(self.q), g[inside])
        t = np.abs(g[inside]) / self.sigma + 0.5 / self.sigma**2
        off = np.abs(at - x[inside]) + LIBM * ULP * (v * t + np.abs(at))
        return float(off.max(initial=0.0))

    def _mixture(self, g: Array) -> tuple[Array, Array]:
        (a, b), (c, d) = _both(g), _both(g - 1.0 / self.sigma)
        return (1.0 - self.q) * a + self.q * c, (1.0 - self.q) * b + self.q * d


def _both(g: Array) -> tuple[Array, Array]:
    """Phi(-g) and Phi(g)."""
    return np.asarray(tail(g)), np.asarray(tail(-g))


def _cells(above: Array, below: Array, size: Array) -> tuple[Array, Array]:
    """Masses between neighbouring cuts and a bound of their rounding."""
    mass = np.where(above[:-1] < 0.5, above[:-1] - above[1:], below[1:] - below[:-1])
    noise = ULP * (32.0 + 8.0 * np.maximum(size[:-1], size[1:])) * np.minimum(above[:-1], below[1:])
    return mass, noise + 4.0 * ULP * (above[:-1] > 0.4) * (below[1:] > 0.4)
