"""Every feature in exact integers: on DuckDB, PostgreSQL and Spark those of plain Python, and no unit beyond its bound.

`./dev fuzz --only neighbours` draws other tables; the odd pairs are of values that the engine alone can hold.
"""

import random

import pyarrow as pa
import pytest

from psidp import Curator, ask
from reference import feature_tables as features
from reference.bounded_totals import totals

PAIRS = 24
ROWS = features.batch(random.Random(2026), PAIRS)


@pytest.fixture(scope="module", params=["duckdb", "postgres", "spark"])
def place(request):
    """What a curator is given for the batch on each engine, one with units, and how many tables there are."""
    connection = None if request.param == "duckdb" else request.getfixturevalue(request.param)
    table, tables = features.placed(request.param, connection, ROWS, 2 * PAIRS)
    return table, features.curator_of(table), tables


def shared(found):
    """The totals of tables that every engine can hold."""
    return {key: total for key, total in found.items() if key[0] < 2 * PAIRS}


@pytest.mark.parametrize("name", features.QUESTIONS)
def test_a_feature_has_the_integers_of_plain_python_and_no_unit_moves_them_too_far(place, name):
    _, curator, tables = place
    question = features.QUESTIONS[name]
    priced = features.priced_of(curator, question, tables)
    found, plain = features.integers(priced), features.expected(priced, question, ROWS)
    assert found.keys() == plain.keys()
    for measure, (whole, bound) in found.items():
        assert shared(whole) == plain[measure], measure
        assert len(plain[measure]) > 15
        moves = [features.moved(whole, pair) for pair in range(tables // 2)]
        assert max(moves) <= bound**2, (measure, moves.index(max(moves)))
        assert sum(move > 0 for move in moves) > 5


def test_histograms_for_bounds_have_the_integers_of_plain_python_and_stay_within_theirs(place):
    _, curator, tables = place
    found, asks = features.bounds_histograms(curator, tables, random.Random(7))
    for stage, (whole, bound) in found.items():
        asked, grid = asks[stage]
        plain = totals(ROWS, "who", ("t",), asked, grid)
        assert shared(whole) == features.by_group(plain, asked.to_dict()), stage
        assert max(features.moved(whole, pair) for pair in range(tables // 2)) <= bound**2, stage


def test_groups_to_be_chosen_are_counted_alike_and_no_unit_counts_for_more_than_its_bound(place):
    _, curator, tables = place
    question = features.QUESTIONS["bins"]
    found = features.private_counts(curator, question, tables)
    assert shared(found) == features.expected_private(question, ROWS)
    bound = features.PRIVATE.bound.grid.bound
    assert max(features.moved(found, pair) for pair in range(tables // 2)) <= bound**2


@pytest.mark.parametrize("name", ["ratios", "distinct"])
def test_rows_that_are_units_have_the_same_integers(place, name):
    table, _, tables = place
    curator, question = features.curator_of(table, None), features.QUESTIONS[name]
    priced = features.priced_of(curator, question, tables)
    found = features.integers(priced)
    for measure, plain in features.expected(priced, question, ROWS, None).items():
        assert shared(found[measure][0]) == plain, measure


def test_a_condition_on_several_texts_leaves_the_connection_free():
    """Collations are asked for with a query of their own; DuckDB 2 bars the next one while its result is open."""
    rows = pa.table({"who": [1, 2, 3], "a": ["x", "y", "x"], "b": ["u", "u", "v"]})
    answer = Curator(rows, "who").ask(ask.count(), where="a = 'x' and b = 'u'").release(psi=1e9)
    assert answer.value("count") == pytest.approx(1.0, abs=1e-3)
