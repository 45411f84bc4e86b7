"""Drawing: exact totals from the engine, then noise. Everything before the first noise can fail without a cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psidp.guarantee import Guarantee
from psidp.maths.sensitivity import clipped_vector, histogram
from psidp.noise.totals import LARGEST
from psidp.release.ask import CANDIDATES, Aggregate
from psidp.release.bounding import BIN, Totals
from psidp.release.cell import stairs, whole
from psidp.release.clipping import ClippedSum
from psidp.release.engine import Engine
from psidp.release.estimate import Noisy
from psidp.release.keys import Key, PrivateKeys, plain_key
from psidp.release.lattice import Lattice
from psidp.release.mechanism import GaussianMechanism
from psidp.release.question import Question

__all__ = ["Drawn", "prepare"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Noisy totals of every aggregate, the keys they belong to, the contributions that were used."""

    keys: tuple[Key, ...]
    contributions: tuple[float, ...]
    noisy: tuple[tuple[Aggregate, Lattice, Noisy], ...]


def prepare(asked: Question, engine: Engine) -> Callable[[], Drawn]:
    """Ask the engine for the first exact totals; what comes back draws noise, and is called once it is paid for."""
    engine.check_keys(asked.rows, asked.by)
    if asked.private is not None:
        counts = engine.rows(asked.private.expression(asked.rows, asked.unit, asked.by))
        private = asked.private
        return lambda: _with_keys(asked, engine, _chosen_keys(asked, private, counts))
    keys = tuple(asked.keys)  # type: ignore[arg-type]
    if any(a.contribution == "auto" for a in asked.asks):
        sizes = _unit_sizes(asked, engine, keys)
        return lambda: _with_contributions(asked, engine, keys, _chosen_contributions(asked, keys, sizes))
    totals = _exact(asked, engine, keys, asked.largest())
    return lambda: _drawn(asked, keys, asked.largest(), totals)


def _with_keys(asked: Question, engine: Engine, keys: tuple[Key, ...]) -> Drawn:
    """The rest, once keys are known to all."""
    if not keys:
        return Drawn((), tuple(asked.largest()), ())
    sizes = _unit_sizes(asked, engine, keys)
    return _with_contributions(asked, engine, keys, _chosen_contributions(asked, keys, sizes))


def _with_contributions(
    asked: Question, engine: Engine, keys: tuple[Key, ...], contributions: Sequence[float]
) -> Drawn:
    """The rest, once contributions are known to all."""
    return _drawn(asked, keys, contributions, _exact(asked, engine, keys, contributions))


def _exact(
    asked: Question, engine: Engine, keys: Sequence[Key], contributions: Sequence[float]
) -> dict[Aggregate, tuple[Lattice, Ints]]:
    """Totals in lattice steps: groups by bins by coordinates."""
    place = {key: i for i, key in enumerate(keys)}
    found: dict[Aggregate, tuple[Lattice, Ints]] = {}
    for query in asked.totals(contributions, keys, engine.narrow):
        arrays = [np.zeros((len(keys), a.bins, a.parts), np.int64) for a, _ in query.parts]
        for row in engine.rows(query.expression()):
            _place(query, row, place, arrays)
        found |= {a: (lattice, array) for (a, lattice), array in zip(query.parts, arrays, strict=True)}
    return found


def _place(query: Totals, row: tuple[Any, ...], place: dict[Key, int], arrays: list[Ints]) -> None:
    """One row of a result into the arrays; beyond 2^61 steps a total counts as that."""
    width = len(query.groups)
    binned = BIN in query.groups
    key = tuple(plain_key(value) for value in row[: width - binned])
    if key not in place:
        return
    group, box, at = place[key], int(row[width - 1]) if binned else 0, width
    for array, vector in zip(arrays, query.coordinates, strict=True):
        for i, coordinate in enumerate(vector):
            total = int(row[at] or 0)
            total = total if query.unit is not None else coordinate.in_steps(total)
            array[group, box, i] = min(max(total, -LARGEST), LARGEST)
            at += 1


def _drawn(
    asked: Question,
    keys: tuple[Key, ...],
    contributions: Sequence[float],
    totals: dict[Aggregate, tuple[Lattice, Ints]],
) -> Drawn:
    """Noise on every total."""
    noisy = []
    for a, contribution in zip(asked.asks, contributions, strict=True):
        lattice, exact = totals[a]
        mechanism = GaussianMechanism(asked.sensitivity(a, contribution), asked.sigma(a, contribution), asked.adjacency)
        release = mechanism.release(ClippedSum(lattice.norm, lattice.unit, exact))
        noisy.append((a, lattice, Noisy(release.value, release.sigma, release.rounding)))
    return Drawn(keys, tuple(contributions), tuple(noisy))


def _chosen_keys(asked: Question, private: PrivateKeys, counts: list[tuple[Any, ...]]) -> tuple[Key, ...]:
    """Keys whose noisy number of units exceeds the threshold, in an order that is not the engine's."""
    lattice, times = private.lattice, private.steps[0] if asked.unit is None else 1
    sensitivity = clipped_vector(private.contribution, asked.adjacency)
    sigma = Guarantee(asked.share(private.weight)).sigma(sensitivity)
    mechanism = GaussianMechanism(sensitivity, sigma, asked.adjacency)
    threshold = private.threshold(mechanism.sigma, float(mechanism.grid or 0.0))
    exact = np.array([min(int(row[-1]) * times, LARGEST) for row in counts], np.int64)
    noisy = mechanism.release(ClippedSum(lattice.norm, lattice.unit, exact)).value
    kept = [tuple(plain_key(v) for v in row[:-1]) for row, y in zip(counts, noisy, strict=True) if y > threshold]
    return tuple(sorted(kept, key=lambda key: [(value is None, str(type(value)), value) for value in key]))


def _unit_sizes(asked: Question, engine: Engine, keys: tuple[Key, ...]) -> dict[Aggregate, Ints]:
    """For each aggregate that is to choose, how many units lie between its candidates; exact."""
    sizes = {}
    for query in asked.totals(asked.largest(), keys, engine.narrow):
        for a, lattice in query.parts:
            if a.contribution != "auto":
                continue
            alone = Totals(query.rows, query.unit, query.by, ((a, lattice),), query.narrow).norms()
            bounds = [lattice.truncated(c * a.reach) for c in CANDIDATES[:-1]]
            over = [whole(bound * bound + 1) for bound in bounds]
            binned = alone.select(size=stairs(alone.q0, over, range(len(CANDIDATES))))
            counted = binned.group_by("size").aggregate(n=binned.count())
            sizes[a] = np.zeros(len(CANDIDATES), np.int64)
            for size, n in engine.rows(counted):
                sizes[a][int(size)] = int(n)
    return sizes


def _chosen_contributions(asked: Question, keys: Sequence[Key], sizes: dict[Aggregate, Ints]) -> list[float]:
    """Smallest candidate that clips no more units than noise would hide: sqrt(totals)/psi, and twice the doubt."""
    chosen = []
    for a, largest in zip(asked.asks, asked.largest(), strict=True):
        if a.contribution != "auto":
            chosen.append(largest)
            continue
        sensitivity = histogram(asked.adjacency)
        mechanism = GaussianMechanism(
            sensitivity, Guarantee(asked.psi_of_choice(a)).sigma(sensitivity), asked.adjacency
        )
        noisy = mechanism.release(sizes[a]).value
        over = np.cumsum(noisy[::-1])[::-1]  # over[i + 1]: units above candidate i
        enough = sqrt(len(keys) * a.bins) / asked.psi_of(a)
        doubt = 2.0 * mechanism.sigma * np.sqrt(np.arange(len(CANDIDATES), 0, -1))
        fits = [c for i, c in enumerate(CANDIDATES[:-1]) if over[i + 1] <= enough + doubt[i + 1]]
        chosen.append(fits[0] if fits else CANDIDATES[-1])
    return chosen
