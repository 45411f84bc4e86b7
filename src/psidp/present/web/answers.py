"""What the JSON API answers: the library's functions, called with what was asked. Nothing is computed here."""

from typing import Any

import numpy as np

from psidp.auditing.independent import audit
from psidp.guarantee import Guarantee
from psidp.maths.sensitivity import check_adjacency
from psidp.present.card.formats import written
from psidp.present.card.record import Mechanism, Scope, card
from psidp.present.words import sentences, statements

__all__ = ["answer_audit", "answer_calibrate", "answer_card", "answer_explain"]

CONTEXT = ("adjacency", "unit")
NOTIONS = ("psi", "epsilon", "delta", "auc", "advantage", "tpr", "fpr", "alpha", "rho", "zcdp")


def named(asked: dict[str, Any], notions: tuple[str, ...]) -> Guarantee:
    """The Gaussian mechanism's guarantee from the notions that were given."""
    given = {name: asked[name] for name in notions if asked[name] is not None}
    return Guarantee.gaussian(adjacency=check_adjacency(asked["adjacency"]), unit=asked["unit"], **given)


def answer_explain(asked: dict[str, Any]) -> dict[str, Any]:
    """What `psidp explain --json` prints."""
    guarantee = named(asked, (*NOTIONS, "sensitivity", "sigma"))
    rows = [{"theory": s.theory, "quantity": s.quantity, "value": s.value} for s in statements(guarantee)]
    return {"guarantee": guarantee.to_dict(), "statements": rows, "sentences": sentences(guarantee)}


def answer_calibrate(asked: dict[str, Any]) -> dict[str, Any]:
    """What `psidp calibrate --json` prints."""
    guarantee = named(asked, (*NOTIONS, "sigma"))
    sigma = guarantee.sigma(asked["sensitivity"])
    return {"sigma": sigma, "sensitivity": asked["sensitivity"], "guarantee": guarantee.to_dict()}


def answer_card(asked: dict[str, Any]) -> dict[str, Any]:
    """The card as JSON values, or as text in another format."""
    sensitivity, sigma = asked["sensitivity"], asked["sigma"]
    plain = all(asked[name] is None for name in NOTIONS)
    whole = named(asked, ("sensitivity", "sigma") if plain else NOTIONS)
    guarantee = Guarantee(whole.psi, asked["kappa"], whole.adjacency, whole.unit)
    if sensitivity is not None and sigma is None and guarantee.psi > 0.0:
        sigma = guarantee.sigma(sensitivity)
    made = card(
        guarantee,
        title=asked["title"],
        prior=asked["prior"],
        mechanism=Mechanism(sensitivity=sensitivity, sigma=sigma),
        scope=Scope(covered=tuple(asked["covered"]), not_covered=tuple(asked["not_covered"])),
        ledger_head=asked["ledger_head"],
    )
    if asked["format"] == "json":
        return {"format": "json", "card": made.to_dict()}
    return {"format": asked["format"], "text": written(made, asked["format"])}


def answer_audit(asked: dict[str, Any]) -> dict[str, Any]:
    """What `psidp audit --json` prints of independent runs."""
    psi = asked["claimed_psi"]
    claimed = None if psi is None else Guarantee(psi, asked["claimed_kappa"])
    inside, outside = (np.asarray(asked[name], dtype=float) for name in ("in_scores", "out_scores"))
    return audit(inside, outside, asked["confidence"], claimed=claimed, seed=asked["seed"]).to_dict()
