"""psidp explain: what a mechanism promises, in every theory and in words."""

from typing import Annotated, Any

import typer

from psidp.cli import options
from psidp.cli.json_output import show_json
from psidp.cli.tables import show_explanation, show_readings
from psidp.guarantee import Guarantee
from psidp.maths.notion import NAMES
from psidp.maths.sensitivity import check_adjacency
from psidp.present.claims import KAPPA, any_mechanism, which_applies
from psidp.present.words import sentences, statements

__all__ = ["explain"]


@options.with_notions(*NAMES)
def explain(
    notions: options.Notions,
    any_mechanism_: Annotated[
        bool, typer.Option("--any-mechanism", help="what the claim is worth if the mechanism may not be Gaussian")
    ] = False,
    kappa: Annotated[
        float | None, typer.Option("--kappa", help="of --any-mechanism for zcdp and Renyi DP: chance to fail outright")
    ] = None,
    adjacency: options.Adjacent = "add-remove",
    unit: options.Unit = "record",
    as_json: options.AsJson = False,
) -> None:
    """Say what a mechanism promises, in every theory and in words.

    Name the Gaussian mechanism in one way: --psi, or --epsilon and --delta, or --sensitivity and --sigma, or --auc, ...

    Of somebody else's claim, --any-mechanism shows what it is worth where nobody said that the mechanism is Gaussian.

    Example: psidp explain --epsilon 1 --delta 1e-5

    Example: psidp explain --zcdp 0.5 --any-mechanism
    """
    if kappa is not None and not any_mechanism_:
        raise ValueError(f"--kappa goes with --any-mechanism, got {kappa}.")
    if any_mechanism_:
        return _readings(notions, KAPPA if kappa is None else kappa, adjacency, unit, as_json)
    guarantee = options.chosen(adjacency, unit, notions)
    return show_json(_explained(guarantee)) if as_json else show_explanation(guarantee)


def _readings(notions: options.Notions, kappa: float, adjacency: str, unit: str, as_json: bool) -> None:
    """Both readings of a claim, and which applies when; pure epsilon has no Gaussian one."""
    covering = any_mechanism(notions, kappa, adjacency=check_adjacency(adjacency), unit=unit)
    pure = set(notions) == {"epsilon"} or notions.get("delta") == 0.0
    gaussian = None if pure else options.chosen(adjacency, unit, notions)
    which = which_applies(gaussian, covering, notions)
    if not as_json:
        return show_readings(gaussian, covering, which)
    own: dict[str, Any] = {"guarantee": None} if gaussian is None else _explained(gaussian)
    return show_json(own | {"any_mechanism": _explained(covering, gaussian=False), "which_applies": which})


def _explained(guarantee: Guarantee, gaussian: bool = True) -> dict[str, Any]:
    """The guarantee, its equivalent statements and its sentences as plain values."""
    rows = [{"theory": s.theory, "quantity": s.quantity, "value": s.value} for s in statements(guarantee)]
    return {"guarantee": guarantee.to_dict(), "statements": rows, "sentences": sentences(guarantee, gaussian)}
