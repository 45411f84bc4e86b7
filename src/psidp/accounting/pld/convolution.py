"""The convolution: masses of steps on one grid of losses, composed by a tilted FFT, with all that may be wrong."""

from dataclasses import dataclass

import numpy as np

from psidp.accounting.composition import Array, ComplexArray
from psidp.accounting.contours.mgf_table import LIBM, ULP
from psidp.accounting.pld.step_law import Masses

__all__ = ["Part", "Side", "composed", "outside", "powers", "tilt"]

GOLDEN = 0.3819660112501051
TILTS = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.0])
DEEP = 300.0
"""Exponents within which sums are scaled together."""


@dataclass(frozen=True)
class Side:
    """One grid: suffix sums of the composed, tilted masses, and everything they may be wrong by.

    Losses are start + k eta. Over the places from k on, with x the way from loss k, `a` sums the mass times e^(-cx) and
    `d` the mass times e^(-cx) (1 - e^-x): no term is negative. delta is in units of e^(scale - c epsilon). Losses may
    be off by `shift`, and so may the logarithms of an upper grid's masses, which are those of the noise times e^loss.
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
        slack = 16.0 * ULP * (abs(self.scale) + np.abs(self.c * epsilon)) + (self.shift if side > 0.0 else 0.0)
        found = np.log(np.maximum(np.where(inside, value, 0.0) + side * error, 0.0)) + log_unit
        return np.asarray(found + side * slack)


class Part:
    """The masses of one step, or of a block of steps, on a grid; `count` of them are composed.

    `missed` is how much of the masses, tilted, they may be wrong by in all, as a share.
    """

    def __init__(
        self, index: Array, log_mass: Array, count: float, eta: float, base: float = 0.0, off: float = 0.0
    ) -> None:
        self.index, self.log_mass, self.count, self.base, self.off = index, log_mass, count, base, off
        self.value = index * eta
        self.missed = 0.0
        self._log_mgfs: dict[float, float] = {}
        self._waves: dict[tuple[float, int], tuple[ComplexArray, Array, float]] = {}

    @classmethod
    def of(cls, masses: Masses, count: float, eta: float) -> "Part":
        """The law of one step as the grid has it."""
        index = np.flatnonzero(masses.mass)
        return cls(masses.first + index, np.log(masses.mass[index]), count, eta, masses.base, masses.off)

    def place(self, points: int) -> Array:
        """Where each mass goes on a circle of `points`."""
        return np.mod(self.index, points)

    def log_mgf(self, c: float) -> float:
        """log sum mass e^(c value)."""
        if c not in self._log_mgfs:
            x = self.log_mass + c * self.value
            top = float(x.max())
            self._log_mgfs[c] = top + float(np.log(np.exp(x - top).sum()))
        return self._log_mgfs[c]

    def wave(self, c: float, points: int) -> tuple[ComplexArray, Array, float]:
        """log of the transform of the tilted masses, over their sum, log of its modulus with its error, and log_mgf.

        They are the same for any number of steps, and kept.
        """
        if (c, points) not in self._waves:
            log_m = self.log_mgf(c)
            tilted = np.exp(self.log_mass + c * self.value - log_m)
            wave = np.fft.rfft(np.bincount(self.place(points), tilted, points))
            miss = ULP * (LIBM * np.log2(points) + 64.0 + LIBM * (c * float(tilted @ np.abs(self.value)) + abs(log_m)))
            self._waves[c, points] = np.log(wave), np.log(np.abs(wave) + miss), log_m
        return self._waves[c, points]


def tilt(parts: list[Part], epsilon: float) -> float:
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


def outside(parts: list[Part], c: float, low: float, high: float, further: float | None = None) -> float:
    """Bound of the tilted mass beyond the window on either side (Chernoff), as a share of all.

    Tilts are tried in proportion to c, and up to `further` where that is said.
    """
    tilts = TILTS * c if further is None else np.geomspace(0.02 * min(c, further), 3.0 * max(c, further), 20)

    def share(a: float, edge: float) -> float:
        exponent = sum(p.count * (p.log_mgf(c + a) - p.log_mgf(c)) for p in parts) - a * edge
        return float(np.exp(min(exponent, 0.0)))

    return min(share(a, high) for a in tilts) + min(share(-a, low) for a in tilts)


def powers(parts: list[Part], c: float, points: int) -> tuple[Array, Array, float]:
    """The transform of the composed, tilted masses, a bound of its modulus with its error, and the log of their sum."""
    log_product, log_high, scale = np.zeros(points // 2 + 1, complex), np.zeros(points // 2 + 1), 0.0
    for part in parts:
        log_wave, log_most, log_m = part.wave(c, points)
        log_product += part.count * log_wave
        log_high += part.count * log_most
        scale += part.count * log_m
    return np.where(np.isfinite(log_product.real), np.exp(log_product), 0.0), np.exp(log_high), scale


def composed(parts: list[Part], c: float, points: int, eta: float, center: float, further: float | None = None) -> Side:
    """The composition on one grid around a center: tilt, transform, raise to the powers, transform back, sum up."""
    base = sum(part.count * part.base for part in parts)
    start = np.floor((center - base - 0.5 * points * eta) / eta)
    product, high, scale = powers(parts, c, points)
    turn = np.exp(2j * np.pi * np.mod(np.arange(points // 2 + 1) * start, points) / points)
    at = (start + np.arange(points)) * eta
    mass = np.maximum(np.fft.irfft(product * turn, points), 0.0)
    a = _suffix(mass, c * eta)
    d = _suffix(np.append(a[1:], 0.0) * (np.exp(-c * eta) * -np.expm1(-eta)), (c + 1.0) * eta)
    each = 2.0 * (high - np.abs(product)).sum() / points + ULP * LIBM * np.log2(points) * 2.0 * high.sum() / points
    rounding = each * min(1.0 + 1.0 / -np.expm1(-c * eta), 1.0 / (c * c * eta) + 1.0 / c)
    missed = float(np.expm1(sum(part.count * np.log1p(part.missed) for part in parts)))
    wrapped = (outside(parts, c, float(at[0]), float(at[-1]), further) + missed) * min(1.0, 1.0 / c)
    off = 4.0 * sum(part.count * part.off for part in parts) + 4.0 * ULP * (abs(at[0]) + abs(at[-1]))
    off += 4.0 * ULP * len(parts) * sum(part.count * abs(part.base) for part in parts)
    return Side(float(at[0]) + base, eta, a, d, scale + c * base, c, 1.01 * (wrapped + rounding), wrapped, off)


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
