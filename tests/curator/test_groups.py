"""An engine's groups are Python's keys, one to one: no unit hides a group, and no key is an error."""

import datetime
import time
from decimal import Decimal

import ibis
import pyarrow as pa
import pytest

from psidp import Curator, PrivateGroups, ask
from psidp.errors import EngineError

NEVER = 1e6
NOON = datetime.datetime(2026, 1, 1, 12)
DAY = datetime.date(2026, 1, 1)


def counts(table, unit, by, keys):
    """Counts by key with next to no noise."""
    answer = Curator(table, unit).release(ask.count(), by=by, groups=keys, psi=NEVER)
    return {row[by]: round(row["value"]) for row in answer}


def on_duckdb(*statements):
    connection = ibis.duckdb.connect()
    for statement in statements:
        connection.raw_sql(statement)
    return connection


def on_postgres(connection, *statements):
    with connection.con.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    connection.con.commit()


@pytest.mark.parametrize("unit", ["who", None])
def test_an_instant_finer_than_python_hides_no_other(unit):
    """One nanosecond later is another group to DuckDB and the same to Python: one row must not replace a hundred."""
    instants = [1_767_268_800_000_000_000] * 100 + [1_767_268_800_000_000_001]
    rows = pa.table({"who": range(101), "at": pa.array(instants, pa.timestamp("ns"))})
    assert counts(rows.slice(0, 100), unit, "at", [NOON]) == {NOON: 100}
    assert counts(rows, unit, "at", [NOON]) == {NOON: 101}
    assert counts(rows, unit, "at", PrivateGroups(1e-3, 3)) == {NOON: 101}


@pytest.mark.parametrize("unit", ["who", None])
@pytest.mark.parametrize("keys", [["A"], PrivateGroups(1e-3, 3)], ids=["public", "private"])
def test_text_that_a_database_takes_for_one_makes_no_groups(unit, keys):
    """Of 'a' and 'A' a collation without case shows the first row's: one unit could rename a group, and so empty it."""
    table = on_duckdb(
        "create table visits (who bigint, ward varchar collate nocase)",
        "insert into visits values (-1, 'a')",
        "insert into visits select i, 'A' from range(100) t(i)",
    ).table("visits")
    for rows in (table, table.limit(0)):
        with pytest.raises(ValueError, match="'ward' cannot make groups: the database takes different texts"):
            Curator(rows, unit).release(ask.count(), by="ward", groups=keys, psi=1.0)


@pytest.mark.parametrize(("column", "value"), [("day", DAY), ("at", NOON), ("instant", NOON)])
@pytest.mark.parametrize("unit", ["who", None])
def test_a_date_that_python_cannot_hold_is_no_error(unit, column, value):
    table = on_duckdb(
        "create table visits as select i who, date '2026-01-01' as day, timestamp '2026-01-01 12:00:00' as at, "
        "timestamptz '2026-01-01 12:00:00+00' as instant from range(100) t(i)",
        "insert into visits values (100, 'infinity', '-infinity', 'infinity'), (101, '20000-01-01', null, null)",
        "set timezone = 'America/New_York'",
    ).table("visits")
    assert counts(table, unit, column, [value]) == {value: 100}
    assert counts(table, unit, column, PrivateGroups(1e-3, 3)) == {value: 100}


@pytest.mark.parametrize("unit", ["who", None])
def test_a_whole_number_of_39_digits_is_no_error(unit):
    table = on_duckdb(
        "create table visits as select i who, 5::hugeint as wide from range(50) t(i)",
        "insert into visits values (50, 170141183460469231731687303715884105727), (51, null)",
    ).table("visits")
    assert counts(table, unit, "wide", [Decimal(5), None]) == {Decimal(5): 50, None: 1}
    assert counts(table, unit, "wide", PrivateGroups(1e-3, 3)) == {Decimal(5): 50}


@pytest.mark.parametrize("kind", ["uuid", "time", "interval", "json", "blob", "integer[]"])
@pytest.mark.parametrize("keys", [["x"], PrivateGroups(1e-3, 3)], ids=["public", "private"])
def test_what_python_or_json_cannot_hold_makes_no_groups(kind, keys):
    table = on_duckdb(f"create table visits (who bigint, ward {kind})").table("visits")
    with pytest.raises(TypeError, match="cannot make groups"):
        Curator(table, "who").release(ask.count(), by="ward", groups=keys, psi=1.0)


def test_units_are_no_groups():
    with pytest.raises(ValueError, match="the unit's own column"):
        Curator(pa.table({"who": [1]}), "who").release(ask.count(), by="who", groups=[1], psi=1.0)


def test_keys_that_are_one_are_one():
    rows = pa.table({"who": range(9), "at": pa.array([NOON] * 9, pa.timestamp("us", "UTC"))})
    keys = [NOON, NOON.replace(tzinfo=datetime.UTC), NOON.astimezone(datetime.timezone(datetime.timedelta(hours=2)))]
    assert counts(rows, "who", "at", keys[:2]) == {NOON: 9}
    assert len(Curator(rows, "who").release(ask.count(), by="at", groups=keys[:2], psi=1.0).rows) == 1


def test_postgresqls_texts_and_numbers_make_groups_or_a_refusal(postgres):
    on_postgres(
        postgres,
        "create collation blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "create type mood as enum ('good', 'bad')",
        "create table moods (who bigint, padded char(9), mood mood, price numeric, blind text collate blind)",
        "insert into moods select n, 'good', 'good', 1.5, 'A' from generate_series(1, 50) n",
        "insert into moods values (51, null, null, 'NaN', 'a')",
    )
    table = postgres.table("moods")
    for unit in ("who", None):
        for column in ("padded", "mood"):
            assert counts(table, unit, column, ["good", "none", None]) == {"good": 50, "none": 0, None: 1}
            assert counts(table, unit, column, PrivateGroups(1e-3, 3)) == {"good": 50}
        assert counts(table, unit, "price", [Decimal("1.50"), None]) == {Decimal("1.50"): 50, None: 0}
        with pytest.raises(ValueError, match="'blind' cannot make groups"):
            counts(table, unit, "blind", ["A"])


def test_postgresqls_dates_and_zones_are_no_error(postgres):
    on_postgres(
        postgres,
        "create table days as select n as who, date '2026-01-01' as day, timestamp '2026-01-01 12:00' as at, "
        "timestamptz '2026-01-01 12:00+00' as instant from generate_series(1, 50) n",
        "insert into days values (51, 'infinity', '-infinity', 'infinity'), (52, '20000-01-01', null, null)",
        "set timezone = 'America/New_York'",
    )
    for unit in ("who", None):
        for column, value in (("day", DAY), ("at", NOON), ("instant", NOON)):
            assert counts(postgres.table("days"), unit, column, [value]) == {value: 50}
            assert counts(postgres.table("days"), unit, column, PrivateGroups(1e-3, 3)) == {value: 50}
    on_postgres(postgres, "set timezone = 'UTC'")


@pytest.fixture
def new_york(monkeypatch):
    """A process whose clocks stand in New York, where 05:30 and 06:30 of this day in UTC are both half past one."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield [datetime.datetime(2026, 11, 1, hour, 30) for hour in (5, 6)]
    monkeypatch.undo()
    time.tzset()


def test_sparks_instants_and_texts_make_groups_or_a_refusal(spark, new_york):
    first, second = new_york
    spark._session.sql(
        f"select id as who, if(id < 40, timestamp '{first}+00:00', timestamp '{second}+00:00') as instant, "
        "'A' collate UTF8_LCASE as blind from range(50)"
    ).createOrReplaceTempView("instants")
    table = spark.table("instants")
    for unit in ("who", None):
        assert counts(table, unit, "instant", [first, second]) == {first: 40, second: 10}
    with pytest.raises(ValueError, match="'blind' cannot make groups"):
        counts(table, None, "blind", ["A"])


def test_an_engine_that_cannot_tell_is_a_refusal(monkeypatch):
    """The question whether texts merge is asked before anything is read."""
    curator = Curator(pa.table({"who": [1], "ward": ["A"]}), "who")
    curator.dispose()
    with pytest.raises(EngineError):
        curator.release(ask.count(), by="ward", groups=["A"], psi=1.0)
