"""What a unit adds is its true vector times one number: in exact integers, and as a user sees it."""

import random
from decimal import Decimal
from math import isqrt, nan

import ibis
import numpy as np
import pyarrow as pa
import pytest

from psidp import Curator, ask
from psidp.curator.contribution_sql import SIZES, Totals, _quotient, _weight
from psidp.curator.engine import Engine
from psidp.mechanism.clipping import IntegerGrid
from reference.bounded_totals import row_vector
from reference.bounded_totals import totals as oracle
from reference.curator_tables import AGGREGATES, SCHEMA, engine_totals, lattice, without_zeros

EXACT = 1e9
"""A psi with hardly any noise: for tests of what is computed."""

ALL = SCHEMA.append(pa.field("o", pa.int64()))


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


def checked(table, rows, parts):
    """How many unit vectors were equal to the oracle's and within the bound."""
    found, seen = engine_totals(table, "u", ("o", "g", "h"), parts), 0
    for aggregate, grid in parts:
        assert found[aggregate] == without_zeros(oracle(rows, "u", ("o", "g", "h"), aggregate, grid)), aggregate
        for vector in by_unit(found[aggregate]).values():
            assert sum(x * x for total in vector.values() for x in total) <= grid.bound**2
            seen += 1
    return seen


@pytest.mark.parametrize("seed", range(4))
def test_unit_vectors_are_those_of_plain_python_and_within_the_bound(seed):
    """Some 50,000 of them for each seed, 200,000 in all: thirteen aggregates, each at one of four contributions."""
    dice = random.Random(seed)
    rows = nasty_units(dice, 4000)
    connection = ibis.duckdb.connect()
    connection.con.register("nasty", pa.Table.from_pylist(rows, ALL))
    spread = [1.0, 1.5, 8.0, 1000.0]
    parts = [(a, lattice(a, spread[(i + seed) % 4], groups=12)) for i, a in enumerate(AGGREGATES)]
    seen = checked(connection.table("nasty"), rows, parts)
    connection.disconnect()
    assert seen > 45_000


@pytest.mark.parametrize("kind", ["postgres", "spark"])
def test_servers_have_the_same_unit_vectors(request, kind):
    rows = nasty_units(random.Random(9), 150)
    connection = request.getfixturevalue(kind)
    if kind == "postgres":
        with connection.con.cursor() as cursor:
            cursor.execute("drop table if exists nasty")
            cursor.execute("create table nasty (u bigint, g text, h bigint, v double precision, n bigint, o bigint)")
            cursor.executemany(
                "insert into nasty values (%s, %s, %s, %s, %s, %s)", [tuple(r[c] for c in ALL.names) for r in rows]
            )
        connection.con.commit()
    else:
        names = "u bigint, g string, h bigint, v double, n bigint, o bigint"
        frame = connection._session.createDataFrame([tuple(r[c] for c in ALL.names) for r in rows], names)
        frame.createOrReplaceTempView("nasty")
    parts = [(a, lattice(a, 1.5, groups=12)) for a in AGGREGATES if a.kind in ("count", "sum", "mean", "variance")][::2]
    assert checked(connection.table("nasty"), rows, parts) > 500


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


@pytest.mark.parametrize("bound", [2**30, 2**31 - 1, 2**20 + 7])
@pytest.mark.parametrize("kind", ["duckdb", "postgres", "spark"])
def test_weights_are_the_integer_roots_on_every_engine(request, kind, bound):
    grid = IntegerGrid(float(bound), 0, bound)
    given = squares(grid)
    connection = ibis.duckdb.connect() if kind == "duckdb" else request.getfixturevalue(kind)
    if kind == "spark":
        rows = [(i, Decimal(s)) for i, s in enumerate(given)]
        connection._session.createDataFrame(rows, "i bigint, s decimal(38, 0)").createOrReplaceTempView("squares")
    else:
        with connection.con.cursor() as cursor:
            cursor.execute("drop table if exists squares")
            cursor.execute("create table squares (i bigint, s decimal(38, 0))")
            values = ", ".join(f"({i}, {s})" for i, s in enumerate(given))
            cursor.execute(f"insert into squares values {values}")
    table = connection.table("squares")
    tried = table.mutate(n=_quotient(table.s, grid))
    rows = Engine(table).rows(tried.select("i", w=_weight(tried.s, tried.n, grid)))
    assert dict(rows) == {i: isqrt(grid.most**2 // max(s, bound**2)) for i, s in enumerate(given)}


@pytest.mark.parametrize("kind", ["duckdb", "postgres", "spark"])
def test_units_are_counted_by_the_size_of_their_norm(request, kind):
    """Unit i has 3^i rows, which are its norm for a count; and v = 0, which has no norm for a sum."""
    rows = [(i, "a", 0.0) for i in range(8) for _ in range(3**i)]
    if kind == "postgres":
        connection = request.getfixturevalue(kind)
        with connection.con.cursor() as cursor:
            cursor.execute("drop table if exists sized")
            cursor.execute("create table sized (u bigint, g text, v double precision)")
            cursor.executemany("insert into sized values (%s, %s, %s)", rows)
        connection.con.commit()
    elif kind == "spark":
        connection = request.getfixturevalue(kind)
        frame = connection._session.createDataFrame(rows, "u bigint, g string, v double")
        frame.createOrReplaceTempView("sized")
    else:
        connection = ibis.duckdb.connect()
        connection.con.register("sized", pa.table(dict(zip("ugv", map(list, zip(*rows, strict=True)), strict=True))))
    table = connection.table("sized")
    engine, parts = Engine(table), tuple((a, lattice(a, 5.0)) for a in (ask.count(), ask.sum("v", -1, 3)))
    made = Totals(table, "u", ("g",), parts, engine.narrow, measured=(0, 1))
    expected = {}
    for unit in range(8):
        size = next((k for k, most in enumerate(SIZES) if 3**unit <= most), len(SIZES))
        expected[size] = expected.get(size, 0) + 1
    expected[64] = 8
    assert {int(entry): int(n) for entry, n in engine.rows(made.sizes())} == expected
    together = engine.rows(made.expression())
    assert {int(row[-1]): int(row[1]) for row in together if row[-1] >= 0} == expected
    assert [row[:3] for row in together if row[-1] < 0] == [row[:3] for row in engine.rows(without(made).expression())]


def without(made):
    return Totals(made.rows, made.unit, made.by, made.parts, made.narrow)


def test_units_that_nobody_clips_add_their_rows_and_nothing_else():
    """No weight, no clamp: the totals are the plain sums of the rows' integers, to the last digit."""
    rows = [r for r in nasty_units(random.Random(3), 300) if r["u"] % 3]
    connection = ibis.duckdb.connect()
    connection.con.register("nasty", pa.Table.from_pylist(rows, ALL))
    for aggregate in AGGREGATES:
        if aggregate.kind == "units" or aggregate.edges:
            continue
        grid = lattice(aggregate, 1000.0, groups=12)
        plain = {}
        for row in rows:
            total = plain.setdefault((row["g"], row["h"]), [0] * aggregate.parts)
            total[:] = [a + b for a, b in zip(total, row_vector(row, aggregate, grid), strict=True)]
        found = engine_totals(connection.table("nasty"), "u", ("g", "h"), [(aggregate, grid)])[aggregate]
        assert found == without_zeros(plain), aggregate


@pytest.mark.parametrize("each", [1, 2, 7, 100, 3000, 1_000_000])
@pytest.mark.parametrize("by", [(), ("g",)])
def test_a_table_of_equal_values_has_that_value_as_its_mean(each, by):
    """Whatever the number of rows, at contribution 1; today's clamp released a bound instead."""
    units = max(1, 3000 // each)
    connection = ibis.duckdb.connect()
    connection.con.execute(
        f"create table equal as select i % {units} as u, i % 4 as g, 55.0::double as v from range({units * each}) t(i)"
    )
    asks = (ask.mean("v", 0, 100), ask.variance("v", 0, 100))
    answer = Curator(connection.table("equal"), "u").release(
        *asks, by=by, groups=[0, 1, 2, 3] if by and each > 1 else None if not by else [0], psi=EXACT, clipping_share=0.0
    )
    for row in answer:
        assert row["value"] == pytest.approx(
            55.0 if "mean" in row["statistic"] else 0.0, abs=55e-6 if "mean" in row["statistic"] else 0.2
        )


def test_the_mean_of_the_documented_table_is_near_the_truth():
    """docs/curator.md: 700 patients with two or three visits each; contribution 1 released 0.0 [0, 0.0009] before."""
    n = np.arange(2000)
    visits = pa.table({"patient_id": n % 700, "cost": 100.0 + n % 900})
    exact = Curator(visits, "patient_id").release(ask.mean("cost", 0, 5000), psi=EXACT, clipping_share=0.0)
    frame = visits.to_pandas().assign(t=lambda f: (f.cost - 2500) / 2500)
    units = frame.groupby("patient_id").t.agg(["size", "sum"])
    weight = np.minimum(1.0, 1.0 / np.sqrt((units["size"] ** 2 + units["sum"] ** 2) / 2))
    expected = 2500 + 2500 * (weight * units["sum"]).sum() / (weight * units["size"]).sum()
    (row,) = exact
    assert row["value"] == pytest.approx(expected, abs=1e-3)
    assert abs(row["value"] - frame.cost.mean()) < 10.0  # 523 beside 514.5: each patient weighs alike
