"""Openings: budgets opened, split into shares, paused and resumed; several of them in one transaction."""

from collections.abc import Iterable
from typing import Any

from psidp.ledger.actor import signed
from psidp.ledger.balance import EVERYBODY, Balance
from psidp.ledger.budget import Budget, period_of
from psidp.ledger.budget_refusal import closed
from psidp.ledger.cost import shares
from psidp.ledger.entry import Entry
from psidp.ledger.log import EntryLog
from psidp.ledger.report import standing_of

__all__ = ["beside", "opened", "reopened", "split", "stopped"]


def opened(log: EntryLog, terms: Budget, paused: Iterable[str] = (), **more: Any) -> Entry:
    """The entry that opens a budget; who is stopped everywhere, or in the budget it is a share of, is stopped in it."""
    period = period_of(terms.renews, log.now(log.last()))
    event = terms.event() | ({"period": period} if period else {}) | more
    persons = sorted({*_stopped_everywhere(log), *paused})
    return log.append(terms, "opened", event | ({"paused": persons} if persons else {}), purpose=terms.purpose)


def reopened(log: EntryLog, terms: Budget) -> Entry:
    """The entry that opened a budget, now or earlier with the same terms; refused where they differ or it is closed."""
    last = log.last_of(terms.name)
    if last is None:
        return opened(log, terms)
    log.budget(terms.name).same_terms(terms)
    if Balance.read(last.standing).closed:
        raise closed(terms.name)
    return log.opening_of(terms.name)


def split(log: EntryLog, terms: Budget, weights: dict[str, float], actor: str, purpose: str) -> list[Entry]:
    """The entry that gives all that is left away, and those that open the shares, with its limit and pauses."""
    if terms.renews:
        raise ValueError(f"budget {terms.name!r} renews; a share of it would not. Split a budget that does not renew.")
    balance = standing_of(log, terms)
    left = balance.left()
    parts = shares(left, weights)
    event = {"kind": "split", "taken": left.text(), "shares": {share: part.text() for share, part in parts.items()}}
    made = [log.append(terms.name, "split", signed(event, actor), purpose=purpose)]
    for share, part in parts.items():
        child = Budget(
            name=share, guarantee=part.guarantee_below(terms.guarantee), actor=actor, purpose=purpose,
            part_of=terms.name, approval_above=balance.above, table=terms.table,
        )  # fmt: skip
        made.append(opened(log, child, balance.paused, cap=part.text()))
    return made


def stopped(log: EntryLog, state: str, budget: str, person: str, actor: str, purpose: str) -> list[Entry]:
    """The entries that pause or resume a budget; or a person, in one budget or, without one, in all that are open."""
    event = signed({"kind": state} | ({"person": person} if person else {}), actor)
    if budget:
        log.opening_of(budget)
        return [log.append(budget, state, event, purpose=purpose)]
    if person == EVERYBODY:
        raise ValueError("a budget, or a person who is meant in all of them, must be named.")
    made = []
    for entry in log.changes():
        last = log.last_of(entry.budget) if entry.state == "opened" else None
        balance = None if last is None else Balance.read(last.standing)
        if balance is not None and not balance.closed and (person in balance.paused) == (state == "resumed"):
            made.append(log.append(entry.budget, state, event | {"everywhere": True}, purpose=purpose))
    if not made:
        raise ValueError(f"person must be one who is {'not yet ' if state == 'paused' else ''}paused, got {person!r}.")
    return made


def beside(log: EntryLog, terms: Budget) -> list[str]:
    """Other open budgets that protect the same unit, for the same table or for one that was not said."""
    found = []
    for entry in log.changes():
        other = entry.details()
        same = entry.state == "opened" and (other["unit"], other["adjacency"]) == (terms.unit, terms.adjacency)
        elsewhere = terms.table and other.get("table", terms.table) != terms.table
        if not same or elsewhere or entry.budget == terms.name:
            continue
        last = log.last_of(entry.budget)
        if last is not None and not Balance.read(last.standing).closed:
            found.append(entry.budget)
    return found


def _stopped_everywhere(log: EntryLog) -> set[str]:
    """Who was paused in all budgets, and not resumed in all of them since."""
    persons: set[str] = set()
    for entry in log.changes():
        if entry.state in ("paused", "resumed") and entry.details().get("everywhere"):
            (persons.add if entry.state == "paused" else persons.discard)(entry.details()["person"])
    return persons
