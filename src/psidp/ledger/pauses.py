"""Pauses: budgets and people are stopped and go on. Names are compared here, before anything is written, as people are
told apart (`same_person`); the entries hold them to the letter, which is what verifying goes by."""

from psidp.ledger.actor import same_person, signed
from psidp.ledger.balance import EVERYBODY, Balance
from psidp.ledger.entry import Entry
from psidp.ledger.log import EntryLog

__all__ = ["stopped", "stopped_everywhere"]


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


def stopped_everywhere(log: EntryLog) -> list[str]:
    """Who was paused in all budgets, and not resumed in all of them since."""
    persons: list[str] = []
    for entry in log.changes():
        if entry.state in ("paused", "resumed") and entry.details().get("everywhere"):
            person = entry.details()["person"]
            persons = [name for name in persons if not same_person(name, person)]
            persons += [person] if entry.state == "paused" else []
    return persons


def _appended(
    log: EntryLog, state: str, budget: str, person: str, actor: str, purpose: str, everywhere: bool = False
) -> Entry:
    """One more entry, which names the person as the pause did."""
    balance = _balance(log, budget)
    known = "" if balance is None or not person else _spelled(balance, person)
    if (
        known
        and state == "resumed"
        and same_person(known, actor)
        and not same_person(_pauser(log, budget, known), actor)
    ):
        raise ValueError(f"the pause of {known!r} must be ended by somebody else, got actor={actor!r}.")
    event = signed({"kind": state} | ({"person": known or person} if person else {}), actor)
    return log.append(budget, state, event | ({"everywhere": True} if everywhere else {}), purpose=purpose)


def _balance(log: EntryLog, budget: str) -> Balance | None:
    last = log.last_of(budget)
    return None if last is None else Balance.read(last.standing)


def _spelled(balance: Balance, person: str) -> str:
    """A person's name as the pause has it; "" where there is none."""
    return next((name for name in balance.paused if name and same_person(name, person)), "")


def _pauser(log: EntryLog, budget: str, person: str) -> str:
    """Who paused a person in a budget; where the budget was opened later, who did it elsewhere."""
    pauses = [e for e in log.changes() if e.state == "paused" and same_person(e.details().get("person", ""), person)]
    mine = [entry for entry in pauses if entry.budget == budget] or pauses
    return str(mine[-1].details()["by"]) if mine else ""
