"""Mixtures: pairs of Gaussian mixtures on a line, for k records of a sampled run and for Poisson under replace-one.

In units of the noise, k records each sampled with rate q shift the sum by j/sigma with the binomial chance of j out of
k, against no shift; one record replaced by another shifts it by +1/(2 sigma) or -1/(2 sigma) with chance q. The
likelihood ratio increases with the noise g, so cells of g are outcomes whose masses under both laws are sums of the
normal's; docs/design/sampling.md proves that no data are worse.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import comb, inf, log, log1p
from typing import ClassVar

import numpy as np

from psidp.accounting.composition import Array
from psidp.accounting.contours.mgf_table import LIBM, ULP
from psidp.accounting.pld.pair import Atoms, PairLaw, split
from psidp.accounting.pld.step_law import FINEST, log_mass, log_tail

__all__ = ["Mixture"]

COARSE = 4096
"""Points that show how the loss grows with the noise."""
WORTH = 1e-12
"""Relative error granted to the weights of the shifts."""
SMALL = 1e-9


@dataclass(frozen=True)
class Mixture:
    """`count` steps of P = sum of e^weight N(shift, 1) against Q, likewise; `added` where Q is the numerator."""

    p: tuple[tuple[float, float], ...]
    q: tuple[tuple[float, float], ...]
    count: float
    psi: float
    added: bool = False
    called: ClassVar[str] = "sampled steps"

    @classmethod
    def group(cls, sigma: float, rate: float, size: int, count: float) -> "Mixture":
        """k records removed, each of which is in the batch with chance q."""
        out = log1p(-rate)
        weights = [log(comb(size, j)) + j * log(rate) + (size - j) * out for j in range(size + 1)]
        return cls(tuple((w, j / sigma) for j, w in enumerate(weights)), ((0.0, 0.0),), count, size / sigma)

    @classmethod
    def replaced(cls, sigma: float, rate: float, count: float) -> "Mixture":
        """One record replaced by another, opposite one; the same in both directions."""
        out, half = (log1p(-rate), 0.0), 0.5 / sigma
        return cls((out, (log(rate), half)), (out, (log(rate), -half)), count, 1.0 / sigma)

    @property
    def most(self) -> float:
        """The largest loss of one step: where records are added, that of noise which says that none was drawn."""
        return -self.p[0][0] if self.added else inf

    @property
    def mirrored(self) -> "Mixture":
        """The same steps seen from the other direction, which is the same one where a record is replaced."""
        return self if len(self.q) > 1 else replace(self, added=not self.added)

    def law(self, log_lost: float) -> PairLaw:
        """The law for a lattice on which a mass of e^log_lost may be counted as infinite."""
        rare = log_lost - log(len(self.p))
        kept = replace(self, p=tuple(part for part in self.p if part[0] > rare))
        dropped = float(np.logaddexp.reduce([part[0] for part in self.p if part[0] <= rare] or [-inf])) + SMALL
        reach = [end for law in (kept.p, kept.q) for end in _range(law, log_lost)]
        cells = _Cells(kept, min(reach), max(reach), dropped)
        low, high = cells.losses
        ends = (-high, -low) if self.added else (low, high)
        return PairLaw(self.count, cells, ends, cells.log_outside(self.added))


@dataclass(frozen=True)
class _Cells:
    """The noise from low to high, cut into cells; what lies outside is dropped below and infinite above.

    So are shifts so rare that together they weigh e^dropped under P; where Q is the numerator, each cell counts them.
    """

    pair: Mixture
    low: float
    high: float
    dropped: float

    @cached_property
    def losses(self) -> tuple[float, float]:
        low, high = self._loss(np.array([self.low, self.high]))[0].tolist()
        return low, high

    def log_outside(self, added: bool) -> float:
        law = np.array(self.pair.q if added else self.pair.p)
        sides = np.concatenate((log_tail(law[:, 1] - self.low), log_tail(self.high - law[:, 1])))
        outside = float(np.logaddexp.reduce(np.concatenate((law[:, 0], law[:, 0])) + sides)) + SMALL
        return outside if added else float(np.logaddexp(outside, self.dropped))

    def __call__(self, eta: float, above: bool) -> Atoms:
        g = self._cuts(eta)
        loss, error = self._loss(g)
        top, bottom = (self._masses(law, g) for law in (self.pair.p, self.pair.q))
        if self.pair.added:
            top, bottom, loss, error = bottom[:, ::-1], top[:, ::-1], -loss[::-1], error[::-1]
        off = 2.0 * float(error.max())
        if not above:
            bottom[1] = np.logaddexp(bottom[1], self.dropped) if self.pair.added else bottom[1]
            return Atoms(np.exp(top[0]), top[0] - bottom[1], off)
        left, right = loss[:-1], loss[1:]
        share = split(top[1] - bottom[0], left, right)
        mass = np.exp(top[1])
        return Atoms(np.concatenate((mass * (1.0 - share), mass * share)), np.concatenate((left, right)), off)

    def _cuts(self, eta: float) -> Array:
        """Cells within which neither the noise nor the loss moves far."""
        g = np.linspace(self.low, self.high, COARSE)
        way = np.diff(self._loss(g)[0]) * (2.0 / eta) + np.diff(g) / FINEST
        arc = np.concatenate(([0.0], np.cumsum(way)))
        cuts = np.interp(np.linspace(0.0, arc[-1], int(np.ceil(arc[-1])) + 1), arc, g)
        return np.unique(np.concatenate((cuts, [self.low, self.high])))

    def _loss(self, g: Array) -> tuple[Array, Array]:
        """log dP/dQ at g, and a bound of its rounding."""
        (top, one), (bottom, two) = (_log_density(law, g) for law in (self.pair.p, self.pair.q))
        return top - bottom, one + two + 2.0 * ULP * (np.abs(top) + np.abs(bottom))

    def _masses(self, law: tuple[tuple[float, float], ...], g: Array) -> Array:
        """log of the mass in each cell, from below and from above."""
        low, high = np.full(g.size - 1, -np.inf), np.full(g.size - 1, -np.inf)
        for weight, shift in law:
            least, most = log_mass(g[:-1] - shift, g[1:] - shift)
            wrong = WORTH * (1.0 + abs(weight)) + 4.0 * ULP * abs(shift) * (np.abs(g[1:]) + abs(shift) + 1.0)
            low, high = np.logaddexp(low, least + weight - wrong), np.logaddexp(high, most + weight + wrong)
        return np.stack((low - 1e-14 * len(law), high + 1e-14 * len(law)))


def _range(law: tuple[tuple[float, float], ...], log_lost: float) -> tuple[float, float]:
    """The noise outside of which this law has less than e^log_lost on either side."""
    kept = [(shift, (2.0 * (weight - log_lost) + 2.0) ** 0.5) for weight, shift in law if weight > log_lost]
    return min(shift - reach for shift, reach in kept), max(shift + reach for shift, reach in kept)


def _log_density(law: tuple[tuple[float, float], ...], g: Array) -> tuple[Array, Array]:
    """log of sum e^(weight + shift g - shift^2/2) and a bound of its rounding, which weighs terms by their share."""
    terms = np.array([weight + shift * g - 0.5 * shift * shift for weight, shift in law])
    sizes = np.array([WORTH / ULP * (1.0 + abs(w)) + LIBM * (np.abs(s * g) + s * s + abs(w)) for w, s in law])
    value = np.logaddexp.reduce(terms, axis=0)
    return value, ULP * ((np.exp(terms - value) * sizes).sum(0) + LIBM * len(law))
