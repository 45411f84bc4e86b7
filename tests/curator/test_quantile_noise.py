"""Noise of quantiles: made for cumulative counts where every row is a unit, and that of each bin alone where not."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pandas as pd
import pytest

from psidp import ClippedSum, Curator, GaussianMechanism, ask
from psidp.curator.estimate import Noisy
from psidp.curator.execute import prepare
from psidp.curator.notes import answer_of

EDGES = np.linspace(-0.5, 200.5, 202)


@pytest.fixture(scope="module")
def waits():
    dice = np.random.default_rng(3)
    return pd.DataFrame({"who": dice.integers(0, 90, 900), "ward": dice.choice(["A", "B"], 900, p=[0.4, 0.6])}).assign(
        wait=np.clip(dice.gamma(2.0, 20.0, 900), 0, 200).round()
    )


def question(frame, unit, adjacency="add-remove", psi=1.0, asked=None):
    curator = Curator(frame, unit, adjacency=adjacency)
    asks = (asked or ask.quantiles("wait", EDGES, [0.1, 0.5, 0.9]),)
    return curator._question(asks, "ward", ["A", "B"], None, psi, 1.0, 0.95)


def test_one_row_moves_what_is_released_by_no_more_than_psi(waits):
    for adjacency, times in (("add-remove", 1), ("replace-one", 2)):
        query = question(waits, None, adjacency, psi=0.7)
        plan = query.quantile_plan(query.asks[0])
        assert plan.squared * times**2 <= Fraction(0.7) ** 2
        assert float(plan.squared) * times**2 > 0.7**2 * (1 - 1e-9)
        basis, (total, spread) = plan.marginals.bases[0], plan.sigmas
        for column in range(0, basis.size, 17):  # a row in this bin, in exact fractions
            image = sum(Fraction(int(u)) ** 2 for u in basis.matrix[:, column]) / basis.squares[0]
            assert 1 / Fraction(total) ** 2 + image / Fraction(spread) ** 2 <= plan.squared


def test_units_with_several_rows_keep_the_noise_of_each_bin(waits):
    query = question(waits, "who")
    assert query.quantile_plan(query.asks[0]) is None
    assert "best where a unit's rows are bounded in L2" in Curator(waits, "who").plan(*query.asks, psi=1.0).summary()
    wide = question(waits, None, asked=ask.quantiles("wait", np.arange(2000.0)))
    assert wide.quantile_plan(wide.asks[0]) is None
    assert "for the number of bins" in Curator(waits, None).plan(*wide.asks, psi=1.0).summary()


def test_without_noise_to_speak_of_quantiles_are_the_truth(waits):
    answer = Curator(waits, None).release(
        ask.quantiles("wait", EDGES, [0.1, 0.5, 0.9]), by="ward", groups=["A", "B"], psi=1e4
    )
    for row in answer:
        q = float(row["statistic"].split()[1])
        values = np.sort(waits[waits.ward == row["ward"]].wait)
        assert abs(row["value"] - values[int(q * values.size)]) <= 1.0


def test_errors_are_a_fraction_of_those_of_bins_alone_and_intervals_cover(waits):
    asked = ask.quantiles("wait", EDGES, [0.1, 0.5, 0.9])
    curator, error, misses = Curator(waits, None), [], 0
    for _ in range(40):
        for row in curator.release(asked, by="ward", groups=["A", "B"], psi=1.0):
            q = float(row["statistic"].split()[1])
            values = np.sort(waits[waits.ward == row["ward"]].wait)
            error.append(abs(row["value"] - np.quantile(values, q)))
            misses += not row["lower"] <= values[int(q * values.size)] <= row["upper"]
    assert np.mean(error) < 1.2
    assert misses <= 0.05 * len(error)
    query = question(waits, None)
    made = Noisy(np.zeros(0), 1.0, 0.0, query.quantile_plan(query.asks[0])).deviations(201, 0.5)
    assert made.max() < 0.4 * Noisy(np.zeros(0), 1.0, 0.0).deviations(201, 0.5).max()


def test_a_row_that_is_replaced_leaves_one_count_and_comes_into_another(waits):
    for kind, times in ((ask.count(), sqrt(2)), (ask.histogram("wait", EDGES), sqrt(2)), (ask.mean("wait", 0, 200), 2)):
        query = question(waits, None, "replace-one", asked=kind)
        assert query.sensitivity(query.asks[0], 1.0) == pytest.approx(times, rel=1e-15)
        assert query.sensitivity(query.asks[0], 1.0) >= times
    several = question(waits, "who", "replace-one", asked=ask.count())
    assert several.sensitivity(several.asks[0], 1.0) == 2.0
    answer = Curator(waits, None, adjacency="replace-one").release(ask.count(), by="ward", groups=["A", "B"], psi=1.0)
    assert next(iter(answer))["standard_error"] == pytest.approx(sqrt(2), rel=1e-9)


def test_a_clipped_sum_of_any_vectors_is_still_refused_at_sqrt_2():
    mechanism = GaussianMechanism(1.5, 1.0, "replace-one")
    totals = np.zeros(3, np.int64)
    assert mechanism.release(ClippedSum(1.0, -20, totals, one_entry=True)).value.shape == (3,)
    with pytest.raises(ValueError, match=r"at least 2\.0"):
        mechanism.release(ClippedSum(1.0, -20, totals))


def test_intervals_of_quantiles_cover_and_are_no_wider_than_they_must(waits):
    large = pd.concat([waits] * 8, ignore_index=True)
    query = question(large, None, psi=0.05)
    draw = prepare(query, Curator(large, None)._engine)
    seen = {}
    for _ in range(150):
        for (ward,), row in answer_of(query, draw()).rows:
            truth = np.quantile(large[large.ward == ward].wait, float(row.statistic.split()[1]))
            found = (row.lower <= truth <= row.upper, (row.value - truth) ** 2, row.standard_error**2)
            seen.setdefault((ward, row.statistic), []).append(found)
    for statistic, found in seen.items():
        covered, error, said = np.mean(found, axis=0)
        assert covered >= 0.94, statistic  # 0.975 to 0.995 in 200 draws: edges are whole minutes
        assert error >= 0.45**2 * said, statistic  # with all edges tested at once it was 0.35
