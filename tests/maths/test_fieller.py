"""Fieller's interval: exactly the ratios that two noisy numbers allow, at every size."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from psidp.maths.fieller import ratio_interval


def allowed(t, a, b, va, vb, c, z):
    """(a - t b)^2 <= z^2 Var(a - t b), in fractions."""
    t, a, b, va, vb, c, z = map(Fraction, (t, a, b, va, vb, c, z))
    return (a - t * b) ** 2 <= z**2 * (va - 2 * t * c + t * t * vb)


@pytest.mark.parametrize("size", [1.0, 1e4, 1e8, 1e12])
def test_the_ends_are_where_the_inequality_turns(size):
    """Just inside allowed, just outside not, by a part of 1e-6 of the width: also where squares have no digits left."""
    rng = np.random.default_rng(2)
    for _ in range(200):
        b, z = size * rng.uniform(20, 40), rng.uniform(0.5, 3.0)
        a = b * rng.normal()
        va, vb = rng.uniform(0.1, 9, 2)
        c = rng.uniform(-1, 1) * np.sqrt(va * vb)
        low, high = (float(x) for x in ratio_interval(a, b, va, vb, c, z))
        step = 1e-6 * (high - low) + 4 * np.spacing(abs(a / b))
        assert low <= a / b <= high
        assert allowed(low + step, a, b, va, vb, c, z)
        assert allowed(high - step, a, b, va, vb, c, z)
        assert not allowed(low - step, a, b, va, vb, c, z)
        assert not allowed(high + step, a, b, va, vb, c, z)


def test_the_true_ratio_is_covered_as_often_as_promised():
    """100,000 pairs with correlated noise; b is 3 to 300 standard errors. Fails by chance once in a million."""
    rng, n, z = np.random.default_rng(7), 100_000, 1.5
    b = np.exp(rng.uniform(np.log(3), np.log(300), n))
    a = b * rng.uniform(-0.5, 1.0, n)
    noise = rng.multivariate_normal([0, 0], [[2.0, 0.6], [0.6, 1.0]], n).T
    low, high = ratio_interval(a + noise[0], b + noise[1], 2.0, 1.0, 0.6, z)
    truth = a / b
    covered = (low <= truth) & (truth <= high)
    chance = ndtr(z) - ndtr(-z)
    exact = (a + noise[0] - truth * (b + noise[1])) ** 2 <= z**2 * (2.0 - 1.2 * truth + truth**2)
    known = np.isfinite(low)
    assert (covered == exact)[known].all()
    assert covered[~known].all()
    assert abs(exact.mean() - chance) <= 4.9 * np.sqrt(chance * (1 - chance) / n)


def test_a_denominator_that_may_be_zero_allows_every_ratio():
    for b in (0.0, 1.0, -1.9, 1.96):
        assert ratio_interval(5.0, b, 1.0, 1.0, 0.0, 1.96) == (-np.inf, np.inf)
    low, high = ratio_interval(5.0, 1.97, 1.0, 1.0, 0.0, 1.96)
    assert np.isfinite(low)
    assert np.isfinite(high)
    assert ratio_interval(0.0, 0.0, 0.0, 0.0, 0.0, 1.0) == (-np.inf, np.inf)


def test_a_part_that_is_the_whole_is_one():
    assert ratio_interval(50.0, 50.0, 4.0, 4.0, 4.0, 1.96) == (1.0, 1.0)
    assert ratio_interval(1e9 + 7, 1e9 + 7, 3.3, 3.3, 3.3, 1.96) == (1.0, 1.0)


def test_numbers_without_noise_have_their_own_ratio():
    for a, b in ((1.0, 3.0), (0.1, 0.7), (1e9 + 1, 3e9)):
        assert ratio_interval(a, b, 0.0, 0.0, 0.0, 1.96) == (a / b, a / b)


def test_signs_mirror_the_interval_and_arrays_are_taken_entry_by_entry():
    low, high = ratio_interval(3.0, 50.0, 4.0, 2.0, 1.0, 2.0)
    assert ratio_interval(-3.0, 50.0, 4.0, 2.0, -1.0, 2.0) == (-high, -low)
    assert ratio_interval(3.0, -50.0, 4.0, 2.0, -1.0, 2.0) == (-high, -low)
    lows, highs = ratio_interval([3.0, 3.0], [50.0, 0.0], 4.0, 2.0, 1.0, 2.0)
    assert (lows[0], highs[0]) == (low, high)
    assert (lows[1], highs[1]) == (-np.inf, np.inf)
