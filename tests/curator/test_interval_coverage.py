"""Intervals of means, variances, deviations and ratios cover as often as they say, whatever the size of the noise."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtri

from psidp import ask
from psidp.curator.estimate import Noisy, estimates
from psidp.curator.query import grid_of

CONFIDENCE = 0.9
TIMES = 1500
SIZES = [1.0, 10.0, 1e2, 1e4, 1e6, 1e8, 1e9, 1e10, 1e12]
"""Rows over the noise of their number."""
MEANS = [ask.mean("x", -3.0, 5.0), ask.mean("x", 1000.0, 1001.0)]
KINDS = [*MEANS, ask.variance("x", 0.0, 2.0), ask.deviation("x", -1.0, 4.0),
         ask.ratio(ask.sum("x", 0, 50), ask.count()), ask.ratio(ask.sum("x", -1, 7), ask.sum("y", 0, 3))]  # fmt: skip


def of_totals(aggregate, totals, row):
    """The statistic of exact totals, in fractions: number of rows, sum of t in [-1, 1], sum of 2 t^2 - 1."""
    if aggregate.kind == "ratio":
        above, below = (Fraction(int(x)) * Fraction(t.reach) for x, t in zip(totals, aggregate.terms, strict=True))
        return float(above / below)
    n, *rest = (Fraction(int(x)) for x in totals)
    low, high = Fraction(aggregate.lower), Fraction(aggregate.upper)
    first = rest[0] / n
    if aggregate.kind == "mean":
        return float((low + high) / 2 + (high - low) / 2 * first)
    variance = ((high - low) / 2) ** 2 * ((rest[1] / n + 1) / 2 - first**2)
    return float(variance) if aggregate.kind == "variance" else float(variance) ** 0.5


@pytest.mark.parametrize("aggregate", KINDS, ids=lambda a: a.name)
def test_intervals_cover_as_often_as_they_say_from_no_signal_to_hardly_any_noise(aggregate):
    """Noise on known totals; fails by chance once in a million. Where nothing is known the interval is wider."""
    rng = np.random.default_rng(31)
    grid = grid_of(aggregate, 1.0, 1)
    row = grid.part(aggregate.parts)
    tolerance = -ndtri(1e-6 / len(SIZES)) * np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / TIMES)
    for size in SIZES:
        sigma = 1000.0 * row if size < 1e6 else 1000.0
        rows = round(size * sigma / row) if size < 1e6 else size * sigma / row
        t = rng.uniform(-0.9, 0.9)
        totals = np.rint(np.array([1.0, t, 2 * t * t - 1 + 0.3 * (1 - t * t)]) * rows * row)[: aggregate.parts]
        if aggregate.kind == "ratio":
            totals = np.rint(np.array([abs(t), 0.8]) * rows * row)
        truth = of_totals(aggregate, totals, row)
        noise = np.rint(sigma * rng.normal(size=(TIMES, 1, totals.size)))
        noisy = Noisy((totals + noise) * grid.step, sigma * grid.step, 0.5 * grid.step)
        found = [estimates(aggregate, grid, noisy, i, CONFIDENCE)[0] for i in range(TIMES)]
        low, high = (np.array([getattr(e, end) for e in found]) for end in ("lower", "upper"))
        covered = ((low <= truth) & (truth <= high)).mean()
        assert covered >= CONFIDENCE - tolerance, f"{aggregate.name} at {size:g}: {covered}"
        if (
            aggregate.kind in ("mean", "ratio") and 1e2 <= size <= 1e10
        ):  # one interval, exact: it is no wider than it must be
            assert covered <= CONFIDENCE + tolerance, f"{aggregate.name} at {size:g}: {covered}"
            assert (high > low).all()


def test_an_interval_at_a_billion_rows_per_noise_is_neither_a_point_nor_the_whole_range():
    aggregate = ask.mean("x", 0.0, 10.0)
    grid = grid_of(aggregate, 1.0, 1)
    sigma = 1e-9
    noisy = Noisy(np.array([[[1.0, 0.3]]]), sigma, 0.0)
    (mean,) = estimates(aggregate, grid, noisy, 0, 0.95)
    assert mean.lower < mean.value < mean.upper
    assert mean.upper - mean.lower == pytest.approx(2 * 1.96 * 5 * sigma * np.sqrt(1.09), rel=1e-3)
