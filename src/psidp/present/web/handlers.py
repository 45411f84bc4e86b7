"""What the JSON API answers: the library's functions, called with what was asked. Nothing is computed here."""

from dataclasses import replace
from typing import Any

import numpy as np

from psidp.accounting import DPSGD, account, calibrate
from psidp.accounting.calibration import described_run
from psidp.auditing.independent import audit
from psidp.guarantee import Guarantee
from psidp.maths.notion import NAMES, OF_A_QUERY
from psidp.maths.sensitivity import check_adjacency
from psidp.present.card.formats import written
from psidp.present.card.record import Mechanism, Scope, card
from psidp.present.words import sentences, statements

__all__ = ["answer_account", "answer_audit", "answer_calibrate", "answer_card", "answer_explain", "describes_run"]

CONTEXT = ("adjacency", "unit")
PRICES = tuple(name for name in NAMES if name not in OF_A_QUERY)
RUN = ("sampling_rate", "steps", "batch_size", "dataset_size", "epochs", "bands", "order")


def named(asked: dict[str, Any], notions: tuple[str, ...]) -> Guarantee:
    """The Gaussian mechanism's guarantee from the notions that were given."""
    given = {name: asked[name] for name in notions if asked[name] is not None}
    return Guarantee.gaussian(adjacency=check_adjacency(asked["adjacency"]), unit=asked["unit"], **given)


def answer_explain(asked: dict[str, Any]) -> dict[str, Any]:
    """What `psidp explain --json` prints."""
    guarantee = named(asked, NAMES)
    rows = [{"theory": s.theory, "quantity": s.quantity, "value": s.value} for s in statements(guarantee)]
    return {"guarantee": guarantee.to_dict(), "statements": rows, "sentences": sentences(guarantee)}


def answer_calibrate(asked: dict[str, Any]) -> dict[str, Any]:
    """What `psidp calibrate --json` prints: sigma for a sensitivity, noise_multiplier for a run."""
    if describes_run(asked):
        return _calibrated_run(asked)
    if asked["sensitivity"] is None:
        raise ValueError("calibrate needs sensitivity for a query, or sampling_rate and steps for a run.")
    if asked["kappa"] is not None:
        raise ValueError("kappa (probability of outright failure) belongs to a run, which has sampling_rate and steps.")
    guarantee = named(asked, (*PRICES, "sigma"))
    sigma = guarantee.sigma(asked["sensitivity"])
    return {"sigma": sigma, "sensitivity": asked["sensitivity"], "guarantee": guarantee.to_dict()}


def describes_run(asked: dict[str, Any]) -> bool:
    """Whether a question speaks of a run."""
    return any(asked.get(name) is not None for name in RUN)


def _calibrated_run(asked: dict[str, Any]) -> dict[str, Any]:
    """The least noise_multiplier of a run for its target."""
    run: dict[str, Any] = {name: asked[name] for name in (*RUN, "sampling") if asked.get(name) is not None}
    side = check_adjacency(asked.get("adjacency", "add-remove"))
    run |= {} if side == "add-remove" else {"adjacency": side}  # which nobody may have said: the sampling says it
    described_run(**run)
    targets = ("epsilon", "delta", "psi", "kappa", "advantage")
    other = [n for n in NAMES if n not in targets and asked[n] is not None]
    if other:
        raise ValueError(f"a run is calibrated to epsilon and delta, psi and kappa, or advantage, got {other[0]}.")
    given = {name: asked[name] for name in targets if asked[name] is not None}
    return {"noise_multiplier": calibrate(**run, **given)} | run | given


def answer_account(asked: dict[str, Any]) -> dict[str, Any]:
    """A certified interval for epsilon and the one psi that, with kappa, covers the whole series of runs."""
    curve = account([_run(unit=asked["unit"], **run) for run in asked["runs"]])
    epsilon, regret = curve.epsilon(asked["delta"]), curve.regret(asked["kappa"])
    return {
        "epsilon": {"delta": asked["delta"], "lower": epsilon.lower, "upper": epsilon.upper, "method": epsilon.method},
        "guarantee": curve.guarantee(asked["kappa"]).to_dict(),
        "regret": {"lower": regret.lower, "upper": regret.upper},
        "auc": {"lower": curve.auc.lower, "upper": curve.auc.upper},
        "advantage": {"lower": curve.advantage.lower, "upper": curve.advantage.upper},
    }


def _run(*, noise_multiplier: float, bands: int | None, order: str | None, **said: Any) -> Any:
    """The run that was described, plain or with correlated noise."""
    if bands is None and order is None:
        return DPSGD(noise_multiplier, **said)
    return replace(described_run(bands=bands, order=order, **said), noise_multiplier=noise_multiplier)


def answer_card(asked: dict[str, Any]) -> dict[str, Any]:
    """The card as JSON values, or as text in another format."""
    sensitivity, sigma = asked["sensitivity"], asked["sigma"]
    plain = all(asked[name] is None for name in PRICES)
    whole = named(asked, ("sensitivity", "sigma") if plain else PRICES)
    guarantee = Guarantee(whole.psi, asked["kappa"], whole.adjacency, whole.unit)
    if sensitivity is not None and sigma is None and guarantee.psi > 0.0:
        sigma = guarantee.sigma(sensitivity)
    made = card(
        guarantee,
        title=asked["title"],
        publisher=asked["publisher"],
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
