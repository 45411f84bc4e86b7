"""A page that answers point by point what an evaluation of a deployment asks, after NIST SP 800-226.

Every point is filled from the card, from the ledger's report or from an answer; what nobody answered says so.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from psidp.escaping import markdown
from psidp.ledger.report import Report
from psidp.present.card.front import limit_words
from psidp.present.card.record import Card
from psidp.present.card.rows import warning
from psidp.present.formatting import down, up
from psidp.present.ledger_report import page
from psidp.present.markup import Element, element
from psidp.present.words import article

__all__ = ["POINTS", "Point", "evaluation", "to_html", "to_markdown"]

OPEN = "Not answered."
POINTS = {
    "data_collection": "how the data were collected, with whose consent, and how long they are kept",
    "access_control": "who can reach the data before the noise, and how that is limited",
    "utility": "how accuracy was measured, and for whom it is enough",
    "preprocessing_and_hyperparameter_tuning": "what was done with the data before, and whether its loss was counted",
    "justification": "how these parameters were chosen, and why",
}
"""What only people can answer."""


class Point(NamedTuple):
    """One point: its heading, what is asked, the answer, and where the answer comes from."""

    heading: str
    asks: str
    answer: str
    source: str

    @property
    def answered(self) -> bool:
        """Whether anybody answered it."""
        return self.answer != OPEN


def evaluation(card: Card, report: Report | None = None, answers: Mapping[str, Any] | None = None) -> list[Point]:
    """The points in order, each with its answer."""
    said = {name: value if isinstance(value, str) else "; ".join(value) for name, value in (answers or {}).items()}
    g, made, scope = card.guarantee, card.mechanism, card.scope
    side = "one is added or removed" if g.adjacency == "add-remove" else "one is replaced by another"
    kappa = f", except with probability {up(g.kappa)}" if g.kappa else ""
    clipping = f"{limit_words(card)} {_sensitivity(card)}".strip()
    noise = (
        "Noise is exact, so that floating point gives nothing away; its randomness is AES-256 keyed by the operating "
        "system. Refusals and errors depend on schema and parameters alone. How long a query takes is not hidden."
    )
    return [
        Point("Unit of privacy", "whose data is protected, and what neighbours differ in",
              f"All data of one {g.unit}; of two neighbouring data sets {side} ({g.adjacency}).", "card"),
        Point("Privacy parameters", "which definition, with which values",
              f"psi-GDP with psi = {up(g.psi, 6)}{kappa}; epsilon = {up(card.epsilon)} at delta = {up(card.delta)}. "
              + " ".join(card.sentences), "card"),
        Point("Trust model and attacker", "who sees the data, and what the attacker is taken to know",
              f"{scope.trust_model}. {scope.adversary}", "card"),
        Point("Mechanism", "how the noise is made", f"{made.name}, by {card.software}.", "card"),
        Point("Clipping and sensitivity", "how much one unit can add, and how that is held", clipping, "card"),
        Point("Side channels", "what could leak beside the numbers", noise, "psidp"),
        Point("What is covered", "which releases the promise speaks of",
              f"Covered: {'; '.join(scope.covered) or 'the release that the card goes with'}. Not covered: "
              f"{'; '.join(scope.not_covered) or 'anything else published from the same data'}.", "card"),
        Point("Budget over time", "how loss adds up, who may spend it, and when it ends", _budget(card, report),
              "ledger" if report is not None else "card"),
        Point("Data collection", POINTS["data_collection"], said.get("data_collection", OPEN), "answer"),
        Point("Access to the data", POINTS["access_control"], said.get("access_control", OPEN), "answer"),
        Point("Before the noise", POINTS["preprocessing_and_hyperparameter_tuning"],
              said.get("preprocessing_and_hyperparameter_tuning", OPEN), "answer"),
        Point("Choice of parameters", POINTS["justification"], said.get("justification", OPEN), "answer"),
        Point("Utility", POINTS["utility"], said.get("utility", OPEN), "answer"),
        Point("Audits and tests", "what was done to find out whether the promise is kept", _audit(card), "card"),
    ]  # fmt: skip


def to_markdown(card: Card, points: list[Point]) -> str:
    """The page as GitHub-flavoured Markdown."""
    lines = [f"# {markdown(_title(card))}", "", markdown(_open(points)), ""]
    for number, point in enumerate(points, 1):
        lines += [f"## {number}. {point.heading}", "", f"*{markdown(point.asks)}*", "", markdown(point.answer), ""]
        lines += [f"Source: {point.source}", ""] if point.answered else []
    return "\n".join(lines)


def to_html(card: Card, points: list[Point]) -> str:
    """The page as one file that needs nothing else."""
    parts: list[Element] = [element("h1", _title(card)), element("p", _open(points))]
    for number, point in enumerate(points, 1):
        parts += [element("h2", f"{number}. {point.heading}"), element("p", element("em", point.asks))]
        source = f" (source: {point.source})" if point.answered else ""
        parts.append(element("p", point.answer + source))
    return page(_title(card), parts)


def _title(card: Card) -> str:
    return f"Evaluation: {card.title}"


def _open(points: list[Point]) -> str:
    left = [point.heading for point in points if not point.answered]
    said = f"{len(points) - len(left)} of {len(points)} points are answered, in the order of NIST SP 800-226."
    return said + (f" Open: {', '.join(left)}." if left else "")


def _sensitivity(card: Card) -> str:
    made = card.mechanism
    given = [
        f"{name.replace('_', ' ')} {getattr(made, name):g}"
        for name in ("sensitivity", "sigma", "noise_multiplier")
        if getattr(made, name) is not None
    ]
    return f"Its {', '.join(given)}." if given else ""


def _budget(card: Card, report: Report | None) -> str:
    head = "" if card.ledger_head is None else f" Head of the ledger: {card.ledger_head}."
    if report is None:
        return f"No ledger's report was given.{head}"
    b = report.budget
    every = f" in each {b.renews}" if b.renews else ", once"
    limit = "" if report.above is None else f" A spend above psi {report.above:g} needs somebody else's approval."
    changes = ", ".join(
        f"{e.what()} on {e.time[:10]} by {e.details().get('by', 'the calendar')}"
        for e in sorted((*report.changes, *report.asked), key=lambda e: e.id)
    )
    return (
        f"Budget {b.name} allows psi {down(report.cap.psi)} per {b.unit}{every}. Spent: psi {up(report.spent.psi)}; "
        f"since it was opened psi {up(report.lifetime.psi)}; left: psi {down(report.remaining.psi)}. Over all "
        f"budgets that protect {article(b.unit)}: psi {up(report.unit_total.psi)}.{limit} Changes: {changes}.{head}"
    )


def _audit(card: Card) -> str:
    audit = card.audit
    if audit is None:
        return "No audit of this release was given. psidp's own tests audit its mechanisms (psidp audit)."
    found = f"psi is at least {down(audit.psi_lower)} with confidence {audit.confidence:g} ({audit.method or 'audit'})."
    return f"{found} {warning(card)}".strip() + (f" To read: {audit.link}" if audit.link else "")
