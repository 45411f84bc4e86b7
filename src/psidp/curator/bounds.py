"""Bounds: where a column's values lie, found from noisy histograms, and which bounds cost least.

Three histograms, each on edges that are public once the one before it is released. Powers of 2 of both signs find the
size of the values; equal steps over that range find their middle; steps that double, on both sides of the middle, show
the tails. Bounds are then chosen among the edges of the last one, by the error that they would cause. Nothing here has
seen an exact number.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor, inf, log2, log10, sqrt

import numpy as np
from numpy.typing import NDArray

from psidp.curator.ask import Aggregate
from psidp.curator.contribution import RATIOS, hidden
from psidp.maths.isotonic import isotonic

__all__ = [
    "BOUNDS_SHARE",
    "SHARES",
    "SIZE_EDGES",
    "UNSEEN",
    "Bounds",
    "NoisyBins",
    "chosen_bounds",
    "middle_edges",
    "tail_edges",
]

Floats = NDArray[np.float64]

SHARES = (0.04, 0.03, 0.08)
"""Parts of an aggregate's psi^2 that go into the three histograms."""

BOUNDS_SHARE = 0.15
"""Part of an aggregate's psi^2 that bounds="auto" spends: the sum of the three."""

SMALLEST, LARGEST = -32, 64
SIZES = tuple(2.0**k for k in range(SMALLEST, LARGEST + 1))
SIZE_EDGES = (*(-s for s in reversed(SIZES)), 0.0, *SIZES)
"""Edges of the first histogram: 0 and the powers of 2 from 2^-32 to 2^64, both signs; beyond, the end bins."""

ANCHOR = 4.5
"""The fullest bin of the first histogram must have so many sigma, else nothing is said to be seen."""

INSIDE, NEXT, STEP, FAR = 3.0, 2.0, 0.75, 6.5
"""A bin of no larger size than those seen is seen at 3 sigma; one that is k sizes above at 2 + 0.75 (k - 1), at most
6.5: noise that doubles the range does little harm, and what would make it a thousand times as wide needs more proof."""

REACH = (2.0, 4.0)
"""The third histogram looks so many times as far from the median as values were seen: rows in a tail that the first one
could not tell from noise, and what they add to a mean."""

FALL = 0.5
"""A tail that noise hides is taken to fall ever faster: each time its values double, to half of the part before."""

TAIL = 3.0
"""Tails of the third histogram end at their last bin with so many sigma."""

SURE = 4.5
"""A bin of the second histogram that has so many sigma says where in a bin of the third the rows are."""

PER_BIN, FEWEST, MOST = 3.0, 4, 64
"""Bins of the second histogram: so many that each would have 3 sigma rows, between 4 and 64."""

CLOSE_FEWEST, CLOSE_MOST = 8, 128
"""Bins of quantiles whose edges are chosen."""

WIDEST, WIDEN = 0.25, 0.4
"""Part of all rows that a bin beside a quantile may hold; and by which part of their distance from it others widen."""

FINER = 4
"""Bounds are sought at quarters of the third histogram's bins."""

UNSEEN = (-1.0, 1.0)
"""Bounds where no value can be told from noise."""


@dataclass(frozen=True, slots=True)
class NoisyBins:
    """A noisy histogram: edges, noisy numbers of rows between them, and their standard deviation."""

    edges: Floats
    counts: Floats
    sigma: float

    @property
    def rows(self) -> float:
        """About how many rows there are; at least 1."""
        return max(1.0, float(self.counts.sum()))


@dataclass(frozen=True, slots=True)
class Bounds:
    """What was chosen: bounds, about which share of the rows lies outside, and the values' quantiles where edges are
    wanted. `seen` is False where no value could be told from noise. `taken` is about how much clipping at the lower and
    at the upper bound moves a row, on average over all rows."""

    lower: float
    upper: float
    outside: float
    seen: bool
    bins: NoisyBins | None = None
    taken: tuple[float, float] = (0.0, 0.0)

    def even_edges(self, *, whole: bool = False) -> tuple[float, ...]:
        """10 to 25 bins of equal width, 1, 2 or 5 times a power of ten, over the bounds; fewer for whole numbers that
        lie close together."""
        width = self.upper - self.lower
        power = floor(log10(width)) - 1
        if whole and power < 0:
            return tuple(float(k) for k in range(floor(self.lower), max(ceil(self.upper), floor(self.lower) + 1) + 1))
        step = next(m for m in (1, 2, 5, 10) if width / (m * 10.0**power) <= 25.0)
        unit = step * 10.0**power if power >= 0 else 1.0
        of = 1.0 if power >= 0 else 10.0**-power / step  # k / of is the float nearest to a short decimal
        first, last = floor(self.lower / unit * of), ceil(self.upper / unit * of)
        return tuple(k * unit / of for k in range(first, max(last, first + 1) + 1))

    def close_edges(self, at: Sequence[float], noise: float, groups: int, *, whole: bool) -> tuple[float, ...]:
        """Edges for these quantiles, close around each and further apart away from it, in ranks of all groups together;
        half way between whole numbers if `whole`."""
        found = np.linspace(self.lower, self.upper, CLOSE_FEWEST + 1)
        if self.bins is not None:
            below, rising = _cumulated(self.bins)
            ranks = below[0] + (below[-1] - below[0]) * _close_ranks(at, self.bins.rows / groups / noise)
            found = np.interp(ranks, rising, self.bins.edges)
        found = np.floor(found) + 0.5 if whole else found
        low, high = (floor(self.lower) - 0.5, ceil(self.upper) + 0.5) if whole else (self.lower, self.upper)
        inner = np.unique(found[(found > low) & (found < high)])
        return (low, *map(float, inner), high)


def _close_ranks(at: Sequence[float], rows: float) -> Floats:
    """Ranks for the edges of bins, if a group of middle size has so many rows in units of a bin's noise.

    At the q-quantile, noise of sqrt(q^2 (bins above) + (1 - q)^2 (bins below)) bins' noise hides ranks, and a bin's own
    width h hides h of them. With bins of equal width, (1 - q)/h above, both are the same at h^(3/2) = 2 q sqrt(1 - q) /
    rows, and likewise below. From there on bins widen with their distance from q, so that a group whose quantile lies
    elsewhere finds edges, too, and few bins make noise.
    """
    found = [0.0, 1.0]
    for q in at:
        for side, part in ((1.0, q * sqrt(1.0 - q)), (-1.0, (1.0 - q) * sqrt(q))):
            step, rank = min(WIDEST, (2.0 * part / rows) ** (2.0 / 3.0)), q
            while 0.0 < rank < 1.0:
                found.append(rank)
                rank += side * max(step, 1.0 / CLOSE_MOST, WIDEN * abs(rank - q))
    return np.unique(np.array(found))


def seen_range(sizes: NoisyBins) -> tuple[int, int] | None:
    """First and last bin of the first histogram between which the values lie; None where noise hides all of them."""
    counts, sigma, middle = sizes.counts, sizes.sigma, len(SIZES)
    size = np.abs(np.arange(counts.size) - middle + 0.5)  # 0.5 for the two bins beside 0, then 1.5, 2.5, ...
    fullest = int(np.argmax(counts))
    if not counts[fullest] > ANCHOR * sigma:
        return None
    most, seen = float(size[fullest]), [fullest]
    for i in np.argsort(size, kind="stable"):
        above = float(size[i]) - most
        wanted = INSIDE if above <= 0.0 else min(FAR, NEXT + STEP * (above - 1.0))
        if counts[i] > wanted * sigma:
            seen.append(int(i))
            most = max(most, float(size[i]))
    return min(seen), max(seen)


def middle_edges(sizes: NoisyBins, sigma: float) -> tuple[float, ...]:
    """Edges of the second histogram: equal steps over the range that was seen, and its powers of 2."""
    seen = seen_range(sizes)
    if seen is None:
        return UNSEEN
    ends = sizes.edges[seen[0] : seen[1] + 2]
    rows = float(sizes.counts[seen[0] : seen[1] + 1].sum())
    bins = int(min(MOST, max(FEWEST, rows / (PER_BIN * sigma))))
    return tuple(map(float, np.unique(np.concatenate([ends, np.linspace(ends[0], ends[-1], bins + 1)]))))


def tail_edges(middle: NoisyBins) -> tuple[float, ...]:
    """Edges of the third histogram: the median, and on both sides steps that double, of the quartiles' distance, over
    the range that was seen and twice and four times as far, but not beyond 0 where the range ends there."""
    edges = middle.edges
    low, high = float(edges[0]), float(edges[-1])
    below, rising = _cumulated(middle)
    ranks = below[0] + np.array([0.25, 0.5, 0.75]) * (below[-1] - below[0])
    quarter, half, most = map(float, np.interp(ranks, rising, edges))
    step = 2.0 * max(most - quarter, (high - low) / (4.0 * (edges.size - 1)))
    steps = step * 2.0 ** np.arange(max(1, ceil(log2(max(2.0, (high - low) / step))) + 1))
    found = np.concatenate([half - steps, [half], half + steps])
    inner = np.unique(found[(found > low) & (found < high)])
    wider = REACH if (low, high) != UNSEEN else ()
    before = [half + k * (low - half) for k in reversed(wider) if low < min(0.0, half)]
    after = [half + k * (high - half) for k in wider if high > max(0.0, half)]
    return tuple(map(float, np.unique([*before, low, *inner, high, *after])))


def _cumulated(bins: NoisyBins) -> tuple[Floats, Floats]:
    """Rising numbers of rows below each edge; and the same with steps of next to nothing, so that an inverse exists."""
    below = isotonic(np.concatenate([[0.0], np.cumsum(bins.counts)]))
    return below, below + np.arange(below.size) * 1e-9 * max(1.0, float(below[-1] - below[0]))


def chosen_bounds(aggregate: Aggregate, middle: NoisyBins, tails: NoisyBins, noise: float, groups: int) -> Bounds:
    """The bounds with the least estimated squared error of a group of middle size, noise and clipping together.

    Args:
        aggregate: what is asked. middle, tails: the second and third histogram. noise: standard deviation of the noise
        on a total, in rows' worth. groups: how many there are.
    """
    kept = _without_noise(tails)
    if kept is None:
        low, high = float(middle.edges[0]), float(middle.edges[-1])
        return Bounds(low, high, 0.0, (low, high) != UNSEEN)
    fine = _finer(kept, middle)
    if aggregate.kind in ("histogram", "quantiles"):
        first, last = _nearly_all(fine)
        return _rounded(Bounds(float(fine.edges[first]), float(fine.edges[last]), 0.0, True, kept))
    cost = _squared_error(aggregate, fine, noise, groups)
    i, j = np.unravel_index(int(np.argmin(cost)), cost.shape)
    found = _rounded(Bounds(float(fine.edges[i]), float(fine.edges[j]), 0.0, True, kept))
    middles = (fine.edges[1:] + fine.edges[:-1]) / 2.0
    inside = float(fine.counts[(middles >= found.lower) & (middles <= found.upper)].sum()) / kept.rows
    below, above = np.maximum(found.lower - middles, 0.0), np.maximum(middles - found.upper, 0.0)
    lost = [max(0.0, float(fine.counts @ moved)) for moved in (below, above)]
    unseen = _hidden_above(_mirrored(tails), _mirrored(kept), -found.lower), _hidden_above(tails, kept, found.upper)
    taken = [(seen + more) / kept.rows for seen, more in zip(lost, unseen, strict=True)]
    return replace(found, outside=min(1.0, max(0.0, 1.0 - inside)), taken=(taken[0], taken[1]))


def _without_noise(tails: NoisyBins) -> NoisyBins | None:
    """The histogram without the ends that noise alone could have made."""
    sure = np.flatnonzero(tails.counts > TAIL * tails.sigma)
    if not sure.size:
        return None
    first, last = int(sure[0]), int(sure[-1]) + 1
    return replace(tails, edges=tails.edges[first : last + 1], counts=tails.counts[first:last])


def _mirrored(bins: NoisyBins) -> NoisyBins:
    """The histogram of the values times -1."""
    return replace(bins, edges=-bins.edges[::-1], counts=bins.counts[::-1])


def _hidden_above(tails: NoisyBins, kept: NoisyBins, bound: float) -> float:
    """About how much rows above the last bin that is seen have beyond a bound, if noise hides as many as it may.

    Counted in steps that double, away from the median.
    """
    ranks, rising = _cumulated(kept)
    half, high, end = float(np.interp(ranks[-1] / 2.0, rising, kept.edges)), kept.edges[-1], tails.edges[-1]
    if not half < high < end:
        return 0.0
    steps = half + (high - half) * 2.0 ** np.arange(-3, ceil(log2((end - half) / (high - half))) + 1)
    rows = np.diff(np.interp(steps, tails.edges, np.concatenate([[0.0], np.cumsum(tails.counts)])))
    beyond = np.maximum((steps[1:] + steps[:-1]) / 2.0 - bound, 0.0)
    return float(hidden(rows, 2, tails.sigma, fall=FALL) @ beyond)


def _nearly_all(bins: NoisyBins) -> tuple[int, int]:
    """First and last edge between which all rows lie but for what noise could have made, on either side."""
    below = np.concatenate([[0.0], np.cumsum(bins.counts)])
    above = below[-1] - below
    first = int(np.argmax(below[1:] > bins.sigma)) if (below[1:] > bins.sigma).any() else 0
    last = int(np.flatnonzero(above[:-1] > bins.sigma)[-1]) + 1 if (above[:-1] > bins.sigma).any() else bins.counts.size
    return (first, last) if first < last else (0, bins.counts.size)


def _finer(tails: NoisyBins, middle: NoisyBins) -> NoisyBins:
    """The third histogram in finer bins: rows that the second one surely has lie there, the others evenly."""
    quarters = [np.linspace(low, high, FINER + 1) for low, high in pairwise(tails.edges)]
    edges = np.unique(np.concatenate([*quarters, middle.edges]))
    edges = edges[(edges >= tails.edges[0]) & (edges <= tails.edges[-1])]
    width, centre = np.diff(edges), (edges[1:] + edges[:-1]) / 2.0
    own = np.searchsorted(tails.edges, centre) - 1
    other = np.clip(np.searchsorted(middle.edges, centre) - 1, 0, middle.counts.size - 1)
    density = np.where(middle.counts > SURE * middle.sigma, middle.counts, 0.0) / np.diff(middle.edges)
    known = (centre > middle.edges[0]) & (centre < middle.edges[-1])
    placed, room = width * density[other] * known, np.bincount(own, width)
    most = np.bincount(own, placed)
    part = np.where(most > 0.0, np.clip(tails.counts, 0.0, most) / np.where(most > 0.0, most, 1.0), 0.0)
    rest = tails.counts - part * most
    return replace(tails, edges=edges, counts=placed * part[own] + rest[own] * width / room[own])


def _squared_error(aggregate: Aggregate, bins: NoisyBins, noise: float, groups: int) -> Floats:
    """Noise and bias, squared, for each pair of edges as lower and upper bound; in sums over all groups.

    A total: R the largest size, noise R in each of G groups; what is clipped away counts L^2/sqrt G, as for
    contributions. A ratio, times the rows: G noise half ranges, and the bias of both ends, which are not taken to
    cancel.
    """
    edges, middles = bins.edges, (bins.edges[1:] + bins.edges[:-1]) / 2.0
    low, high = edges[:, None], edges[None, :]
    half = np.maximum(high - low, 0.0) / 2.0
    mean = float(bins.counts @ middles) / bins.rows
    beyond = _beyond(edges, middles, bins.counts, mean if aggregate.kind in ("variance", "deviation") else None)
    below, above = beyond[0][:, None], beyond[1][None, :]
    if aggregate.kind == "sum":
        error = groups * (noise * np.maximum(np.abs(low), np.abs(high))) ** 2
        return np.where(high > low, error + (below**2 + above**2) / sqrt(groups), inf)
    safe = np.where(half > 0.0, half, 1.0)
    apart = np.clip((mean + (below - above) / bins.rows - (low + high) / 2.0) / safe, -1.0, 1.0)
    if aggregate.kind == "mean":
        error = 2.0 * (1.0 + apart**2) * (groups * noise * half) ** 2
    else:
        error = RATIOS[aggregate.kind] * (groups * noise * half * half) ** 2
    return np.where(high > low, error + below**2 + above**2, inf)


def _beyond(edges: Floats, middles: Floats, counts: Floats, centre: float | None) -> tuple[Floats, Floats]:
    """What clipping at each edge takes from the sum of values below it and above it; of squares about a centre."""

    def moved(edge: float, of: Floats) -> Floats:
        if centre is None:
            return np.abs(of - edge)
        return np.asarray(np.abs((of - centre) ** 2 - (edge - centre) ** 2))

    n = range(edges.size)
    below = [max(0.0, float(counts[:j] @ moved(float(edges[j]), middles[:j]))) for j in n]
    above = [max(0.0, float(counts[j:] @ moved(float(edges[j]), middles[j:]))) for j in n]
    return np.array(below), np.array(above)


def _rounded(bounds: Bounds) -> Bounds:
    """Outward, to a hundredth of the range's own power of ten or finer."""
    step = 10.0 ** (floor(log10(bounds.upper - bounds.lower)) - 2)
    low, high = floor(bounds.lower / step) * step, ceil(bounds.upper / step) * step
    digits = max(0, -floor(log10(step)))
    low, high = (round(low, digits), round(high, digits)) if digits < 300 else (low, high)
    return replace(bounds, lower=low, upper=high) if low < high else bounds
