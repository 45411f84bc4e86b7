"""The lattice: the privacy loss rounded up and down to a grid, composed by a tilted FFT. Slower and wider, never wrong.

The road for few steps at small rates and for tiny noise, where the contour is too long. Each step's loss is rounded
up (an upper bound of delta) and down (a lower bound), so the composition errs by T steps of the grid at most. A step
whose loss alone decides the question is not on the grid: it is counted in closed form, as by the window.
"""

from dataclasses import dataclass

import numpy as np

from psidp.accounting.composition import Array, Composition, loss
from psidp.accounting.law import Law
from psidp.accounting.table import LIBM, ULP

__all__ = ["Lattice"]

GOLDEN = 0.3819660112501051
TILTS = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.0])


@dataclass(frozen=True)
class Side:
    """One grid: suffix sums of the composed masses, and everything they may be wrong by."""

    start: float
    eta: float
    a: Array
    b: Array
    scale: float
    c: float
    wrong: float
    wrapped: float
    shift: float

    def delta(self, epsilon: Array) -> tuple[Array, Array]:
        """delta of the kept paths on this grid, and its absolute error."""
        k = np.clip(np.ceil((epsilon - self.start) / self.eta), 0, self.a.size - 1).astype(np.int64)
        value = self.a[k] - np.exp(epsilon) * self.b[k]
        error = self.wrong * np.exp(self.scale - self.c * epsilon) + 8.0 * self.a.size * ULP * self.a[k]
        return value, error


class Lattice:
    """Two grids of the composed loss, made for questions near one epsilon."""

    road = "lattice"

    def __init__(self, steps: Composition, epsilon: float, log_delta: float, points: int) -> None:
        self.steps = steps
        self.least = float(-(steps.count * np.log1p(-steps.q)).sum()) * (1.0 + 1e-12)
        signs = set(steps.sign.tolist())
        self.exact = steps.gauss == 0.0 and signs in ({1.0}, {-1.0})
        with np.errstate(all="ignore"):
            self.laws = self._laws(epsilon, log_delta)
            span = self._span(epsilon)
            self.upper = self._side(span, points, True, epsilon)
            self.lower = self._side(span, points, False, epsilon)

    def log_delta(self, epsilon: Array) -> tuple[Array, Array]:
        """Proved lower and upper bounds of log delta at each epsilon."""
        epsilon = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
        with np.errstate(all="ignore"):
            low, low_error = self.lower.delta(epsilon + self.lower.shift)
            high, high_error = self.upper.delta(epsilon - self.upper.shift)
            low_aside, high_aside = self._aside(epsilon)
            upper = np.log(np.minimum(high + high_error + high_aside, 1.0)) + 8.0 * ULP * 800.0
            lower = np.log(np.maximum(low - low_error, 0.0) + low_aside) - 8.0 * ULP * 800.0
        return np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), 0.0, np.minimum(upper, 0.0))

    def _laws(self, epsilon: float, log_delta: float) -> list[Law]:
        """Which losses of each group are worth a place on the grid."""
        reach = np.sqrt(2.0 * (np.log(self.steps.steps + 1.0) - log_delta + 14.0))
        laws = []
        for sigma, q, count, sign in zip(*self._columns(), strict=True):
            far = float(loss(np.array(sigma), np.array(q), np.array(reach + (1.0 / sigma if sign > 0 else 0.0)))[0])
            if self.exact:
                far = min(far, max(self.least + sign * 1.1 * epsilon, 0.0) + 2.0 * self.least / count)
            bounds = {1: (float(np.log1p(-q)), far), -1: (-far, -float(np.log1p(-q))), 2: (-far, far)}[int(sign)]
            laws.append(Law(sigma, q, count, int(sign), *bounds))
        if self.steps.gauss > 0:
            psi = float(np.sqrt(self.steps.gauss))
            half = 0.5 * self.steps.gauss
            laws.append(Law(1.0 / psi, 1.0, 1.0, 0, half - reach * psi, half + reach * psi))
        return laws

    def _columns(self) -> tuple[list[float], list[float], list[float], list[float]]:
        steps = self.steps
        return steps.sigma.tolist(), steps.q.tolist(), steps.count.tolist(), steps.sign.tolist()

    def _span(self, epsilon: float) -> float:
        """A window wide enough that what wraps around it does not matter; tried out on small grids."""
        span = 2.0 * max(law.high - law.low for law in self.laws) + 2.0 * epsilon
        for _ in range(40):
            side = self._side(span, 4096, True, epsilon)
            if side.wrapped <= 1e-9:
                break
            span *= 1.6
        return span

    def _side(self, span: float, points: int, up: bool, epsilon: float) -> Side:
        """The composition on one grid: tilt, transform, raise to the powers, transform back, sum up."""
        eta = span / points
        parts = [_Part(*law.masses(eta, up), law.count, eta) for law in self.laws]
        c = _tilt(parts, epsilon)
        start = np.floor((epsilon - 0.5 * span) / eta)
        product, log_high, scale = np.ones(points // 2 + 1, complex), np.zeros(points // 2 + 1), 0.0
        for part in parts:
            log_m = part.log_mgf(c)
            tilted = part.mass * np.exp(c * part.value - log_m)
            wave = np.fft.rfft(np.bincount(part.place(points), tilted, points))
            product *= np.exp(part.count * np.log(wave))
            miss = ULP * (LIBM * np.log2(points) + 64.0 + LIBM * (c * float(tilted @ np.abs(part.value)) + abs(log_m)))
            log_high += part.count * np.log(np.abs(wave) + miss)
            scale += part.count * log_m
        turn = np.exp(2j * np.pi * np.mod(np.arange(points // 2 + 1) * start, points) / points)
        at = (start + np.arange(points)) * eta
        mass = np.maximum(np.fft.irfft(product * turn, points), 0.0) * np.exp(scale - c * at)
        a, b = (np.cumsum(x[::-1])[::-1] for x in (mass, mass * np.exp(-at)))
        high = np.exp(log_high)
        each = 2.0 * (high - np.abs(product)).sum() / points + ULP * LIBM * np.log2(points) * 2.0 * high.sum() / points
        rounding = each * (1.0 + 1.0 / -np.expm1(-c * eta))
        wrapped = _outside(parts, c, float(at[0]), float(at[-1]))
        shift = 4.0 * sum(part.count * part.off for part in parts) + 4.0 * ULP * (abs(at[0]) + abs(at[-1]))
        return Side(float(at[0]), eta, a, b, scale, c, 1.01 * (wrapped + float(rounding)), wrapped, float(shift))

    def _aside(self, epsilon: Array) -> tuple[Array, Array]:
        """What paths with a step above the grid add to delta: P(any) - e^epsilon Q(any) where that step decides."""
        counts = np.array([law.count for law in self.laws])
        above = np.array([law.beyond(self.upper.eta) for law in self.laws])
        numerator, denominator = -np.expm1((counts[:, None] * np.log1p(-above)).sum(0))
        settled = numerator - np.exp(epsilon) * denominator
        slack = 1e-12 * (numerator + np.exp(epsilon) * denominator)
        top = min((law.high for law in self.laws if law.kind > 0), default=0.0) - self.upper.shift
        decided = self.exact & (top >= self.least + epsilon)
        upper = np.where(decided, np.maximum(settled, 0.0) + slack, numerator * (1.0 + 1e-12))
        return np.maximum(settled - slack, 0.0), upper


class _Part:
    """One step's masses on the grid."""

    def __init__(self, first: int, mass: Array, off: float, count: float, eta: float) -> None:
        self.first = first
        self.mass, self.off, self.count = mass, off, count
        self.value = (self.first + np.arange(mass.size)) * eta

    def place(self, points: int) -> Array:
        """Where each mass goes on a circle of `points`."""
        return np.mod(self.first + np.arange(self.mass.size), points)

    def log_mgf(self, c: float) -> float:
        """log sum mass e^(c value)."""
        x = c * self.value
        top = max(float(x[0]), float(x[-1]))
        return top + float(np.log(self.mass @ np.exp(x - top)))


def _tilt(parts: list[_Part], epsilon: float) -> float:
    """The c with the least K(c) - c epsilon - log c, which is convex, roughly; any c > 0 is valid."""

    def cost(log_c: float) -> float:
        c = float(np.exp(log_c))
        return sum(p.count * p.log_mgf(c) for p in parts) - c * epsilon - log_c

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
