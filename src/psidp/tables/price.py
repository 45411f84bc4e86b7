"""Price: psi of a release from the notion that a caller has, or from the errors that it shall have."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from psidp.maths.notion import NAMES, OF_A_QUERY, psi_of
from psidp.symbols import float_above, float_below, symbol
from psidp.tables.ask import Ask

__all__ = ["Wanted", "psi_from_notion", "wanted_errors"]

Wanted = float | tuple[float, float] | Mapping[str, float | tuple[float, float]]
"""A standard error, with a number of rows where it depends on that; by the names of measures if there are several."""


def psi_from_notion(psi: float | None, notions: Mapping[str, object], kappa: float = 0.0) -> tuple[float, str]:
    """psi for which a release has the wanted property, kappa included, never rounded up; and that in words.

    With kappa > 0 (private groups) delta(epsilon) = kappa + (1 - kappa) delta_psi(epsilon), and likewise for the other
    notions (`Guarantee`): what is left of them after kappa decides.

    Examples:
        >>> psi_from_notion(None, {"epsilon": 1, "delta": 1e-6})
        (0.2367..., 'Price: epsilon 1 and delta 1e-06 together are psi 0.237.')
        >>> psi_from_notion(0.5, {})
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
        raise TypeError("a release must have a price: psi, a notion such as epsilon and delta, or the wanted error.")
    if "psi" in given:
        given["psi"] = symbol("psi").at_most(given["psi"])  # of a loss it would be rounded up, but this is a target
    found = psi_of(_without_kappa(given, kappa) if kappa else given)
    if set(given) == {"psi"}:
        return found, ""
    shown = " and ".join(f"{name} {value:g}" for name, value in given.items())
    taken = f", of which kappa {kappa:g} goes into choosing groups," if kappa else ""
    verb = "together are" if len(given) > 1 else "is"
    return found, f"Price: {shown}{taken} {verb} psi {found:.3g}."


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
        shown = ", ".join(f"{name}={value}" for name, value in given.items())
        raise ValueError(
            f"{shown} leaves nothing for noise: choosing groups costs kappa={kappa:g} of it. Ask for more, a smaller "
            "kappa, or give public groups. Renyi and zero-concentrated privacy have no kappa at all."
        )
    return left


def wanted_errors(asks: Sequence[Ask], wanted: Any) -> list[tuple[float, float]]:
    """The wanted error of each measure, and in a group of how many rows; 0 where that does not matter."""
    names = ", ".join(repr(a.name) for a in asks)
    if not isinstance(wanted, Mapping):
        if len(asks) > 1:
            raise ValueError(f"error must name each of {names}, such as {{{asks[0].name!r}: 10}}, got {wanted!r}.")
        wanted = {asks[0].name: wanted}
    if set(wanted) != {a.name for a in asks}:
        raise ValueError(f"error must name each of {names}, got {', '.join(map(repr, wanted)) or 'none'}.")
    return [_wanted_error(a, wanted[a.name]) for a in asks]


def _wanted_error(ask: Ask, wanted: Any) -> tuple[float, float]:
    """One wanted error, or a refusal that says in what it is."""
    name, by_rows = ask.name, ask.measure.vector.parts > 1
    if ask.contribution == "auto" or (ask.measure.chooses_bounds and not ask.measure.counts_of):
        raise ValueError(
            f"contribution and bounds of {name!r} must be given where an error is wanted, since it depends on them, "
            'got "auto".'
        )
    if ask.weight != 1.0:
        raise ValueError(f"weight of {name!r} must be left out where errors are wanted: they decide.")
    error: Any
    rows: Any
    error, rows = wanted if isinstance(wanted, tuple | list) and len(wanted) == 2 else (wanted, None)
    if not (_real(error) and 0.0 < error < inf):
        raise ValueError(f"error (wanted standard error) of {name!r} must be in (0, inf), got {wanted!r}.")
    if by_rows and not (_real(rows) and 1.0 <= rows < inf):
        raise ValueError(
            f"error of {name!r} must come with the number of rows of a group, such as ({error:g}, 1000): it falls with "
            f"that, got {wanted!r}."
        )
    if not by_rows and rows is not None:
        raise ValueError(f"error of {name!r} must be one number: it is the same for any rows, got {wanted!r}.")
    return float_below(error), float_below(rows or 0.0)


def _real(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
