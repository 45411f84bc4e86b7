"""One release, one spend: before the noise, once, and not at all when nothing could have been drawn."""

import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import psidp
from psidp import Curator, PrivateGroups, ask
from psidp.errors import BudgetExceededError, EngineError, KeyConflictError, MismatchError

ROWS = pa.table({"patient": [1, 1, 2, 3, None], "ward": ["A", "B", "A", "A", "B"], "cost": [10.0, 20.0, 5.0, 7.0, 9.0]})


@pytest.fixture
def kept(sqlite_url):
    """A ledger with a budget for patients."""
    ledger = psidp.Ledger(sqlite_url)
    ledger.open("survey", psi=1.0, kappa=1e-6, unit="patient", actor="Ann", purpose="the 2026 survey")
    yield ledger
    ledger.dispose()


@pytest.fixture
def curator(kept):
    return Curator(ROWS, unit="patient", ledger=kept, budget="survey")


def states(ledger):
    return [entry.state for entry in ledger.entries("survey")]


def test_a_release_is_one_spend_and_says_what_is_left(curator, kept):
    answer = curator.ask(ask.count(), ask.sum("cost", 0, 50), by="ward", groups=["A", "B"]).release(psi=0.6)
    assert states(kept) == ["opened", "spent", "answered"]
    assert "Budget 'survey' has psi = 0.8 left." in answer.summary()
    spent = list(kept.entries("survey"))[1]
    assert (spent.psi, spent.purpose) == (0.6, "count, sum of cost by ward")


def test_a_plan_says_that_an_approval_is_needed_or_that_somebody_is_paused(curator, kept):
    def plan(psi):
        return str(curator.ask(ask.count()).plan(psi=psi).notes[-1])

    assert plan(0.6).endswith("left, enough for this release.")
    kept.limit("survey", 0.5, purpose="large ones are looked at", actor="Ann")
    assert plan(0.5).endswith("left, enough for this release.")
    assert "A release above psi 0.5 needs somebody else's approval first" in plan(0.6)
    kept.pause("survey", person=kept.actor.upper(), purpose="has left", actor="Ann")
    assert f"is paused for {kept.actor!r}: the release would be refused." in plan(0.1)
    assert "needs somebody else's approval first" in plan(0.6)
    kept.pause("survey", purpose="an audit", actor="Ann")
    assert "Spending from it is paused: the release would be refused." in plan(0.1)
    with pytest.raises(psidp.errors.BudgetPausedError):
        curator.ask(ask.count()).release(psi=0.1)


def test_the_same_question_under_the_same_key_costs_once(curator, kept):
    first = curator.ask(ask.count(), by="ward", groups=["A", "B"]).release(psi=0.5, retry_key="report-1")
    again = curator.ask(ask.count(), by="ward", groups=["A", "B"]).release(psi=0.5, retry_key="report-1")
    assert list(first) == list(again)
    assert (first.stored, again.stored) == (False, True)
    assert "nothing was spent now" in again.summary()
    assert states(kept).count("spent") == 1
    with pytest.raises(KeyConflictError, match="another request"):
        curator.ask(ask.count(), by="ward", groups=["A", "B"]).release(psi=0.4, retry_key="report-1")
    assert states(kept).count("spent") == 1


def test_a_plan_under_a_key_says_that_the_stored_answer_comes_again_or_that_another_question_is_refused(curator, kept):
    def plan(psi, key):
        return str(curator.ask(ask.count(), by="ward", groups=["A", "B"]).plan(psi=psi, retry_key=key).notes[-1])

    assert plan(0.9, "k").endswith("left, enough for this release.")
    curator.ask(ask.count(), by="ward", groups=["A", "B"]).release(psi=0.9, retry_key="k")
    assert "less than this release needs: it would be refused." in plan(0.9, "")
    assert "the answer to this very question is stored, in entry 3: it comes again and costs nothing." in plan(0.9, "k")
    assert curator.ask(ask.count(), by="ward", groups=["A", "B"]).release(psi=0.9, retry_key="k").stored
    assert "was used for another question, in entry 2: the release would be refused." in plan(0.1, "k")
    kept.pause("survey", purpose="an audit", actor="Ann")
    assert "costs nothing" in plan(0.9, "k")
    assert curator.ask(ask.count(), by="ward", groups=["A", "B"]).release(psi=0.9, retry_key="k").stored, (
        "also when paused"
    )


def test_a_plan_of_what_was_paid_and_not_answered_under_its_key_says_that_it_is_paid_again(curator, monkeypatch):
    monkeypatch.setattr("psidp.tables.table.answer_notes", None)
    with pytest.raises(TypeError):
        curator.ask(ask.count()).release(psi=0.9, retry_key="k")
    note = str(curator.ask(ask.count()).plan(psi=0.9, retry_key="k").notes[-1])
    assert "less than this release needs: it would be refused." in note


def test_another_table_or_another_key_is_another_question(kept):
    """Not the stored answer of what was not asked: None is no 'None', and the wards of 2025 are not those of 2026."""
    curator = Curator(ROWS, unit="patient", ledger=kept, budget="survey")
    curator.ask(ask.count(), by="ward", groups=[None]).release(psi=0.1, retry_key="k")
    with pytest.raises(KeyConflictError):
        curator.ask(ask.count(), by="ward", groups=["None"]).release(psi=0.1, retry_key="k")
    curator.ask(ask.count()).release(psi=0.1, retry_key="all")
    other = Curator(ROWS.drop_columns("cost"), unit="patient", ledger=kept, budget="survey")
    with pytest.raises(KeyConflictError):
        other.ask(ask.count()).release(psi=0.1, retry_key="all")
    assert states(kept).count("spent") == 2


@pytest.mark.parametrize("source", ["v.parquet", "v.csv", "frame"])
def test_the_same_table_opened_again_is_the_same_question(kept, tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    pyarrow.parquet.write_table(ROWS, "v.parquet")
    pyarrow.csv.write_csv(ROWS, "v.csv")
    answers = []
    for _ in range(2):
        curator = Curator(ROWS if source == "frame" else source, unit="patient", ledger=kept, budget="survey")
        answers.append(curator.ask(ask.count(), where="cost > 5").release(psi=0.2, retry_key="k"))
    assert [answer.stored for answer in answers] == [False, True]
    with pytest.raises(KeyConflictError):
        curator.ask(ask.count(), where="cost > 6").release(psi=0.2, retry_key="k")


def test_a_stored_answer_does_not_trouble_the_engine(curator, monkeypatch):
    curator.ask(ask.count()).release(psi=0.5, retry_key="k")
    monkeypatch.setattr("psidp.tables.payment.prepared", None)
    assert curator.ask(ask.count()).release(psi=0.5, retry_key="k").stored


def test_what_does_not_fit_is_refused_before_the_engine_works(curator, kept, monkeypatch):
    monkeypatch.setattr("psidp.tables.payment.prepared", None)
    with pytest.raises(BudgetExceededError, match=r"has psi 1 left; this release needs 1\.5"):
        curator.ask(ask.count()).release(psi=1.5)
    with pytest.raises(BudgetExceededError, match="kappa"):
        curator.ask(ask.count(), by="ward", groups=PrivateGroups(kappa=1e-3, at_most=2)).release(psi=0.5)
    assert states(kept) == ["opened"]


class Failing:
    """A connection to DuckDB that fails from some query on, with a row in its words."""

    def __init__(self, connection, queries):
        self.connection, self.left = connection, queries

    def __getattr__(self, name):
        return getattr(self.connection, name)

    def sql(self, text):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("Could not convert 'Bob, HIV positive' to INT")
        return self.connection.sql(text)


def test_an_engine_that_fails_before_noise_costs_nothing_and_tells_nothing(curator, kept):
    engine = curator.source.engine
    engine.connection = Failing(engine.connection, queries=0)
    with pytest.raises(EngineError) as refusal:
        curator.ask(ask.count()).release(psi=0.5)
    assert "Bob" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert states(kept) == ["opened"]


def test_an_engine_that_fails_after_noise_was_drawn_has_cost(kept):
    rows = pa.table({"patient": list(range(500)), "ward": ["A"] * 500})
    curator = Curator(rows, "patient", ledger=kept, budget="survey")
    engine = curator.source.engine
    # whether texts merge, the counts by key; then the totals of what was chosen
    engine.connection = Failing(engine.connection, queries=2)
    question = curator.ask(ask.count(), by="ward", groups=PrivateGroups(kappa=1e-7, at_most=2))
    with pytest.raises(EngineError):
        question.release(psi=0.5)
    assert states(kept) == ["opened", "spent", "interrupted"]


def test_private_keys_are_stored_and_come_back(kept):
    rows = pa.table({"patient": list(range(300)), "day": [pa.scalar(0).as_py()] * 300})
    curator = Curator(rows, unit="patient", ledger=kept, budget="survey")
    first = curator.ask(ask.count(), by="day", groups=PrivateGroups(kappa=1e-8, at_most=1)).release(
        psi=0.5, retry_key="k"
    )
    again = curator.ask(ask.count(), by="day", groups=PrivateGroups(kappa=1e-8, at_most=1)).release(
        psi=0.5, retry_key="k"
    )
    assert list(first) == list(again)
    assert kept.remaining("survey").kappa == pytest.approx(1e-6 - 1e-8)


def test_unit_and_adjacency_are_the_budgets(kept):
    assert Curator(ROWS, "patient", ledger=kept, budget="survey").protects == "patient"
    other = Curator(ROWS, "patient", ledger=kept, budget="survey", adjacency="replace-one")
    with pytest.raises(MismatchError):
        other.ask(ask.count()).release(psi=0.1)
    with pytest.raises(ValueError, match="ledger and budget"):
        Curator(ROWS, "patient", ledger=kept)
    with pytest.raises(psidp.errors.UnknownBudgetError):
        Curator(ROWS, "patient", ledger=kept, budget="nobody's")
    with pytest.raises(ValueError, match="needs a ledger"):
        Curator(ROWS, "patient").ask(ask.count()).release(psi=0.1, retry_key="k")


def test_the_ledger_verifies_and_holds_no_exact_total(curator, kept):
    curator.ask(ask.count()).release(psi=0.5, retry_key="k")
    kept.verify()
    stored = next(e for e in kept.entries("survey") if e.state == "answered")
    (row,) = json.loads(stored.answer)["rows"]
    assert row["value"] != 3.0
