"""Derived columns: parts of dates, bins, CASE and prefixes have one value for each row, the same on every engine."""

import datetime
import random
import re
from collections import Counter

import ibis
import pyarrow as pa
import pytest

from psidp import Curator, PrivateGroups, ask
from psidp.curator.derived import PARTS
from psidp.curator.derived_columns import derived_table
from psidp.curator.engine import Engine, open_table
from psidp.curator.execute import _exact
from psidp.curator.filters import condition
from reference.typed_tables import knowing

COLUMNS = {
    "duckdb": 'who bigint, day date, "at" timestamp, instant timestamptz, x double, word varchar',
    "postgres": "who bigint, day date, at timestamp, instant timestamptz, x double precision, word text",
    "spark": "who bigint, day date, at timestamp_ntz, instant timestamp, x double, word string",
}
NAMES = ("who", "day", "at", "instant", "x", "word")
WORDS = ["", "a", "ab", "a%b", "a_b", "a\\b", "100%", "it's", "naïve\n", "漢字x", "A", "!_!", None, "a" * 50]
PATTERNS = [
    "", "%", "_", "__", "a%", "%b", "a_b", "a\\_b", "a\\%b", "a\\\\b", "%\\%", "\\%%", "%!%", "!\\_!", "漢_x", "na_ve_",
    "%a%a%a%", "a%b%", "'%", "%'%", "A", "%\\\\%", "_%_",
]  # fmt: skip


def rows_at_random(count=300):
    """Rows of all years that Python has, days and instants with and without a zone among them, and missing values."""
    dice, rows = random.Random(2026), []
    first, last = datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)
    for i in range(count):
        at = first + datetime.timedelta(
            microseconds=dice.randrange((last - first) // datetime.timedelta(microseconds=1))
        )
        at = datetime.datetime(2013, 1, 1) + datetime.timedelta(hours=31 * i) if i % 2 else at
        instant = at.replace(tzinfo=datetime.UTC)
        x = dice.choice([None, float("nan"), -1e300, -0.5, 0.0, 14.999, 15.0, 60.0, 1e300])
        cells = (i // 3, at.date(), at, instant, x, dice.choice(WORDS))
        rows.append(cells if i % 11 else (i // 3, None, None, None, None, None))
    return rows


ROWS = rows_at_random()


@pytest.fixture(scope="module", params=list(COLUMNS))
def table(request):
    """The rows on each engine."""
    if request.param == "spark":
        connection = request.getfixturevalue("spark")
        connection._session.createDataFrame(ROWS, COLUMNS["spark"]).createOrReplaceTempView("derived")
        return connection.table("derived")
    connection = request.getfixturevalue("postgres") if request.param == "postgres" else ibis.duckdb.connect()
    mark = "%s" if request.param == "postgres" else "?"
    with connection.con.cursor() as cursor:
        cursor.execute(f"create table derived ({COLUMNS[request.param]})")
        cursor.executemany(f"insert into derived values ({', '.join([mark] * len(NAMES))})", ROWS)
    if request.param == "postgres":
        connection.con.commit()
    return connection.table("derived")


def in_python(name, moment):
    """A part of a date by Python's own calendar."""
    if moment is None:
        return None
    if name == "week":
        return moment.isocalendar().week
    if name == "quarter":
        return (moment.month + 2) // 3
    return moment.isoweekday() if name == "isoweekday" else getattr(moment, name)


def test_parts_of_dates_are_those_of_the_calendar(table):
    """Of days, of times without a zone, and of instants in UTC, from year 1 to year 9999."""
    asked = [f"{part}({column})" for part in PARTS for column in ("day", "at", "instant")]
    asked = [text for text in asked if text not in ("hour(day)", "minute(day)")]
    with knowing(table):
        made = derived_table(table, asked, (), frozenset())
    names = {f"b{i}": made.table[text] for i, text in enumerate(asked)}
    found = Engine(table).rows(made.table.select(made.table.who, made.table.at, **names))
    whole = Counter((row[0], row[2]) for row in ROWS)
    assert Counter((row[0], row[1]) for row in found) == whole
    for row in found:
        for text, value in zip(asked, row[2:], strict=True):
            assert value == in_python(text.partition("(")[0], row[1]), (text, row[1])
    for text in asked:
        known = made.values.get(text)
        assert known is None or {row[2 + asked.index(text)] for row in found} - {None} <= set(known), text


def meant(pattern):
    """What a pattern of LIKE means, as a regular expression; written without a look at how it is read."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    return re.compile("".join({"%": ".*", "_": "."}.get(p, re.escape(p[-1])) for p in parts), re.DOTALL)


def test_like_means_the_same_on_every_engine(table):
    """Wildcards, escapes and letters that other engines take for escapes; over line ends and letters of many bytes."""
    texts = [p.replace("'", "''") for p in PATTERNS]
    with knowing(table):
        rules = {f"b{i}": condition(table, f"word like '{text}'") for i, text in enumerate(texts)}
        rules |= {f"c{i}": condition(table, lambda t, p=p: t.word.like(p)) for i, p in enumerate(PATTERNS)}
    for word, *found in Engine(table).rows(table.select(table.word, **rules)):
        expected = [None if word is None else meant(p).fullmatch(word) is not None for p in PATTERNS]
        assert found == 2 * expected, word


@pytest.mark.parametrize("pattern", ["a\\b", "\\", "a\\", "%\\x", "x" * 2000])
def test_a_pattern_that_engines_read_differently_is_refused(pattern):
    curator = Curator(pa.table({"word": ["a"]}), None)
    for where in (f"word like '{pattern}'", ibis._.word.like(pattern)):
        with pytest.raises(ValueError, match=r"where must have a (backslash in a )?pattern of LIKE"):
            curator.plan(ask.count(), psi=1.0, where=where)


def bins(x):
    """cut(x, 0, 15, 60) in Python."""
    if x is None or x != x:
        return None
    return "(-inf, 0)" if x < 0 else "[0, 15)" if x < 15 else "[15, 60)" if x < 60 else "[60, inf)"


ASKED = {
    "month(at)": lambda row: row[2] and row[2].month,
    "isoweekday(instant)": lambda row: row[3] and row[3].isoweekday(),
    "cut(x, 0, 15, 60)": lambda row: bins(row[4]),
    "left(word, 2) as start": lambda row: None if row[5] is None else row[5][:2],
    "case when x < 15 then 1 when day is null then 2 else 3 end as size":
        lambda row: 2 if row[1] is None else 1 if row[4] is not None and row[4] < 15 else 3,
}  # fmt: skip


@pytest.mark.parametrize("text", list(ASKED))
def test_derived_groups_have_the_totals_of_a_column_that_holds_them(table, text):
    """Integers, to the last unit, beside a table whose column Python made: what a unit adds is bounded alike."""
    made = [ASKED[text](row) for row in ROWS]
    groups = [*sorted(set(made) - {None}), None]
    name = text.rpartition(" as ")[2]
    kind = pa.string() if isinstance(groups[0], str) else pa.int64()
    plain = {
        "who": [row[0] for row in ROWS], "x": pa.array([row[4] for row in ROWS], pa.float64()),
        name: pa.array(made, kind),
    }  # fmt: skip
    found = []
    for source, by in ((table, text), (pa.table(plain), name)):
        curator = Curator(source, "who")
        asked = curator._question([ask.count(), ask.mean("x", -1, 60)], by, groups, "x is not null", 1.0, 1.5, 0.95)
        exact = _exact(asked, curator._engine, asked.groups, asked.fixed())
        found.append([exact[a].totals.tolist() for a in asked.asks])
    assert found[0] == found[1]


def test_groups_that_the_definition_says_may_be_left_out(table):
    """Twelve months appear whatever the rows hold; others are combined with what is given."""
    curator = Curator(table, "who")
    terms = {"psi": 1e9, "contribution": 9}
    months = curator.release(ask.count(), by="month(at)", **terms)
    truth = Counter(row[2].month for row in ROWS if row[2])
    assert [(row["month(at)"], round(row["value"])) for row in months] == [(m, truth[m]) for m in range(1, 13)]
    empty = curator.release(ask.count(), by="month(at)", where="x > 1e305", **terms)
    assert [row["month(at)"] for row in empty] == list(range(1, 13))
    both = curator.release(ask.count(), by=["word", "quarter(at) as q"], groups=["a", "it's"], **terms)
    pairs = Counter((row[5], (row[2].month + 2) // 3) for row in ROWS if row[2])
    assert [((row["word"], row["q"]), round(row["value"])) for row in both] == [
        ((word, q), pairs[word, q]) for word in ("a", "it's") for q in (1, 2, 3, 4)
    ]
    some = curator.release(ask.count(), by=["isoweekday(day)", "word"], groups={"word": ["a"]}, **terms)
    assert [row["isoweekday(day)"] for row in some] == list(range(1, 8))
    chosen = curator.release(ask.units(), by="month(at)", groups=PrivateGroups(1e-9, 12), psi=1e3)
    assert {row["month(at)"] for row in chosen} <= {*range(1, 13), None}
    with pytest.raises(ValueError, match="groups must be given"):
        curator.plan(ask.count(), by="year(at)", psi=1.0)


def test_a_derived_number_can_be_averaged_and_a_cube_can_have_derived_columns(table):
    curator = Curator(table, None)
    hours = [row[2].hour for row in ROWS if row[2]]
    assert curator.release(ask.mean("hour(at)", 0, 23), psi=1e9).value("mean of hour(at)") == pytest.approx(
        sum(hours) / len(hours), abs=1e-3
    )
    cube = curator.cube({"month(at)": None, "word": ["a", "ab"]}, ask.up_to(1), psi=1e3)
    truth = Counter(row[2].month for row in ROWS if row[2] and row[5] in ("a", "ab"))
    assert sum(truth.values()) > 0
    assert [round(row["value"]) for row in cube.table("word")] == [
        sum(row[5] == word and row[2] is not None for row in ROWS) for word in ("a", "ab")
    ]


def test_instants_of_a_connection_in_another_zone_are_refused_by_name(table):
    """The engines know zones by different tables, and one of them would shift the hours of all rows."""
    backend = table.get_backend()
    change = {
        "duckdb": lambda zone: backend.con.execute(f"set timezone = '{zone}'"),
        "postgres": lambda zone: backend.raw_sql(f"set timezone = '{zone}'").close(),
        "pyspark": lambda zone: backend._session.conf.set("spark.sql.session.timeZone", zone),
    }[backend.name]
    change("Europe/Berlin")
    try:
        for question in (
            {"by": "hour(instant)"},
            {"where": "month(instant) = 3"},
            {"where": ibis._.instant.hour() == 3},
        ):
            with pytest.raises(ValueError, match=r"must read parts of instants in UTC, got .*'Europe/Berlin'"):
                Curator(table, "who").plan(ask.count(), psi=1.0, **question)
        assert Curator(table, "who").plan(ask.count(), by="hour(at)", psi=1.0)
    finally:
        change("UTC")


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("month(at) as who", "name that no other has, got 'who'"),
        (["month(at) as m", "month(day) as m"], "name that no other has, got 'm'"),
        ("case when x < 1 then 'a rather long name' else 'another rather long name' end", "at most 63 letters"),
        ("sqrt(x)", "functions that fail on no row"),
        ("month(word)", "must call month"),
        ("left(word, 0)", "must call left"),
        ("left(word)", r"must call left as left\(text, 2\)"),
        ("cut(x, 2, 1)", "increasing order"),
        ("month(at, 'Europe/Berlin')", "must call month"),
        ("lower(nothing)", "must name a column"),
        ("case when x < 1 then word else 'a' end as y", "constants after THEN"),
        ("case when x < 1 then 1 else 'a' end as y", "constants of one kind"),
        ("hour(day)", "must call hour"),
        (ibis._.x.mean(), "one row at a time|must look at a column"),
        (ibis._.x + 1, "could fail on some row"),
    ],
    ids=str,
)
def test_what_cannot_be_derived_is_refused_before_a_row_is_read(by, words):
    rows = {
        "who": [1],
        "x": [1.0],
        "word": ["a"],
        "at": [datetime.datetime(2026, 1, 1)],
        "day": [datetime.date(2026, 1, 1)],
    }
    with pytest.raises((ValueError, TypeError), match=words):
        Curator(pa.table(rows), "who").plan(ask.count(), by=by, psi=1.0)


def test_columns_of_a_csv_file_are_read_as_what_a_function_takes(tmp_path):
    lines = (
        ["who,at,x,word"] + [f"{i},2013-{1 + i % 12:02d}-05T10:00:00Z,{i},w{i}" for i in range(48)] + ["99,soon,n/a,w"]
    )
    (tmp_path / "v.csv").write_text("\n".join(lines) + "\n")
    curator = Curator(tmp_path / "v.csv", "who")
    months = curator.release(ask.count(), by="month(at)", where="x between 0 and 23", psi=1e9)
    assert [round(row["value"]) for row in months] == [2] * 12
    cut = curator.release(ask.count(), by="cut(x, 24)", psi=1e9)
    assert [(row["cut(x, 24)"], round(row["value"])) for row in cut] == [("(-inf, 24)", 24), ("[24, inf)", 24)]
    assert round(curator.release(ask.count(), where="at is null or hour(at) = 10", psi=1e9).value("count")) == 48
    assert round(curator.release(ask.count(), where="word like 'w_' and x in (1, 2, 40)", psi=1e9).value("count")) == 2
    for where in ("x > who", "x in (1, 'a')", "x between 1 and b", "x"):
        with pytest.raises(ValueError, match=r"^where must "):
            curator.plan(ask.count(), where=where, psi=1.0)


def test_long_conditions_are_read_in_time_that_grows_with_their_length():
    """Many parts make no deep tree, many brackets are refused, and no text is read twice from its middle."""
    table = open_table(pa.table({"n": [1], "s": ["a"]}))
    long = " and ".join(["n < 5"] * 1000)
    with knowing(table):
        assert Engine(table).rows(table.filter(condition(table, long)).select("n")) == [(1,)]
        assert Engine(table).rows(table.filter(condition(table, f"n in ({','.join(map(str, range(2000)))})")))
        for text in (
            "(" * 9_000,
            "not " * 2_000,
            "n in (" * 1_000,
            "s = '" + "''" * 4_000,
            "case when " * 900,
            "n = " * 2_000,
        ):
            with pytest.raises(ValueError, match=r"^where must "):
                condition(table, text)
