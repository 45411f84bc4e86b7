"""Geometric mean: the mean of logarithms between bounds above 0, shown in the column's own unit."""

import numpy as np
import pyarrow as pa
import pytest

from psidp import Curator, ask
from psidp.tables.strategies.identity import IndependentTotals
from reference.repeated import repeated

NEVER = 1e8


@pytest.fixture(scope="module")
def costs():
    dice = np.random.default_rng(5)
    values = [None if dice.random() < 0.1 else float(x) for x in dice.lognormal(4.0, 1.0, 4000)]
    return pa.table({"who": np.arange(4000) % 500, "ward": np.arange(4000) % 2, "cost": values})


def truth(values, lower, upper):
    return float(np.exp(np.log(np.clip(values, lower, upper)).mean()))


def test_with_little_noise_it_is_the_truth_of_clipped_values(costs):
    frame = costs.to_pandas().dropna()
    question = Curator(costs, "who").ask(
        ask.geometric_mean("cost", 20, 300), by="ward", groups=[0, 1], contribution=16
    )  # fmt: skip
    answer = question.release(psi=NEVER)
    for ward in (0, 1):
        expected = truth(frame[frame.ward == ward].cost, 20.0, 300.0)
        assert answer.value("geometric mean of cost", ward) == pytest.approx(expected, rel=1e-6)


def test_values_at_or_below_zero_count_as_the_lower_bound_and_missing_ones_not_at_all():
    values = [0.0, -5.0, float("-inf"), float("inf"), 5e-324, 100.0, float("nan"), None]
    answer = Curator(pa.table({"x": values}), None).ask(ask.geometric_mean("x", 1, 100)).release(psi=NEVER)
    assert answer.value("geometric mean of x") == pytest.approx(100.0 ** (2 / 6), rel=1e-5)


def test_its_intervals_cover_as_often_as_they_say(costs):
    expected = truth(costs.to_pandas().dropna().cost, 1.0, 1000.0)
    question = Curator(costs, "who").ask(ask.geometric_mean("cost", 1, 1000), contribution=16)
    found = [answer.rows[0][1] for answer in repeated(question, 0.5, 400)]
    assert 0.92 <= np.mean([e.lower <= expected <= e.upper for e in found]) <= 0.98
    errors = np.array([e.value - expected for e in found])
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(np.mean([e.standard_error for e in found]), rel=0.15)


def test_where_noise_hides_all_rows_it_is_anywhere_between_its_bounds():
    noisy = IndependentTotals(np.zeros((1, 1, 2)), 1.0, 0.0, (1.0, 1.0))
    ((e,),) = ask.geometric_mean("x", 1, 100).measure.estimates(noisy.cells([0], 0.95))
    assert (e.value, e.lower, e.upper, e.flag) == (pytest.approx(10.0), 1.0, 100.0, "noise")


def test_a_contribution_can_be_chosen_for_it(costs):
    question = Curator(costs, "who").ask(ask.geometric_mean("cost", 1, 1000), contribution="auto")
    expected = truth(costs.to_pandas().dropna().cost, 1.0, 1000.0)
    assert question.release(psi=20.0).value("geometric mean of cost") == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("bounds", [(0, 1), (-1, 1), (1, 1), (float("nan"), 1), (1, float("inf"))])
def test_bounds_that_are_not_above_zero_are_refused(bounds):
    with pytest.raises(ValueError, match="bounds of 'x' must be"):
        ask.geometric_mean("x", *bounds)


def test_a_value_far_below_the_middle_of_wide_bounds_does_not_lie_at_one(costs):
    question = Curator(costs, "who").ask(ask.geometric_mean("cost", 0.001, 1e10), contribution=16)
    assert "at bounds" not in [note.kind for note in question.release(psi=NEVER).notes]
