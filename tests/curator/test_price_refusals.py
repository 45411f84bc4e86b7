"""The price of a table is a notion of privacy: the sensitivity of what is asked follows from the question."""

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psidp as package
from psidp import Curator, ask

ROWS = pa.table({"who": [1, 2, 3], "ward": ["A", "B", "A"], "day": [datetime.date(2026, 1, 5)] * 3})


def test_sensitivity_and_sigma_are_no_price_of_a_table_a_cube_or_a_stream(tmp_path, psidp):
    ledger = package.Ledger(tmp_path / "ledger.db")
    ledger.open("b", psi=10.0, unit="who", purpose="a test")
    curator = Curator(ROWS, "who", ledger=ledger, budget="b")
    stream = {"every": "week", "since": "2026-01-05", "periods": 4, "arrived": "day", "at_most": 1}
    calls = [
        lambda **price: curator.release(ask.count(), **price),
        lambda **price: curator.plan(ask.count(), **price),
        lambda **price: curator.cube({"ward": ["A", "B"]}, ask.up_to(1), **price),
        lambda **price: curator.plan_cube({"ward": ["A", "B"]}, ask.up_to(1), **price),
        lambda **price: curator.stream("s", ask.count(), **stream, **price),
    ]
    for call in calls:
        for price in ({"sensitivity": 1, "sigma": 2}, {"sigma": 2}, {"psi": 1.0, "sigma": 2}):
            with pytest.raises(TypeError, match="sensitivity follows from the measures"):
                call(**price)
    assert [entry.state for entry in ledger.entries()] == ["opened"]


def test_the_command_line_refuses_them_as_well_and_does_not_offer_them(tmp_path, psidp):
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    package.Ledger(tmp_path / "ledger.db").open("b", psi=10.0, unit="who", purpose="a test")
    paid = ["--unit-column", "who", "--ledger", tmp_path / "ledger.db", "--budget", "b"]
    often = ["--every", "week", "--since", "2026-01-05", "--periods", 4, "--arrived", "day", "--at-most", 1]
    commands = [
        ["release", "table", tmp_path / "rows.parquet", "--count", *paid],
        ["release", "cube", tmp_path / "rows.parquet", "--column", "ward:A,B", *paid],
        ["stream", "open", tmp_path / "rows.parquet", "--name", "s", "--count", *often, *paid],
    ]
    for words in commands:
        code, _, err = psidp(*words, "--sensitivity", 1, "--sigma", 2)
        assert code == 2
        assert "sensitivity follows from the measures" in err
        code, out, _ = psidp(*words[:2], "--help")
        assert code == 0
        assert "--epsilon" in out
        assert "--sigma" not in out
    assert [entry.state for entry in package.Ledger(tmp_path / "ledger.db").entries()] == ["opened"]
