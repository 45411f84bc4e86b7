"""A ledger that an older version wrote, under older words, opens, verifies, answers and goes on."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import psidp
from psidp import Curator, GaussianMechanism, Guarantee, Ledger, ask
from psidp.ledger import schema
from psidp.ledger.listing import Selection
from psidp.tables.stored import read_answer
from reference.make_old_ledger import VISITS

OLD = Path(__file__).parent.parent / "reference" / "old_ledger.db"
HEAD = "20:ce49ae4dac5b22f71513dca157f0713eee552b1329dbbc00488938c1b9bda3bc"
ASKED = {"by": "ward", "groups": ["A", "B"], "confidence": 0.9}
PAID = {"psi": 0.5, "purpose": "wards", "retry_key": "w-1"}


@pytest.fixture
def ledger(tmp_path):
    """A copy of the old file, at home where it lies now."""
    shutil.copy(OLD, tmp_path / "ledger.db")
    with Ledger(tmp_path / "ledger.db", clock=lambda: datetime(2027, 2, 3, tzinfo=UTC)) as old:
        old.moved(actor="Ann", purpose="kept for the tests")
        yield old


def test_it_opens_and_verifies_to_its_head(ledger):
    head = ledger.verify(HEAD)
    assert head == ledger.head()
    assert ledger.budgets() == ["survey", "numbers", "sites", "team", "left", "right", "run"]
    assert ledger.budget("survey").actor == "Ann"
    assert ledger.report("numbers").cap.psi == 1.5


def test_a_copy_that_was_not_declared_is_refused_as_ever(tmp_path):
    shutil.copy(OLD, tmp_path / "ledger.db")
    with Ledger(tmp_path / "ledger.db") as copy, pytest.raises(psidp.errors.LedgerUnavailableError, match="old_ledger"):
        copy.remaining("survey")


def test_the_answer_to_a_table_is_read_under_its_retry_key_and_the_key_never_pays_again(ledger):
    before = ledger.head()
    with Curator(pa.table(VISITS), unit="patient", ledger=ledger, budget="survey") as curator:
        for asks in ((ask.count(), ask.mean("cost", 0, 50)), (ask.count(),)):
            with pytest.raises(psidp.errors.KeyConflictError, match=r"psidp ledger answer .* w-1 "):
                curator.ask(*asks, **ASKED).release(**PAID)
        answer = read_answer(ledger.answer("w-1"))
        assert answer.confidence == 0.9
        assert [(row["ward"], row["statistic"]) for row in answer] == [
            ("A", "count"), ("A", "mean of cost"), ("B", "count"), ("B", "mean of cost"),
        ]  # fmt: skip
        assert ledger.head() == before


def test_the_answer_of_a_mechanism_comes_back_too(ledger):
    before = ledger.head()
    mechanism = GaussianMechanism(1.0, 4.0, ledger=ledger, budget="numbers")
    release = mechanism.release([7.0, 7.0, 7.0], purpose="three sums", retry_key="n-1")
    assert release.stored
    assert release.value.tolist() == [7.905336141586304, -0.4236879348754883, 8.644112586975098]
    assert ledger.head() == before


def test_spending_goes_on_where_it_was(ledger):
    assert ledger.remaining("sites", "north").psi == pytest.approx((1 - 0.8**2 - 0.25**2) ** 0.5)
    with ledger.spend("sites", Guarantee(0.5), purpose="more", partition="north"):
        pass
    with (
        pytest.raises(psidp.errors.BudgetExceededError),
        ledger.spend("sites", Guarantee(0.5), purpose="too much", partition="north"),
    ):
        pass
    assert ledger.remaining("team").psi == 0.0
    assert ledger.remaining("left").psi == pytest.approx((3.0 - 0.25) ** 0.5)
    with ledger.spend("right", Guarantee(2.0), purpose="more"):
        pass
    with ledger.spend("run", Guarantee(4.0), purpose="a new year"):
        pass
    with Curator(pa.table(VISITS), unit="patient", ledger=ledger, budget="survey") as curator:
        assert not curator.ask(ask.count()).release(psi=0.5, retry_key="w-2").stored
    assert ledger.remaining("survey").psi == pytest.approx((4.0 - 0.3**2 - 0.5**2 - 0.5**2) ** 0.5)
    ledger.verify()


def test_another_unit_column_is_refused_as_the_old_entry_says(ledger):
    with pytest.raises(psidp.errors.MismatchError, match="'patient'"):
        Curator(pa.table(VISITS), unit="ward", ledger=ledger, budget="survey")


def test_it_is_read_as_it_is_and_brought_forward_when_it_is_first_written_to(ledger):
    version = lambda: ledger._store.read(lambda c: schema.version_of(c, ""))  # noqa: E731
    assert ledger.verify(HEAD) == ledger.head()
    assert ledger.list(Selection(budget="sites"))[0].purpose == "visits"
    assert ledger.list(Selection(actor="Ann", state="")) == []
    assert ledger.statement().tables["(not said)"]["spends"] == 8
    assert version() == 1
    before = [entry.to_dict() for entry in ledger.entries()]
    with ledger.spend("sites", Guarantee(0.1), purpose="more", partition="north", actor="Dee"):
        pass
    assert version() == schema.VERSION
    assert [entry.to_dict() for entry in ledger.entries()][: len(before)] == before
    assert {entry.state for entry in ledger.list(Selection(actor="Ann", state=""))} == {"opened", "raised"}
    assert [entry.purpose for entry in ledger.list(Selection(actor="Dee"))] == ["more"]
    ledger.verify(HEAD)


def test_it_can_be_limited_and_paused_like_a_new_one(ledger):
    ledger.limit("numbers", 0.1, purpose="large ones wait", actor="Ann")
    with pytest.raises(psidp.errors.ApprovalNeededError), ledger.spend("numbers", Guarantee(0.2), purpose="q"):
        pass
    ledger.pause("numbers", purpose="q", actor="Ann")
    with pytest.raises(psidp.errors.BudgetPausedError), ledger.spend("numbers", Guarantee(0.01), purpose="q"):
        pass
    ledger.verify(HEAD)
