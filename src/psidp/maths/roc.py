r"""The attacker's view: ROC curve, area, advantage, rates at a threshold, tangents and privacy regions.

An attacker sees one output and must tell D from D'. A true positive names D' when it was D'. For the Gaussian mechanism
the best attack at false positive rate x has true positive rate R(x) = Phi(psi + Phi^-1(x)).
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from psidp.maths.elementwise import Reals, elementwise, select
from psidp.maths.implied import epsilon_from_psi, psi_from_epsilon_delta
from psidp.maths.normal import TINY, UNIT, quantile, quantile_error, tail, tail_error
from psidp.maths.profile import delta_from_psi
from psidp.symbols import Symbol, finite, symbol

__all__ = [
    "Rates",
    "Tangent",
    "advantage_from_psi",
    "auc_from_psi",
    "binormal_auc",
    "binormal_roc",
    "failed_roc",
    "fnr_from_psi",
    "psi_from_advantage",
    "psi_from_auc",
    "psi_from_rates",
    "rates_at_threshold",
    "region_tpr",
    "tangent",
    "tpr_from_psi",
]


@elementwise
def tpr_from_psi(psi: Reals, fpr: Reals) -> Reals:
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


@elementwise
def fnr_from_psi(psi: Reals, fpr: Reals) -> Reals:
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


def _shifted(psi: Reals, fpr: Reals) -> tuple[Reals, Reals]:
    """z = Phi^-1(fpr) and y = psi + z, finite."""
    z = quantile(np.clip(fpr, TINY, 1.0 - UNIT))
    return z, psi + z


def _rate_error(z: Reals, y: Reals) -> Reals:
    """Relative error of the smaller of Phi(y), Phi(-y): that of the tail, and that of y times the hazard rate."""
    error = tail_error(np.abs(y)) + (np.abs(y) + 1.0) * (quantile_error(z) + 2.0 * UNIT * np.abs(y))
    return np.minimum(error, 1.0)


def _at_the_ends(psi: Reals, fpr: Reals, rate: Reals, no_leak: Reals) -> Reals:
    """The rate, exact where fpr is 0 or 1 and where psi is 0."""
    return select((psi > 0.0) & (fpr > 0.0) & (fpr < 1.0), rate, no_leak)


@elementwise
def psi_from_rates(tpr: Reals, fpr: Reals) -> Reals:
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


@elementwise
def auc_from_psi(psi: Reals) -> Reals:
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


@elementwise
def psi_from_auc(auc: Reals) -> Reals:
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


def _quantile_error_above_half(z: Reals) -> Reals:
    """Near one half the quantile is relatively accurate, since p - 1/2 is exact there."""
    return 38.0 * UNIT * np.minimum(np.abs(z), np.maximum(1.0, np.abs(z)))


def advantage_from_psi(psi: Reals) -> Reals:
    r"""Largest TPR - FPR of any attack on a psi-mechanism, never rounded down; delta at epsilon = 0.

    .. math:: \mathrm{Adv} = 2\,\Phi(\psi/2) - 1

    Examples:
        >>> advantage_from_psi(1.0)
        0.3829...

    References:
        The total variation distance of two unit Gaussians at distance psi.
    """
    return delta_from_psi(psi, 0.0)


def psi_from_advantage(advantage: Reals) -> Reals:
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


def binormal_roc(fpr: Reals, a: float, b: float) -> Reals:
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


@dataclass(frozen=True, slots=True)
class Tangent:
    """A line that touches the ROC curve: TPR <= intercept + slope FPR for every attack."""

    slope: float
    intercept: float
    fpr: float
    tpr: float

    @property
    def mirror(self) -> "Tangent":
        """The same line reflected about the anti-diagonal, with slope 1/slope: epsilon read backwards."""
        return Tangent(
            slope=1.0 / self.slope,
            intercept=1.0 - (1.0 - self.intercept) / self.slope,
            fpr=1.0 - self.tpr,
            tpr=1.0 - self.fpr,
        )


def tangent(psi: float, epsilon: float) -> Tangent:
    r"""The tangent to the ROC curve with slope e^epsilon; its intercept is the exact delta(epsilon).

    .. math:: x^* = \Phi(-\psi/2 - \varepsilon/\psi), \quad \delta = R(x^*) - e^{\varepsilon} x^*

    Examples:
        >>> line = tangent(1.0, 1.0)
        >>> round(line.slope, 4), round(line.intercept, 4), round(line.fpr, 4), round(line.tpr, 4)
        (2.7183, 0.1269, 0.0668, 0.3085)

    References:
        The paper's tangent lemma, with the intercept corrected: it is delta, not R(x*).
    """
    psi, epsilon = symbol("psi").number(psi), symbol("epsilon").number(epsilon)
    if not (psi > 0.0 and epsilon < 700.0):
        raise ValueError(f"a tangent needs psi > 0 and epsilon < 700, got psi={psi}, epsilon={epsilon}.")
    m = epsilon / psi
    return Tangent(
        slope=float(np.exp(epsilon)),
        intercept=float(delta_from_psi(psi, epsilon)),
        fpr=float(tail(np.float64(m + psi / 2.0))),
        tpr=float(tail(np.float64(m - psi / 2.0))),
    )


@elementwise
def region_tpr(fpr: Reals, epsilon: Reals, delta: Reals) -> Reals:
    r"""Upper edge of the privacy region of (epsilon, delta): no attack has a larger true positive rate at fpr.

    .. math:: \min\bigl(1,\; \delta + e^{\varepsilon} x,\; 1 - e^{-\varepsilon}(1 - \delta - x)\bigr)

    The pair of lines are a tangent and its mirror; over all epsilon their lower envelope is the ROC curve itself.
    Never rounded down, and above the edge by a relative 1e-15 or an absolute 1e-15 at most (tests/maths/test_roc.py).

    Examples:
        >>> round(region_tpr(0.1, 1.0, 0.01), 4)
        0.2818

    References:
        Kairouz, Oh and Viswanath 2015, Theorem 2.1; Wasserman and Zhou 2010.
    """
    steep = select(fpr > 0.0, (delta + np.exp(epsilon) * fpr) * (1.0 + 6.0 * UNIT), delta)
    flat = 1.0 - np.exp(-epsilon) * np.maximum(1.0 - delta - fpr, 0.0) + 6.0 * UNIT
    return np.minimum(np.minimum(steep, flat), 1.0)


def failed_roc(psi: float, kappa: float, fpr: Reals) -> Reals:
    r"""The ROC curve of a mechanism that has failed, which it does with probability kappa (the paper's Figure 5).

    It leaves (0, kappa) along the tangent that meets the axis there and follows R from the point of contact.

    Examples:
        >>> round(failed_roc(1.0, 0.1, 0.0), 4)
        0.1
        >>> failed_roc(1.0, 0.1, 0.5) == tpr_from_psi(1.0, 0.5)
        True
    """
    psi, kappa = symbol("psi").number(psi), symbol("kappa").number(kappa)
    x = symbol("fpr").array(fpr)
    curve = np.asarray(tpr_from_psi(psi, x))
    if kappa > 0.0:
        line = _tangent_from(psi, kappa)
        curve = np.where(x < line.fpr, np.minimum(kappa + line.slope * x, 1.0), curve)
    return float(curve) if curve.ndim == 0 else curve


def _tangent_from(psi: float, kappa: float) -> Tangent:
    """The tangent that meets the axis at kappa: steeper than the diagonal below the advantage, flatter above it."""
    if psi == 0.0:
        return Tangent(slope=1.0 - kappa, intercept=kappa, fpr=1.0, tpr=1.0)
    if kappa <= float(delta_from_psi(psi, 0.0)):
        return tangent(psi, min(float(epsilon_from_psi(psi, kappa)), 699.0))
    low, high = 0.0, 699.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if tangent(psi, middle).mirror.intercept < kappa else (low, middle)
    return tangent(psi, high).mirror
