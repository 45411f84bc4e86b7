"""Random allocation: every record in one of T batches, a random one, anew in every epoch.

With the record, an epoch's T noisy sums are N(psi e_i, I) for a random i; without it N(0, I). The likelihood ratio is
the mean of T independent l = e^(psi g - psi^2/2), g ~ N(0, 1) without the record. Its law is that of a sum, found by
doubling on a geometric grid: the pair (P, Q) of a + b batches is Q = Qa x Qb, P = (a Pa x Qb + b Qa x Pb)/(a + b),
which keeps the order of pairs (docs/design/sampling.md). From above, sums are split between the grid points around
them; from below, all sums near one grid point are merged, their masses under both laws known. All terms are positive.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, exp, expm1, floor, inf, log, log1p, log2
from typing import ClassVar

import numpy as np

from psidp.accounting.composition import Array
from psidp.accounting.contours.mgf_table import ULP
from psidp.accounting.pld.pair import Atoms, PairLaw, split
from psidp.accounting.pld.step_law import log_mass, log_tail

__all__ = ["Allocation"]

FINE, ROUGH, MANY = 0.02, 0.03, 64
"""Step of the last grid over the deviation of the loss, which widens it by some 1e-4 of itself; for many batches."""
BUCKET = 8.0
"""Lost masses are rounded down to powers of e^8, so that questions near each other share one law."""
LEAST = 1e-290
"""Masses below this may have lost digits to underflow."""
FLOOR = 1e-305


@dataclass(frozen=True)
class Allocation:
    """`count` epochs of allocation to `batches` batches, seen from one direction."""

    sigma: float
    batches: int
    count: float
    added: bool = False
    called: ClassVar[str] = "epochs of random allocation"

    @property
    def psi(self) -> float:
        """psi of an epoch in which everybody knows the batch."""
        return 1.0 / self.sigma

    @property
    def most(self) -> float:
        """The largest loss of an epoch: there is none."""
        return inf

    @property
    def mirrored(self) -> "Allocation":
        """The same epochs seen from the other direction."""
        return replace(self, added=not self.added)

    def law(self, log_lost: float) -> PairLaw:
        """The law for a lattice on which a mass of e^log_lost may be counted as infinite."""
        log_lost = max(floor(log_lost / BUCKET) * BUCKET, -640.0)
        above, below = (_sum(self.psi, self.batches, log_lost, up) for up in (True, False))
        made = {True: above.atoms(self.added), False: below.atoms(self.added)}
        infinite = (above.zero if self.added else above.infinite) * (1.0 + 2.0 * above.wrong) + FLOOR
        ends = float(made[True].loss.min()), float(made[True].loss.max())
        made[False] = made[False].up_to(ends[1])
        return PairLaw(self.count, lambda _, up: made[up], ends, log(infinite))


@dataclass(frozen=True)
class _Sum:
    """The pair of `terms` batches on a grid: place i is the sum e^(i eta); p and q are its masses under both laws.

    From below, all sums around e^((i + 1/2) eta) are one outcome, whose likelihood ratio is p/q. `zero` is a mass
    under Q where the sum counts as 0, `infinite` one under P where it counts as infinite. Masses have a relative
    error of at most `wrong`, sums of at most `off`.
    """

    above: bool
    terms: int
    eta: float
    first: int
    p: Array
    q: Array
    zero: float
    infinite: float
    wrong: float
    off: float

    def atoms(self, added: bool) -> Atoms:
        """The outcomes, with the numerator's masses."""
        if self.above:
            loss = (self.first + np.arange(self.p.size)) * self.eta - log(self.terms)
            mass = (self.q if added else self.p) * (1.0 + 2.0 * self.wrong) + FLOOR
            return Atoms(mass, -loss if added else loss, self.off + 4.0 * ULP * float(np.abs(loss).max()))
        some = np.minimum(self.p, self.q) > LEAST
        top, bottom = (self.q[some], self.p[some]) if added else (self.p[some], self.q[some])
        return Atoms(top * (1.0 - 2.0 * self.wrong), np.log(top / bottom), self.off + 4.0 * self.wrong)

    def finer(self, eta: float) -> "_Sum":
        """The same on a grid whose step is a whole part of this one's."""
        times = round(self.eta / eta)
        if times == 1:
            return self
        wide = np.zeros((2, self.p.size * times))
        shift = 0 if self.above else times // 2
        wide[:, shift::times] = self.p, self.q
        return replace(self, eta=eta, first=self.first * times, p=wide[0], q=wide[1])

    def trimmed(self, lost: float) -> "_Sum":
        """Without the ends that hold less than `lost`: infinite and zero from above, merged into others from below."""
        if not (self.p.size > 2):
            return self
        start = int(np.searchsorted(np.cumsum(np.maximum(self.p, self.q)), lost))
        stop = self.p.size - int(np.searchsorted(np.cumsum(self.p[::-1]), lost))
        start, stop = min(start, stop - 1), max(stop, start + 1)
        p, q = self.p[start:stop].copy(), self.q[start:stop].copy()
        ends = [(float(x[:start].sum()), float(x[stop:].sum())) for x in (self.p, self.q)]
        if self.above:
            zero, infinite = self.zero + sum(ends[1]), self.infinite + sum(ends[0])
            return replace(self, first=self.first + start, p=p, q=q, zero=zero, infinite=infinite)
        p[[0, -1]] += ends[0]
        q[[0, -1]] += ends[1]
        return replace(self, first=self.first + start, p=p, q=q)


@lru_cache(maxsize=32)
def _sum(psi: float, batches: int, log_lost: float, above: bool) -> _Sum:
    """The pair of all batches, by doubling and adding."""
    lost = exp(log_lost) / (4.0 * log2(batches + 1.0) + 4.0)
    fine = (FINE if batches <= MANY else ROUGH) * min(_spread(psi, batches) ** 0.5, 0.5 + 0.1 * psi)

    def step(terms: int) -> float:
        """The grid's step for so many terms: each grid adds about as much to the variance of the whole."""
        return float(fine * 2.0 ** floor(0.5 * log2(batches / terms)))

    power, whole = _one(psi, step(1), lost, above), None
    for bit in range(batches.bit_length()):
        if batches >> bit & 1:
            whole = power if whole is None else _plus(whole, power, step(whole.terms + power.terms)).trimmed(lost)
        if batches >> (bit + 1):
            power = _plus(power, power, step(2 * power.terms)).trimmed(lost)
    assert whole is not None
    return whole


def _spread(psi: float, batches: int) -> float:
    """log of 1 + the variance of the likelihood ratio."""
    square = psi * psi
    return log1p(expm1(square) / batches) if square < 600.0 else square - log(batches)


def _one(psi: float, eta: float, lost: float, above: bool) -> _Sum:
    """The pair of one batch: cells of the noise between the grid's points."""
    reach = (-2.0 * log(lost)) ** 0.5
    first, last = floor((-reach * psi - 0.5 * psi * psi) / eta), ceil((reach * psi + 0.5 * psi * psi) / eta)
    g = np.arange(first, last + 1) * (eta / psi) + 0.5 * psi
    q, p = (log_mass(g[:-1] - shift, g[1:] - shift) for shift in (0.0, psi))
    log_q, log_p = 0.5 * (q[0] + q[1]), 0.5 * (p[0] + p[1])
    wrong = float(np.max(np.maximum(p[1] - p[0], q[1] - q[0])))
    if not above:
        return _Sum(False, 1, eta, first, np.exp(log_p), np.exp(log_q), 0.0, 0.0, wrong, 0.0)
    place = np.arange(first, last) * eta
    share = split(log_p - log_q, place, place + eta)
    ends = np.zeros((2, log_p.size + 1))
    for row, mass, up in zip(ends, (log_p, log_q), (share, _other(share, eta)), strict=True):
        row[:-1] = np.exp(mass) * (1.0 - up)
        row[1:] += np.exp(mass) * up
    tails = np.exp(log_tail(np.array([psi - g[0], g[-1] - psi, -g[0], g[-1]]))) * (1.0 + 1e-9)
    off = 2.0 * wrong + 16.0 * ULP * psi * (float(np.abs(g).max()) + psi)
    infinite, zero = float(tails[:2].sum()), float(tails[2:].sum())
    return _Sum(True, 1, eta, first, ends[0], ends[1], zero, infinite, wrong + 8.0 * ULP, off)


def _other(share: Array, eta: float) -> Array:
    """The share of Q that goes up, from that of P: t e^-eta/(1 - t + t e^-eta)."""
    return np.asarray(share * exp(-eta) / (1.0 + share * expm1(-eta)))


def _plus(a: _Sum, b: _Sum, eta: float) -> _Sum:
    """The pair of the batches of both: diagonal by diagonal, since log(e^i + e^j) - i depends on j - i alone."""
    twice = a is b
    a, b = a.finer(eta), b.finer(eta)
    gap = b.first - a.first
    d = np.arange(0 if twice else gap - a.p.size + 1, gap + b.p.size)
    log_sum = np.maximum(d * eta, 0.0) + np.log1p(np.exp(-np.abs(d) * eta))
    place = np.floor(log_sum / eta + (0.0 if a.above else 0.5)).astype(np.int64)
    share = split(log_sum, place * eta, (place + 1) * eta) if a.above else np.zeros(d.size)
    low, high = np.maximum(gap - d, 0), np.minimum(b.p.size + gap - d, a.p.size)
    first = min(int((low + place).min()), gap, 0)
    p, q = np.zeros((2, max(int((high + place).max()), gap + b.p.size, a.p.size) - first + 1))
    total = a.terms + b.terms
    ap, bp = a.p * (a.terms / total), b.p * (b.terms / total)
    rows = zip(d.tolist(), low.tolist(), high.tolist(), (low + place - first).tolist(), strict=True)
    for (k, start, stop, at), up, other in zip(rows, share.tolist(), _other(share, eta).tolist(), strict=True):
        one, two = slice(start, stop), slice(start + k - gap, stop + k - gap)
        both = 2.0 if twice and k else 1.0
        more_q = a.q[one] * (b.q[two] * both)
        more_p = ap[one] * (b.q[two] * both) + a.q[one] * (bp[two] * both)
        end = at + stop - start
        p[at:end] += more_p * (1.0 - up)
        q[at:end] += more_q * (1.0 - other)
        if a.above:
            p[at + 1 : end + 1] += more_p * up
            q[at + 1 : end + 1] += more_q * other
    for zero, parts, start in ((a.zero, (bp, b.q), gap - first), (b.zero, (ap, a.q), -first)):
        if zero:
            p[start : start + parts[0].size] += zero * parts[0]
            q[start : start + parts[0].size] += zero * parts[1]
    wrong = a.wrong + b.wrong + (2.0 * d.size + 16.0) * ULP
    off = max(a.off, b.off) + 16.0 * ULP * (float(log_sum.max()) + eta) if a.above else 0.0
    infinite = (a.terms * a.infinite + b.terms * b.infinite) / total * (1.0 + wrong)
    return _Sum(a.above, total, eta, a.first + first, p, q, a.zero * b.zero, infinite, wrong, off)
