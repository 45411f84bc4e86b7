"""The lattice: the privacy loss laid on a grid, upwards and downwards, composed by a tilted FFT. Wider, never wrong.

The method for few steps at small rates and for tiny noise, where the contour is too long, and for C_gamma. A step whose
loss alone decides the question is not on the grid: it is counted in closed form, as by the window. Everything is kept
in logarithms, so that no loss is too large.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from psidp.accounting.composition import Array, Composition, cut
from psidp.accounting.contours.mgf_table import LIBM, ULP
from psidp.accounting.pld.step_law import ADD, Law, Masses

__all__ = ["Lattice"]

GOLDEN = 0.3819660112501051
TILTS = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.0])
DOUBTS = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0)
"""Logarithms of the chance granted to what the other steps may undo; the first that is small enough beside delta."""
LOST = 1e-6
"""What may wrap around the grid, beside delta."""
DEEP = 300.0
"""Exponents within which sums are scaled together."""


@dataclass(frozen=True)
class Side:
    """One grid: suffix sums of the composed, tilted masses, and everything they may be wrong by.

    Losses are start + k eta. Over the places from k on, with x the way from loss k, `a` sums the mass times e^(-cx) and
    `d` the mass times e^(-cx) (1 - e^-x): no term is negative. delta is in units of e^(scale - c epsilon).
    """

    start: float
    eta: float
    a: Array
    d: Array
    scale: float
    c: float
    wrong: float
    wrapped: float
    shift: float

    def log_delta(self, epsilon: Array, side: float) -> Array:
        """log delta of the kept paths on this grid, moved by its error to one side."""
        epsilon = epsilon - side * self.shift
        k = np.clip(np.nan_to_num(np.ceil((epsilon - self.start) / self.eta)), 0, self.a.size - 1)
        ahead = np.maximum(self.start + k * self.eta - epsilon, 0.0)
        k = k.astype(np.int64)
        value = np.exp(-self.c * ahead) * (self.a[k] * -np.expm1(-ahead) + np.exp(-ahead) * self.d[k])
        error = self.wrong + 16.0 * self.a.size * ULP * value
        inside = epsilon <= self.start + (self.a.size - 1) * self.eta
        log_unit = self.scale - self.c * epsilon
        slack = 16.0 * ULP * (abs(self.scale) + np.abs(self.c * epsilon))
        found = np.log(np.maximum(np.where(inside, value, 0.0) + side * error, 0.0)) + log_unit
        return np.asarray(found + side * slack)


class Lattice:
    """Two grids of the composed loss, made for questions near one epsilon."""

    method = "lattice"

    def __init__(self, steps: Composition, epsilon: float, log_delta: float, points: int, room: float = 0.1) -> None:
        self.steps, self.room = steps, room
        signs = set(steps.sign.tolist())
        self.exact = signs == {1.0} and not steps.pairs
        with np.errstate(all="ignore"):
            self.laws = self._laws(epsilon, log_delta)
            span = self._span(epsilon, log_delta, points)
            self.upper = self._side(span, points, True, epsilon)
            self.lower = self._side(span, points, False, epsilon)

    def log_delta(self, epsilon: Array) -> tuple[Array, Array]:
        """Proved lower and upper bounds of log delta at each epsilon."""
        epsilon = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
        with np.errstate(all="ignore"):
            low, high = self._aside(epsilon)
            upper = np.logaddexp(self.upper.log_delta(epsilon, 1.0), high)
            lower = np.logaddexp(self.lower.log_delta(epsilon, -1.0), low)
            upper, lower = upper + 8.0 * ULP * (1.0 + np.abs(upper)), lower - 8.0 * ULP * (1.0 + np.abs(lower))
        return np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), 0.0, np.minimum(upper, 0.0))

    @staticmethod
    def laws_of(steps: Composition, log_delta: float) -> list[Any]:
        """The laws of all groups, with the noise that matters to this delta."""
        rare = float(np.log(steps.steps + sum(pair.count for pair in steps.pairs) + 1.0)) - log_delta + 14.0
        reach = float(np.sqrt(2.0 * rare))
        laws: list[Any] = [pair.law(-rare) for pair in steps.pairs]
        for sigma, q, count, sign in _columns(steps):
            high = reach + (1.0 / sigma if sign > 0 else 0.0)
            laws.append(Law(sigma, q, count, int(sign), -reach, high))
        if steps.gauss > 0:
            psi = float(np.sqrt(steps.gauss))
            laws.append(Law(1.0 / psi, 1.0, 1.0, 1, -reach, reach + psi))
        return laws

    def _laws(self, epsilon: float, log_delta: float) -> list[Any]:
        """Which noise of each group is worth a place on the grid."""
        laws = self.laws_of(self.steps, log_delta)
        self.least, self.doubt = np.inf, 0.0
        if not self.exact:
            return laws
        orders = np.geomspace(1e-3, 1e6, 28) / max(float(self.steps.q.max()), 1e-12)
        totals = np.array([sum(law.count * law.log_moment_below(order) for law in laws) for order in orders.tolist()])
        for room, doubt in product((self.room, 3.0 * self.room, 0.1), DOUBTS):
            self.doubt, self.least = doubt, _floor(orders, totals, doubt)
            far = (1.0 + room) * epsilon + (1.0 + 0.1 * room) * self.least
            capped = [law if law.q == 1.0 else replace(law, high=_cap(law, far)) for law in laws]
            lost = max(float(np.log(law.count)) + law.beyond[1] for law in capped)
            if lost + (1.0 + room) * epsilon - doubt <= log_delta - 16.0:
                break
        return capped

    def _tilted(self, span: float, points: int, up: bool, epsilon: float) -> tuple[list["_Part"], float]:
        """The masses of every group on a grid of so many points, and the tilt."""
        eta = span / points
        parts = [_Part(law.upwards(eta) if up else law.downwards(eta), law.count, eta) for law in self.laws]
        return parts, _tilt(parts, epsilon)

    def _span(self, epsilon: float, log_delta: float, points: int) -> float:
        """A window wide enough that what wraps around it does not matter beside delta."""
        span = 2.0 * max(high - low for low, high in (law.losses for law in self.laws)) + 2.0 * epsilon
        widest, points = (8.0 * span, min(points, 1 << 14)) if self.steps.pairs else (np.inf, points)
        for _ in range(24):
            parts, c = self._tilted(span, points, True, epsilon)
            low = epsilon - sum(part.count * part.base for part in parts) - 0.5 * span
            scale = sum(part.count * part.log_mgf(c) for part in parts) - c * (low + 0.5 * span)
            wrapped = np.log(_outside(parts, c, low, low + span) + 1e-300) - np.log(max(c, 1.0))
            if wrapped <= max(log_delta - scale + np.log(LOST), np.log(1e-9 / max(c, 1.0)) - 20.0) or span > widest:
                break
            span *= 2.0
        return float(span)

    def _side(self, span: float, points: int, up: bool, epsilon: float) -> Side:
        """The composition on one grid: tilt, transform, raise to the powers, transform back, sum up."""
        eta = span / points
        parts, c = self._tilted(span, points, up, epsilon)
        base = sum(part.count * part.base for part in parts)
        start = np.floor((epsilon - base - 0.5 * span) / eta)
        product, log_high, scale = np.ones(points // 2 + 1, complex), np.zeros(points // 2 + 1), 0.0
        for part in parts:
            log_m = part.log_mgf(c)
            tilted = np.exp(part.log_mass + c * part.value - log_m)
            wave = np.fft.rfft(np.bincount(part.place(points), tilted, points))
            product *= np.exp(part.count * np.log(wave))
            miss = ULP * (LIBM * np.log2(points) + 64.0 + LIBM * (c * float(tilted @ np.abs(part.value)) + abs(log_m)))
            log_high += part.count * np.log(np.abs(wave) + miss)
            scale += part.count * log_m
        turn = np.exp(2j * np.pi * np.mod(np.arange(points // 2 + 1) * start, points) / points)
        at = (start + np.arange(points)) * eta
        mass = np.maximum(np.fft.irfft(product * turn, points), 0.0)
        a = _suffix(mass, c * eta)
        d = _suffix(np.append(a[1:], 0.0) * (np.exp(-c * eta) * -np.expm1(-eta)), (c + 1.0) * eta)
        high = np.exp(log_high)
        each = 2.0 * (high - np.abs(product)).sum() / points + ULP * LIBM * np.log2(points) * 2.0 * high.sum() / points
        rounding = each * min(1.0 + 1.0 / -np.expm1(-c * eta), 1.0 / (c * c * eta) + 1.0 / c)
        wrapped = _outside(parts, c, float(at[0]), float(at[-1])) * min(1.0, 1.0 / c)
        off = 4.0 * sum(part.count * part.off for part in parts) + 4.0 * ULP * (abs(at[0]) + abs(at[-1]))
        off += 4.0 * ULP * len(parts) * sum(part.count * abs(part.base) for part in parts)
        return Side(float(at[0]) + base, eta, a, d, scale + c * base, c, 1.01 * (wrapped + rounding), wrapped, off)

    def _aside(self, epsilon: Array) -> tuple[Array, Array]:
        """What paths with a step above the grid add to delta: P(any) - e^epsilon Q(any) where that step decides.

        It does unless the others lose more than `least`, which has the chance e^-doubt, whatever that step does.
        """
        counts, logs = np.array([law.count for law in self.laws]), np.array([law.beyond for law in self.laws])
        removed = np.array([law.kind != ADD for law in self.laws])
        anyone, settled, under = (
            _any(counts[rows], logs[rows, i]) for rows, i in ((removed | True, 0), (removed, 0), (removed, 1))
        )
        slack = max(law.beyond_error for law in self.laws)
        low = _minus(settled - slack, epsilon + under + slack)
        top = min((law.losses[1] for law in self.laws if law.kind != ADD), default=-np.inf) - self.upper.shift
        decided = self.exact & (top * (1.0 - 1e-12) >= self.least + epsilon)
        undecided = epsilon + under + slack - self.doubt
        exactly = np.logaddexp(_minus(anyone + slack, epsilon + under - slack), undecided)
        return low, np.where(decided, exactly, anyone + slack)


def _columns(steps: Composition) -> Iterator[tuple[float, float, float, float]]:
    return zip(steps.sigma.tolist(), steps.q.tolist(), steps.count.tolist(), steps.sign.tolist(), strict=True)


def _floor(orders: Array, totals: Array, doubt: float) -> float:
    """An x with P(sum of the losses < -x) <= e^-doubt under the denominator: Chernoff's bound at the best order."""
    found = np.where(np.isfinite(totals), (totals + doubt) / orders + 1e-12 * (np.abs(totals) + doubt) / orders, np.inf)
    return max(float(found.min()), 0.0)


def _cap(law: Law, far: float) -> float:
    """The noise up to which losses below `far` reach, within the law's own range."""
    return float(min(law.high, max(float(cut(law.sigma, law.q, np.array(far))), law.low + 1.0)))


def _any(counts: Array, log_p: Array) -> float:
    """log of 1 - prod (1 - p)^count."""
    total = float(np.logaddexp.reduce(np.append(np.log(counts) + np.log(_stretched(log_p)) + log_p, -np.inf)))
    return float(np.log(-np.expm1(-np.exp(total)))) if total > -30.0 else total


def _stretched(log_p: Array) -> Array:
    """-log(1 - p)/p."""
    p = np.exp(np.minimum(log_p, 0.0))
    return np.where(p > 1e-9, -np.log1p(-p) / np.maximum(p, 1e-300), 1.0 + 0.5 * p)


def _minus(a: float, b: Array) -> Array:
    """log(e^a - e^b); -inf where that is not positive."""
    return np.where(b < a, a + np.log1p(-np.exp(np.minimum(b - a, 0.0))), -np.inf)


def _suffix(mass: Array, decay: float) -> Array:
    """sum over j >= k of mass_j e^(-decay (j - k)), in blocks within which the powers are floats."""
    size = max(min(int(DEEP / max(decay, 1e-300)), mass.size), 1)
    blocks = -(-mass.size // size)
    padded = np.zeros(blocks * size)
    padded[: mass.size] = mass
    grown = np.exp(-decay * np.arange(size))
    inner = np.cumsum((padded.reshape(blocks, size) * grown)[:, ::-1], axis=1)[:, ::-1] / grown
    far, starts = np.exp(-decay * (size - np.arange(size))), inner[:, 0].tolist()
    carry = [0.0] * blocks
    for i in range(blocks - 2, -1, -1):
        carry[i] = starts[i + 1] + carry[i + 1] * float(far[0])
    inner += np.array(carry)[:, None] * far
    return np.asarray(inner.reshape(-1)[: mass.size])


class _Part:
    """One step's masses on the grid."""

    def __init__(self, masses: Masses, count: float, eta: float) -> None:
        index = np.flatnonzero(masses.mass)
        self.index, self.log_mass = masses.first + index, np.log(masses.mass[index])
        self.base, self.off, self.count = masses.base, masses.off, count
        self.value = self.index * eta

    def place(self, points: int) -> Array:
        """Where each mass goes on a circle of `points`."""
        return np.mod(self.index, points)

    def log_mgf(self, c: float) -> float:
        """log sum mass e^(c value)."""
        x = self.log_mass + c * self.value
        top = float(x.max())
        return top + float(np.log(np.exp(x - top).sum()))


def _tilt(parts: list[_Part], epsilon: float) -> float:
    """The c with the least K(c) - c epsilon - log c, which is convex, roughly; any c > 0 is valid."""

    def cost(log_c: float) -> float:
        c = float(np.exp(log_c))
        return sum(p.count * (p.log_mgf(c) + c * p.base) for p in parts) - c * epsilon - log_c

    scale = -float(np.log(max(epsilon, 1e-12)))
    low, high = min(scale, 0.0) - 7.0, scale + 14.0
    inner, outer = low + GOLDEN * (high - low), high - GOLDEN * (high - low)
    at_inner, at_outer = cost(inner), cost(outer)
    while high - low > 0.05:
        if at_inner <= at_outer:
            high, outer, at_outer = outer, inner, at_inner
            inner = low + GOLDEN * (high - low)
            at_inner = cost(inner)
        else:
            low, inner, at_inner = inner, outer, at_outer
            outer = high - GOLDEN * (high - low)
            at_outer = cost(outer)
    return float(np.exp(0.5 * (low + high)))


def _outside(parts: list[_Part], c: float, low: float, high: float) -> float:
    """Bound of the tilted mass beyond the window on either side (Chernoff), as a share of all."""

    def share(a: float, edge: float) -> float:
        exponent = sum(p.count * (p.log_mgf(c + a) - p.log_mgf(c)) for p in parts) - a * edge
        return float(np.exp(min(exponent, 0.0)))

    return min(share(a, high) for a in c * TILTS) + min(share(-a, low) for a in c * TILTS)
