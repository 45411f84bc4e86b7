"""Price: what a release costs, said in the notion that a caller has, or by the errors that it shall have."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf, sqrt
from typing import Any

import numpy as np

from psidp.curator.ask import Aggregate
from psidp.curator.groups import PrivateGroups
from psidp.curator.plan import expected_errors
from psidp.curator.query import Query
from psidp.guarantee import Guarantee
from psidp.maths.notion import NAMES, OF_A_QUERY, psi_of
from psidp.symbols import float_above, float_below, symbol

__all__ = ["Wanted", "kappa_of", "price_of", "priced_by_error", "psi_of_notion"]

Wanted = float | tuple[float, float] | Mapping[str, float | tuple[float, float]]
"""A standard error, with a number of rows where it depends on that; by the names of aggregates if there are several."""

ROOM = 1.0 + 2.0**-40
"""psi is a little more than errors need, so that rounding leaves none of them above what was asked."""


def kappa_of(groups: Any) -> float:
    """kappa that choosing the groups costs; 0 where they are public."""
    return groups.kappa if isinstance(groups, PrivateGroups) else 0.0


def price_of(psi: float | None, notions: Mapping[str, object], error: Any, groups: Any) -> tuple[float, str]:
    """psi of a release, and its notion in words; 1 where errors decide, which `priced_by_error` then puts right."""
    if error is not None and (psi is not None or notions):
        raise TypeError("psi, another notion, or error must be given, one of them.")
    plain = 1.0 if error is not None else None if notions else psi
    return (plain, "") if plain is not None else psi_of_notion(psi, notions, kappa_of(groups))


def psi_of_notion(psi: float | None, notions: Mapping[str, object], kappa: float = 0.0) -> tuple[float, str]:
    """psi for which a release has the wanted property, kappa included, never rounded up; and that in words.

    With kappa > 0 (private groups) delta(epsilon) = kappa + (1 - kappa) delta_psi(epsilon), and likewise for the other
    notions (`Guarantee`): what is left of them after kappa decides.

    Examples:
        >>> psi_of_notion(None, {"epsilon": 1, "delta": 1e-6})
        (0.2367..., 'Price: epsilon 1 and delta 1e-06 together are psi 0.237.')
        >>> psi_of_notion(0.5, {})
        (0.5, '')
    """
    given: dict[str, Any] = ({} if psi is None else {"psi": psi}) | {
        name: value for name, value in notions.items() if value is not None
    }
    if "sensitivity" in given or "sigma" in given:
        raise TypeError(
            "psi (price of a table) must be given as psi, as epsilon and delta or as another notion without a "
            f"sensitivity, got {', '.join(given)}. The sensitivity follows from the measures, their bounds and the "
            "contribution, and sigma from that and psi. To choose how accurate the numbers are, give the error that is "
            "wanted."
        )
    known = [name for name in NAMES if name not in OF_A_QUERY]
    strange = [name for name in given if name not in known]
    if strange and len(given) > 1:
        raise TypeError(f"{strange[0]!r} is neither an argument nor a notion here; notions are {', '.join(known)}.")
    if not given:
        raise TypeError(
            "a release must say what it costs: psi, a notion such as epsilon and delta, or the error that is wanted."
        )
    if "psi" in given:
        given["psi"] = symbol("psi").at_most(given["psi"])  # of a loss it would be rounded up, but this is a target
    found = psi_of(given if not kappa else _without_kappa(given, kappa))
    if set(given) == {"psi"}:
        return found, ""
    said = " and ".join(f"{name} {value:g}" for name, value in given.items())
    taken = f", of which kappa {kappa:g} goes into choosing groups," if kappa else ""
    verb = "together are" if len(given) > 1 else "is"
    return found, f"Price: {said}{taken} {verb} psi {found:.3g}."


def _without_kappa(given: dict[str, float], kappa: float) -> dict[str, float]:
    """The notion that is left for psi once kappa is taken out, never rounded up; refused where nothing is left."""
    rest, left = 1 - Fraction(kappa), {name: symbol(name).number(value) for name, value in given.items()}
    if set(given) == {"epsilon", "delta"}:
        left["delta"] = float_below((Fraction(left["delta"]) - Fraction(kappa)) / rest)
        most = left["delta"] > 0.0
    elif set(given) == {"auc"}:
        left["auc"] = float_below(1 - (1 - Fraction(left["auc"])) / rest**2)
        most = left["auc"] > 0.5
    elif set(given) == {"advantage"}:
        left["advantage"] = float_below(1 - (1 - Fraction(left["advantage"])) / rest)
        most = left["advantage"] > 0.0
    elif set(given) == {"tpr", "fpr"}:
        left["tpr"] = float_below((Fraction(left["tpr"]) - Fraction(kappa)) / rest)
        left["fpr"] = float_above(Fraction(left["fpr"]) / rest)
        most = left["tpr"] > left["fpr"]
    else:
        most = not {"zcdp", "rho"} & set(given)
    if not most:
        said = ", ".join(f"{name}={value}" for name, value in given.items())
        raise ValueError(
            f"{said} leaves nothing for noise: choosing groups costs kappa={kappa:g} of it. Ask for more, a smaller "
            "kappa, or give public groups. Renyi and zero-concentrated privacy have no kappa at all."
        )
    return left


def priced_by_error(asked: Query, wanted: Any) -> Query:
    """The question at the least psi for which every aggregate has the standard error that is wanted of it.

    Noise goes as 1/psi_j, so an aggregate needs psi_j = (its error at psi_j = 1) / wanted, and all of them together
    sqrt(sum psi_j^2), shared by psi_j^2.
    """
    needed, said = [], []
    for a, (error, rows) in zip(asked.asks, _errors(asked.asks, wanted), strict=True):
        unit = expected_errors(asked, a)
        needed.append(asked.share(a.weight) * unit / (rows or 1.0) / error)
        said.append(f"{error:g} for {a.name}" + (f" in a group of {rows:,.0f} rows" if rows else ""))
    squares = [n * n for n in needed]
    mean = sum(squares) / len(squares)
    asks = tuple(replace(a, weight=square / mean) for a, square in zip(asked.asks, squares, strict=True))
    groups = 0.0 if asked.private is None else asked.private.weight
    psi = sqrt(sum(squares) * (1.0 + groups / len(asks))) * ROOM
    g = asked.guarantee
    words = f"Price: standard errors of {', '.join(said)} need psi {psi:.3g}."
    return replace(asked, asks=asks, guarantee=Guarantee(psi, g.kappa, g.adjacency, g.unit), price=words)


def _errors(asks: Sequence[Aggregate], wanted: Any) -> list[tuple[float, float]]:
    """The wanted error of each aggregate, and in a group of how many rows, 0 where that does not matter."""
    if not isinstance(wanted, Mapping):
        if len(asks) > 1:
            raise ValueError(
                f"error must name each of {_names(asks)}, such as {{{asks[0].name!r}: 10}}, got {wanted!r}."
            )
        wanted = {asks[0].name: wanted}
    if set(wanted) != {a.name for a in asks}:
        raise ValueError(f"error must name each of {_names(asks)}, got {', '.join(map(repr, wanted)) or 'none'}.")
    return [_error(a, wanted[a.name]) for a in asks]


def _error(aggregate: Aggregate, wanted: Any) -> tuple[float, float]:
    """One wanted error, or a refusal that says in what it is."""
    if aggregate.contribution == "auto" or (aggregate.bounds is not None and aggregate.kind != "histogram"):
        raise ValueError(
            f"contribution and bounds of {aggregate.name!r} must be given where an error is wanted, since it depends "
            'on them, got "auto".'
        )
    if aggregate.weight != 1.0:
        raise ValueError(f"weight of {aggregate.name!r} must be left out where errors are wanted: they decide.")
    error: Any
    rows: Any
    error, rows = wanted if isinstance(wanted, tuple | list) and len(wanted) == 2 else (wanted, None)
    if not (_real(error) and 0.0 < error < inf):
        raise ValueError(f"error (wanted standard error) of {aggregate.name!r} must be in (0, inf), got {wanted!r}.")
    if aggregate.parts > 1 and not (_real(rows) and 1.0 <= rows < inf):
        raise ValueError(
            f"error of {aggregate.name!r} must come with the number of rows of a group, such as ({error:g}, 1000): it "
            f"falls with that, got {wanted!r}."
        )
    if aggregate.parts == 1 and rows is not None:
        raise ValueError(
            f"error of {aggregate.name!r} must be one number: it is the same for any rows, got {wanted!r}."
        )
    return float_below(error), float_below(rows or 0.0)


def _real(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _names(asks: Sequence[Aggregate]) -> str:
    return ", ".join(repr(a.name) for a in asks)
