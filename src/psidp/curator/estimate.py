"""Estimates: from noisy totals to what was asked, with intervals that cover noise, flagged where they say little."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psidp.curator.ask import Aggregate
from psidp.curator.contribution import RATIOS
from psidp.curator.row_sql import middle_and_half
from psidp.maths.fieller import bounded_ratio, ratio_error, ratio_interval
from psidp.maths.isotonic import isotonic
from psidp.maths.normal import UNIT, two_sided
from psidp.mechanism.clipping import IntegerGrid
from psidp.strategies.residual_plan import ResidualPlan

__all__ = [
    "CLIPPING", "NOISE", "RANK", "Estimate", "Noisy", "count_flag", "crossing", "estimates", "flagged", "largest",
    "open_flag", "reaching",
]  # fmt: skip

NOISE = "noise"
"""The count behind the number cannot be told from zero, or noise leaves half of its range open, or a quantile most."""

OPEN = 0.8
"""Part of the range between its edges that a quantile's interval may be without a flag."""

WIDE = 0.125
"""Standard error of a mean, in ranges of its bounds, from which noise leaves half of the range open: four of them."""

SURE = 3.0
"""Standard errors that a count must be above zero."""

CLIPPING = "clipping"
"""What clipping took may move the number by more than its interval says."""

UNEVEN = 2.0
"""A group is taken to lose at most so many times the share that all groups lose together."""

PATIENCE = 0.5
"""Part of the width of an interval that the estimated bias of a mean, ratio or quantile may have without a flag."""

FEW, LEAST, LEAST_OF_FEW = 4, 0.01, 0.1
"""Clipped units are taken to differ by at least 0.01 of the half range; 0.1 where fewer than four groups can tell."""

RANK = "rank"
"""Noise could have put another group in this one's place among the largest."""

SLACK = 8.0 * UNIT
"""What rounding can take from an end of a variance, in ranges of it."""

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
    plan: ResidualPlan | None = None
    """The noise of bins, where it was made for their cumulative sums."""
    _deviations: dict[float, Floats] = field(default_factory=dict, repr=False, compare=False)
    _means: dict[tuple[int, float], tuple[Floats, ...]] = field(default_factory=dict, repr=False, compare=False)

    def deviations(self, bins: int, q: float) -> Floats:
        """Standard deviation of (1 - q) (count below) - q (count above) at each edge of the bins."""
        if self.plan is None:
            j = np.arange(bins + 1)
            return np.asarray(self.sigma * np.sqrt((1.0 - q) ** 2 * j + q**2 * (bins - j)))
        if q not in self._deviations:  # the same for every group
            below = np.tril(np.ones((bins + 1, bins)), -1)
            self._deviations[q] = np.sqrt(self.plan.covariances((0,), [below - q]))
        return self._deviations[q]

    def width(self, confidence: float) -> float:
        """Half of an interval that holds one entry's truth with this probability."""
        return two_sided(1.0 - confidence) * self.sigma * (1.0 + 1e-12) + self.rounding

    def means(self, i: int, confidence: float, lower: float = -1.0, upper: float = 1.0) -> tuple[Floats, ...]:
        """Coordinate i over the number of rows in every group: values, standard errors, lower and upper ends."""
        key = i, confidence
        if key not in self._means:
            rows, sums, variance = self.totals[:, 0, 0], self.totals[:, 0, i], self.sigma**2
            z = self.width(confidence) / self.sigma
            self._means[key] = bounded_ratio(sums, rows, variance, variance, z, lower, upper)
        return self._means[key]


def estimates(
    aggregate: Aggregate, lattice: IntegerGrid, noisy: Noisy, group: int, confidence: float
) -> list[Estimate]:
    """What was asked of one group."""
    totals = noisy.totals[group]
    if aggregate.kind == "histogram":
        return [_plain(_bin_name(aggregate, i), float(totals[i, 0]), noisy, confidence) for i in range(aggregate.bins)]
    if aggregate.kind == "quantiles":
        return [_quantile(aggregate, totals[:, 0], noisy, q, confidence) for q in aggregate.at]
    if aggregate.kind == "ratio":
        return [_quotient(aggregate, lattice, totals[0], noisy, confidence)]
    if aggregate.parts == 1:
        return [_plain(aggregate.name, float(totals[0, 0]), noisy, confidence, counted=aggregate.kind != "sum")]
    return [_ratio(aggregate, lattice, noisy, group, confidence)]


def _plain(name: str, value: float, noisy: Noisy, confidence: float, counted: bool = True) -> Estimate:
    """A total itself; `counted` where it is a number of rows or units."""
    width = noisy.width(confidence)
    flag = count_flag(value, noisy.sigma) if counted else ""
    return Estimate(name, value, noisy.sigma, value - width, value + width, flag)


def count_flag(count: float, error: float) -> str:
    """The flag of a number, by the count behind it: an empty group passes once in 740 times."""
    return "" if count > SURE * error else NOISE


def open_flag(count: float, behind: float, error: float, span: float) -> str:
    """The flag of a mean or ratio, by the count behind it and by how much of its range its error leaves open."""
    return count_flag(count, behind) or ("" if error < WIDE * span else NOISE)


def _bin_name(aggregate: Aggregate, i: int) -> str:
    """histogram of age: [18, 30)."""
    end = "]" if i == aggregate.bins - 1 else ")"
    return f"{aggregate.name}: [{aggregate.edges[i]:.15g}, {aggregate.edges[i + 1]:.15g}{end}"


def _ratio(aggregate: Aggregate, lattice: IntegerGrid, noisy: Noisy, group: int, confidence: float) -> Estimate:
    """Mean, variance or standard deviation from noisy sums about the middle of the bounds and a noisy count."""
    row = lattice.part(aggregate.parts) * lattice.step  # what one row adds to the count
    n, error = float(noisy.totals[group, 0, 0]) / row, noisy.sigma / row
    if aggregate.kind == "mean":
        bounds = aggregate.lower, aggregate.upper
        value, spread, low, high = (float(x[group]) for x in noisy.means(1, confidence, *bounds))
        return Estimate(aggregate.name, value, spread, low, high, open_flag(n, error, spread, bounds[1] - bounds[0]))
    both = 1.0 - 0.5 * (1.0 - confidence)  # two intervals at once
    m1, _, low1, high1 = (float(x[group]) for x in noisy.means(1, both))
    m2, _, low2, high2 = (float(x[group]) for x in noisy.means(2, both))
    value = min(1.0, max(0.0, (m2 + 1.0) / 2.0 - m1 * m1))
    slope = sqrt(0.25 + 4.0 * m1 * m1 + (m2 / 2.0 - 2.0 * m1 * m1) ** 2)
    spread = min(1.0, error * slope / n) if n > 0.0 else 1.0
    nearest = 0.0 if low1 <= 0.0 <= high1 else min(abs(low1), abs(high1))
    low = max(0.0, (low2 + 1.0) / 2.0 - max(low1 * low1, high1 * high1) - SLACK)
    high = min(1.0, max(low, (high2 + 1.0) / 2.0 - nearest**2 + SLACK))
    _, half = middle_and_half(aggregate)
    if aggregate.kind == "variance":
        flag = open_flag(n, error, spread, 1.0)
        return _scaled(aggregate.name, half * half, (value, spread, low, high), flag)
    root = sqrt(value)
    slack = min(1.0, spread / (2.0 * root)) if root > 0.0 else 1.0
    return _scaled(aggregate.name, half, (root, slack, sqrt(low), sqrt(high)), open_flag(n, error, slack, 1.0))


def _quotient(aggregate: Aggregate, lattice: IntegerGrid, totals: Floats, noisy: Noisy, confidence: float) -> Estimate:
    """One total over another, with Fieller's interval; the whole line where the lower one may be zero."""
    row = lattice.part(aggregate.parts) * lattice.step
    above, below = (float(x) / row * term.reach for x, term in zip(totals, aggregate.terms, strict=True))
    error, other = (noisy.sigma / row * term.reach for term in aggregate.terms)
    z = noisy.width(confidence) / noisy.sigma
    low, high = (float(end) for end in ratio_interval(above, below, error**2, other**2, 0.0, z))
    value = above / below if below != 0.0 else nan
    spread = float(ratio_error(value, below, error**2, other**2))
    span = aggregate.terms[0].reach / aggregate.terms[1].reach
    return Estimate(aggregate.name, value, spread, low, high, open_flag(abs(below), other, spread, span))


def largest(estimates: Sequence[Estimate], k: int, confidence: float) -> list[tuple[int, Estimate]]:
    """The k largest with the numbers of their groups, flagged where noise could have put another in their place."""
    order = sorted(range(len(estimates)), key=lambda i: -estimates[i].value)
    if len(order) <= k:
        return [(i, estimates[i]) for i in order]
    rival = estimates[order[k]]
    room = two_sided(1.0 - confidence) * sqrt(2.0) * rival.standard_error

    def judged(e: Estimate) -> Estimate:
        sure = e.value - rival.value > room
        return e if sure else replace(e, flag=", ".join(filter(None, (e.flag, RANK))))

    return [(i, judged(estimates[i])) for i in order[:k]]


def _scaled(name: str, scale: float, numbers: tuple[float, float, float, float], flag: str) -> Estimate:
    """An estimate in the column's unit: value, standard error, lower and upper end."""
    value, spread, low, high = (scale * x for x in numbers)
    return Estimate(name, value, spread, low, high, flag)


def _quantile(aggregate: Aggregate, counts: Floats, noisy: Noisy, q: float, confidence: float) -> Estimate:
    """The q-quantile on straight lines between the edges, and the edges that noise cannot rule out.

    The value is where the rising sequence nearest to the noisy cumulative counts crosses q times the noisy total. At
    edge j, D_j = (1 - q) (count below) - q (count above) has noise of a variance that is known beforehand. The interval
    runs from the edge before the first where D is not surely negative to the edge after the last where it is not surely
    positive. It misses only if the edge next to the quantile itself is ruled out, so each edge is tested by itself.
    """
    edges, bins = np.asarray(aggregate.edges), aggregate.bins
    j = np.arange(bins + 1)
    raw = np.concatenate([[0.0], np.cumsum(counts)])
    balance = raw - q * raw[-1]
    z = two_sided(1.0 - confidence)
    room = z * noisy.deviations(bins, q) + noisy.rounding * bins
    surely_low, surely_high = (balance + room < 0.0), (balance - room >= 0.0)
    low = float(edges[max(int(np.min(j[~surely_low], initial=bins)) - 1, 0)])
    high = float(edges[min(int(np.max(j[~surely_high], initial=0)) + 1, bins)])
    value = min(max(crossing(edges, isotonic(raw), q * float(raw[-1])), low), high)
    spread: Any = (high - low) / (2.0 * z) if high > low else nan
    told = count_flag(float(raw[-1]), float(noisy.deviations(bins, 0.0)[-1]))
    flag = told or (NOISE if high - low >= OPEN * float(edges[-1] - edges[0]) and bins > 1 else "")
    name = aggregate.name if aggregate.label else f"quantile {q:.15g} of {aggregate.column}"
    return Estimate(name, value, spread, low, high, flag)


def crossing(edges: Floats, below: Floats, target: float) -> float:
    """Where the rising counts reach the target, on straight lines; the middle edge where there seems to be nobody."""
    if not below[-1] > below[0]:
        return float(edges[len(edges) // 2])
    at = min(max(1, int(np.searchsorted(below, target))), len(edges) - 1)
    rise = float(below[at] - below[at - 1])
    share = min(1.0, max(0.0, (target - float(below[at - 1])) / rise)) if rise > 0.0 else 0.5
    return float(edges[at - 1] + share * (edges[at] - edges[at - 1]))


def flagged(
    aggregate: Aggregate, groups: Sequence[Sequence[Estimate]], lost: float, excess: float = inf
) -> list[list[Estimate]]:
    """The estimates of every group, with a flag where clipping may move them further than their intervals say.

    Totals (count, sum, bin): the interval reaches further by what clipping may have taken from the group, twice the
    share that all groups may have lost and no more than all that they may have lost; where that is more than the
    interval's own width, it stays and is flagged. Ratios (mean, variance, quantile): the bias is taken to be lost D,
    where D is how much the groups differ beyond their noise, as a guess at how much clipped units differ from others.
    The interval reaches further by it, both ways; where it is more than half of the interval's width, that stays and is
    flagged. Those of quantiles stay in any case: they end at edges, up to a bin beyond what noise asks for.

    `lost` is the share of the total that clipping may have taken, from noisy unit norms, nan where nothing was
    measured; `excess` is how much that is, in the aggregate's own unit.
    """
    if not lost > 0.0:
        return [list(estimates) for estimates in groups]
    if aggregate.kind not in RATIOS:
        down, up = _sides(aggregate)
        return [[_reaching_up_to_loss(e, lost, excess, down, up) for e in estimates] for estimates in groups]
    differ = [_difference(aggregate, column) for column in zip(*groups, strict=True)]
    limits = _limits(aggregate)
    return [
        [_reaching_both_ways(e, lost * d, limits) for e, d in zip(estimates, differ, strict=True)]
        for estimates in groups
    ]


def _judged(estimate: Estimate, bias: float, patience: float) -> Estimate:
    """One number, flagged if its bias may be more than this part of its interval's width."""
    if bias <= patience * (estimate.upper - estimate.lower):
        return estimate
    return replace(estimate, flag=", ".join(filter(None, (estimate.flag, CLIPPING))))


def _reaching_up_to_loss(estimate: Estimate, lost: float, excess: float, down: bool, up: bool) -> Estimate:
    """A total whose interval also holds what clipping may have taken, or is flagged if that is more than its width."""
    kept = max(1.0 - lost, 1e-3)
    bias = min(excess, UNEVEN * abs(estimate.value) * lost / kept)
    judged = _judged(estimate, bias, 1.0)
    if judged is not estimate:
        return judged
    return replace(estimate, lower=estimate.lower - bias * down, upper=estimate.upper + bias * up)


def _reaching_both_ways(estimate: Estimate, bias: float, limits: tuple[float, float] | None) -> Estimate:
    """A ratio whose interval also holds its estimated bias, within limits, or is flagged if that is too much."""
    judged = _judged(estimate, bias, PATIENCE)
    if judged is not estimate or limits is None:
        return judged
    low, high = limits
    return replace(estimate, lower=max(low, estimate.lower - bias), upper=min(high, estimate.upper + bias))


def _limits(aggregate: Aggregate) -> tuple[float, float] | None:
    """Between which numbers a ratio lies, whatever the data; None for quantiles, whose intervals end at edges."""
    if aggregate.kind == "mean":
        return aggregate.lower, aggregate.upper
    if aggregate.kind in ("variance", "deviation"):
        return 0.0, _half_range(aggregate)
    return None if aggregate.kind == "quantiles" else (-inf, inf)


def _sides(aggregate: Aggregate) -> tuple[bool, bool]:
    """Whether a total without clipping may be smaller, and larger; counts are never smaller."""
    if aggregate.kind != "sum":
        return False, True
    low, high = aggregate.range
    return low < 0.0, high > 0.0


def reaching(mean: Estimate, below: float, above: float) -> Estimate:
    """A mean whose interval also holds what its bounds took from a row on average: `below` and `above` of them."""
    return replace(mean, lower=mean.lower - below, upper=mean.upper + above)


def _difference(aggregate: Aggregate, column: Sequence[Estimate]) -> float:
    """How much groups differ beyond their noise (DerSimonian and Laird 1986), in the statistic's own unit."""
    scale = _half_range(aggregate)
    seen = [e for e in column if NOISE not in e.flag and e.standard_error > 0.0]
    if len(seen) < FEW:
        return LEAST_OF_FEW * scale
    x, weight = np.array([e.value for e in seen]), np.array([e.standard_error for e in seen]) ** -2.0
    total = weight.sum()
    excess = float(weight @ (x - (weight @ x) / total) ** 2) - (len(seen) - 1)
    room = total - float(weight @ weight) / total
    return max(LEAST * scale, float(np.sqrt(max(0.0, excess) / room)))


def _half_range(aggregate: Aggregate) -> float:
    """Half of the range that the statistic can have."""
    if aggregate.edges:
        return (aggregate.edges[-1] - aggregate.edges[0]) / 2.0
    if aggregate.terms:
        return 0.5 * aggregate.terms[0].reach / aggregate.terms[1].reach
    _, half = middle_and_half(aggregate)
    return half * half if aggregate.kind == "variance" else half
