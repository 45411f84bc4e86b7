"""Filling in a card: what an answer, release, report, stream, cube or training says of itself."""

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from psidp.accounting import DPSGD, BandMF, FixedOrder, PrivacyCurve
from psidp.errors import TamperedLedgerError
from psidp.ledger.report import Report
from psidp.mechanism.release import Release
from psidp.present.card.events import Event, alone, in_words
from psidp.present.card.parts import Audited, Mechanism, Scope, Total
from psidp.present.card.release_words import release_words
from psidp.present.card.report_words import report_words
from psidp.present.card.stream_words import Streaming, stream_words
from psidp.tables.answer import Answer
from psidp.tables.cube_answer import Cube

if TYPE_CHECKING:
    from psidp.ledger.ledger import Ledger

__all__ = ["Trained", "filled", "from_ledger", "mechanism_of", "of_audit"]


@runtime_checkable
class Trained(Protocol):
    """A training that knows its run: what PrivateTrainer.fit gives back."""

    run: DPSGD | BandMF | FixedOrder
    curve: PrivacyCurve
    clip: Any
    clipping: str
    delta: float
    kappa: float
    ledger_head: str | None


def filled(promise: Any) -> tuple[dict[str, Any], Any]:
    """The fields that a result fills in by itself, and the promise behind it: a guarantee, a curve or a run."""
    if isinstance(promise, Trained):
        made = mechanism_of(promise.curve.events, promise.clip if isinstance(promise.clip, float) else None)
        bound = f"the gradient of each {promise.run.unit} is {promise.clipping}"
        told = {"ledger_head": promise.ledger_head, "delta": promise.delta, "mechanism": made}
        return told | {"scope": Scope(contribution_bound=bound)}, promise.curve
    if isinstance(promise, Streaming):
        words, guarantee = stream_words(promise), promise.plan().guarantee
    elif isinstance(promise, Cube | Answer | Release):
        words, guarantee = release_words(promise), promise.guarantee
    elif isinstance(promise, Report):
        words, guarantee = report_words(promise), promise.lifetime
    else:
        return {}, promise
    scope = Scope(contribution_bound=words["bound"], covered=words["covered"], not_covered=words["not_covered"])
    told = {"title": words["title"], "mechanism": Mechanism(words["mechanism"], sigma=words.get("sigma"))}
    more = {name: words[name] for name in ("total", "errors") if name in words}
    return told | {"scope": scope} | more, guarantee


def from_ledger(ledger: "Ledger", budget: str) -> dict[str, Any]:
    """The ledger's head, whether all of it was recomputed and agrees, and the running total of the budget."""
    spent = ledger.report(budget)
    total = Total(budget, spent.lifetime.psi, spent.lifetime.kappa, spent.cap.psi)
    try:
        head, check = str(ledger.verify()), "passed"
    except TamperedLedgerError:
        head, check = str(ledger.head()), "failed"
    return {"ledger_head": head, "ledger_check": check, "total": total}


def mechanism_of(events: tuple[Event, ...], clip: float | None = None) -> Mechanism:
    """How the noise of a run was made, or that there were several events."""
    one = alone(events)
    if one is None:
        several = f"{len(events)} events together"
        return Mechanism(name=several if len(events) > 1 else in_words(events[0]) if events else Mechanism().name)
    run = one[0]
    return Mechanism(
        name="DP-SGD",
        sensitivity=clip,
        noise_multiplier=run.noise_multiplier,
        sampling_rate=run.sampling_rate,
        steps=run.steps,
        sampling=run.sampling,
    )


def of_audit(found: Any) -> Audited:
    """What an audit's result says, for the card."""
    counts = {name: getattr(found, name, None) for name in ("n_in", "n_out", "canaries")}
    return Audited(psi_lower=found.psi, confidence=found.confidence, method=found.method, **counts)
