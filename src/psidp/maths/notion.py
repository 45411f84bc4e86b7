"""Notion: the ways to name a Gaussian mechanism, each complete in itself, and the psi that each stands for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from inspect import Parameter, signature
from math import inf, nan
from typing import Any, ParamSpec, TypedDict, TypeVar, get_args

from psidp.maths.profile_inverse import psi_from_epsilon_delta
from psidp.maths.renyi import psi_from_rho, psi_from_zcdp
from psidp.maths.roc import psi_from_advantage, psi_from_auc, psi_from_rates
from psidp.maths.rounding import bounded
from psidp.symbols import SYMBOLS, float_above, symbol

__all__ = [
    "NAMES", "NOTIONS", "OF_A_QUERY", "GaussianNotions", "Notion", "Notions", "known_by_our_names", "psi_of",
    "spelled_out", "worth",
]  # fmt: skip

Given = ParamSpec("Given")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Notion:
    """One way to name a Gaussian mechanism, complete in itself: its quantities, and the psi that they stand for.

    Signatures, options and refusals follow from this record. `psi` gets the quantities in the order of `names`.
    """

    names: tuple[str, ...]
    psi: Callable[..., Any]
    of_a_query: bool = False
    """Whether it speaks of one query whose sensitivity is known, and so is no price of a table."""


def _psi_of_a_query(sensitivity: float, sigma: float) -> float:
    return bounded(float_above(Fraction(sensitivity) / Fraction(sigma)))


NOTIONS = (
    Notion(("psi",), float),
    Notion(("epsilon", "delta"), psi_from_epsilon_delta),
    Notion(("sensitivity", "sigma"), _psi_of_a_query, of_a_query=True),
    Notion(("auc",), psi_from_auc),
    Notion(("advantage",), psi_from_advantage),
    Notion(("tpr", "fpr"), psi_from_rates),
    Notion(("alpha", "rho"), lambda alpha, rho: psi_from_rho(rho, alpha)),
    Notion(("zcdp",), psi_from_zcdp),
)
"""The ways to name a Gaussian mechanism."""

NAMES = tuple(name for notion in NOTIONS for name in notion.names)
"""The quantities that can name a Gaussian mechanism."""

OF_A_QUERY = tuple(name for notion in NOTIONS if notion.of_a_query for name in notion.names)
"""Those that speak of one query whose sensitivity is known."""


class Notions(TypedDict, total=False):
    """The price of a table, if it is not given as psi; for type checkers and editors, which do not run NOTIONS."""

    epsilon: float | None
    delta: float | None
    auc: float | None
    advantage: float | None
    tpr: float | None
    fpr: float | None
    alpha: float | None
    rho: float | None
    zcdp: float | None


class GaussianNotions(Notions, total=False):
    """What names a Gaussian mechanism, if that is not psi."""

    sensitivity: float | None
    sigma: float | None


def spelled_out(call: Callable[Given, Made]) -> Callable[Given, Made]:
    """The same call; its signature names every notion that its keywords take, for help, notebooks and editors."""
    shown = signature(call)
    plain = [p for p in shown.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    (keywords,) = (p for p in shown.parameters.values() if p.kind is Parameter.VAR_KEYWORD)
    taken = NAMES if get_args(keywords.annotation)[0] is GaussianNotions else _PRICES
    named = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=float | None)
        for name in taken
        if name not in shown.parameters
    ]
    call.__signature__ = shown.replace(parameters=[*plain, *named])  # type: ignore[attr-defined]
    return call


_PRICES = tuple(name for name in NAMES if name not in OF_A_QUERY)


def psi_of(notion: Mapping[str, float]) -> float:
    """psi of the Gaussian mechanism with exactly one of NOTIONS; rounded up.

    Examples:
        >>> psi_of({"sensitivity": 1, "sigma": 2})
        0.5
    """
    given = tuple(notion)
    match = next((known for known in NOTIONS if set(known.names) == set(given)), None)
    if match is None:
        ways = " | ".join(" and ".join(known.names) for known in NOTIONS)
        half = next((known.names for known in NOTIONS if given and set(given) < set(known.names)), ())
        todo = "".join(f" Give {name} as well." for name in half if name not in given)
        todo += "".join(f" {name} is called {own} here." for name in given for own in _own_names(name))
        raise TypeError(f"exactly one notion must be given: {ways}; got {', '.join(given) or 'none'}.{todo}")
    return worth(float(match.psi(*(symbol(name).number(notion[name]) for name in match.names))), notion)


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
    ways = [symbol(own) for own in NAMES]
    return [s.name for s in ways if name not in SYMBOLS and name in s.elsewhere.replace(",", " ").split()]


def worth(psi: float, claim: Mapping[str, float], verdict: str = "allows any psi: it promises no privacy") -> float:
    """psi itself; refused where no finite psi covers the claim."""
    if not psi < inf:
        said = ", ".join(f"{name}={value}" for name, value in claim.items())
        raise ValueError(f"{said} {verdict}.")
    return psi
