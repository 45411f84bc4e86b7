"""A stream belongs to the table that it was opened for: another one under its name is refused, more columns are not."""

import datetime
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psidp
from psidp import Curator, Guarantee, ask
from psidp.errors import KeyConflictError

TERMS = {"every": "week", "since": "2026-01-05", "periods": 8, "arrived": "day", "cap": ask.cap(1)}


def table(*more):
    day = datetime.date(2026, 1, 6)
    return pa.table({"who": [1, 2, 3], "day": [day] * 3} | {name: [0, 0, 0] for name in more})


@pytest.fixture
def ledger(tmp_path):
    made = psidp.Ledger(tmp_path / "ledger.db", clock=lambda: datetime.datetime(2026, 1, 20, tzinfo=datetime.UTC))
    made.open("b", psi=10.0, unit="who", purpose="a test")
    return made


def stream(ledger, source, called="s"):
    return Curator(source, "who", ledger=ledger, budget="b").stream(called, ask.count(), **TERMS).priced(1.0)


def test_another_table_under_the_name_of_a_stream_is_refused(ledger, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        pq.write_table(table(), tmp_path / name / "rows.parquet")
        (tmp_path / name / "rows.csv").write_text("who,day\n1,2026-01-06\n")
    one, two = tmp_path / "one", tmp_path / "two"
    pairs = [
        (one / "rows.parquet", two / "rows.parquet"),
        (one / "rows.csv", two / "rows.csv"),
        (one, two),
        ([one / "rows.parquet", two / "rows.parquet"], [two / "rows.parquet"]),
        (table(), one / "rows.parquet"),
    ]
    for number, (first, other) in enumerate(pairs):
        called = f"s{number}"
        stream(ledger, first, called).open().publish()
        assert stream(ledger, first, called).published == 2
        for call in ("open", "publish", "plan"):
            with pytest.raises(KeyConflictError, match="table was"):
                getattr(stream(ledger, other, called), call)()


def test_more_columns_rows_and_files_are_the_same_table(ledger, tmp_path):
    file = tmp_path / "rows.parquet"
    pq.write_table(table(), file)
    sources = {"file": file, "files": [file], "frame": table()}
    for name, source in sources.items():
        stream(ledger, source, name).open().publish()
    pq.write_table(table("ward"), file)
    pq.write_table(table("ward"), tmp_path / "rows2.parquet")
    sources = {"file": file, "files": [file, tmp_path / "rows2.parquet"], "frame": table("ward")}
    for name, source in sources.items():
        assert stream(ledger, source, name).open().published == 2


def test_a_stream_of_version_0_2_whose_entry_names_no_table_goes_on(ledger, monkeypatch):
    made = stream(ledger, table())
    asked = dict(made._record.asked)
    assert asked.pop("table") == "frame"
    monkeypatch.setattr(made._record, "asked", asked)
    made.open()
    assert "table" not in json.loads(next(e for e in ledger.entries() if e.state == "spent").event)["asked"]
    assert len(stream(ledger, table()).publish()) == 2


def test_an_opening_that_did_not_pay_for_its_noise_publishes_nothing(ledger):
    """Anybody who may spend can write an entry under the key of a stream that is not open yet."""
    elsewhere = psidp.Ledger(ledger._access.store.address.path.with_name("other.db"), clock=ledger.now)
    elsewhere.open("b", psi=10.0, unit="who", purpose="a test")
    stream(elsewhere, table()).open()
    (opened,) = [entry for entry in elsewhere.entries() if entry.state == "spent"]
    event = {name: value for name, value in opened.details().items() if name not in ("by", "table", "table_unit")}
    parts = [part | {"sigma": 1e-3} for part in event["parts"]]
    narrow = event["participation"] | {"apart": 8}
    for number, (change, price) in enumerate((
        ({"kind": "guarantee", "parts": parts}, Guarantee(0.0, unit="who")),
        ({"participation": narrow}, None),
        ({"parts": [part | {"norm": 0} for part in event["parts"]]}, Guarantee(0.0, unit="who")),
    )):  # fmt: skip
        false = event | change
        price = price or Guarantee(opened.psi, unit="who")
        false.pop("unit_column", None)
        name = f"s{number}"
        spend = ledger.spend("b", price, purpose="q", actor="bob", retry_key=f"stream {name}: opened", request="x",
                             event={"kind": "guarantee"})  # fmt: skip
        spend.event = false | {"by": "bob"}
        spend.once()
        head = ledger.head()
        for call in ("plan", "open", "publish"):
            with pytest.raises((KeyConflictError, ValueError), match="who wrote the entry"):
                getattr(stream(ledger, table(), name), call)()
        assert ledger.head() == head


def test_a_stream_goes_on_under_the_adjacency_that_it_was_opened_for(ledger):
    stream(ledger, table()).open().publish()
    other = Curator(table(), "who", ledger=ledger, budget="b", adjacency="replace-one").stream(
        "s", ask.count(), **TERMS
    )
    before = ledger.head()
    for call in ("open", "plan", "series"):
        with pytest.raises(KeyConflictError, match="adjacency must be 'add-remove', for which stream 's' was opened"):
            getattr(other.priced(1.0), call)()
    assert ledger.head() == before
