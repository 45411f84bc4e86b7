"""The refusals of a budget that is spent or closed: what is left, what was asked and what would fit."""

from collections.abc import Mapping
from math import inf, nan
from typing import Any

from psidp.errors import BudgetClosedError, BudgetExceededError
from psidp.guarantee import Guarantee
from psidp.ledger.cost import Cost
from psidp.maths.rounding import digits_down, digits_up

__all__ = ["CLOSED", "beyond", "closed", "exceeded"]

CLOSED = "It is closed for good: to release more, open a new budget under another name."


def closed(budget: str) -> BudgetClosedError:
    """The error to raise for whatever is asked of a closed budget."""
    return BudgetClosedError(f"Budget {budget!r} takes no entry; nothing was spent and nothing released. {CLOSED}")


def exceeded(budget: str, asked: Cost, left: Cost, event: Mapping[str, Any]) -> BudgetExceededError:
    """The error to raise; `event` says the sensitivity, if it is known.

    Examples:
        >>> left, asked = Cost.of(Guarantee(0.25)), Cost.of(Guarantee(0.5))
        >>> print(exceeded("survey", asked, left, {"kind": "gaussian", "sensitivity": 1.0, "sigma": 2.0}))
        Budget 'survey' has psi 0.25 left; this release needs 0.5. Raise sigma to 4 or more, or ask for less.
    """
    terms = Guarantee(0.0)
    need, rest = asked.guarantee(terms), left.guarantee_below(terms)
    sigma = _smallest_sigma(rest, event)
    said = []
    if not asked.square <= left.square:
        said.append(f"has psi {_down(rest.psi)} left; this release needs {_up(need.psi)}")
    if not asked.kappa <= left.kappa:
        said.append(f"has kappa {_down(rest.kappa)} left; this release needs {_up(need.kappa)}")
    sentence = f"Budget {budget!r} {', and '.join(said)}. {_advice(rest, sigma, asked.square <= left.square)}"
    pair = (need.psi, need.kappa), (rest.psi, rest.kappa)
    return BudgetExceededError(sentence, budget=budget, asked=pair[0], left=pair[1], sigma=sigma)


def beyond(budget: str, asked: Cost, left: Cost, cap: Cost, renews: str) -> str:
    """What to say of a request for more than is left: that it cannot be spent now, and what would have to happen.

    Examples:
        >>> left, asked, cap = (Cost.of(Guarantee(psi)) for psi in (0.25, 0.5, 1.0))
        >>> print(beyond("survey", asked, left, cap, "month"))
        Budget 'survey' has psi 0.25 left, and psi 0.5 is asked for: approved or not, it cannot be spent before the next
        month.
    """
    terms = Guarantee(0.0)
    need, rest = asked.guarantee(terms), left.guarantee_below(terms)
    said = [
        f"{name} {_down(mine)} left, and {name} {_up(theirs)} is asked for"
        for name, mine, theirs, fits in (
            ("psi", rest.psi, need.psi, asked.square <= left.square),
            ("kappa", rest.kappa, need.kappa, asked.kappa <= left.kappa),
        )
        if not fits
    ]
    until = "the budget is raised" + (" or reset" if asked.fits(cap) else ": it is more than the whole budget")
    if renews and asked.fits(cap):
        until = f"the next {renews}"
    return f"Budget {budget!r} has {'; '.join(said)}: approved or not, it cannot be spent before {until}."


def _smallest_sigma(rest: Guarantee, event: Mapping[str, Any]) -> float:
    if not rest.psi > 0.0:
        return inf
    if event.get("kind") != "gaussian":
        return nan
    return rest.sigma(event["sensitivity"])


def _advice(rest: Guarantee, sigma: float, psi_fits: bool) -> str:
    if psi_fits:
        less = "Ask for less kappa, or raise" if rest.kappa > 0.0 else "Raise"
        return f"{less} the budget's kappa: psidp ledger raise, or Ledger.raise_to."
    if sigma == inf:
        return "No noise is enough: the budget is spent."
    if sigma > 0.0:
        return f"Raise sigma to {_up(sigma)} or more, or ask for less."
    return f"Ask for psi {_down(rest.psi)} or less: noise of {_up(rest.sigma(1.0))} times the sensitivity or more."


def _up(value: float) -> str:
    """Six digits; the error itself carries every bit."""
    return f"{digits_up(value, 6):g}"


def _down(value: float) -> str:
    return f"{digits_down(value, 6):g}"
