"""Certified answers of a curve: bounds of delta, epsilon and AUC in balls, the failure probability in fractions."""

from fractions import Fraction
from typing import NoReturn, Protocol

import numpy as np

from psidp.accounting.certificates.balls import Ball, above, ball, below, precision
from psidp.accounting.certificates.certificate import BITS, certified_delta, certified_epsilon
from psidp.accounting.composition import Array, Composition
from psidp.errors import ContradictionError

__all__ = ["auc", "deltas", "epsilon", "refuse"]


class Curve(Protocol):
    """What a certificate has to know of a curve."""

    @property
    def below(self) -> tuple[Composition, ...]: ...
    @property
    def above(self) -> tuple[Composition, ...]: ...
    @property
    def kappa(self) -> float: ...
    @property
    def kappa_below(self) -> float: ...


def deltas(curve: Curve, epsilons: Array) -> tuple[Array, Array, str]:
    """Bounds of delta at each epsilon, and the method of the last one."""
    lower, upper, method = np.zeros(epsilons.size), np.ones(epsilons.size), ""
    for i, value in enumerate(epsilons.tolist()):
        low, high, method = _delta(curve, value)
        with precision(BITS):
            lower[i] = max(below(_failed(low, curve.kappa_below)), 0.0)
            upper[i] = min(above(_failed(high, curve.kappa)), 1.0)
    return lower, upper, _named(method)


def epsilon(curve: Curve, delta: float, fast: tuple[float, float, str]) -> tuple[float, float, str]:
    """Bounds of epsilon, from those that floats gave."""
    targets = tuple((Fraction(delta) - k) / (1 - k) for k in map(Fraction, (curve.kappa_below, curve.kappa)))
    lower, upper, method = certified_epsilon(curve.below, curve.above, fast[:2], (targets[0], targets[1]))
    return lower, upper, _named(method)


def auc(curve: Curve, mirror_below: Composition, mirror_above: Composition) -> tuple[float, float, str]:
    """Bounds of the AUC: (1 + TV)/2 against the mirror image, and from (1 + A)/2 to 1/2 + A - A^2/2."""
    low, _, method = certified_delta([mirror_below], 0.0)
    high = certified_delta([mirror_above], 0.0)[1]
    first, second = certified_delta(curve.below[:1], 0.0)[0], certified_delta(curve.above[:1], 0.0)[1]
    with precision(BITS):
        low, high = max(low, first), min(high, (1 - (1 - second) ** 2).upper())
        ends = [1 - (1 - ball(k)) ** 2 * (1 - tv) / 2 for k, tv in ((curve.kappa_below, low), (curve.kappa, high))]
        lower, upper = max(below(ends[0]), 0.5), min(above(ends[1]), 1.0)
    if not lower <= upper:
        raise ContradictionError("the AUC", lower, upper)
    return lower, upper, _named(method)


def refuse(what: str) -> NoReturn:
    """The refusal of a question that balls do not answer."""
    raise ValueError(
        f"certify must be False for {what}: that is not proved in ball arithmetic, only epsilon, delta, advantage, auc "
        f"and the guarantee of an unsampled series are. Ask account(events) without certify=True."
    )


def _named(method: str) -> str:
    return f"{method}, certified"


def _delta(curve: Curve, epsilon: float) -> tuple[Ball, Ball, str]:
    """Bounds without the failure probability."""
    low, high, method = certified_delta(curve.above, epsilon)
    if curve.below is not curve.above:
        low = certified_delta(curve.below, epsilon)[0]
    return low, high, method


def _failed(delta: Ball, kappa: float) -> Ball:
    return ball(kappa) + (1 - ball(kappa)) * delta
