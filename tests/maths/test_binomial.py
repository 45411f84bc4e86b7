"""Binomial tails and Clopper-Pearson limits, against exact fractions."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.stats import beta

from psidp.maths.binomial import (
    ROUNDING,
    binomial_tail,
    order_statistic,
    order_statistic_above,
    order_statistic_below,
    rate_above,
    rate_below,
)


def exact_tail(count, trials, rate):
    p = Fraction(rate)
    return sum(comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(count, trials + 1))


@pytest.mark.parametrize("trials", [1, 7, 60, 200])
@pytest.mark.parametrize("rate", [1e-6, 0.03125, 0.5, 0.9])
def test_the_tail_is_never_below_the_exact_fraction_and_above_it_by_the_error_granted(trials, rate):
    for count in sorted({0, 1, trials // 3, trials // 2, trials}):
        truth = exact_tail(count, trials, rate)
        tail = Fraction(float(binomial_tail(count, trials, rate)))
        assert min(truth, 1 - Fraction(1, 10**15)) <= tail or truth < Fraction(1, 10**300)
        assert tail <= truth * (1 + Fraction(ROUNDING) * Fraction(101, 100))


def test_more_successes_than_trials_never_happen():
    assert binomial_tail(11, 10, 0.9) == 0.0


@pytest.mark.parametrize("trials", [1, 10, 150])
@pytest.mark.parametrize("alpha", [0.2, 0.025, 1e-6])
def test_the_limits_are_those_of_clopper_and_pearson_and_err_outwards(trials, alpha):
    for count in sorted({0, 1, trials // 2, trials}):
        low, high = float(rate_below(count, trials, alpha)), float(rate_above(count, trials, alpha))
        assert low <= count / trials <= high
        if count:
            assert exact_tail(count, trials, low) <= Fraction(alpha)
        else:
            assert low == 0.0
        if count < trials:
            assert 1 - exact_tail(count + 1, trials, high) <= Fraction(alpha)
        else:
            assert high == 1.0


def test_an_order_statistic_has_the_quantiles_of_its_beta_law():
    masses = np.array([1e-9, 0.01, 0.5, 0.99, 1 - 1e-9])
    for rank, size in [(1, 1), (1, 1000), (500, 1000), (1000, 1000)]:
        x = order_statistic(rank, size, masses, 1 - masses)
        np.testing.assert_allclose(x, beta(rank, size - rank + 1).ppf(masses), rtol=1e-8)
        assert order_statistic_below(rank, size, 0.3) + order_statistic_above(rank, size, 0.3) == pytest.approx(1.0)
