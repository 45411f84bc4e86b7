"""Requests: somebody asks for a spend above a budget's limit, somebody else approves or denies it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psidp.errors import UnknownBudgetError
from psidp.guarantee import Guarantee
from psidp.ledger.access import Access
from psidp.ledger.actor import signed
from psidp.ledger.approvals import LONGEST_EVENT, Asked, Proposed, plain_event, terms_of, until, what_of
from psidp.ledger.balance import Balance
from psidp.ledger.budget_refusal import beyond
from psidp.ledger.cost import ZERO, Cost
from psidp.ledger.entry import Entry
from psidp.ledger.log import EntryLog
from psidp.ledger.report import standing_of
from psidp.symbols import check_text

__all__ = ["Request", "answered", "approved_beyond", "beyond_budget", "denial", "waiting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The terms of one spend that is asked for: who, of what, for what, at what price, and for how many days."""

    budget: str
    guarantee: Guarantee
    purpose: str
    event: Mapping[str, Any]
    partition: str
    what: str
    actor: str
    table: str
    table_unit: str
    days: float

    def written(self, access: Access, log: EntryLog) -> Entry:
        """The entry that asks; refused where no approval is needed."""
        check_text("purpose", self.purpose)
        if "question" in self.event:
            check_text("question", self.event["question"], LONGEST_EVENT)
        budget, price = access.budget(log, self.budget), Cost.of(self.guarantee)
        budget.check_spend(self.guarantee, self.partition)
        last = log.last_of(self.budget)
        balance = None if last is None else Balance.read(last.standing)
        if balance is not None and not balance.closed and not balance.needs_approval(price):
            limit = "no spend does" if balance.above is None else f"only spends above psi {balance.above:g} do"
            raise ValueError(
                f"psi {self.guarantee.psi:g} of budget {self.budget!r} needs no approval: {limit}. Spend it as it is."
            )
        event = {
            "kind": "requested",
            "psi": self.guarantee.psi,
            "kappa": self.guarantee.kappa,
            "what": self.what or what_of(self.event),
            "until": until(log.now(log.last()), self.days),
        }
        event = signed(event, self.actor, self.table, self.table_unit)
        event |= {} if self.what else {"event": plain_event(self.event)}
        proposed = Proposed(self.budget, "requested", event, ZERO, partition=self.partition, purpose=self.purpose)
        event["terms"] = terms_of(proposed)
        return log.append(self.budget, "requested", event, partition=self.partition, purpose=self.purpose)


def answered(log: EntryLog, state: str, request: int, actor: str, purpose: str, days: float) -> Entry:
    """The entry that approves or denies a request."""
    check_text("purpose", purpose)
    asked = log.entry(request)
    if asked is None or asked.state != "requested":
        found = "no entry has that number" if asked is None else f"entry {request} is {_is(asked)}"
        raise ValueError(
            f"request (number of the entry that asks) must be that of a request, got {request}: {found}. psidp ledger "
            "list --waiting shows the requests that wait."
        )
    event: dict[str, Any] = {"kind": state}
    if state == "approved":
        event |= {"until": until(log.now(log.last()), days), "terms": asked.details()["terms"]}
    return log.append(asked.budget, state, signed(event, actor), refers=request, purpose=purpose)


def _is(entry: Entry) -> str:
    """What an entry is, for whoever took it for a request."""
    kinds = {
        "spent": "a spend",
        "answered": f"the answer to entry {entry.refers}",
        "withheld": f"a note on entry {entry.refers}",
        "interrupted": f"a note on entry {entry.refers}",
        "approved": f"the approval of request {entry.refers}",
        "denied": f"the denial of request {entry.refers}",
    }
    return kinds.get(entry.state, f"a change of budget {entry.budget!r} ({entry.state})")


def beyond_budget(access: Access, log: EntryLog, budget: str, guarantee: Guarantee, partition: str) -> str:
    """That a request is for more than the budget has left now, in words; "" where it fits, or no spend ever does."""
    terms, price = access.budget(log, budget), Cost.of(guarantee)
    standing = standing_of(log, terms, partition)
    left = standing.left(bool(partition))
    if price.fits(left) or standing.closed:
        return ""
    return beyond(budget, price, left, standing.cap, terms.renews)


def approved_beyond(access: Access, log: EntryLog, request: int) -> str:
    """The same of a request that is written already; "" where the entry is none."""
    asked = log.entry(request)
    if asked is None or asked.state != "requested":
        return ""
    price = asked.details()
    return beyond_budget(access, log, asked.budget, Guarantee(price["psi"], price["kappa"]), asked.partition)


def denial(log: EntryLog, spend: Proposed) -> str:
    """Who denied a request for exactly this spend, in words; "" where nobody did."""
    terms = terms_of(spend)
    for entry in reversed(log.changes(spend.budget)):
        asked = log.entry(entry.refers) if entry.state == "denied" else None
        if asked is not None and asked.details()["terms"] == terms:
            by = entry.details()["by"]
            return f"Request {asked.id} for exactly this was denied by {by!r} in entry {entry.id}: {entry.purpose!r}."
    return ""


def waiting(log: EntryLog, budget: str = "") -> list[tuple[Entry, Asked]]:
    """The requests that wait, and the approvals that were not used and still count, the oldest first."""
    names = [entry.budget for entry in log.changes() if entry.state == "opened"]
    if budget and budget not in names:
        raise UnknownBudgetError(f"no budget {budget!r} was opened in this ledger. psidp ledger show lists them.")
    now, found = log.stamp(), []
    for name in [budget] if budget else names:
        last = log.last_of(name)
        for asked in () if last is None else Balance.read(last.standing).waiting:
            entry = log.entry(asked.id)
            if entry is not None and now <= asked.until:
                found.append((entry, asked))
    return sorted(found, key=lambda pair: pair[0].id)
