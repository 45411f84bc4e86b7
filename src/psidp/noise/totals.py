"""Exact integer totals plus noise: whole numbers never pass through a double, whatever their size.

A total n in units of 2^unit is split at the grid 2^k. Where the grid is the finer one, noise is so many
steps of it, and n + steps 2^(k - unit) has a whole part and a fraction, each exact. Where it is the coarser
one, n itself is split into whole grid steps and an offset, and the offset enters the rounding. Either way
what comes out is a function of the exact sum alone.
"""

from fractions import Fraction
from math import frexp, ldexp

import numpy as np
from numpy.typing import NDArray

from psidp.noise.gaussian import RoundedGaussian

__all__ = ["LARGEST", "noisy_integer", "noisy_integers", "noisy_total", "noisy_totals"]

LARGEST = 2**61
"""Array entries beyond plus or minus this count as this; single integers have no such bound."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def noisy_totals(gaussian: RoundedGaussian, totals: Ints, unit: int = 0) -> Floats:
    """totals * 2^unit plus noise, as doubles."""
    finer = _exponent(gaussian) - unit
    if finer <= 0:
        whole, part = _fine(gaussian, totals, finer)
        return np.ldexp(whole.astype(np.float64) + part, unit)
    return np.ldexp(_coarse(gaussian, totals, finer).astype(np.float64), finer + unit)


def noisy_integers(gaussian: RoundedGaussian, totals: Ints) -> Ints:
    """totals plus noise, rounded to whole numbers; int64, saturated."""
    finer = _exponent(gaussian)
    if finer <= 0:
        whole, part = _fine(gaussian, totals, finer)
        return whole + (part >= 0.5)
    rounded = np.ldexp(_coarse(gaussian, totals, finer).astype(np.float64), finer)
    return np.clip(rounded, -(2.0**62), 2.0**62).astype(np.int64)


def noisy_total(gaussian: RoundedGaussian, total: int, unit: int = 0) -> float:
    """total * 2^unit plus noise, as a double; any size of total."""
    steps, exponent = _steps(gaussian, total, unit)
    return ldexp(float(steps), exponent)


def noisy_integer(gaussian: RoundedGaussian, total: int) -> int:
    """total plus noise, rounded to a whole number; any size."""
    steps, exponent = _steps(gaussian, total, 0)
    return steps << exponent if exponent >= 0 else ((steps >> (-exponent - 1)) + 1) >> 1


def _fine(gaussian: RoundedGaussian, totals: Ints, finer: int) -> tuple[Ints, Floats]:
    """Whole part and fraction of totals + steps 2^finer, finer <= 0; both exact."""
    noise = np.ldexp(gaussian.noise(totals.size) / gaussian.grid, finer).reshape(totals.shape)
    below = np.floor(noise)
    return np.clip(totals, -LARGEST, LARGEST) + below.astype(np.int64), noise - below


def _coarse(gaussian: RoundedGaussian, totals: Ints, coarser: int) -> Ints:
    """Grid steps nearest to totals plus noise, where a step is 2^coarser units, coarser > 0."""
    flat = np.clip(totals, -LARGEST, LARGEST).reshape(-1)
    shift = min(coarser, 62)
    whole = (flat + (1 << (shift - 1))) >> shift if coarser < 62 else np.zeros_like(flat)
    rest = flat - (whole << shift) if coarser < 62 else flat
    offset = np.ldexp(rest.astype(np.float64), -coarser)
    steps = gaussian.steps(offset, lambda i: Fraction(int(rest[i]), 2**coarser))
    return (whole + steps.astype(np.int64)).reshape(totals.shape)


def _steps(gaussian: RoundedGaussian, total: int, unit: int) -> tuple[int, int]:
    """Steps and their binary exponent, total * 2^unit plus noise = steps * 2^exponent."""
    exponent = _exponent(gaussian)
    finer = exponent - unit
    most = int(Fraction(gaussian.limit) / Fraction(2) ** unit)
    total = min(max(total, -most), most)
    whole = total << -finer if finer <= 0 else (total + (1 << (finer - 1))) >> finer
    rest = 0 if finer <= 0 else total - (whole << finer)
    offset = Fraction(rest, 2**finer) if rest else Fraction(0)
    return whole + int(gaussian.one_step(float(offset), lambda: offset)), exponent


def _exponent(gaussian: RoundedGaussian) -> int:
    """k of the grid 2^k."""
    return frexp(gaussian.grid)[1] - 1
