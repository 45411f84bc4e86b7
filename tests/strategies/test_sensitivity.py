"""The sensitivity of a Toeplitz strategy is that of its worst unit: against brute force, in whole numbers."""

import json
import random
from fractions import Fraction
from itertools import accumulate
from math import isqrt, sqrt
from pathlib import Path

import numpy as np
import pytest

from psidp.strategies.participation import Participation
from psidp.strategies.toeplitz import Toeplitz
from reference import patterns

RANDOM = random.Random(16)
PEER = json.loads((Path(__file__).parents[1] / "reference" / "strategies.json").read_text())


def falling(chance, periods):
    """Whole numbers that never rise, some of them equal, some of them 0."""
    numbers = [chance.randrange(0, 1 << chance.choice([2, 8, 16])) for _ in range(periods)]
    return tuple(sorted(numbers, reverse=True)) if any(numbers) else (1,)


def case(chance, longest=10):
    periods = chance.randint(1, longest)
    return periods, falling(chance, periods), chance.choice([None, *range(1, periods + 2)]), chance.randint(1, periods)


@pytest.mark.parametrize("part", range(10))
def test_formula_and_brute_force_agree_in_300_of_300_strategies(part):
    chance = random.Random(f"patterns {part}")
    for _ in range(30):
        periods, c, at_most, apart = case(chance)
        found = Toeplitz(periods, c).squared(Participation(at_most, apart=apart))
        assert found == patterns.largest(c, periods, at_most=at_most, apart=apart), (periods, c, at_most, apart)


def test_units_that_take_away_in_some_periods_move_no_further():
    chance = random.Random("signs")
    for _ in range(60):
        periods, c, at_most, apart = case(chance, longest=7)
        promise = {"at_most": at_most, "apart": apart}
        assert patterns.largest_of_either_sign(c, periods, **promise) == patterns.largest(c, periods, **promise)


def test_vectors_of_norm_one_in_each_period_move_no_further():
    rng = np.random.default_rng(3)
    for at_most, apart in [(1, 1), (3, 1), (4, 5), (None, 7)]:
        strategy = Toeplitz.square_root(24)
        matrix = np.tril([[strategy.coefficients[abs(t - j)] for j in range(24)] for t in range(24)]).astype(float)
        bound = strategy.squared(Participation(at_most, apart=apart))
        for _ in range(200):
            places = np.arange(rng.integers(apart), 24, apart)[: at_most or 24]
            vectors = np.zeros((24, 3))
            vectors[places] = rng.normal(size=(places.size, 3))
            vectors[places] /= np.linalg.norm(vectors[places], axis=1)[:, None]
            assert np.sum((matrix @ vectors) ** 2) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("part", range(10))
def test_buckets_are_never_priced_below_the_truth_in_300_strategies(part):
    chance = random.Random(f"buckets {part}")
    for _ in range(30):
        periods, c, at_most, each = case(chance, longest=11)
        buckets = [t // each for t in range(periods)]
        truth = patterns.largest(c, periods, at_most=at_most, buckets=buckets)
        bound = Toeplitz(periods, c).squared(Participation(at_most, each=each))
        assert truth <= bound, (periods, c, at_most, each)
        assert bound <= 1.5 * truth


@pytest.mark.parametrize("part", range(5))
def test_calendar_buckets_of_unequal_lengths_are_never_priced_below_the_truth(part):
    """Months have 28 to 31 days, and a stream may begin in the middle of one."""
    chance = random.Random(f"calendar {part}")
    for _ in range(30):
        periods, c, at_most, _ = case(chance, longest=10)
        lengths = [chance.randint(1, 4) for _ in range(periods)]
        buckets = [i for i, length in enumerate(lengths) for _ in range(length)][:periods]
        truth = patterns.largest(c, periods, at_most=at_most, buckets=buckets)
        bound = Toeplitz(periods, c).squared(Participation(at_most, each=tuple(lengths)))
        assert truth <= bound, (periods, c, at_most, lengths)


def test_a_first_bucket_that_is_cut_short_costs_more_and_is_priced():
    strategy = Toeplitz.square_root(12)
    whole = strategy.squared(Participation(each=4))
    cut = strategy.squared(Participation(each=(1, 4, 4, 4)))
    assert cut > whole
    assert cut >= patterns.largest(strategy.coefficients, 12, buckets=[0] + [1] * 4 + [2] * 4 + [3] * 3)


def test_a_bucket_priced_as_a_separation_is_a_false_promise():
    """The formula for `apart` is below the truth for buckets in nearly every strategy."""
    chance, false = random.Random("false promise"), 0
    for _ in range(100):
        periods = chance.randint(6, 11)
        each = chance.randint(2, periods // 2)
        c = tuple(sorted((chance.randrange(1, 1 << 16) for _ in range(periods)), reverse=True))
        truth = patterns.largest(c, periods, buckets=[t // each for t in range(periods)])
        false += Toeplitz(periods, c).squared(Participation(apart=each)) < truth
    assert false >= 98


def test_equal_buckets_listed_one_by_one_cost_the_same():
    strategy = Toeplitz.square_root(365)
    listed = Participation(each=(30,) * 13)
    assert strategy.squared(listed) == strategy.squared(Participation(each=30))


def test_the_notes_figures_for_a_year_of_days():
    strategy = Toeplitz.square_root(365)
    squares = [strategy.squared(p) for p in (Participation(13), Participation(each=30), Participation(apart=30))]
    assert [sqrt(s) / 2**16 for s in squares] == pytest.approx([18.28, 12.24, 10.83], abs=0.005)


def test_the_bound_for_buckets_is_the_same_where_64_bits_do_not_hold_it():
    c = Toeplitz.square_root(60).coefficients
    small, large = Toeplitz(60, c), Toeplitz(60, tuple(n << 40 for n in c))
    assert large.squared(Participation(each=7)) == small.squared(Participation(each=7)) << 80


def test_coefficients_that_rise_are_refused_since_the_formula_would_be_too_low():
    c = (10, 1, 9, 1, 9)
    with pytest.raises(ValueError, match="with c_0 above 0, got 5 with c_2 = 9 above c_1 = 1"):
        Toeplitz(5, c)
    early = sum(row * row for row in patterns.image(c, 5, (0, 1)))
    assert sqrt(early) / 10 == pytest.approx(2.283, abs=5e-4)
    assert sqrt(patterns.largest(c, 5, at_most=2)) / 10 == pytest.approx(2.811, abs=5e-4)


@pytest.mark.parametrize("case", PEER["sensitivity"], ids=lambda case: f"{case['periods']}, {case['at_most']}")
def test_squared_sensitivity_is_jax_privacys(case):
    """Reals there, whole numbers here: the same coefficients as whole numbers."""
    strategy = Toeplitz(case["periods"], tuple(case["coefficients"]))
    found = strategy.squared(Participation(case["at_most"], apart=case["apart"]))
    assert found == pytest.approx(case["squared"], rel=1e-14)


@pytest.mark.parametrize("norm", [1.0, 0.1, 3, 2**53 + 1, 1e-30, 1e30])
def test_the_sensitivity_is_rounded_up_by_one_ulp_at_most(norm):
    strategy, participation = Toeplitz.square_root(40), Participation(3)
    found = Fraction(strategy.sensitivity(participation, norm))
    exact = Fraction(norm) ** 2 * strategy.squared(participation)
    assert exact <= found**2 <= exact * (1 + Fraction(1, 2**50))
    assert strategy.sensitivity(participation, norm, "replace-one") >= 2 * found * (1 - Fraction(1, 2**52))


def test_a_perfect_square_stays_whole():
    assert Toeplitz(3, (5,)).sensitivity(Participation(1)) == 5.0
    assert isqrt(Toeplitz(3, (3, 0, 0)).squared(Participation(1))) == 3


def test_restarts_and_forgetting_never_cost_more():
    """Entrywise smaller columns move less: what was cut from the tail cannot raise the sensitivity."""
    chance = random.Random("restarts")
    for _ in range(100):
        periods, c, at_most, apart = case(chance)
        cut = tuple(n if j < chance.randint(1, periods) else 0 for j, n in enumerate(c))
        cut = tuple(accumulate(cut, min))
        if cut[0]:
            participation = Participation(at_most, apart=apart)
            assert Toeplitz(periods, cut).squared(participation) <= Toeplitz(periods, c).squared(participation)


@pytest.mark.parametrize("norm", [-1.0, float("nan"), float("inf"), -1])
def test_a_norm_that_is_none_is_refused(norm):
    with pytest.raises(ValueError, match="must be in"):
        Toeplitz.independent(3).sensitivity(Participation(1), norm)
