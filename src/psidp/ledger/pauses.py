"""Pauses: budgets and people are stopped and go on. An entry names a person as the pause did that it speaks of."""

from psidp.ledger.actor import signed
from psidp.ledger.balance import EVERYBODY, Balance
from psidp.ledger.entry import Entry
from psidp.ledger.log import EntryLog
from psidp.ledger.names import check_name, same_person

__all__ = ["stopped"]


def stopped(log: EntryLog, state: str, budget: str, person: str, actor: str, purpose: str) -> list[Entry]:
    """The entries that pause or resume a budget; or a person, in one budget or, without one, in all that are open."""
    if not budget and person == EVERYBODY:
        raise ValueError("a budget, or a person who is meant in all of them, must be named.")
    if budget:
        log.opening_of(budget)
        return [_appended(log, state, budget, person, actor, purpose)]
    made = []
    for name in [entry.budget for entry in log.changes() if entry.state == "opened"]:
        balance = _balance(log, name)
        if balance is not None and not balance.closed and bool(_spelled(balance, person)) == (state == "resumed"):
            made.append(_appended(log, state, name, person, actor, purpose, everywhere=True))
    if not made:
        raise ValueError(f"person must be one who is {'not yet ' if state == 'paused' else ''}paused, got {person!r}.")
    return made


def _appended(
    log: EntryLog, state: str, budget: str, person: str, actor: str, purpose: str, everywhere: bool = False
) -> Entry:
    """One more entry, which names the person as the pause did."""
    balance = _balance(log, budget)
    known = "" if balance is None or not person else _spelled(balance, person)
    if person and not known:
        check_name("person", person)
    event = signed({"kind": state} | ({"person": known or person} if person else {}), actor)
    return log.append(budget, state, event | ({"everywhere": True} if everywhere else {}), purpose=purpose)


def _balance(log: EntryLog, budget: str) -> Balance | None:
    last = log.last_of(budget)
    return None if last is None else Balance.read(last.standing)


def _spelled(balance: Balance, person: str) -> str:
    """A person's name as the pause has it; "" where there is none."""
    return next((name for name in balance.paused if name and same_person(name, person)), "")
