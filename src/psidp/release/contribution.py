"""How much one unit may add: the contribution that costs least, noise and clipping together, from noisy unit norms."""

from math import sqrt

from psidp.release.ask import Aggregate
from psidp.release.cell import fine_enough
from psidp.release.lattice import Lattice
from psidp.release.unit_norms import UnitNorms

__all__ = ["best_contribution", "largest_contribution", "lattice_of"]

CANDIDATES: tuple[float, ...] = tuple(2.0 ** (k / 2) for k in range(41))
"""What "auto" chooses among: 1, 1.41, 2, ..., 2^20."""

DIFFERENCE = 0.1
"""How far the values of clipped units are taken to lie from the others', in half ranges: a public guess, no bound."""

RATIOS = {"mean": 2.5, "variance": 0.94, "deviation": 0.94, "quantiles": 0.25}
"""Squared error of a ratio for noise of one row's worth on each of its totals, times the number of rows squared: for
values that deviate by half of the half range; quantiles in ranks, for each bin."""


def lattice_of(aggregate: Aggregate, contribution: float, groups: int) -> Lattice:
    """The integers for an aggregate over so many groups."""
    return Lattice.fitting(contribution * aggregate.reach, groups * aggregate.bins * aggregate.parts)


def largest_contribution(aggregate: Aggregate, groups: int) -> float:
    """The largest that "auto" may choose: where a row is still fine enough on the integer grid, and no more than a unit
    can add to a count of units."""
    most = sqrt(groups) if aggregate.kind == "units" else CANDIDATES[-1]
    fits = (c for c in CANDIDATES if c <= most and fine_enough(aggregate, lattice_of(aggregate, c, groups)))
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
    bins = aggregate.bins if aggregate.kind == "quantiles" else 1
    return RATIOS[aggregate.kind] * bins * (noise / rows) ** 2 + (DIFFERENCE * lost) ** 2
