"""Estimates: from noisy totals to what was asked, with its standard error and an interval that covers the noise."""

from dataclasses import dataclass
from math import inf, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psidp.maths.isotonic import isotonic
from psidp.maths.normal import quantile
from psidp.release.ask import Aggregate
from psidp.release.cell import middle_and_half
from psidp.release.lattice import Lattice

__all__ = ["NOISE", "Estimate", "Noisy", "estimates"]

NOISE = "noise"
"""The count behind the number cannot be told from zero."""

SURE = 3.0
"""Standard errors that a count must be above zero."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number of an answer; `flag` says why it is not to be taken at its word, and is empty where it is."""

    statistic: str
    value: float
    standard_error: float
    lower: float
    upper: float
    flag: str = ""


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
        return [_plain(aggregate.name, float(totals[0, 0]), noisy, level, counted=aggregate.kind != "sum")]
    return [_ratio(aggregate, lattice, totals[0], noisy, level)]


def _plain(name: str, value: float, noisy: Noisy, level: float, counted: bool = True) -> Estimate:
    """A total itself; `counted` where it is a number of rows or units."""
    width = noisy.width(level)
    flag = _flag(value, noisy.sigma) if counted else ""
    return Estimate(name, value, noisy.sigma, value - width, value + width, flag)


def _flag(count: float, error: float) -> str:
    """The flag of a number, by the count behind it: an empty group passes once in 740 times."""
    return "" if count > SURE * error else NOISE


def _bin_name(aggregate: Aggregate, i: int) -> str:
    """histogram of age: [18, 30)."""
    end = "]" if i == aggregate.bins - 1 else ")"
    return f"{aggregate.name}: [{aggregate.edges[i]:.15g}, {aggregate.edges[i + 1]:.15g}{end}"


def _ratio(aggregate: Aggregate, lattice: Lattice, totals: Floats, noisy: Noisy, level: float) -> Estimate:
    """Mean, variance or standard deviation from noisy sums about the middle of the bounds and a noisy count."""
    row = lattice.part(aggregate.parts) * lattice.step  # what one row adds to the count
    n, error = float(totals[0]) / row, noisy.sigma / row
    flag = _flag(n, error)
    middle, half = middle_and_half(aggregate)
    if aggregate.kind == "mean":
        t = _clipped(float(totals[1]) / row, n)
        low, high = _fieller(float(totals[1]) / row, n, noisy.width(level) / row)
        spread = error * sqrt(1.0 + t * t) / n if n > 0.0 else inf
        ends = (max(aggregate.lower, middle + half * low), min(aggregate.upper, middle + half * high))
        return Estimate(aggregate.name, middle + half * t, half * min(spread, 1.0), *ends, flag)
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
        return _scaled(aggregate.name, half * half, (value, spread, low, high), flag)
    root = sqrt(value)
    slack = min(1.0, spread / (2.0 * root)) if root > 0.0 else 1.0
    return _scaled(aggregate.name, half, (root, slack, sqrt(low), sqrt(high)), flag)


def _scaled(name: str, scale: float, numbers: tuple[float, float, float, float], flag: str) -> Estimate:
    """An estimate in the column's unit: value, standard error, lower and upper end."""
    value, spread, low, high = (scale * x for x in numbers)
    return Estimate(name, value, spread, low, high, flag)


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

    The value is where the rising sequence nearest to the noisy cumulative counts crosses q times the noisy total. At
    edge j, D_j = (1 - q) (count below) - q (count above) has noise of variance sigma^2 ((1 - q)^2 j + q^2 (bins - j)).
    The interval runs from the last edge where D is surely negative to the first where it surely is not, all edges at
    once.
    """
    edges, bins = np.asarray(aggregate.edges), aggregate.bins
    j = np.arange(bins + 1)
    raw = np.concatenate([[0.0], np.cumsum(counts)])
    balance = raw - q * raw[-1]
    z = float(-quantile(0.5 * (1.0 - level) / max(1, bins - 1)))
    room = z * noisy.sigma * np.sqrt((1.0 - q) ** 2 * j + q**2 * (bins - j)) + noisy.rounding * bins
    surely_low, surely_high = (balance + room < 0.0), (balance - room >= 0.0)
    low = float(edges[np.max(j[surely_low], initial=0)])
    high = max(low, float(edges[np.min(j[surely_high], initial=bins)]))
    value = min(max(_crossing(edges, isotonic(raw), q * float(raw[-1])), low), high)
    single = float(-quantile(0.5 * (1.0 - level)))
    spread: Any = (high - low) / (2.0 * single) if high > low else nan
    flag = _flag(float(raw[-1]), noisy.sigma * sqrt(bins))
    return Estimate(f"quantile {q:.15g} of {aggregate.column}", value, spread, low, high, flag)


def _crossing(edges: Floats, below: Floats, target: float) -> float:
    """Where the rising counts reach the target, on straight lines; the middle edge where there seems to be nobody."""
    if not below[-1] > below[0]:
        return float(edges[len(edges) // 2])
    at = min(max(1, int(np.searchsorted(below, target))), len(edges) - 1)
    rise = float(below[at] - below[at - 1])
    share = min(1.0, max(0.0, (target - float(below[at - 1])) / rise)) if rise > 0.0 else 0.5
    return float(edges[at - 1] + share * (edges[at] - edges[at - 1]))
