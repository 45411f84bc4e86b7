"""Openings: budgets opened and split into shares; several of them in one transaction."""

from collections.abc import Iterable
from typing import Any

from psidp.ledger.actor import signed
from psidp.ledger.balance import Balance
from psidp.ledger.budget import Budget, period_of
from psidp.ledger.budget_refusal import closed
from psidp.ledger.cost import shares
from psidp.ledger.entry import Entry
from psidp.ledger.log import Before, EntryLog
from psidp.ledger.report import standing_of

__all__ = ["beside", "opened", "reopened", "split"]


def opened(log: EntryLog, terms: Budget, paused: Iterable[str] = (), **more: Any) -> Entry:
    """The entry that opens a budget; who is stopped everywhere, or in the budget it is a share of, is stopped in it."""
    last = log.last()
    now, number = log.now(last), 1 if last is None else last.id + 1
    period = period_of(terms.renews, now)
    event = terms.event() | ({"period": period} if period else {}) | more
    persons = sorted({*Before(log, number).stopped_everywhere(), *paused})
    return log.append(terms, "opened", event | ({"paused": persons} if persons else {}), purpose=terms.purpose, now=now)


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
