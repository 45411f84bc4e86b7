"""Calibration: how much less than Bonferroni the rungs of a ladder cost, from the stored table that its script made.

At n scores a side the chance that some rung's p-value is at or below gain * alpha/rungs is at most alpha, for every psi
simulated and every alpha in [LOWEST, HIGHEST]; the simulation's own error is taken off the gain. Outside the table's
reach the gain is 1: Bonferroni, which needs no table.
"""

from functools import cache
from importlib.resources import files

import numpy as np

from psidp.auditing.scores import Scores

__all__ = ["HIGHEST", "LOWEST", "gain", "level", "paid"]

LOWEST, HIGHEST = 0.01, 0.1
UNEVEN = 10.0
"""The table was made with sides up to this factor apart."""


@cache
def _table() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Sizes of the side with the out-scores, ascending, and their gains."""
    lines = (files("psidp.auditing") / "calibration.csv").read_text().splitlines()[1:]
    rows = [tuple(map(float, line.split(","))) for line in lines]
    return tuple(r[0] for r in rows), tuple(r[1] for r in rows)


def gain(n_in: int, n_out: int) -> float:
    """How many times Bonferroni's level a rung may use; between two sizes of the table the smaller gain of both."""
    sizes, gains = _table()
    if not (sizes[0] <= n_out <= sizes[-1] and max(n_in / n_out, n_out / n_in) <= UNEVEN):
        return 1.0
    right = int(np.searchsorted(sizes, n_out))
    return max(min(gains[max(right - 1, 0)], gains[right]), 1.0)


def level(alpha: float, rungs: int, scores: Scores, calibrated: bool) -> float:
    """The level of one rung so that all together are wrong with probability alpha at most."""
    reach = calibrated and LOWEST <= alpha <= HIGHEST
    return alpha / rungs * (gain(scores.n_in, scores.n_out) if reach else 1.0)


def paid(smallest: float, rungs: int, scores: Scores, calibrated: bool) -> float:
    """The smallest alpha at which the ladder refutes, from the smallest p-value of its rungs."""
    plain = min(smallest * rungs, 1.0)
    if not calibrated:
        return plain
    eased = max(smallest * rungs / gain(scores.n_in, scores.n_out), LOWEST)
    return min(plain, eased) if eased <= HIGHEST else plain
