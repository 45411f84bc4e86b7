"""Directions: events as compositions, one for each direction of adjacency, for the lower end and for the upper one."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from psidp.accounting.composition import Composition, Pair
from psidp.accounting.events import DPSGD, RandomAllocation
from psidp.accounting.exact_sums import Squares
from psidp.accounting.pld.allocation import Allocation
from psidp.accounting.pld.mixture import Mixture
from psidp.guarantee import Guarantee

__all__ = ["both_ways"]

Compositions = tuple[Composition, ...]
REMOVED, SYMMETRIC = 1, 2


def both_ways(series: Sequence[DPSGD | RandomAllocation | Guarantee]) -> tuple[Compositions, Compositions]:
    """The compositions whose profiles bound the series from below and from above; the same where they are exact."""
    squares = Counter(Fraction(event.psi) ** 2 for event in series if isinstance(event, Guarantee))
    runs = [event for event in series if isinstance(event, DPSGD)]
    for event in series:
        if isinstance(event, RandomAllocation) and event.batches == 1:
            squares[1 / Fraction(event.noise_multiplier) ** 2] += event.epochs
        elif isinstance(event, DPSGD) and event.group > 1 and event.sampling_rate == 1.0:
            squares[(event.group / Fraction(event.noise_multiplier)) ** 2] += event.steps
    plain = Squares.of(squares.items())
    sampled = any(0.0 < run.sampling_rate < 1.0 for run in runs) or any(isinstance(e, RandomAllocation) for e in series)
    floor, ceiling = plain.between() if sampled else (plain, plain)
    below = above = _composed(series, floor, False)
    if floor is not ceiling or any(run.sampling != "poisson" or run.truncation for run in runs):
        above = _composed(series, ceiling, True)
    return below, above


def _composed(series: Iterable[DPSGD | RandomAllocation | Guarantee], plain: Squares, above: bool) -> Compositions:
    """The composition seen from both directions, once where they are the same."""
    rows: list[tuple[float, float, float, int]] = []
    pairs: Counter[Pair] = Counter()
    for event in series:
        if isinstance(event, RandomAllocation):
            if event.batches > 1:
                pairs[Allocation(event.noise_multiplier, event.batches, 1.0)] += event.epochs
        elif isinstance(event, DPSGD):
            rate = event.sampling_rate if above else _kept(event)
            pair = _pair(event, rate)
            if pair is not None:
                pairs[pair] += event.steps
            elif event.group == 1:
                kind = SYMMETRIC if above and event.sampling != "poisson" else REMOVED
                rows.append((event.noise_multiplier, rate, float(event.steps), kind))
    made = [replace(pair, count=float(count)) for pair, count in pairs.items()]  # type: ignore[type-var]
    steps = Composition.merge(rows, plain, made)
    one_sided = (np.abs(steps.sign) == 1.0).any() or any(pair.mirrored != pair for pair in steps.pairs)
    return (steps, steps.mirrored) if one_sided else (steps,)


def _pair(run: DPSGD, rate: float) -> Pair | None:
    """One step of a run that no column of a composition describes."""
    if not 0.0 < rate < 1.0:
        return None
    if run.group > 1:
        return Mixture.group(run.noise_multiplier, rate, run.group, 1.0)
    if run.sampling == "poisson" and run.adjacency == "replace-one":
        return Mixture.replaced(run.noise_multiplier, rate, 1.0)
    return None


def _kept(run: DPSGD) -> float:
    """A rate that data attain: a sampled record stays in a batch that is not truncated. Rounded down."""
    lost = run.step_truncation
    return run.sampling_rate * (1.0 - lost) * (1.0 - 2.0**-50) if lost else run.sampling_rate
