"""A plan takes the noise of least error and says why; participations and workloads say what they mean."""

import json
from fractions import Fraction
from math import nan, sqrt

import numpy as np
import pytest

from psidp import Guarantee
from psidp.noise.gaussian import RoundedGaussian
from psidp.strategies.choice import chosen
from psidp.strategies.participation import Participation
from psidp.strategies.toeplitz import Toeplitz
from psidp.strategies.workload import Question, Workload


def test_totals_of_a_year_take_correlated_noise():
    choice = chosen(Workload.together(365, windows=[7, 28]), Participation(at_most=1))
    day, week, month, year = choice.expected()
    assert choice.reason.startswith("Correlated noise has 0.")
    assert choice.strategy.coefficients[0] == 2**16
    assert (day.independent, year.independent) == pytest.approx((1.0, sqrt(183)), rel=1e-9)
    assert day.rmse > day.independent
    assert week.rmse < week.independent
    assert month.rmse < month.independent
    assert year.rmse < 0.5 * year.independent
    assert year.rmse <= year.last <= year.largest


def test_single_periods_alone_take_independent_noise():
    choice = chosen(Workload((Question.period(365),)), Participation(at_most=1))
    assert choice.strategy == Toeplitz.independent(365)
    assert "only single periods" in choice.reason
    assert choice.expected(psi=0.5)[0].rmse == pytest.approx(2.0)


@pytest.mark.parametrize("participation", [Participation(), Participation(at_most=200)], ids=str)
def test_units_in_most_periods_take_independent_noise(participation):
    choice = chosen(Workload((Question.total(365),)), participation)
    assert choice.strategy == Toeplitz.independent(365)
    assert choice.reason.startswith("Independent noise: correlated noise has ")
    assert "of 365 periods" in choice.reason


def test_deviations_are_known_from_the_first_period_to_the_last():
    choice = chosen(Workload.together(52, windows=[4]), Participation(at_most=2))
    for question, row in zip(choice.workload.questions, choice.expected(0.5, 3.0), strict=True):
        found = choice.deviations(question, 0.5, 3.0)
        assert found.shape == (52,)
        assert (np.isnan(found) == (np.array(question.lengths) == 0)).all()
        assert row.largest == np.nanmax(found)
        assert row.rmse == pytest.approx(sqrt(np.nanmean(found**2)))
    sigma = Guarantee(0.5).sigma(choice.strategy.sensitivity(choice.participation, 3.0))
    total = choice.deviations(choice.workload.questions[-1], 0.5, 3.0)
    assert total[-1] == pytest.approx(choice.strategy.deviation(np.ones(52), sigma), rel=1e-9)


def test_intervals_of_five_questions_cover_as_promised():
    """3,000 streams of 52 periods with exact noise, the same draws each time; 95 % plus or minus 4 standard errors."""
    choice = chosen(Workload.together(52, windows=[4]), Participation(at_most=4))
    strategy = choice.strategy
    sigma = Guarantee(0.5).sigma(strategy.sensitivity(choice.participation))
    totals = np.random.default_rng(1).integers(0, 100, 52)
    noise = RoundedGaussian(sigma).noise(52 * 3000).reshape(52, 3000)
    decoded = strategy.decode(np.array(strategy.encode(totals.tolist()), float)[:, None] + noise)
    questions = np.array([[float(first <= t < last) for t in range(52)] for first, last in WINDOWS])
    error = questions @ decoded - (questions @ totals)[:, None]
    deviation = strategy.deviation(questions, sigma)
    covered = (np.abs(error) <= 1.959964 * deviation[:, None]).mean(axis=1)
    assert (np.abs(covered - 0.95) < 4 * sqrt(0.95 * 0.05 / 3000)).all()
    covariance = strategy.covariance(questions, sigma)
    spread = np.sqrt((np.outer(deviation**2, deviation**2) + covariance**2) / 3000)
    assert (np.abs(np.cov(error) - covariance) < 4 * spread).all()


WINDOWS = [(51, 52), (48, 52), (0, 52), (0, 26), (13, 26)]


@pytest.mark.parametrize("psi", [0.0, -1.0, nan])
def test_a_plan_without_psi_is_refused(psi):
    with pytest.raises(ValueError, match="psi"):
        chosen(Workload((Question.period(3),)), Participation(1)).expected(psi)


@pytest.mark.parametrize(
    ("participation", "said"),
    [
        (Participation(), "every period"),
        (Participation(1), "at most 1 period"),
        (Participation(3, apart=2), "at most 3 periods, any two at least 2 apart"),
        (Participation(apart=2), "any two at least 2 apart"),
        (Participation(3, each=7), "at most 3 periods, at most one of each 7 periods"),
        (Participation(each=(31, 28)), "at most one in each of 2 buckets"),
    ],
)
def test_a_participation_is_said_and_comes_back_from_json(participation, said):
    assert str(participation) == said
    again = Participation.from_dict(json.loads(json.dumps(participation.to_dict())))
    assert again == participation


@pytest.mark.parametrize("name", ["at_most", "apart", "each"])
@pytest.mark.parametrize("value", [0, -1, 1.5, nan, True, "4"])
def test_a_participation_counts_in_whole_numbers(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1"):
        Participation(**{name: value})


def test_a_separation_and_buckets_at_once_are_refused():
    with pytest.raises(TypeError, match="apart and each must not be given together"):
        Participation(apart=2, each=3)


def test_buckets_that_do_not_cover_all_periods_are_refused():
    with pytest.raises(ValueError, match="must cover all 60 periods, got lengths that sum to 59"):
        Toeplitz.square_root(60).squared(Participation(each=(31, 28)))
    with pytest.raises(ValueError, match="one or more whole numbers, got none"):
        Participation(each=())
    with pytest.raises(ValueError, match="a participation has at_most, apart and each"):
        Participation.from_dict({"most": 3})


def test_calendar_buckets_have_the_shortest_months_between():
    year = Participation(each=(31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31))
    assert year.starts(365)[:4] == [0, 31, 59, 90]
    assert year.gaps(365)[:4] == [0, 1, 29, 60]


def test_the_weighted_error_of_independent_noise_is_one():
    for n in (1, 2, 30):
        workload = Workload.together(n, windows=[w for w in (2, 7) if w <= n])
        assert workload.cost(Toeplitz.independent(n).inverse())[0] == pytest.approx(1.0, rel=1e-12)


def test_the_weighted_error_is_that_of_the_questions():
    """By a second road: every question of every period, one by one."""
    strategy, n = Toeplitz.square_root(25), 25
    questions = (Question.window(n, 3), Question.since(n, [0, 10, 20]), Question.total(n))
    importance = (2.0, 1.0, 5.0)
    expected = Fraction(0)
    for question, weight in zip(questions, importance, strict=True):
        rows = [[float(t - h < j <= t) for j in range(n)] for t, h in enumerate(question.lengths) if h]
        lengths = [h for h in question.lengths if h]
        mse = float(np.mean(strategy.deviation(rows) ** 2))
        expected += Fraction(weight * mse / (sum(lengths) / len(lengths))) / 8
    assert Workload(questions, importance).cost(strategy.inverse())[0] == pytest.approx(float(expected), rel=1e-9)


def test_questions_that_look_before_the_beginning_are_refused():
    with pytest.raises(ValueError, match="must be 0 to t in period t"):
        Question("too long", (2, 1))
    with pytest.raises(ValueError, match="must be at most 3, all periods of the stream"):
        Question.window(3, 4)
    with pytest.raises(ValueError, match="length must be a whole number"):
        Question.window(3, 0)


def test_workloads_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="one or more kinds about the same number of periods"):
        Workload(())
    with pytest.raises(ValueError, match="one or more kinds about the same number of periods"):
        Workload((Question.period(3), Question.period(4)))
    for importance in [(1.0,), (1.0, 0.0), (1.0, nan), (1.0, -1.0)]:
        with pytest.raises(ValueError, match="importance must be one number above 0 for each question"):
            Workload((Question.period(3), Question.total(3)), importance)
