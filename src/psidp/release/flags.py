"""Flags: which numbers of an answer are not to be taken at their word, judged from what was released alone."""

from collections.abc import Sequence
from dataclasses import replace
from math import nan

import numpy as np

from psidp.release.ask import Aggregate
from psidp.release.cell import middle_and_half
from psidp.release.contribution import RATIOS
from psidp.release.estimate import NOISE, Estimate

__all__ = ["CLIPPING", "flagged"]

CLIPPING = "clipping"
"""What clipping took may move the number by more than half of its interval's half width."""

PATIENCE = 0.5
"""Part of the half width that an estimated bias may have. With the whole of it intervals cover 0.93 instead of 0.95."""

FEW, LEAST, LEAST_OF_FEW = 4, 0.01, 0.05
"""Clipped units are taken to differ by at least 0.01 of the half range; 0.05 where fewer than four groups can tell."""


def flagged(aggregate: Aggregate, groups: Sequence[Sequence[Estimate]], lost: float) -> list[list[Estimate]]:
    """The estimates of every group, with a flag where clipping may move them further than their intervals say.

    Totals (count, sum, bin): the bias is value lost/(1 - lost). Ratios (mean, variance, quantile): lost D, where D is
    how much the groups differ beyond their noise, as a guess at how much clipped units differ from others. `lost` is
    the share of the total that was clipped away, estimated from noisy unit norms, nan where it is not known.
    """
    if not lost > 0.0:
        return [list(estimates) for estimates in groups]
    columns = list(zip(*groups, strict=True))
    differ = [_difference(aggregate, column) if aggregate.kind in RATIOS else nan for column in columns]
    return [[_judged(e, lost, d) for e, d in zip(estimates, differ, strict=True)] for estimates in groups]


def _judged(estimate: Estimate, lost: float, difference: float) -> Estimate:
    """One number, flagged if its bias may be too large."""
    kept = max(1.0 - lost, 1e-12)
    bias = lost * difference if difference == difference else abs(estimate.value) * lost / kept
    if bias <= PATIENCE * 0.5 * (estimate.upper - estimate.lower):
        return estimate
    return replace(estimate, flag=", ".join(filter(None, (estimate.flag, CLIPPING))))


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
    _, half = middle_and_half(aggregate)
    return half * half if aggregate.kind == "variance" else half
