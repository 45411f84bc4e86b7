"""Power series: products and reciprocals against exact fractions, and the gradient's transpose."""

from fractions import Fraction

import numpy as np
import pytest

from psidp.maths.descent import lowest
from psidp.maths.series import correlation, product, reciprocal

RNG = np.random.default_rng(7)


def exact_reciprocal(c, length):
    """Coefficient by coefficient, from c b = 1."""
    b = [1 / c[0]]
    for t in range(1, length):
        b.append(-sum(c[j] * b[t - j] for j in range(1, min(t, len(c) - 1) + 1)) / c[0])
    return b


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8, 17, 60])
@pytest.mark.parametrize("bands", [1, 2, 7, 60])
def test_reciprocal_of_a_falling_series_is_exact_to_twelve_digits(length, bands):
    for draw in (RNG.random, lambda n: RNG.random(n) ** 8, lambda n: np.ones(n)):
        c = np.sort(draw(bands))[::-1] + 1e-3
        exact = exact_reciprocal([Fraction(x) for x in c.tolist()], length)
        assert np.abs(reciprocal(c, length) - np.array(exact, float)).max() <= 1e-12 / c[0]


def test_reciprocal_of_the_square_root_is_the_square_root_of_differences():
    """(1 - z)^(1/2) is the reciprocal of (1 - z)^(-1/2), 36,500 terms."""
    j = np.arange(1.0, 36_500)
    root = np.concatenate(([1.0], np.cumprod((2 * j - 1) / (2 * j))))
    inverse = np.concatenate(([1.0], np.cumprod((2 * j - 3) / (2 * j))))
    assert np.abs(reciprocal(root, 36_500) - inverse).max() < 1e-13


@pytest.mark.parametrize(("left", "right", "length"), [(1, 1, 1), (5, 3, 4), (5, 3, 12), (40, 40, 40), (100, 7, 100)])
def test_product_is_the_convolution(left, right, length):
    a, b = RNG.normal(size=left), RNG.normal(size=right)
    full = np.pad(np.convolve(a[:length], b[:length]), (0, length))[:length]
    assert np.abs(product(a, b, length) - full).max() < 1e-12


def test_correlation_is_the_transpose_of_the_product():
    a, b, x = RNG.normal(size=50), RNG.normal(size=50), RNG.normal(size=50)
    assert correlation(a, b) @ x == pytest.approx(a @ product(b, x, 50), rel=1e-11)


def test_lowest_is_never_above_its_start():
    start = np.array([1.0, 2.0])
    assert lowest(lambda x: (float(x @ x), -x), start) @ start <= start @ start
