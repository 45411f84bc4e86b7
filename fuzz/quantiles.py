"""A quantile's rank is off by no more than its noise explains, however many empty bins there are."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from psidp import ask
from psidp.tables.measures import quantiles
from psidp.tables.strategies.identity import IndependentTotals


def explore(random: Random) -> None:
    """40 releases of one histogram: the mean error of the rank is within what 40 random walks can have."""
    dice = np.random.default_rng(random.getrandbits(64))
    bins, rows, q = random.choice([200, 600, 1500]), random.randint(200, 2000), random.choice([0.1, 0.25, 0.75, 0.9])
    asked = ask.quantiles("x", range(bins + 1), at=[q])
    held = np.bincount((bins * dice.beta(2.0, 8.0, rows)).astype(int), minlength=bins)
    sigma = rows / bins**0.5 / 12.0
    below, errors = np.concatenate([[0.0], np.cumsum(held)]), []
    noisy = IndependentTotals((held + sigma * dice.normal(size=(40, bins)))[:, :, None], sigma, 0.0, (1.0,))
    for (found,) in asked.measure.estimates(noisy.cells(range(40), 0.95)):
        errors.append(np.interp(found.value, range(bins + 1), below) - q * rows)
    limit = 0.6 * sigma * bins**0.5 + 0.5 * held.max()
    assert abs(np.mean(errors)) < limit, (
        f"quantile {q} of {rows} rows in {bins} bins, sigma {sigma}: rank off by {np.mean(errors):.1f} > {limit:.1f}"
    )


def _without_negatives(raw: Any) -> Any:
    """Version 0.1: counts below 0 set to 0 and added up."""
    return np.concatenate([[0.0], np.cumsum(np.maximum(np.diff(raw), 0.0))])


RELAPSES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "counts below zero set to zero": lambda: patch.object(quantiles, "isotonic", _without_negatives),
}
