"""What a ledger of version 0.2 holds is kept: entries, answers, approvals and streams, on SQLite and PostgreSQL."""

import itertools
import json
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import psidp
from from_0_2.make import ARRAY, CUBE, LARGE, STREAM, TABLE, VISITS, Clock
from psidp import Curator, GaussianMechanism, Guarantee, Ledger, PrivateGroups, ask
from psidp.ledger.listing import Selection

HERE = Path(__file__).parent
HEADS = {
    "sqlite": "122:b39bae0cc9c13288cc4e8b4a66638a7f2f1217d79c081bfcdadb6d3ddc274075",
    "postgresql": "122:0f2d6045ee2c450d3fb02212135fbbaf899dd109675f4663e221c52cad6b7a63",
}
QUESTION = {name: value for name, value in TABLE.items() if name != "psi"}
GAUSSIAN = {"kind": "gaussian", "sensitivity": 1.0, "sigma": 2.0}
TABLES = ("table", "days", "median", "private groups", "other unit", "cube")
NUMBERS = ("array", "float32", "whole", "number", "sum", "own", "pairs")
_count = itertools.count()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where a copy of the old ledger lies."""
    if request.param == "sqlite":
        shutil.copy(HERE / "ledger.db", tmp_path / "ledger.db")
        with closing(sqlite3.connect(tmp_path / "ledger.db")) as file, file:
            file.execute("DELETE FROM psidp_place")  # it always lay here; below it is moved as one should
        return str(tmp_path / "ledger.db")
    server, name = request.getfixturevalue("server"), f"old_{next(_count)}"
    url = server.place(name)
    dump = (HERE / "ledger.sql").read_text().replace("CREATE SCHEMA from_0_2;\n", "")
    server.execute(dump.replace("from_0_2.", f"{name}."))
    return url


@pytest.fixture
def old(place):
    with Ledger(place, clock=Clock(datetime(2026, 5, 20, tzinfo=UTC)), actor="Bob") as ledger:
        yield ledger


@pytest.fixture
def head(place):
    return HEADS["postgresql" if place.startswith("postgresql") else "sqlite"]


def curator(ledger, budget="survey"):
    return Curator(pa.table(VISITS), unit="patient", ledger=ledger, budget=budget)


def opened(ledger, name, **terms):
    here = {n: v for n, v in STREAM.items() if n != "psi"} | {"cap": ask.cap(2), "windows": [2]} | terms
    question = curator(ledger, "series").stream(name, ask.count(), ask.sum("cost", 0, 50), arrived="came", **here)
    return question.open(psi=STREAM["psi"])


def large(made, measure):
    """A question that needs an approval."""
    question = made.ask(measure, by=LARGE["by"], groups=LARGE["groups"])
    return question.release(psi=LARGE["psi"], purpose=LARGE["purpose"])


def refusal(release, error):
    """The words in which a release was refused; none where it was made."""
    try:
        release()
    except error as refused:
        return str(refused)
    return ""


def test_it_opens_and_verifies_to_its_head_with_every_kind_of_entry(old, head):
    assert str(old.verify(head)) == str(old.head()) == head
    states = {entry.state for entry in old.entries()}
    assert states == {
        "opened", "spent", "answered", "withheld", "interrupted", "raised", "split", "reset", "renewed", "closed",
        "limited", "paused", "resumed", "requested", "approved", "denied",
    }  # fmt: skip
    kinds = {entry.details()["kind"] for entry in old.entries() if entry.state == "spent"}
    assert kinds == {"guarantee", "gaussian", "claim", "dpsgd", "allocation", "bandmf", "fixed-order", "strategy"}


def test_a_copy_that_nobody_declared_is_refused(tmp_path):
    shutil.copy(HERE / "ledger.db", tmp_path / "ledger.db")
    with Ledger(tmp_path / "ledger.db") as copy, pytest.raises(psidp.errors.LedgerUnavailableError, match="/srv"):
        copy.remaining("survey")


def test_it_goes_on_where_it_was(old, head):
    before = [entry.to_dict() for entry in old.entries()]
    assert old.remaining("sites", "north").psi == pytest.approx((1 - 0.8**2 - 0.25**2) ** 0.5)
    assert (old.remaining("again").psi, old.remaining("team").psi, old.remaining("over").psi) == (0.5, 0.0, 0.0)
    with old.spend("sites", Guarantee(0.5), purpose="more", partition="north"):
        pass
    for budget, actor, error in (
        ("sites", "Bob", psidp.errors.BudgetExceededError),
        ("over", "Bob", psidp.errors.BudgetClosedError),
        ("stopped", "Bob", psidp.errors.BudgetPausedError),
        ("right", "Mallory", psidp.errors.BudgetPausedError),
    ):
        with pytest.raises(error), old.spend(budget, Guarantee(0.9), purpose="no", actor=actor):
            pass
    with old.spend("survey", Guarantee(0.1, unit="patient"), purpose="back from leave", actor="Dora"):
        pass
    with old.spend("yearly", psidp.DPSGD(4.0, 0.01, 100), kappa=1e-9, purpose="another model"):
        pass
    old.verify(head)
    assert [entry.to_dict() for entry in old.entries()][: len(before)] == before


def test_it_is_listed_reported_and_exported(old, head, tmp_path):
    assert old.budgets()[:2] == ["yearly", "add-remove group of 2 records"]
    assert [entry.purpose for entry in old.list(Selection(budget="sites", since="2026"))] == ["visits"] * 3
    assert old.report("numbers").cap.psi == 2.5
    assert old.statement(Selection(since="2026")).tables["visits"]["spends"] == 1
    assert list(old.export())[-1] == json.dumps({"head": head}, separators=(",", ":"))
    with Ledger.restore(tmp_path / "small.db", (HERE / "export.jsonl").read_text().splitlines()) as again:
        assert again.remaining("small").psi == pytest.approx(0.75**0.5)


def test_another_unit_column_is_still_refused(old):
    with pytest.raises(psidp.errors.MismatchError, match="'patient'"):
        Curator(pa.table(VISITS), unit="ward", ledger=old, budget="survey")


def test_a_stored_answer_comes_back_under_its_retry_key_and_costs_nothing(old):
    """Or the refusal says how to read it."""
    before = old.head()
    groups = PrivateGroups(kappa=1e-6, at_most=1)
    asks = ask.count(), ask.mean("cost", 0, 50)
    mechanism = GaussianMechanism(1.0, 20.0, ledger=old, budget="numbers")
    with curator(old) as made:
        for key, release in {
            "table": lambda: made.ask(*asks, **QUESTION).release(psi=0.5, retry_key="table"),
            "days": lambda: made.ask(ask.units(), by="day", groups=[VISITS["day"][0], None]).release(
                psi=0.3, retry_key="days"
            ),
            "median": lambda: made.ask(ask.median("cost", [0, 5, 10, 50])).release(psi=0.3, retry_key="median"),
            "private groups": lambda: made.ask(ask.count(), by="ward", groups=groups).release(
                psi=0.5, retry_key="private groups"
            ),
            "cube": lambda: made.cube(*CUBE, measures=asks).release(psi=0.5, retry_key="cube"),
            "array": lambda: mechanism.release(ARRAY, retry_key="array", purpose="again"),
            "number": lambda: mechanism.release(3.0, retry_key="number", purpose="again", request="how many"),
        }.items():
            told = refusal(release, psidp.errors.KeyConflictError)
            assert not told or "psidp ledger answer" in told
            assert old.head() == before, key
    assert mechanism.release(ARRAY, retry_key="array", purpose="again").value.tolist() == old.answer("array")["value"]
    with old.spend("numbers", Guarantee(0.05), purpose="own", retry_key="own", request=["own", 1]) as entry:
        assert entry.answer(lambda: None)["keys"] == {3: 2}
    with old.spend("numbers", Guarantee(0.05), purpose="keys", retry_key="pairs") as entry:
        assert entry.answer(lambda: None) == {(1, "A"): 2}
    assert old.head() == before


def test_another_question_under_an_old_key_is_refused_and_told_how_to_read_the_answer(old):
    before = old.head()
    with curator(old) as made, pytest.raises(psidp.errors.KeyConflictError, match=r"psidp ledger answer .* table "):
        made.ask(ask.count()).release(psi=0.25, retry_key="table")
    assert old.head() == before


def test_every_stored_answer_is_read_by_its_key_alone(old, run, place):
    before = old.head()
    streams = [f"stream {name}: period {t}" for name in ("text", "plain", "ibis", "sealed") for t in (1, 2)]
    for key in (*TABLES, *NUMBERS, *streams, "used"):
        code, out, err = run("ledger", "answer", place, key)
        assert (code, err.count("Stored in entry")) == (0, 1)
        code, said, _ = run("ledger", "answer", place, key, "--json")
        values = json.loads(said)
        assert (code, values["retry_key"]) == (0, key)
        if key in streams:
            assert len(out.splitlines()) == 5 == 1 + len(values["published"])
            assert [float(row.split(",")[3]) for row in out.splitlines()[1:]] == [
                row["value"] for row in values["published"]
            ]
    value = json.loads(run("ledger", "answer", place, "table", "--json")[1])["answer"]["rows"][0]["value"]
    assert f"A,count,{value}," in run("ledger", "answer", place, "table")[1]
    numbers = run("ledger", "answer", place, "array")[1].split()
    assert (
        [float(number) for number in numbers] == old.answer("array")["value"] == old.answer("array", "numbers")["value"]
    )
    assert old.head() == before


def test_a_key_without_an_answer_is_refused_with_the_reason(old, run, place):
    for key, why in (("failed", "no answer is stored for entry"), ("nothing", "no entry has it")):
        code, out, err = run("ledger", "answer", place, key)
        assert (code, out, err.count(why)) == (2, "", 1)
    with old.spend("survey", Guarantee(0.1, unit="patient"), purpose="the same key", retry_key="array") as entry:
        entry.answer(lambda: 1.0)
    with pytest.raises(ValueError, match=r"budget \(whose key it is\) must be one of 'numbers', 'survey'"):
        old.answer("array")
    assert old.answer("array", "survey") == 1.0


def test_an_approval_pays_for_exactly_its_question_and_once(old):
    spend = {"purpose": "a mean, approved", "event": GAUSSIAN, "table": "visits"}
    price = Guarantee(0.5, unit="patient")
    for other in ({"purpose": "another"}, {"table": "costs"}, {"actor": "Eve"}):
        with pytest.raises(psidp.errors.ApprovalNeededError), old.spend("asking", price, **spend | other):
            pass
    with old.spend("asking", price, **spend):
        pass
    with pytest.raises(psidp.errors.ApprovalNeededError), old.spend("asking", price, **spend):
        pass


def test_a_request_that_waits_can_be_approved_or_denied(old):
    waits = {entry.purpose: entry.id for entry, asked in old.waiting("asking") if not asked.approved}
    with pytest.raises(ValueError, match="somebody else"):
        old.approve(waits["a mean, waits"], purpose="my own")
    old.approve(waits["a mean, waits"], purpose="fine", actor="Ann")
    spend = {"purpose": "a mean, waits", "event": GAUSSIAN, "table": "visits"}
    with old.spend("asking", Guarantee(0.5, unit="patient"), **spend):
        pass
    old.approve(waits[LARGE["purpose"]], purpose="fine", actor="Ann")
    left = old.remaining("asking").psi
    with curator(old, "asking") as made:
        told = refusal(lambda: large(made, ask.count()), psidp.errors.ApprovalNeededError)
    assert (old.remaining("asking").psi < left) != ("\npsidp ledger request " in told)


def test_an_approved_question_of_a_table_is_paid_or_refused_with_the_way_to_ask_again(old):
    left = old.remaining("asking").psi
    with curator(old, "asking") as made:
        with pytest.raises(psidp.errors.ApprovalNeededError):
            large(made, ask.sum("cost", 0, 49))
        told = refusal(lambda: large(made, ask.sum("cost", 0, 50)), psidp.errors.ApprovalNeededError)
        assert (old.remaining("asking").psi < left) != ("\npsidp ledger request " in told)
        with pytest.raises(psidp.errors.ApprovalNeededError):
            large(made, ask.sum("cost", 0, 50))


@pytest.mark.parametrize("terms", [{"where": "cost >= 4"}, {}], ids=["text", "plain"])
def test_a_stream_publishes_its_next_periods_for_what_it_paid(old, terms):
    name, before, left = "text" if terms else "plain", old.head(), old.remaining("series")
    published = json.dumps([old.answer(f"stream {name}: period {t}") for t in (1, 2)])
    made = opened(old, name, **terms)
    assert old.head() == before
    first = made.series("single period")
    assert (len(first), made.published) == (2 * 2 * 2, 2)
    new = made.publish()
    assert {row.period for row in new} == {STREAM["since"] + timedelta(weeks=t) for t in (2, 3, 4, 5)}
    assert made.series("single period") == first + new
    assert made.publish() == []
    assert json.dumps([old.answer(f"stream {name}: period {t}") for t in (1, 2)]) == published
    assert old.remaining("series") == left
    spent = [entry for entry in old.entries("series", after=before.id) if entry.state == "spent"]
    assert [entry.psi for entry in spent] == [0.0] * 4


def test_a_stream_under_an_old_name_with_other_terms_is_refused(old):
    before = old.head()
    with pytest.raises(psidp.errors.KeyConflictError, match="where was 'cost >= 4'"):
        opened(old, "text", where="cost >= 5")
    assert old.head() == before


def test_it_can_be_moved_and_the_verification_that_was_kept_goes_on(tmp_path):
    for name in ("ledger.db", "kept.json", "kept.key"):
        shutil.copy(HERE / name, tmp_path / name)
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.moved(actor="Ann", purpose="kept for the tests")
        head = ledger.verify(kept=tmp_path / "kept.json", key=tmp_path / "kept.key")
    assert str(head) == HEADS["sqlite"]
