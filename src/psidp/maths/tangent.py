"""Tangents of the ROC curve: each is one (epsilon, delta), and two of them bound the privacy region."""

from dataclasses import dataclass
from functools import partial
from typing import overload

import numpy as np

from psidp.maths.bisection import bracket, halvings
from psidp.maths.elementwise import Array, Reals, elementwise, select
from psidp.maths.normal import UNIT, tail
from psidp.maths.profile import delta_from_psi
from psidp.maths.profile_inverse import epsilon_from_psi
from psidp.maths.roc import tpr_from_psi
from psidp.symbols import symbol

__all__ = ["Tangent", "failed_roc", "region_tpr", "tangent"]


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


@overload
def region_tpr(fpr: float, epsilon: float, delta: float) -> float: ...
@overload
def region_tpr(fpr: Reals, epsilon: Reals, delta: Reals) -> Array: ...
@partial(elementwise, opposite=("epsilon",))
def region_tpr(fpr: Array, epsilon: Array, delta: Array) -> Array:
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


@overload
def failed_roc(psi: float, kappa: float, fpr: float) -> float: ...
@overload
def failed_roc(psi: float, kappa: float, fpr: Reals) -> Array: ...
def failed_roc(psi: float, kappa: float, fpr: Reals) -> float | Array:
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
    _, epsilon = bracket(lambda e: tangent(psi, e).mirror.intercept < kappa, 0.0, 699.0, halvings(80))
    return tangent(psi, epsilon).mirror
