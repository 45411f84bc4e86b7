"""Notion: the ways to name a Gaussian mechanism, each complete in itself, and the psi that each stands for."""

from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from inspect import Parameter, signature
from math import inf, nan
from typing import Any, ParamSpec, TypedDict, TypeVar

from psidp.maths.profile_inverse import psi_from_epsilon_delta
from psidp.maths.renyi import psi_from_rho, psi_from_zcdp
from psidp.maths.roc import psi_from_advantage, psi_from_auc, psi_from_rates
from psidp.maths.rounding import bounded
from psidp.symbols import SYMBOLS, float_above, symbol

__all__ = ["NOTIONS", "Notions", "known_by_our_names", "psi_of", "spelled_out", "worth"]

Given = ParamSpec("Given")
Made = TypeVar("Made")

NOTIONS = (
    ("psi",),
    ("epsilon", "delta"),
    ("sensitivity", "sigma"),
    ("auc",),
    ("advantage",),
    ("tpr", "fpr"),
    ("alpha", "rho"),
    ("zcdp",),
)
"""The ways to name a Gaussian mechanism, each complete in itself."""


class Notions(TypedDict, total=False):
    """What a price of a table may be given as instead of psi, for type checkers and editors."""

    epsilon: float
    delta: float
    auc: float
    advantage: float
    tpr: float
    fpr: float
    alpha: float
    rho: float
    zcdp: float


def spelled_out(call: Callable[Given, Made]) -> Callable[Given, Made]:
    """The same call; its signature names every notion that `**notions` takes, for help, notebooks and editors."""
    shown = signature(call)
    named = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=float) for name in Notions.__annotations__
    ]
    plain = [p for p in shown.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    call.__signature__ = shown.replace(parameters=[*plain, *named])  # type: ignore[attr-defined]
    return call


def psi_of(notion: dict[str, float]) -> float:
    """psi of the Gaussian mechanism with exactly one of NOTIONS; rounded up.

    Examples:
        >>> psi_of({"sensitivity": 1, "sigma": 2})
        0.5
    """
    given = tuple(notion)
    match = next((names for names in NOTIONS if set(names) == set(given)), None)
    if match is None:
        ways = " | ".join(" and ".join(names) for names in NOTIONS)
        half = next((names for names in NOTIONS if given and set(given) < set(names)), ())
        todo = "".join(f" Give {name} as well." for name in half if name not in given)
        todo += "".join(f" {name} is called {own} here." for name in given for own in _own_names(name))
        raise TypeError(f"exactly one notion must be given: {ways}; got {', '.join(given) or 'none'}.{todo}")
    numbers = [symbol(name).number(notion[name]) for name in match]
    if match == ("sensitivity", "sigma"):
        sensitivity, sigma = numbers
        return bounded(float_above(Fraction(sensitivity) / Fraction(sigma)))
    roads: dict[tuple[str, ...], Any] = {
        ("psi",): float,
        ("epsilon", "delta"): psi_from_epsilon_delta,
        ("auc",): psi_from_auc,
        ("advantage",): psi_from_advantage,
        ("tpr", "fpr"): psi_from_rates,
        ("alpha", "rho"): lambda alpha, rho: psi_from_rho(rho, alpha),
        ("zcdp",): psi_from_zcdp,
    }
    return worth(float(roads[match](*numbers)), notion)


def known_by_our_names(call: Callable[Given, Made]) -> Callable[Given, Made]:
    """`call`, which refuses a notion under another library's name with the name that it has here."""
    known = signature(call).parameters.keys()

    @wraps(call)
    def checked(*args: Given.args, **given: Given.kwargs) -> Made:
        if not given.keys() <= known:
            psi_of({name: nan for name in given if name not in ("adjacency", "unit")})  # refuses
        return call(*args, **given)

    return checked


def _own_names(name: str) -> list[str]:
    """What a notion that others call `name` is called here: mu is psi."""
    ways = [symbol(own) for names in NOTIONS for own in names]
    return [s.name for s in ways if name not in SYMBOLS and name in s.elsewhere.replace(",", " ").split()]


def worth(psi: float, claim: dict[str, float], verdict: str = "allows any psi: it promises no privacy") -> float:
    """psi itself; refused where no finite psi covers the claim."""
    if not psi < inf:
        said = ", ".join(f"{name}={value}" for name, value in claim.items())
        raise ValueError(f"{said} {verdict}.")
    return psi
