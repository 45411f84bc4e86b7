"""Refusals: each says what to do, looks at schema and parameters alone, draws nothing and spends nothing."""

import builtins
import datetime

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest

from psidp import Curator, PrivateGroups, ask
from psidp.errors import EngineError, MissingExtraError
from psidp.noise import normal_source
from psidp.tables.engines.duckdb import DuckDB
from released import released

ROWS = pa.table(
    {
        "who": [1, 2],
        "ward": ["A", "B"],
        "day": [datetime.date(2026, 1, 1)] * 2,
        "cost": [1.0, 2.0],
        "floor": [1, 2],
        "score": [0.5, 0.5],
        "tags": [["x"], ["y"]],
    }
)


@pytest.fixture
def curator(monkeypatch):
    """A curator whose engine and randomness must not be touched."""

    def refuse(*_):
        raise AssertionError("the refusal came too late")

    monkeypatch.setattr(normal_source, "NormalSource", refuse)
    monkeypatch.setattr(normal_source, "_idle", [])
    monkeypatch.setattr(DuckDB, "rows", refuse)
    monkeypatch.setattr(DuckDB, "columns", refuse)
    return Curator(ROWS, "who")


WARDS = {"by": "ward", "groups": ["A"]}
REFUSED = {
    "missing column": (lambda: [ask.sum("price", 0, 1)], {}, r"column must be a column of the table \(who, ward"),
    "bounds reversed": (lambda: [ask.sum("cost", 5, 0)], {}, "lower < upper, got lower=5, upper=0"),
    "bounds equal": (lambda: [ask.mean("cost", 5, 5)], {}, "lower < upper"),
    "bounds not a number": (lambda: [ask.sum("cost", float("nan"), 1)], {}, "finite numbers"),
    "bounds infinite": (lambda: [ask.sum("cost", 0, float("inf"))], {}, "finite numbers"),
    "text summed": (lambda: [ask.sum("ward", 0, 1)], {}, "must hold numbers"),
    "edges fall": (lambda: [ask.histogram("cost", [3, 2])], {}, "increasing order"),
    "quantile outside": (lambda: [ask.quantiles("cost", [0, 1], at=[1.5])], {}, r"numbers in \(0, 1\)"),
    "quantile whole": (lambda: [ask.quantiles("cost", [0, 1], at=1)], {}, r"numbers in \(0, 1\), got at=\[1\]"),
    "nothing asked": (list, {}, "at least one measure.* --count"),
    "asked without brackets": (lambda: [ask.count], {}, r"a call such as psidp.ask.count\(\), got <function"),
    "asked in words": (lambda: ["count"], {}, r"a call such as psidp.ask.count\(\), got 'count'"),
    "asked twice": (lambda: [ask.count(), ask.count()], {}, "one twice"),
    "psi zero": (lambda: [ask.count()], {"psi": 0.0}, "must be above 0"),
    "psi negative": (lambda: [ask.count()], {"psi": -1.0}, r"must be in \[0, inf\), got psi=-1"),
    "psi nan": (lambda: [ask.count()], {"psi": float("nan")}, "got psi=nan"),
    "level": (lambda: [ask.count()], {"confidence": 1.0}, "confidence"),
    "weight in words": (lambda: [ask.count(weight="most")], {}, "weight"),
    "bounds beyond a float": (lambda: [ask.sum("cost", 0, 10**400)], {}, "must lie in"),
    "bounds in words": (lambda: [ask.sum("cost", "0", "5")], {}, "lower='0', upper='5'"),
    "edges in words": (lambda: [ask.histogram("cost", "0,1")], {}, "finite numbers in increasing order, got 3"),
    "edges too close": (lambda: [ask.histogram("cost", [2**60, 2**60 + 1])], {}, "in increasing order"),
    "weight": (lambda: [ask.count(weight=float("nan"))], {}, "weight"),
    "contribution below a row": (lambda: [ask.count()], {"contribution": 0.5}, r"must be in \[1, 2\^20\]"),
    "contribution in words": (lambda: [ask.count()], {"contribution": "lots"}, r"or \"auto\""),
    "by without keys": (lambda: [ask.count()], {"by": "ward"}, "PrivateGroups.*--groups"),
    "keys without by": (lambda: [ask.count()], {"groups": ["A"]}, "left out"),
    "by a missing column": (lambda: [ask.count()], {"by": "wing", "groups": ["A"]}, "by must be a column"),
    "by twice": (lambda: [ask.count()], {"by": ["ward", "ward"], "groups": [("A", "A")]}, "different columns"),
    "by fractions": (lambda: [ask.count()], {"by": "score", "groups": [0.5]}, "cannot make groups"),
    "by lists": (lambda: [ask.count()], {"by": "tags", "groups": [["x"]]}, "cannot make groups"),
    "no keys": (lambda: [ask.count()], {"by": "ward", "groups": []}, "got 0"),
    "keys a word": (lambda: [ask.count()], {"by": "ward", "groups": "A"}, "file that exists"),
    "keys a number": (lambda: [ask.count()], {"by": "ward", "groups": 7}, "got int"),
    "keys of another type": (
        lambda: [ask.count()],
        {"by": "ward", "groups": [1]},
        "groups of 'ward' must be text, got int",
    ),
    "truth for a number": (lambda: [ask.count()], {"by": "floor", "groups": [True]}, "a whole number, got bool"),
    "key too large": (lambda: [ask.count()], {"by": "floor", "groups": [2**70]}, "must fit into BIGINT"),
    "date for an instant": (
        lambda: [ask.count()],
        {"by": "day", "groups": [datetime.datetime(2026, 1, 1)]},
        "datetime.date",
    ),
    "keys of two values": (lambda: [ask.count()], {"by": "ward", "groups": [("A", "B")]}, "1 values each"),
    "keys in other columns": (lambda: [ask.count()], {"by": "ward", "groups": {"floor": [1]}}, "columns 'ward'"),
    "kappa zero": (lambda: [ask.count()], lambda: {"by": "ward", "groups": PrivateGroups(0.0, 3)}, "above 0"),
    "touching none": (lambda: [ask.count()], lambda: {"by": "ward", "groups": PrivateGroups(1e-9, 0)}, "at_most"),
    "where of nothing": (lambda: [ask.count()], {"where": "cost"}, "column, comparison and value"),
    "where elsewhere": (lambda: [ask.count()], {"where": "price > 3"}, "column of the table"),
    "where of no text": (lambda: [ask.count()], {"where": lambda table: table.cost > 3}, "SQL"),
    "key without a ledger": (lambda: [ask.count()], {"retry_key": "k"}, "needs a ledger"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_a_refusal_says_what_to_do_before_anything_happens(curator, case):
    asks, terms, words = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=words):
        released(curator, *asks(), **({"psi": 1.0} | (terms() if callable(terms) else terms)))


def test_groups_do_not_come_from_the_table(curator, tmp_path, monkeypatch):
    """Never is a key released merely because it is in the data."""
    for groups in (ROWS, ROWS.select(["ward"]), ROWS["ward"]):
        with pytest.raises(ValueError, match="not come from the table itself"):
            curator.ask(ask.count(), by="ward", groups=groups)
    monkeypatch.chdir(tmp_path)
    pyarrow.parquet.write_table(ROWS, "visits.parquet")
    with pytest.raises(ValueError, match="not come from the table itself"):
        Curator("visits.parquet", "who").ask(ask.count(), by="ward", groups="visits.parquet")


def test_a_ledger_is_not_its_path():
    with pytest.raises(TypeError, match=r"psidp\.Ledger\('ledger\.db'\)"):
        Curator(ROWS, "who", ledger="ledger.db", budget="survey")


def test_units_must_be_a_column_that_tells_people_apart(tmp_path):
    units = (
        ("nobody", "unit must be a column"),
        ("score", "whole numbers, text .* Give a view"),
        ("tags", "not told apart in one way"),
    )
    for unit, words in units:
        with pytest.raises((ValueError, TypeError), match=words):
            Curator(ROWS, unit)
    with pytest.raises(ValueError, match="must be 1 where every row"):
        Curator(ROWS, None).ask(ask.count(), contribution=3)
    for source in ("visits.xlsx", tmp_path / "none.parquet"):
        with pytest.raises(ValueError, match="table must be"):
            Curator(source, "who")
    with pytest.raises(TypeError, match="frame"):
        Curator(42, "who")
    with pytest.raises(ValueError, match="engine must be"):
        Curator("visits", "who", engine="mysql://x")


def test_a_file_that_cannot_be_read_is_not_quoted(tmp_path):
    """Neither on opening nor later: lines that do not fit are left out, and no error repeats them."""
    path = tmp_path / "visits.parquet"
    path.write_text("Bob, HIV positive")
    with pytest.raises(ValueError, match=r"a \.parquet file that the engine can read") as refusal:
        Curator(path, "who")
    assert "Bob" not in str(refusal.value)
    path = tmp_path / "visits.csv"
    lines = [b"who,cost", *(b"%d,1" % n for n in range(30_000))]
    odd = [b"Bob,1", b"7,HIV positive", b"8,1,2,3", b'9,"', b"\xff,\xfe"]
    for more in ([], odd):
        path.write_bytes(b"\n".join(lines + more) + b"\n")
        for asks in ([ask.count()], [ask.sum("cost", 0, 1)]):
            assert abs(released(Curator(path, "who"), *asks, psi=1e6).rows[0][1].value - 30_000) <= len(odd)


def test_a_server_that_is_not_there_is_said_without_its_password():
    with pytest.raises(EngineError) as refusal:
        Curator("visits", "who", engine="postgresql://ann:s3cret@127.0.0.1:1/nowhere")
    assert "s3cret" not in str(refusal.value)
    assert "engine runs" in str(refusal.value)


@pytest.mark.parametrize(("module", "extra"), [("duckdb", "db"), ("psycopg", "postgres"), ("pyspark", "spark")])
def test_a_missing_library_is_named_with_the_line_that_installs_it(monkeypatch, module, extra):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.split(".")[0] == module:
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    engine = {"psycopg": "postgresql://x/y", "pyspark": "spark://local"}.get(module)
    with pytest.raises(MissingExtraError, match=rf"psidp\[{extra}\]"):
        Curator("visits" if engine else ROWS, "who", engine=engine)


def test_nothing_about_the_rows_decides_a_refusal():
    """Rows without unit, NaN, empty tables: answered without a word."""
    odd = {"who": pa.array([None, None], pa.int64()), "x": [float("nan"), float("inf")]}
    for table in (pa.table(odd), pa.table(odd).slice(0, 0)):
        answer = released(Curator(table, "who"), ask.count(), ask.mean("x", 0, 1), psi=1.0)
        assert len(answer.rows) == 2
        assert "nan" not in answer.summary().lower()


@pytest.mark.parametrize("kind", ["JSON", "INTERVAL", "STRUCT(a INT)", "INT[]", "DOUBLE"])
def test_units_of_a_type_that_is_not_told_apart_in_one_way_are_refused(kind):
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE odd (u {kind}, k INT)")
    with pytest.raises(TypeError, match="unit must be a column of"):
        Curator(connection, "u", name="odd")
