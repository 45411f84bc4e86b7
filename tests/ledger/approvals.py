"""Requests, approvals and spends above a limit, by processes that race or are killed. Run as a script."""

import json
import os
import sys

from psidp import Guarantee, Ledger
from psidp.errors import ApprovalNeededError, BudgetExceededError, LedgerBusyError, NotALedgerError

LARGE = {"purpose": "a large one", "actor": "bob", "table": "visits.csv"}


def spends(url, budget, _):
    """Whether this process spent what was approved once."""
    try:
        with Ledger(url, patience=120.0).spend(budget, Guarantee(0.5), **LARGE):
            return [("accepted", 0.5)]
    except ApprovalNeededError:
        return [("refused", 0.5)]
    except (LedgerBusyError, BudgetExceededError) as error:
        return [(type(error).__name__, 0.5)]


def approvals(url, budget, number):
    """Whether this process approved the request, as somebody whose name nobody else has."""
    try:
        Ledger(url, patience=120.0).approve(2, purpose="a race", actor=f"officer {number[0]}")
        return [("accepted", 0.0)]
    except ValueError:
        return [("refused", 0.0)]


def scene(url):
    """A budget with a limit, a request, its approval, and the spend that uses it."""
    ledger = Ledger(url)
    ledger.open("survey", psi=1.0, purpose="to be killed", actor="ann", approval_above=0.3)
    entry = ledger.request("survey", Guarantee(0.5), **LARGE)
    ledger.approve(entry.id, purpose="agreed", actor="ann")
    with ledger.spend("survey", Guarantee(0.5), **LARGE):
        pass


def gone_on(url):
    """The scene finished by another process after a kill: exactly one spend, of one approval, whatever was there."""
    ledger = Ledger(url)
    try:
        ledger.verify()
        states = [entry.state for entry in ledger.entries()]
    except NotALedgerError:
        states = []
    assert states == ["opened", "requested", "approved", "spent"][: len(states)], states
    if not states:
        ledger.open("survey", psi=1.0, purpose="again", actor="ann", approval_above=0.3)
    if "requested" not in states:
        ledger.request("survey", Guarantee(0.5), **LARGE)
    if "approved" not in states:
        refused(ledger)
        ledger.approve(2, purpose="agreed", actor="ann")
    if "spent" not in states:
        with ledger.spend("survey", Guarantee(0.5), **LARGE):
            pass
    refused(ledger)
    large = [entry for entry in ledger.entries() if entry.state == "spent"]
    assert [(entry.psi, entry.refers) for entry in large] == [(0.5, 3)]
    ledger.verify()
    ledger.dispose()
    return len(states)


def refused(ledger):
    try:
        with ledger.spend("survey", Guarantee(0.5), **LARGE):
            raise AssertionError("it was not approved, or was used before")
    except ApprovalNeededError:
        pass


def every_statement(fresh_url, stride, first):
    """The scene killed between two statements, one pair in `stride`, and gone on with each time."""
    found = set()
    for kills, statements in enumerate(range(first, 1000, stride)):
        url = fresh_url(kills)
        child = os.fork()
        if child == 0:
            try:
                kill_after(statements)
                scene(url)
                os._exit(0)
            finally:
                os._exit(3)
        _, status = os.waitpid(child, 0)
        found.add(gone_on(url))
        if not os.WIFSIGNALED(status):
            return {"kills": kills, "found": sorted(found)}
    raise AssertionError("the scene never ended")


if __name__ == "__main__":
    from crash import kill_after  # beside this file
    from race import race

    what, where, amount = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if what == "every":
        print(json.dumps(every_statement(lambda kill: where.replace("NUMBER", str(kill)), amount, int(sys.argv[4]))))
    else:
        work = spends if what == "spends" else approvals
        print(json.dumps(race(where, "survey", [[number] for number in range(amount)], work)))
