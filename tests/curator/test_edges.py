"""Edges that fresh eyes found: where one row, one file or one word decided too much."""

from decimal import Decimal

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import psidp
from psidp import Curator, Ledger, PrivateGroups, ask
from psidp.errors import MismatchError

EXACT = 1e6


def counted(source, **terms):
    (row,) = Curator(source, "u").release(ask.count(), psi=EXACT, **terms)
    return round(row["value"])


def test_parquet_files_of_a_pattern_have_one_schema(tmp_path):
    """The first file's types were those of all, and a value that did not fit failed by row: free, exact, targeted."""
    pq.write_table(pa.table({"u": [1, 2], "v": pa.array([1, 2], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"u": [7], "v": pa.array([5 * 10**9], pa.int64())}), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="must have the same columns of the same types"):
        Curator(tmp_path / "*.parquet", "u")
    pq.write_table(pa.table({"u": [7], "v": pa.array([5], pa.int32())}), tmp_path / "b.parquet")
    assert counted(tmp_path / "*.parquet") == 3
    with pytest.raises(ValueError, match="groups must not come from the table itself"):
        Curator(tmp_path / "*.parquet", "u").plan(ask.count(), by="v", groups=tmp_path / "a.parquet", psi=1.0)


@pytest.mark.parametrize(
    "kind", [pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.duration("s"), pa.duration("ms")], ids=str
)
def test_times_that_64_bits_cannot_hold_are_missing_and_no_error(kind):
    table = pa.table({"u": [1, 2, 3], "t": pa.array([0, 2**62, 5], kind)})
    assert counted(table, where=lambda t: t.t.notnull()) == 2
    assert counted(table) == 3


def test_text_that_is_no_utf8_is_a_text_of_its_own():
    buffers = [None, pa.py_buffer(np.array([0, 1, 3], np.int32)), pa.py_buffer(b"a\xff\xfe")]
    table = pa.table({"u": [1, 2], "s": pa.Array.from_buffers(pa.string(), 2, buffers)})
    assert counted(table, where=lambda t: t.s.lower() == "a") == 1
    lone = pd.DataFrame({"u": [1, 2], "w": pd.Series(["x", "Smith \ud800"], dtype="string[python]")})
    assert counted(lone, by="w", groups=["x"]) == 1


def test_readers_that_guess_are_found_behind_frames_too(tmp_path):
    (tmp_path / "x.csv").write_text("u,v\n1,2\n")
    guessed = ibis.duckdb.connect().read_csv(tmp_path / "x.csv")
    with pytest.raises(ValueError, match="guesses types from some rows"):
        Curator(guessed.join(ibis.memtable({"u": [1]}), "u"), "u")
    with pytest.raises(TypeError, match=r"got FileSystemDataset. Call its to_table\(\) first."):
        Curator(ds.dataset(tmp_path / "x.csv", format="csv"), "u")


def test_equal_decimals_are_released_in_one_spelling(postgres):
    """PostgreSQL shows the spelling of a row it met, which is one unit's; exact and not noised."""
    with postgres.con.cursor() as cursor:
        cursor.execute("drop table if exists spelled")
        cursor.execute("create table spelled (u bigint, k numeric)")
        rows = [(n, Decimal("1." + "0" * (1 + n % 9))) for n in range(60)] + [
            (n, Decimal("2.50")) for n in range(60, 120)
        ]
        cursor.executemany("insert into spelled values (%s, %s)", rows)
    postgres.con.commit()
    answer = Curator(postgres.table("spelled"), "u").release(
        ask.units(), by="k", groups=PrivateGroups(1e-9, 2), psi=EXACT, clipping_share=0.0
    )
    assert [str(row["k"]) for row in answer] == ["1", "2.5"]


def test_a_contribution_is_lowered_where_private_keys_are_many_and_never_refused_after_they_are_paid():
    rows = pa.table({"u": [i % 3000 for i in range(30_000)], "k": [i % 10 for i in range(30_000)]})
    asked = {"by": "k", "groups": PrivateGroups(1e-9, 10, 3.0), "psi": 50.0, "contribution": 2.0**20}
    answer = Curator(rows, "u").release(ask.count(), **asked)
    assert len(answer.rows) == 10
    assert "one u adds at most 3.707e+05 rows' worth" in str(answer.notes[1])  # 2^18.5 of the 2^20 that were asked for


def test_shares_of_one_budget_have_one_unit_column(tmp_path):
    flights = pa.table({"tailnum": ["a", "b"], "flight": [1, 2]})
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open("air", psi=1.0, unit="aircraft", actor="Ann", purpose="a test")
    ledger.split("air", {"one": 1, "two": 1}, actor="Ann", purpose="two teams")
    Curator(flights, "tailnum", ledger=ledger, budget="one").release(ask.count(), psi=0.1)
    with pytest.raises(
        MismatchError, match=r"must be 'tailnum' for budget 'two', as entry \d+ says, got unit='flight'"
    ):
        Curator(flights, "flight", ledger=ledger, budget="two")
    Curator(flights, "flight", ledger=ledger, budget="two", same_unit="one flight each").release(ask.count(), psi=0.1)
    Curator(flights, "tailnum", ledger=ledger, budget="two").release(ask.count(), psi=0.1)
    ledger.verify()
    ledger.dispose()


TABLE = {"u": [1, 2], "v": [20, 1], "s": ["a", "it's"]}


@pytest.mark.parametrize("text", ["v > 15 u = 1", "v => 15", "v > 1,000", "v > fifteen", "v = 1;", "s = a;", "s = a b",
                                  "s = 'a", "s = 'a' and", "v + 1 > 2", "v > 1 and (u < 3", "sqrt(v) > 2"])  # fmt: skip
def test_what_follows_a_value_is_refused_and_not_taken_for_text(text, tmp_path):
    """A first-time user's SQL on a CSV file compared with the text '15 and u = 1' and was paid for."""
    (tmp_path / "v.csv").write_text("u,v,s\n1,20,a\n2,1,it's\n")
    for source in (pa.table(TABLE), tmp_path / "v.csv"):
        with pytest.raises(ValueError, match=r"^where must "):
            Curator(source, "u").plan(ask.count(), where=text, psi=1.0)


@pytest.mark.parametrize(
    "text", ["v > 15", "v <> 1", "s = a", "s != 'a'", "s = 'it''s'", 's = "it\'s"', "s > 'b'", "v == 20"]
)
def test_a_value_in_quotes_or_one_plain_word_is_what_it_says(text, tmp_path):
    (tmp_path / "v.csv").write_text("u,v,s\n1,20,a\n2,1,it's\n")
    for source in (pa.table(TABLE), tmp_path / "v.csv"):
        assert counted(source, where=text) == 1


def test_a_budget_without_kappa_says_how_to_get_some(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open("air", psi=1.0, actor="Ann", purpose="a test")
    with pytest.raises(psidp.errors.BudgetExceededError, match="Raise the budget's kappa: psidp ledger raise"):
        ledger.spend("air", psidp.Guarantee(0.1, 1e-9), purpose="x").__enter__()
    ledger.dispose()


@pytest.mark.parametrize("text", ["v > fifteen", "u > v"])
def test_an_untyped_column_is_not_put_in_order_with_a_bare_word(text, tmp_path):
    (tmp_path / "v.csv").write_text("u,v\n1,20\n")
    with pytest.raises(ValueError, match=r"must stand in quotes|must say what 'u' holds"):
        Curator(tmp_path / "v.csv", "u").plan(ask.count(), where=text, psi=1.0)
