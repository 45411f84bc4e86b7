r"""What a psi-mechanism does to an attacker's beliefs: Bayes error, predictive value, odds, reconstruction."""

from math import exp, inf
from typing import overload

import numpy as np

from psidp.maths.bisection import bracket
from psidp.maths.elementwise import Array, Reals, elementwise, select
from psidp.maths.normal import TINY, UNIT, quantile, quantile_error, tail, tail_error
from psidp.maths.profile import delta_from_psi
from psidp.maths.roc import tpr_from_psi
from psidp.symbols import symbol

__all__ = [
    "bayes_error",
    "divergence",
    "loss_tail_bound",
    "loss_tail_quantile",
    "odds_multiplier",
    "positive_predictive_value",
    "reconstruction_bound",
]


@overload
def bayes_error(psi: float, prior: float) -> float: ...
@overload
def bayes_error(psi: Reals, prior: Reals) -> Array: ...
@elementwise
def bayes_error(psi: Array, prior: Array) -> Array:
    r"""Smallest chance of a wrong guess about membership, given the prior chance of membership; never rounded up.

    .. math:: (1 - \pi)\,\Phi(-\psi/2 - L/\psi) + \pi\,\Phi(-\psi/2 + L/\psi), \quad L = \log\frac{1 - \pi}{\pi}

    Examples:
        >>> round(bayes_error(1.0, 0.5), 4)
        0.3085

    References:
        Equals riskcal's get_bayes_risk_from_gdp; min(pi, 1 - pi) (1 - delta(|L|)) by duality.
    """
    safe_psi, safe_prior = np.where(psi > 0.0, psi, 1.0), np.clip(prior, 1e-300, 1.0 - UNIT)
    odds = np.log1p(-safe_prior) - np.log(safe_prior)
    shift = odds / safe_psi
    one, two = 0.5 * safe_psi + shift, 0.5 * safe_psi - shift
    slip = 8.0 * UNIT * (1.0 + np.abs(shift)) * (1.0 + np.abs(shift) + safe_psi)
    error = (1.0 - prior) * tail(one) * np.maximum(1.0 - tail_error(one) - slip, 0.0)
    error = error + prior * tail(two) * np.maximum(1.0 - tail_error(two) - slip, 0.0)
    blind, distance = np.minimum(prior, 1.0 - prior), np.abs(odds)
    dual = blind * (1.0 - delta_from_psi(psi, np.maximum(distance - 4.0 * UNIT * (1.0 + distance), 0.0)))
    error = np.maximum(error, dual * (1.0 - 4.0 * UNIT))  # keeps its digits for small psi, the sum for large
    return select((psi > 0.0) & (blind > 0.0), np.clip(error, 0.0, blind), blind)


@overload
def positive_predictive_value(psi: float, fpr: float, prior: float) -> float: ...
@overload
def positive_predictive_value(psi: Reals, fpr: Reals, prior: Reals) -> Array: ...
@elementwise
def positive_predictive_value(psi: Array, fpr: Array, prior: Array) -> Array:
    r"""Largest chance that an accusation is right: of those the best attack names at fpr, the share of members.

    .. math:: \frac{\pi R(x)}{\pi R(x) + (1 - \pi) x}

    Never rounded down; at fpr = 0 nobody is named and the limit is returned: 1 for psi > 0.

    Examples:
        >>> round(positive_predictive_value(1.0, 0.01, 0.1), 3)
        0.506
    """
    nobody = select(psi > 0.0, 0.0, 1.0)  # where none is named
    false = select(fpr > 0.0, fpr / tpr_from_psi(psi, fpr), nobody)  # per true one, of equal priors
    value = np.minimum(prior / (prior + (1.0 - prior) * false) * (1.0 + 8.0 * UNIT), 1.0)
    return select((prior > 0.0) & (psi > 0.0), value, prior)


@overload
def odds_multiplier(psi: float, probability: float) -> float: ...
@overload
def odds_multiplier(psi: Reals, probability: Reals) -> Array: ...
@elementwise
def odds_multiplier(psi: Array, probability: Array) -> Array:
    r"""Factor by which a member's odds grow, exceeded with probability at most p; never rounded down.

    .. math:: \exp(\psi^2/2 + \psi\,\Phi^{-1}(1 - p))

    For a Gaussian mechanism only; Guarantee.odds_multiplier bounds it for any mechanism. It has no finite maximum, and
    no minimum above 0, which is what p = 1 gives.

    Examples:
        >>> [round(odds_multiplier(1.0, p), 1) for p in (0.05, 0.01)]
        [8.5, 16.9]
    """
    z = -quantile(probability)
    exponent = psi * (0.5 * psi + z)
    error = psi * quantile_error(z) + 4.0 * UNIT * (1.0 + np.abs(exponent) + psi * (psi + np.abs(z)))
    inner = select(probability < 1.0, np.exp(exponent + error), 0.0)
    return select(psi > 0.0, select(probability > 0.0, inner, np.inf), 1.0)


@overload
def reconstruction_bound(psi: float, prior: float) -> float: ...
@overload
def reconstruction_bound(psi: Reals, prior: Reals) -> Array: ...
def reconstruction_bound(psi: Reals, prior: Reals) -> float | Array:
    """Largest chance to reconstruct what could be guessed with chance `prior` before: R(prior), never rounded down.

    The same bound holds for singling a person out and for guessing an attribute.

    Examples:
        >>> round(reconstruction_bound(1.0, 0.1), 4)
        0.3891

    References:
        Hayes, Mahloujifar and Balle 2023; Kaissis et al. 2023 (2307.03928); Kulynych et al. 2025.
    """
    return tpr_from_psi(psi, symbol("prior").array(prior)[()])


@overload
def divergence(psi: float, other: float) -> float: ...
@overload
def divergence(psi: Reals, other: Reals) -> Array: ...
def divergence(psi: Reals, other: Reals) -> float | Array:
    r"""Delta-divergence: how much an attacker may gain by moving from `psi` to `other`; 0 where other <= psi.

    Never rounded down, and above the true gain by 1e-14 at most (tests/maths/test_bayes.py).

    .. math:: \Delta = \max(0, \Phi(\psi_2/2) - \Phi(\psi_1/2))

    Examples:
        >>> round(divergence(1.0, 1.5), 6)
        0.08191

    References:
        Kaissis, Kolek, Balle, Hayes and Rueckert 2024 (2406.08918).
    """
    first, second = symbol("psi").array(psi), symbol("psi").array(other)
    more, less = tail(0.5 * first), tail(0.5 * second)
    slack = 3.0 * tail_error(np.minimum(0.5 * first, 1e3)) * more + TINY
    gap = np.where(second > first, more - less + slack, 0.0)
    return float(gap) if gap.ndim == 0 else gap


_STEPS = np.geomspace(1e-8, 1e4, 400)


def loss_tail_bound(psi: float, kappa: float, loss: float) -> float:
    r"""Upper bound on the chance that the privacy loss of any (psi, kappa)-mechanism reaches `loss`.

    .. math:: \mathrm{P}(L \ge t) \le \inf_{s < t} \frac{\kappa + (1 - \kappa)\delta_\psi(s)}{1 - e^{s - t}}

    The infimum is taken over a fixed set of s >= 0, each of which gives a valid bound.

    Examples:
        >>> round(loss_tail_bound(1.0, 0.0, 4.0), 5)
        0.00055
    """
    s = loss - _STEPS[loss >= _STEPS]
    if not s.size:
        return 1.0
    delta = kappa + (1.0 - kappa) * np.asarray(delta_from_psi(psi, s))
    return float(min(1.0, (delta / -np.expm1(s - loss)).min() * (1.0 + 16.0 * UNIT)))


def loss_tail_quantile(psi: float, kappa: float, probability: float) -> float:
    """exp(t) for the smallest t, to a relative 1e-9 from above, with loss_tail_bound(psi, kappa, t) <= probability."""
    if psi == 0.0 and kappa == 0.0:
        return 1.0
    if not probability > kappa:
        return inf
    low, high = 0.0, 1.0
    while loss_tail_bound(psi, kappa, high) > probability:
        low, high = high, 2.0 * high
        if high > 700.0:
            return inf
    _, high = bracket(
        lambda t: loss_tail_bound(psi, kappa, t) > probability, low, high, lambda low, high: high - low > 1e-9 * high
    )
    return exp(high) * (1.0 + 4.0 * UNIT)
