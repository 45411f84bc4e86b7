"""Rules: what an entry of each state may say. Writing an entry and verifying it ask the same two functions.

`step` (ledger/balance.py) is what an entry does to its budget's balance. `check` is everything else that it claims: the
period that it begins, whose spend it answers, the shares that it opens, who may end a pause. It looks at the entries
before it and at nothing else, so that it says the same when the entry is verified.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Protocol, get_args

from psidp.guarantee import Guarantee
from psidp.ledger.actor import priced
from psidp.ledger.approvals import Proposed
from psidp.ledger.balance import Balance
from psidp.ledger.budget import Budget, period_of
from psidp.ledger.cost import ZERO, Cost
from psidp.ledger.entry import NOTES, Entry, State, canonical, moment
from psidp.ledger.event import KNOWN_PRICES, RUNS, agrees
from psidp.ledger.names import same_person

__all__ = ["SLACK", "Past", "check", "is_known", "same_price", "stopped_everywhere"]

SLACK = timedelta(minutes=5)
"""How far a clock may be behind the last entry, as clocks of several machines are, before the ledger refuses."""


class Past(Protocol):
    """The entries before one, as far as rules look at them."""

    def budget(self, name: str) -> Budget:
        """The terms of a budget."""

    def balance(self, budget: str) -> Balance | None:
        """How a budget stands; None where it was never opened."""

    def entry(self, number: int) -> Entry | None:
        """The entry that has this number."""

    def under_key(self, budget: str, key: str) -> list[Entry]:
        """What was asked and answered under an idempotency key, in order."""

    def notes_on(self, spend: Entry) -> list[Entry]:
        """What became of a spend, in order."""

    def stopped_everywhere(self) -> list[str]:
        """Who was paused in all budgets, and not resumed in all of them since."""

    def changes(self) -> Iterable[Entry]:
        """The entries that changed a budget, in order."""


COLUMNS: dict[str, tuple[str, ...]] = {
    "spent": ("partition", "purpose", "refers", "key", "request"),
    "requested": ("partition", "purpose"),
    "approved": ("purpose", "refers"),
    "denied": ("purpose", "refers"),
    "answered": ("refers", "key", "request", "answer"),
    "withheld": ("refers", "key", "request"),
    "interrupted": ("refers", "key", "request"),
    "renewed": (),
}
"""What the entries of a state fill in beside their event; those of other states a purpose."""

FIELDS: dict[str, frozenset[str]] = {
    kind: frozenset(names.split())
    for kind, names in {
        "opened": "psi kappa adjacency unit partitions renews part_of table above period paused cap",
        "raised": "psi kappa", "reset": "", "closed": "", "limited": "above", "renewed": "period",
        "split": "taken shares", "paused": "person everywhere", "resumed": "person everywhere",
        "requested": "psi kappa what until event terms table table_unit", "approved": "until terms", "denied": "",
        "answered": "", "used": "steps", "withheld": "error", "interrupted": "error",
    }.items()
}  # fmt: skip
"""What the event of each kind says beside its kind and who wrote it; the event of a spend may say more."""


def is_known(entry: Entry | Proposed, event: Any) -> bool:
    """Whether everything that an entry claims is of a kind that this program can recompute."""
    kind = event.get("kind")
    if entry.state == "spent":
        return kind in KNOWN_PRICES
    same = kind == entry.state or (entry.state == "answered" and kind == "used")
    return same and entry.state in get_args(State) and event.keys() <= {"kind", "by", *FIELDS[kind]}


def check(entry: Proposed, before: Balance | None, past: Past) -> None:
    """Refuse an entry that says what is not so; a spend on an open budget of no period and no key is quickly passed."""
    state = entry.state
    if state == "spent" and not (entry.key or entry.request or entry.answer or before is None or before.period):
        return
    if state != "spent" and (entry.psi != 0.0 or entry.kappa != 0.0):
        raise ValueError(f"an entry that is {state} has no price.")
    filled = COLUMNS.get(state, ("purpose",))
    for name in ("partition", "purpose", "refers", "key", "request", "answer"):
        if getattr(entry, name) and name not in filled:
            raise ValueError(f"an entry that is {state} has no {name}.")
    if bool(entry.key) != bool(entry.request):
        raise ValueError("key and request must be given together, or neither.")
    if before is not None and before.closed and state not in NOTES:
        return  # `step` says so
    if state == "opened" or before is not None:
        rule = RULES.get(state)
        if rule is not None:
            rule(entry, before, past)


def _opened(entry: Proposed, _: Balance | None, past: Past) -> None:
    """The terms and nothing else, the period of its time, the share that was given, and those who are paused."""
    event = entry.event
    terms = Budget.from_event(entry.budget, event, entry.purpose)
    paused, whole = past.stopped_everywhere(), past.balance(terms.part_of) if terms.part_of else None
    if whole is not None:
        _check_share(terms, Cost.read(event["cap"]), whole, past)
        paused = [*paused, *whole.paused]
    elif "cap" in event:
        raise ValueError("only a share has a cap beside its psi.")
    expected: dict[str, Any] = terms.terms()
    expected |= {"period": period} if (period := period_of(terms.renews, moment(entry.time))) else {}
    expected |= {"cap": event["cap"]} if whole is not None else {}
    expected |= {"paused": sorted(set(paused))} if paused else {}
    if canonical(expected) != canonical(event):
        wrong = sorted(name for name in {*expected, *event} if expected.get(name) != event.get(name))
        raise ValueError(f"an opening must say what follows from its terms, and its {', '.join(wrong)} does not.")


def _check_share(terms: Budget, cap: Cost, whole: Balance, past: Past) -> None:
    """A share has the terms of the budget that it is part of, and the psi that its cap is worth."""
    above = past.budget(terms.part_of)
    same = Budget(
        name=terms.name, guarantee=cap.guarantee_below(above.guarantee), actor=terms.actor, purpose=terms.purpose,
        part_of=above.name, approval_above=whole.above, table=above.table,
    )  # fmt: skip
    if same.terms() != terms.terms():
        raise ValueError(f"a share must have the terms of the budget that it is part of, {above.name!r}.")


def _spent(entry: Proposed, before: Balance | None, past: Past) -> None:
    """In the period of its time; under a key that was not answered, and that only this request has."""
    if before is not None and before.period:
        period = period_of(past.budget(entry.budget).renews, moment(entry.time))
        if before.period != period:
            raise ValueError(f"a spend at {entry.time} must be in period {period!r}, got {before.period!r}.")
    if entry.key:
        _check_key(entry, past)


def _check_key(entry: Proposed, past: Past) -> None:
    for other in past.under_key(entry.budget, entry.key):
        if other.request != entry.request:
            raise ValueError(f"its key is that of another request, in entry {other.id}.")
        if entry.state == other.state == "spent" and not same_price(entry, Proposed.again(other)):
            raise ValueError(f"its key is that of a spend at another price, entry {other.id}.")
        if other.state == "answered":
            raise ValueError(f"its key is answered already, in entry {other.id}.")


def same_price(one: Proposed, other: Proposed) -> bool:
    """Whether two spends cost the same, of the same part of the data, for the same event."""
    paid, again = ((spend.psi, spend.kappa, spend.partition, canonical(priced(spend.event))) for spend in (one, other))
    return paid == again


def _renewed(entry: Proposed, before: Balance | None, past: Past) -> None:
    """The period of its time, and no other."""
    period = period_of(past.budget(entry.budget).renews, moment(entry.time))
    if not period or entry.event["period"] != period:
        raise ValueError(f"a renewal at {entry.time} must begin period {period!r}, got {entry.event['period']!r}.")


def _split(entry: Proposed, _: Balance | None, past: Past) -> None:
    """Shares that are new budgets, and that together are exactly what was taken."""
    if past.budget(entry.budget).renews:
        raise ValueError(
            f"budget {entry.budget!r} renews; a share of it would not. Split a budget that does not renew."
        )
    shares = {name: Cost.read(share) for name, share in entry.event["shares"].items()}
    taken = Cost(
        sum((p.square for p in shares.values()), ZERO.square), sum((p.kappa for p in shares.values()), ZERO.kappa)
    )
    if taken != Cost.read(entry.event["taken"]):
        raise ValueError("its shares do not sum to what was taken.")
    for name in shares:
        if past.balance(name) is not None:
            raise ValueError(f"budget {name!r} is open already: a share is a new budget.")


def _requested(entry: Proposed, _: Balance | None, past: Past) -> None:
    """A spend that the budget could pay in kind, at the price of its event."""
    event, terms = entry.event, past.budget(entry.budget)
    guarantee = Guarantee(event["psi"], event["kappa"], terms.adjacency, terms.unit)
    terms.check_spend(guarantee, entry.partition)
    asked = event.get("event")
    if asked is not None and asked.get("kind") in KNOWN_PRICES and not agrees(asked, guarantee):
        raise ValueError(f"a request must ask for the price of its event, got psi={event['psi']}.")


def _resumed(entry: Proposed, _: Balance | None, past: Past) -> None:
    """A person's pause is not ended by that person, unless nobody else set it."""
    person, who = entry.event.get("person", ""), entry.event.get("by", "")
    if person and same_person(person, who) and not same_person(_pauser(past, entry.budget, person), who):
        raise ValueError(f"the pause of {person!r} must be ended by somebody else, got actor={who!r}.")


def _pauser(past: Past, budget: str, person: str) -> str:
    """Who paused a person in a budget; where the budget was opened later, who did it elsewhere."""
    pauses = [e for e in past.changes() if e.state == "paused" and same_person(e.details().get("person", ""), person)]
    mine = [entry for entry in pauses if entry.budget == budget] or pauses
    return str(mine[-1].details()["by"]) if mine else ""


def stopped_everywhere(before: list[str], state: str, event: Mapping[str, Any]) -> list[str]:
    """Who is paused in all budgets after one more entry."""
    if state not in ("paused", "resumed") or not event.get("everywhere"):
        return before
    person = event["person"]
    return [name for name in before if not same_person(name, person)] + ([person] if state == "paused" else [])


def _note(entry: Proposed, _: Balance | None, past: Past) -> None:
    """On a spend of the same budget and key, by who spent, of which nothing else became."""
    spend, event = past.entry(entry.refers), entry.event
    if spend is None or spend.state != "spent" or spend.budget != entry.budget or not spend.id < entry.id:
        raise ValueError(f"it must refer to a spend of budget {entry.budget!r}, got entry {entry.refers}.")
    paid = spend.details()
    if "by" in event and event["by"] != paid.get("by", event["by"]):
        raise ValueError(f"what became of entry {spend.id} is said by who spent, {paid['by']!r}, got {event['by']!r}.")
    if event["kind"] == "used":
        _check_used(entry, paid)
        return
    if (entry.key, entry.request) != (spend.key, spend.request):
        raise ValueError(f"it must have the key and the request of entry {spend.id}.")
    if entry.state == "answered":
        if not entry.key:
            raise ValueError("an answer is stored under a key.")
        _check_key(entry, past)
        json.loads(entry.answer)
    elif not (isinstance(event["error"], str) and event["error"].isidentifier()):
        raise ValueError("an error must be the name of its type.")
    others = [note for note in past.notes_on(spend) if note.details().get("kind") in NOTES]
    lost = entry.state == "interrupted" and all(note.state == "answered" for note in others)  # the reply to its commit
    if others and not lost:
        raise ValueError(f"what became of entry {spend.id} is said already, in entry {others[0].id}.")


def _check_used(entry: Proposed, paid: dict[str, Any]) -> None:
    """No more steps than the spend paid for."""
    steps = entry.event["steps"]
    if paid.get("kind") not in RUNS or "steps" not in paid:
        raise ValueError(f"entry {entry.refers} of this ledger must be the spend on a DP-SGD run that is spoken of.")
    if isinstance(steps, bool) or not (isinstance(steps, int) and 0 <= steps <= paid["steps"]):
        raise ValueError(
            f"steps must be a whole number of at most {paid['steps']}, which entry {entry.refers} paid for, "
            f"got steps={steps}."
        )
    if entry.key or entry.answer:
        raise ValueError("a note of steps has neither key nor answer.")


RULES: dict[str, Callable[[Proposed, Balance | None, Past], None]] = {
    "opened": _opened,
    "spent": _spent,
    "renewed": _renewed,
    "split": _split,
    "requested": _requested,
    "resumed": _resumed,
} | dict.fromkeys(NOTES, _note)
