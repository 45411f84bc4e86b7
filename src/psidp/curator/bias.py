"""Bias: what clipping may have moved. Intervals of totals reach up to it; what it may move further is flagged."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from psidp.curator.ask import Aggregate
from psidp.curator.contribution import RATIOS
from psidp.curator.estimate import NOISE, Estimate
from psidp.curator.row_sql import middle_and_half

__all__ = ["CLIPPING", "flagged", "reaching"]

CLIPPING = "clipping"
"""What clipping took may move the number by more than its interval says."""

UNEVEN = 2.0
"""A group is taken to lose at most so many times the share that all groups lose together."""

PATIENCE, PATIENCE_AT_EDGES = 0.5, 1.0
"""Part of the half width that the estimated bias of a ratio may have. With the whole of it intervals cover 0.93 instead
of 0.95; those of quantiles end at edges, up to a bin beyond what noise asks for, and cover 0.95 all the same."""

FEW, LEAST, LEAST_OF_FEW = 4, 0.01, 0.05
"""Clipped units are taken to differ by at least 0.01 of the half range; 0.05 where fewer than four groups can tell."""


def flagged(
    aggregate: Aggregate, groups: Sequence[Sequence[Estimate]], lost: float, excess: float = inf
) -> list[list[Estimate]]:
    """The estimates of every group, with a flag where clipping may move them further than their intervals say.

    Totals (count, sum, bin): the interval reaches further by what clipping may have taken from the group, twice the
    share that all groups may have lost and no more than all that they may have lost; where that is more than the
    interval's own width, it stays and is flagged. Ratios (mean, variance, quantile): the bias is taken to be lost D,
    where D is how much the groups differ beyond their noise, as a guess at how much clipped units differ from others.

    `lost` is the share of the total that clipping may have taken, from noisy unit norms, nan where nothing was
    measured; `excess` is how much that is, in the aggregate's own unit.
    """
    if not lost > 0.0:
        return [list(estimates) for estimates in groups]
    if aggregate.kind not in RATIOS:
        down, up = _sides(aggregate)
        return [[_reaching_up_to_loss(e, lost, excess, down, up) for e in estimates] for estimates in groups]
    differ = [_difference(aggregate, column) for column in zip(*groups, strict=True)]
    patience = PATIENCE_AT_EDGES if aggregate.kind == "quantiles" else PATIENCE
    return [
        [_judged(e, lost * d, patience * 0.5) for e, d in zip(estimates, differ, strict=True)] for estimates in groups
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
