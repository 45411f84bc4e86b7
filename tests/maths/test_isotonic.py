"""Isotonic regression against the max-min formula, and its laws."""

import numpy as np
import pytest

from psidp.maths.isotonic import isotonic


def plain(y):
    """max over a <= i of min over b >= i of mean(y_a..y_b)."""
    n = len(y)
    return [max(min(np.mean(y[a : b + 1]) for b in range(i, n)) for a in range(i + 1)) for i in range(n)]


@pytest.mark.parametrize("n", [1, 2, 3, 8, 25])
def test_it_is_the_max_min_formula(n):
    dice = np.random.default_rng(n)
    for _ in range(20):
        y = dice.normal(size=n).round(1)
        assert isotonic(y) == pytest.approx(plain(y), abs=1e-12)


def test_it_never_moves_further_from_a_rising_truth():
    dice = np.random.default_rng(3)
    for _ in range(100):
        truth = np.cumsum(dice.exponential(size=50))
        y = truth + dice.normal(scale=3.0, size=50)
        assert np.linalg.norm(isotonic(y) - truth) <= np.linalg.norm(y - truth) + 1e-12


def test_a_rising_sequence_stays_and_the_sum_stays():
    y = np.array([-1.0, 0.0, 0.0, 5.0])
    assert isotonic(y).tolist() == y.tolist()
    assert isotonic(y[::-1]).sum() == pytest.approx(y.sum())


@pytest.mark.parametrize("bad", [[], [[1.0]], [np.nan], [1.0, np.inf]])
def test_bad_input_is_refused(bad):
    with pytest.raises(ValueError, match="values must be finite numbers"):
        isotonic(bad)
