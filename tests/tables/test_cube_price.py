"""The price of a cube: layers share psi^2, replaced rows move no further, units keep their bound."""

from fractions import Fraction
from itertools import combinations, product
from math import ceil

import numpy as np
import pandas as pd
import pytest

from psidp.strategies.haar import Haar
from psidp.strategies.marginals import Marginals
from psidp.strategies.residual_plan import ResidualPlan, least_worst
from psidp.tables import ask
from psidp.tables.curator import Curator
from psidp.tables.strategies.residual import gram
from reference.dense_cube import moved, residual_rows, scale_fractions

MEASURES = {
    "count": [ask.count()],
    "count and mean": [ask.count(), ask.mean("v", 0, 10)],
    "sum": [ask.sum("v", -3, 10)],
    "all": [ask.count(), ask.mean("v", 0, 10), ask.sum("w", 0, 1)],
    "others": [ask.variance("v", 0, 10), ask.ratio(ask.sum("w", 0, 1), ask.count())],
}
ADDED = {"count": ["rows"], "mean of v": ["present", "value"], "sum of v": ["value"], "sum of w": ["value"]}
ADDED |= {"variance of v": ["present", "value", "value"], "ratio of sum of w to count": ["value", "rows"]}
"""What a row adds for each measure: 1, 1 where there is a value, or the value."""

TABLE = pd.DataFrame({"p": [1], "c0": [0], "c1": [0], "c2": [0], "v": [1.0], "w": [0.5]})


def cubes(seed, cases):
    """Keys of each column, and tables."""
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        sizes = rng.integers(1, 5, rng.integers(1, 4)).tolist()
        every = [t for k in range(len(sizes) + 1) for t in combinations(range(len(sizes)), k)]
        chosen = rng.choice(len(every), rng.integers(1, len(every) + 1), replace=False)
        yield rng, {f"c{i}": range(n) for i, n in enumerate(sizes)}, [every[i] for i in sorted(chosen)]


def price(columns, tables, measures, *, unit=None, adjacency="add-remove", psi=1.0, errors=None, contribution=1.0):
    """The noise of every number that a row adds, and what all of it costs."""
    question = Curator(TABLE, unit, adjacency=adjacency).cube(
        columns,
        [tuple(i if isinstance(i, str) else f"c{i}" for i in table) for table in tables],
        measures=measures,
        contribution=contribution,
        clipping_share=0.0,
    )  # fmt: skip
    priced = question.priced(None if errors else psi, errors, {})
    return [plan for noise in priced.noises for plan in noise.plans], priced.guarantee.psi


def added(measures):
    """What a row adds for all measures, number by number."""
    return [kind for a in measures for kind in ADDED[a.name]]


def costs(plans):
    """For each layer the rows of all residuals, and 2^200/(m sigma)^2 of each, rounded up to whole numbers."""
    found = []
    for plan in plans:
        matrix, weights = [], []
        for part, sigma in zip(plan.marginals.residuals, plan.sigmas, strict=True):
            matrix += residual_rows(plan.marginals.bases, part).tolist()
            weights += [ceil(2**200 / (m * Fraction(sigma)) ** 2) for m in scale_fractions(plan.marginals, part)]
        found.append((matrix, weights))
    return found


def apart(layers, one, other):
    """psi^2 between two tables that differ in this: rows as (cell, whole values by layer), rounded up by 2^-190."""
    total = 0
    for n, (matrix, weights) in enumerate(layers):
        for row, weight in zip(matrix, weights, strict=True):
            c = sum(row[cell] * v[n] for cell, v in one) - sum(row[cell] * v[n] for cell, v in other)
            total += weight * c * c
    return Fraction(total, 2**200)


@pytest.mark.parametrize("measures", MEASURES.values(), ids=MEASURES)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_one_row_moves_all_layers_together_by_no_more_than_psi(measures, adjacency):
    """Every row or pair of rows, at the ends of the values, also against a row that is in no table; in fractions."""
    kinds = added(measures)
    signs = (1, -1) if "value" in kinds else (1,)
    values = [tuple(s if kind == "value" else 1 for kind in kinds) for s in signs]
    for _, columns, tables in cubes(3, 12):
        plans, cost = price(columns, tables, measures, adjacency=adjacency)
        cells = range(int(np.prod([len(keys) for keys in columns.values()])))
        rows = [[]] + [[(cell, v)] for cell in cells for v in values]
        others = rows if adjacency == "replace-one" else [[]]
        priced_at = costs(plans)
        worst = max(apart(priced_at, one, other) for one in rows[:5] for other in others)
        assert worst <= Fraction(cost) ** 2 == 1


def test_replaced_rows_of_a_count_are_priced_at_what_they_move():
    """Utility twin: the factor is reached by some pair, or it is that of two rows whose images have no product."""
    for _, columns, tables in cubes(8, 25):
        plans, cost = price(columns, tables, [ask.count()], adjacency="replace-one")
        cells = range(int(np.prod([len(keys) for keys in columns.values()])))
        alone = apart(costs(plans), [(0, [1])], [])
        pairs = [apart(costs(plans), [(0, [1])], [(cell, [1])]) for cell in cells]
        worst = max([*pairs, 2 * alone])
        assert Fraction(9995, 10000) <= worst / Fraction(cost) ** 2 <= 1


def test_replaced_rows_cost_twice_where_nothing_better_is_proved():
    three = {"c0": range(3)}
    for columns, tables, measures, unit in (
        (three | {"v": ask.ordered([0, 1, 2, 3, 4])}, [(0, "v")], [ask.count()], None),
        (three, [(0,)], [ask.sum("v", 0, 1)], None),
        (three, [(0,)], [ask.count()], "p"),
    ):
        once, twice = (
            price(columns, tables, measures, unit=unit, adjacency=a)[0] for a in ("add-remove", "replace-one")
        )
        assert twice[0].sigmas == pytest.approx(2 * np.array(once[0].sigmas), rel=1e-9)


def test_a_contribution_multiplies_the_noise_and_wanted_errors_multiply_the_price():
    columns, tables = {"c0": range(3), "c1": range(4)}, [(0,), (0, 1)]
    (one,), _ = price(columns, tables, [ask.count()], unit="p")
    (many,), cost = price(columns, tables, [ask.count()], unit="p", contribution=8.0)
    assert cost == 1.0
    assert many.sigmas == pytest.approx(8 * np.array(one.sigmas), rel=1e-9)
    assert 64 * many.squared <= 1
    plans, cost = price(
        columns, tables, [ask.count(), ask.mean("v", 0, 1)], unit="p", contribution=8.0, errors={1: 3.0, 2: 4.0}
    )
    assert plans[0].errors[0] <= 3.0
    assert plans[0].errors[1] <= 4.0
    assert 64 * sum(plan.squared for plan in plans) <= Fraction(cost) ** 2
    assert 64 * sum(plan.squared for plan in plans) >= Fraction(cost) ** 2 * (1 - Fraction(1, 2**30))


def agreement(x, y):
    return sum((a == b) << i for i, (a, b) in enumerate(zip(x, y, strict=True)))


@pytest.mark.parametrize("measures", MEASURES.values(), ids=MEASURES)
def test_the_gram_of_the_image_norm_bounds_every_unit_whatever_its_values(measures):
    """Units of up to 12 rows with values of any sign, or none, beside the images of all layers in fractions."""
    kinds = added(measures)
    for rng, columns, tables in cubes(5, 12):
        plans, _ = price(columns, tables, measures)
        grams = gram(plans[0], counts=kinds == ["rows"])
        own, priced_at = sum(plan.squared for plan in plans), costs(plans)
        cells = list(product(*columns.values()))
        for _ in range(6):
            places = rng.integers(0, len(cells), rng.integers(1, 13)).tolist()
            if rng.random() < 0.5:
                places = sorted(places)
            unit = [(place, _values(rng, kinds, n)) for n, place in enumerate(places)]
            pairs = sum(grams[agreement(cells[a], cells[b])] for a in places for b in places)
            assert apart(priced_at, unit, []) <= own * Fraction(pairs, 2**24)


def _values(rng, kinds, n):
    """What a row adds, in rows: nothing for a missing value, or one end or the other, in turns."""
    missing, value = rng.random() < 0.3, (-1) ** n
    found = {"rows": 1, "present": 0 if missing else 1, "value": 0 if missing else value}
    return [found[kind] for kind in kinds]


def test_products_of_rows_alone_would_not_bound_a_units_values():
    """Why sizes count: two rows in different cells, of values 1 and -1, cancel as rows and add up as values."""
    marginals = Marginals((Haar(2),), ((0,),))
    plan = ResidualPlan(marginals, (10.0, 1.0))
    rows, values = (gram(plan, counts=counts) for counts in (True, False))
    image = apart(costs([plan]), [(0, [1]), (1, [-1])], [])
    assert image > plan.squared * Fraction(2 * rows[0] + 2 * rows[1], 2**24)
    assert image <= plan.squared * Fraction(2 * values[0] + 2 * values[1], 2**24)


def test_the_gram_is_rounded_up_for_products_of_either_sign():
    for rng, columns, tables in cubes(6, 40):
        marginals = Marginals(tuple(Haar(len(keys)) for keys in columns.values()), tuple(tables))
        plan = ResidualPlan(marginals, tuple(np.exp(rng.normal(0, 2, len(marginals.residuals)))))
        sizes = [b.size for b in marginals.bases]
        for pattern, found in enumerate(gram(plan, counts=True)):
            exact = sum(
                np.prod([Fraction((pattern >> i) & 1) - Fraction(1, sizes[i]) for i in part], initial=Fraction(1))
                / Fraction(sigma) ** 2
                for part, sigma in zip(marginals.residuals, plan.sigmas, strict=True)
            )
            exact = 2**24 * exact / plan.squared
            assert exact <= found <= exact + 2


def test_a_plans_promise_is_that_of_its_rows():
    """The dense oracle of this file and that of the strategies agree."""
    plan = least_worst(Marginals((Haar(3), Haar(2)), ((0, 1),)), 1.0)
    assert 0 <= apart(costs([plan]), [(4, [1])], []) - moved(plan, 4) < Fraction(1, 2**180)
