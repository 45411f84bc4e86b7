"""Optimised strategies reach the errors of the best ones, fall, and lose nothing by being cut to whole numbers."""

from functools import cache
from itertools import accumulate, pairwise
from math import sqrt

import numpy as np
import pytest

from psidp.strategies import optimise
from psidp.strategies.optimise import banded, optimised
from psidp.strategies.participation import Participation
from psidp.strategies.toeplitz import Toeplitz
from psidp.strategies.workload import Question, Workload

FINE = 40
"""Bits at which cutting does not show."""
MONTHS = (0, *accumulate([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30]))


@cache
def best_for_totals(periods, participation):
    return optimised(Workload((Question.total(periods),)), participation, FINE)


def rmse(strategy, participation, question):
    deviations = strategy.window_deviations(question.lengths)
    return sqrt(np.nanmean(deviations**2) * strategy.squared(participation))


@pytest.mark.parametrize(
    ("periods", "at_most", "error"),
    [
        (12, 1, 1.665),
        (12, 4, 4.74),
        (52, 1, 2.115),
        (52, 4, 6.70),
        (52, 12, 15.51),
        (365, 1, 2.74),
        (365, 4, 9.25),
        (365, 12, 23.5),
        (3650, 1, 3.47),
        (3650, 4, 12.2),
        (3650, 12, 32.4),
    ],
)
def test_totals_to_date_have_the_error_of_the_best_strategies_and_cutting_costs_nothing(periods, at_most, error):
    participation, question = Participation(at_most), Question.total(periods)
    fine = best_for_totals(periods, participation)
    cut = Toeplitz.floor(periods, np.array(fine.coefficients, float), 16)
    assert rmse(cut, participation, question) <= error
    assert rmse(cut, participation, question) <= rmse(fine, participation, question) * (1 + 2e-5)
    assert all(a >= b for a, b in pairwise(cut.coefficients))


@pytest.mark.parametrize(
    ("periods", "at_most", "apart", "error"),
    [(12, 4, 3, 3.72), (52, 4, 13, 4.58), (52, 12, 4, 10.32), (365, 4, 91, 5.80), (365, 12, 30, 12.11)],
)
def test_a_true_separation_is_worth_as_much_as_the_strategy(periods, at_most, apart, error):
    participation = Participation(at_most, apart=apart)
    assert rmse(best_for_totals(periods, participation), participation, Question.total(periods)) <= error


def test_buckets_lie_between_separation_and_any_periods():
    errors = [
        rmse(best_for_totals(365, participation), participation, Question.total(365))
        for participation in (Participation(13, apart=30), Participation(each=30), Participation(13))
    ]
    assert errors == sorted(errors)
    assert errors[1] <= 17.3


def test_all_questions_together_within_two_percent_of_the_figures():
    questions = (
        Question.period(365),
        Question.window(365, 7),
        Question.window(365, 28),
        Question.since(365, MONTHS, "month to date"),
        Question.total(365),
    )
    participation = Participation(1)
    strategy = optimised(Workload(questions), participation)
    for question, error in zip(questions, [1.13, 2.02, 2.88, 2.41, 4.84], strict=True):
        assert rmse(strategy, participation, question) <= 1.02 * error
    alone = [rmse(Toeplitz.independent(365), participation, question) for question in questions]
    assert alone == pytest.approx([1.0, 2.65, 5.29, 3.97, 13.5], rel=5e-3)


@pytest.mark.parametrize(
    ("periods", "bands", "error"),
    [
        (2000, 2, 22.4551),
        (2000, 4, 16.0325),
        (2000, 8, 11.5800),
        (2000, 16, 8.5346),
        (2000, 32, 6.4826),
        (2000, 64, 5.1252),
        (2000, 128, 4.2533),
        (100_000, 8, 79.27),
        (100_000, 128, 20.83),
    ],
)
def test_bands_have_the_error_of_the_best_ones_and_cutting_to_12_bits_costs_nothing(periods, bands, error):
    strategy, once, question = banded(periods, bands, FINE), Participation(1), Question.total(periods)
    cut = Toeplitz.floor(periods, np.array(strategy.coefficients, float), 12)
    assert rmse(strategy, once, question) <= error * (1 + 1e-4)
    assert rmse(cut, once, question) <= rmse(strategy, once, question) * (1 + 2e-5)
    assert cut.coefficients[0] == 2**12
    assert cut.bands == bands


def test_one_band_is_independent_noise():
    assert banded(100, 1).coefficients == (4096,)


def test_more_bands_than_periods_are_refused():
    with pytest.raises(ValueError, match="bands must be at most the number of periods, 10, got bands=11"):
        banded(10, 11)


def test_a_unit_in_every_period_leaves_independent_noise_as_the_best():
    everything = Participation()
    strategy = best_for_totals(52, everything)
    alone = rmse(Toeplitz.independent(52), everything, Question.total(52))
    assert rmse(strategy, everything, Question.total(52)) == pytest.approx(alone, rel=2e-3)


@pytest.mark.parametrize("periods", [1, 2, 3])
def test_the_shortest_streams_have_a_strategy(periods):
    strategy = optimised(Workload.together(periods), Participation(1))
    assert strategy.periods == periods
    assert rmse(strategy, Participation(1), Question.total(periods)) <= sqrt((periods + 1) / 2) + 1e-9


@pytest.mark.parametrize(
    "participation",
    [
        Participation(1),
        Participation(3),
        Participation(4, apart=3),
        Participation(each=4),
        Participation(each=(3, 5, 6, 6)),
    ],
    ids=str,
)
def test_the_slope_that_is_followed_is_the_slope(participation):
    """Against differences; and the sensitivity in doubles is that of the whole numbers."""
    rng, n = np.random.default_rng(1), 20
    questions = (Question.period(n), Question.window(n, 5), Question.since(n, [6, 15]), Question.total(n))
    workload, squared = Workload(questions, (1.0, 2.0, 0.5, 3.0)), optimise._squared(participation, n)
    c = np.sort(rng.random(n))[::-1]
    slope = optimise._log_error(c, squared, workload.cost)[1]
    for j, step in enumerate(1e-6 * np.eye(n)):
        above, below = (optimise._log_error(c + s, squared, workload.cost)[0] for s in (step, -step))
        assert slope[j] == pytest.approx((above - below) / 2e-6, abs=1e-7)
    whole = Toeplitz.floor(n, c, FINE)
    assert squared(c / c[0])[0] == pytest.approx(whole.squared(participation) / 2 ** (2 * FINE), rel=1e-9)


def test_beyond_a_length_the_limit_of_the_inverse_is_as_good():
    rng = np.random.default_rng(2)
    point = rng.random(5)
    value, slope = optimise._of_steps(point, 3000, 500)
    assert value == pytest.approx(optimise._of_steps(point, 3000, 3000)[0], rel=1e-9)
    for j, step in enumerate(1e-6 * np.eye(5)):
        above, below = (optimise._of_steps(point + s, 3000, 500)[0] for s in (step, -step))
        assert slope[j] == pytest.approx((above - below) / 2e-6, abs=1e-7)


def test_long_streams_stay_with_sums_of_series():
    n = optimise.LONGEST + 1
    strategy, once = optimised(Workload((Question.total(n),)), Participation(1)), Participation(1)
    assert rmse(strategy, once, Question.total(n)) <= rmse(Toeplitz.square_root(n), once, Question.total(n))
