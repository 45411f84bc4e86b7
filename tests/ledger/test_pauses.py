"""Budgets and people are paused and go on; a closed budget gives one advice; a forged head takes no spend."""

import pytest
from sqlalchemy import create_engine, text

import psidp
from psidp import Guarantee, Ledger
from psidp.ledger.balance import Balance
from psidp.ledger.entry import Entry
from psidp.ledger.url import LedgerUrl

Paused = psidp.errors.BudgetPausedError


def spend(ledger, psi=0.1, budget="survey", actor="bob", **more):
    with ledger.spend(budget, Guarantee(psi), purpose="a test", actor=actor, **more) as entry:
        return entry.entry


def test_a_paused_budget_takes_no_spend_until_it_is_resumed_and_stored_answers_come_back(survey):
    with survey.spend("survey", Guarantee(0.1), purpose="q", retry_key="k") as entry:
        entry.answer(lambda: 41.5)
    survey.pause("survey", purpose="an audit", actor="ann")
    head = survey.head()
    with pytest.raises(Paused, match="is paused; nothing was spent"):
        spend(survey)
    with survey.spend("survey", Guarantee(0.1), purpose="q", retry_key="k") as entry:
        assert entry.answer(lambda: 0.0) == 41.5
    assert survey.head() == head
    with pytest.raises(ValueError, match="paused already"):
        survey.pause("survey", purpose="again")
    survey.resume("survey", purpose="it is over", actor="ann")
    spend(survey)
    with pytest.raises(ValueError, match="not paused"):
        survey.resume("survey", purpose="again")
    assert [c.state for c in survey.report("survey").changes] == ["opened", "paused", "resumed"]
    survey.verify()


def test_a_person_is_stopped_in_every_budget_also_in_those_opened_later(survey):
    survey.open("second", psi=1.0, purpose="q", actor="ann")
    made = survey.pause(person="bob", purpose="has left", actor="ann")
    assert [entry.budget for entry in made] == ["survey", "second"]
    survey.open("third", psi=1.0, purpose="q", actor="ann")
    for budget in ("survey", "second", "third"):
        with pytest.raises(Paused, match="for 'bob'"):
            spend(survey, budget=budget)
        spend(survey, budget=budget, actor="cem")
    survey.resume("third", person="bob", purpose="there he may", actor="ann")
    spend(survey, budget="third")
    survey.resume(person="bob", purpose="is back", actor="ann")
    spend(survey)
    survey.open("fourth", psi=1.0, purpose="q", actor="ann")
    spend(survey, budget="fourth")
    with pytest.raises(ValueError, match="must be named"):
        survey.pause(purpose="whom?")
    with pytest.raises(ValueError, match="person must be"):
        survey.resume(person="dee", purpose="was never paused")
    survey.verify()


@pytest.mark.parametrize("name", ["bob", "Bob", "BOB", "bo b", "ｂｏｂ", "\u0412\u041e\u0412"])
def test_a_pause_holds_however_the_name_is_written(survey, name):
    survey.pause("survey", person="bob", purpose="has left", actor="ann")
    with pytest.raises(Paused, match="is paused for"):
        spend(survey, actor=name)
    spend(survey, actor="rob")
    with pytest.raises(ValueError, match="paused already for 'bob'"):
        survey.pause("survey", person=name, purpose="again", actor="ann")
    with pytest.raises(ValueError, match="the pause of 'bob' must be ended by somebody else, got actor="):
        survey.resume("survey", person="bob", purpose="let me", actor=name)
    with pytest.raises(ValueError, match="must be ended by somebody else"):
        survey.resume(person=name, purpose="let me", actor="bob")
    made = survey.resume("survey", person=name, purpose="is back", actor="ann")
    assert made[0].details()["person"] == "bob", "as the pause spelled it"
    spend(survey, actor="bob")
    survey.verify()


def test_a_pause_everywhere_ends_however_the_name_is_written(survey):
    survey.open("second", psi=1.0, purpose="q", actor="ann")
    survey.pause("second", person="BOB", purpose="there", actor="ann")
    assert [entry.budget for entry in survey.pause(person="bob", purpose="has left", actor="ann")] == ["survey"]
    survey.open("third", psi=1.0, purpose="q", actor="ann")
    with pytest.raises(Paused):
        spend(survey, budget="third", actor="Bob")
    assert len(survey.resume(person="Bob", purpose="is back", actor="ann")) == 3
    survey.open("fourth", psi=1.0, purpose="q", actor="ann")
    spend(survey, budget="fourth")
    survey.verify()


def test_one_person_alone_is_never_locked_out(survey):
    survey.pause("survey", purpose="a holiday", actor="bob")
    survey.resume("survey", purpose="is back", actor="bob")
    survey.pause("survey", person="bob", purpose="my own name", actor="bob")
    survey.resume("survey", person="bob", purpose="my own pause", actor="Bob")
    survey.pause(person="bob", purpose="everywhere", actor="bob")
    survey.open("second", psi=1.0, purpose="q", actor="bob")
    survey.resume(person="bob", purpose="my own pause", actor="bob")
    for budget in ("survey", "second"):
        spend(survey, budget=budget)
    survey.verify()


def test_a_closed_budget_gives_the_same_advice_whatever_is_asked(survey):
    survey.close("survey", purpose="done", actor="ann")
    for ask in (
        lambda: spend(survey),
        lambda: survey.open("survey", psi=1.0, purpose="again"),
        lambda: survey.open("survey", psi=1.0, kappa=1e-6, purpose="the 2026 survey", exist_ok=True),
        lambda: survey.raise_to("survey", psi=9.0, purpose="q"),
        lambda: survey.reset("survey", purpose="q"),
        lambda: survey.pause("survey", purpose="q"),
        lambda: survey.close("survey", purpose="q"),
        lambda: survey.request("survey", Guarantee(0.1), purpose="q"),
    ):
        with pytest.raises(psidp.errors.BudgetClosedError, match="open a new budget under another name"):
            ask()
    assert survey.head().id == 2


def test_a_script_may_run_again_with_the_same_terms_and_no_others(ledger):
    terms = {"psi": 1.0, "purpose": "a script", "unit": "patient", "approval_above": 0.5, "table": "visits.csv"}
    first = ledger.open("survey", **terms, actor="ann")
    assert ledger.open("survey", **terms | {"purpose": "other words"}, actor="bob", exist_ok=True) == first
    assert ledger.head().id == 1
    for other in ({"psi": 2.0}, {"unit": "visit"}, {"renews": "year"}, {"approval_above": None}, {"table": ""}):
        with pytest.raises(ValueError, match="was opened with"):
            ledger.open("survey", **terms | other, exist_ok=True)
    with pytest.raises(ValueError, match="--exist-ok"):
        ledger.open("survey", **terms)


def test_budgets_beside_each_other_are_named(ledger):
    for name, unit, table in (
        ("a", "patient", ""),
        ("b", "patient", "visits"),
        ("c", "patient", "staff"),
        ("d", "ward", ""),
    ):
        ledger.open(name, psi=1.0, unit=unit, table=table, purpose="q")
    assert ledger.beside("a") == ["b", "c"]
    assert ledger.beside("b") == ["a"]
    assert ledger.beside("d") == []
    ledger.close("b", purpose="q")
    assert ledger.beside("a") == ["c"]


def forge(ledger, url, statement, row=()):
    """Somebody who owns the database takes the guards away and changes its end."""
    engine = create_engine(LedgerUrl.parse(url).url)
    guards = ["DROP TRIGGER psidp_entries_keep", "DROP TRIGGER psidp_entries_stay"]
    guards = guards if engine.dialect.name == "sqlite" else ["ALTER TABLE psidp_entries DISABLE TRIGGER ALL"]
    with engine.begin() as connection:
        for guard in guards:
            connection.execute(text(guard))
        connection.execute(text(statement), dict(row))
    engine.dispose()


def rewritten(entry, **changes):
    """The values of an entry that was changed and given a hash that fits."""
    columns = {k: v for k, v in (entry.to_dict() | changes).items() if k != "hash"}
    return Entry.sealed(**columns).to_dict()


UPDATE = "UPDATE psidp_entries SET standing = :standing, psi = :psi, previous = :previous, hash = :hash WHERE id = :id"


@pytest.mark.parametrize("fresh", [False, True], ids=["who wrote it", "a new process"])
@pytest.mark.parametrize("what", ["standing", "previous", "psi"])
def test_nothing_is_spent_on_a_head_that_was_rewritten_with_a_fitting_hash(survey, url, fresh, what):
    spend(survey, 0.5)
    last = spend(survey, 0.5)
    cheap = Balance.read(last.standing)
    change = {
        "standing": {"standing": Balance(cheap.cap).text()},
        "previous": {"previous": "0" * 64},
        "psi": {"psi": 0.01},
    }[what]
    forge(survey, url, UPDATE, rewritten(last, **change).items())
    ledger = Ledger(url) if fresh else survey
    drawn = []
    with pytest.raises(psidp.errors.TamperedLedgerError, match="entry 3 is not what was written"):
        drawn.append(spend(ledger, 0.1))
    assert not drawn
    ledger.dispose()


def test_a_process_that_saw_more_entries_refuses_a_ledger_that_was_cut(survey, url):
    for _ in range(3):
        spend(survey)
    forge(survey, url, "DELETE FROM psidp_entries WHERE id > 2")
    with pytest.raises(psidp.errors.TamperedLedgerError, match="entry 4 is not what was written: it was there"):
        spend(survey)


def test_a_budget_whose_last_entry_was_rewritten_takes_no_spend_though_others_came_after(survey, url):
    last = spend(survey, 0.5)
    for name in ("other", "and another"):
        survey.open(name, psi=1.0, purpose="q")
    cheap = Balance(Balance.read(last.standing).cap).text()
    forge(survey, url, UPDATE, rewritten(last, standing=cheap).items())
    with Ledger(url) as fresh, pytest.raises(psidp.errors.TamperedLedgerError, match="entry 2 is not what was written"):
        spend(fresh)


@pytest.mark.parametrize("person", ["", "bob"])
def test_a_share_of_a_paused_budget_is_paused_for_the_same_people(survey, person):
    survey.pause("survey", person=person, purpose="a complaint", actor="officer")
    survey.split("survey", {"one": 1.0, "two": 1.0}, purpose="two teams", actor="officer")
    with pytest.raises(Paused):
        spend(survey, budget="one")
    survey.resume("one", person=person, purpose="it was nothing", actor="officer")
    spend(survey, budget="one")
    survey.verify()
