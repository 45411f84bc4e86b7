"""Conditions: none that is accepted fails on any row, and those that people write select the rows they mean."""

import datetime
import itertools
import random
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest

from psidp import Curator, ask
from psidp.tables.conditions import Condition
from psidp.tables.sources import open_source
from reference.conditions_at_random import ODD_COLUMNS, SIGNS, exact, failing, meant, odd_rows, written
from reference.typed_columns import on_duckdb, on_postgres, on_spark, sources

PLACES = {"duckdb": on_duckdb, "postgres": on_postgres, "spark": on_spark}
DRAWS = {"duckdb": 6000, "postgres": 6000, "spark": 1200}
NOON = datetime.datetime(2026, 1, 1, 12)
DAY = datetime.date(2026, 1, 1)


@pytest.fixture(scope="module", params=list(PLACES))
def typed(request):
    """A table of every type of an engine, bare and full of extreme values."""
    given = () if request.param == "duckdb" else (request.getfixturevalue(request.param),)
    return request.param, *sources(PLACES[request.param](*given))


def accepted(source, text):
    """The condition in SQL, or None where it is refused, always as "where must ..."."""
    try:
        return Condition.parse(text, source.schema, source.untyped).sql(source.dialect)
    except (ValueError, TypeError) as error:
        if not str(error).startswith("where must "):
            raise
        return None


def truths(source, conditions):
    """Rows of true, false and None: what each condition says of each row."""
    dialect, schema = source.dialect, source.schema
    columns = [Condition.parse(text, schema, source.untyped).sql(dialect) for text in conditions]
    return source.engine.rows(f"SELECT {', '.join(columns)} FROM {source.text} AS source")


def refusal(source, text):
    with pytest.raises((ValueError, TypeError), match=r"^where must ") as refused:
        Condition.parse(text, source.schema, source.untyped)
    return str(refused.value)


def test_no_condition_that_is_accepted_fails_on_any_row(typed):
    """On extreme values of every type, with constants as odd as they come: a failure would be a free, exact answer."""
    engine, bare, full = typed
    dice = random.Random(2026)
    texts = dict.fromkeys(written(dice, list(full.schema)) for _ in range(DRAWS[engine]))
    conditions = {text: sql for text in texts if (sql := accepted(full, text))}
    assert len(conditions) > DRAWS[engine] / 12
    items = list(conditions.items())
    for start in range(0, len(items), 100):
        assert failing(bare, full, dict(items[start : start + 100])) == {}


def test_a_constant_that_no_engine_holds_is_refused(typed):
    _, _, full = typed
    text = next(name for name, kind in full.schema.items() if kind.text)
    fraction = next(name for name, kind in full.schema.items() if kind.kind == "float")
    assert accepted(full, f"{text} = '\0'") is accepted(full, f"{text} = '\ud800'") is None
    assert accepted(full, f"{fraction} > 'nan'") is None
    assert accepted(full, f"{fraction} > 'inf'") is not None


OTHER_TYPES = (
    "id uuid, clock time, doc json, raw blob, span interval, bits bit, wide hugeint, seconds timestamp_s, "
    "ns timestamp_ns, day date, word varchar, x double, yes boolean"
)


@pytest.mark.parametrize(
    "where",
    [
        "id = 'x'", "id < '00000000-0000-0000-0000-00000000000z'", "clock < '01:00'", "clock < 25:00", "doc = '{'",
        "doc = {", "raw = 'a'", "span > '1 day'", "span > 1 day", "bits = 2", "wide = 'x'", "seconds = ns",
        "day > seconds", "second(seconds) = 1", "date_trunc('month', day) = '2026-01-01'", "wide + 1 > 2", "wide+1 > 2",
        "-wide > 2", "wide * 2 > 1", "word || 'a' = 'b'", "cast(wide as tinyint) = 1", "wide::int = 1", "hour(day) = 3",
        "month(wide) = 3", "left(raw, 2) = 'a'", "raw like 'a%'", "cut(raw, 1, 2) = 'x'", "cut(wide, 2, 1) = 'x'",
        "case when wide > 1 then wide else 0 end = 1", "case when wide > 1 then 'a' else 0 end = 1",
        "case wide when 1 then 2 end = 1", "wide between 1 and 'x'", "wide between symmetric 1 and 2",
        "wide in (1, 'x')", "wide in ()", "wide in (1,)", "wide in (select 1)", "wide in (1, null)", "wide = null",
        "null", "wide is 3", "wide is true", "wide like 5", "word like wide", "word ilike 'a'",
        "word like 'a' escape 'b'", "word similar to 'a'", "nothing(wide) = 1", "count(wide) > 1", "random() > 1",
        "month(day) over () = 1", "wide", "word", "1", "'a'", "", " ", "wide >", "wide = 1 wide", "wide, word",
        "wide = 1; drop table t", "wide = 1 -- and word = 'a'", "wide /* here */ = 1", "wide = 1 # x", "{{ wide }} = 1",
        "wide = 1 as one", "wide as one", "1 < wide < 5", "1 < wide = yes", "wide = 1 = yes", "not = 1", "other = 1",
        "wide between 1 and 2 = yes", "source.wide = 1", 'source."wide" = 1', "wide = 1 or",
        "(wide = 1", "wide = 1)", "wide = @x", "wide = $1", "wide = ?", "wide = :x", "x > inf", "x > -inf", "x > nan",
        "x > infinity",
        "wide = 1_000", "wide = 1,000", "day > 03/01/2025", "day > 2026-02-30", "day > 'soon'", "word = yes",
        "select wide", "true; select 1", "(" * 60 + "wide = 1" + ")" * 60, "not " * 60 + "wide = 1",
    ],
)  # fmt: skip
def test_what_is_not_listed_is_refused_before_a_row_is_read(where):
    """By schema and form. Of these, JSON against a number and instants of two scales once failed with rows alone."""
    refusal(table_of(OTHER_TYPES), where)


@pytest.mark.parametrize("where", [7, b"n = 1", None, [None], lambda t: t.x > 1, ["x > 1", [7]], object()])
def test_only_text_is_a_condition(where):
    assert "SQL text such as" in refusal(table_of("x double"), where)


def table_of(columns, rows=()):
    """A table of DuckDB with these columns."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"create table given ({columns})")
    for row in rows:
        connection.execute(f"insert into given values ({', '.join('?' * len(row))})", row)
    return open_source(connection, name="given")


@pytest.mark.parametrize(
    ("where", "cure"),
    [
        ("ward = A", "write it in single quotes: 'A'"),
        ("ward in ('A', B)", "write it in single quotes: 'B'"),
        ('ward = "A"', "name a column of the table .*single quotes"),
        ("ward = Smith-Jones", "'Smith-Jones'"),
        ("n > inf", "write it in single quotes: 'inf'"),
        ("n = null", "IS NULL"),
        ("ward = true", "text in single quotes"),
        ("1 < n < 5", "low < age AND age < high, or BETWEEN"),
        ("n > 1,000", "numbers such as 1000.5"),
        ("n > 5%", "got '%'"),
        ("day > 01.03.2025", "dates such as 2026-03-01"),
        ("n + 1 > 2", "arithmetic"),
        ("sqrt(n) > 2", "functions that fail on no row"),
        ("n = 1 -- x", "comments"),
        ("ward like A", "single quotes"),
        ("ward like n", "fixed pattern in quotes"),
    ],
)
def test_a_refusal_says_what_to_write(where, cure):
    source = table_of("n bigint, ward varchar, day date")
    with pytest.raises(ValueError, match=f"^where must .*({cure})"):
        Condition.parse(where, source.schema)


def test_a_word_that_is_no_column_stays_refused_when_a_column_of_its_name_appears_unless_it_means_it():
    """In 0.2 `w = A` compared with the text 'A', until a column A appeared."""
    assert "'A'" in refusal(table_of("w varchar"), "w = A")
    both = table_of("w varchar, A varchar", [("A", "x"), ("x", "x")])
    assert truths(both, ["w = A", "w = 'A'"]) == [(False, True), (True, False)]


COLUMNS = {
    "postgres": "who bigint, n bigint, x double precision, price numeric(10, 2), ward text, day date, "
    "moment timestamp, instant timestamptz, yes boolean",
    "spark": "who bigint, n bigint, x double, price decimal(10, 2), ward string, day date, moment timestamp_ntz, "
    "instant timestamp, yes boolean",
    "duckdb": "who bigint, n bigint, x double, price decimal(10, 2), ward varchar, day date, moment timestamp, "
    "instant timestamptz, yes boolean",
}
ROWS = [
    (1, -5, 0.5, Decimal("1.25"), "A", DAY, NOON, NOON, True),
    (2, 17, -2.25, Decimal("1.50"), "b", DAY.replace(day=2), NOON.replace(day=2), NOON.replace(day=2), False),
    (3, 18, 1e10, Decimal("99999999.99"), "it's \\ %", DAY.replace(year=1970), NOON.replace(second=1), NOON, None),
    (4, 2**31, float("nan"), Decimal("-0.01"), "", DAY.replace(year=9999), NOON.replace(hour=0), NOON, True),
    (5, None, None, None, None, None, None, None, None),
]
MEANT = [
    ("n >= 18", {3, 4}),
    ("n < 17.5", {1, 2}),
    ("n != 17", {1, 3, 4}),
    ("n <> 17", {1, 3, 4}),
    ("n == 17", {2}),
    ("n = 17.5", set()),
    ("n < 99999999999999999999", {1, 2, 3, 4}),
    ("n > '-inf'", {1, 2, 3, 4}),
    ("not n > 99999999999999999999", {1, 2, 3, 4}),
    ("n=-5 or n>=+18", {1, 3, 4}),
    ("x > .25", {1, 3}),
    ("x >= 0.25", {1, 3}),
    ("not x > 0.25", {2, 4}),
    ("x <= -2.25", {2}),
    ("x != 0.5", {2, 3, 4}),
    ("x < 'inf'", {1, 2, 3}),
    ("x between -1e300 and 1e300", {1, 2, 3}),
    ("x not between 0 and 1", {2, 3, 4}),
    ("x in (0.5, 3)", {1}),
    ("x not in (0.5, 3)", {2, 3, 4}),
    ("x = x", {1, 2, 3}),
    ("x != x", {4}),
    ("isnan(x)", {4}),
    ("not isnan(x)", {1, 2, 3}),
    ("x > who", {3}),
    ("not x > who", {1, 2, 4}),
    ("not x != who", set()),
    ("price > 1.25", {2, 3}),
    ("price >= 1.2501", {2, 3}),
    ("price = 1.5", {2}),
    ("price in (1.25, 1.5, 1.255)", {1, 2}),
    ("ward = 'A'", {1}),
    ("ward = 'it''s'", set()),
    ("ward != 'A'", {2, 3, 4}),
    ("ward = ''", {4}),
    ("ward = 'it''s \\ %'", {3}),
    ("ward >= 'b'", {2, 3}),
    ("ward = '?' or ward is null", {5}),
    ("day >= 2026-01-02", {2, 4}),
    ("day >= '2026-01-02'", {2, 4}),
    ("day = 1970-01-01", {3}),
    ("day > 2026-01-01 12:00", {2, 4}),
    ("day between '2026-01-01' and '2026-01-31'", {1, 2}),
    ("moment > 2026-01-01T12:00", {2, 3}),
    ("moment = 2026-01-01 12:00:01", {3}),
    ("moment < 2026-01-02", {1, 3, 4}),
    ("moment in (2026-01-01 12:00, '2026-01-02 12:00:00')", {1, 2}),
    ("yes = true", {1, 4}),
    ("yes != TRUE", {2}),
    ("yes = 'false'", {2}),
    ("yes", {1, 4}),
    ("not yes", {2}),
    ("true and not false and yes", {1, 4}),
    ("n in (17, 2147483648, 2.5, 1099511627776)", {2, 4}),
    ("n not in (17)", {1, 3, 4}),
    ("17 in (n)", {2}),
    ("n in (who, 17)", {2}),
    ("n between 17 and 18", {2, 3}),
    ("n not between 17 and 18", {1, 4}),
    ("n is null", {5}),
    ("x is null", {5}),
    ("x is not null", {1, 2, 3, 4}),
    ("n is not null and not n < 0", {2, 3, 4}),
    ("ward in ('A', 'b', 'z') or day = 1970-01-01", {1, 2, 3}),
    ("not (ward = 'A' or n = 17) and n > 0", {3, 4}),
    ("ward = 'A' or ward = 'b' and n < 0", {1}),
    ("not ward = 'A' and n > 0", {2, 3, 4}),
    ("yes or n = 17", {1, 2, 4}),
    ("yes and not n < 0", {4}),
    ("(n > 17) = yes", {2, 4}),
    ("(n > 17) != yes", {1}),
    ("(n > 17) = false", {1, 2}),
    ("18 <= n", {3, 4}),
    ("n > who", {2, 3, 4}),
    ("price > who", {1, 3}),
    ('"n" > "who" AND x < 1E11', {2, 3}),
    ("instant > 2026-01-01 12:00", {2}),
    ("instant < 2026-01-02T12:00+00:00", {1, 3, 4}),
    ("instant = 2026-01-01T14:00+02:00", {1, 3, 4}),
    ("instant between '2026-01-01' and 2026-01-01 14:00:00+02:00", {1, 3, 4}),
    ("day in (2026-01-01, '2026-01-02')", {1, 2}),
    ("lower(ward) = 'a' or length(ward) = 0", {1, 4}),
    ("upper(trim(ward)) = 'B'", {2}),
    ("length(ward) = 1", {1, 2}),
    ("ward like 'it%'", {3}),
    ("ward like '%\\\\%'", {3}),
    ("ward like '%\\%'", {3}),
    ("ward like '_'", {1, 2}),
    ("ward like ''", {4}),
    ("ward not like '%t_s%'", {1, 2, 4}),
    ("month(day) = 1 and year(day) = 2026", {1, 2}),
    ("month(day) = 1 and year(day) in (9999)", {4}),
    ("hour(moment) = 12", {1, 2, 3}),
    ("hour(instant) = 12 and day(moment) = 2", {2}),
    ("isoweekday(day) = 5", {2, 4}),
    ("week(moment) = 1 and quarter(moment) = 1 and minute(moment) = 0", {1, 2, 3, 4}),
    ("date(moment) = 2026-01-01 and date(instant) >= 2026-01-01", {1, 3, 4}),
    ("left(ward, 2) = 'it'", {3}),
    ("cut(n, 0, 18) = '[0, 18)'", {2}),
    ("cut(x, 0, 1.5) = '[1.5, inf)'", {3}),
    ("cut(x, 0) is null", {4, 5}),
    ("cut(day, 2000-01-01) = '(-inf, 2000-01-01)'", {3}),
    ("case when n < 0 then 'low' when n < 18 then 'mid' else 'high' end in ('low', 'mid')", {1, 2}),
    ("case when yes then 1 when n = 17 then 2.5 end >= 1", {1, 2, 4}),
    ("case when n < 18 then 'young' else 'old' end = 'old'", {3, 4, 5}),
    ("case when n < 18 then true else false end", {1, 2}),
    (["n > 0", ["x < 1e11", ["ward != 'b'"]]], {3}),
    (["n = 17 or n = 18", "ward = 'b' or yes"], {2}),
    ([[], "n = 17", []], {2}),
    ([], {1, 2, 3, 4, 5}),
]


def ordinary(engine, request):
    """The rows above on an engine."""
    rows = [tuple(v.replace(tzinfo=datetime.UTC) if i == 7 and v else v for i, v in enumerate(row)) for row in ROWS]
    if engine == "duckdb":
        return table_of(COLUMNS[engine], rows)
    connection = request.getfixturevalue(engine)
    if engine == "spark":
        connection.createDataFrame(rows, COLUMNS[engine]).createOrReplaceTempView("given")
    else:
        connection.execute(f"create table given ({COLUMNS[engine]})")
        for row in rows:
            connection.execute(f"insert into given values ({', '.join(['%s'] * len(row))})", row)
    return open_source(connection, name="given")


@pytest.mark.parametrize("engine", list(COLUMNS))
def test_what_people_write_selects_the_rows_they_mean(engine, request):
    source = ordinary(engine, request)
    found = truths(source, ["who = 1", *(where for where, _ in MEANT)])
    for i, (where, rows) in enumerate(MEANT):
        assert {who for who, row in enumerate(found, 1) if row[i + 1]} == rows, where


def test_the_text_that_is_stored_reads_as_the_same_condition():
    source = table_of(COLUMNS["duckdb"] + ', "odd ""name""" varchar, "case" bigint')
    more = [
        '"odd ""name""" = \'a\'',
        "odd \"name\" = 'a'",
        "\"case\" > 1 and case when n=1 then 'a' end='a'",
        "n  ==\n1",
    ]
    for where in (*(where for where, _ in MEANT), *more):
        made = Condition.parse(where, source.schema)
        assert Condition.parse(made.text, source.schema) == made
    texts = {Condition.parse(w, source.schema).text for w in ("n=17 AND (x<>1)", 'n == 17 and ( "x" != 1 )')}
    assert texts == {"n = 17 and (x != 1)"}
    assert Condition.parse(["n = 1 or yes", "x > 2"], source.schema).text == "(n = 1 or yes) and x > 2"


def test_a_condition_means_what_python_says_of_odd_values():
    """Exact constants, NaN equal to nothing and in no order, NULL as SQL has it, under NOT, AND, OR."""
    dice = random.Random(7)
    rows = odd_rows(dice, 300)
    source = table_of(ODD_COLUMNS, [tuple(row.values()) for row in rows])
    asked = [meant(dice) for _ in range(600)]
    for start in range(0, len(asked), 100):
        part = asked[start : start + 100]
        found = truths(source, [text for text, _ in part])
        for row, result in zip(rows, found, strict=True):
            for (text, meaning), value in zip(part, result, strict=True):
                assert value is meaning(row), (text, row)


def test_a_constant_between_two_values_compares_as_numbers_do():
    """In exact fractions: n < 1.5 takes 1 and leaves 2, and 300 is above every number of 8 bits."""
    whole = [-128, -1, 0, 1, 2, 127]
    fine = [Decimal(text) for text in ("-999.99", "-0.01", "0.00", "1.00", "1.01", "999.99")]
    seconds = [datetime.datetime(2026, 1, 1, 0, 0, s) for s in (0, 1, 2)] + [datetime.datetime(1969, 12, 31)] * 3
    columns = {"n": (whole, pa.int8()), "price": (fine, pa.decimal128(5, 2)), "at": (seconds, pa.timestamp("s"))}
    source = open_source(pa.table({name: pa.array(*column) for name, column in columns.items()}))
    texts = ("-128.5", "-1", "-0.001", "0.5", "1.005", "1.01", "127", "127.2", "300", "-1e30", "999.995", "1e-30")
    moments = ("2026-01-01 00:00:00.5", "2026-01-01 00:00:01", "1969-12-30T23:59:59.999999", "9999-01-01", "0001-01-01")
    asked = [(n, o, w, Fraction(w)) for n in ("n", "price") for o in SIGNS for w in texts]
    asked += [("at", o, w, datetime.datetime.fromisoformat(w)) for o in SIGNS for w in moments]
    found = truths(source, [f"{name} {o} {word}" for name, o, word, _ in asked])
    for i, (name, sign, word, value) in enumerate(asked):
        values = [exact(cell) for cell in columns[name][0]]
        assert [row[i] for row in found] == [SIGNS[sign](cell, value) for cell in values], (name, sign, word)


def test_numbers_of_any_size_are_compared_exactly():
    """Doubles would take 2^53 + 1 for 2^53, and 2^127 - 1 for 2^127; 0.1 is the double 0.1 for a column of doubles."""
    rows = [(2**53, 2**64 - 1, 2**127 - 1, 0.1, 0.1), (2**53 + 1, 2**63, -(2**127), 0.25, 0.25)]
    source = table_of("n bigint, u ubigint, h hugeint, x double, f float", rows)
    texts = [
        "n = 9007199254740993", "n > 9007199254740992", "u > 9223372036854775808", "u >= 18446744073709551615",
        "u < 18446744073709551616", "h < 170141183460469231731687303715884105727",
        "h >= 170141183460469231731687303715884105727",
        "x = 0.1", "f = 0.25", "f = 0.1", "n = n", "u > n", "h > u", "x = f",
    ]  # fmt: skip
    assert truths(source, texts) == [
        (False, False, True, True, True, False, True, True, False, False, True, True, True, False),
        (True, True, False, False, True, True, False, False, True, False, True, True, False, True),
    ]


def test_a_question_may_have_any_list_of_conditions_and_any_number():
    """[[]] asks for nothing, and 2^64 is a number that no row of 64 bits reaches."""
    curator = Curator(pa.table({"who": range(9), "n": pa.array(range(9), pa.uint64())}), "who")
    for where in ([[]], [], [[], ()], "n < 18446744073709551616", ["n <= 18446744073709551615"]):
        assert curator.ask(ask.count(), where=where).release(psi=1e9).value("count") == pytest.approx(9.0, abs=1e-3)
    for where in ([2**64], 7, b"n = 1", [None]):
        with pytest.raises((ValueError, TypeError), match=r"^where must "):
            curator.ask(ask.count(), where=where)


def test_names_that_are_words_of_other_sql_and_odd_names_are_columns():
    names = ["date", "left", "user", "interval", "order", "timestamp", "current_date", "cost-eur", "a.b", "visit date",
             "a > b", 'c"d', '"e"', "1st", "straße"]  # fmt: skip
    source = open_source(pa.table({name: [i, None] for i, name in enumerate(names, 1)}))
    for i, name in enumerate(names, 1):
        assert truths(source, [f"{name} = {i}"]) == [(True,), (None,)]
        quoted = '"' + name.replace('"', '""') + '"'
        assert truths(source, [f"{quoted} in ({i})", f"not {quoted}={i} and {quoted} is not null"])[0] == (True, False)
    keyword = open_source(pa.table({"case": [1], "true": [2], "not": [3]}))
    for where in ("case = 1", "true = 2", "not = 3"):
        assert "double" in refusal(keyword, where)
    assert truths(keyword, ['"case" = 1 and "true" = 2 and "not" = 3']) == [(True,)]


def test_a_column_called_as_one_of_the_builders_is_read_from_the_source():
    source = open_source(pa.table({"code": [1], "k0": [2], "u": [3], "source": [4]}))
    sql = Condition.parse("code = 1 and k0 = 2 and u = 3 and source = 4", source.schema).sql(source.dialect)
    statement = f"WITH u AS (SELECT 9 AS code, 9 AS k0, 9 AS u) SELECT {sql} FROM {source.text} AS source, u"
    assert source.engine.rows(statement) == [(True,)]


def test_postgresqls_collations_decide_no_failure(postgres):
    """Texts of two collations do not compare, and a blind one cannot be searched: both failed on the first row."""
    postgres.execute("create collation dim (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    postgres.execute('create table texts (a text collate "C", b text collate "en-x-icu", c text collate dim, d text)')
    source = open_source(postgres, name="texts")
    for where in ("a = b", "c like '%x%'", "left(c, 1) = 'x'", "c = a"):
        refusal(source, where)
    for where in ("a = 'x'", "c = 'x'", "a like '%x%'", "lower(a) = a", "d like '%x%'"):
        sql = Condition.parse(where, source.schema).sql(source.dialect)
        assert source.engine.rows(f"SELECT 1 FROM {source.text} AS source WHERE {sql}") == []


def test_text_is_split_in_one_pass():
    """Nine thousand blanks took hours once: each was tried as the end of the name."""
    source = open_source(pa.table({"n": [1], "s": ["a"], "a > b": [2], 'c"d': [3], '"e"': [4]}))
    for text in ("n" + 9_000 * " ", "n" + 9_000 * " " + "x", 9_000 * "<", "n >" + 9_000 * " ", 20_000 * "n",
                 '"' * 9_000, "(" * 9_000, "not " * 2_000, "n in (" * 1_000, "s = '" + "''" * 4_000, "case when " * 900,
                 "n = " * 2_000, "- " * 4_000, "n = " + "-" * 9_000, "'" * 9_001):  # fmt: skip
        refusal(source, text)
    for text in ('"a > b" > 1', 'c"d = 3', '"n" = 1', "n" + 4_000 * " " + ">=" + 4_000 * " " + "1", '"c"d" = 3'):
        assert truths(source, [text]) == [(True,)]


def test_long_conditions_are_read_in_time_that_grows_with_their_length():
    source = open_source(pa.table({"n": [1], "s": ["a"]}))
    assert truths(source, [" and ".join(["n < 5"] * 1000), " or ".join(["n > 5"] * 1000)]) == [(True, False)]
    assert truths(source, [f"n in ({','.join(map(str, range(2000)))})"]) == [(True,)]
    assert truths(source, ["(" * 15 + "n = 1" + ")" * 15, "not " * 15 + "n = 1"]) == [(True, False)]


def test_random_text_is_a_condition_or_refused():
    """Pieces of conditions in any order: each is refused in words, or is SQL that the engine can run."""
    words = """n s x 'a' "n" 1 -2.5 2026-01-01 ( ) , and or not in is null like between case when then else end as true
        = < != month left cut lower -- /* ; :: [ select * + % inf n.s e'a' $$ \\"""
    pieces = words.split()
    source = open_source(pa.table({"n": [1], "s": ["a"], "x": [1.0]}))
    dice, accepted_texts = random.Random(5), []
    for _ in range(20_000):
        text = dice.choice(["", " "]).join(dice.choice(pieces) for _ in range(dice.randrange(1, 9)))
        if accepted(source, text):
            accepted_texts.append(text)
    assert accepted_texts
    for start in range(0, len(accepted_texts), 200):
        truths(source, accepted_texts[start : start + 200])


def test_either_or_is_written_with_brackets():
    """Unknown where one side is."""
    cases = list(itertools.product((True, False, None), repeat=2))
    source = open_source(pa.table({"a": [a for a, _ in cases], "b": [b for _, b in cases]}))
    found = truths(source, ["(a or b) and not (a and b)", "a != b"])
    assert found == [2 * (None if None in case else case[0] ^ case[1],) for case in cases]
