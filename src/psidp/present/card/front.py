"""The card's first page, for people: each of its paragraphs as plain text, the same in HTML and in Markdown."""

from dataclasses import dataclass
from math import isfinite

from psidp.guarantee import Guarantee, compose
from psidp.present.card.parts import CENTRAL, ErrorRange
from psidp.present.card.record import Card
from psidp.present.card.release_words import noise_alone
from psidp.present.card.rows import broken, counted
from psidp.present.deployments import deployments
from psidp.present.formatting import down, per_thousand, up
from psidp.present.words import article

__all__ = ["Check", "Front", "Mark", "front", "limit_words"]

RECORD = "A ledger is the record of what each release cost."


@dataclass(frozen=True, slots=True)
class Check:
    """Whether something was checked: "good", "bad" or "open", and in words."""

    state: str
    words: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on the scale from a coin (advantage 0) to certainty (1)."""

    name: str
    advantage: float


@dataclass(frozen=True, slots=True)
class Front:
    """The first page, paragraph by paragraph."""

    byline: str
    whom: str
    number: str
    at: str
    smaller: str
    bound: str
    marks: tuple[Mark, ...]
    spent: str
    comparison: str
    sentences: tuple[str, ...]
    again: str
    not_promised: tuple[str, ...]
    errors: tuple[str, ...]
    checks: tuple[Check, ...]


def front(card: Card) -> Front:
    """The first page of a card."""
    g = card.guarantee
    number, at = f"psi = {up(g.psi)}", f", failing with probability {up(g.kappa)}," if g.kappa else ""
    if card.events:
        number, at = f"epsilon = {up(card.epsilon)}", f" at delta = {up(card.delta)}"
    return Front(
        byline=f"{_publisher(card)}. Card of {card.date}.",
        whom=_whom(card),
        number=number,
        at=f"{at} per {g.unit}",
        smaller=_smaller(card),
        bound=limit_words(card),
        marks=_marks(card),
        spent=_spent(card),
        comparison=_comparison(g),
        sentences=tuple(card.sentences),
        again=_again(card),
        not_promised=_not_promised(card),
        errors=_errors(card),
        checks=(_ledger(card), _audit(card)),
    )


def _publisher(card: Card) -> str:
    return f"Published by {card.publisher}" if card.publisher else "Publisher not stated"


def _whom(card: Card) -> str:
    """Whom the promise protects, and in what."""
    unit = card.guarantee.unit
    if card.guarantee.adjacency == "replace-one":
        return f"It protects what the data holds of one {unit}. That {article(unit)} is in the data is no secret."
    return (
        f"It protects one {unit}: whether {article(unit)} is in the data at all, and so all that the data holds of "
        "them."
    )


def _smaller(card: Card) -> str:
    """What the number is, and which way is safer."""
    unit = card.guarantee.unit
    ends = f"Smaller is safer: at 0 nothing can be learnt about one {unit}, and there is no largest value."
    if card.events:
        return f"Epsilon, at a fixed delta, bounds how much one {unit} can change what comes out. {ends}"
    return f"psi is how far one {unit} can move the numbers, divided by the noise that hides it. {ends}"


def limit_words(card: Card) -> str:
    """How much one unit may add, or that nothing enforced a limit."""
    unit, stated = card.guarantee.unit, card.scope.contribution_bound
    if not stated:
        return (
            f"Limit on what one {unit} adds: none was enforced here. The promise holds only where no {unit} moves the "
            "numbers further than was assumed."
        )
    return f"Limit on what one {unit} adds: {stated}."


def _marks(card: Card) -> tuple[Mark, ...]:
    """This release, and the running total of its budget, on the scale."""
    marks = [Mark("this release", card.promise.advantage)]
    if card.total is not None:
        total = Guarantee(card.total.psi, card.total.kappa)
        marks.append(Mark(f"{card.total.budget}, so far", total.advantage))
    return tuple(marks)


def _spent(card: Card) -> str:
    """What the mark of the running total stands for; empty without one."""
    total = card.total
    if total is None:
        return ""
    psi = f"psi {up(total.psi)}{f', failing with probability {up(total.kappa)}' if total.kappa else ''}"
    if total.cap is None or not isfinite(total.cap):
        return f"{total.budget}, so far: everything paid until this card, this release included; {psi}."
    limit = "of a limit of" if total.psi <= total.cap else "in all; the limit now in force is"
    said = f"everything paid from this budget, this release included; {psi} {limit} {down(total.cap)}"
    return f"{total.budget}, so far: {said}."


def _comparison(g: Guarantee) -> str:
    """The nearest known deployments on either side, by the same measure."""
    known = [d for d in deployments() if d.trust == "central"]
    below, above = [d for d in known if d.guarantee.psi <= g.psi], [d for d in known if d.guarantee.psi > g.psi]
    near = [*below[-1:], *above[:1], *[d for d in above[1:] if "Census" in d.curator][:1]]
    each = "; ".join(f"psi {up(d.guarantee.psi, 2)} for {d.name} ({d.curator}, per {d.unit})" for d in near)
    return f"For comparison, published elsewhere: {each}. Other data and other units: a guide, not a limit."


def _again(card: Card) -> str:
    """What a second release would make of it."""
    g = card.guarantee
    twice = compose([g, g])
    if g.psi == 0.0:
        return "A second release like this one adds nothing to psi = 0."
    one, both = up(g.psi, 3), up(twice.psi, 2)
    right = per_thousand((1.0 + twice.advantage) / 2.0)
    return (
        f"Releases from the same data add up. After a second one like this the two together have psi {both}, not "
        f"{up(2.0 * g.psi, 3)}: psi adds as the sides of a right triangle (the root of {one}² + {one}²). Whoever sees "
        f"both is right at most {right} times in 1,000."
    )


def _not_promised(card: Card) -> tuple[str, ...]:
    """What a reader might take for promised and is not."""
    scope, unit = card.scope, card.guarantee.unit
    inside = "whoever keeps the data sees it as it is." if scope.trust_model == CENTRAL else f"{scope.trust_model}."
    said = [*(scope.not_covered or ["Anything else published from the same data."]), f"Insiders: {inside}"]
    if card.promise.odds_multiplier(0.01) < float("inf"):
        said.append("The 1 in 100: in one of 100 releases a suspicion may grow more than is said above.")
    said.append(f"General findings: what the numbers say of all can be held against each {unit}, in the data or not.")
    return tuple(said)


def _errors(card: Card) -> tuple[str, ...]:
    """How far off the numbers may be, as their own intervals say."""
    found, made = card.errors, card.mechanism
    if not found and made.sigma is not None and made.noise_multiplier is None and not card.events:
        found = (noise_alone("the number", made.sigma),)
    return tuple(map(_error, found)) or ("Not stated.",)


def _error(error: ErrorRange) -> str:
    """How far the intervals of one statistic reach."""
    below, above = _reach(error.below), _reach(error.above)
    ends = f"{below} to either side" if below == above else f"{below} below it and {above} above it"
    said = f"{error.statistic}: with a chance of {100 * error.confidence:.12g} in 100 the truth is within {ends}."
    if error.clipped:
        said += f" Clipping may have moved {error.clipped:,} of {error.numbers:,} numbers further than that."
    return said


def _reach(ends: tuple[float, float]) -> str:
    """The smallest and the largest distance to an end of an interval, never below."""
    least, most = (up(end, 3) if isfinite(end) else "no limit" for end in ends)
    return least if least == most else f"{least} to {most}"


def _ledger(card: Card) -> Check:
    """Whether the record of what was spent was verified."""
    if card.ledger_head is None:
        return Check("open", f"Ledger: none given. {RECORD} Nothing here shows that every release was counted.")
    head = f"(head {card.ledger_head[:14]}…)"
    if card.ledger_check == "passed":
        agree = "entries agree (this checks the bookkeeping, not the privacy)"
        return Check("good", f"Ledger: {agree}. {RECORD} All entries were recomputed for this card {head}.")
    if card.ledger_check == "failed":
        return Check("bad", f"Ledger: entries do not agree. {RECORD} An entry is not what was written {head}.")
    return Check("open", f"Ledger: not checked. {RECORD} A head is stated {head}, and nobody checked it for this card.")


def _audit(card: Card) -> Check:
    """Whether somebody attacked the release to test the promise."""
    audit = card.audit
    if audit is None:
        return Check("open", "Audit: none. Nobody is known to have attacked this release to test the promise.")
    many = f" from {counted(audit)}" if counted(audit) else ""
    found = f"psi is at least {down(audit.psi_lower)}{many}, with confidence {audit.confidence:g}"
    if broken(card):
        return Check("bad", f"Audit: failed. An attack shows that {found}: more than was promised.")
    if audit.psi_lower > card.guarantee.psi:
        return Check("open", f"Audit: undecided. An attack shows that {found}; the promise allows failure with kappa.")
    return Check("good", f"Audit: passed. An attack shows that {found}: no more than was promised. No proof, a test.")
