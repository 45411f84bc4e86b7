"""Intervals of a cube: they cover as often as they say, all edges at once, and end where truth must."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from psidp import Guarantee
from psidp.strategies.haar import Haar
from psidp.strategies.marginals import Marginals
from psidp.strategies.ordered import ordered
from psidp.strategies.residual_plan import least_worst
from psidp.tables import ask
from psidp.tables.cube_answer import Cube, quantile_estimate
from psidp.tables.strategies.residual import Column, Residuals

EDGES = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)
COLUMNS = (Column("group", keys=("a", "b")), Column("age", edges=EDGES, ordered=True))
PLAN = least_worst(Marginals((Haar(2), ordered(5)), ((0, 1),)), 1.0)
RUNS, FALSE_ALARM = 1_000, 1e-6


def cube(counts, rng, confidence=0.95, measures=None, sums=None):
    """A cube of counts, and of sums in rows where told, with noise of NumPy's: its law is what matters here."""
    measures = measures or (ask.count(),)
    marginals, noisy = PLAN.marginals, []
    for exact in (counts,) if sums is None else (counts, sums):
        noisy.append(
            {
                s: marginals.encode(s, (0, 1), np.asarray(exact, float))
                + rng.normal(size=marginals.scales(s).multiple.shape) * marginals.scales(s).value * PLAN.sigma(s)
                for s in marginals.residuals
            }
        )
    n = len(noisy)
    return Cube(COLUMNS, measures, (Residuals((PLAN,) * n, tuple(noisy), (1.0,) * n),), Guarantee(1.0), confidence, ())


def enough(covered, runs, chance):
    """Whether intervals that cover with this chance would be seen to cover so rarely once in a million times."""
    return covered >= binom.ppf(FALSE_ALARM, runs, chance)


def test_shares_below_edges_cover_all_at_once_and_stay_within_0_and_1():
    """One group has all its rows in its first bins: the share is 1 there, and noise goes beyond it."""
    counts = np.array([[30, 10, 0, 0, 0], [20, 20, 20, 20, 20]])
    truth = (np.cumsum(counts, axis=1) / counts.sum(axis=1, keepdims=True))[:, :-1]
    rng, covered, beyond = np.random.default_rng(1), np.zeros(2), 0
    for _ in range(RUNS):
        rows = cube(counts, rng).cdf("age", by="group").rows
        low, high, value = (
            np.array([getattr(e, name) for _, e in rows]).reshape(2, 4) for name in ("lower", "upper", "value")
        )
        assert (low >= 0.0).all()
        assert (low <= high).all()
        assert (high <= 1.0).all()
        assert ((low <= value) & (value <= high)).all()
        beyond += int((low[0] == 1.0).any())
        covered += ((low <= truth) & (truth <= high)).all(axis=1)
    assert beyond > 0  # the case is met in which the raw interval lies beyond 1
    assert enough(covered.min(), RUNS, 0.95)


def test_quantiles_cover_and_need_no_proof_of_the_outer_edges():
    counts = np.array([[3, 1, 2, 0, 1], [200, 100, 50, 30, 20]])
    rng, covered = np.random.default_rng(2), np.zeros(2)
    below = np.cumsum(counts, axis=1)
    true_bin = [int(np.argmax(row >= 0.5 * row[-1])) for row in below]
    for _ in range(RUNS):
        rows = cube(counts, rng).quantile("age", 0.5, by="group").rows
        covered += [e.lower <= EDGES[j] and EDGES[j + 1] <= e.upper for (_, e), j in zip(rows, true_bin, strict=True)]
    assert enough(covered.min(), RUNS, 0.95)
    edges, room = np.array([0.0, 1.0, 2.0]), np.full(3, 1.0)
    negative = quantile_estimate("q", edges, np.array([0.0, -5.0, -9.0]), 0.5, room, 1.96, "")
    assert (negative.lower, negative.upper) == (0.0, 2.0)


@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.95, 0.999])
def test_intervals_cover_at_every_confidence(confidence):
    """Wide enough for the normal and for coefficients all rounded the worst way by half a grid of 2^-24 sigma."""
    rng = np.random.default_rng(3)
    counts = np.zeros((2, 5))
    e = cube(counts, rng, confidence).query({"group": "a", "age": [1.0, 4.0]})
    question = np.zeros((2, 5))
    question[0, [1, 3]] = 1.0
    asked = PLAN.marginals.weights((0, 1), question)
    worst = sum(np.abs(w * PLAN.marginals.scales(s).value).sum() * PLAN.sigma(s) for s, w in asked.items()) * 2.0**-25
    half = 0.5 * (e.upper - e.lower)
    z = norm.isf((1 - confidence) / 2)
    assert z * PLAN.deviation((0, 1), question) + worst <= half <= (z + 1e-6) * e.standard_error
    covered = 0
    for _ in range(RUNS):
        e = cube(counts, rng, confidence).query({"group": "a"})
        covered += e.lower <= 0.0 <= e.upper
    assert enough(covered, RUNS, confidence)
    assert covered <= binom.isf(FALSE_ALARM, RUNS, confidence)


def test_means_cover_and_stay_within_their_bounds():
    counts = np.array([[9, 30, 0, 5, 60], [200, 100, 50, 30, 20]])
    ratios = np.array([[1.0, -0.3, 0.0, -1.0, 0.5], [0.1, 0.2, -0.9, 1.0, -1.0]])
    rng, covered, runs = np.random.default_rng(4), 0, 300
    for _ in range(runs):
        rows = cube(counts, rng, measures=(ask.mean("v", 10, 20),), sums=counts * ratios).table("group", "age").rows
        found = [(e, 15.0 + 5.0 * r) for (_, e), r in zip(rows, ratios.reshape(-1), strict=True)]
        assert all(10.0 <= e.lower <= e.value <= e.upper <= 20.0 for e, _ in found)
        covered += sum(e.lower <= truth <= e.upper for e, truth in found)
    assert covered >= (0.95 - 4.9 * np.sqrt(0.95 * 0.05 / runs)) * 10 * runs  # as if cells of a cube were all alike


def test_a_share_of_the_whole_is_covered():
    counts = np.array([[9, 30, 0, 5, 60], [200, 100, 50, 30, 20]])
    rng, covered = np.random.default_rng(5), 0
    for _ in range(RUNS):
        e = cube(counts, rng).ratio({"group": "b", "age": [0.0, 1.0]}, {"group": "b"})
        covered += e.lower <= 0.75 <= e.upper
    assert enough(covered, RUNS, 0.95)
    assert covered <= binom.isf(FALSE_ALARM, RUNS, 0.95)
