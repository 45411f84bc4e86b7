"""psidp convert: one notion turned into others, each target with what it must be told and the method that answers."""

from collections.abc import Callable
from typing import Annotated

import typer

from psidp.cli import options, plain_values
from psidp.cli.echo import echo
from psidp.cli.json_output import show_json
from psidp.guarantee import Guarantee
from psidp.maths.notion import NAMES
from psidp.maths.profile import log_delta_from_psi
from psidp.maths.renyi import rho_from_psi
from psidp.symbols import symbol

__all__ = ["TARGETS", "conditions", "convert", "converted"]

TARGETS: dict[str, tuple[str, Callable[[Guarantee, float], float]]] = {
    "psi": ("", lambda g, _: g.psi),
    "epsilon": ("delta", lambda g, delta: g.epsilon(delta)),
    "delta": ("epsilon", lambda g, epsilon: g.delta(epsilon)),
    "log_delta": ("epsilon", lambda g, epsilon: log_delta_from_psi(g.psi, epsilon)),
    "tpr": ("fpr", lambda g, fpr: g.roc(fpr)),
    "fnr": ("fpr", lambda g, fpr: g.tradeoff(fpr)),
    "auc": ("", lambda g, _: g.auc),
    "advantage": ("", lambda g, _: g.advantage),
    "rho": ("alpha", lambda g, alpha: g.rdp(alpha)),
    "zcdp": ("", lambda g, _: rho_from_psi(g.psi, 1.0)),
    "sigma": ("sensitivity", lambda g, sensitivity: g.sigma(sensitivity)),
}


@options.with_notions(*NAMES)
def convert(
    to: Annotated[list[str], typer.Option("--to", help=f"what to compute: {', '.join(TARGETS)}")],
    notions: options.Notions,
    at: Annotated[
        list[str], typer.Option("--at", help="where to compute it: delta=1e-6, epsilon=1, fpr=0.01, ...")
    ] = [],  # noqa: B006
    adjacency: options.Adjacent = "add-remove",
    unit: options.Unit = "record",
    as_json: options.AsJson = False,
) -> None:
    """Turn one notion into others, with every digit.

    Example: psidp convert --epsilon 1 --delta 1e-5 --to psi --to auc --to tpr --at fpr=0.01
    """
    guarantee = options.chosen(adjacency, unit, notions)
    results = converted(guarantee, to, conditions(at))
    if as_json:
        return show_json({"guarantee": guarantee.to_dict()} | results)
    for name, value in results.items():
        echo(f"{value!r}" if len(results) == 1 else f"{name} {value!r}")
    return None


def conditions(words: list[str]) -> dict[str, float]:
    """The --at words as numbers, each inside its domain.

    Examples:
        >>> conditions(["delta=1e-6"])
        {'delta': 1e-06}
    """
    asked = {condition for condition, _ in TARGETS.values() if condition}
    found: dict[str, float] = {}
    for word in words:
        name, _, number = word.partition("=")
        if name not in asked:
            raise ValueError(f"--at must read name=number with a name of {', '.join(sorted(asked))}, got {word!r}.")
        if name in found:
            raise ValueError(f"--at must give {name} once, got it again as {word!r}. Ask once for each value.")
        try:
            value = plain_values.number(number)
        except ValueError:
            raise ValueError(f"--at must read name=number, such as {name}=0.01, got {word!r}.") from None
        found[name] = symbol(name).number(value)
    return found


def converted(guarantee: Guarantee, targets: list[str], at: dict[str, float]) -> dict[str, float]:
    """Each target's value, or a refusal that says what it must be told.

    Examples:
        >>> converted(Guarantee(1.0), ["delta"], {"epsilon": 1.0})
        {'delta': 0.1269...}
    """
    results = {}
    for target in targets:
        if target not in TARGETS:
            raise ValueError(f"--to must be one of {', '.join(TARGETS)}, got {target!r}.")
        condition, answer = TARGETS[target]
        if condition and condition not in at:
            raise ValueError(f"{target} depends on {condition}: add --at {condition}=NUMBER.")
        results[target] = float(answer(guarantee, at.get(condition, 0.0)))
    return results
