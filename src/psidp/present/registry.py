"""An entry for the public registry of DP deployments, filled from a card, a ledger's report and a few answers.

The registry is opendp/deployments-registry-data. What a card and a ledger know is filled in; what only people know has
to be answered, by name.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from psidp.ledger.report import Report
from psidp.present.card.parts import CENTRAL
from psidp.present.card.record import UNTITLED, Card
from psidp.present.formatting import down, up

__all__ = ["QUESTIONS", "Question", "deployment", "described", "missing", "to_yaml"]


class Question(NamedTuple):
    """A field of the registry that people answer: its section, what it asks, what is allowed, whether it must be."""

    section: str
    asks: str
    allowed: tuple[str, ...] = ()
    required: bool = True
    several: bool = False


QUESTIONS: dict[str, Question] = {
    "data_curators": Question("basic", "who publishes it", several=True),
    "intended_use": Question("basic", "what it is to be used for"),
    "data_product_type": Question("basic", "what kind of product it is", (
        "Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API", "SQL queries",
    )),
    "data_product_region": Question("basic", "which region it describes, or whose laws apply"),
    "release_type": Question("deployment_model", "whether it is published once", ("One release", "Many releases")),
    "data_source_type": Question("deployment_model", "whether new data come in over time", ("Static", "Dynamic")),
    "access_type": Question(
        "deployment_model", "whether people may ask questions of their own", ("Interactive", "Non-interactive")
    ),
    "preprocessing_and_hyperparameter_tuning": Question(
        "implementation",
        "what was done with the data before the noise, such as cleaning it or looking at it to choose bounds or psi, "
        "and whether that was paid for; none if nothing",
    ),
    "justification": Question("implementation", "why this psi, this unit and these bounds were chosen, and by whom"),
    "registry_authors": Question("administrative", "who fills this in", several=True),
    "description": Question("basic", "what the product is, in a sentence", required=False),
    "data_product_sector": Question("basic", "which sector it describes", (
        "Technology", "Healthcare", "Education", "Government", "Energy", "Finance",
    ), required=False),
    "model_name": Question(
        "deployment_model", "who sees the data", ("Local", "Central", "Shuffle", "Federated"), required=False
    ),
    "data_domain": Question("dp_variant", "which data sets are protected", required=False),
    "unprotected_quantities": Question("dp_variant", "what is published without noise", required=False),
    "post_processing": Question("accounting", "what was done after the noise", required=False),
    "data_source_type_details": Question("deployment_model", "more about the data", required=False),
    "access_type_details": Question("deployment_model", "how analysts share the budget", required=False),
    "sources": Question("administrative", "where to read more", required=False),
    "notes": Question("administrative", "anything else", required=False),
}  # fmt: skip
"""Fields that a card does not know, or knows of the publisher alone, under the registry's own names."""


def missing(answers: Mapping[str, Any]) -> list[str]:
    """The required answers that were not given, each as one line that says what is asked and what is allowed."""
    return [f"{name} ({described(name)})" for name, q in QUESTIONS.items() if q.required and not answers.get(name)]


def described(name: str) -> str:
    """What a field asks, and what is allowed."""
    question = QUESTIONS[name]
    return question.asks + (f": {', '.join(question.allowed)}" if question.allowed else "")


def deployment(card: Card, answers: Mapping[str, Any], report: Report | None = None, slug: str = "") -> dict[str, Any]:
    """The registry's entry as plain values.

    Args:
        card: what was promised. answers: what people know, by the names of QUESTIONS; several values as a list.
        report: how the budget stands that paid for it. slug: the stable name; made of the card's title unless told.

    Refused: an unknown name, a value that the registry does not allow, an answer or a title that is missing; all of
    them at once, each by its name.
    """
    given = ({"data_curators": [card.publisher]} if card.publisher else {}) | dict(answers)
    wrong = [refusal for name, value in given.items() if (refusal := _wrong(name, value))]
    lacking = missing(given)
    if card.title == UNTITLED and not slug:
        lacking.append("title (what was released: the entry's name and address are made of it; --title)")
    if lacking:
        wrong.append(
            f"the registry also asks for {'; '.join(lacking)}. Answer each: --answer NAME=VALUE; --answers FILE "
            "writes a form to fill in."
        )
    if wrong:
        raise ValueError(" ".join(wrong))
    made: dict[str, Any] = {"url_slug": _slug(slug or card.title), "status": "Draft", "tier": 3, "deployment": {}}
    sections = made["deployment"] = _known(card, report)
    for name, value in given.items():
        values = [value] if isinstance(value, str) else list(value)
        sections[QUESTIONS[name].section][name] = values if QUESTIONS[name].several else values[0]
    return made


def to_yaml(values: Mapping[str, Any]) -> str:
    """Plain values as YAML that every reader takes as they are: all text in double quotes.

    Examples:
        >>> print(to_yaml({"tier": 3, "basic": {"name": "a: b", "data_curators": ["x"]}}), end="")
        tier: 3
        basic:
          name: "a: b"
          data_curators:
            - "x"
    """
    return "".join(f"{line}\n" for line in _lines(values, ""))


def _lines(values: Mapping[str, Any], margin: str) -> list[str]:
    lines = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            lines += [f"{margin}{name}:", *_lines(value, margin + "  ")]
        elif isinstance(value, list):
            lines += [f"{margin}{name}:", *(f"{margin}  - {json.dumps(item, ensure_ascii=False)}" for item in value)]
        else:
            lines.append(f"{margin}{name}: {_scalar(value)}")
    return lines


def _scalar(value: Any) -> str:
    """A number as YAML 1.1 reads it as one, which wants a point and a sign: 1.0e-05."""
    if isinstance(value, float) and "e" in repr(value):
        mantissa, _, exponent = repr(value).partition("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}"
    return json.dumps(value, ensure_ascii=False)


def _wrong(name: str, value: Any) -> str:
    """Why an answer cannot stand in the registry; "" where it can."""
    if name not in QUESTIONS:
        return f"an answer must be to one of {', '.join(QUESTIONS)}, got {name!r}."
    question = QUESTIONS[name]
    values = [value] if isinstance(value, str) else list(value)
    if not values or not all(isinstance(one, str) and one.strip() for one in values):
        return f"{name} ({question.asks}) must be said in words, got {value!r}."
    if not question.several and len(values) > 1:
        return f"{name} ({question.asks}) must be answered once, got {values}."
    if question.allowed and values[0] not in question.allowed:
        return f"{name} ({question.asks}) must be one of {', '.join(question.allowed)}, got {values[0]!r}."
    return ""


def _known(card: Card, report: Report | None) -> dict[str, dict[str, Any]]:
    """What the card and the ledger know."""
    g, scope = card.guarantee, card.scope
    epsilon = card.epsilon
    finite = {"epsilon": float(up(epsilon, 6))} if epsilon < float("inf") else {}
    rho = {"rho": float(up(0.5 * g.psi**2, 6))} if not card.events and not g.kappa else {}
    covered = "; ".join(scope.covered) or card.title
    model = {"model_name": "Central"} if scope.trust_model == CENTRAL else {}
    return {
        "basic": {"name": card.title, "description": covered, "publication_date": card.date},
        "dp_variant": {"variant_name": "Approximate DP"},
        "privacy_loss": {
            "privacy_unit": g.unit,
            "privacy_unit_details": _neighbours(g.adjacency, g.unit)
            + (f" Bound: {scope.contribution_bound}." if scope.contribution_bound else ""),
            "privacy_parameters": {**finite, "delta": card.delta, **rho},
            "privacy_parameters_details": " ".join(
                [f"psi = {up(g.psi, 6)} (psi-GDP, also written mu-GDP)"
                 + (f" except with probability kappa = {up(g.kappa)}." if g.kappa else ", for every delta at once."),
                 *card.sentences]
            ),
        },
        "deployment_model": model | {
            "model_name_details": scope.trust_model,
            "actors": f"Attacker: {scope.adversary}",
            "release_type_details": _over_time(card, report),
        },
        "accounting": {
            "composition": "Gaussian differential privacy: psi^2 adds up, also where releases are chosen after seeing "
            "earlier ones; a ledger refuses what a budget does not cover."
        },
        "implementation": {
            "mechanisms": f"{card.mechanism.name}; accounted for by {card.software}. Noise that psidp draws is exact: "
            "the released value is the true rounding to a power-of-two grid of the value plus real Gaussian noise, so "
            "that floating point gives nothing away, and refusals depend on the schema and the parameters, never on "
            "the data. A spend that was entered by hand says what it cost, not how its noise was drawn."
        },
        "administrative": {},
    }  # fmt: skip


def _over_time(card: Card, report: Report | None) -> str:
    """How privacy loss is managed over time."""
    head = "" if card.ledger_head is None else f" The ledger's head is {card.ledger_head}."
    if report is None:
        return f"This card speaks of what it covers: {'; '.join(card.scope.covered) or card.title}.{head}"
    b = report.budget
    every = f" in each {b.renews}" if b.renews else " in all"
    word = "The budget is closed." if report.closed else f"psi {down(report.remaining.psi)} is left."
    return (
        f"Budget {b.name}: psi {down(report.cap.psi)} per {b.unit}{every}; spent psi {up(report.spent.psi)} now and "
        f"psi {up(report.lifetime.psi)} since it was opened; over all budgets of this unit psi "
        f"{up(report.unit_total.psi)}. {word}{head}"
    )


def _neighbours(adjacency: str, unit: str) -> str:
    if adjacency == "replace-one":
        return f"Neighbouring data sets differ in all data of one {unit}, which is replaced (replace-one)."
    return f"Neighbouring data sets differ in all data of one {unit}, which is added or removed (add-remove)."


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_") or "deployment"
