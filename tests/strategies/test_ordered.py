"""Ordered: any matrix of whole numbers with rows that sum to zero, its price from these, its error near the bound."""

from fractions import Fraction
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from psidp.strategies.marginals import basis_from_dict
from psidp.strategies.ordered import BITS, CLOSE, LARGEST, Ordered, ordered

ASKED = ("prefixes", "ranges")
REACHED = {
    ("prefixes", 20): 1.84,
    ("prefixes", 100): 2.34,
    ("ranges", 20): 1.88,
    ("ranges", 100): 2.56,
}


def questions(n, asked):
    """All cumulative sums, or all ranges, row by row."""
    below = np.tril(np.ones((n, n)))
    if asked == "prefixes":
        return below
    return np.array([[float(a <= j <= b) for j in range(n)] for a in range(n) for b in range(a, n)])


def combined(basis):
    """RMSE at psi = 1 of what is asked, the total's noise included, at the best split."""
    spread, mean = basis.errors
    return float(basis.share * Fraction(spread)) ** 0.5 + mean**0.5


@pytest.mark.parametrize(("asked", "n"), REACHED)
def test_errors_are_those_that_the_literature_reaches(asked, n):
    assert combined(ordered(n, asked)) <= REACHED[asked, n]


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("n", [2, 3, 5, 12, 30, 77])
def test_rows_sum_to_zero_and_the_share_is_that_of_the_worst_value(n, asked):
    basis = ordered(n, asked)
    u = basis.matrix
    assert u.shape == (n - 1, n)
    assert not u.sum(axis=1).any()
    assert np.linalg.matrix_rank(u.astype(float)) == n - 1
    columns = [sum(Fraction(int(u[k, j]), 2**BITS) ** 2 for k in range(n - 1)) for j in range(n)]
    assert basis.share == max(columns)
    assert set(basis.squares) == {4**BITS}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("n", [2, 3, 5, 12, 30])
def test_errors_are_those_of_every_question_asked(n, asked):
    basis = ordered(n, asked)
    w = questions(n, asked)
    read = w @ np.linalg.pinv(basis.matrix.astype(float)) * 2.0**BITS
    assert basis.errors[0] == pytest.approx((read**2).sum() / len(w), rel=1e-9)
    assert basis.errors[1] == pytest.approx(((w.sum(axis=1) / n) ** 2).sum() / len(w), rel=1e-12)


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_no_strategy_is_better_than_its_bound_says_and_this_one_is_close(n, asked):
    """The dual by a solver of another kind: every y >= 0 is a bound, the best of them the least error."""
    w = questions(n, asked)
    centred = (w - w.mean(axis=1, keepdims=True)).T @ (w - w.mean(axis=1, keepdims=True))

    def bound(logs):
        half = np.exp(logs / 2)
        spectrum = np.linalg.eigvalsh(half[:, None] * centred * half)[1:]  # the first is 0
        return np.sqrt(np.maximum(spectrum, 0)).sum() ** 2 / np.exp(logs).sum()

    best = -minimize(lambda y: -bound(y), np.zeros(n), method="BFGS").fun
    error = float(ordered(n, asked).share * Fraction(ordered(n, asked).errors[0])) * len(w)
    assert best * (1 - 1e-3) <= error <= best * (1 + 4 * CLOSE)


@pytest.mark.parametrize("asked", ASKED)
def test_a_finer_column_never_costs_much_more_than_a_coarser_one(asked):
    """No step of the search goes wrong at some size: the error grows slowly and steadily."""
    found = [combined(ordered(n, asked)) for n in range(2, 41)]
    assert all(a < b < a + 0.2 for a, b in pairwise(found))


def test_values_come_back_and_weights_are_the_other_side_of_decode():
    rng = np.random.default_rng(3)
    for n in (2, 7, 40):
        basis = ordered(n)
        x, q, c = rng.integers(-99, 99, (n, 2, 3)), rng.normal(size=(n, 2, 3)), rng.normal(size=(n - 1, 2, 3))
        assert basis.encode(x).shape == (n - 1, 2, 3)
        assert basis.decode(basis.encode(x).astype(float)) + x.mean(axis=0) == pytest.approx(x, abs=1e-8)
        assert (basis.weights(q) * c).sum() == pytest.approx((q * basis.decode(c)).sum(), rel=1e-9)
        assert (basis.encode(x.astype(object) * 10**30) == basis.encode(x).astype(object) * 10**30).all()
        assert basis.encode(x.astype(float)) == pytest.approx(basis.encode(x))
        assert basis.reach == abs(basis.matrix).max()


def test_a_column_of_one_value_has_no_differences():
    one = ordered(1)
    assert (one.size, one.squares, one.share, one.reach, one.errors) == (1, (), 0, 0, (0.0, 1.0))
    assert one.encode(np.ones((1, 4), np.int64)).shape == (0, 4)
    assert (one.decode(np.zeros((0, 4))) == np.zeros((1, 4))).all()
    assert one.weights(np.ones((1, 4))).shape == (0, 4)


def test_a_basis_is_stored_as_its_whole_numbers_and_never_computed_again(monkeypatch):
    basis = ordered(33, "ranges")
    stored = basis.to_dict()
    monkeypatch.setattr(import_module("psidp.strategies.ordered"), "_optimum", None)
    again = basis_from_dict(stored)
    assert again == basis
    assert hash(again) == hash(basis)
    assert (again.matrix == basis.matrix).all()
    assert again != Ordered(-basis.matrix, "ranges")


def test_a_matrix_of_ones_own_is_priced_by_its_whole_numbers():
    basis = Ordered(np.array([[3, -3, 0], [1, 1, -2]]) * 2**BITS)
    assert basis.share == 10


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        ([[1, -1, 0], [1, -1, 1]], "sum to 0"),
        ([[1, -1, 0], [2, -2, 0]], "rank"),
        ([[1, -1]] * 2, "n - 1 by n"),
        ([[LARGEST + 1, -LARGEST - 1]], "2\\^24"),
    ],
)
def test_what_is_no_basis_is_refused(matrix, said):
    with pytest.raises(ValueError, match=said):
        Ordered(np.array(matrix))


def test_nonsense_is_refused_by_name():
    with pytest.raises(ValueError, match="at most 2,048 values"):
        ordered(2049)
    with pytest.raises(ValueError, match="asked must be"):
        ordered(5, "sums")
