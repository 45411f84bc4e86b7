"""The command that makes a given card again, to the last digit."""

import json
import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from psidp.present.card.events import alone, described

if TYPE_CHECKING:
    from psidp.present.card.record import Card

__all__ = ["RECOMPUTED", "command_of"]

RECOMPUTED = (
    "This card is computed again, to the last digit, by the command below. That checks its arithmetic; it is no proof "
    "that the data was handled as stated."
)


def command_of(card: "Card") -> str:
    """The exact command that makes this card again."""
    g = card.guarantee
    words: list[Any] = ["psidp", "card", *_promise(card), "--adjacency", g.adjacency, "--unit", g.unit]
    plain, made, scope = type(card)(g, date=card.date), card.mechanism, card.scope
    pairs: list[tuple[str, Any, Any]] = [
        ("--kappa", g.kappa, 0.0),
        ("--delta", card.delta, plain.delta),
        ("--title", card.title, plain.title),
        ("--regret", 0.0 if card.events else card.regret, 0.0),
    ]
    pairs += [("--prior", card.prior, plain.prior), ("--ledger-head", card.ledger_head, None)]
    pairs += [("--mechanism", made.name, plain.mechanism.name)]
    for name in ("sensitivity", "sigma", "noise_multiplier", "sampling_rate", "steps", "sampling"):
        pairs.append((f"--{name.replace('_', '-')}", getattr(made, name), None))
    for name in ("trust_model", "adversary", "contribution_bound"):
        pairs.append((f"--{name.replace('_', '-')}", getattr(scope, name), getattr(plain.scope, name)))
    pairs += [("--covered", entry, None) for entry in scope.covered]
    pairs += [("--not-covered", entry, None) for entry in scope.not_covered]
    pairs += [("--publisher", card.publisher, ""), ("--ledger-check", card.ledger_check, "")]
    if card.total is not None:
        pairs.append(("--total", json.dumps(asdict(card.total)), None))
    if card.errors:
        pairs.append(("--errors", json.dumps([asdict(error) for error in card.errors]), None))
    if card.audit is not None:
        pairs.append(("--audit", json.dumps(card.audit.to_dict()), None))
    for flag, value, default in pairs:
        words += [] if value == default or value is None else [flag, value]
    return shlex.join(str(word) for word in [*words, "--date", card.date])


def _promise(card: "Card") -> list[Any]:
    """What is promised: psi, a run that the mechanism describes already, or a series of events."""
    if not card.events:
        return ["--psi", card.guarantee.psi]
    made, one = card.mechanism, alone(card.events)
    if one is not None:
        run, failure = one
        same = (made.noise_multiplier, made.sampling_rate, made.steps, str(made.sampling).lower())
        if same == (run.noise_multiplier, run.sampling_rate, run.steps, run.sampling):
            return ["--failure", failure] if failure else []
    return ["--events", json.dumps(described(card.events))]
