"""Conditions: none that is accepted fails on any row, and those that people write select the rows they mean."""

import datetime
import random
from decimal import Decimal
from fractions import Fraction

import ibis
import pyarrow as pa
import pytest

from psidp import Curator, ask
from psidp.curator.engine import Engine, open_table
from psidp.curator.filters import condition
from psidp.errors import EngineError
from reference.typed_tables import LITERALS, accepted, drawn, failing, knowing, on_duckdb, on_postgres, on_spark

PLACES = {"duckdb": on_duckdb, "postgres": on_postgres, "spark": on_spark}
DRAWS = {"duckdb": 12_000, "postgres": 12_000, "spark": 2500}


@pytest.fixture(scope="module", params=list(PLACES))
def typed(request):
    """A table of every type of an engine, bare and full of extreme values."""
    made = PLACES[request.param]
    return request.param, *(made() if request.param == "duckdb" else made(request.getfixturevalue(request.param)))


def test_no_condition_that_is_accepted_fails_on_any_row(typed):
    """On extreme values of every type, with constants as odd as they come: a failure would be a free, exact answer."""
    engine, bare, full = typed
    dice, conditions = random.Random(2026), {}
    with knowing(full):
        for _ in range(DRAWS[engine]):
            name, where = drawn(dice, full.columns)
            rule = accepted(full, where)
            if rule is not None:
                conditions[name] = rule
    assert len(conditions) > DRAWS[engine] / 12
    items = list(conditions.items())
    for start in range(0, len(items), 100):
        assert failing(bare, full, dict(items[start : start + 100])) == {}


@pytest.mark.parametrize(
    "where",
    [
        ibis._.id == "x",
        ibis._.id < "00000000-0000-0000-0000-00000000000z",
        ibis._.clock < datetime.time(1),
        "clock < 25:00",
        ibis._.doc == "{",
        "doc = {",
        ibis._.doc.identical_to(2**53),
        ibis._.raw == b"\xff",
        ibis._.span > datetime.timedelta(days=1),
        "span > 1 day",
        "bits = 2",
        "wide = x",
        "broad = -1",
        ibis._.seconds == ibis._.ns,
        ibis._.day > ibis._.seconds,
        ibis._.seconds.nullif(datetime.datetime(2026, 1, 1)).isnull(),
        lambda t: ibis.cases((t.wide > 1, t.wide), else_=0) > 1,
        ibis._.seconds.second() == 1,
        ibis._.day.truncate("M") == "2026-01-01",
        "wide + 1 > 2",
        "hour(day) = 3",
        "month(wide) = 3",
        "left(raw, 2) = 'a'",
        "raw like 'a%'",
        "cut(raw, 1, 2) = 'x'",
        "cut(wide, 2, 1) = 'x'",
        "case when wide > 1 then wide else 0 end = 1",
        "case when wide > 1 then 'a' else 0 end = 1",
        "wide between 1 and x",
        "wide in (1, 'x')",
        "wide = null",
        "wide is 3",
        "wide like 5",
        "nothing(wide) = 1",
        "(" * 60 + "wide = 1" + ")" * 60,
        "not " * 60 + "wide = 1",
        ibis._.wide.cast("int8") == 1,
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_what_is_not_listed_is_refused_before_a_row_is_read(where):
    """By schema and form. Of these, JSON against a number and instants of two scales once failed with rows alone."""
    connection = ibis.duckdb.connect()
    connection.raw_sql(
        "create table visits (id uuid, clock time, doc json, raw blob, span interval, bits bit, wide hugeint, "
        "broad uhugeint, seconds timestamp_s, ns timestamp_ns, day date)"
    )
    with pytest.raises((ValueError, TypeError), match=r"^where must "):
        Curator(connection.table("visits"), None).plan(ask.count(), psi=1.0, where=where)


def test_postgresqls_collations_decide_no_failure(postgres):
    """Texts of two collations do not compare, and a blind one cannot be searched: both failed on the first row."""
    with postgres.con.cursor() as cursor:
        cursor.execute("create collation dim (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
        cursor.execute('create table texts (a text collate "C", b text collate "en-x-icu", c text collate dim, d text)')
    postgres.con.commit()
    table = postgres.table("texts")
    for where in (ibis._.a == ibis._.b, ibis._.c.contains("x"), ibis._.c.startswith("x"), ibis._.c == ibis._.a):
        with pytest.raises(ValueError, match="could fail on some row"):
            condition(table, where)
    for where in (ibis._.a == "x", ibis._.c == "x", ibis._.a.contains("x"), "c = x", ibis._.a.lower() == ibis._.a):
        assert Engine(table).rows(table.filter(condition(table, where))) == []


NOON = datetime.datetime(2026, 1, 1, 12)
DAY = datetime.date(2026, 1, 1)
ROWS = [
    (1, -5, 0.5, Decimal("1.25"), "A", DAY, NOON, NOON, True),
    (2, 17, -2.25, Decimal("1.50"), "b", DAY.replace(day=2), NOON.replace(day=2), NOON.replace(day=2), False),
    (3, 18, 1e10, Decimal("99999999.99"), "it's \\ %", DAY.replace(year=1970), NOON.replace(second=1), NOON, None),
    (4, 2**31, float("nan"), Decimal("-0.01"), "", DAY.replace(year=9999), NOON.replace(hour=0), NOON, True),
    (5, None, None, None, None, None, None, None, None),
]
NAMES = ("who", "n", "x", "price", "ward", "day", "moment", "instant", "yes")
MEANT = [
    ("n >= 18", {3, 4}),
    ("n < 17.5", {1, 2}),
    ("n != 17", {1, 3, 4}),
    ("n = 17.5", set()),
    ("n < 99999999999999999999", {1, 2, 3, 4}),
    ("n > -inf", {1, 2, 3, 4}),
    ("x > 0.25", {1, 3, 4}),
    ("x <= -2.25", {2}),
    ("price > 1.25", {2, 3}),
    ("price >= 1.2501", {2, 3}),
    ("price = 1.5", {2}),
    ("ward = A", {1}),
    ("ward = 'it''s'", set()),
    ("ward != A", {2, 3, 4}),
    ("ward = ''", {4}),
    ('ward = "it\'s \\ %"', {3}),
    ("ward >= b", {2, 3}),
    ("day >= 2026-01-02", {2, 4}),
    ("day = 1970-01-01", {3}),
    ("moment > 2026-01-01T12:00", {2, 3}),
    ("moment = 2026-01-01 12:00:01", {3}),
    ("moment < 2026-01-02", {1, 3, 4}),
    ("yes = true", {1, 4}),
    ("yes != TRUE", {2}),
    (ibis._.n.isin([17, 2**31, 2.5, 2**40]), {2, 4}),
    (ibis._.n.notin([17]), {1, 3, 4}),
    (ibis._.n.between(17, 18), {2, 3}),
    (ibis._.n > ibis._.who, {2, 3, 4}),
    (ibis._.x > ibis._.n, {1, 3, 4}),
    (ibis._.price > ibis._.who, {1, 3}),
    (ibis._.x.isnan(), {4}),
    (ibis._.price.isin([Decimal("1.25"), 1.5]), {1, 2}),
    (ibis._.ward.isin(["A", "b", "z"]), {1, 2}),
    (ibis._.ward.lower() == "a", {1}),
    (ibis._.ward.contains("\\"), {3}),
    (ibis._.ward.startswith("it's"), {3}),
    (ibis._.ward.length() == 1, {1, 2}),
    (ibis._.ward.fill_null("?") == "?", {5}),
    (ibis._.ward.isnull(), {5}),
    (ibis._.day.notnull(), {1, 2, 3, 4}),
    (ibis._.day > datetime.datetime(2026, 1, 1, 12), {2, 4}),
    (ibis._.day.between("2026-01-01", "2026-01-31"), {1, 2}),
    (ibis._.day == DAY, {1}),
    (ibis._.moment < NOON, {4}),
    (ibis._.moment >= "2026-01-02", {2}),
    (ibis._.moment.isin([NOON, NOON.replace(day=2)]), {1, 2}),
    (ibis._.instant > NOON, {2}),
    (ibis._.instant == NOON.replace(tzinfo=datetime.UTC), {1, 3, 4}),
    ("instant < 2026-01-02T12:00+00:00", {1, 3, 4}),
    ("instant = 2026-01-01T14:00+02:00", {1, 3, 4}),
    (ibis._.yes, {1, 4}),
    (~ibis._.yes, {2}),
    (ibis._.yes | (ibis._.n == 17), {1, 2, 4}),
    (ibis._.yes & ~(ibis._.n < 0), {4}),
    (ibis._.n.identical_to(None), {5}),
    ((ibis._.n > 17) == ibis._.yes, {2, 4}),
    ("n in (17, 2147483648, 2.5, 1099511627776)", {2, 4}),
    ("n not in (17)", {1, 3, 4}),
    ("n between 17 and 18", {2, 3}),
    ("n not between 17 and 18", {1, 4}),
    ("n is null", {5}),
    ("x is null", {5}),
    (ibis._.x.notnull(), {1, 2, 3, 4}),
    ("n is not null and not n < 0", {2, 3, 4}),
    ("ward in ('A', b, 'z') or day = 1970-01-01", {1, 2, 3}),
    ("not (ward = 'A' or n = 17) and n > 0", {3, 4}),
    ("yes or n = 17", {1, 2, 4}),
    ("yes and not n < 0", {4}),
    ("18 <= n", {3, 4}),
    ("n > who", {2, 3, 4}),
    ('"n" > "who" AND x < 1E11', {2, 3}),
    ("instant between '2026-01-01' and 2026-01-01 14:00:00+02:00", {1, 3, 4}),
    ("day in (2026-01-01, '2026-01-02')", {1, 2}),
    ("lower(ward) = 'a' or length(ward) = 0", {1, 4}),
    ("ward like 'it%'", {3}),
    ("ward like '%\\\\%'", {3}),
    ("ward like '%\\%'", {3}),
    ("ward like '_'", {1, 2}),
    ("ward like ''", {4}),
    ("ward not like '%t_s%'", {1, 2, 4}),
    (ibis._.ward.like("i%\\%"), {3}),
    (ibis._.ward.like(["A", "b%"]), {1, 2}),
    ("month(day) = 1 and year(day) = 2026", {1, 2}),
    ("month(day) = 1 and year(day) = 9999", {4}),
    ("hour(moment) = 12", {1, 2, 3}),
    ("hour(instant) = 12 and day(moment) = 2", {2}),
    ("isoweekday(day) = 5", {2, 4}),
    ("week(moment) = 1 and quarter(moment) = 1 and minute(moment) = 0", {1, 2, 3, 4}),
    ("date(moment) = 2026-01-01 and date(instant) >= 2026-01-01", {1, 3, 4}),
    (ibis._.moment.date() == DAY, {1, 3, 4}),
    (ibis._.day.day_of_week.index() == 4, {2, 4}),
    (ibis._.day.year().isin([9999]), {4}),
    ("left(ward, 2) = 'it'", {3}),
    (ibis._.ward.left(1) == "b", {2}),
    (ibis._.ward[:1] == "A", {1}),
    ("cut(n, 0, 18) = '[0, 18)'", {2}),
    ("cut(x, 0, 1.5) = '[1.5, inf)'", {3}),
    ("cut(x, 0) is null", {4, 5}),
    ("cut(day, 2000-01-01) = '(-inf, 2000-01-01)'", {3}),
    ("case when n < 0 then 'low' when n < 18 then 'mid' else 'high' end in ('low', 'mid')", {1, 2}),
    ("case when yes then 1 when n = 17 then 2.5 end >= 1", {1, 2, 4}),
    (ibis.cases((ibis._.n < 18, "young"), else_="old") == "old", {3, 4, 5}),
    (ibis._.ward.cases(("A", 1), ("b", 2), else_=0) > 0, {1, 2}),
    ((ibis._.n < 18).ifelse(True, False), {1, 2}),
    (["n > 0", [ibis._.x < 1e11, ["ward != b"]]], {3}),
    ([[], "n = 17", []], {2}),
]
DECLARED = {
    "postgres": "who bigint, n bigint, x double precision, price numeric(10, 2), ward text, day date, "
    "moment timestamp, instant timestamptz, yes boolean",
    "spark": "who bigint, n bigint, x double, price decimal(10, 2), ward string, day date, moment timestamp_ntz, "
    "instant timestamp, yes boolean",
    "duckdb": "who bigint, n bigint, x double, price decimal(10, 2), ward varchar, day date, moment timestamp, "
    "instant timestamptz, yes boolean",
}


def ordinary(engine, request):
    """The rows above on an engine."""
    rows = [tuple(v.replace(tzinfo=datetime.UTC) if i == 7 and v else v for i, v in enumerate(row)) for row in ROWS]
    if engine == "spark":
        connection = request.getfixturevalue("spark")
        connection._session.createDataFrame(rows, DECLARED["spark"]).createOrReplaceTempView("ordinary")
        return connection.table("ordinary")
    connection = request.getfixturevalue("postgres") if engine == "postgres" else ibis.duckdb.connect()
    mark = "%s" if engine == "postgres" else "?"
    with connection.con.cursor() as cursor:
        cursor.execute(f"create table ordinary ({DECLARED[engine]})")
        cursor.executemany(f"insert into ordinary values ({', '.join([mark] * len(NAMES))})", rows)
    if engine == "postgres":
        connection.con.commit()
    return connection.table("ordinary")


@pytest.mark.parametrize("engine", list(DECLARED))
def test_what_people_write_selects_the_rows_they_mean(engine, request):
    table = ordinary(engine, request)
    with knowing(table):
        rules = [condition(table, where) for where, _ in MEANT]
    made = table.select(table.who, **{f"b{i}": rule for i, rule in enumerate(rules)})
    found = Engine(table).rows(made)
    for i, (where, meant) in enumerate(MEANT):
        assert {row[0] for row in found if row[i + 1]} == meant, where
    left = Engine(table).rows(table.filter(rules[-2]).select("who"))
    assert [row[0] for row in left] == [3]


def test_a_constant_between_two_values_compares_as_numbers_do():
    """In exact fractions: n < 1.5 takes 1 and leaves 2, and 300 is above every number of 8 bits."""
    whole = [-128, -1, 0, 1, 2, 127]
    fine = [Decimal(text) for text in ("-999.99", "-0.01", "0.00", "1.00", "1.01", "999.99")]
    seconds = [datetime.datetime(2026, 1, 1, 0, 0, s) for s in (0, 1, 2)] + [datetime.datetime(1969, 12, 31)] * 3
    columns = {"n": (whole, pa.int8()), "price": (fine, pa.decimal128(5, 2)), "at": (seconds, pa.timestamp("s"))}
    table = open_table(pa.table({name: pa.array(*column) for name, column in columns.items()}))
    texts = ("-128.5", "-1", "-0.001", "0.5", "1.005", "1.01", "127", "127.2", "300", "-1e30", "999.995", "1e-30")
    moments = ("2026-01-01 00:00:00.5", "2026-01-01 00:00:01", "1969-12-30T23:59:59.999999", "9999-01-01", "0001-01-01")
    tests = {
        "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
        "=": lambda a, b: a == b, "!=": lambda a, b: a != b,
    }  # fmt: skip
    asked = [(n, o, w, Fraction(w)) for n in ("n", "price") for o in tests for w in texts]
    asked += [("at", o, w, datetime.datetime.fromisoformat(w)) for o in tests for w in moments]
    with knowing(table):
        rules = {f"b{i}": condition(table, f"{name} {o} {word}") for i, (name, o, word, _) in enumerate(asked)}
    found = Engine(table).rows(table.select(**rules))
    for i, (name, operator, word, meant) in enumerate(asked):
        values = [Fraction(v) if isinstance(v, Decimal) else v for v in columns[name][0]]
        assert [row[i] for row in found] == [tests[operator](v, meant) for v in values], (name, operator, word)


def test_a_condition_may_be_any_list_and_hold_any_number():
    """[[]] asks for nothing, and 2^64 is a number that no row of 64 bits reaches."""
    table = pa.table({"who": range(9), "n": pa.array(range(9), pa.uint64())})
    curator = Curator(table, "who")
    for where in ([[]], [], [[], ()], "n < 18446744073709551616", ["n <= 18446744073709551615"]):
        assert curator.release(ask.count(), psi=1e9, where=where).value("count") == pytest.approx(9.0, abs=1e-3)
    for where in (ibis._.n.isin([2**64]), [ibis._.n == 2**64], [2**64], 7, b"n = 1", [None]):
        with pytest.raises((ValueError, TypeError), match=r"^where must "):
            curator.release(ask.count(), psi=1.0, where=where)
    for keys in ([2**64 - 1], [2**64 - 2, 2**64 - 1]):
        assert curator.plan(ask.count(), by="n", groups=keys, psi=1.0)
        assert len(curator.release(ask.count(), by="n", groups=keys, psi=1.0).rows) == len(keys)
    with pytest.raises(ValueError, match="must fit into uint64"):
        curator.release(ask.count(), by="n", groups=[1, 2**64], psi=1.0)


def test_either_or_holds_inside_another_and_is_unknown_where_one_side_is():
    """As Ibis writes it, DuckDB cannot read one inside another."""
    cases = [(a, b, c) for a in (True, False, None) for b in (True, False, None) for c in (True, False, None)]
    table = pa.table({name: [case[i] for case in cases] for i, name in enumerate("abc")})
    rule = (ibis._.a ^ ibis._.b.isnull()) ^ (ibis._.c ^ ibis._.b)
    found = Curator(table, None).release(ask.count(), where=rule, psi=1e6).rows[0][1].value
    assert round(found) == sum(a ^ (b is None) ^ c ^ b for a, b, c in cases if None not in (a, b, c))


def test_text_is_split_in_one_pass():
    """Nine thousand blanks took hours once: each was tried as the end of the name."""
    table = open_table(pa.table({"n": [1], "a > b": [2], 'c"d': [3], '"e"': [4]}))
    for text in (
        "n" + 9_000 * " ",
        "n" + 9_000 * " " + "x",
        9_000 * "<",
        "n >" + 9_000 * " ",
        20_000 * "n",
        '"' * 9_000,
    ):
        with pytest.raises(ValueError, match=r"^where must "):
            condition(table, text)
    for text in ('"a > b" > 1', 'c"d = 3', '"n" = 1', "n" + 4_000 * " " + ">=" + 4_000 * " " + "1", '"c"d" = 3'):
        assert Engine(table).rows(table.filter(condition(table, text)).select("n")) == [(1,)]


def test_an_error_of_the_engine_is_reachable_from_nowhere(tmp_path):
    """Neither by its sentence nor as cause, context or local name of a frame: it quotes a row."""
    rows = open_table(pa.table({"who": [1], "note": ["Bob, HIV positive"]}))
    curator = Curator(rows.mutate(cost=rows.note.cast("int64")), "who")
    path = tmp_path / "visits.parquet"
    path.write_text("Bob, HIV positive")
    attempts = [
        lambda: curator.release(ask.sum("cost", 0, 1), psi=1.0),
        lambda: Curator(path, "who"),
        lambda: Curator("visits", "who", engine="postgresql://ann:Bob@127.0.0.1:1/nowhere"),
    ]
    for attempt in attempts:
        with pytest.raises((EngineError, ValueError)) as refusal:
            attempt()
        error = refusal.value
        assert error.__context__ is None
        assert error.__cause__ is None
        frame = error.__traceback__
        while frame is not None:
            held = [value for value in frame.tb_frame.f_locals.values() if isinstance(value, BaseException)]
            assert all(value is error for value in held)
            frame = frame.tb_next


def test_a_constant_that_no_engine_holds_is_refused(typed):
    """NUL and halves of letters, numbers that are none: refused by name on every engine."""
    _, _, full = typed
    texts = [name for name in full.columns if full[name].type().is_string()]
    with knowing(full):
        for literal in (literal for literal in LITERALS if literal in ("\0", "\ud800")):
            assert accepted(full, lambda t, literal=literal: t[texts[0]] == literal) is None
        fractions = [name for name in full.columns if full[name].type().is_floating()]
        assert accepted(full, f"{fractions[0]} > nan") is None
        assert accepted(full, f"{fractions[0]} > inf") is not None
