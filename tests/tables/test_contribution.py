"""What a unit adds is its true vector times one number: in exact integers, and as a user sees it."""

import random
from math import isqrt, nan

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from psidp import Curator, ask
from psidp.mechanism.clipping import IntegerGrid
from psidp.tables.axes import Keys
from psidp.tables.sources import open_source
from psidp.tables.totals import Totals
from psidp.tables.unit_bounds import FINE, SIZES, KeyBound, NormBound, RowBound
from reference.bounded_totals import row_vector
from reference.bounded_totals import totals as oracle
from reference.odd_tables import ASKS, SCHEMA, engine_totals, grid_of, totals_of, without_zeros

EXACT = 1e9
"""A psi with hardly any noise: for tests of what is computed."""

ALL = SCHEMA.append(pa.field("o", pa.int64()))
PLACES = {"g": ("a", "b", "c"), "h": (0, 1, 2, 3)}
ENGINES = ("duckdb", "postgres", "spark")


def placed(engine, request, name, columns, rows):
    """A table on an engine: its columns with types that all engines know, and its rows."""
    if engine == "spark":
        session = request.getfixturevalue("spark")
        kinds = {"text": "string", "double precision": "double"}
        names = ", ".join(f"{column} {kinds.get(kind, kind)}" for column, kind in columns.items())
        session.createDataFrame(rows, names).createOrReplaceTempView(name)
        return open_source(session, name=name)
    connection = duckdb.connect() if engine == "duckdb" else request.getfixturevalue("postgres")
    connection.execute(f"drop table if exists {name}")
    connection.execute(f"create table {name} ({', '.join(f'{c} {kind}' for c, kind in columns.items())})")
    places = ", ".join(["?" if engine == "duckdb" else "%s"] * len(columns))
    cursor = connection.cursor()
    cursor.executemany(f"insert into {name} values ({places})", rows)
    return open_source(connection, name=name)


def nasty_units(dice, units):
    """Units with few rows and many, in few groups and many, of ordinary values, extreme ones and none."""
    odd = [None, nan, float("inf"), -1e308, 5e-324, 1e308, 100.0, -7.5, 0.0, 1e-200]
    rows = []
    for unit in range(units):
        values = dice.choice([[dice.gauss(20, 60)], odd, [dice.gauss(20, 60) for _ in range(5)]])
        groups = dice.choice([1, 1, 2, 12])
        for i in range(dice.choice([1, 1, 2, 3, 5, 40])):
            g, h = divmod(i % groups, 4)
            n = dice.choice([None, 1, 3, -(2**63), 2**63 - 1, 10 ** dice.randint(0, 18)])
            rows.append({"u": unit, "g": "abc"[g], "h": h, "v": dice.choice(values), "n": n, "o": unit})
    return rows


def by_unit(totals):
    """Each unit's own vector; the owner is the first part of its groups."""
    vectors = {}
    for (owner, *group), total in totals.items():
        vectors.setdefault(owner, {})[tuple(group)] = total
    return vectors


def checked(source, rows, pairs, unit="u"):
    """How many unit vectors were equal to the oracle's and within the bound."""
    values = PLACES | {"o": range(1 + max(row["o"] for row in rows))}
    found, seen = engine_totals(source, unit, ("o", "g", "h"), pairs, values), 0
    for asked, grid in pairs:
        assert found[asked] == without_zeros(oracle(rows, unit, ("o", "g", "h"), asked, grid)), asked.name
        for vector in by_unit(found[asked]).values():
            assert sum(x * x for total in vector.values() for x in total) <= grid.bound**2
            seen += 1
    return seen


@pytest.mark.parametrize("seed", range(4))
def test_unit_vectors_are_those_of_plain_python_and_within_the_bound(seed):
    """Some 50,000 of them for each seed, 200,000 in all: every measure, each at one of four contributions."""
    rows = nasty_units(random.Random(seed), 4000)
    spread = [1.0, 1.5, 8.0, 1000.0]
    pairs = [(asked, grid_of(asked, spread[(i + seed) % 4], groups=12)) for i, asked in enumerate(ASKS)]
    assert checked(open_source(pa.Table.from_pylist(rows, ALL)), rows, pairs) > 45_000


@pytest.mark.parametrize("engine", ["postgres", "spark"])
def test_servers_have_the_same_unit_vectors(request, engine):
    rows = nasty_units(random.Random(9), 150)
    kinds = {"u": "bigint", "g": "text", "h": "bigint", "v": "double precision", "n": "bigint", "o": "bigint"}
    source = placed(engine, request, "nasty", kinds, [tuple(row[c] for c in ALL.names) for row in rows])
    pairs = [(asked, grid_of(asked, 1.5, groups=12)) for asked in ASKS]
    assert checked(source, rows, pairs[:3] + pairs[6:8] + pairs[-1:]) > 500
    assert checked(source, rows, [pairs[0], pairs[8]], unit=("u", "o")) > 200


def squares(grid):
    """Squared norms at every kind of edge: where the root is whole, or nearly; up to 2^122."""
    dice = random.Random(4)
    most = grid.bound << 30
    chosen = {0, 1, grid.bound**2 - 1, grid.bound**2, grid.bound**2 + 1, 2**122 - 1, most**2 - 1, most**2, most**2 + 1}
    for bits in range(62, 122):
        chosen |= {dice.randrange(2**bits, 2 ** (bits + 1)) for _ in range(4)}
    for weight in [1, 2, 3, 2**30 - 1, 2**29, *(dice.randrange(1, 2**30) for _ in range(120))]:
        edge = most**2 // weight**2  # where floor(most / sqrt S) turns from one number to the next
        chosen |= {max(0, edge + step) for step in (-1, 0, 1)}
    return sorted(s for s in chosen if s < 2**122)


def weights(source, bound):
    """The weights that an engine gives to sizes s0."""
    dialect = source.dialect
    tried = f"SELECT i, s0, {bound.quotient('s0', dialect)} AS n0 FROM {source.text} AS source"
    text = f"SELECT i, {bound.weight('s0', 'n0', dialect)} AS w FROM ({tried}) AS tried"
    return dict(zip(*(column.tolist() for column in source.engine.columns(text)), strict=True))


@pytest.mark.parametrize("most", [2**30, 2**31 - 1, 2**20 + 7])
@pytest.mark.parametrize("engine", ENGINES)
def test_weights_by_norm_are_the_integer_roots_on_every_engine(request, engine, most):
    grid = IntegerGrid(float(most), 0, most)
    given = squares(grid)
    lines = ", ".join(f"({i}, {s})" for i, s in enumerate(given))
    if engine == "spark":
        session = request.getfixturevalue("spark")
        text = f"SELECT i, CAST(s0 AS DECIMAL(38, 0)) AS s0 FROM (VALUES {lines}) AS t(i, s0)"
        session.sql(text).createOrReplaceTempView("squares")
        source = open_source(session, name="squares")
    else:
        connection = duckdb.connect() if engine == "duckdb" else request.getfixturevalue("postgres")
        connection.execute("drop table if exists squares")
        kind = "hugeint" if engine == "duckdb" else "numeric"
        connection.execute(f"create table squares (i bigint, s0 {kind})")
        connection.execute(f"insert into squares values {lines}")
        source = open_source(connection, name="squares")
    expected = {i: isqrt(grid.most**2 // max(s, most**2)) for i, s in enumerate(given)}
    assert weights(source, NormBound(grid)) == expected


@pytest.mark.parametrize("contribution", [1.0, 2.7, 1000.0, 2.0**20])
@pytest.mark.parametrize("engine", ENGINES)
def test_weights_by_rows_are_the_integer_quotients_on_every_engine(request, engine, contribution):
    dice, bound = random.Random(5), RowBound(contribution)
    sizes = sorted({1, 2, 3, 2**20, 2**40, *(dice.randrange(1, 2**30) for _ in range(50)),
                    *(max(1, bound.most // w + d) for w in (1, 2, 2**19, 2**20 - 1) for d in (-1, 0, 1))})  # fmt: skip
    source = placed(engine, request, "sizes", {"i": "bigint", "s0": "bigint"}, list(enumerate(sizes)))
    assert weights(source, bound) == {i: min(2**20, bound.most // n) for i, n in enumerate(sizes)}


def test_weights_by_keys_keep_the_norm():
    for contribution, at_most in ((1.0, 1), (1.7, 100), (64.0, 4096)):
        bound = KeyBound(IntegerGrid.fitting(contribution, at_most), at_most)
        norms = [m * w * w for m, w in enumerate(bound.by_keys, 1)]
        assert max(norms) <= bound.grid.bound**2
        full = int(contribution**2)  # up to so many keys count fully
        assert all(w == bound.grid.truncated(1.0) for w in bound.by_keys[:full])
        assert norms[-1] > 0.99 * min(1.0, at_most / contribution**2) * bound.grid.bound**2


@pytest.mark.parametrize("engine", ENGINES)
def test_units_are_counted_by_the_size_of_their_norm(request, engine):
    """Unit i has 3^i rows, which are its norm for a count; and v = 0, which has no norm for a sum."""
    rows = [(i, "a", 0.0) for i in range(8) for _ in range(3**i)]
    source = placed(engine, request, "sized", {"u": "bigint", "g": "text", "v": "double precision"}, rows)
    pairs = [(a, grid_of(a, 5.0)) for a in (ask.count(), ask.sum("v", -1, 3))]
    totals = totals_of("u", ("g",), pairs, {"g": ("a",)}, measured=(0, 1))
    by_rows = [next((k for k, most in enumerate(SIZES) if 3**unit <= most), len(SIZES)) for unit in range(8)]
    expected = [np.bincount(by_rows, minlength=22).tolist(), [8] + [0] * 21]
    exact = totals.exact(source, source.dialect)
    for sizes in (exact.sizes, totals.sizes(source, source.dialect)):
        assert [sizes[j].tolist() for j in (0, 1)] == expected
    alone = totals_of("u", ("g",), pairs, {"g": ("a",)}).exact(source, source.dialect)
    for one, other in zip(exact.cells, alone.cells, strict=True):
        assert one[(0,)].tolist() == other[(0,)].tolist()
    assert alone.sizes == {}


@pytest.mark.parametrize("engine", ENGINES)
def test_units_of_a_cube_are_counted_by_their_rows(request, engine):
    """Unit i has 3^i rows in the cube's cells, and one that counts nowhere; whether it has one table or several."""
    rows = [(i, "ab"[n % 2], n % 3) for i in range(6) for n in range(3**i)] + [(i, "c", 0) for i in range(6)]
    source = placed(engine, request, "cubes", {"u": "bigint", "g": "text", "h": "bigint"}, rows)
    axes = (Keys(("g",), (("a",), ("b",))), Keys(("h",), ((0,), (1,), (2,))))
    by_rows = [next(k for k, most in enumerate(SIZES) if 3**unit <= most) for unit in range(6)]
    for tables in (((0, 1),), ((0,), (1,)), ((0, 1), (1,), ())):
        totals = Totals(("u",), axes, tables, (ask.count().measure.vector,), (RowBound(9.0),), measured=(0,))
        exact = totals.exact(source, source.dialect)
        for sizes in (exact.sizes, totals.sizes(source, source.dialect)):
            assert sizes[0].tolist() == np.bincount(by_rows, minlength=22).tolist()
        for cells in exact.cells[0].values():
            assert int(cells.sum()) == sum(min(2**20, 9 * 2**20 // 3**unit) * 3**unit for unit in range(6))


def test_units_that_nobody_clips_add_their_rows_and_nothing_else():
    """No weight, no clamp: the totals are the plain sums of the rows' integers, to the last digit."""
    rows = [r for r in nasty_units(random.Random(3), 300) if r["u"] % 3]
    source = open_source(pa.Table.from_pylist(rows, ALL))
    for asked in ASKS:
        vector = asked.measure.vector
        if vector.once or vector.edges:
            continue
        grid, plain = grid_of(asked, 1000.0, groups=12), {}
        for row in rows:
            total = plain.setdefault((row["g"], row["h"]), [0] * vector.parts)
            total[:] = [a + b for a, b in zip(total, row_vector(row, asked.to_dict(), grid), strict=True)]
        assert engine_totals(source, "u", ("g", "h"), [(asked, grid)], PLACES)[asked] == without_zeros(plain), (
            asked.name
        )


def test_a_row_must_be_a_thousand_steps_unless_it_is_an_amount():
    groups = 2**39
    for asked, fits in ((ask.count(), False), (ask.sum("v", 0, 5), True), (ask.mean("v", 0, 5), False)):
        vector = asked.measure.vector
        bound = NormBound.of(vector, 2.0, groups // vector.parts)
        assert bound.fine(vector) is fits
        if not fits:
            assert bound.row(vector) < FINE
            with pytest.raises(ValueError, match=f"contribution of '{asked.name}' is too large for so many groups"):
                bound.check(vector, asked.name)


@pytest.mark.parametrize("each", [1, 2, 7, 100, 3000, 1_000_000])
@pytest.mark.parametrize("by", [(), ("g",)])
def test_a_table_of_equal_values_has_that_value_as_its_mean(each, by):
    """Whatever the number of rows, at contribution 1; clamping each entry would release a bound instead."""
    units = max(1, 3000 // each)
    connection = duckdb.connect()
    connection.execute(
        f"create table equal as select i % {units} as u, i % 4 as g, 55.0::double as v from range({units * each}) t(i)"
    )
    asks = (ask.mean("v", 0, 100), ask.variance("v", 0, 100))
    groups = None if not by else [0, 1, 2, 3] if each > 1 else [0]
    question = Curator(connection, "u", name="equal").ask(*asks, by=by, groups=groups, clipping_share=0.0)
    for row in question.release(psi=EXACT):
        value, room = (55.0, 55e-6) if "mean" in row["statistic"] else (0.0, 0.2)
        assert row["value"] == pytest.approx(value, abs=room)


def test_the_mean_of_the_documented_table_is_near_the_truth():
    """docs/tables.md: 700 patients with two or three visits each; contribution 1 released 0.0 [0, 0.0009] before."""
    n = np.arange(2000)
    visits = pa.table({"patient_id": n % 700, "cost": 100.0 + n % 900})
    exact = Curator(visits, "patient_id").ask(ask.mean("cost", 0, 5000), clipping_share=0.0).release(psi=EXACT)
    frame = visits.to_pandas().assign(t=lambda f: (f.cost - 2500) / 2500)
    units = frame.groupby("patient_id").t.agg(["size", "sum"])
    weight = np.minimum(1.0, 1.0 / np.sqrt((units["size"] ** 2 + units["sum"] ** 2) / 2))
    expected = 2500 + 2500 * (weight * units["sum"]).sum() / (weight * units["size"]).sum()
    (row,) = exact
    assert row["value"] == pytest.approx(expected, abs=1e-3)
    assert abs(row["value"] - frame.cost.mean()) < 10.0  # 523 beside 514.5: each patient weighs alike
