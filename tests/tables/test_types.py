"""Units, groups and numbers of every type: whether an engine fails depends on the schema, never on the rows."""

import datetime
from decimal import Decimal

import pytest

from psidp import Curator, PrivateGroups, ask
from psidp.errors import EngineError
from psidp.tables.sources import open_source
from psidp.tables.sources.public_groups import public_groups
from reference.typed_columns import DUCKDB, LITERALS, POSTGRES, SPARK, on_duckdb, on_postgres, on_spark, sources
from released import released

KINDS = {
    "tinyint": "integer", "bigint": "integer", "uhugeint": "integer", "float": "float", "decimal(5, 2)": "decimal",
    "varchar collate nocase": "text", "enum('good', 'bad')": "text", "timestamp_ns": "timestamp", "timetz": "time",
    "timestamptz": "timestamp", "json": "other", "blob": "binary", "integer[]": "other", "interval": "other",
    "numeric": "decimal", "numeric(10, 2)": "decimal", "char(9)": "text", "name": "text", "public.citext": "text",
    "mood": "text", "natural_number": "other", "money": "other", "double precision": "float", "bytea": "binary",
    "timestamp(0)": "timestamp", "string": "text", "string collate UNICODE": "text", "timestamp_ntz": "timestamp",
    "binary": "binary", "void": "other", "uuid": "uuid", "inet": "inet", "macaddr": "macaddr", "date": "date",
}  # fmt: skip
"""What some types are, whatever engine calls them so."""


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def typed(request):
    """A connection with a table of every type of an engine, bare and full of extreme values; and the types."""
    if request.param == "duckdb":
        return on_duckdb(), DUCKDB
    return on_postgres(request.getfixturevalue("postgres")), POSTGRES


def outcome(work):
    """What comes of it: an answer, or the words of a refusal or failure."""
    try:
        work()
    except (ValueError, TypeError, EngineError) as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    return "answered"


def same(connection, work, unit=None):
    """What comes of it, if it is the same on both tables."""
    first, second = (outcome(lambda n=name: work(Curator(connection, unit, name=n))) for name in ("bare", "everything"))
    assert first == second
    return first


def test_types_come_from_the_schema(typed):
    connection, types = typed
    bare, full = sources(connection)
    assert bare.schema == full.schema
    found = {word: kind.kind for word, kind in zip(types, full.schema.values(), strict=True)}
    assert {word: kind for word, kind in found.items() if word in KINDS} == {
        word: kind for word, kind in KINDS.items() if word in found
    }
    if types is DUCKDB:
        assert full.schema[f"c{list(types).index('hugeint')}"].ends == (-(2**127), 2**127 - 1)
        assert [full.schema[f"c{list(types).index('timestamp') + i}"].digits for i in range(4)] == [6, 0, 3, 9]
    else:
        texts = [full.schema[f"c{i}"] for i, word in enumerate(types) if word.startswith("text")]
        assert [(kind.collation, kind.searchable) for kind in texts] == [
            ("", True), ("C", True), ("en-x-icu", True), ("blind", False),
        ]  # fmt: skip


def test_a_unit_of_any_type_fails_on_no_row(typed):
    connection, types = typed
    names = [f"c{i}" for i in range(len(types))]
    outcomes = [same(connection, lambda c: released(c, ask.count(), ask.units(), psi=1.0), unit) for unit in names]
    assert outcomes.count("answered") > 25


def test_groups_of_any_type_fail_on_no_row(typed):
    connection, types = typed
    keys = PrivateGroups(1e-9, 3)
    outcomes = [
        same(connection, lambda c, by=f"c{i}": released(c, ask.count(), by=by, groups=keys, psi=1.0))
        for i in range(len(types))
    ]
    assert outcomes.count("answered") > 15


def test_a_key_of_any_type_fails_on_no_row(typed):
    """Each constant is a key or refused; DuckDB read 1E-30 as a decimal only once a row came so far."""
    connection, _ = typed
    schema = open_source(connection, name="everything").schema
    whole = next(name for name, kind in schema.items() if kind.whole and kind.bits == 32)
    for by in schema:
        fits = [key for key in LITERALS if key is not None and is_key(schema, by, key)]
        if fits:
            work = lambda c, by=by, keys=fits: released(c, ask.count(), by=by, groups=keys, psi=1.0)  # noqa: E731
            assert same(connection, work, whole if by != whole else None) != "", by


def is_key(schema, by, key):
    """Whether a constant is a key by the column's type."""
    try:
        return bool(public_groups([key], [by], schema))
    except (ValueError, TypeError):
        return False


def test_numbers_of_any_type_fail_on_no_row(typed):
    connection, _ = typed
    schema = open_source(connection, name="everything").schema
    names = [name for name, kind in schema.items() if kind.numeric]
    asks = [
        make(name) for name in names for make in (lambda c: ask.sum(c, -1e3, 1e-3), lambda c: ask.variance(c, 0, 9))
    ]
    bins = [ask.histogram(name, [0, 0.5, 1e10]) for name in names]
    for unit, asked in ((None, asks), ("c2", asks), (None, bins)):
        assert same(connection, lambda c, asked=asked: released(c, *asked, psi=1.0), unit) == "answered"
    assert len(names) > 10


def test_sparks_numbers_units_and_groups_fail_on_no_row(spark):
    session = on_spark(spark)
    asks = [ask.sum(name, -1e3, 1e9) for name in ("c4", "c6", "c8")]  # whole numbers, fractions, decimals
    assert same(session, lambda c: released(c, *asks, psi=1.0), "c18") == "answered"  # bytes
    keys = {"c10": "a", "c14": datetime.date.max, "c9": Decimal("0." + 38 * "9"), "c7": Decimal(0), "c4": -(2**63)}
    work = lambda c: released(c, ask.count(), by=list(keys), groups=[tuple(keys.values())], psi=1.0)  # noqa: E731
    assert same(session, work) == "answered"


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_truth_values_are_ones_and_zeros(engine, request):
    """PostgreSQL has no cast from truth to doubles: a mean of them always failed."""
    if engine == "duckdb":
        connection = on_duckdb()
    else:
        connection = request.getfixturevalue(engine)
        if outcome(lambda: open_source(connection, name="everything")) != "answered":
            {"postgres": on_postgres, "spark": on_spark}[engine](connection)
    name = f"c{list({'duckdb': DUCKDB, 'postgres': POSTGRES, 'spark': SPARK}[engine]).index('boolean')}"
    source = open_source(connection, name="everything")
    column = source.dialect.column(name)
    known = [
        value for (value,) in source.engine.rows(f"SELECT {column} FROM {source.text} AS source") if value is not None
    ]
    curator = Curator(connection, None, name="everything")
    answer = released(curator, ask.sum(name, 0, 1), ask.mean(name, 0, 1), ask.histogram(name, [0, 0.5, 1]))
    values = [row["value"] for row in answer]
    assert values[0] == pytest.approx(sum(known), abs=1e-3)
    assert values[1] == pytest.approx(sum(known) / len(known), abs=1e-3)
    assert [round(value) for value in values[2:]] == [len(known) - sum(known), sum(known)]
    assert len(known) > sum(known) > 0


def test_a_decimal_that_is_no_number_counts_nowhere(postgres):
    """numeric(10, 2) of PostgreSQL has NaN too, which is above every number and was taken for the upper bound."""
    postgres.execute("create table prices as select n as who, 5::numeric(10, 2) as x from generate_series(1, 50) n")
    postgres.execute("insert into prices values (51, 'NaN')")
    curator = Curator(postgres, "who", name="prices")
    answer = [row["value"] for row in released(curator, ask.sum("x", 0, 10), ask.mean("x", 0, 10), psi=1e6)]
    assert answer == [pytest.approx(250, abs=1e-2), pytest.approx(5, abs=1e-2)]
    counted = released(curator, ask.count(), by="x", groups=[Decimal(5)], psi=1e6)
    assert [round(row["value"]) for row in counted] == [50]
