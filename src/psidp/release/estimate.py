"""Estimates: from noisy totals to what was asked, with its standard error and an interval that covers the noise."""

from dataclasses import dataclass
from math import inf, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psidp.maths.normal import quantile
from psidp.release.ask import Aggregate
from psidp.release.cell import middle_and_half
from psidp.release.lattice import Lattice

__all__ = ["Estimate", "Noisy", "estimates"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number of an answer."""

    statistic: str
    value: float
    standard_error: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Noisy:
    """Noisy totals of one aggregate: an array of groups by bins by coordinates, and how noisy each entry is."""

    totals: Floats
    sigma: float
    rounding: float

    def width(self, level: float) -> float:
        """Half of an interval that holds one entry's truth with this probability."""
        return float(-quantile(0.5 * (1.0 - level))) * self.sigma * (1.0 + 1e-12) + self.rounding


def estimates(aggregate: Aggregate, lattice: Lattice, noisy: Noisy, group: int, level: float) -> list[Estimate]:
    """What was asked of one group."""
    totals = noisy.totals[group]
    if aggregate.kind == "histogram":
        return [_plain(_bin_name(aggregate, i), float(totals[i, 0]), noisy, level) for i in range(aggregate.bins)]
    if aggregate.kind == "quantiles":
        return [_quantile(aggregate, totals[:, 0], noisy, q, level) for q in aggregate.at]
    if aggregate.parts == 1:
        return [_plain(aggregate.name, float(totals[0, 0]), noisy, level)]
    return [_ratio(aggregate, lattice, totals[0], noisy, level)]


def _plain(name: str, value: float, noisy: Noisy, level: float) -> Estimate:
    """A total itself."""
    width = noisy.width(level)
    return Estimate(name, value, noisy.sigma, value - width, value + width)


def _bin_name(aggregate: Aggregate, i: int) -> str:
    """histogram of age: [18, 30)."""
    end = "]" if i == aggregate.bins - 1 else ")"
    return f"{aggregate.name}: [{aggregate.edges[i]:.15g}, {aggregate.edges[i + 1]:.15g}{end}"


def _ratio(aggregate: Aggregate, lattice: Lattice, totals: Floats, noisy: Noisy, level: float) -> Estimate:
    """Mean, variance or standard deviation from noisy sums about the middle of the bounds and a noisy count."""
    row = lattice.part(aggregate.parts) * lattice.step  # what one row adds to the count
    n, error = float(totals[0]) / row, noisy.sigma / row
    middle, half = middle_and_half(aggregate)
    if aggregate.kind == "mean":
        t = _clipped(float(totals[1]) / row, n)
        low, high = _fieller(float(totals[1]) / row, n, noisy.width(level) / row)
        spread = error * sqrt(1.0 + t * t) / n if n > 0.0 else inf
        ends = (max(aggregate.lower, middle + half * low), min(aggregate.upper, middle + half * high))
        return Estimate(aggregate.name, middle + half * t, half * min(spread, 1.0), *ends)
    both = 1.0 - 0.5 * (1.0 - level)  # two intervals at once
    m1, m2 = (_clipped(float(x) / row, n) for x in totals[1:])
    low1, high1 = _fieller(float(totals[1]) / row, n, noisy.width(both) / row)
    low2, high2 = _fieller(float(totals[2]) / row, n, noisy.width(both) / row)
    value = min(1.0, max(0.0, (m2 + 1.0) / 2.0 - m1 * m1))
    slope = sqrt(0.25 + 4.0 * m1 * m1 + (m2 / 2.0 - 2.0 * m1 * m1) ** 2)
    spread = min(1.0, error * slope / n) if n > 0.0 else 1.0
    nearest = 0.0 if low1 <= 0.0 <= high1 else min(abs(low1), abs(high1))
    low = max(0.0, (low2 + 1.0) / 2.0 - max(low1 * low1, high1 * high1))
    high = min(1.0, max(low, (high2 + 1.0) / 2.0 - nearest**2))
    if aggregate.kind == "variance":
        return Estimate(aggregate.name, *(half * half * x for x in (value, spread, low, high)))
    root = sqrt(value)
    slack = min(1.0, spread / (2.0 * root)) if root > 0.0 else 1.0
    return Estimate(aggregate.name, *(half * x for x in (root, slack, sqrt(low), sqrt(high))))


def _clipped(s: float, n: float) -> float:
    """s/n in [-1, 1]; the middle where there seems to be nobody."""
    return max(-1.0, min(1.0, s / n)) if n > 0.0 else 0.0


def _fieller(s: float, n: float, width: float) -> tuple[float, float]:
    """The ratios t in [-1, 1] with |s - t n| <= width sqrt(1 + t^2): Fieller's interval for a ratio of normals."""
    a, b, c = n * n - width * width, s * n, s * s - width * width
    inside = b * b - a * c
    if not (a > 0.0 and n > 0.0 and inside >= 0.0):
        return -1.0, 1.0
    low, high = (b - sqrt(inside)) / a, (b + sqrt(inside)) / a
    return max(-1.0, min(1.0, low)), max(-1.0, min(1.0, high))


def _quantile(aggregate: Aggregate, counts: Floats, noisy: Noisy, q: float, level: float) -> Estimate:
    """The q-quantile on straight lines between the edges, and the edges that noise cannot rule out.

    At edge j, D_j = (1 - q) (count below) - q (count above) has noise of variance sigma^2 ((1 - q)^2 j + q^2 (bins -
    j)). The interval runs from the last edge where D is surely negative to the first where it surely is not, all edges
    at once.
    """
    edges, bins = np.asarray(aggregate.edges), aggregate.bins
    held = np.maximum(counts, 0.0)
    below = np.concatenate([[0.0], np.cumsum(held)])
    value = float(np.interp(q * below[-1], below, edges)) if below[-1] > 0.0 else float(edges[bins // 2])
    j = np.arange(bins + 1)
    raw = np.concatenate([[0.0], np.cumsum(counts)])
    balance = raw - q * raw[-1]
    z = float(-quantile(0.5 * (1.0 - level) / max(1, bins - 1)))
    room = z * noisy.sigma * np.sqrt((1.0 - q) ** 2 * j + q**2 * (bins - j)) + noisy.rounding * bins
    surely_low, surely_high = (balance + room < 0.0), (balance - room >= 0.0)
    low = float(edges[np.max(j[surely_low], initial=0)])
    high = float(edges[np.min(j[surely_high], initial=bins)])
    name = f"quantile {q:.15g} of {aggregate.column}"
    spread: Any = (high - low) / (2.0 * float(-quantile(0.5 * (1.0 - level)))) if high > low else nan
    return Estimate(name, min(max(value, low), max(low, high)), spread, low, max(low, high))
