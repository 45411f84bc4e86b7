"""What a ledger paid for: a card with a ledger is of a spend that it holds, or of all that a budget paid for."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from psidp.guarantee import Guarantee
from psidp.ledger.budget import Budget
from psidp.ledger.entry import Entry
from psidp.ledger.event import RUNS, run_event
from psidp.ledger.report import Report
from psidp.ledger.results import Result
from psidp.present.card.enforced import clipped
from psidp.present.card.events import Event
from psidp.present.card.parts import Mechanism, Scope
from psidp.present.formatting import up

if TYPE_CHECKING:
    from psidp.ledger.ledger import Ledger

__all__ = ["check_paid", "spend_words", "unpublished", "with_unpublished"]

SAME = 1e-9
"""Relative room for the last digits of a claim's price, which is a numerical search."""

NOTHING: dict[Result, str] = {
    "failed": "it failed before anything was drawn",
    "interrupted": "it was interrupted while its answer was drawn",
    "no answer stored": "no answer is stored under its retry key",
}
"""What a spend came to that published nothing, in words."""

MOST = 8
"""Spends that a refusal names."""

ALONE = "Without a ledger, a card speaks of a promise that nobody here paid for."


def check_paid(ledger: "Ledger", budget: str, promise: Any, behind: Any, events: tuple[Event, ...]) -> list[Entry]:
    """The spends that paid for the promise itself; of a run's parts none.

    Refused: the card of what the budget did not pay for, or of what protects somebody else than it does.
    """
    if isinstance(promise, Report | Entry):
        theirs = promise.budget.name if isinstance(promise, Report) else promise.budget
        if theirs != budget:
            raise ValueError(f"the card's budget must be the one that paid, {theirs!r}, got budget={budget!r}.")
        return [promise] if isinstance(promise, Entry) else list(_released(ledger, budget))
    terms = ledger.budget(budget)
    _check_terms(terms, behind)
    report = ledger.report(budget)
    parts = [event for event in events if not isinstance(event, Guarantee) or event.psi]  # not a run's chance to fail
    spends = list(_released(ledger, budget))
    if not parts and behind in (report.lifetime, report.spent):
        return spends
    for part in parts or [behind]:
        if not any(_paid_by(spend, part) for spend in spends):
            raise _unpaid(budget, part, spends[-MOST:])
    return [] if parts else [spend for spend in spends if _paid_by(spend, behind)]


def spend_words(spend: Entry, ledger: "Ledger | None") -> tuple[dict[str, Any], Guarantee]:
    """The fields of the card of one spend, and its promise, as the entry has them."""
    if ledger is None:
        raise ValueError(f"the card of entry {spend.id} needs the ledger that holds it: ledger=.")
    if ledger.spent(spend.id).hash != spend.hash:
        raise ValueError(f"entry {spend.id} of this ledger must be the spend that the card is of, got another's.")
    if spend.id in (why := unpublished(ledger, spend.budget)):
        raise ValueError(f"entry {spend.id} paid for nothing that was released: {why[spend.id]}.")
    event, terms = spend.details(), ledger.budget(spend.budget)
    what = f"what entry {spend.id} of the ledger paid for on {spend.time[:10]}: {spend.purpose}"
    covered = (what + (f", of the table {event['table']}" if "table" in event else ""),)
    words = {"title": spend.purpose, "mechanism": _mechanism(event), "scope": Scope(covered=covered)}
    return words, Guarantee(spend.psi, spend.kappa, terms.adjacency, terms.unit)


def _mechanism(event: dict[str, Any]) -> Mechanism:
    """How the noise was made, as far as the event says."""
    if event["kind"] == "gaussian":
        return Mechanism(sensitivity=event["sensitivity"], sigma=event["sigma"])
    if event["kind"] in RUNS:
        told = ("noise_multiplier", "sampling_rate", "steps", "sampling")
        return Mechanism(f"a run of kind {event['kind']}", **{name: event[name] for name in told if name in event})
    if clipped(event):
        return Mechanism("Gaussian noise on clipped totals")
    if event["kind"] == "strategy":
        return Mechanism("Gaussian noise on a linear strategy in whole numbers")
    return Mechanism(f"{event.get('mechanism', 'not said')}, as somebody declared it")


def _released(ledger: "Ledger", budget: str) -> Iterable[Entry]:
    """The spends of a budget for which something was released, as far as anybody said."""
    nothing = unpublished(ledger, budget)
    spent = (entry for entry in ledger.entries(budget) if entry.state == "spent" and entry.id not in nothing)
    return (entry for entry in spent if entry.psi or entry.kappa)  # a stream's periods cost nothing


def unpublished(ledger: "Ledger", budget: str) -> dict[int, str]:
    """The spends of a budget that paid for nothing that is known to be released, each with the reason."""
    spends = [entry for entry in ledger.entries(budget) if entry.state == "spent" and (entry.psi or entry.kappa)]
    return {n: NOTHING[result] for n, result in ledger.results(spends).items() if result in NOTHING}


def with_unpublished(ledger: "Ledger", budget: str, scope: Scope) -> Scope:
    """The scope of a budget's card, which names the spends that paid for nothing that is known to be released."""
    why = unpublished(ledger, budget)
    if not why:
        return scope
    listed = "; ".join(f"entry {number}: {reason}" for number, reason in list(why.items())[:MOST])
    more = f"; and {len(why) - MOST} more" if len(why) > MOST else ""
    words = f"{len(why)} paid without a publication, which count in the total ({listed}{more})"
    return replace(scope, covered=(*scope.covered, words))


def _check_terms(terms: Budget, promise: Any) -> None:
    for name in ("unit", "adjacency"):
        mine, theirs = getattr(terms, name), getattr(promise, name)
        if mine != theirs:
            raise ValueError(f"{name} of the card must be that of budget {terms.name!r}, {mine!r}, got {theirs!r}.")


def _paid_by(spend: Entry, part: Event) -> bool:
    """Whether a spend is of this price, or of this run."""
    if isinstance(part, Guarantee):
        return abs(spend.psi - part.psi) <= SAME * part.psi and spend.kappa == part.kappa
    return run_event(part).items() <= spend.details().items()


def _unpaid(budget: str, what: object, spends: Iterable[Entry]) -> ValueError:
    listed = ", ".join(f"entry {spend.id} (psi {up(spend.psi)})" for spend in spends) or "none"
    return ValueError(
        f"the card must be of something that budget {budget!r} paid for, got {what!r}. Its last spends: {listed}. The "
        f"card of one of them: --entry NUMBER, or psidp.card(ledger.spent(number), ...). {ALONE}"
    )
