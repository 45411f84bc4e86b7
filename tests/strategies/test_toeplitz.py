"""A Toeplitz strategy encodes exactly, decodes causally, knows its errors, and comes back from JSON as it was."""

import json
from fractions import Fraction
from itertools import pairwise
from math import comb, floor, inf, nan, sqrt

import numpy as np
import pytest

from psidp import Guarantee
from psidp.noise.gaussian import RoundedGaussian, noisy_integer
from psidp.strategies.participation import Participation
from psidp.strategies.strategy import Strategy
from psidp.strategies.toeplitz import Toeplitz

RNG = np.random.default_rng(5)
STRATEGIES = [
    Toeplitz.independent(40),
    Toeplitz.square_root(40),
    Toeplitz(40, (4096, 3337, 3130, 2987, 2871, 2764, 2650, 2494)),
    Toeplitz(40, (7,) * 40),
    Toeplitz(40, (3, 3, 1)),
]


def name(strategy):
    return f"{strategy.bands} bands"


def exact_inverse(strategy, size):
    """The inverse of the leading block in fractions, row by row."""
    c = [Fraction(n) for n in (*strategy.coefficients, *(0,) * size)]
    first = [1 / c[0]]
    for t in range(1, size):
        first.append(-sum(c[j] * first[t - j] for j in range(1, t + 1)) / c[0])
    return [[first[t - j] if t >= j else Fraction(0) for j in range(size)] for t in range(size)]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=name)
def test_encoding_is_the_matrix_times_the_totals_in_exact_integers(strategy):
    totals = [int(x) for x in RNG.integers(-(2**62), 2**62, 40)]
    totals[3] = 10**40
    c = [*strategy.coefficients, *(0,) * 40]
    expected = [sum(c[t - j] * totals[j] for j in range(t + 1)) for t in range(40)]
    assert strategy.encode(totals) == expected
    assert [strategy.newest(totals[: t + 1]) for t in range(40)] == expected


def test_numpys_integers_do_not_overflow():
    strategy = Toeplitz.square_root(3)
    totals = np.array([2**62, 2**62, 2**62])
    assert strategy.newest(totals) == 2**62 * sum(strategy.coefficients)
    assert strategy.encode(totals) == strategy.encode([2**62] * 3)


def test_totals_that_are_not_whole_are_refused():
    for totals in ([1.0], [0.5, 2], [nan]):
        with pytest.raises(TypeError):
            Toeplitz.square_root(3).newest(totals)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=name)
def test_decoding_undoes_encoding(strategy):
    totals = RNG.integers(0, 10**6, 40).tolist()
    assert strategy.decode(strategy.encode(totals)) == pytest.approx(totals, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=name)
def test_what_was_decoded_never_changes_when_more_is_released(strategy):
    released = RNG.normal(size=(40, 3)) * 1e6
    whole = strategy.decode(released)
    for t in (1, 2, 17, 39):
        assert (strategy.decode(released[:t]) == whole[:t]).all()
    assert (strategy.decode(released[:, 1]) == whole[:, 1]).all()


def test_decoding_in_doubles_is_off_by_less_than_a_millionth_of_a_standard_deviation():
    strategy = Toeplitz.square_root(60)
    released = [int(y) for y in RNG.integers(-(2**45), 2**45, 60)]
    exact = [sum(a * b for a, b in zip(row, released, strict=True)) for row in exact_inverse(strategy, 60)]
    error = np.abs(strategy.decode(released) - np.array(exact, float)).max()
    deviation = 2.0 * strategy.sensitivity(Participation(1)) / 2**16
    assert error < 1e-6 * deviation
    small = [y >> 20 for y in released]
    exact = [sum(a * b for a, b in zip(row, small, strict=True)) for row in exact_inverse(strategy, 60)]
    assert np.abs(strategy.decode(small) - np.array(exact, float)).max() < 1e-9 * deviation


@pytest.mark.parametrize("strategy", STRATEGIES, ids=name)
def test_weights_deviations_and_covariances_are_those_of_the_exact_inverse(strategy):
    inverse = np.array(exact_inverse(strategy, 40), float)
    questions = np.vstack([np.tril(np.ones((40, 40))), np.eye(40), RNG.normal(size=(5, 40))])
    weights = questions @ inverse
    assert strategy.weights(questions) == pytest.approx(weights, abs=1e-10)
    assert strategy.deviation(questions, 3.0) == pytest.approx(3.0 * np.linalg.norm(weights, axis=1), rel=1e-9)
    assert strategy.covariance(questions, 3.0) == pytest.approx(9.0 * weights @ weights.T, abs=1e-7)
    assert strategy.rounding(questions, 0.5) == pytest.approx(0.25 * np.abs(weights).sum(1), rel=1e-8)
    assert strategy.deviation(questions[0]).shape == ()


def test_a_question_of_the_first_periods_needs_the_first_periods_only():
    strategy = Toeplitz.square_root(40)
    short = strategy.weights(np.ones(7))
    assert strategy.weights([1.0] * 7 + [0.0] * 33)[:7] == pytest.approx(short, abs=1e-18)
    assert strategy.deviation(np.ones(7)) == pytest.approx(strategy.deviation([1.0] * 7 + [0.0] * 33), rel=1e-12)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=name)
def test_deviations_of_windows_are_those_of_their_questions(strategy):
    lengths = RNG.integers(0, np.arange(1, 41) + 1)
    questions = [[float(t - h < j <= t) for j in range(40)] for t, h in enumerate(lengths)]
    expected = np.where(lengths > 0, strategy.deviation(questions, 2.0), nan)
    assert strategy.window_deviations(lengths, 2.0) == pytest.approx(expected, rel=1e-9, nan_ok=True)


def test_the_error_of_a_decoded_answer_is_the_noise_seen_through_the_weights():
    """With noise known in advance: estimate - truth = u . noise, for any question."""
    strategy = Toeplitz.square_root(30)
    totals = RNG.integers(0, 1000, 30).tolist()
    noise = RNG.normal(size=30) * 1e5
    decoded = strategy.decode(np.array(strategy.encode(totals), float) + noise)
    question = RNG.normal(size=30)
    assert question @ decoded - question @ totals == pytest.approx(strategy.weights(question) @ noise, abs=1e-8)


def test_one_stream_from_totals_to_numbers_with_exact_noise():
    """Utility twin: psi paid once, and the last total of 200 periods is within six standard deviations of the truth."""
    strategy, participation = Toeplitz.square_root(200), Participation(at_most=2)
    sigma = Guarantee(1.0).sigma(strategy.sensitivity(participation))
    noise = RoundedGaussian(sigma)
    totals = RNG.integers(0, 50, 200).tolist()
    released = [noisy_integer(noise, strategy.newest(totals[: t + 1])) for t in range(200)]
    total = strategy.decode(released).sum()
    assert abs(total - sum(totals)) < 6.0 * strategy.deviation(np.ones(200), sigma)
    assert strategy.deviation(np.ones(200), sigma) < 0.3 * sqrt(2 * 200)


def test_the_square_root_is_exact_before_it_is_cut():
    strategy = Toeplitz.square_root(200)
    assert strategy.coefficients == tuple(floor(Fraction(comb(2 * j, j), 4**j) * 2**16) for j in range(200))


def test_cutting_a_real_strategy_keeps_it_falling():
    for _ in range(100):
        c = np.sort(RNG.random(30))[::-1]
        cut = Toeplitz.floor(30, c, bits=4).coefficients
        assert cut[0] == 16
        assert all(a >= b for a, b in pairwise(cut))


@pytest.mark.parametrize("real", [[], [0.0, 0.0], [nan], [1.0, nan], [inf, 1.0], [[1.0]], [-1.0]])
def test_what_cannot_be_cut_is_refused(real):
    with pytest.raises(ValueError, match="must be one row of finite numbers with c_0 above 0"):
        Toeplitz.floor(4, real)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=name)
def test_a_strategy_comes_back_from_json_as_it_was(strategy):
    text = json.dumps(strategy.to_dict())
    again = Toeplitz.from_dict(json.loads(text))
    assert again == strategy
    assert hash(again) == hash(strategy)
    assert json.dumps(again.to_dict()) == text


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"kind": "toeplitz", "periods": 3},
        {"kind": "haar", "periods": 3, "coefficients": [1]},
        {"kind": "toeplitz", "periods": 3, "coefficients": [1], "more": 1},
        {"kind": "toeplitz", "periods": 3, "coefficients": [1, 2]},
        {"kind": "toeplitz", "periods": 0, "coefficients": [1]},
        {"kind": "toeplitz", "periods": 3, "coefficients": []},
    ],
)
def test_what_is_no_strategy_is_refused(values):
    with pytest.raises(ValueError, match=r"must be|strategy has kind"):
        Toeplitz.from_dict(values)


@pytest.mark.parametrize("coefficients", [(1.0,), (2, 0.5), (True,), ("1",), (nan,), (inf,)])
def test_coefficients_that_are_not_whole_are_refused(coefficients):
    with pytest.raises(TypeError, match="coefficients must be whole numbers"):
        Toeplitz(4, coefficients)


@pytest.mark.parametrize("coefficients", [(0,), (-1,), (1, -1), (1,) * 5, (), (0, 0)])
def test_coefficients_that_break_the_proof_are_refused(coefficients):
    with pytest.raises(ValueError, match="c_0 >= c_1"):
        Toeplitz(4, coefficients)


def test_more_periods_than_planned_are_refused():
    strategy = Toeplitz.square_root(4)
    for ask in (strategy.newest, strategy.encode, strategy.decode, strategy.weights):
        with pytest.raises(ValueError, match=r"the periods so far must be 1 to 4, which .* made for, got 5"):
            ask([1] * 5)
        with pytest.raises(ValueError, match="got 0"):
            ask([])


def test_zeros_at_the_end_are_dropped_and_change_nothing():
    assert Toeplitz(9, (4, 2, 0, 0)) == Toeplitz(9, (4, 2))
    assert Toeplitz(9, (4, 2)).shape == (9, 9)
    assert isinstance(Toeplitz(9, (4, 2)), Strategy)
