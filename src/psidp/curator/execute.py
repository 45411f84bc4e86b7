"""Drawing: exact totals from the engine, then noise. Everything before the first noise can fail without a cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psidp.curator.ask import Aggregate
from psidp.curator.bounds import Bounds
from psidp.curator.bounds_search import BoundsSearch
from psidp.curator.column_types import with_keys
from psidp.curator.contribution import UnitNorms, best_contribution, largest_contribution
from psidp.curator.contribution_sql import BIN, SIZES, Totals
from psidp.curator.distinct_sql import DistinctTotals
from psidp.curator.engine import Engine
from psidp.curator.estimate import Estimate, Noisy, estimates, flagged, largest, reaching
from psidp.curator.groups import Key, PrivateGroups, plain_key
from psidp.curator.query import Query
from psidp.guarantee import Guarantee
from psidp.maths.sensitivity import clipped_vector, histogram
from psidp.mechanism.clipping import ClippedSum, IntegerGrid
from psidp.mechanism.gaussian import GaussianMechanism
from psidp.mechanism.residual_release import noisy_residuals
from psidp.noise.gaussian import LARGEST
from psidp.strategies.residual_plan import ResidualPlan

__all__ = ["Drawn", "Part", "prepare"]

Ints = NDArray[np.int64]
Sizes = dict[Aggregate, Ints]


@dataclass(frozen=True, slots=True)
class Part:
    """One aggregate of a release: its contribution, its noisy totals, and the noisy unit norms where they were paid."""

    aggregate: Aggregate
    contribution: float
    lattice: IntegerGrid
    noisy: Noisy
    norms: UnitNorms | None

    def estimates(self, groups: int, confidence: float, bounds: Bounds | None = None) -> list[list[Estimate]]:
        """What it says of each group, flagged where clipping may have moved it; with what chosen bounds took."""
        lost, rows = (nan, nan) if self.norms is None else self.norms.at_most(self.contribution)
        level = 1.0 - (1.0 - confidence) / groups if self.aggregate.top else confidence
        found = [estimates(self.aggregate, self.lattice, self.noisy, group, level) for group in range(groups)]
        found = flagged(self.aggregate, found, lost, rows * self.aggregate.reach)
        if bounds is None or self.aggregate.kind != "mean":
            return found
        return [[reaching(e, *bounds.taken) for e in group] for group in found]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Everything noisy of a release, and the groups it belongs to."""

    groups: tuple[Key, ...]
    parts: tuple[Part, ...]
    bounds: tuple[tuple[Aggregate, Bounds], ...] = ()

    def rows(self, confidence: float) -> tuple[tuple[Key, Estimate], ...]:
        """Group by group what is said of each; after that the largest groups, where those are asked for."""
        chosen_for, n = {a.name: bounds for a, bounds in self.bounds}, len(self.groups)
        judged = [
            (part.aggregate.top, part.estimates(n, confidence, chosen_for.get(part.aggregate.name)))
            for part in self.parts
        ]
        said = [(key, e) for i, key in enumerate(self.groups) for top, part in judged if not top for e in part[i]]
        for top, part in judged:
            chosen = largest([group[0] for group in part], top, confidence) if top else []
            said += [(self.groups[i], e) for i, e in chosen]
        return tuple(said)


@dataclass(frozen=True, slots=True)
class Exact:
    """Exact totals in lattice steps, groups by bins by coordinates; and units by size, where those are measured."""

    lattice: IntegerGrid
    totals: Ints
    sizes: Ints | None


def prepare(asked: Query, engine: Engine) -> Callable[[], Drawn]:
    """Ask the engine for the first exact totals; what comes back draws noise, and is called once it is paid for."""
    engine.check_keys(asked.rows, asked.by)
    for name in [str(a.column) for a in asked.asks if a.kind == "distinct"]:
        engine.check_keys(with_keys(asked.rows, (name,)), (name,))
    if asked.private is None:
        return _ready(asked, engine, tuple(asked.groups))  # type: ignore[arg-type]
    private, counts = asked.private, engine.rows(asked.private.expression(asked.rows, asked.unit, asked.by))

    def drawn() -> Drawn:
        groups = _chosen_groups(asked, private, counts)
        return _ready(asked, engine, groups)() if groups else Drawn((), ())

    return drawn


def _ready(asked: Query, engine: Engine, groups: tuple[Key, ...]) -> Callable[[], Drawn]:
    """The same, once the groups are known: bounds are chosen first, then contributions, then totals are drawn."""
    if any(a.bounds == "auto" for a in asked.asks):
        search = BoundsSearch(asked, engine, groups)
        sizes = search.first()

        def drawn() -> Drawn:
            found = search.chosen(sizes)
            settled = replace(asked, asks=tuple(search.settled(a, found) for a in asked.asks))
            return replace(_ready(settled, engine, groups)(), bounds=tuple(found.items()))

        return drawn
    if asked.private or any(a.contribution == "auto" for a in asked.asks):
        norms = _unit_sizes(asked, engine, groups)
        return lambda: _with_sizes(asked, engine, groups, norms)
    exact = _exact(asked, engine, groups, asked.fixed())
    return lambda: _drawn(asked, groups, asked.fixed(), exact, {})


def _with_sizes(asked: Query, engine: Engine, groups: tuple[Key, ...], sizes: Sizes) -> Drawn:
    """Choose contributions from noisy unit norms, then query totals and add noise."""
    norms = {a: _norms(asked, a, exact) for a, exact in sizes.items()}
    contributions = [
        best_contribution(a, norms[a], len(groups), asked.psi_of(a))
        if a in norms
        else min(fixed, _most(asked, a, groups))
        for a, fixed in zip(asked.asks, asked.fixed(), strict=True)
    ]
    return _drawn(asked, groups, contributions, _exact(asked, engine, groups, contributions), norms)


def _most(asked: Query, aggregate: Aggregate, groups: tuple[Key, ...]) -> float:
    """The largest contribution that so many private groups leave: a refusal would come after they are paid for."""
    given = asked.private is None or aggregate.kind == "distinct"  # whose grid is the same for any number of groups
    return inf if given else largest_contribution(aggregate, len(groups))


def _exact(
    asked: Query, engine: Engine, groups: Sequence[Key], contributions: Sequence[float]
) -> dict[Aggregate, Exact]:
    """Exact totals of every aggregate, and units by size for those that choose nothing but are measured."""
    place = {key: i for i, key in enumerate(groups)}
    found: dict[Aggregate, Exact] = {}
    for query in asked.totals(contributions, groups, engine.narrow):
        empty = [
            Exact(
                grid, np.zeros((len(groups), a.bins, a.parts), np.int64), _no_sizes() if j in query.measured else None
            )
            for j, (a, grid) in enumerate(query.parts)
        ]
        for row in engine.rows(query.expression()):
            _place(query, row, place, empty)
        found |= {a: exact for (a, _), exact in zip(query.parts, empty, strict=True)}
    return found


def _no_sizes() -> Ints:
    return np.zeros(len(SIZES) + 1, np.int64)


def _place(query: Totals | DistinctTotals, row: tuple[Any, ...], place: dict[Key, int], found: list[Exact]) -> None:
    """One row of a result into the arrays; beyond 2^61 steps a total counts as that."""
    width = len(query.groups)
    if query.measured and (entry := int(row[-1])) >= 0:
        sizes = found[entry // 64].sizes
        assert sizes is not None
        sizes[entry % 64] = int(row[width])
        return
    binned = BIN in query.groups
    key = tuple(plain_key(value) for value in row[: width - binned])
    if key not in place:
        return
    group, box, at = place[key], int(row[width - 1]) if binned else 0, width
    for exact, vector in zip(found, query.coordinates, strict=True):
        for i, coordinate in enumerate(vector):
            total = int(row[at] or 0)
            steps = query.unit is not None or isinstance(query, DistinctTotals)
            total = total if steps else coordinate.in_steps(total)
            exact.totals[group, box, i] = min(max(total, -LARGEST), LARGEST)
            at += 1


def _drawn(
    asked: Query,
    groups: tuple[Key, ...],
    contributions: Sequence[float],
    found: dict[Aggregate, Exact],
    norms: dict[Aggregate, UnitNorms],
) -> Drawn:
    """Noise on every total, and on every number of units."""
    parts = []
    for a, contribution in zip(asked.asks, contributions, strict=True):
        exact = found[a]
        if (plan := asked.quantile_plan(a)) is not None:
            parts.append(Part(a, contribution, exact.lattice, _in_order(plan, exact), None))
            continue
        mechanism = GaussianMechanism(asked.sensitivity(a, contribution), asked.sigma(a, contribution), asked.adjacency)
        release = mechanism.release(
            ClippedSum(exact.lattice.norm, exact.lattice.unit, exact.totals, asked.one_entry(a))
        )
        noisy = Noisy(release.value, release.sigma, release.rounding)
        seen = norms.get(a) if exact.sizes is None else _norms(asked, a, exact.sizes)
        parts.append(Part(a, contribution, exact.lattice, noisy, seen))
    return Drawn(groups, tuple(parts))


def _in_order(plan: ResidualPlan, exact: Exact) -> Noisy:
    """Counts of every group's bins with noise made for their cumulative sums; a row is in one group."""
    steps, bins = exact.lattice.truncated(1.0), (0,)
    groups = [noisy_residuals(plan, {bins: group[:, 0]}, steps) for group in exact.totals]
    cells = np.array([plan.marginals.decode(bins, group) for group in groups])
    return Noisy(cells[:, :, None], plan.sigmas[0], plan.sigmas[0] * 2.0**-24, plan)


def _norms(asked: Query, aggregate: Aggregate, sizes: Ints) -> UnitNorms:
    """Noise on the numbers of units by size; a unit is in one of them."""
    sensitivity = histogram(asked.adjacency)
    sigma = Guarantee(asked.psi_of_norms(aggregate)).sigma(sensitivity)
    return UnitNorms(GaussianMechanism(sensitivity, sigma, asked.adjacency).release(sizes).value, sigma)


def _chosen_groups(asked: Query, private: PrivateGroups, counts: list[tuple[Any, ...]]) -> tuple[Key, ...]:
    """Keys whose noisy number of units exceeds the threshold, in an order that is not the engine's."""
    lattice, times = private.lattice, private.steps[0] if asked.unit is None else 1
    sensitivity = clipped_vector(private.contribution, asked.adjacency)
    sigma = Guarantee(asked.share(private.weight)).sigma(sensitivity)
    mechanism = GaussianMechanism(sensitivity, sigma, asked.adjacency)
    threshold = private.threshold(mechanism.sigma, float(mechanism.grid or 0.0))
    exact = np.array([min(int(row[-1]) * times, LARGEST) for row in counts], np.int64)
    noisy = mechanism.release(ClippedSum(lattice.norm, lattice.unit, exact)).value
    kept = [
        tuple(_spelled(plain_key(v)) for v in row[:-1]) for row, y in zip(counts, noisy, strict=True) if y > threshold
    ]
    return tuple(sorted(kept, key=lambda key: [(value is None, str(type(value)), value) for value in key]))


def _spelled(value: Any) -> Any:
    """A key in the one spelling it has: PostgreSQL shows 1.0 or 1.000 for equal numbers, whichever row it met."""
    if not isinstance(value, Decimal):
        return value
    text = f"{value:f}"  # every digit, where arithmetic on decimals rounds to 28
    return Decimal(text.rstrip("0").rstrip(".") if "." in text else text)


def _unit_sizes(asked: Query, engine: Engine, groups: tuple[Key, ...]) -> Sizes:
    """For each aggregate that is to choose, how many units have a norm of each size; exact."""
    sizes: Sizes = {}
    for query in asked.choices(groups, engine.narrow):
        sizes |= {a: _no_sizes() for a, _ in query.parts}
        for entry, n in engine.rows(query.sizes()):
            sizes[query.parts[int(entry) // 64][0]][int(entry) % 64] = int(n)
    return sizes
