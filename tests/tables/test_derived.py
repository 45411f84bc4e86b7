"""Derived columns: parts of dates, bins, CASE and prefixes have one value for each row, the same on every engine."""

import datetime
import random
import re
from collections import Counter

import pyarrow as pa
import pytest

from psidp import Curator, PrivateGroups, ask
from psidp.tables.conditions import Condition, Derived, derived_columns
from psidp.tables.sources import open_source
from psidp.tables.types import DECLARED

COLUMNS = {
    "duckdb": 'who bigint, person bigint, day date, "at" timestamp, instant timestamptz, x double, word varchar',
    "postgres": "who bigint, person bigint, day date, at timestamp, instant timestamptz, x double precision, word text",
    "spark": "who bigint, person bigint, day date, at timestamp_ntz, instant timestamp, x double, word string",
}
PARTS = ("year", "quarter", "month", "week", "day", "isoweekday", "hour", "minute")
WORDS = [
    "",
    "a",
    "ab",
    "a%b",
    "a_b",
    "a\\b",
    "100%",
    "it's",
    "naïve\n",
    "漢字x",
    "A",
    "!_!",
    None,
    "a" * 50,
    " \t v f ",
]
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
        cells = (i, i // 3, at.date(), at, instant, x, dice.choice(WORDS))
        rows.append(cells if i % 11 else (i, i // 3, None, None, None, None, None))
    return rows


ROWS = rows_at_random()


@pytest.fixture(scope="module", params=list(COLUMNS))
def source(request):
    """The rows on each engine."""
    import duckdb

    connection = duckdb.connect() if request.param == "duckdb" else request.getfixturevalue(request.param)
    if request.param == "spark":
        connection.createDataFrame(ROWS, COLUMNS["spark"]).createOrReplaceTempView("derived")
        return open_source(connection, name="derived")
    connection.execute(f"create table derived ({COLUMNS[request.param]})")
    mark = "?" if request.param == "duckdb" else "%s"
    for row in ROWS:
        connection.execute(f"insert into derived values ({', '.join([mark] * len(row))})", row)
    return open_source(connection, name="derived")


def values(source, texts):
    """What the columns hold, one list for each."""
    made = [Derived.parse(text, source.schema, source.untyped) for text in texts]
    columns = ", ".join(f"{column.sql(source.dialect)} AS d{i}" for i, column in enumerate(made))
    text = f"SELECT who, {columns} FROM {source.text} AS source ORDER BY who"
    return list(zip(*source.engine.rows(text), strict=True))[1:]


def in_python(name, moment):
    """A part of a date by Python's own calendar."""
    if moment is None:
        return None
    if name == "week":
        return moment.isocalendar().week
    if name == "quarter":
        return (moment.month + 2) // 3
    return moment.isoweekday() if name == "isoweekday" else getattr(moment, name)


def test_parts_of_dates_are_those_of_the_calendar(source):
    """Of days, of times without a zone, and of instants in UTC, from year 1 to year 9999."""
    asked = [(part, column) for part in PARTS for column in ("day", "at", "instant")]
    asked = [(part, column) for part, column in asked if column != "day" or part not in ("hour", "minute")]
    texts = [f"{part}({column})" for part, column in asked]
    for (part, _), text, found in zip(asked, texts, values(source, texts), strict=True):
        assert list(found) == [in_python(part, row[3]) for row in ROWS], text
        column = Derived.parse(text, source.schema)
        assert column.type.kind == "integer"
        assert column.values is None or {*found} - {None} <= {*column.values}
    days = values(source, ["date(at)", "date(instant)"])
    assert [list(found) for found in days] == 2 * [[row[2] for row in ROWS]]


def meant(pattern):
    """What a pattern of LIKE means, as a regular expression; written without a look at how it is read."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    return re.compile("".join({"%": ".*", "_": "."}.get(p, re.escape(p[-1])) for p in parts), re.DOTALL)


def test_like_means_the_same_on_every_engine(source):
    """Wildcards, escapes and letters that other engines take for escapes; over line ends and letters of many bytes."""
    texts = ["(word like '" + pattern.replace("'", "''") + "')" for pattern in PATTERNS]
    for pattern, found in zip(PATTERNS, values(source, texts), strict=True):
        assert list(found) == [None if row[6] is None else meant(pattern).fullmatch(row[6]) is not None for row in ROWS]


@pytest.mark.parametrize("pattern", ["a\\b", "\\", "a\\", "%\\x", "x" * 2000])
def test_a_pattern_that_engines_read_differently_is_refused(pattern):
    schema = open_source(pa.table({"word": ["a"]})).schema
    with pytest.raises(ValueError, match=r"where must have a (backslash in a )?pattern of LIKE"):
        Condition.parse(f"word like '{pattern}'", schema)


def bins(x):
    """cut(x, 0, 15, 60) in Python."""
    if x is None or x != x:
        return None
    return "(-inf, 0)" if x < 0 else "[0, 15)" if x < 15 else "[15, 60)" if x < 60 else "[60, inf)"


def of_word(function):
    """A function of the row's word, where it has one."""
    return lambda row: None if row[6] is None else function(row[6])


def capitals(word):
    """What upper makes of a word under every collation of a database: some know no other letters than ASCII's."""
    return word.encode().upper().decode()


ASKED = {
    "cut(x, 0, 15, 60)": lambda row: bins(row[5]),
    "cut(day, 2000-01-01)": lambda row: (
        row[2] and ("(-inf, 2000-01-01)" if row[2].year < 2000 else "[2000-01-01, inf)")
    ),
    "left(word, 2) as start": of_word(lambda word: word[:2]),
    "lower(word)": of_word(lambda word: word.encode().lower().decode()),
    "upper(left(word, 2))": of_word(lambda word: capitals(word[:2])),
    "trim(word)": of_word(lambda word: word.strip(" \t\n\r\v\f")),
    "length(word)": of_word(len),
    "length(trim(left(word, 3)))": of_word(lambda word: len(word[:3].strip())),
    "case when x < 15 then 1 when day is null then 2 else 3 end as size":
        lambda row: 2 if row[2] is None else 1 if row[5] is not None and row[5] < 15 else 3,
    "case when x > 15 then 1.5 when not x > 15 then -2 end":
        lambda row: None if row[5] is None else 1.5 if row[5] > 15 else -2.0,
    "case when word like 'a%' then 'it''s' else null end":
        lambda row: "it's" if row[6] is not None and row[6].startswith("a") else None,
    "(x >= 0 and word is not null) as known":
        lambda row: False if row[6] is None else None if row[5] is None else row[5] >= 0,
}  # fmt: skip


def test_derived_columns_are_what_python_makes_of_each_row(source):
    for text, found in zip(ASKED, values(source, ASKED), strict=True):
        assert list(found) == [ASKED[text](row) for row in ROWS], text


NEVER = 1e9
"""A psi at which noise does not show."""


@pytest.fixture
def curator(source):
    return Curator(source.engine.connection, "person", name="derived")


@pytest.mark.parametrize(
    "text",
    [
        "cut(x, 0, 15, 60)",
        "left(word, 2) as start",
        "case when x < 15 then 1 when day is null then 2 else 3 end as size",
    ],
)
def test_derived_groups_have_the_numbers_of_a_column_that_holds_them(curator, text):
    """Beside a table whose column Python made: what a unit adds is bounded alike."""
    made, name = [ASKED[text](row) for row in ROWS], text.rpartition(" as ")[2]
    groups = [*sorted(set(made) - {None}), None]
    kind = pa.string() if isinstance(groups[0], str) else pa.int64()
    plain = {
        "person": [row[1] for row in ROWS], "x": pa.array([row[5] for row in ROWS], pa.float64()),
        name: pa.array(made, kind),
    }  # fmt: skip
    found = []
    for asked, by in ((curator, text), (Curator(pa.table(plain), "person"), name)):
        question = asked.ask(
            ask.count(), ask.sum("x", -1, 60), by=by, groups=groups, where="x is not null", contribution=1.5
        )
        found.append([row["value"] for row in question.release(psi=NEVER)])
    assert found[0] == pytest.approx(found[1], abs=1e-5)


def test_groups_that_the_definition_says_may_be_left_out(curator):
    """Twelve months appear whatever the rows hold; others are combined with what is given."""
    terms = {"contribution": 9}
    months = curator.ask(ask.count(), by="month(at)", **terms).release(psi=NEVER)
    truth = Counter(row[3].month for row in ROWS if row[3])
    assert [(row["month(at)"], round(row["value"])) for row in months] == [(m, truth[m]) for m in range(1, 13)]
    empty = curator.ask(ask.count(), by="month(at)", where="x > 1e305", **terms).release(psi=NEVER)
    assert [row["month(at)"] for row in empty] == list(range(1, 13))
    both = curator.ask(ask.count(), by=["word", "quarter(at) as q"], groups=["a", "it's"], **terms).release(psi=NEVER)
    pairs = Counter((row[6], (row[3].month + 2) // 3) for row in ROWS if row[3])
    assert [((row["word"], row["q"]), round(row["value"])) for row in both] == [
        ((word, q), pairs[word, q]) for word in ("a", "it's") for q in (1, 2, 3, 4)
    ]
    some = curator.ask(ask.count(), by=["isoweekday(day)", "word"], groups={"word": ["a"]}, **terms).release(psi=NEVER)
    assert [row["isoweekday(day)"] for row in some] == list(range(1, 8))
    chosen = curator.ask(ask.units(), by="month(at)", groups=PrivateGroups(1e-9, 12)).release(psi=1e3)
    assert {row["month(at)"] for row in chosen} <= {*range(1, 13), None}
    with pytest.raises(ValueError, match="groups must be given"):
        curator.ask(ask.count(), by="year(at)")


def test_a_derived_number_can_be_averaged_and_a_cube_can_have_derived_columns(source):
    curator = Curator(source.engine.connection, None, name="derived")
    hours = [row[3].hour for row in ROWS if row[3]]
    mean = curator.ask(ask.mean("hour(at)", 0, 23)).release(psi=NEVER)
    assert mean.value("mean of hour(at)") == pytest.approx(sum(hours) / len(hours), abs=1e-3)
    cube = curator.cube({"month(at)": None, "word": ["a", "ab"]}, ask.up_to(1)).release(psi=1e3)
    assert [round(row["value"]) for row in cube.table("word")] == [
        sum(row[6] == word and row[3] is not None for row in ROWS) for word in ("a", "ab")
    ]


def test_the_values_that_a_definition_says_are_known():
    """Others have none: what is in the rows is not public."""
    schema = open_source(pa.table({"at": [datetime.datetime(2026, 1, 1)], "x": [1.0], "word": ["a"]})).schema
    known = {
        "month(at)": tuple(range(1, 13)),
        "isoweekday(at)": tuple(range(1, 8)),
        "hour(at) as h": tuple(range(24)),
        "cut(x, 0, 1.5)": ("(-inf, 0)", "[0, 1.5)", "[1.5, inf)"),
        "case when x < 1 then 'low' when x < 2 then 'mid' else 'low' end as l": ("low", "mid"),
        "case when x < 1 then 1 end": (1, None),
        "case when x < 1 then true else false end as b": (True, False),
        "case when x < 1 then 1.5 else 2 end as f": None,
        "year(at)": None,
        "left(word, 2)": None,
        "date(at)": None,
        "length(word)": None,
        "lower(case when x < 1 then 'A' else 'B' end)": None,
        "(x < 1)": None,
    }
    for text, expected in known.items():
        assert Derived.parse(text, schema).values == expected, text


def test_only_definitions_among_names_become_columns():
    schema = open_source(pa.table({"at": [datetime.datetime(2026, 1, 1)], "a(b)": [1], "word": ["a"]})).schema
    made = derived_columns(["word", "a(b)", "month(at)", "hour(at) as h", "unknown", " month(at)", 7], schema)
    assert {given: column.name for given, column in made.items()} == {
        "month(at)": "month(at)", "hour(at) as h": "h", " month(at)": "month(at)",
    }  # fmt: skip
    assert list(derived_columns(["word = 'a'", "not word is null", "word like 'a%' as a"], schema)) == [
        "word = 'a'", "not word is null", "word like 'a%' as a",
    ]  # fmt: skip
    assert made["hour(at) as h"].text == 'hour(at) as "h"'
    assert Derived.parse('hour(at) as "h"', schema) == made["hour(at) as h"]
    assert derived_columns(["hour( at ) as h"], schema, others=made)
    with pytest.raises(ValueError, match="column must give a derived column a name that no other has, got 'h'"):
        derived_columns(["minute(at) as h"], schema, role="column", others=made)


def test_instants_are_read_in_utc_whatever_the_zone_of_the_connection(source, request):
    """Engines know zones by different tables; UTC needs none."""
    connection = source.engine.connection

    def change(zone):
        if hasattr(connection, "conf"):
            connection.conf.set("spark.sql.session.timeZone", zone)
        else:
            connection.execute(f"set timezone = '{zone}'")

    request.addfinalizer(lambda: change("UTC"))
    change("Pacific/Kiritimati")  # fourteen hours ahead
    found = values(source, ["hour(instant)", "hour(at)"])
    assert [list(column) for column in found] == 2 * [[row[3] and row[3].hour for row in ROWS]]


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("month(at) as who", "name that no other has, got 'who'"),
        ("case when x < 1 then 'a rather long name' else 'another rather long name' end", "at most 63 letters"),
        ("sqrt(x)", "functions that fail on no row"),
        ("random()", "functions that fail on no row"),
        ("sum(x)", "functions that fail on no row"),
        ("month(word)", "must call month"),
        ("month()", "must call month"),
        ("left(word, 0)", "must call left"),
        ("left(word, 1.5)", "must call left"),
        ("left(word, length(word))", "must call left"),
        ("left(word)", r"must call left .*as left\(text, 2\)"),
        ("left('abc', 2)", "must call left"),
        ("cut(x, 2, 1)", "increasing order"),
        ("cut(x, 'a')", "must call cut"),
        ("cut(x)", "must call cut"),
        ("month(at, 'Europe/Berlin')", "must call month"),
        ("lower(nothing)", "must name a column"),
        ("case when x < 1 then word else 'a' end as y", "constants after THEN"),
        ("case when x < 1 then 1 else 'a' end as y", "constants of one kind"),
        ("case when x < 1 then null end", "constants of one kind"),
        ("case when x < 1 then 99999999999999999999 end", "constants of one kind"),
        ("case when x < 1 then 1e301 end", "constants of one kind"),
        ("hour(day)", "must call hour"),
        ("(x + 1)", "[Aa]rithmetic"),
        ("(x) + 1", "[Aa]rithmetic"),
        ("month(at) as m as n", "must be column"),
        ("month(at) m", "single quotes|must be column"),
        ("isnan(word)", "must call isnan"),
    ],
)
def test_what_cannot_be_derived_is_refused_before_a_row_is_read(by, words):
    rows = {
        "who": [1], "x": [1.0], "word": ["a"], "at": [datetime.datetime(2026, 1, 1)],
        "day": [datetime.date(2026, 1, 1)],
    }  # fmt: skip
    with pytest.raises((ValueError, TypeError), match=words):
        Derived.parse(by, open_source(pa.table(rows)).schema)


def test_one_name_for_two_definitions_is_refused():
    schema = open_source(pa.table({"at": [datetime.datetime(2026, 1, 1)], "x": [1.0]})).schema
    with pytest.raises(ValueError, match="by must give a derived column a name that no other has, got 'm'"):
        derived_columns(["month(at) as m", "day(at) as m"], schema)


def test_dates_that_python_does_not_have_have_no_parts():
    """Infinite ones, and years of six digits, which engines read in different ways."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("create table t (who int, d date, a timestamp, i timestamptz, s timestamp_s, n timestamp_ns)")
    far = ["infinity", "-infinity", "5881580-07-10", "0044-03-15 (BC)"]
    for who, day in enumerate(far):
        at = day if "inf" in day else {2: "294247-01-09", 3: day}[who]
        connection.execute("insert into t values (?, ?, ?, ?, ?, NULL)", [who, day, at, at, at])
    source = open_source(connection, name="t")
    texts = [f"{part}({column})" for part in ("year", "month", "date") for column in "dai s".replace(" ", "")]
    assert values(source, [*texts, "year(n)", "date(n)"]) == [(None,) * 4] * (len(texts) + 2)


def test_columns_of_a_csv_file_are_read_as_what_a_function_takes(tmp_path):
    lines = ["who,at,x,word"] + [f"{i},2013-{1 + i % 12:02d}-05T10:00:00Z,{i},w{i}" for i in range(48)]
    (tmp_path / "v.csv").write_text("\n".join([*lines, "99,soon,n/a,w"]) + "\n")
    source = open_source(tmp_path / "v.csv")
    months, cut, length = values(source, ["month(at)", "cut(x, 24)", "length(word)"])
    assert Counter(months) == {**dict.fromkeys(range(1, 13), 4), None: 1}
    assert Counter(cut) == {"(-inf, 24)": 24, "[24, inf)": 24, None: 1}
    assert Counter(length) == {2: 10, 3: 38, 1: 1}
    assert Derived.parse("cut(x, 24)", source.schema, source.untyped).readings == (("x", "float64"),)
    for where, count in (("at is null or hour(at) = 10", 48), ("word like 'w_' and x in (1, 2, 40)", 2)):
        sql = Condition.parse(where, source.schema, source.untyped).sql(source.dialect)
        assert source.engine.rows(f"SELECT count(*) FROM {source.text} AS source WHERE {sql}") == [(count,)]
    for where in ("x > who", "x in (1, 'a')", "x between 1 and 'b'", "x"):
        with pytest.raises(ValueError, match=r"^where must "):
            Condition.parse(where, source.schema, source.untyped)


@pytest.mark.parametrize(("names", "taken"), [(["left(zip, 1) as Zip"], "Zip"), (["a > 1 as h", "a > 2 as H"], "H")])
def test_names_that_only_capitals_tell_apart_are_refused(names, taken):
    schema = {"zip": DECLARED["string"], "a": DECLARED["int64"]}
    with pytest.raises(ValueError, match=f"name that no other has, got {taken!r}"):
        derived_columns(names, schema)


def test_a_date_of_a_date_is_not_written_again():
    schema = {"at": DECLARED["timestamp"]}
    deep = Derived.parse("date(" * 19 + "at" + ")" * 19 + " as d", schema)
    assert deep.value == Derived.parse("date(at)", schema).value
