"""Approvals: requests that wait, and approvals that were not used. Both are part of a budget's balance.

A request writes down the terms of one spend. Somebody else approves it, for a time. The spend has to have exactly these
terms, and uses the approval up.

    requested   {"kind": "requested", "by": "bob", "psi": 0.5, "kappa": 0.0, "what": "...", "terms": "...",
                 "until": "2026-02-28T12:00:00.000000Z",     what is asked for; `what` is a digest of the event, and
                 "event": {...}}                             `event` that very event, for whoever approves it; older
                                                             requests may have the digest alone
    approved    {"kind": "approved", "by": "ann", "until": "..."}, refers to the request
    denied      {"kind": "denied", "by": "ann"}, refers to the request, also to one that was approved and not used
    spent       refers to the approval
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from shlex import quote
from typing import Any, NamedTuple, Self

from psidp.errors import ApprovalNeededError
from psidp.guarantee import Guarantee
from psidp.ledger.actor import UNASKED
from psidp.ledger.cost import ZERO, Cost
from psidp.ledger.entry import Entry, digest, moment, stamp
from psidp.ledger.names import same_person
from psidp.maths.rounding import digits_up

__all__ = [
    "LONGEST_EVENT",
    "Asked",
    "Needed",
    "Proposed",
    "approval_of",
    "asked_after",
    "plain_event",
    "terms_of",
    "until",
    "what_of",
]

MOST = 64
"""Requests that may wait in one budget; each is part of every balance until it is used, denied or too old."""

LONGEST_DAYS = 366.0

DIGEST = re.compile(r" \[sha256 [0-9a-f]{64}\]\Z")
"""What ends a question in an event; text in a condition may look like it, and does not end it."""

LONGEST_EVENT = 8_000
"""Letters of an event that a refusal prints for the request to repeat."""


class Needed(NamedTuple):
    """An approval that a spend needs: of which psi and budget, the request that waits, or else how to ask for it."""

    psi: float
    budget: str
    request: int = 0
    question: str = ""
    flags: str = ""

    def sentence(self, ledger: str = "LEDGER", denied: str = "") -> str:
        """The refusal with the command that goes on; `denied` says who denied the same before."""
        above = f"psi {digits_up(self.psi, 6):g} of budget {self.budget!r} needs somebody else's approval"
        nothing = "nothing was spent and nothing released."
        if self.request:
            command = f"psidp ledger approve {ledger} {self.request}."
            return f"{above}; {nothing} Request {self.request} waits for it: {command}"
        told = f" It would release: {self.question}." if self.question else ""
        ask = f" {denied}\nAsk again:\n" if denied else "\nAsk for it:\n"
        return f"{above}; {nothing}{told}{ask}psidp ledger request {ledger} {quote(self.budget)} {self.flags}"


class Proposed(NamedTuple):
    """An entry before it is written, or one that is verified: what the rules look at."""

    budget: str
    state: str
    event: Mapping[str, Any]
    price: Cost
    psi: float = 0.0
    kappa: float = 0.0
    partition: str = ""
    purpose: str = ""
    time: str = ""
    id: int = 0
    refers: int = 0
    key: str = ""
    request: str = ""
    answer: str = ""

    @classmethod
    def again(cls, entry: Entry) -> Self:
        """An entry that was written, as it was proposed."""
        return cls(
            entry.budget, entry.state, entry.details(),
            Cost.of(Guarantee(entry.psi, entry.kappa)) if entry.state == "spent" else ZERO,
            entry.psi, entry.kappa, entry.partition, entry.purpose, entry.time, entry.id, entry.refers, entry.key,
            entry.request, entry.answer,
        )  # fmt: skip


class Asked(NamedTuple):
    """A request: who made it, a digest of its terms, until when it counts, and the entry that approved it, or 0."""

    id: int
    by: str
    terms: str
    until: str
    approved: int = 0


Waiting = tuple[Asked, ...]


def what_of(event: Mapping[str, Any]) -> str:
    """A digest of what is released: the event without who, which table and which unit column."""
    return digest(plain_event(event))


def plain_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """The event without who, which table and which unit column: what `what_of` is a digest of."""
    return {name: value for name, value in event.items() if name not in UNASKED}


def terms_of(entry: Proposed) -> str:
    """A digest of all terms of a spend, or of the spend that a request asks for."""
    event, requested = entry.event, entry.state == "requested"
    return digest(
        {
            "budget": entry.budget,
            "by": event["by"],
            "psi": event["psi"] if requested else entry.psi,
            "kappa": event["kappa"] if requested else entry.kappa,
            "partition": entry.partition,
            "purpose": entry.purpose,
            "table": event.get("table", ""),
            "table_unit": event.get("table_unit", ""),
            "what": event["what"] if requested else what_of(event),
        }
    )


def until(now: datetime, days: float) -> str:
    """The moment so many days from now, as entries write it."""
    if not 0.0 < days <= LONGEST_DAYS:
        raise ValueError(f"days (how long it counts) must be in (0, {LONGEST_DAYS:g}], got days={days}.")
    return stamp(now + timedelta(days=days))


def approval_of(waiting: Waiting, entry: Proposed) -> int:
    """The approval of exactly these terms that is not used and not too old; refused where there is none."""
    terms = terms_of(entry)
    mine = [asked for asked in waiting if asked.terms == terms and entry.time <= asked.until]
    for asked in mine:
        if asked.approved:
            return asked.approved
    raise _needed(entry, mine)


def asked_after(waiting: Waiting, entry: Proposed) -> Waiting:
    """What waits after a request, an approval, a denial or a spend; or the refusal of one that must not be."""
    if entry.state == "requested":
        return _requested(tuple(asked for asked in waiting if entry.time <= asked.until), entry)
    if entry.state == "spent":
        if approval_of(waiting, entry) != entry.refers:
            raise ApprovalNeededError(f"entry {entry.refers} does not approve this spend.")
        return tuple(asked for asked in waiting if asked.approved != entry.refers)
    found = next((asked for asked in waiting if asked.id == entry.refers), None)
    if found is None or not entry.time <= found.until:
        raise ValueError(
            f"request (number of the entry that asks) must be one that waits in budget {entry.budget!r}, got "
            f"{entry.refers}: it was used, denied or is too old, or is none. psidp ledger list --waiting shows them."
        )
    if entry.state == "denied":
        return tuple(asked for asked in waiting if asked is not found)
    return tuple(_approved(asked, entry) if asked is found else asked for asked in waiting)


def _requested(waiting: Waiting, entry: Proposed) -> Waiting:
    if entry.event["terms"] != terms_of(entry):
        raise ValueError("the terms of a request must be those that it lists.")
    if "event" in entry.event and entry.event["what"] != what_of(entry.event["event"]):
        raise ValueError("the event of a request must be the one that its digest is of.")
    if not len(waiting) < MOST:
        raise ValueError(f"at most {MOST} requests may wait in budget {entry.budget!r}. Approve or deny some first.")
    _check_until(entry)
    if same := [asked for asked in waiting if asked.terms == entry.event["terms"]]:
        raise ValueError(f"request {same[0].id} asks for exactly this already, and waits or was not used.")
    return (*waiting, Asked(entry.id, entry.event["by"], entry.event["terms"], entry.event["until"]))


def _check_until(entry: Proposed) -> None:
    """Refuse a request or an approval that counts for longer than any may."""
    last = moment(entry.event["until"])
    if not timedelta(0) < last - moment(entry.time) <= timedelta(days=LONGEST_DAYS):
        raise ValueError(f"until must lie at most {LONGEST_DAYS:g} days after {entry.time}, got {stamp(last)}.")


def _approved(asked: Asked, entry: Proposed) -> Asked:
    if asked.approved:
        raise ValueError(f"request {asked.id} is approved already, in entry {asked.approved}.")
    who = entry.event["by"]
    if same_person(asked.by, who):
        also = "" if asked.by == who else f" Names that look alike are one person's: {who!r} is no other."
        raise ValueError(f"request {asked.id} must be approved by somebody else than {asked.by!r}, who made it.{also}")
    if entry.event.get("terms") != asked.terms:
        raise ValueError(f"the terms of an approval must be those of request {asked.id}.")
    _check_until(entry)
    return Asked(asked.id, asked.by, asked.terms, entry.event["until"], entry.id)


def _released(event: Mapping[str, Any]) -> dict[str, str]:
    """The event as the flag that gives it to a request; its digest where it is long."""
    text = json.dumps(plain_event(event), sort_keys=True)  # plain letters, whatever the event holds
    text = text.replace("'", r"\u0027")  # so that the shell's quotes are the outermost ones alone
    return {"event": text} if len(text) <= LONGEST_EVENT else {"what": what_of(event)}


def _needed(entry: Proposed, mine: list[Asked]) -> ApprovalNeededError:
    """The refusal, with the command that asks for exactly this spend."""
    event = entry.event
    if mine:
        needed = Needed(entry.psi, entry.budget, mine[0].id)
        return ApprovalNeededError(needed.sentence(), mine[0].id, plain_event(event), needed)
    words = {"psi": repr(entry.psi), "kappa": repr(entry.kappa) if entry.kappa else "", "partition": entry.partition}
    words |= {"table": event.get("table", ""), "table-unit": event.get("table_unit", ""), "purpose": entry.purpose}
    words |= {"actor": event["by"]} | _released(event)
    flags = " ".join(f"--{name} {quote(value)}" for name, value in words.items() if value)
    asked = " ".join(DIGEST.sub("", str(event.get("question", ""))).split())
    needed = Needed(entry.psi, entry.budget, 0, asked, flags)
    return ApprovalNeededError(needed.sentence(), event=plain_event(event), needed=needed)
