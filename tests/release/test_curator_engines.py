"""The same totals, to the last unit, on DuckDB, PostgreSQL, Spark and in plain Python; many tables in one batch."""

import csv
import io
import random
from math import nan

import ibis
import pyarrow as pa
import pytest

from reference.bounded_totals import totals as oracle
from reference.curator_tables import AGGREGATES, SCHEMA, engine_totals, lattice, own, random_table, without_zeros

BATCH = SCHEMA.append(pa.field("t", pa.int64()))


def tables():
    """Random tables and the odd ones: empty, a unit in every group, one unit owning all rows, huge and tiny values."""
    dice = random.Random(2026)
    made = [random_table(dice) for _ in range(80)] + [[]]
    row = {"u": 1, "g": "a", "h": 0, "v": 1.0, "n": 1}
    made.append([row | {"u": u, "g": g, "h": h} for u in range(4) for g in ("a", "b", None) for h in range(4)])
    made.append([row | {"h": h % 7, "v": h * 0.1, "n": -h} for h in range(300)])
    odd = [None, nan, float("inf"), float("-inf"), 5e-324, -5e-324, 1e308, -1e308, -0.0, 2.0**-1022, 0.1, 1e-200]
    made.append([row | {"u": i % 3, "v": v, "n": n} for i, v in enumerate(odd) for n in (None, 2**63 - 1, -(2**63), 3)])
    made.append([row | {"u": None} for _ in range(5)])
    made.append([row] * 50)
    return made


@pytest.fixture(scope="module")
def batch():
    return [row | {"t": t, "u": own(row["u"], t)} for t, table in enumerate(tables()) for row in table]


def in_postgres(connection, rows):
    """The rows as a PostgreSQL table."""
    names = "u bigint, g text, h bigint, v double precision, n bigint, t bigint"
    text = io.StringIO()
    writer = csv.writer(text)
    for row in rows:
        writer.writerow(["\\N" if row[c] is None else row[c] for c in BATCH.names])
    with connection.con.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS batch")
        cursor.execute(f"CREATE TABLE batch ({names})")
        with cursor.copy("COPY batch FROM STDIN (FORMAT csv, NULL '\\N')") as copy:
            copy.write(text.getvalue())
    connection.con.commit()
    return connection.table("batch")


def in_spark(connection, rows):
    """The rows as a Spark view."""
    names = "u bigint, g string, h bigint, v double, n bigint, t bigint"
    frame = connection._session.createDataFrame([tuple(row[c] for c in BATCH.names) for row in rows], names)
    frame.createOrReplaceTempView("batch")
    return connection.table("batch")


def in_duckdb(_, rows):
    connection = ibis.duckdb.connect(threads=1)
    connection.con.register("batch", pa.Table.from_pylist(rows, BATCH))
    return connection.table("batch")


PLACES = {"duckdb": in_duckdb, "postgres": in_postgres, "spark": in_spark}


@pytest.fixture(scope="module", params=list(PLACES))
def table(request, batch):
    connection = None if request.param == "duckdb" else request.getfixturevalue(request.param)
    return PLACES[request.param](connection, batch)


@pytest.mark.parametrize("by", [("t",), ("t", "g", "h")], ids=len)
def test_totals_are_the_same_to_the_last_unit(table, batch, by):
    parts = [(a, lattice(a, c)) for a, c in zip(AGGREGATES, [1.0, 1.5, 3.0, 1000.0] * 4, strict=False)]
    found = engine_totals(table, "u", by, parts)
    for aggregate, grid in parts:
        expected = without_zeros(oracle(batch, "u", by, aggregate, grid))
        assert found[aggregate] == expected, aggregate
    assert len(found[AGGREGATES[0]]) > 50


def test_rows_that_are_units_add_up_to_the_same(table, batch):
    parts = [(a, lattice(a, 1.0)) for a in AGGREGATES]
    found = engine_totals(table, None, ("t", "g"), parts)
    for aggregate, grid in parts:
        assert found[aggregate] == without_zeros(oracle(batch, None, ("t", "g"), aggregate, grid)), aggregate
