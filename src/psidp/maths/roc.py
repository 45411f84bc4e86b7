r"""The attacker's view: ROC curve, area, advantage, rates at a threshold.

An attacker sees one output and must tell D from D'. A true positive names D' when it was D'. For the Gaussian mechanism
the best attack at false positive rate x has true positive rate R(x) = Phi(psi + Phi^-1(x)).
"""

from dataclasses import dataclass
from math import sqrt
from typing import overload

import numpy as np

from psidp.maths.elementwise import Array, Reals, elementwise, select
from psidp.maths.normal import TINY, UNIT, quantile, quantile_error, tail, tail_error
from psidp.maths.profile import delta_from_psi
from psidp.maths.profile_inverse import psi_from_epsilon_delta
from psidp.symbols import Symbol, finite, symbol

__all__ = [
    "Rates",
    "advantage_from_psi",
    "auc_from_psi",
    "binormal_auc",
    "binormal_roc",
    "fnr_from_psi",
    "psi_from_advantage",
    "psi_from_auc",
    "psi_from_rates",
    "rates_at_threshold",
    "tpr_from_psi",
]


@overload
def tpr_from_psi(psi: float, fpr: float) -> float: ...
@overload
def tpr_from_psi(psi: Reals, fpr: Reals) -> Array: ...
@elementwise
def tpr_from_psi(psi: Array, fpr: Array) -> Array:
    r"""Largest true positive rate of any attack at a false positive rate, never rounded down: the ROC curve R.

    .. math:: R(x) = \Phi(\psi + \Phi^{-1}(x))

    Guarantees:
        At least the true rate; small rates keep their digits. tests/maths/test_roc.py measures the excess against ball
        arithmetic: a relative 1e-13 (1 + z^2) at most, z = Phi^-1(fpr).

    Args:
        psi: sensitivity index, [0, inf).
        fpr: false positive rate, [0, 1].

    Examples:
        >>> tpr_from_psi(1.0, 0.01)
        0.0923...

    References:
        The paper's ROC lemma; Dong, Roth and Su 2022, equation (6), as 1 - G.
    """
    z, y = _shifted(psi, fpr)
    error = _rate_error(z, y)
    above = np.nextafter(1.0 - tail(y) * (1.0 - error), 1.0)
    tpr = select(y > 0.0, above, tail(-y) * (1.0 + error) + 4.0 * TINY)
    return _at_the_ends(psi, fpr, np.clip(tpr, fpr, 1.0), fpr)


@overload
def fnr_from_psi(psi: float, fpr: float) -> float: ...
@overload
def fnr_from_psi(psi: Reals, fpr: Reals) -> Array: ...
@elementwise
def fnr_from_psi(psi: Array, fpr: Array) -> Array:
    r"""Smallest false negative rate of any attack at a false positive rate, never rounded up: the trade-off G_psi.

    .. math:: f(x) = \Phi(\Phi^{-1}(1 - x) - \psi)

    Guarantees:
        At most the true rate, and within a relative 1e-13 (1 + z^2) of it (tests/maths/test_roc.py).

    Args:
        psi: sensitivity index, [0, inf).
        fpr: false positive rate, [0, 1].

    Examples:
        >>> fnr_from_psi(1.0, 0.05)
        0.7404...

    References:
        Dong, Roth and Su 2022, equation (6).
    """
    z, y = _shifted(psi, fpr)
    error = _rate_error(z, y)
    above = np.nextafter(1.0 - tail(-y) * (1.0 + error), 0.0)
    fnr = select(y > 0.0, tail(y) * (1.0 - error) - 4.0 * TINY, above)
    blind = 1.0 - fpr
    blind = select(1.0 - blind < fpr, np.nextafter(blind, 0.0), blind)  # rounded down
    return _at_the_ends(psi, fpr, np.clip(fnr, 0.0, blind), blind)


def _shifted(psi: Array, fpr: Array) -> tuple[Array, Array]:
    """z = Phi^-1(fpr) and y = psi + z, finite."""
    z = quantile(np.clip(fpr, TINY, 1.0 - UNIT))
    return z, psi + z


def _rate_error(z: Array, y: Array) -> Array:
    """Relative error of the smaller of Phi(y), Phi(-y): that of the tail, and that of y times the hazard rate."""
    error = tail_error(np.abs(y)) + (np.abs(y) + 1.0) * (quantile_error(z) + 2.0 * UNIT * np.abs(y))
    return np.minimum(error, 1.0)


def _at_the_ends(psi: Array, fpr: Array, rate: Array, no_leak: Array) -> Array:
    """The rate, exact where fpr is 0 or 1 and where psi is 0."""
    return select((psi > 0.0) & (fpr > 0.0) & (fpr < 1.0), rate, no_leak)


@overload
def psi_from_rates(tpr: float, fpr: float) -> float: ...
@overload
def psi_from_rates(tpr: Reals, fpr: Reals) -> Array: ...
@elementwise
def psi_from_rates(tpr: Array, fpr: Array) -> Array:
    r"""Largest psi whose ROC curve does not pass above the point (fpr, tpr), never rounded up.

    .. math:: \psi = \Phi^{-1}(\mathrm{TPR}) - \Phi^{-1}(\mathrm{FPR})

    Guarantees:
        Below the true value by at most 1e-14 (1 + |Phi^-1(tpr)| + |Phi^-1(fpr)|) (tests/maths/test_roc.py).

    Args:
        tpr: true positive rate, [0, 1], at least fpr.
        fpr: false positive rate, [0, 1].

    Raises:
        ValueError: where tpr < fpr (flip the attack), and at (0, 0) and (1, 1), which lie on every ROC curve.

    Examples:
        >>> psi_from_rates(0.5, 0.01)
        2.326...
    """
    if not (tpr >= fpr).all():
        raise ValueError("tpr must be at least fpr: an attack that does worse than chance is better turned round.")
    if ((tpr == fpr) & ((tpr == 0.0) | (tpr == 1.0))).any():
        raise ValueError("tpr and fpr must not both be 0 or both be 1: those points lie on every ROC curve.")
    y, z = quantile(tpr), quantile(fpr)
    psi = np.maximum(y - z - quantile_error(y) - quantile_error(z), 0.0)
    return select((tpr < 1.0) & (fpr > 0.0), psi, np.inf)


@overload
def auc_from_psi(psi: float) -> float: ...
@overload
def auc_from_psi(psi: Reals) -> Array: ...
@elementwise
def auc_from_psi(psi: Array) -> Array:
    r"""Area under the ROC curve of a psi-mechanism, never rounded down.

    .. math:: \mathrm{AUC} = \Phi(\psi/\sqrt{2})

    The chance that the best attack scores a run with the person above a run without.

    Guarantees:
        At least the true area and above it by at most 1e-15 (tests/maths/test_roc.py).

    Examples:
        >>> auc_from_psi(1.0)
        0.7602...

    References:
        The paper's AUC lemma.
    """
    y = np.minimum(psi / sqrt(2.0), 1e3)
    auc = np.nextafter(1.0 - tail(y) * (1.0 - tail_error(y) - 3.0 * UNIT * (y + y * y)), 1.0)
    return select(psi > 0.0, np.minimum(auc, 1.0), 0.5)


@overload
def psi_from_auc(auc: float) -> float: ...
@overload
def psi_from_auc(auc: Reals) -> Array: ...
@elementwise
def psi_from_auc(auc: Array) -> Array:
    r"""Largest psi whose area under the ROC curve is at most auc, never rounded up.

    .. math:: \psi = \sqrt{2}\,\Phi^{-1}(\mathrm{AUC})

    Args:
        auc: area, [0.5, 1]; 1 gives inf. Below 0.5 the attack's scores are upside down.

    Examples:
        >>> psi_from_auc(0.75)
        0.9538...
    """
    z = quantile(auc)
    psi = sqrt(2.0) * np.maximum(z * (1.0 - 4.0 * UNIT) - _quantile_error_above_half(z), 0.0)
    return select(auc < 1.0, psi, np.inf)


def _quantile_error_above_half(z: Array) -> Array:
    """Near one half the quantile is relatively accurate, since p - 1/2 is exact there."""
    return 38.0 * UNIT * np.minimum(np.abs(z), np.maximum(1.0, np.abs(z)))


@overload
def advantage_from_psi(psi: float) -> float: ...
@overload
def advantage_from_psi(psi: Reals) -> Array: ...
def advantage_from_psi(psi: Reals) -> float | Array:
    r"""Largest TPR - FPR of any attack on a psi-mechanism, never rounded down; delta at epsilon = 0.

    .. math:: \mathrm{Adv} = 2\,\Phi(\psi/2) - 1

    Examples:
        >>> advantage_from_psi(1.0)
        0.3829...

    References:
        The total variation distance of two unit Gaussians at distance psi.
    """
    return delta_from_psi(psi, 0.0)


@overload
def psi_from_advantage(advantage: float) -> float: ...
@overload
def psi_from_advantage(advantage: Reals) -> Array: ...
def psi_from_advantage(advantage: Reals) -> float | Array:
    r"""Largest psi whose advantage is at most the given one, never rounded up.

    .. math:: \psi = 2\,\Phi^{-1}((1 + \mathrm{Adv})/2)

    Examples:
        >>> psi_from_advantage(0.1)
        0.2513...
    """
    return psi_from_epsilon_delta(0.0, symbol("advantage").array(advantage)[()])


@dataclass(frozen=True, slots=True)
class Rates:
    """The four rates of a threshold attack."""

    tpr: float
    fpr: float

    @property
    def fnr(self) -> float:
        """1 - tpr."""
        return 1.0 - self.tpr

    @property
    def tnr(self) -> float:
        """1 - fpr."""
        return 1.0 - self.fpr


def rates_at_threshold(threshold: float, without: float, with_: float, sigma: float) -> Rates:
    r"""The rates of the attack that says "D'" when the output exceeds a threshold c.

    .. math:: \mathrm{TPR} = \Phi\bigl((f(D') - c)/\sigma\bigr), \quad \mathrm{FPR} = \Phi\bigl((f(D) - c)/\sigma\bigr)

    Both integrate from c upwards, TPR over the outputs on D', FPR over those on D.

    Args:
        threshold: the cut-off c.
        without: f(D), the query without the person.
        with_: f(D'), the query with the person.
        sigma: standard deviation of the noise.

    Examples:
        >>> rates = rates_at_threshold(-1.0, without=-2.0, with_=2.0, sigma=2.0)
        >>> round(rates.tpr, 4), round(rates.fpr, 4)
        (0.9332, 0.3085)

    References:
        The paper's Figure 2.
    """
    sigma, c = symbol("sigma").number(sigma), finite("threshold", threshold)
    low, high = finite("without", without), finite("with_", with_)
    return Rates(tpr=float(tail(np.float64((c - high) / sigma))), fpr=float(tail(np.float64((c - low) / sigma))))


@overload
def binormal_roc(fpr: float, a: float, b: float) -> float: ...
@overload
def binormal_roc(fpr: Reals, a: float, b: float) -> Array: ...
def binormal_roc(fpr: Reals, a: float, b: float) -> float | Array:
    r"""The binormal ROC curve of a threshold attack on two Gaussians of different variance.

    .. math:: \Phi(a + b\,\Phi^{-1}(x)), \quad a = \lVert\mu_1 - \mu_0\rVert/\sigma_1, \; b = \sigma_0/\sigma_1

    For b other than 1 it is the curve of the threshold attack, which is not the best one.

    Examples:
        >>> round(binormal_roc(0.1, a=1.0, b=1.0), 4)
        0.3891
    """
    a, b = _binormal(a, b)
    x = symbol("fpr").array(fpr)
    with np.errstate(over="ignore"):
        rate = tail(-(a + b * quantile(x)))
    return float(rate) if x.ndim == 0 else rate


def binormal_auc(a: float, b: float) -> float:
    r"""Area under the binormal ROC curve.

    .. math:: \Phi\bigl(a/\sqrt{1 + b^2}\bigr)

    Examples:
        >>> binormal_auc(1.0, 1.0) == auc_from_psi(1.0)
        True
    """
    a, b = _binormal(a, b)
    if b == 1.0 and a >= 0.0:
        return float(auc_from_psi(a))
    return float(tail(np.float64(-a / np.hypot(1.0, b))))


def _binormal(a: float, b: float) -> tuple[float, float]:
    """The two parameters as floats inside their domains."""
    return finite("a", a), Symbol("b", "b", "ratio of the standard deviations", "(0,inf)", "any").number(b)
