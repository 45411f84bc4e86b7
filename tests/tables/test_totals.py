"""Totals of an engine: the same integers as plain Python, and no unit moves them further than the bound."""

import datetime
import random
from itertools import product
from math import isqrt, nan

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psidp import Curator, ask
from psidp.mechanism.clipping import IntegerGrid
from psidp.tables.axes import Keys, OpenKey, Within
from psidp.tables.sources import open_source
from psidp.tables.strategies.identity import Identity
from psidp.tables.totals import Totals
from psidp.tables.unit_bounds import NormBound
from psidp.tables.vector import Rows, Vector
from reference.bounded_totals import totals as oracle
from reference.odd_tables import (
    ASKS,
    SCHEMA,
    VALUES,
    engine_totals,
    grid_of,
    own,
    random_table,
    totals_of,
    without_zeros,
)

NUMBERS = st.one_of(
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
            "v": NUMBERS,
            "n": st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-5, 5)),
        }
    ),
    max_size=24,
)
COUNT = Vector((Rows(),))


def opened(rows, schema=SCHEMA):
    """Rows on DuckDB."""
    return open_source(pa.Table.from_pylist(rows, schema))


@settings(max_examples=40)
@given(rows=ROWS, contribution=st.sampled_from([1.0, 1.5, 3.0, 1000.0]), by=st.sampled_from([(), ("g",), ("g", "h")]))
def test_duckdb_gives_the_integers_of_plain_python(rows, contribution, by):
    pairs = [(asked, grid_of(asked, contribution)) for asked in ASKS]
    found = engine_totals(opened(rows), "u", by, pairs)
    for asked, grid in pairs:
        assert found[asked] == without_zeros(oracle(rows, "u", by, asked, grid)), asked.name


@settings(max_examples=10)
@given(rows=ROWS, by=st.sampled_from([(), ("g",), ("g", "h")]))
def test_rows_that_are_their_own_units_need_no_clipping(rows, by):
    pairs = [(asked, grid_of(asked, 1.0)) for asked in ASKS]
    found = engine_totals(opened(rows), None, by, pairs)
    for asked, grid in pairs:
        assert found[asked] == without_zeros(oracle(rows, None, by, asked, grid)), asked.name


@settings(max_examples=20)
@given(rows=ROWS, most=st.sampled_from([1.0, 1.7, 3.0]), unit=st.sampled_from(["u", None, ("u", "h")]))
def test_different_values_are_those_of_plain_python(rows, most, unit):
    pairs = [(ask.distinct(column, most), most if unit else 1.0) for column in ("h", "g", "n")]
    found = engine_totals(opened(rows), unit, ("g",), pairs)
    for asked, worth in pairs:
        plain = asked.to_dict() | {"at_most": worth}
        assert found[asked] == without_zeros(oracle(rows, unit, ("g",), plain, None)), asked.name


def distance(one, other):
    """Squared L2 distance of two tables of totals."""
    zero = [0] * len(next(iter(one.values()), next(iter(other.values()), [0])))
    groups = set(one) | set(other)
    return sum((a - b) ** 2 for g in groups for a, b in zip(one.get(g, zero), other.get(g, zero), strict=True))


def test_no_unit_moves_the_totals_further_than_the_stated_sensitivity():
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
    source = opened(batch, SCHEMA.append(pa.field("t", pa.int64())))
    values = VALUES | {"t": range(len(variants))}
    largest = 0.0
    for asked in ASKS:
        grid = grid_of(asked, dice.choice([1.0, 1.3, 4.0]))
        found = {}
        for (t, *group), total in engine_totals(source, "u", ("t", "g", "h"), [(asked, grid)], values)[asked].items():
            found.setdefault(t, {})[tuple(group)] = total
        for one, other, times in pairs:
            moved = distance(found.get(one, {}), found.get(other, {}))
            assert moved <= (times * grid.bound) ** 2, asked.name
            largest = max(largest, moved / grid.bound**2 / times**2)
        assert grid.bound * grid.step <= grid.norm
    assert len(pairs) > 1000
    assert largest > 0.99  # and the bound is really reached


def test_one_unit_with_many_rows_cannot_overflow():
    huge = [{"u": 1, "g": "a", "h": i % 5, "v": 1e308, "n": 2**62} for i in range(2000)]
    source = opened(huge)
    for asked in ASKS:
        grid = grid_of(asked, 1.0, groups=1)
        found = engine_totals(source, "u", ("g",), [(asked, grid)])[asked]
        assert found == without_zeros(oracle(huge, "u", ("g",), asked, grid)), asked.name


@pytest.mark.parametrize("sign", [1, -1])
def test_nine_million_rows_of_a_unit_add_up_exactly(sign):
    """Unit 0 has 9 million odd rows, whose sum is beyond 2^53; unit 1 as many small ones, below the bound."""
    steps, connection = 9_000_000, duckdb.connect()
    value = "CASE i % 2 WHEN 0 THEN 1 - 2.0::DOUBLE ** -30 ELSE (i % 14) * 2.0::DOUBLE ** -30 END"
    connection.execute(f"CREATE TABLE many AS SELECT i % 2 AS u, {sign} * {value} AS v FROM range({2 * steps}) t(i)")
    asked = ask.sum("v", 0.0, 1.0) if sign > 0 else ask.sum("v", -1.0, 0.0)
    grid = grid_of(asked, 1.0, groups=1)
    large, small = steps * (grid.bound - 1), sum(i % 14 for i in range(1, 2 * steps, 2))
    assert large > 2**53
    kept = (large * isqrt(grid.most**2 // large**2)) >> 30
    assert 0.996 * grid.bound < kept < grid.bound  # a weight of so few steps loses 0.3 %, on the safe side
    found = engine_totals(open_source(connection, name="many"), "u", (), [(asked, grid)])
    assert found[asked] == {(): [sign * (kept + small)]}


def test_totals_beyond_64_bits_are_whole_numbers_of_python():
    """Rows that are units: 2^22 of 2^45 steps each; the noise of a table cuts them at 2^61."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE many AS SELECT 1e9::DOUBLE AS v FROM range(4194304)")
    source, asked = open_source(connection, name="many"), ask.sum("v", 0.0, 1.0)
    totals = totals_of(None, (), [(asked, IntegerGrid(1.0, -45, 2**45))])
    (exact,) = totals.exact(source, source.dialect).cells
    assert exact[()].dtype == object
    assert exact[()].tolist() == [[2**67]]
    (noise,) = Curator(pa.table({"v": [1.0]}), None).ask(asked).at(1e9).noises
    assert noise.draw(exact).totals.tolist() == [[[2.0**61 * noise.grid.step]]]


def test_every_group_a_unit_touches_is_kept():
    """A leading library keeps one group too few: here a unit in k groups is found in all k."""
    rows = [{"u": 1, "g": "a", "h": h, "v": 10.0, "n": 1} for h in range(9)]
    grid = grid_of(ask.count(), 3.0)
    assert counts_by_h(rows, grid) == dict.fromkeys(range(9), 2 ** (-grid.unit))  # norm 3, the bound: untouched
    grid = grid_of(ask.count(), 1.0)
    shares = counts_by_h(rows, grid)
    assert len(shares) == 9
    assert all(abs(x / grid.bound - 9**-0.5) < 1e-6 for x in shares.values())


def counts_by_h(rows, grid):
    asked = ask.count()
    return {h: total for (h,), (total,) in engine_totals(opened(rows), "u", ("h",), [(asked, grid)])[asked].items()}


def test_a_grid_holds_its_squares():
    for norm in (1.0, 3.7, 2.0**-850, 1e200):
        for n in (1, 2, 3, 1000, 10**6, 2**40):
            grid = IntegerGrid.fitting(norm, n)
            assert n * grid.bound**2 < 2**62
            assert grid.bound * grid.step <= norm < (grid.bound + 1) * grid.step
    with pytest.raises(ValueError, match=r"coordinates .* at most 2\^40"):
        IntegerGrid.fitting(1.0, 2**41)


DAYS = tuple(datetime.date(2026, 1, 31) + datetime.timedelta(days=i) for i in (0, 3, 1))
KEYS = {
    "text": (("it's", "\\e", None, "a\n b"), ["a", "a\n b", "a\nb", "A", "it's", "\\e", "", None]),
    "range": ((-2, -1, 0), [-3, -2, 0, 1, 2**62, None]),
    "range and NULL": ((None, 4, 5), [3, 4, 5, None]),
    "numbers": ((7, -(2**62), 3), [7, 3, 0, -(2**62), 2**62, None]),
    "truth": ((True, None, False), [True, False, None]),
    "days": (DAYS, [*DAYS, datetime.date(1999, 1, 1), None]),
    "NULL alone": ((None,), [1, None]),
}


def random_rows(dice, one, other, n=120):
    return [{"u": dice.choice([0, 1, 2, None]), "a": dice.choice(one), "b": dice.choice(other)} for _ in range(n)]


@pytest.mark.parametrize("unit", ["u", None])
@pytest.mark.parametrize("some", [False, True], ids=["all combinations", "some"])
def test_keys_of_every_type_have_their_own_rows_and_no_others(unit, some):
    dice = random.Random(3)
    for (one, two), (other, three) in product(KEYS.values(), list(KEYS.values())[::3]):
        rows = random_rows(dice, two, three)
        keys = [*product(one, other)]
        keys = dice.sample(keys, max(1, len(keys) // 2)) if some else keys
        source, asked = opened(rows, None), ask.count()
        grid = grid_of(asked, 3.0)
        axes = (Keys(("a", "b"), tuple(keys)),)
        totals = Totals(("u",) if unit else (), axes, ((0,),), (COUNT,), (NormBound(grid),))
        (found,) = totals.exact(source, source.dialect).cells
        kept = [row for row in rows if (row["a"], row["b"]) in keys]
        plain = oracle(kept, unit, ("a", "b"), asked, grid)
        assert found[(0,)].reshape(-1).tolist() == [plain.get(key, [0])[0] for key in keys], (one, other)


def test_columns_may_have_the_names_that_the_builder_gives():
    names = {"u0": "u", "k0": "g", "c0": "v", "code": "h", "source": "n", "entries": "v", "s0": "n"}
    rows = [row for row in random_table(random.Random(8)) + random_table(random.Random(9)) if row["u"] is not None]
    odd = pa.table({name: pa.Table.from_pylist(rows, SCHEMA)[old] for name, old in names.items()})
    keys = tuple(product(VALUES["g"], VALUES["h"]))
    for unit in ("u0", None):
        source, asked = open_source(odd), ask.sum("c0", -10.0, 100.0)
        grid = grid_of(asked, 3.0)
        axes = (Keys(("k0", "code"), keys),)
        totals = Totals((unit,) if unit else (), axes, ((0,),), (asked.measure.vector,), (NormBound(grid),))
        (found,) = totals.exact(source, source.dialect).cells
        plain = oracle(rows, names.get(unit), ("g", "h"), ask.sum("v", -10.0, 100.0), grid)
        assert found[(0,)].reshape(-1).tolist() == [plain.get(key, [0])[0] for key in keys]


def test_dates_and_truth_values_can_be_summed_or_group():
    rows = [{"u": i % 3, "d": datetime.date(2026, 1, 1 + i % 2), "b": i % 2 == 0} for i in range(9)]
    asked, days = ask.sum("b", 0, 1), {"d": [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)]}
    grid = grid_of(asked, 5.0)
    found = engine_totals(opened(rows, None), "u", ("d",), [(asked, grid)], days)
    assert found[asked] == without_zeros(oracle(rows, "u", ("d",), asked, grid))


def test_rows_of_some_keys_can_be_counted_in_one_place():
    rows = random_rows(random.Random(4), ["x", "y", None], [1, 2, 3, None])
    source, grid = opened(rows, None), grid_of(ask.count(), 2.0)
    axes = (Within(Keys(("a", "b"), (("x", 1), (None, 2), ("y", None)))),)
    (found,) = Totals(("u",), axes, ((0,),), (COUNT,), (NormBound(grid),)).exact(source, source.dialect).cells
    kept = [row for row in rows if (row["a"], row["b"]) in (("x", 1), (None, 2), ("y", None))]
    assert found[(0,)].reshape(-1).tolist() == oracle(kept, "u", (), ask.count(), grid)[()]


def test_open_keys_come_as_they_are():
    rows = random_rows(random.Random(5), ["x", "y", None], list(DAYS))
    source, grid = opened(rows, None), grid_of(ask.count(), 50.0)
    totals = Totals(("u",), (OpenKey("a"), OpenKey("b")), ((0, 1),), (COUNT,), (NormBound(grid),))
    found = totals.keyed(source, source.dialect)
    assert dict(found) == {key: total for key, (total,) in oracle(rows, "u", ("a", "b"), ask.count(), grid).items()}


def test_a_table_without_rows_has_zeros():
    for unit in ("u", None):
        pairs = [(asked, grid_of(asked, 1.0)) for asked in ASKS] + [(ask.distinct("g", 2), 2.0)]
        for by in ((), ("g",), ("g", "h")):
            totals = totals_of(unit, by, pairs, measured=(0, 2, 11) if unit else ())
            source = opened([])
            exact = totals.exact(source, source.dialect)
            assert not any(np.any(cells) for several in exact.cells for cells in several.values())
            assert not any(sizes.any() for sizes in exact.sizes.values())


def test_the_texts_are_those_that_run():
    """Each step has a name, and each column a line."""
    source = opened(random_table(random.Random(1)))
    totals = totals_of("u", ("g",), [(asked, grid_of(asked, 2.0)) for asked in ASKS[:3]], measured=(0,))
    (text,) = totals.sql(source, source.dialect)
    for step in ("source", "entries", "cells", "units", "weights", "weighed", "totals"):
        assert f"\n{step} AS (\n" in f"\n{text.removeprefix('WITH ')}", step
    assert len(source.engine.columns(text)) == 5
    assert Identity().tables == ((),)
