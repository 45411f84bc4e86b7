"""No spend above the limit without somebody else's approval of exactly its terms; none is used twice or too late."""

import json
import shlex
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from sqlalchemy import create_engine, text

import psidp
from psidp import Curator, Guarantee, Ledger, ask
from psidp.ledger.entry import INSERT, Entry
from psidp.ledger.url import LedgerUrl
from scripts import script

G = Guarantee(0.5)
LARGE = {"purpose": "a large one", "actor": "bob", "table": "visits.csv", "table_unit": "patient"}


@pytest.fixture
def limited(ledger):
    """A budget whose spends above psi 0.3 need an approval."""
    ledger.open("survey", psi=1.0, kappa=1e-6, purpose="a test", actor="ann", approval_above=0.3)
    return ledger


def spend(ledger, guarantee=G, budget="survey", **terms):
    with ledger.spend(budget, guarantee, **LARGE | terms) as entry:
        return entry.entry


def refused(ledger, *arguments, **terms):
    head = ledger.head()
    with pytest.raises(psidp.errors.ApprovalNeededError) as caught:
        spend(ledger, *arguments, **terms)
    assert ledger.head() == head
    return caught.value


def test_a_spend_up_to_the_limit_needs_nobody_and_one_above_it_somebody_else(limited):
    assert spend(limited, Guarantee(0.3)).refers == 0
    error = refused(limited)
    assert "psidp ledger request" in str(error)
    assert "--psi 0.5" in str(error)
    request = limited.request("survey", G, **LARGE)
    assert refused(limited).request == request.id
    with pytest.raises(ValueError, match="somebody else than 'bob'"):
        limited.approve(request.id, purpose="my own", actor="bob")
    for name in ("Bob", "ＢＯＢ", "b ob", "b\u043eb", "\u0412\u041e\u0412"):
        with pytest.raises(ValueError, match=r"one person's|two alphabets"):
            limited.approve(request.id, purpose="my own", actor=name)
    approval = limited.approve(request.id, purpose="agreed", actor="ann")
    assert spend(limited).refers == approval.id
    refused(limited)
    limited.verify()


@pytest.mark.parametrize(
    "terms",
    [
        {"actor": "eve"},
        {"purpose": "another one"},
        {"table": "staff.csv"},
        {"table_unit": "ward"},
        {"table": "", "table_unit": ""},
        {"guarantee": Guarantee(0.4)},
        {"guarantee": Guarantee(0.5, 1e-9)},
        {"event": {"kind": "gaussian", "sensitivity": 1.0, "sigma": 2.0}},
    ],
)
def test_an_approval_is_for_exactly_its_terms(limited, terms):
    limited.approve(limited.request("survey", G, **LARGE).id, purpose="agreed", actor="ann")
    refused(limited, **terms)
    spend(limited)


def test_an_approval_and_a_request_expire(url):
    now = [datetime(2026, 3, 1, tzinfo=UTC)]
    ledger = Ledger(url, clock=lambda: now[0])
    ledger.open("survey", psi=1.0, purpose="a test", actor="ann", approval_above=0.3)
    first = ledger.request("survey", G, **LARGE, days=10.0)
    ledger.approve(first.id, purpose="agreed", actor="ann", days=2.0)
    now[0] += timedelta(days=2, seconds=1)
    refused(ledger)
    second = ledger.request("survey", G, **LARGE, days=1.0)
    now[0] += timedelta(days=1, seconds=1)
    with pytest.raises(ValueError, match="too old"):
        ledger.approve(second.id, purpose="late", actor="ann")
    assert ledger.waiting() == []
    ledger.verify()
    for days in (0.0, -1.0, float("nan"), 1e6):
        with pytest.raises(ValueError, match=r"days \(how long it counts\) must be"):
            ledger.request("survey", G, **LARGE, days=days)
    ledger.dispose()


def test_the_budget_is_checked_again_when_an_approval_is_used(limited):
    limited.approve(limited.request("survey", Guarantee(0.9), **LARGE).id, purpose="agreed", actor="ann")
    spend(limited, Guarantee(0.3))
    spend(limited, Guarantee(0.3), purpose="again")
    spend(limited, Guarantee(0.3), purpose="and again")
    with pytest.raises(psidp.errors.BudgetExceededError):
        spend(limited, Guarantee(0.9))
    limited.verify()


def test_a_denied_request_is_not_approved_and_a_denied_approval_not_used(limited):
    first = limited.request("survey", G, **LARGE)
    limited.deny(first.id, purpose="no", actor="ann")
    with pytest.raises(ValueError, match="was used, denied or is too old"):
        limited.approve(first.id, purpose="yes", actor="ann")
    second = limited.request("survey", G, **LARGE)
    limited.approve(second.id, purpose="yes", actor="ann")
    limited.deny(second.id, purpose="I think again", actor="cem")
    refused(limited)
    with pytest.raises(ValueError, match="must be that of a request, got 1"):
        limited.approve(1, purpose="yes", actor="ann")
    limited.verify()


def test_a_request_that_needs_nobody_or_waits_already_is_refused(limited):
    with pytest.raises(ValueError, match="needs no approval"):
        limited.request("survey", Guarantee(0.2), **LARGE)
    limited.request("survey", G, **LARGE)
    with pytest.raises(ValueError, match="asks for exactly this already"):
        limited.request("survey", G, **LARGE)
    limited.limit("survey", None, purpose="no more", actor="ann")
    spend(limited)
    with pytest.raises(ValueError, match="needs no approval"):
        limited.request("survey", Guarantee(0.6), **LARGE)
    for wrong in (-1.0, float("nan"), float("inf"), "0.3"):
        with pytest.raises(ValueError, match="approval_above"):
            limited.limit("survey", wrong, purpose="q")


def test_shares_keep_the_limit_and_a_closed_budget_forgets_who_waits(limited):
    limited.request("survey", G, **LARGE)
    limited.split("survey", {"a": 1, "b": 1}, purpose="two teams", actor="ann")
    refused(limited, budget="a")
    limited.close("survey", purpose="done", actor="ann")
    assert limited.waiting() == []
    limited.verify()


def test_a_curators_release_is_approved_for_its_very_question(limited):
    visits = pa.table({"patient": [1, 1, 2, 3], "cost": [10.0, 20.0, 5.0, 7.0]})
    limited.open("visits", psi=2.0, unit="patient", purpose="a test", actor="ann", approval_above=0.3)
    with Curator(visits, unit="patient", ledger=limited, budget="visits") as curator:
        with pytest.raises(psidp.errors.ApprovalNeededError) as caught:
            curator.ask(ask.count()).release(psi=1.0, purpose="how many")
        words = shlex.split(str(caught.value).partition("Ask for it:\n")[2])
        terms = {name: words[words.index(f"--{name}") + 1] for name in ("event", "table-unit", "actor")}
        assert json.loads(terms["event"]) == caught.value.event
        request = limited.request(
            "visits", Guarantee(1.0, unit="patient"), purpose="how many", event=caught.value.event,
            table_unit=terms["table-unit"], actor=terms["actor"],
        )  # fmt: skip
        limited.approve(request.id, purpose="agreed", actor="ann")
        with pytest.raises(psidp.errors.ApprovalNeededError):
            curator.ask(ask.sum("cost", 0, 50)).release(psi=1.0, purpose="how many")
        assert curator.ask(ask.count()).release(psi=1.0, purpose="how many").guarantee.psi == 1.0
    limited.verify()


def test_a_spend_written_past_the_rules_is_found_by_verify_and_stops_the_next(limited, url):
    """Somebody writes the row himself, with a hash and totals that fit, and no approval."""
    spend(limited, Guarantee(0.3))
    made = limited._read(lambda log: log.last())
    forged = made.to_dict() | {"id": made.id + 1, "psi": 0.5, "previous": made.hash, "purpose": "past the rules"}
    forged.pop("hash")
    balance = psidp.ledger.balance.Balance.read(made.standing)
    standing = balance.after_spend(psidp.ledger.cost.Cost.of(G)).text()
    row = Entry.sealed(**forged | {"standing": standing}).row()
    engine = create_engine(LedgerUrl.parse(url).url)
    with engine.begin() as connection:
        connection.exec_driver_sql(INSERT[engine.dialect.name], row)
    engine.dispose()
    for ledger in (limited, Ledger(url)):
        with pytest.raises((psidp.errors.TamperedLedgerError, psidp.errors.ApprovalNeededError)):
            spend(ledger, Guarantee(0.1))
        with pytest.raises(psidp.errors.TamperedLedgerError, match="needs somebody else's approval"):
            ledger.verify()
        ledger.dispose()


def test_the_database_itself_refuses_a_second_use_of_an_approval(limited, url):
    limited.approve(limited.request("survey", G, **LARGE).id, purpose="agreed", actor="ann")
    used = spend(limited)
    again = Entry.sealed(**{k: v for k, v in (used.to_dict() | {"id": used.id + 1}).items() if k != "hash"}).row()
    engine = create_engine(LedgerUrl.parse(url).url)
    with pytest.raises(Exception, match=r"(?i)unique"), engine.begin() as connection:
        connection.exec_driver_sql(INSERT[engine.dialect.name], again)
    with engine.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM psidp_entries WHERE state = 'spent'")).scalar() == 1
    engine.dispose()


def test_of_many_who_use_or_give_an_approval_at_once_one_succeeds(limited, url):
    request = limited.request("survey", G, purpose="a large one", actor="bob", table="visits.csv")
    assert request.id == 2
    limited.dispose()
    outcome = script("ledger/approvals.py", "approvals", url, 8)
    assert sorted(word for word, _ in outcome) == ["accepted"] + ["refused"] * 7
    outcome = script("ledger/approvals.py", "spends", url, 12)
    assert sorted(word for word, _ in outcome) == ["accepted"] + ["refused"] * 11
    assert [e.psi for e in limited.entries() if e.state == "spent"] == [0.5]
    limited.verify()


def test_kills_between_two_statements_use_no_approval_twice(tmp_path):
    outcome = script("ledger/approvals.py", "every", tmp_path / "NUMBER.db", 5, 0)
    assert outcome["kills"] > 10
    assert outcome["found"] == [0, 1, 2, 3, 4]


def test_kills_between_two_statements_use_no_approval_twice_on_postgresql(server):
    places = [server.place(f"approvals_{number}") for number in range(60)]
    outcome = script("ledger/approvals.py", "every", places[0].replace("approvals_0", "approvals_NUMBER"), 5, 1)
    assert outcome["kills"] > 10
    assert outcome["found"] == [0, 1, 2, 3, 4]
