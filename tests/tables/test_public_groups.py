"""An engine's groups are Python's keys, one to one: no unit hides a group, and no key is an error."""

import datetime
import enum
import time
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from psidp import Curator, PrivateGroups, ask
from psidp.errors import EngineError
from psidp.tables.sources.public_groups import keys_from_text, public_groups
from psidp.tables.types import Type
from released import released

NEVER = 1e6
NOON = datetime.datetime(2026, 1, 1, 12)
DAY = datetime.date(2026, 1, 1)
SCHEMA = {
    "ward": Type("text", "VARCHAR"), "floor": Type("integer", "TINYINT", 8), "day": Type("date", "DATE"),
    "visits": Type("integer", "UHUGEINT", 128, signed=False),
}  # fmt: skip


def counts(table, unit, by, keys, **terms):
    """Counts by key with next to no noise."""
    answer = released(Curator(table, unit, **terms), ask.count(), by=by, groups=keys, psi=NEVER)
    return {row[by]: round(row["value"]) for row in answer}


def on_duckdb(*statements):
    connection = duckdb.connect()
    for statement in statements:
        connection.execute(statement)
    return connection


class Ward(enum.Enum):
    """An enumeration of keys."""

    NORTH = "A"
    SOUTH = "B"


def test_groups_come_in_many_forms(tmp_path):
    pyarrow.parquet.write_table(pa.table({"ward": ["A", None, "A"], "floor": [1, 2, 1]}), tmp_path / "g.parquet")
    (tmp_path / "g.csv").write_text("floor,ward,day\n1,A,2026-01-01\n2,,2026-01-01\n1,A,2026-01-01\n")
    (tmp_path / "excel.csv").write_text("ward,floor\nA,1\n,2\n", encoding="utf-8-sig")
    pairs = (("A", 1), (None, 2))
    frame = pd.DataFrame({"ward": ["A", None], "floor": [1, 2]})
    for groups in (pairs, [list(pair) for pair in pairs], frame, pa.Table.from_pandas(frame), pl.from_pandas(frame),
                   tmp_path / "g.parquet", str(tmp_path / "g.csv"), tmp_path / "excel.csv"):  # fmt: skip
        assert public_groups(groups, ("ward", "floor"), SCHEMA) == pairs
    assert public_groups({"floor": range(2), "ward": Ward}, ("floor", "ward"), SCHEMA) == (
        (0, "A"), (0, "B"), (1, "A"), (1, "B"),
    )  # fmt: skip
    for groups in (["A", "B", "A"], Ward, pd.Series(["A", "B"]), pa.array(["A", "B"]), np.array(["A", "B"])):
        assert public_groups(groups, ("ward",), SCHEMA) == (("A",), ("B",))
    assert public_groups(["A", float("nan"), None, pd.NaT, pd.NA], ("ward",), SCHEMA) == (("A",), (None,))
    assert public_groups(np.arange(3, dtype=np.int32), ("floor",), SCHEMA) == ((0,), (1,), (2,))


@pytest.mark.parametrize("precision", ["s", "us", "ns"])
def test_instants_of_numpy_are_instants_in_every_precision(precision):
    days = np.array(["2026-01-01", "NaT"], f"datetime64[{precision}]")
    keys = public_groups(days, ("at",), {"at": Type("timestamp", "TIMESTAMP")})
    assert keys == ((datetime.datetime(2026, 1, 1),), (None,))
    assert public_groups(days.astype("datetime64[D]"), ("day",), SCHEMA) == ((DAY,), (None,))


def test_groups_that_a_column_cannot_hold_are_refused():
    for groups, by, words in (
        ([1], ("ward",), "'ward' must be text, got int"),
        ([True], ("floor",), "a whole number, got bool"),
        ([128], ("floor",), "must fit into TINYINT, got 128"),
        ([-1], ("visits",), "must fit into UHUGEINT, got -1"),
        ([Decimal("NaN")], ("visits",), "must fit into UHUGEINT, got NaN"),
        ([NOON], ("day",), "a datetime.date, got datetime"),
        (["a\0"], ("ward",), "without NUL"),
        (["\ud800"], ("ward",), "halves of letters"),
        ([("A", 1)], ("ward",), "must have 1 values each"),
        ({"wing": ["A"]}, ("ward",), "must have the columns 'ward', got 'wing'"),
        (pd.DataFrame({"wing": ["A"]}), ("ward",), "must have the columns 'ward', got 'wing'"),
        ("nothing.csv", ("ward",), "that exists"),
        (7, ("ward",), "a frame or a file, got int"),
        ([], ("ward",), "1 to 10,000,000 groups"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            public_groups(groups, by, SCHEMA)


def test_groups_in_words_are_read_in_their_columns_type():
    assert keys_from_text("3..5", "floor", SCHEMA["floor"]) == [3, 4, 5]
    assert keys_from_text("A,, B", "ward", SCHEMA["ward"]) == ["A", None, "B"]
    assert keys_from_text("2026-01-01", "day", SCHEMA["day"]) == [DAY]
    for words, kind, refusal in (
        ("5..3", "floor", "count up"),
        ("1..10000000000", "floor", "at most 10,000,000"),
        ('"A', "ward", "close the quotes"),
        ("x", "floor", "of type"),
    ):
        with pytest.raises(ValueError, match=refusal):
            keys_from_text(words, kind, SCHEMA[kind])


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
    connection = on_duckdb(
        "create table visits (who bigint, ward varchar collate nocase)",
        "insert into visits values (-1, 'a')",
        "insert into visits select i, 'A' from range(100) t(i)",
        "create table empty (who bigint, ward varchar collate nocase)",
    )
    for name in ("visits", "empty"):
        with pytest.raises(ValueError, match="'ward' cannot make groups: the database takes different texts"):
            released(Curator(connection, unit, name=name), ask.count(), by="ward", groups=keys, psi=1.0)


@pytest.mark.parametrize(("column", "value"), [("day", DAY), ("at", NOON), ("instant", NOON)])
@pytest.mark.parametrize("unit", ["who", None])
def test_a_date_that_python_cannot_hold_is_no_error(unit, column, value):
    table = on_duckdb(
        "create table visits as select i who, date '2026-01-01' as day, timestamp '2026-01-01 12:00:00' as at, "
        "timestamptz '2026-01-01 12:00:00+00' as instant from range(100) t(i)",
        "insert into visits values (100, 'infinity', '-infinity', 'infinity'), (101, '20000-01-01', null, null)",
        "set timezone = 'America/New_York'",
    )
    assert counts(table, unit, column, [value], name="visits") == {value: 100}
    assert counts(table, unit, column, PrivateGroups(1e-3, 3), name="visits") == {value: 100}


@pytest.mark.parametrize("unit", ["who", None])
def test_a_whole_number_of_39_digits_is_no_error(unit):
    table = on_duckdb(
        "create table visits as select i who, 5::hugeint as wide from range(50) t(i)",
        "insert into visits values (50, 170141183460469231731687303715884105727), (51, null)",
    )
    assert counts(table, unit, "wide", [Decimal(5), None], name="visits") == {Decimal(5): 50, None: 1}
    assert counts(table, unit, "wide", PrivateGroups(1e-3, 3), name="visits") == {Decimal(5): 50}


@pytest.mark.parametrize("kind", ["uuid", "time", "interval", "json", "blob", "integer[]"])
@pytest.mark.parametrize("keys", [["x"], PrivateGroups(1e-3, 3)], ids=["public", "private"])
def test_what_python_or_json_cannot_hold_makes_no_groups(kind, keys):
    table = on_duckdb(f"create table visits (who bigint, ward {kind})")
    with pytest.raises(TypeError, match="cannot make groups"):
        released(Curator(table, "who", name="visits"), ask.count(), by="ward", groups=keys, psi=1.0)


def test_units_are_no_groups():
    with pytest.raises(ValueError, match="the unit's own column"):
        released(Curator(pa.table({"who": [1]}), "who"), ask.count(), by="who", groups=[1], psi=1.0)


def test_keys_that_are_one_are_one():
    rows = pa.table({"who": range(9), "at": pa.array([NOON] * 9, pa.timestamp("us", "UTC"))})
    keys = [NOON, NOON.replace(tzinfo=datetime.UTC), NOON.astimezone(datetime.timezone(datetime.timedelta(hours=2)))]
    assert counts(rows, "who", "at", keys[:2]) == {NOON: 9}
    assert len(released(Curator(rows, "who"), ask.count(), by="at", groups=keys[:2], psi=1.0).rows) == 1


def test_postgresqls_texts_and_numbers_make_groups_or_a_refusal(postgres):
    for statement in (
        "create collation blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "create type mood as enum ('good', 'bad')",
        "create table moods (who bigint, padded char(9), mood mood, price numeric, blind text collate blind)",
        "insert into moods select n, 'good', 'good', 1.5, 'A' from generate_series(1, 50) n",
        "insert into moods values (51, null, null, 'NaN', 'a')",
    ):
        postgres.execute(statement)
    for unit in ("who", None):
        for column in ("padded", "mood"):
            assert counts(postgres, unit, column, ["good", "none", None], name="moods") == {
                "good": 50,
                "none": 0,
                None: 1,
            }
            assert counts(postgres, unit, column, PrivateGroups(1e-3, 3), name="moods") == {"good": 50}
        prices = counts(postgres, unit, "price", [Decimal("1.50"), None], name="moods")
        assert prices == {Decimal("1.50"): 50, None: 0}
        with pytest.raises(ValueError, match="'blind' cannot make groups"):
            counts(postgres, unit, "blind", ["A"], name="moods")


def test_the_rows_that_a_users_own_connection_makes_do_not_matter(postgres):
    from psycopg.rows import dict_row

    postgres.execute("create table visits as select n as who, n % 2 as ward from generate_series(1, 50) n")
    postgres.row_factory = dict_row
    assert counts(postgres, "who", "ward", [0, 1], name="visits") == {0: 25, 1: 25}
    assert counts(postgres, "who", "ward", PrivateGroups(1e-3, 3), name="visits") == {0: 25, 1: 25}
    assert postgres.execute("select 1 as one").fetchall() == [{"one": 1}]


def test_postgresqls_dates_and_zones_are_no_error(postgres):
    for statement in (
        "create table days as select n as who, date '2026-01-01' as day, timestamp '2026-01-01 12:00' as at, "
        "timestamptz '2026-01-01 12:00+00' as instant from generate_series(1, 50) n",
        "insert into days values (51, 'infinity', '-infinity', 'infinity'), (52, '20000-01-01', null, null)",
        "set timezone = 'America/New_York'",
    ):
        postgres.execute(statement)
    for unit in ("who", None):
        for column, value in (("day", DAY), ("at", NOON), ("instant", NOON)):
            assert counts(postgres, unit, column, [value], name="days") == {value: 50}
            assert counts(postgres, unit, column, PrivateGroups(1e-3, 3), name="days") == {value: 50}
    postgres.execute("set timezone = 'UTC'")


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
    spark.sql(
        f"select id as who, if(id < 40, timestamp '{first}+00:00', timestamp '{second}+00:00') as instant, "
        "'A' collate UTF8_LCASE as blind from range(50)"
    ).createOrReplaceTempView("instants")
    for unit in ("who", None):
        assert counts(spark, unit, "instant", [first, second], name="instants") == {first: 40, second: 10}
        chosen = counts(spark, unit, "instant", PrivateGroups(1e-3, 3), name="instants")
        assert chosen == {first: 40, second: 10}
    with pytest.raises(ValueError, match="'blind' cannot make groups"):
        counts(spark, None, "blind", ["A"], name="instants")


def test_an_engine_that_cannot_tell_is_a_refusal():
    """The question whether texts merge is asked before anything is read."""
    curator = Curator(pa.table({"who": [1], "ward": ["A"]}), "who")
    curator.dispose()
    with pytest.raises(EngineError):
        released(curator, ask.count(), by="ward", groups=["A"], psi=1.0)
