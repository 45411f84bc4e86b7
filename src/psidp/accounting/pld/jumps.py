"""Jumps: the few steps that lose much are counted one by one, beside the many that hardly lose anything.

At tiny rates one large loss is likelier than many middling ones: the loss has two scales, and no tilt suits both. So
the noise of a step is cut at g0. Steps below it are small losses, which a tilted FFT composes; steps above it, K = 0,
1, 2, ... of them, are composed by plain sums of positive terms, which keep their digits however small they are
(docs/design/accounting.md, "Jumps").
"""

from dataclasses import dataclass, replace

import numpy as np

from psidp.accounting.composition import Array, Composition, cut, loss
from psidp.accounting.contours.error_bounds import NotCertified
from psidp.accounting.contours.mgf_table import ULP
from psidp.accounting.pld.aside import Aside
from psidp.accounting.pld.convolution import Part
from psidp.accounting.pld.loss_grid import Lattice
from psidp.accounting.pld.small_losses import LONG, SPARE, SmallLosses, on_grid
from psidp.accounting.pld.step_law import Law, log_tail

__all__ = ["Jumps"]

LARGE = 1 << 12
"""Points of the grid of jumps."""
MOST = 8
"""Jumps that are counted one by one; what more of them do is bounded (Chernoff)."""
QUIET = 0.25
"""With less noise than this, levels answer; a loss of hundreds has no place here."""
NEGLIGIBLE = 1e-7
"""Beside delta."""
ROOM = 0.03
LIGHT = 0.7
"""How fast the tilt may raise a small loss at g0, as a share of how fast the noise falls there."""
OFTEN = 0.5
"""How many jumps there may be without the record, about."""
SHORT, SHORTER = 0.5, 0.125
"""The largest small loss beside epsilon, at most; less in long runs, whose grids are the finer for it."""
ROUNDING = 1e-10
"""Relative error of the sums of jumps: 8 times 4,100 roundings and some exponentials, and far more."""
SOME = 1e-9
"""log of the mass of small losses, which is at most 1 but for its rounding."""
FLAT, FLOOR = 400.0, 1e-300
"""The tilt over the whole grid of jumps, at most; what every mass of an upper end gains, since products underflow."""


@dataclass(frozen=True)
class _Count:
    """K jumps on the grid: log of their masses at (first + n) eta + base, and of the mass beyond the grid's end."""

    first: int
    log_mass: Array
    log_beyond: float
    base: float
    off: float


class Jumps:
    """Small losses on grids of several tilts, jumps by their number, for questions near one epsilon."""

    method = "jumps"

    def __init__(self, steps: Composition, epsilon: float, log_delta: float, finer: int = 1) -> None:
        with np.errstate(all="ignore"):
            self.aside = Aside.around(steps, Lattice.laws_of(steps, log_delta), epsilon, log_delta, ROOM)
            law = self.aside.laws[0]
            self.count = law.count
            g0, c = _threshold(law, epsilon, steps.gauss)
            self.small = SmallLosses([replace(law, high=min(g0, law.high)), *self.aside.laws[1:]], c, epsilon, finer)
            self.eta = 2.0 * max(law.losses[1], epsilon) / LARGE
            large = replace(law, low=g0) if g0 < law.high else None
            upper = Part.of(large.upwards(self.eta, "left out"), 1.0, self.eta) if large else None
            self.more = _more(self.small, upper, law.count, epsilon, log_delta)
            if not self.more.log_bound(np.array([epsilon]))[0] <= log_delta:
                raise NotCertified("more steps lose much than can be counted")
            self.counts, self.sides = [], []
            for up in (False, True):
                masses = None
                if large:
                    masses = upper if up else Part.of(on_grid(large, self.eta, False), 1.0, self.eta)
                self.counts.append(_counted(masses, self.more.jumps, law.count, c, self.eta, FLOOR if up else 0.0))
                self.sides.append([self.small.sides(up, law.count - k) for k in range(len(self.counts[-1]))])

    @staticmethod
    def fits(steps: Composition) -> bool:
        """Whether there is one group of sampled steps, the record removed, beside plain Gaussians at most."""
        one = not steps.pairs and steps.count.size == 1 and bool((steps.sign == 1.0).all())
        return one and steps.steps > 2.0 and float(steps.sigma[0]) >= QUIET

    def log_delta(self, epsilon: Array) -> tuple[Array, Array]:
        """Proved lower and upper bounds of log delta at each epsilon."""
        epsilon = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
        with np.errstate(all="ignore"):
            shift = max(side.shift for sides in self.sides[1] for side in sides)
            shift += 4.0 * sum(count.off for count in self.counts[1])
            low, high = self.aside.log_bounds(epsilon, shift)
            lower = np.logaddexp(np.array([self._kept(e, 0) for e in epsilon.tolist()]), low)
            upper = np.logaddexp(np.array([self._kept(e, 1) for e in epsilon.tolist()]), high)
            upper = np.logaddexp(upper, self.more.log_bound(epsilon))
            upper, lower = upper + 8.0 * ULP * (1.0 + np.abs(upper)), lower - 8.0 * ULP * (1.0 + np.abs(lower))
        return np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), 0.0, np.minimum(upper, 0.0))

    def _kept(self, epsilon: float, up: int) -> float:
        """log of what paths with no step above the grid add to delta, from below or from above."""
        sign = 2.0 * up - 1.0
        terms = []
        for jumps, sides in zip(self.counts[up], self.sides[up], strict=True):
            y = (jumps.first + np.arange(jumps.log_mass.size)) * self.eta + jumps.base
            x = epsilon - y - sign * (4.0 * jumps.off + 8.0 * ULP * (np.abs(y) + abs(jumps.base)))
            bounds = [side.log_delta(x, sign) for side in sides]
            bound = np.fmin.reduce(bounds) if up else np.fmax.reduce(bounds)
            terms.append(jumps.log_mass + (np.minimum(bound, SOME) if up else bound))
            if up:
                terms.append(np.array([jumps.log_beyond]))
        return log_sum(np.concatenate(terms)) + sign * ROUNDING


@dataclass(frozen=True)
class _More:
    """More than `jumps` jumps: they add at most e^(log_m - c epsilon) to delta, for each tilt c."""

    jumps: int
    c: Array
    log_m: Array

    def log_bound(self, epsilon: Array) -> Array:
        """log of that bound at each epsilon."""
        if not self.c.size:
            return np.full(epsilon.size, -np.inf)
        x = self.log_m - self.c * epsilon[:, None]
        return np.asarray(np.min(x + 1e-12 * (np.abs(self.log_m) + self.c * epsilon[:, None]), axis=1))


def _more(small: SmallLosses, jump: Part | None, count: float, epsilon: float, log_delta: float) -> _More:
    """How many jumps are worth counting, and Chernoff's bound of what more of them add."""
    most = int(min(MOST, count - 1.0, SPARE - 1.0))
    if jump is None:
        return _More(0, np.zeros(0), np.zeros(0))
    c = np.array(small.tilts[-1]) * np.geomspace(1e-3, 3.0, 40)
    log_a = np.array([small.log_mgf(x) for x in c.tolist()])
    rate = np.log(count) + np.array([jump.log_mgf(x) for x in c.tolist()]) - log_a
    total = count * log_a + np.array([small.log_mgf_plain(x) for x in c.tolist()])
    for jumps in range(most + 1):
        log_m = total + _poisson(rate, jumps + 1)
        if (log_m - c * epsilon).min() <= log_delta + np.log(NEGLIGIBLE):
            break
    return _More(jumps, c, log_m + (1.0 + c) * count * (small.off + jump.off) + 1e-9)


def log_sum(x: Array) -> float:
    """log of the sum of e^x: each term has a rounding of its own, and sums in pairs hardly add to it."""
    top = float(x.max(initial=-np.inf))
    return top + float(np.log(np.exp(x - top).sum())) if top > -np.inf else top


def _poisson(rate: Array, first: int) -> Array:
    """log of an upper bound of the sum of r^k/k! over k >= first, from log r; e^r where it does not fall yet."""
    ratio = np.exp(rate) / (first + 1.0)
    head = first * rate - float(np.log(np.arange(1.0, first + 1.0)).sum())
    return np.where(ratio < 0.9, head - np.log1p(-np.minimum(ratio, 0.9)), np.exp(np.minimum(rate, 700.0)))


def _counted(jump: Part | None, jumps: int, count: float, c: float, eta: float, floor: float) -> list[_Count]:
    """0, 1, 2, ... jumps among so many steps, tilted on the way so that no mass underflows before its time."""
    found = [_Count(0, np.zeros(1), -np.inf, 0.0, 0.0)]
    if jump is None:
        return found
    c = min(c, FLAT / (LARGE * eta))
    first = int(jump.index[0])
    tilted = jump.log_mass + c * jump.value
    top = float(tilted.max())
    one = np.zeros(int(jump.index[-1]) - first + 1)
    one[jump.index - first] = np.exp(tilted - top)
    whole, scale, log_ways, log_over = np.ones(1), 0.0, 0.0, -np.inf
    log_total = jump.log_mgf(0.0)
    for k in range(1, jumps + 1):
        room = LARGE - k * first + 1
        both = np.convolve(whole, one) + floor if whole.size else whole
        over = both[max(room, 0) :]
        whole, scale = both[: max(room, 0)], scale + top
        log_ways += float(np.log((count - k + 1.0) / k))
        log_over = log_over + log_total
        if over.size:
            far = (k * first + max(room, 0) + np.arange(over.size)) * eta
            log_over = float(np.logaddexp(log_over, log_sum(np.log(over) - c * far) + scale))
        y = (k * first + np.arange(whole.size)) * eta
        log_mass = np.log(whole) + (scale + log_ways) - c * y
        found.append(_Count(k * first, log_mass, log_over + log_ways, k * jump.base, k * jump.off))
        size = float(whole.max(initial=0.0))
        if size > 0.0:
            whole, scale = whole / size, scale + float(np.log(size))
    return found


def _threshold(law: Law, epsilon: float, gauss: float) -> tuple[float, float]:
    """Where to cut the noise, and the slope of -log delta at epsilon; both are guesses.

    delta is about the largest chance of a jump of epsilon - x beside a normal sum of x, so the slope is x over the
    variance there. g0 is where a small loss, tilted by that slope, still falls.
    """
    sigma, q = np.array(law.sigma), np.array(law.q)
    g = np.linspace(-8.0, law.high, 4000)
    value, v = loss(sigma, q, g)
    square = np.cumsum(np.exp(-0.5 * g * g) * np.expm1(value) ** 2) * (g[1] - g[0]) / np.sqrt(2.0 * np.pi)
    x = epsilon * np.linspace(0.0, 1.0, 400)
    at = cut(law.sigma, law.q, np.maximum(epsilon - x, 1e-300))
    chance = np.minimum(np.log(law.q * law.count) + log_tail(at - 1.0 / law.sigma), 0.0)
    g0 = float(cut(law.sigma, law.q, np.array(0.3 * epsilon)))
    rare = float(g[np.log(law.count) + log_tail(g) > np.log(OFTEN)][-1])
    for _ in range(6):
        variance = law.count * float(np.interp(g0, g, square)) + gauss
        best = int(np.argmax(chance - 0.5 * x * x / variance))
        slope = np.gradient(chance, x)[0] if best == 0 else x[best] / variance
        c = max(float(slope), 1.0 / epsilon)
        within = float(cut(law.sigma, law.q, np.array(epsilon * (SHORTER if law.count >= LONG else SHORT))))
        g0 = float(g[((1.0 + c) * v / sigma <= LIGHT * g) | (g < 2.0)][-1])
        g0 = max(min(g0, within), rare, 2.0)
    return g0, c
