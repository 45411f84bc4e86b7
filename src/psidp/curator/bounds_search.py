"""Search for bounds: three noisy histograms of a column, one after the other, and what is chosen from them.

Each histogram is an aggregate like any other: a unit's rows over all bins are one vector, clipped to the aggregate's
contribution in whole numbers, and its share of psi^2 is stated in `bounds.SHARES`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from psidp.curator.ask import Aggregate
from psidp.curator.bounds import SIZE_EDGES, Bounds, NoisyBins, chosen_bounds, middle_edges, tail_edges
from psidp.curator.engine import Engine
from psidp.curator.groups import Key
from psidp.curator.query import Query
from psidp.guarantee import Guarantee
from psidp.mechanism.clipping import ClippedSum, IntegerGrid
from psidp.mechanism.gaussian import GaussianMechanism
from psidp.noise.gaussian import LARGEST

__all__ = ["BoundsSearch", "first_histogram"]

Ints = NDArray[np.int64]
Exact = tuple[Aggregate, IntegerGrid, Ints]


@dataclass(frozen=True, slots=True)
class BoundsSearch:
    """The search for the bounds of every aggregate that asks for it, over the rows of the given groups."""

    asked: Query
    engine: Engine
    groups: tuple[Key, ...]

    def first(self) -> dict[Aggregate, Exact]:
        """The exact first histogram of each column; nothing is drawn yet."""
        return {a: self._exact(first_histogram(a)) for a in self.asked.asks if a.bounds == "auto"}

    def chosen(self, first: Mapping[Aggregate, Exact]) -> dict[Aggregate, Bounds]:
        """Noise on the first histograms, then the second and third, then the choice."""
        return {a: self._one(a, exact) for a, exact in first.items()}

    def settled(self, aggregate: Aggregate, found: Mapping[Aggregate, Bounds]) -> Aggregate:
        """The aggregate with the bounds or edges that were chosen."""
        if aggregate not in found:
            return aggregate
        bounds = found[aggregate]
        whole = bool(self.asked.rows.schema()[aggregate.column].is_integer())
        if aggregate.kind == "histogram":
            return replace(aggregate, bounds="chosen", edges=bounds.even_edges(whole=whole))
        if aggregate.kind == "quantiles":
            edges = bounds.close_edges(aggregate.at, self._noise(aggregate), len(self.groups), whole=whole)
            return replace(aggregate, bounds="chosen", edges=edges)
        return replace(aggregate, bounds="chosen", lower=bounds.lower, upper=bounds.upper)

    def _one(self, aggregate: Aggregate, exact: Exact) -> Bounds:
        """The bounds of one aggregate."""
        sizes = self._noisy(aggregate, exact, 0)
        counted = first_histogram(aggregate)
        sigma = self._sigma(aggregate, counted, 1)
        middle = self._noisy(aggregate, self._exact(replace(counted, edges=middle_edges(sizes, sigma))), 1)
        tails = self._noisy(aggregate, self._exact(replace(counted, edges=tail_edges(middle))), 2)
        return chosen_bounds(aggregate, middle, tails, self._noise(aggregate), len(self.groups))

    def _noise(self, aggregate: Aggregate) -> float:
        """Standard deviation of the noise on a total, in rows' worth."""
        counted = first_histogram(aggregate)
        return self.asked.sigma(replace(aggregate, kind="count"), float(counted.contribution or 1.0))

    def _sigma(self, aggregate: Aggregate, counted: Aggregate, stage: int) -> float:
        """Standard deviation of the noise of one of the histograms."""
        sensitivity = self.asked.sensitivity(counted, float(counted.contribution or 1.0))
        return Guarantee(self.asked.psi_of_bounds(aggregate, stage)).sigma(sensitivity)

    def _exact(self, counted: Aggregate) -> Exact:
        """Exact totals of a histogram in steps of its grid."""
        query = self.asked.bins_query(counted, self.groups, self.engine.narrow)
        ((_, grid),), ((coordinate,),) = query.parts, query.coordinates
        totals = np.zeros(counted.bins, np.int64)
        for box, found in self.engine.rows(query.expression()):
            total = int(found or 0) if self.asked.unit is not None else coordinate.in_steps(int(found or 0))
            totals[int(box)] = min(total, LARGEST)
        return counted, grid, totals

    def _noisy(self, aggregate: Aggregate, exact: Exact, stage: int) -> NoisyBins:
        """Noise on a histogram."""
        counted, grid, totals = exact
        sigma, adjacency = self._sigma(aggregate, counted, stage), self.asked.adjacency
        sensitivity = self.asked.sensitivity(counted, float(counted.contribution or 1.0))
        mechanism = GaussianMechanism(sensitivity, sigma, adjacency)
        release = mechanism.release(ClippedSum(grid.norm, grid.unit, totals, self.asked.one_entry(counted)))
        return NoisyBins(np.asarray(counted.edges), release.value, release.sigma)


def first_histogram(aggregate: Aggregate) -> Aggregate:
    """How many values have each size, under the aggregate's own contribution, or 1 where that is to be chosen."""
    worth = 1.0 if aggregate.contribution == "auto" else aggregate.contribution
    return Aggregate("histogram", aggregate.column, edges=SIZE_EDGES, contribution=worth)
