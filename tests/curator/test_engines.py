"""The same totals, to the last unit, on DuckDB, PostgreSQL, Spark and in plain Python; many tables in one batch."""

import csv
import datetime
import io
import random
from decimal import Decimal
from math import nan

import ibis
import pyarrow as pa
import pytest

import psidp
from psidp import Curator, PrivateGroups, ask
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
    parts = [(a, lattice(a, c)) for a, c in zip(AGGREGATES, [1.0, 1.5, 3.0, 1000.0] * 5, strict=False)]
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


def named(connection, kind, rows):
    """A small table with keys of every type."""
    types = {
        "postgres": "who bigint, word text, day date, instant timestamp, price numeric(10, 2), yes boolean",
        "spark": "who bigint, word string, day date, instant timestamp, price decimal(10, 2), yes boolean",
    }[kind]
    if kind == "postgres":
        with connection.con.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS keyed")
            cursor.execute(f"CREATE TABLE keyed ({types})")
            cursor.executemany("INSERT INTO keyed VALUES (%s, %s, %s, %s, %s, %s)", rows)
        connection.con.commit()
    else:
        connection._session.createDataFrame(rows, types).createOrReplaceTempView("keyed")
    return connection.table("keyed")


ODD = 'O\'Brien "x" `y`; DROP TABLE keyed;-- ünï 漢字'


@pytest.mark.parametrize("kind", ["postgres", "spark"])
def test_keys_of_every_type_and_private_ones_are_found_on_every_engine(request, kind):
    day, instant, price = datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2, 3, 4, 5), Decimal("1.50")
    rows = [(i, ODD, day, instant, price, True) for i in range(60)] + [(99, None, None, None, None, None)]
    curator = Curator(named(request.getfixturevalue(kind), kind, rows), "who")
    for column, value in (("word", ODD), ("day", day), ("instant", instant), ("price", price), ("yes", True)):
        answer = curator.release(ask.count(), by=column, groups=[value, None], psi=1e9)
        assert [(row[column], round(row["value"])) for row in answer] == [(value, 60), (None, 1)]
    chosen = curator.release(
        ask.units(), by=["word", "yes"], groups=PrivateGroups(1e-9, 3), psi=2.0, where="who < 1000"
    )
    assert [(row["word"], row["yes"]) for row in chosen] == [(ODD, True)]
    autos = [row for _ in range(4) for row in curator.release(ask.count(), psi=2.0, contribution="auto")]
    assert all(abs(row["value"] - 61) < 8 * row["standard_error"] for row in autos)
    assert min(row["standard_error"] for row in autos) < 1  # 1 is not chosen once in 61 times, so never of 4 in 1e7
    assert "GROUP BY" in curator.plan(ask.count(), by="word", groups=["a"], psi=1.0).sql[0]


@pytest.mark.parametrize("worst", ["1e400", "-1e400", "1e-400", "NaN", "Infinity"])
def test_a_number_beyond_doubles_is_clipped_and_no_error(postgres, worst):
    with postgres.con.cursor() as cursor:
        cursor.execute("drop table if exists numbers")
        cursor.execute("create table numbers as select n as who, 5::numeric as x from generate_series(1, 50) n")
        cursor.execute("insert into numbers values (51, %s)", (Decimal(worst),))
    postgres.con.commit()
    table = postgres.table("numbers")
    asks = [ask.sum("x", -10, 10), ask.mean("x", 0, 10), ask.histogram("x", [0, 4, 6, 10])]
    answer = [row["value"] for row in Curator(table, "who").release(*asks, psi=1e6)]
    clipped = {"1e400": 10, "-1e400": -10, "1e-400": 0, "NaN": None, "Infinity": 10}[worst]
    rows = [5] * 50 + ([] if clipped is None else [clipped])
    assert answer[0] == pytest.approx(sum(rows), abs=1e-2)
    assert answer[1] == pytest.approx(sum(max(0, x) for x in rows) / len(rows), abs=1e-2)
    assert [round(x) for x in answer[2:]] == [sum(x < 4 for x in rows), 50, sum(x > 6 for x in rows)]


def test_an_engine_that_dies_costs_nothing_and_names_nothing(server, tmp_path):
    """The backend process behind the connection is ended by its id: a refusal, an untouched ledger."""
    url = server.place("doomed")
    connection = ibis.connect(url)
    with connection.con.cursor() as cursor:
        cursor.execute("CREATE TABLE visits (who bigint, ward text)")
        cursor.execute("INSERT INTO visits SELECT n, 'Bob''s ward' FROM generate_series(1, 100) n")
    connection.con.commit()
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("survey", psi=1.0, unit="who", actor="Ann", purpose="test")
    curator = Curator(connection.table("visits"), "who", ledger=ledger, budget="survey")
    server.execute(f"SELECT pg_terminate_backend({connection.con.info.backend_pid})")
    with pytest.raises(psidp.errors.EngineError) as refusal:
        curator.release(ask.count(), psi=0.5)
    assert "Bob" not in str(refusal.value)
    assert [entry.state for entry in ledger.entries()] == ["opened"]
    ledger.dispose()


def test_a_table_is_found_by_the_address_of_postgres_or_spark(server, spark):
    url = server.place("addressed")
    connection = ibis.connect(url)
    with connection.con.cursor() as cursor:
        cursor.execute("CREATE TABLE visits AS SELECT n AS who FROM generate_series(1, 100) n")
    connection.con.commit()
    connection.disconnect()
    spark._session.range(1, 101).withColumnRenamed("id", "who").createOrReplaceTempView("visits")
    for engine in (url, "spark://local"):
        curator = Curator("visits", "who", engine=engine)
        assert curator.release(ask.count(), psi=1e9).value("count") == pytest.approx(100.0, abs=1e-3)
        curator.dispose()
        for name in ("nothing", "no.thing"):
            with pytest.raises(ValueError, match=f"one the engine has, table or schema.table, got '{name}'"):
                Curator(name, "who", engine=engine)


def test_a_table_is_found_in_its_schema(server, tmp_path):
    server.execute("create schema clinic")
    server.execute('create table clinic."the visits" as select n as who from generate_series(1, 100) n')
    with ibis.duckdb.connect(str(tmp_path / "v.duckdb")).con as database:
        database.execute(
            'create schema clinic; create table clinic."the visits" as select range as who from range(100)'
        )
    for curator in (
        Curator("clinic.the visits", "who", engine=server.place("elsewhere")),
        Curator(tmp_path / "v.duckdb", "who", name="clinic.the visits"),
    ):
        assert curator.release(ask.count(), psi=1e9).value("count") == pytest.approx(100.0, abs=1e-3)
        curator.dispose()
