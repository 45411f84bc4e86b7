"""The lattice: the privacy loss rounded up and down to a grid, composed by a tilted FFT. Slower and wider, never wrong.

The road for few steps at small rates and for tiny noise, where the contour is too long. Each step's loss is rounded
up (an upper bound of delta) and down (a lower bound), so the composition errs by at most T steps of the grid. A step
whose loss alone decides the question is not on the grid: it is counted in closed form, as by the window.
"""

from dataclasses import dataclass

import numpy as np

from psidp.accounting.composition import Array, Composition, loss
from psidp.accounting.table import LIBM, ULP
from psidp.maths.normal import tail

__all__ = ["Lattice"]

TILTS = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.0])


@dataclass(frozen=True)
class Law:
    """The loss of one step of one group: its tails, and the largest loss kept on the grid."""

    sigma: float
    q: float
    count: float
    kind: int  # +1 remove, -1 add, 0 plain Gaussian (sigma is 1/psi)
    low: float
    high: float

    def _g(self, x: Array) -> Array:
        """The g where l = x; -inf below the least loss."""
        grown = np.expm1(np.minimum(x, 700.0)) / self.q
        t = np.log1p(np.maximum(grown, -1.0)) + np.maximum(x - 700.0, 0.0)
        return np.asarray(self.sigma * t + 0.5 / self.sigma)

    def _edges(self, x: Array) -> tuple[Array, float]:
        """Cuts g of the noise at losses x, and how far the losses at these cuts may be from x."""
        if self.kind == 0:
            return (x - 0.5 / self.sigma**2) * self.sigma, 8.0 * ULP * float(np.abs(x).max() + 1.0 / self.sigma**2)
        g = self._g(self.kind * x)
        inside = np.isfinite(g) & (np.abs(g) < 60.0)
        at, v = loss(np.array(self.sigma), np.array(self.q), g[inside])
        t = np.abs(g[inside]) / self.sigma + 0.5 / self.sigma**2
        off = np.abs(at - self.kind * x[inside]) + LIBM * ULP * (v * t + np.abs(at))
        return g, float(off.max(initial=0.0))

    def tails(self, g: Array) -> tuple[Array, Array]:
        """P(L above) and P(L below) for a cut at g of the noise."""
        if self.kind == 0:
            return np.asarray(tail(g)), np.asarray(tail(-g))
        if self.kind < 0:
            return np.asarray(tail(-g)), np.asarray(tail(g))
        shifted = g - 1.0 / self.sigma
        keep = 1.0 - self.q
        return (
            np.asarray(keep * tail(g) + self.q * tail(shifted)),
            np.asarray(keep * tail(-g) + self.q * tail(-shifted)),
        )

    def beyond(self, eta: float) -> tuple[float, float]:
        """Mass above the grid under the numerator and under the denominator of the likelihood ratio."""
        cut = self._edges(np.array([np.ceil(self.high / eta) * eta]))[0]
        if self.kind < 0:
            return 0.0, 0.0
        other = tail(cut) if self.kind > 0 else tail(cut + 1.0 / self.sigma)
        return float(self.tails(cut)[0][0]), float(other[0])

    def masses(self, eta: float, sign: float) -> tuple[int, Array, float]:
        """First k, the masses of the cells (k eta, (k+1) eta], and the error of the cuts.

        `sign` = +1 for masses that are never too small, -1 for masses that are never too large.
        """
        first, last = int(np.floor(self.low / eta)), int(np.ceil(self.high / eta))
        cuts, off = self._edges(np.arange(first, last + 1) * eta)
        above, below = self.tails(cuts)
        mass = np.where(above[:-1] < 0.5, above[:-1] - above[1:], below[1:] - below[:-1])
        size = np.minimum(np.maximum(cuts[:-1] ** 2, cuts[1:] ** 2), 3600.0) + 1.0 / self.sigma
        noise = ULP * (32.0 + 8.0 * size) * np.minimum(above[:-1], below[1:])
        if sign > 0:
            mass[0] += below[0]
        return first, np.maximum(mass + sign * noise, 0.0), off


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
        self.remove = signs == {1.0}
        self.exact = steps.gauss == 0.0 and len(signs) == 1
        with np.errstate(all="ignore"):
            self.laws = self._laws(epsilon, log_delta)
            span = self._span(epsilon, log_delta)
            self.upper = self._side(span, points, 1.0, epsilon)
            self.lower = self._side(span, points, -1.0, epsilon)

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
            bounds = (np.log1p(-q), far) if sign > 0 else (-far, -np.log1p(-q))
            laws.append(Law(sigma, q, count, int(sign), *bounds))
        if self.steps.gauss > 0:
            psi = float(np.sqrt(self.steps.gauss))
            half = 0.5 * self.steps.gauss
            laws.append(Law(1.0 / psi, 1.0, 1.0, 0, half - reach * psi, half + reach * psi))
        return laws

    def _columns(self) -> tuple[list[float], list[float], list[float], list[float]]:
        steps = self.steps
        return steps.sigma.tolist(), steps.q.tolist(), steps.count.tolist(), steps.sign.tolist()

    def _span(self, epsilon: float, log_delta: float) -> float:
        """A window wide enough that what wraps around it does not matter; tried out on small grids."""
        span = 2.0 * max(law.high - law.low for law in self.laws) + 2.0 * epsilon
        for _ in range(40):
            side = self._side(span, 4096, 1.0, epsilon)
            if side.wrong * np.exp(side.scale - side.c * epsilon) <= 1e-6 * np.exp(log_delta):
                break
            span *= 1.6
        return span

    def _side(self, span: float, points: int, sign: float, epsilon: float) -> Side:
        """The composition on one grid: tilt, transform, raise to the powers, transform back, sum up."""
        eta = span / points
        parts = [_Part(*law.masses(eta, sign), law.count, eta, sign) for law in self.laws]
        c = _tilt(parts, epsilon)
        start = np.floor((epsilon - 0.5 * span) / eta)
        product, relative, scale = np.ones(points // 2 + 1, complex), 0.0, 0.0
        for part in parts:
            log_m = part.log_mgf(c)
            wave = np.fft.rfft(np.bincount(part.place(points), part.mass * np.exp(c * part.value - log_m), points))
            product *= np.exp(part.count * np.log(wave))
            size = LIBM * np.log2(points) + 64.0 + 8.0 * c * float(np.abs(part.value).max())
            relative, scale = relative + part.count * ULP * size, scale + part.count * log_m
        turn = np.exp(2j * np.pi * np.mod(np.arange(points // 2 + 1) * start, points) / points)
        at = (start + np.arange(points)) * eta
        mass = np.maximum(np.fft.irfft(product * turn, points), 0.0) * np.exp(scale - c * at)
        a, b = (np.cumsum(x[::-1])[::-1] for x in (mass, mass * np.exp(-at)))
        rounding = np.expm1(relative + LIBM * ULP * np.log2(points)) * (1.0 + 1.0 / -np.expm1(-c * eta))
        wrong = 1.01 * (_outside(parts, c, float(at[0]), float(at[-1])) + float(rounding))
        shift = sum(part.count * part.off for part in parts) + 4.0 * ULP * (abs(at[0]) + abs(at[-1]))
        return Side(float(at[0]), eta, a, b, scale, c, wrong, float(shift))

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
    """One step's masses on the grid: rounded up (sign > 0) or down."""

    def __init__(self, first: int, mass: Array, off: float, count: float, eta: float, sign: float) -> None:
        self.first = first + (1 if sign > 0 else 0)
        self.mass, self.off, self.count = mass, off, count
        self.value = (self.first + np.arange(mass.size)) * eta

    def place(self, points: int) -> Array:
        """Where each mass goes on a circle of `points`."""
        return np.mod(self.first + np.arange(self.mass.size), points)

    def log_mgf(self, c: float, thin: int = 1) -> float:
        """log sum mass e^(c value); `thin` > 1 for a guess from every thin-th value."""
        x = c * self.value[::thin]
        mass = self.mass if thin == 1 else np.add.reduceat(self.mass, np.arange(0, self.mass.size, thin))
        top = float(x.max())
        return top + float(np.log(mass @ np.exp(x - top)))


def _tilt(parts: list[_Part], epsilon: float) -> float:
    """The c with the least K(c) - c epsilon - log c, roughly; any c > 0 is valid."""
    tries = np.exp(np.linspace(np.log(1e-3), np.log(60.0), 24)) / max(epsilon, 1e-12)
    cost = [
        sum(p.count * p.log_mgf(c, max(1, p.mass.size // 1024)) for p in parts) - c * epsilon - np.log(c) for c in tries
    ]
    return float(tries[int(np.nanargmin(cost))])


def _outside(parts: list[_Part], c: float, low: float, high: float) -> float:
    """Bound of the tilted mass beyond the window on either side (Chernoff), as a share of all."""

    def share(a: float, edge: float) -> float:
        exponent = sum(p.count * (p.log_mgf(c + a) - p.log_mgf(c)) for p in parts) - a * edge
        return float(np.exp(min(exponent, 0.0)))

    return min(share(a, high) for a in c * TILTS) + min(share(-a, low) for a in c * TILTS)
