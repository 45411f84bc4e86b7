"""The command that makes a given card again, to the last digit."""

import json
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psidp.present.card.record import Card

__all__ = ["command_of"]


def command_of(card: "Card") -> str:
    """The exact command that makes this card again."""
    g = card.guarantee
    words: list[Any] = ["psidp", "card", "--psi", g.psi, "--adjacency", g.adjacency, "--unit", g.unit]
    plain, made, scope = type(card)(g, date=card.date), card.mechanism, card.scope
    pairs: list[tuple[str, Any, Any]] = [
        ("--kappa", g.kappa, 0.0),
        ("--title", card.title, plain.title),
        ("--regret", card.regret, 0.0),
    ]
    pairs += [("--prior", card.prior, plain.prior), ("--ledger-head", card.ledger_head, None)]
    pairs += [("--mechanism", made.name, plain.mechanism.name)]
    for name in ("sensitivity", "sigma", "noise_multiplier", "sampling_rate", "steps", "sampling"):
        pairs.append((f"--{name.replace('_', '-')}", getattr(made, name), None))
    for name in ("trust_model", "adversary", "contribution_bound"):
        pairs.append((f"--{name.replace('_', '-')}", getattr(scope, name), getattr(plain.scope, name)))
    pairs += [("--covered", entry, None) for entry in scope.covered]
    pairs += [("--not-covered", entry, None) for entry in scope.not_covered]
    if card.audit is not None:
        pairs.append(("--audit", json.dumps(card.audit.to_dict()), None))
    for flag, value, default in pairs:
        words += [] if value == default or value is None else [flag, value]
    return shlex.join(str(word) for word in [*words, "--date", card.date])
