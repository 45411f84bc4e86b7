"""The saddle: where to put the contour. Nothing here is proved or needs to be; a poor guess costs width, not truth."""

from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np

from psidp.accounting.composition import Array, Composition, loss
from psidp.accounting.contours.window import Window

__all__ = ["Saddle", "dyadic", "saddle_at_delta", "saddle_at_epsilon"]

NODES = 80
BOTTOM = -8.5
LOWEST, HIGHEST, PITCH = np.log(1e-5), np.log(1e10), np.log(1e15) / 21.0
"""The first scan of log c; it begins lower where the loss is spread more widely than 1e3."""
USUAL = np.linspace(LOWEST, HIGHEST, 22)
COMMON = USUAL[5:14]
"""The scan of most runs, tilts of 0.04 to 2e4; the wide one follows where the best c is not well inside."""
FLAT = 600.0
"""Exponents beyond this are summed in logarithms."""
ZOOM = np.linspace(-1.0, 1.0, 15)
ROUNDS = 2


def dyadic(x: Array) -> Array:
    """x rounded down to 20 significant bits, so that small integer multiples of it, and 1 + x, are exact."""
    mantissa, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.floor(mantissa * 2.0**20), exponent - 20))


@dataclass(frozen=True, slots=True)
class Saddle:
    """A contour Re z = c, the epsilon and log delta it suits, and K(c') at some c' > c for the tail beyond.

    c and every c' have 20 bits: s = 1 + c is then the order that the formulas mean, in every precision.
    """

    c: float
    epsilon: float
    log_delta: float
    beyond_c: Array
    beyond_k: Array


@np.errstate(all="ignore")
def saddle_at_delta(steps: Composition, log_delta: float, window: Window | None = None) -> Saddle:
    """The contour for epsilon(delta): c with log delta_SPA(c) = log delta, or the one for epsilon = 0 if further."""
    return _saddle(steps, window, log_delta, None, ROUNDS)


@np.errstate(all="ignore")
def saddle_at_epsilon(steps: Composition, epsilon: float, window: Window | None = None, rounds: int = ROUNDS) -> Saddle:
    """The contour for delta(epsilon): the minimum of |integrand| on the positive axis, after so many zooms."""
    return _saddle(steps, window, -80.0, epsilon, rounds)


def _saddle(steps: Composition, window: Window | None, log_delta: float, epsilon: float | None, rounds: int) -> Saddle:
    """One scan, then zooms around the best c so far; where the scan's end is best, the same with a wide scan."""
    scan = _Scan(steps, window, log_delta)
    wide = _wide(steps)
    if wide is USUAL and steps.count.size:
        at, saddle = _zoomed(scan, COMMON, log_delta, epsilon, rounds)
        if COMMON[1] < at < COMMON[-3]:
            return saddle
    return _zoomed(scan, wide, log_delta, epsilon, rounds)[1]


def _zoomed(scan: "_Scan", log_c: Array, log_delta: float, epsilon: float | None, rounds: int) -> tuple[float, Saddle]:
    """log c after all zooms, and the saddle there."""
    seen_c, seen_k, half = [], [], PITCH
    for _ in range(rounds + 1):
        c = np.exp(log_c)
        k, eps, spa = scan(c)
        seen_c.append(c)
        seen_k.append(k)
        at = _choose(log_c, eps, spa, log_delta, epsilon)
        zoom = log_c
        log_c, half = at + half * ZOOM, half * (ZOOM[1] - ZOOM[0])
    c_best = float(dyadic(np.exp(at)))
    c, k = dyadic(np.concatenate(seen_c)), np.concatenate(seen_k)
    beyond = (c > c_best * 1.0001) & (c < 1e3 * c_best) & np.isfinite(k)
    found = epsilon if epsilon is not None else max(0.0, float(np.interp(at, zoom, eps)))
    return at, Saddle(c_best, found, float(np.interp(at, zoom, spa)), c[beyond], k[beyond])


def _wide(steps: Composition) -> Array:
    """log c from below 1/(spread of the loss) on: with next to no noise a step loses 1/(2 sigma^2) or nothing."""
    precision = 1.0 / (steps.sigma * steps.sigma)
    spread = float((steps.count * precision * (1.0 + 0.25 * steps.q * precision)).sum()) + steps.gauss
    low = log(0.03) - 0.5 * log(max(spread, 1.0))
    if low >= LOWEST:
        return USUAL
    return np.asarray(np.linspace(low, HIGHEST, 1 + int(np.ceil((HIGHEST - low) / PITCH - 1e-9))))


def _choose(log_c: Array, eps: Array, spa: Array, log_delta: float, epsilon: float | None) -> float:
    """The log c of the scan that suits the question."""
    at = float(np.interp(0.0 if epsilon is None else epsilon, np.maximum.accumulate(eps), log_c))
    if epsilon is not None:
        return at
    return max(at, float(np.interp(-log_delta, np.maximum.accumulate(-spa), log_c)))


class _Scan:
    """K, K' and K'' on a coarse grid of g, good to a few digits."""

    def __init__(self, steps: Composition, window: Window | None, log_delta: float) -> None:
        self.steps = steps
        self.sampled = bool(steps.count.size)
        if not self.sampled:
            return
        sigma, q = steps.sigma[:, None], steps.q[:, None]
        top = 1.0 / sigma + np.sqrt(-2.0 * log_delta) + 8.0 if window is None else window.cut + 7.0 * window.b
        g = BOTTOM + (top - BOTTOM) * np.linspace(0.0, 1.0, NODES)
        weight = np.exp(-0.5 * g * g)
        weight /= weight.sum(1, keepdims=True)
        if window is not None:
            weight *= window.keep(g)[0]
        self.loss = loss(sigma, q, g)[0]
        self.reach = np.inf if window is not None else (top - 3.0) * sigma
        self.moments = np.stack((weight, weight * self.loss, weight * self.loss * self.loss), axis=2)
        self.still = self.moments.sum(1)[:, None, :]
        self.log_weight = np.log(np.diff(g[:, :2]) / np.sqrt(2.0 * np.pi)) - 0.5 * g * g
        if window is not None:
            self.log_weight += window.log_keep(g)
        self.log_q, self.precision = np.log(q), 1.0 / (sigma * sigma)

    @cached_property
    def log_one(self) -> Array:
        """log A(1) as these nodes have it."""
        return self._in_logarithms(self.loss[:, None, :])[0]

    def __call__(self, c: Array) -> tuple[Array, Array, Array]:
        """K(c), the epsilon whose saddle is c, and the saddle-point value of log delta there."""
        gauss = self.steps.gauss
        k, k1, k2 = 0.5 * gauss * c * (c + 1.0), gauss * (c + 0.5), gauss + 0.0 * c
        if self.sampled:
            d, d1, d2 = self._sampled(c)
            k, k1, k2 = k + d, k1 + d1, k2 + d2
        eps = k1 - 1.0 / c - 1.0 / (1.0 + c)
        curvature = np.maximum(k2, 0.0) + 1.0 / (c * c) + 1.0 / ((1.0 + c) * (1.0 + c))
        spa = k - c * eps - np.log(c * (c + 1.0)) - 0.5 * np.log(2 * np.pi * curvature)
        return k, eps, spa

    def _sampled(self, c: Array) -> tuple[Array, Array, Array]:
        """K, K', K'' of the sampled groups; the far peak, where F^s outruns the noise, from its closed form."""
        sign, count = self.steps.sign[:, None], self.steps.count[:, None]
        s = np.where(sign > 0, 1.0 + c, -c)
        x = s[:, :, None] * self.loss[:, None, :]
        clipped = np.maximum(x[:, :, 0], x[:, :, -1]) > FLAT
        some = clipped.any(0)
        sums = np.matmul(np.expm1(np.minimum(x, FLAT) if some.any() else x), self.moments)
        log_a = np.log1p(np.maximum(sums[:, :, 0], -0.999))
        sums += self.still
        mean, square = sums[:, :, 1] / sums[:, :, 0], sums[:, :, 2] / sums[:, :, 0]
        if some.any():
            log_b, mean_b, square_b = self._in_logarithms(x[:, some])
            log_b -= np.where(sign > 0, self.log_one, 0.0)  # A(1) = 1
            for whole, part in ((log_a, log_b), (mean, mean_b), (square, square_b)):
                whole[:, some] = np.where(clipped[:, some], part, whole[:, some])
        jump = (sign > 0) & (s > self.reach)
        if jump.any():
            log_a, mean, square = self._with_far_peak(s, jump, log_a, mean, square)
        return (count * log_a).sum(0), (count * sign * mean).sum(0), (count * (square - mean * mean)).sum(0)

    def _with_far_peak(
        self, s: Array, jump: Array, log_a: Array, mean: Array, square: Array
    ) -> tuple[Array, Array, Array]:
        """The same three, with the peak at g = s/sigma added where these nodes do not reach it."""
        far = s * (self.log_q + 0.5 * (s - 1.0) * self.precision)
        both = np.logaddexp(log_a, np.where(jump, far, -np.inf))
        share = np.where(jump, np.exp(far - both), 0.0)
        center = self.log_q + (s - 0.5) * self.precision
        return (
            both,
            (1.0 - share) * mean + share * center,
            (1.0 - share) * square + share * (center * center + self.precision),
        )

    def _in_logarithms(self, x: Array) -> tuple[Array, Array, Array]:
        """log of the sum of e^x over the noise, and the mean and the mean square of the loss under it."""
        exponent = self.log_weight[:, None, :] + x
        top = exponent.max(2, keepdims=True)
        p = np.exp(exponent - top)
        total = p.sum(2)
        first, second = ((p * (self.loss**k)[:, None, :]).sum(2) / total for k in (1, 2))
        return np.log(total) + top[:, :, 0], first, second
