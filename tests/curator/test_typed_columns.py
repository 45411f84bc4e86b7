"""Units, groups and numbers of every type: whether an engine fails depends on the schema, never on the rows."""

import datetime
from decimal import Decimal

import pytest

from psidp import Curator, PrivateGroups, ask
from psidp.curator.engine import Engine
from psidp.curator.groups import public_groups
from psidp.errors import EngineError
from reference.typed_tables import DUCKDB, LITERALS, POSTGRES, SPARK, on_duckdb, on_postgres, on_spark

NEVER = 1e9


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def typed(request):
    """A table of every type of an engine, bare and full of extreme values."""
    if request.param == "duckdb":
        return on_duckdb()
    return on_postgres(request.getfixturevalue(request.param))


def outcome(work):
    """What comes of it: an answer, or the words of a refusal or failure."""
    try:
        work()
    except (ValueError, TypeError, EngineError) as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    return "answered"


def same(bare, full, work):
    """The outcome, if it is the same on both tables."""
    first, second = outcome(lambda: work(bare)), outcome(lambda: work(full))
    assert first == second
    return first


def test_a_unit_of_any_type_fails_on_no_row(typed):
    bare, full = typed
    outcomes = [
        same(bare, full, lambda table, unit=unit: Curator(table, unit).release(ask.count(), ask.units(), psi=1.0))
        for unit in full.columns
    ]
    assert outcomes.count("answered") > 25


def test_groups_of_any_type_fail_on_no_row(typed):
    bare, full = typed
    keys = PrivateGroups(1e-9, 3)
    outcomes = [
        same(bare, full, lambda table, by=by: Curator(table, None).release(ask.count(), by=by, groups=keys, psi=1.0))
        for by in full.columns
    ]
    assert outcomes.count("answered") > 15


def test_a_key_of_any_type_fails_on_no_row(typed):
    """Each constant is a key or refused; DuckDB read 1E-30 as a decimal only once a row came so far."""
    bare, full = typed
    whole = next(name for name in full.columns if full[name].type().is_int32())
    for by in full.columns:
        fits = [key for key in LITERALS if key is not None and _is_key(full, by, key)]
        if fits:
            work = lambda table, by=by, keys=fits: Curator(table, whole if by != whole else None).release(  # noqa: E731
                ask.count(), by=by, groups=keys, psi=1.0
            )
            same(bare, full, work)


def _is_key(table, by, key):
    """Whether a key is one by the column's type."""
    try:
        return bool(public_groups([key], [by], table.schema()))
    except (ValueError, TypeError):
        return False


def _numbers(table, types):
    """The columns that aggregates take, without those of PostgreSQL that have no cast to doubles: they always fail."""
    kinds = dict(zip(table.columns, types, strict=True))
    return [
        name
        for name, kind in kinds.items()
        if (table[name].type().is_numeric() or table[name].type().is_boolean()) and kind not in ("oid", "money")
    ]


def test_numbers_of_any_type_fail_on_no_row(typed):
    bare, full = typed
    names = _numbers(full, DUCKDB if full.get_backend().name == "duckdb" else POSTGRES)
    asks = [
        make(name) for name in names for make in (lambda c: ask.sum(c, -1e3, 1e-3), lambda c: ask.variance(c, 0, 9))
    ]
    bins = [ask.histogram(name, [0, 0.5, 1e10]) for name in names]
    for unit, asked in ((None, asks), (full.columns[2], asks), (None, bins)):
        work = lambda table, unit=unit, asked=asked: Curator(table, unit).release(*asked, psi=1.0)  # noqa: E731
        assert same(bare, full, work) == "answered"
    assert len(names) > 10


def test_sparks_numbers_units_and_groups_fail_on_no_row(spark):
    bare, full = on_spark(spark)
    asks = [ask.sum(name, -1e3, 1e9) for name in ("c4", "c6", "c8")]  # whole numbers, fractions, decimals
    assert same(bare, full, lambda table: Curator(table, "c18").release(*asks, psi=1.0)) == "answered"  # bytes
    keys = {"c10": "a", "c14": datetime.date.max, "c9": Decimal("0." + 38 * "9"), "c7": Decimal(0), "c4": -(2**63)}
    work = lambda table: Curator(table, None).release(  # noqa: E731
        ask.count(), by=list(keys), groups=[tuple(keys.values())], psi=1.0
    )
    assert same(bare, full, work) == "answered"


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_truth_values_are_ones_and_zeros(engine, request):
    """PostgreSQL has no cast from truth to 16 bits: a mean of them always failed."""
    places = {"duckdb": (on_duckdb, DUCKDB), "postgres": (on_postgres, POSTGRES), "spark": (on_spark, SPARK)}
    made, types = places[engine]
    if engine == "duckdb":
        table = made()[1]
    else:
        connection = request.getfixturevalue(engine)
        table = connection.table("everything") if "everything" in connection.list_tables() else made(connection)[1]
    name = f"c{list(types).index('boolean')}"
    known = [value for (value,) in Engine(table).rows(table.select(name)) if value is not None]
    answer = Curator(table, None).release(
        ask.sum(name, 0, 1), ask.mean(name, 0, 1), ask.histogram(name, [0, 0.5, 1]), psi=NEVER
    )
    values = [row["value"] for row in answer]
    assert values[0] == pytest.approx(sum(known), abs=1e-3)
    assert values[1] == pytest.approx(sum(known) / len(known), abs=1e-3)
    assert [round(value) for value in values[2:]] == [len(known) - sum(known), sum(known)]
    assert len(known) > sum(known) > 0


def test_a_decimal_that_is_no_number_counts_nowhere(postgres):
    """numeric(10, 2) of PostgreSQL has NaN too, which is above every number and was taken for the upper bound."""
    with postgres.con.cursor() as cursor:
        cursor.execute("create table prices as select n as who, 5::numeric(10, 2) as x from generate_series(1, 50) n")
        cursor.execute("insert into prices values (51, 'NaN')")
    postgres.con.commit()
    curator = Curator(postgres.table("prices"), "who")
    answer = [row["value"] for row in curator.release(ask.sum("x", 0, 10), ask.mean("x", 0, 10), psi=1e6)]
    assert answer == [pytest.approx(250, abs=1e-2), pytest.approx(5, abs=1e-2)]
    counted = curator.release(ask.count(), by="x", groups=[Decimal(5)], psi=1e6)
    assert [round(row["value"]) for row in counted] == [50]
