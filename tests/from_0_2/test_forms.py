"""Every durable file states its format: those of version 0.2 are read, a newer one is refused and nothing changes."""

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import psidp
from from_0_2.make import CUBE, STREAM, VISITS, Clock
from psidp import Curator, GaussianMechanism, Guarantee, Ledger, ask
from psidp.errors import LedgerError, NewerFormError, NewerLedgerError, TamperedLedgerError
from psidp.present.card import Card, card
from psidp.tables.answer import Answer
from psidp.tables.cube_answer import Cube

HERE = Path(__file__).parent
WEEKLY = {name: value for name, value in STREAM.items() if name != "psi"}
KINDS = {
    "answer.json": (Answer.from_dict, "form", "psidp-table-1"),
    "cube.json": (Cube.from_dict, "form", "psidp-cube-1"),
}


@pytest.fixture
def clock():
    return Clock(datetime(2026, 1, 20, tzinfo=UTC))


@pytest.fixture
def ledger(tmp_path, clock):
    with Ledger(tmp_path / "ledger.db", clock=clock, actor="Bob") as made:
        made.open("survey", psi=9.0, unit="patient", actor="Ann", purpose="a test")
        yield made


def later(form):
    """The next version of a form."""
    return f"{form[:-1]}{int(form[-1]) + 1}"


def curator(**paid):
    return Curator(pa.table(VISITS), unit="patient", **paid)


def test_files_of_0_2_are_read_and_newer_ones_refused():
    for name, (read, word, form) in KINDS.items():
        values = json.loads((HERE / name).read_text())
        read(values)
        with pytest.raises(NewerFormError, match=f"must have the form '{form}', got '{later(form)}'. If a newer"):
            read(values | {word: later(form)})


def test_a_card_of_another_version_is_refused():
    old = json.loads((HERE / "card.json").read_text())
    for values in (old, json.loads(card(Guarantee(0.5)).to_json()) | {"card": "psidp.card/4"}):
        with pytest.raises(NewerFormError, match=f"must have the form 'psidp.card/3', got '{values['card']}'"):
            Card.from_json(json.dumps(values))


def test_what_is_written_states_its_form():
    with curator() as made:
        table, cube = made.ask(ask.count()), made.cube(*CUBE)
        written = [table, cube, table.release(psi=1.0), cube.release(psi=1.0), table.plan(psi=1.0), cube.plan(psi=1.0)]
    assert [json.loads(value.to_json())["form"] for value in written] == [
        "psidp-question-1", "psidp-question-1", "psidp-table-1", "psidp-cube-1", "psidp-plan-1", "psidp-cube-plan-1",
    ]  # fmt: skip
    assert json.loads(card(Guarantee(0.5)).to_json())["card"] == "psidp.card/3"
    assert psidp.audit([0.1, 0.2], [0.3, 0.4]).to_dict()["form"] == "psidp-audit-1"


def test_a_newer_ledger_is_refused_and_stays_as_it_is(ledger, tmp_path):
    ledger.dispose()
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as file, file:
        file.execute("INSERT INTO psidp_ledger SELECT 99, identity, applied FROM psidp_ledger LIMIT 1")
    before = (tmp_path / "ledger.db").read_bytes()
    with Ledger(tmp_path / "ledger.db") as newer:
        for work in (newer.verify, newer.budgets, lambda: newer.close("survey", purpose="no")):
            with pytest.raises(NewerLedgerError, match="version 99"):
                work()
    assert (tmp_path / "ledger.db").read_bytes() == before


def test_a_newer_export_is_refused_before_a_ledger_is_made(tmp_path):
    first, *rest = (HERE / "export.jsonl").read_text().splitlines()
    with pytest.raises(LedgerError, match="this export has version 99"):
        Ledger.restore(tmp_path / "new.db", [json.dumps(json.loads(first) | {"psidp_ledger": 99}), *rest])
    assert not (tmp_path / "new.db").exists()


def test_a_newer_kept_verification_is_refused(tmp_path):
    for name in ("ledger.db", "kept.json", "kept.key"):
        shutil.copy(HERE / name, tmp_path / name)
    values = json.loads((tmp_path / "kept.json").read_text())
    (tmp_path / "kept.json").write_text(json.dumps(values | {"form": later(values["form"])}))
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as file, file:
        file.execute("DELETE FROM psidp_place")
    with Ledger(tmp_path / "ledger.db") as old, pytest.raises(TamperedLedgerError, match="a newer psidp wrote it"):
        old.verify(kept=tmp_path / "kept.json", key=tmp_path / "kept.key")


def test_a_stored_answer_of_a_newer_form_is_refused_at_no_cost(ledger, run, tmp_path):
    mechanism = GaussianMechanism(1.0, 2.0, unit="patient", ledger=ledger, budget="survey")
    event = {"kind": "gaussian", "sensitivity": 1.0, "sigma": 2.0}
    asked = {"shape": [], "integers": False, "asked": None}
    table = {"form": "psidp-table-2", "by": [], "rows": [], "guarantee": {}}
    for key, answer in (("number", {"form": "psidp-release-2", "value": 1.0}), ("table", table)):
        paid = {"purpose": "from the future", "event": event, "retry_key": key, "request": asked}
        with ledger.spend("survey", mechanism.guarantee, **paid) as entry:
            entry.answer(lambda answer=answer: answer)
    before = ledger.head()
    with pytest.raises(NewerFormError, match="psidp-release-2"):
        mechanism.release(3.0, purpose="from the future", retry_key="number")
    for key in ("number", "table"):
        code, out, err = run("ledger", "answer", tmp_path / "ledger.db", key)
        assert (code, out, err.count("If a newer psidp wrote it, install that one")) == (2, "", 1)
    assert ledger.head() == before


def test_a_stream_of_a_newer_form_is_refused_at_no_cost(ledger):
    event = {"kind": "guarantee", "form": "psidp-stream-2", "asked": {}}
    ledger.spend(
        "survey",
        Guarantee(0.5, unit="patient"),
        purpose="from the future",
        event=event,
        retry_key="stream visits: opened",
    ).once()
    before = ledger.head()
    with curator(ledger=ledger, budget="survey") as made:
        question = made.stream("visits", ask.count(), arrived="came", cap=ask.cap(2), **WEEKLY)
        for work in (question.open, question.plan):
            with pytest.raises(NewerFormError, match="stream 'visits' must have the form 'psidp-stream-1'"):
                work(psi=0.5)
    assert ledger.head() == before


def test_a_newer_audit_result_is_refused_by_the_card(run, tmp_path):
    result = tmp_path / "audit.json"
    result.write_text(json.dumps({"form": "psidp-audit-2", "psi": 0.1, "confidence": 0.95, "method": "a test"}))
    code, out, err = run("card", "--psi", "0.5", "--audit", result)
    assert (code, out, err.count("the audit result must have the form 'psidp-audit-1'")) == (2, "", 1)
