"""The same totals, to the last unit, on DuckDB, PostgreSQL and Spark; and what each engine must not do."""

import csv
import datetime
import io
import random
from decimal import Decimal
from math import nan

import duckdb
import psycopg
import pyarrow as pa
import pytest

import psidp
from psidp import Curator, PrivateGroups, ask
from psidp.errors import EngineError
from psidp.tables.engines.duckdb import DuckDB
from psidp.tables.engines.engine import whole_numbers
from psidp.tables.engines.postgres import Postgres
from psidp.tables.engines.spark import Spark
from psidp.tables.sources import open_source
from released import released

COLUMNS = {"u": "bigint", "g": "text", "h": "bigint", "v": "double precision", "n": "bigint"}
SCHEMA = pa.schema([("u", pa.int64()), ("g", pa.string()), ("h", pa.int64()), ("v", pa.float64()), ("n", pa.int64())])
ASKS = [
    [ask.count(), ask.units(), ask.sum("v", -10.0, 100.0), ask.sum("n", -4.0, 1e6), ask.variance("v", 0.0, 1e100),
     ask.mean("n", 0.0, 3.0), ask.deviation("v", -1e-100, 1e-100), ask.distinct("n", 2),
     ask.histogram("v", [-50.0, -1.0, 0.0, 0.1, 7.0, 100.0]), ask.weighted_sum("v", -10.0, 99.0, weights="n", most=3.0),
     ask.ratio(ask.sum("v", -7.5, 30.0), ask.sum("n", 0.0, 3.0))],
    [ask.sum("v", -1e200, 1e-3)],
    [ask.sum("v", -3e-200, 1e-201)],
]  # fmt: skip


def rows_at_random():
    """Rows of 20 units and of one that owns much, with values that engines treat differently."""
    dice = random.Random(2026)
    odd = [None, nan, float("inf"), float("-inf"), 5e-324, -5e-324, 1e308, -1e308, -0.0, 2.0**-1022, 0.1, 1e-200]
    rows = [
        (dice.choice([*range(20), None]), dice.choice(["a", "b", "A", None]), dice.randrange(4),
         dice.choice(odd) if dice.random() < 0.3 else dice.gauss(20, 60),
         dice.choice([None, 2**63 - 1, -(2**63), 3, dice.randrange(-(10**9), 10**9)]))
        for _ in range(600)
    ]  # fmt: skip
    return rows + [(99, "a", h % 4, h * 0.1, -h) for h in range(200)]


@pytest.fixture(scope="module")
def rows():
    return rows_at_random()


def in_duckdb(_, rows):
    connection = duckdb.connect()
    connection.register("batch", pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], SCHEMA))
    return connection


def in_postgres(connection, rows):
    text = io.StringIO()
    csv.writer(text).writerows([["\\N" if value is None else value for value in row] for row in rows])
    connection.execute(f"CREATE TABLE batch ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})")
    with connection.cursor() as cursor, cursor.copy("COPY batch FROM STDIN (FORMAT csv, NULL '\\N')") as copy:
        copy.write(text.getvalue())
    return connection


def in_spark(session, rows):
    session.createDataFrame(rows, "u bigint, g string, h bigint, v double, n bigint").createOrReplaceTempView("batch")
    return session


def totals(connection, unit, asks):
    """Exact totals of all that is asked, by groups, and how many units have which size."""
    groups = {"g": ["a", "b", None], "h": range(4)}
    asked = Curator(connection, unit, name="batch").ask(
        *asks, by=("g", "h"), groups=groups, where="h < 3 or n > 0", contribution=1.5 if unit else 1.0
    )
    priced = asked.at(1.0)
    exact = priced.totals.exact(priced.source, priced.dialect)
    sizes = {name: list(map(int, counts)) for name, counts in exact.sizes.items()}
    return [next(iter(tables.values())).tolist() for tables in exact.cells], sizes


@pytest.mark.parametrize("engine", ["postgres", "spark"])
def test_totals_are_the_same_to_the_last_unit(engine, rows, request):
    connection = {"postgres": in_postgres, "spark": in_spark}[engine](request.getfixturevalue(engine), rows)
    beside = in_duckdb(None, rows)
    for unit in ("u", None):
        for asks in ASKS:
            here, there = totals(connection, unit, asks), totals(beside, unit, asks)
            assert here == there
            assert len(here[0]) == len(asks)


ODD = 'O\'Brien "x" `y`; DROP TABLE keyed;-- ${x} \\u0041 ünï 漢字'


def named(connection, kind, rows):
    """A small table with keys of every type."""
    if kind == "postgres":
        names = "who bigint, word text, day date, instant timestamptz, price numeric(10, 2), yes boolean"
        connection.execute(f"CREATE TABLE keyed ({names})")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO keyed VALUES (%s, %s, %s, %s, %s, %s)", rows)
    else:
        names = "who bigint, word string, day date, instant timestamp, price decimal(10, 2), yes boolean"
        connection.createDataFrame(rows, names).createOrReplaceTempView("keyed")
    return Curator(connection, "who", name="keyed")


@pytest.mark.parametrize("kind", ["postgres", "spark"])
def test_keys_of_every_type_and_private_ones_are_found_on_every_engine(request, kind):
    day, price = datetime.date(2026, 1, 2), Decimal("1.50")
    instant = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    rows = [(i, ODD, day, instant, price, True) for i in range(60)] + [(99, None, None, None, None, None)]
    curator = named(request.getfixturevalue(kind), kind, rows)
    plain = instant.replace(tzinfo=None)
    for column, value in (("word", ODD), ("day", day), ("instant", plain), ("price", price), ("yes", True)):
        answer = released(curator, ask.count(), by=column, groups=[value, None])
        assert [(row[column], round(row["value"])) for row in answer] == [(value, 60), (None, 1)]
    keys = PrivateGroups(kappa=1e-9, at_most=3)
    chosen = released(curator, ask.units(), by=["word", "yes", "instant"], groups=keys, psi=2.0, where="who < 1000")
    assert [(row["word"], row["yes"], row["instant"]) for row in chosen] == [(ODD, True, plain)]


@pytest.mark.parametrize("worst", ["1e400", "-1e400", "1e-400", "NaN", "Infinity"])
def test_a_number_beyond_doubles_is_clipped_and_no_error(postgres, worst):
    postgres.execute("drop table if exists numbers")
    postgres.execute("create table numbers as select n as who, 5::numeric as x from generate_series(1, 50) n")
    postgres.execute("insert into numbers values (51, %s)", (Decimal(worst),))
    asks = [ask.sum("x", -10, 10), ask.mean("x", 0, 10), ask.histogram("x", [0, 4, 6, 10])]
    answer = [row["value"] for row in released(Curator(postgres, "who", name="numbers"), *asks, psi=1e6)]
    clipped = {"1e400": 10, "-1e400": -10, "1e-400": 0, "NaN": None, "Infinity": 10}[worst]
    rows = [5] * 50 + ([] if clipped is None else [clipped])
    assert answer[0] == pytest.approx(sum(rows), abs=1e-2)
    assert answer[1] == pytest.approx(sum(max(0, x) for x in rows) / len(rows), abs=1e-2)
    assert [round(x) for x in answer[2:]] == [sum(x < 4 for x in rows), 50, sum(x > 6 for x in rows)]


@pytest.mark.parametrize("kind", ["duckdb", "postgres", "spark"])
def test_a_stored_query_is_gone_afterwards_whatever_happens(request, kind):
    engine = open_source(pa.table({"who": [1]})).engine
    if kind != "duckdb":
        connection = request.getfixturevalue(kind)
        engine = {"postgres": Postgres, "spark": Spark}[kind](connection)
    with engine.stored("WITH n AS (SELECT 1 AS x UNION ALL SELECT 2) SELECT x FROM n") as text:
        assert [int(column[0]) for column in engine.columns(f"SELECT sum(x) AS s, count(*) AS c FROM {text}")] == [3, 2]
    with pytest.raises(EngineError):
        engine.rows(f"SELECT * FROM {text}")
    with pytest.raises(RuntimeError), engine.stored("SELECT 1 AS x") as text:
        raise RuntimeError
    with pytest.raises(EngineError):
        engine.rows(f"SELECT * FROM {text}")
    with pytest.raises(EngineError), engine.stored("SELECT x FROM nothing"):
        pass


def test_an_engine_that_dies_costs_nothing_and_names_nothing(server, tmp_path):
    """The backend process behind the connection is ended by its id: a refusal, an untouched ledger."""
    url = server.place("doomed")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE visits (who bigint, ward text)")
        connection.execute("INSERT INTO visits SELECT n, 'Bob''s ward' FROM generate_series(1, 100) n")
        ledger = psidp.Ledger(tmp_path / "ledger.db")
        ledger.open("survey", psi=1.0, unit="who", actor="Ann", purpose="test")
        curator = Curator(connection, "who", ledger=ledger, budget="survey", name="visits")
        server.execute(f"SELECT pg_terminate_backend({connection.info.backend_pid})")
        with pytest.raises(EngineError) as refusal:
            released(curator, ask.count(), psi=0.5)
    assert "Bob" not in str(refusal.value)
    assert refusal.value.__context__ is None
    assert [entry.state for entry in ledger.entries()] == ["opened"]
    ledger.dispose()


def test_a_users_own_transaction_is_neither_ended_nor_broken(server):
    with psycopg.connect(server.place("open_transaction")) as connection:
        connection.execute("CREATE TABLE visits AS SELECT n AS who FROM generate_series(1, 100) n")
        source = open_source(connection, name="visits")
        assert source.engine.columns("SELECT count(*), NULL FROM visits")[0].tolist() == [100]
        with pytest.raises(EngineError):
            source.engine.rows("SELECT 1/0")
        assert source.engine.rows("SELECT 'still here'") == [("still here",)]
        connection.rollback()
        with pytest.raises(ValueError, match="one the engine has"):
            open_source(connection, name="visits")


def test_an_address_shows_no_password(server):
    url = server.place("secret")
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE visits (who bigint)")
    source = open_source("visits", engine=url)
    assert source.place == f"visits at 127.0.0.1:{server.port}/postgres/secret"
    assert source.name == "visits"
    source.close()
    with pytest.raises(EngineError) as refusal:
        open_source("visits", engine=url.replace(str(server.port), "1"))
    assert "not-a-secret" not in str(refusal.value)
    assert refusal.value.__context__ is None


def test_a_table_is_found_by_the_address_of_postgres_or_spark(server, spark):
    url = server.place("addressed")
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE visits AS SELECT n AS who FROM generate_series(1, 100) n")
    spark.range(1, 101).withColumnRenamed("id", "who").createOrReplaceTempView("visits")
    for engine in (url, "spark://local"):
        curator = Curator("visits", "who", engine=engine)
        assert released(curator, ask.count()).value("count") == pytest.approx(100.0, abs=1e-3)
        curator.dispose()
        for name in ("nothing", "no.thing"):
            with pytest.raises(ValueError, match=f"one the engine has, table or schema.table, got '{name}'"):
                Curator(name, "who", engine=engine)


def test_a_table_is_found_in_its_schema(server, tmp_path):
    server.execute("create schema clinic")
    server.execute('create table clinic."the visits" as select n as who from generate_series(1, 100) n')
    with duckdb.connect(str(tmp_path / "v.duckdb")) as database:
        database.execute(
            'create schema clinic; create table clinic."the visits" as select range as who from range(100)'
        )
    for curator in (
        Curator("clinic.the visits", "who", engine=server.place("elsewhere")),
        Curator(tmp_path / "v.duckdb", "who", name="clinic.the visits"),
    ):
        assert released(curator, ask.count()).value("count") == pytest.approx(100.0, abs=1e-3)
        curator.dispose()


def test_what_spark_says_of_a_failed_query_is_shown_nowhere(spark, capfd):
    spark.createDataFrame([("Bob, HIV positive",)], "ward string").createOrReplaceTempView("wards")
    with pytest.raises(EngineError) as refusal:
        open_source(spark, name="wards").engine.rows("SELECT CAST(ward AS INT) FROM wards")
    assert refusal.value.__context__ is None
    shown = capfd.readouterr()
    assert "Bob" not in f"{refusal.value} {shown.out} {shown.err}"


def test_whole_numbers_leave_duckdb_as_they_are():
    engine = DuckDB.connect()
    columns = "x, sum(x) + 0 * count(*), NULL::SMALLINT, CASE WHEN x > 0 THEN x END"
    sql = f"SELECT {columns} FROM (VALUES {{}}) AS t(x) GROUP BY x"
    for values in ([1, -2, 3], [2**62 - 1, -(2**62) + 1], [2**62, 1], [2**63 - 1, -(2**63)], [0]):
        found = engine.columns(sql.format(", ".join(f"(CAST('{value}' AS BIGINT))" for value in values)))
        big = any(abs(value) >= 2**62 for value in values)
        assert [column.dtype == object for column in found[:3]] == [big, big, False]
        assert sorted(found[0].tolist()) == sorted(found[1].tolist()) == sorted(values)
        assert set(found[2].tolist()) == {-1}
        assert sorted(found[3].tolist()) == sorted(value if value > 0 else -1 for value in values)
    assert engine.columns("SELECT sum(x) FROM (VALUES (1)) AS t(x) WHERE FALSE")[0].tolist() == [-1]
    assert [column.tolist() for column in engine.columns("SELECT 1 AS a, 1 AS a WHERE FALSE")] == [[], []]
    assert whole_numbers([Decimal(3), None]).tolist() == [3, -1]
    engine.close()
