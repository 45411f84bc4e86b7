"""Haar: rows that sum to zero, at right angles, in whole numbers; exact there and back at every size."""

from fractions import Fraction
from math import gcd

import numpy as np
import pytest

from psidp.strategies.haar import Haar
from psidp.strategies.marginals import basis_from_dict
from reference.dense_cube import matrix_of

SIZES = [2, 3, 4, 5, 7, 8, 11, 16, 20, 31, 42, 85, 99, 100]


@pytest.mark.parametrize("n", SIZES)
def test_rows_sum_to_zero_and_stand_at_right_angles(n):
    u = matrix_of(Haar(n))
    assert u.shape == (n - 1, n)
    assert not u.sum(axis=1).any()
    assert (u @ u.T == np.diag(Haar(n).squares)).all()


@pytest.mark.parametrize("n", SIZES)
def test_rows_are_halves_against_halves_with_nothing_left_to_cancel(n):
    for row in matrix_of(Haar(n)):
        values = row[row != 0]
        first = int((values == values[0]).sum())
        assert (values[:first] == values[0]).all()
        assert len(set(values[first:].tolist())) == 1
        assert abs(2 * first - values.size) <= 1
        assert gcd(*map(int, values)) == 1


@pytest.mark.parametrize("n", SIZES)
def test_the_share_is_the_same_for_every_value_and_exact(n):
    u, squares = matrix_of(Haar(n)), Haar(n).squares
    costs = {sum(Fraction(int(u[k, j]) ** 2, squares[k]) for k in range(n - 1)) for j in range(n)}
    assert costs == {Haar(n).share} == {Fraction(n - 1, n)}


@pytest.mark.parametrize("n", SIZES)
def test_values_come_back_from_their_differences_and_their_mean(n):
    x = np.random.default_rng(n).integers(-(10**6), 10**6, (n, 3))
    assert Haar(n).decode(Haar(n).encode(x).astype(float)) + x.mean(axis=0) == pytest.approx(x, abs=1e-8)


@pytest.mark.parametrize("n", SIZES)
def test_weights_are_the_other_side_of_decode(n):
    rng = np.random.default_rng(n)
    q, c = rng.normal(size=(n, 2)), rng.normal(size=(n - 1, 2))
    assert (Haar(n).weights(q) * c).sum() == pytest.approx((q * Haar(n).decode(c)).sum(), rel=1e-11)


@pytest.mark.parametrize("n", [2, 3, 20, 99])
def test_whole_numbers_of_any_size_give_what_64_bits_give(n):
    x = np.random.default_rng(n).integers(-(2**40), 2**40, (n, 2))
    small, large = Haar(n).encode(x), Haar(n).encode(x.astype(object))
    assert large.dtype == object
    assert (small == large).all()
    assert (Haar(n).encode(x.astype(object) * 10**30) == large * 10**30).all()


@pytest.mark.parametrize("n", SIZES)
def test_no_coefficient_exceeds_the_reach_times_all_sizes(n):
    u = matrix_of(Haar(n))
    assert Haar(n).reach == abs(u).max()
    x = np.random.default_rng(n).integers(-9, 9, n)
    assert abs(Haar(n).encode(x)).max() <= Haar(n).reach * abs(x).sum()


@pytest.mark.parametrize("n", [2, 3, 20])
def test_the_error_of_a_cell_is_that_of_its_row_of_the_inverse(n):
    u = matrix_of(Haar(n)).astype(float)
    cells = np.linalg.pinv(u) * np.sqrt(Haar(n).squares)
    assert (cells**2).sum(axis=1) == pytest.approx(np.full(n, Haar(n).errors[0]), rel=1e-12)
    assert Haar(n).errors[1] == pytest.approx(1 / n**2)


def test_a_column_of_one_value_has_no_differences():
    one = Haar(1)
    assert (one.squares, one.share, one.reach, one.errors) == ((), 0, 0, (0.0, 1.0))
    assert one.encode(np.ones((1, 4), np.int64)).shape == (0, 4)
    assert (one.decode(np.zeros((0, 4))) == np.zeros((1, 4))).all()
    assert one.weights(np.ones((1, 4))).shape == (0, 4)


def test_a_basis_is_stored_as_its_number_of_values():
    assert basis_from_dict(Haar(17).to_dict()) == Haar(17)


@pytest.mark.parametrize("values", [0, -1, 2.5, True])
def test_a_basis_of_no_values_is_refused(values):
    with pytest.raises((ValueError, TypeError), match="values"):
        Haar(values)
