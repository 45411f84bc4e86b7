"""Plans: the promise in fractions, errors by dense matrices, the least error by other solvers and by the SVD bound."""

from fractions import Fraction
from itertools import combinations
from math import prod, sqrt

import numpy as np
import pytest
from scipy.optimize import minimize

from psidp.strategies.haar import Haar
from psidp.strategies.marginals import Marginals
from psidp.strategies.ordered import ordered
from psidp.strategies.residual_plan import GAP, ResidualPlan, least_psi, least_total, least_worst
from reference.dense_cube import cells_of, moved, reading, summing, table_variances

ADULT = (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2)
FLIGHTS = (3, 16, 12, 20)


def up_to(d, *orders):
    return tuple(t for k in orders for t in combinations(range(d), k))


def of_sizes(sizes, *orders):
    return Marginals(tuple(map(Haar, sizes)), up_to(len(sizes), *orders))


def rmse(plan):
    """Over all cells of all tables."""
    cells = np.array([plan.marginals.cells(table) for table in plan.marginals.tables], float)
    return sqrt(float((cells * np.square(plan.errors)).sum() / cells.sum()))


def random_marginals(rng, ordinal=False):
    """Up to three columns of one to five values, and some tables of them."""
    sizes = rng.integers(1, 6, rng.integers(1, 4)).tolist()
    bases = tuple(ordered(n) if ordinal and rng.random() < 0.5 else Haar(n) for n in sizes)
    every = up_to(len(sizes), *range(len(sizes) + 1))
    chosen = rng.choice(len(every), rng.integers(1, len(every) + 1), replace=False)
    return Marginals(bases, tuple(every[i] for i in sorted(chosen)))


@pytest.mark.parametrize(
    ("orders", "expected"), [((1,), 3.047), ((2,), 6.359), ((3,), 10.515), ((1, 2, 3), 10.665)], ids=str
)
def test_the_least_total_of_adult_is_that_of_the_literature(orders, expected):
    assert rmse(least_total(of_sizes(ADULT, *orders), 1.0)) == pytest.approx(expected, rel=3e-4)


@pytest.mark.parametrize(("sizes", "expected"), [(ADULT, 15.93), (FLIGHTS, 3.021)], ids=["adult", "flights"])
def test_the_least_worst_cell_is_that_of_the_literature(sizes, expected):
    plan = least_worst(of_sizes(sizes, 1, 2, 3), 1.0)
    assert max(plan.errors) <= expected
    assert max(plan.errors) >= expected * (1 - 2e-3)
    assert 0 <= plan.gap <= 1e-3


def test_wanted_errors_cost_the_least_psi():
    marginals = of_sizes(ADULT, 1, 2, 3)
    wanted = {table: {1: 2.0, 2: 5.0, 3: 10.0}[len(table)] for table in marginals.tables}
    plan = least_psi(marginals, wanted)
    assert plan.psi == pytest.approx(2.642, abs=1e-3)
    assert plan.gap <= 1e-3
    assert all(error <= wanted[table] for error, table in zip(plan.errors, marginals.tables, strict=True))


PLANS = {"worst": least_worst, "total": least_total, "errors": lambda m, psi: least_psi(m, [1.3] * len(m.tables))}


@pytest.mark.parametrize("make", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("ordinal", [False, True], ids=["unordered", "some ordered"])
def test_no_row_costs_more_than_psi_and_the_worst_hardly_less(make, ordinal):
    """Every cell of 25 random cubes, in fractions."""
    rng = np.random.default_rng(21)
    for _ in range(25):
        marginals, psi = random_marginals(rng, ordinal), float(np.exp(rng.uniform(-2, 2)))
        plan = make(marginals, psi)
        costs = [moved(plan, cell, 7) for cell, _ in cells_of([b.size for b in marginals.bases])]
        assert max(costs) <= plan.squared <= Fraction(plan.psi) ** 2
        assert plan.squared >= Fraction(plan.psi) ** 2 * (1 - Fraction(1, 2**50))
        if not ordinal:  # the worst values of two ordered columns need not be those of their product
            assert min(costs) >= Fraction(9995, 10000) ** 2 * plan.squared
        if make is not PLANS["errors"]:
            assert plan.squared <= Fraction(psi) ** 2
            assert plan.squared >= Fraction(9995, 10000) ** 2 * Fraction(psi) ** 2


@pytest.mark.parametrize("n", [5, 20, 100])
def test_the_worst_row_of_one_ordered_column_costs_what_is_promised(n):
    plan = least_worst(Marginals((ordered(n),), ((0,),)), 1.0)
    assert max(moved(plan, j) for j in range(n)) >= Fraction(9995, 10000) ** 2 * plan.squared


@pytest.mark.parametrize("ordinal", [False, True], ids=["unordered", "some ordered"])
def test_errors_and_covariances_are_those_of_dense_matrices(ordinal):
    rng = np.random.default_rng(4)
    for _ in range(15):
        marginals = random_marginals(rng, ordinal)
        plan = ResidualPlan(marginals, tuple(np.exp(rng.normal(size=len(marginals.residuals)))))
        for table in marginals.tables:
            read, variances = reading(plan, table)
            covariance = (read * variances) @ read.T
            shape = marginals.shape(table)
            one, two = ([rng.normal(size=(3, n)) for n in shape] for _ in range(2))
            dense = [np.array(_products(q)) for q in (one, two)]
            expected = (dense[0] @ covariance * dense[1]).sum(axis=-1)
            spread = np.sqrt((dense[0] @ covariance * dense[0]).sum(-1) * (dense[1] @ covariance * dense[1]).sum(-1))
            found = plan.covariances(table, one, two).reshape(-1)
            assert (abs(found - expected) <= 1e-7 * spread).all()
            own = plan.covariances(table, one).reshape(-1)
            exact = (dense[0] @ covariance * dense[0]).sum(axis=-1)
            assert (own >= exact * (1 - 1e-10)).all()
            assert own == pytest.approx(exact, rel=1e-7)
            q = rng.normal(size=shape)
            assert plan.deviation(table, q) == pytest.approx(
                sqrt(float(q.reshape(-1) @ covariance @ q.reshape(-1))), rel=1e-8
            )


def _products(questions):
    """Products of one question of each column, over all cells of the table."""
    found = [np.ones(1)]
    for matrix in questions:
        found = [np.kron(a, row) for a in found for row in matrix]
    return found


def test_errors_of_unordered_tables_are_those_of_each_cell():
    rng = np.random.default_rng(14)
    for _ in range(15):
        marginals = random_marginals(rng)
        plan = ResidualPlan(marginals, tuple(np.exp(rng.normal(size=len(marginals.residuals)))))
        for table, error in zip(marginals.tables, plan.errors, strict=True):
            read, variances = reading(plan, table)
            assert np.sqrt((read**2 * variances).sum(axis=1)) == pytest.approx(
                np.full(marginals.cells(table), error), rel=1e-7
            )


def test_errors_with_ordered_columns_are_those_of_cumulative_sums():
    rng = np.random.default_rng(15)
    marginals = Marginals((Haar(3), ordered(5)), ((1,), (0, 1)))
    plan = ResidualPlan(marginals, tuple(np.exp(rng.normal(size=len(marginals.residuals)))))
    below = np.tril(np.ones((5, 5)))
    for table, error, asked in zip(marginals.tables, plan.errors, (below, np.kron(np.eye(3), below)), strict=True):
        read, variances = reading(plan, table)
        assert sqrt(float((((asked @ read) ** 2) * variances).sum(axis=1).mean())) == pytest.approx(error, rel=1e-7)


def dense_bound(sizes, tables, weights):
    """What sum of w_A (variances of A) no matrix mechanism at psi = 1 is below: (tr sqrt(W^T W))^2 / cells."""
    gram = sum(w * (q := summing(sizes, table)).T @ q for table, w in zip(tables, weights, strict=True))
    spectrum = np.maximum(np.linalg.eigvalsh(gram), 0.0)
    return float(np.sqrt(spectrum).sum() ** 2 / prod(sizes))


def test_the_least_total_is_the_least_of_all_matrix_mechanisms():
    rng = np.random.default_rng(31)
    for _ in range(20):
        marginals = random_marginals(rng)
        sizes = [b.size for b in marginals.bases]
        plan = least_total(marginals, 1.0)
        total = sum(marginals.cells(t) * e**2 for t, e in zip(marginals.tables, plan.errors, strict=True))
        assert total == pytest.approx(dense_bound(sizes, marginals.tables, np.ones(len(marginals.tables))), rel=1e-6)


def test_the_least_worst_is_within_its_gap_of_all_matrix_mechanisms():
    """Bounds for all weights of tables, by the SVD and a solver of another kind."""
    rng = np.random.default_rng(32)
    for _ in range(8):
        marginals = random_marginals(rng)
        sizes, tables = [b.size for b in marginals.bases], marginals.tables
        cells = np.array([marginals.cells(t) for t in tables])

        def bound(logs, sizes=sizes, tables=tables, cells=cells):
            weights = np.exp(logs - logs.max())
            return dense_bound(sizes, tables, weights / cells / weights.sum())

        best = max(
            -minimize(lambda y, f=bound: -f(y), start, method="Nelder-Mead", options={"maxiter": 400}).fun
            for start in (np.zeros(len(tables)), rng.normal(size=len(tables)))
        )
        plan = least_worst(marginals, 1.0)
        assert best * (1 - 1e-6) <= max(plan.errors) ** 2 <= best * (1 + 2e-2)
        assert max(plan.errors) ** 2 <= best * (1 + GAP) * (1 + 1e-2 * (len(tables) > 4))


def solved(adds, costs, most):
    """The least sum of costs/s with adds s <= most, over the logarithms of s."""
    start = np.full(len(costs), np.log((most / adds.sum(axis=1)).min()))
    return minimize(
        lambda u: np.log(costs @ np.exp(-u)),
        start,
        jac=lambda u: -costs * np.exp(-u) / (costs @ np.exp(-u)),
        constraints={
            "type": "ineq",
            "fun": lambda u: -np.log(adds @ np.exp(u) / most),
            "jac": lambda u: -(adds * np.exp(u)) / (adds @ np.exp(u))[:, None],
        },
        bounds=[(s - 30, s + 30) for s in start],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-11},
    )


def test_the_least_psi_is_that_of_a_general_solver():
    rng = np.random.default_rng(33)
    for _ in range(12):
        marginals = random_marginals(rng)
        sizes = [b.size for b in marginals.bases]
        wanted = np.exp(rng.normal(size=len(marginals.tables)))
        adds = table_variances(sizes, marginals.tables, marginals.residuals)
        costs = np.array([prod((sizes[i] - 1) / sizes[i] for i in part) for part in marginals.residuals])
        found = solved(adds, costs, wanted**2)
        assert (adds @ np.exp(found.x) <= wanted**2 * (1 + 1e-6)).all()
        plan = least_psi(marginals, wanted.tolist())
        least = sqrt(float(np.exp(found.fun)))
        assert plan.psi <= least * (1 + plan.gap) * (1 + 1e-5)
        assert plan.psi >= least * (1 - 1e-5)
        assert plan.gap <= GAP


def test_no_table_is_worse_than_under_an_equal_split():
    """400 schemas from 2 to 2,000 values a column, any tables: psi^2 shared equally by independent tables."""
    rng = np.random.default_rng(0)
    for _ in range(400):
        d = int(rng.integers(1, 5))
        sizes = [int(n) for n in np.exp(rng.uniform(np.log(2), np.log(2000), d))]
        every = up_to(d, *range(d + 1))
        chosen = rng.choice(len(every), rng.integers(1, len(every) + 1), replace=False)
        tables = tuple(every[i] for i in sorted(chosen))
        plan = least_worst(Marginals(tuple(map(Haar, sizes)), tables), 1.0)
        assert max(plan.errors) <= sqrt(len(tables)) * (1 + 2e-12)


def test_more_psi_is_less_noise_in_proportion():
    marginals = of_sizes(FLIGHTS, 1, 2)
    one, four = least_worst(marginals, 1.0), least_worst(marginals, 4.0)
    assert np.array(one.sigmas) == pytest.approx(4 * np.array(four.sigmas), rel=1e-14)
    assert one.scaled(3.0).errors == pytest.approx([3 * e for e in one.errors], rel=1e-9)
    assert one.scaled(3.0).squared <= one.squared / 9
    assert one.sigma((0, 1)) == one.sigmas[marginals.residuals.index((0, 1))]


def test_columns_of_one_value_change_nothing():
    with_one = Marginals((Haar(3), Haar(1), Haar(4)), ((0,), (1,), (0, 1, 2)))
    without = Marginals((Haar(3), Haar(4)), ((0,), (), (0, 1)))
    assert least_worst(with_one, 1.0).sigmas == least_worst(without, 1.0).sigmas
    assert least_worst(with_one, 1.0).errors == least_worst(without, 1.0).errors


@pytest.mark.parametrize("psi", [0.0, -1.0, float("nan"), float("inf")])
def test_a_psi_that_buys_nothing_or_everything_is_refused(psi):
    for make in (least_worst, least_total):
        with pytest.raises(ValueError, match="psi"):
            make(of_sizes((2, 3), 1), psi)


@pytest.mark.parametrize("error", [0.0, -1.0, float("nan"), float("inf")])
def test_errors_that_nobody_can_want_are_refused(error):
    with pytest.raises(ValueError, match="errors"):
        least_psi(of_sizes((2, 3), 1), [1.0, error])
