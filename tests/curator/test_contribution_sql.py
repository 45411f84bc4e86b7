"""Totals in the engine: the same integers as plain Python, and no unit moves them further than the bound."""

import datetime
import random
from math import isqrt, nan

import ibis
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psidp.curator import ask
from psidp.mechanism.clipping import IntegerGrid
from reference.bounded_totals import totals as oracle
from reference.curator_tables import AGGREGATES, SCHEMA, engine_totals, lattice, own, random_table, without_zeros

VALUES = st.one_of(
    st.none(),
    st.sampled_from([nan, float("inf"), float("-inf"), -0.0, 5e-324, -5e-324, 1e308, -1e308, 100.0, -7.5]),
    st.floats(-1e3, 1e3),
    st.floats(allow_nan=True, allow_infinity=True),
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "u": st.one_of(st.none(), st.integers(0, 3)),
            "g": st.one_of(st.none(), st.sampled_from(["a", "b", "c"])),
            "h": st.integers(0, 4),
            "v": VALUES,
            "n": st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-5, 5)),
        }
    ),
    max_size=24,
)


def collected(table):
    """The totals of one aggregate."""
    return lambda unit, by, aggregate, grid: engine_totals(table, unit, by, [(aggregate, grid)])[aggregate]


@pytest.fixture(scope="module")
def duck():
    connection = ibis.duckdb.connect(threads=1)
    yield connection
    connection.disconnect()


def in_duckdb(duck, rows):
    duck.con.register("rows_now", pa.Table.from_pylist(rows, SCHEMA))
    return duck.table("rows_now")


@settings(max_examples=40)
@given(rows=ROWS, contribution=st.sampled_from([1.0, 1.5, 3.0, 1000.0]), by=st.sampled_from([(), ("g",), ("g", "h")]))
def test_duckdb_gives_the_integers_of_plain_python(duck, rows, contribution, by):
    parts = [(aggregate, lattice(aggregate, contribution)) for aggregate in AGGREGATES]
    found = engine_totals(in_duckdb(duck, rows), "u", by, parts)
    for aggregate, grid in parts:
        assert found[aggregate] == without_zeros(oracle(rows, "u", by, aggregate, grid)), aggregate


@settings(max_examples=10)
@given(rows=ROWS, by=st.sampled_from([(), ("g",)]))
def test_rows_that_are_their_own_units_need_no_clipping(duck, rows, by):
    parts = [(aggregate, lattice(aggregate, 1.0)) for aggregate in AGGREGATES]
    found = engine_totals(in_duckdb(duck, rows), None, by, parts)
    for aggregate, grid in parts:
        assert found[aggregate] == without_zeros(oracle(rows, None, by, aggregate, grid)), aggregate


def distance(one, other):
    """Squared L2 distance of two tables of totals."""
    zero = [0] * len(next(iter(one.values()), next(iter(other.values()), [0])))
    groups = set(one) | set(other)
    return sum((a - b) ** 2 for g in groups for a, b in zip(one.get(g, zero), other.get(g, zero), strict=True))


def test_no_unit_moves_the_totals_further_than_the_stated_sensitivity(duck):
    """Every removable unit of 400 random tables, and replacements; integers, no tolerance. One query for all tables."""
    dice = random.Random(6)
    variants, pairs = [], []
    for _ in range(400):
        table = random_table(dice)
        first = len(variants)
        variants.append(table)
        for unit in {row["u"] for row in table} - {None}:
            without = [row for row in table if row["u"] != unit]
            stranger = [row | {"u": unit} for row in random_table(dice)]
            pairs += [(first, len(variants), 1), (first, len(variants) + 1, 2)]
            variants += [without, without + stranger]
    batch = [row | {"t": t, "u": own(row["u"], t)} for t, table in enumerate(variants) for row in table]
    duck.con.register("batch_now", pa.Table.from_pylist(batch, SCHEMA.append(pa.field("t", pa.int64()))))
    read = collected(duck.table("batch_now"))
    largest = 0.0
    for aggregate in AGGREGATES:
        grid = lattice(aggregate, dice.choice([1.0, 1.3, 4.0]))
        found = {}
        for (t, *group), total in read("u", ("t", "g", "h"), aggregate, grid).items():
            found.setdefault(t, {})[tuple(group)] = total
        for one, other, times in pairs:
            moved = distance(found.get(one, {}), found.get(other, {}))
            assert moved <= (times * grid.bound) ** 2, aggregate
            largest = max(largest, moved / grid.bound**2 / times**2)
    assert len(pairs) > 1000
    assert largest > 0.99  # and the bound is really reached
    assert grid.bound * grid.step <= grid.norm


def test_one_unit_with_many_rows_cannot_overflow(duck):
    huge = [{"u": 1, "g": "a", "h": i % 5, "v": 1e308, "n": 2**62} for i in range(2000)]
    read = collected(in_duckdb(duck, huge))
    for aggregate in AGGREGATES:
        grid = lattice(aggregate, 1.0, groups=1)
        assert read("u", ("g",), aggregate, grid) == without_zeros(oracle(huge, "u", ("g",), aggregate, grid))


@pytest.mark.parametrize("sign", [1, -1])
def test_nine_million_rows_of_a_unit_add_up_exactly(duck, sign):
    """Unit 0 has 9 million odd rows, whose sum is beyond 2^53; unit 1 as many small ones, below the bound."""
    steps = 9_000_000
    value = "CASE i % 2 WHEN 0 THEN 1 - 2.0::DOUBLE ** -30 ELSE (i % 14) * 2.0::DOUBLE ** -30 END"
    rows = f"SELECT i % 2 AS u, {sign} * {value} AS v FROM range({2 * steps}) t(i)"
    duck.con.execute(f"CREATE OR REPLACE TEMP VIEW many AS {rows}")
    aggregate = ask.sum("v", 0.0, 1.0) if sign > 0 else ask.sum("v", -1.0, 0.0)
    grid = lattice(aggregate, 1.0, groups=1)
    large, small = steps * (grid.bound - 1), sum(i % 14 for i in range(1, 2 * steps, 2))
    assert large > 2**53
    kept = (large * isqrt(grid.most**2 // large**2)) >> 30
    assert 0.996 * grid.bound < kept < grid.bound  # a weight of so few steps loses 0.3 %, on the safe side
    assert collected(duck.table("many"))("u", (), aggregate, grid) == {(): [sign * (kept + small)]}


def test_every_group_a_unit_touches_is_kept(duck):
    """A leading library keeps one group too few: here a unit in k groups is found in all k."""
    rows = [{"u": 1, "g": "a", "h": h, "v": 10.0, "n": 1} for h in range(9)]
    grid = lattice(ask.count(), 3.0)
    assert read_groups(duck, rows, grid) == {h: grid.truncated(1.0) for h in range(9)}  # norm 3, the bound: untouched
    grid = lattice(ask.count(), 1.0)
    shares = read_groups(duck, rows, grid)
    assert len(shares) == 9
    assert all(abs(x / grid.bound - 9**-0.5) < 1e-6 for x in shares.values())


def read_groups(duck, rows, grid):
    found = collected(in_duckdb(duck, rows))("u", ("h",), ask.count(), grid)
    return {h: total[0] for (h,), total in found.items()}


def test_a_lattice_holds_its_squares():
    for norm in (1.0, 3.7, 2.0**-850, 1e200):
        for n in (1, 2, 3, 1000, 10**6, 2**40):
            grid = IntegerGrid.fitting(norm, n)
            assert n * grid.bound**2 < 2**62
            assert grid.bound * grid.step <= norm < (grid.bound + 1) * grid.step
    with pytest.raises(ValueError, match=r"coordinates .* at most 2\^40"):
        IntegerGrid.fitting(1.0, 2**41)


def test_dates_and_truth_values_can_be_summed_or_group(duck):
    rows = [{"u": i % 3, "d": datetime.date(2026, 1, 1 + i % 2), "b": i % 2 == 0} for i in range(9)]
    duck.con.register("dated", pa.Table.from_pylist(rows))
    aggregate = ask.sum("b", 0, 1)
    grid = lattice(aggregate, 5.0)
    found = collected(duck.table("dated"))("u", ("d",), aggregate, grid)
    assert found == without_zeros(oracle(rows, "u", ("d",), aggregate, grid))
