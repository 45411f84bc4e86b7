"""Contribution: how much one unit may add, how many add more, and which bound costs least. Noisy unit norms decide.

Nothing here has seen an exact number: everything is post-processing of counts that were noised and paid for.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from psidp.curator.ask import Aggregate
from psidp.curator.contribution_sql import SIZES
from psidp.curator.row_sql import fine_enough
from psidp.mechanism.clipping import IntegerGrid

__all__ = ["UnitNorms", "best_contribution", "grid_of", "hidden", "largest_contribution"]

Floats = NDArray[np.float64]

SURE = 4.5
"""A tail is believed up to its last bin with more units than so many sigma. At 3, noise in one of 22 bins leads
a choice astray in one release of a hundred."""

SUSPECT = 3.0
"""A bin above that tail is believed to hold units all the same where it has more than so many sigma: what clipping may
have taken is rather too large than too small."""

CANDIDATES: tuple[float, ...] = tuple(2.0 ** (k / 2) for k in range(41))
"""What "auto" chooses among: 1, 1.41, 2, ..., 2^20."""

DIFFERENCE = 0.1
"""How far the values of clipped units are taken to lie from the others', in half ranges: a public guess, no bound."""

RATIOS = {"mean": 2.5, "variance": 0.94, "deviation": 0.94, "quantiles": 0.25, "ratio": 4.0}
"""Squared error of a ratio for noise of one row's worth on each of its totals, times the number of rows squared: for
values that deviate by half of the half range; quantiles in ranks, for each bin; ratios of rows at their bounds."""


@dataclass(frozen=True, slots=True)
class UnitNorms:
    """Noisy numbers of units whose norm is at most 1, 2, 4, ..., 2^20 rows' worth, and above.

    Inside a bin norms are taken to be spread evenly on the logarithmic scale; at most 1 counts as 1.

    Args:
        counts: one number for each bin. sigma: the standard deviation of each.

    Examples:
        >>> norms = UnitNorms(np.array([0.0, 500.0, 500.0] + [0.0] * 19), sigma=2.0)
        >>> norms.units, norms.clipped(2.0)[0]
        (1000.0, 500.0)
        >>> round(norms.lost(2.0)[0], 2)  # of 500 norms in (1, 2] and 500 in (2, 4]
        0.2
    """

    counts: Floats
    sigma: float

    @property
    def kept(self) -> Floats:
        """The counts without the tail that noise alone could have made."""
        sure = np.flatnonzero(self.counts > SURE * self.sigma)
        last = int(sure[-1]) + 1 if sure.size else 0
        return np.where(np.arange(self.counts.size) < last, self.counts, 0.0)

    @property
    def units(self) -> float:
        """About how many units there are."""
        return max(0.0, float(self.kept.sum()))

    @property
    def total(self) -> float:
        """About how much they hold together, in rows' worth."""
        return max(0.0, float(self.kept @ _means()))

    @property
    def unseen(self) -> float:
        """So many units of one size could be there and not be told from noise."""
        return SURE * self.sigma

    def clipped(self, contribution: float) -> tuple[float, float]:
        """About how many units have more than this, and the standard error of that number."""
        return self._sum(np.array([_share_above(low, high, contribution) for low, high in _bins()]))

    def excess(self, contribution: float) -> float:
        """About how much they have beyond this, in rows' worth."""
        return max(0.0, self._sum(_beyond(contribution))[0])

    def lost(self, contribution: float) -> tuple[float, float]:
        """About which share of the total is beyond this, in [0, 1], and its standard error; nan where no unit can be
        told from noise."""
        total, means = self.total, _means()
        if not total > 0.0:
            return float("nan"), float("nan")
        share = min(1.0, self.excess(contribution) / total)
        seen = self.kept != 0.0
        spread = np.where(seen, _beyond(contribution) - share * means, 0.0)
        return share, min(1.0, self.sigma * float(np.linalg.norm(spread)) / total)

    def at_most(self, contribution: float) -> tuple[float, float]:
        """Which share of the total may be beyond this, and how much that is in rows' worth, as far as noise lets one
        see: one standard error above what is seen, and the tail that noise may hide. The share is 1 where no unit can
        be told from noise.

        Examples:
            >>> norms = UnitNorms(np.array([0.0, 500.0, 100.0] + [0.0] * 19), sigma=2.0)
            >>> norms.lost(4.0)[0], [round(x, 3) for x in norms.at_most(4.0)]
            (0.0, [0.004, 3.859])
        """
        total, beyond = self.total, _beyond(contribution)
        if not total > 0.0:
            return 1.0, float("inf")
        seen, error = self._sum(beyond)
        last = int(np.flatnonzero(self.kept)[-1])
        most = seen + error + float(hidden(self.counts, last, self.sigma) @ beyond)
        return min(1.0, most / total), most

    def _sum(self, weights: Floats) -> tuple[float, float]:
        """A weighted sum of the kept counts, and its standard error."""
        kept = self.kept
        return max(0.0, float(kept @ weights)), self.sigma * sqrt(float(np.sum(weights[kept != 0.0] ** 2)))


def hidden(counts: Floats, last: int, sigma: float, *, fall: float = 1.0) -> Floats:
    """About how many units, or rows, noise may hide in each bin above the last one that is seen.

    The bins' edges double. The tail is taken to fall no slower than where it was last seen, and no less steeply from
    bin to bin, or more so by the factor `fall`, which no histogram can know; with one sigma more than each bin shows,
    and with all that a suspect bin shows.

    Examples:
        >>> hidden(np.array([900.0, 300.0, 60.0, -2.0, 1.0]), last=2, sigma=3.0).round(2).tolist()
        [0.0, 0.0, 0.0, 3.0, 0.15]
    """
    found, before = np.zeros(counts.size), max(float(counts[last]), sigma)
    rate = _rate(counts, last, sigma)
    for j in range(last + 1, counts.size):
        shown = float(counts[j])
        rows = min(before * rate, max(shown, 0.0) + sigma)
        rows = max(rows, shown) if shown > SUSPECT * sigma else rows
        rate = fall * min(rate, rows / before) if rows <= before else 1.0
        found[j] = before = rows
    return found


def _rate(counts: Floats, last: int, sigma: float) -> float:
    """Which part of the last seen bin's rows the next one has at most, by how fast the bins before it fell."""
    third, second, first = (float(counts[j]) if j >= 0 else 0.0 for j in (last - 2, last - 1, last))
    if not second > 0.0:
        return 1.0
    rate = min(1.0, (max(first, 0.0) + sigma) / second)
    earlier = (second - sigma) / third if third > 0.0 else 0.0
    return rate * min(1.0, rate / earlier) if earlier > 0.0 else rate


def grid_of(aggregate: Aggregate, contribution: float, groups: int) -> IntegerGrid:
    """The integers for an aggregate over so many groups."""
    return IntegerGrid.fitting(contribution * aggregate.reach, groups * aggregate.bins * aggregate.parts)


def largest_contribution(aggregate: Aggregate, groups: int) -> float:
    """The largest that "auto" may choose: where a row is still fine enough on the integer grid, and no more than a unit
    can add to a count of units."""
    most = sqrt(groups) if aggregate.kind == "units" else CANDIDATES[-1]
    fits = (c for c in CANDIDATES if c <= most and fine_enough(aggregate, grid_of(aggregate, c, groups)))
    return max(fits, default=CANDIDATES[0])


def best_contribution(aggregate: Aggregate, norms: UnitNorms, groups: int, psi: float) -> float:
    """The candidate with the least estimated squared error at this psi."""
    most = largest_contribution(aggregate, groups)
    return min((c for c in CANDIDATES if c <= most), key=lambda c: _squared_error(aggregate, norms, groups, psi, c))


def _squared_error(aggregate: Aggregate, norms: UnitNorms, groups: int, psi: float, c: float) -> float:
    """Noise and bias, squared: of all totals together, or of a ratio in a group of middle size.

    Totals: G (c/psi)^2 + L^2/sqrt G, L what is clipped away: between spread evenly over G totals (L^2/G) and all in one
    (L^2). Ratios do not suffer from what is lost, but from how clipped units differ.
    """
    noise = c / psi
    if aggregate.kind not in RATIOS:
        totals = groups * aggregate.bins
        return totals * noise**2 + norms.excess(c) ** 2 / sqrt(totals)
    lost, _ = norms.lost(c)
    rows = norms.total * (1.0 - lost) / groups
    if not rows > 0.0:
        return noise**2
    bins, range_ = (
        (aggregate.bins, 0.5) if aggregate.kind == "quantiles" else (1, 1.0)
    )  # half the range of ranks is 0.5
    return RATIOS[aggregate.kind] * bins * (noise / rows) ** 2 + (DIFFERENCE * range_ * lost) ** 2


def _bins() -> list[tuple[float, float]]:
    """Ends of the bins; the last goes as far again."""
    edges = [SIZES[0], *SIZES, 2.0 * SIZES[-1]]
    return list(pairwise(edges))


def _means() -> Floats:
    """Mean norm in each bin."""
    return np.array([(high - low) / log(high / low) if high > low else low for low, high in _bins()])


def _beyond(contribution: float) -> Floats:
    """Mean of what a norm in each bin has beyond the contribution."""
    return np.array([_excess(low, high, contribution) for low, high in _bins()])


def _excess(low: float, high: float, c: float) -> float:
    """Mean of max(m - c, 0), log m even on [log low, log high]."""
    if not high > c:
        return 0.0
    if not high > low:
        return low - c
    start = max(low, c)
    return ((high - start) - c * log(high / start)) / log(high / low)


def _share_above(low: float, high: float, c: float) -> float:
    """Share of a bin that is above c."""
    if not high > c:
        return 0.0
    return log(high / max(low, c)) / log(high / low) if high > low else 1.0
