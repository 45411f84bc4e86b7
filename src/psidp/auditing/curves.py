"""Curves: the ordered families of ROC curves that an audit can refute, member by member.

A larger strength allows more. `roc` bounds the true positive rate (rounded up), `inverse` the false positive rate that
a true positive rate needs (rounded down), `implied` is the strength at which the curve passes through a point.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from psidp.maths.elementwise import Array, Reals
from psidp.maths.normal import quantile, tail

__all__ = ["Approximate", "Curves", "Gaussian"]

UP, DOWN = 1.0 + 1e-9, 1.0 - 1e-9


class Curves(Protocol):
    """A family of concave ROC curves ordered by strength."""

    @property
    def largest(self) -> float:
        """No larger strength is ever claimed."""

    def roc(self, strength: float, fpr: Reals) -> Array:
        """Largest true positive rate at a false positive rate."""

    def inverse(self, strength: float, tpr: float) -> float:
        """Smallest false positive rate at a true positive rate."""

    def implied(self, tpr: Reals, fpr: Reals) -> Array:
        """Strength of the curve through a point; 0 below the diagonal."""


@dataclass(frozen=True, slots=True)
class Gaussian:
    """psi-GDP except for an event of probability kappa: R(x) = kappa + (1 - kappa) Phi(psi + Phi^-1(x/(1 - kappa)))."""

    kappa: float = 0.0
    largest: float = 12.0

    def roc(self, strength: float, fpr: Reals) -> Array:
        """R(fpr), rounded up."""
        rest = 1.0 - self.kappa
        x = np.clip(np.asarray(fpr) / rest * UP, 1e-300, 1.0)
        inside = self.kappa + rest * tail(-(strength + quantile(np.minimum(x, 1.0 - 1e-16)))) * UP
        return np.where(x < 1.0, np.minimum(inside, 1.0), 1.0)

    def inverse(self, strength: float, tpr: float) -> float:
        """The fpr with R(fpr) = tpr, rounded down."""
        rest = 1.0 - self.kappa
        y = (tpr - self.kappa) / rest
        if not y > 0.0:
            return 0.0
        if not y < 1.0:
            return rest
        return rest * float(tail(np.float64(strength - quantile(y)))) * DOWN

    def implied(self, tpr: Reals, fpr: Reals) -> Array:
        """psi of the curve through a point."""
        rest = 1.0 - self.kappa
        y = np.clip((np.asarray(tpr) - self.kappa) / rest, 1e-300, 1.0 - 1e-16)
        x = np.clip(np.asarray(fpr) / rest, 1e-300, 1.0 - 1e-16)
        return np.clip(quantile(y) - quantile(x), 0.0, self.largest)


@dataclass(frozen=True, slots=True)
class Approximate:
    """(epsilon, delta)-DP: R(x) = min(delta + e^epsilon x, 1 - e^-epsilon (1 - delta - x), 1)."""

    delta: float
    largest: float = 60.0

    def roc(self, strength: float, fpr: Reals) -> Array:
        """R(fpr), rounded up."""
        x = np.asarray(fpr, float)
        steep = self.delta + np.exp(strength) * x * UP
        flat = 1.0 - np.exp(-strength) * np.maximum(1.0 - self.delta - x, 0.0) * DOWN
        rate: Array = np.minimum(np.minimum(steep, flat), 1.0)
        return rate

    def inverse(self, strength: float, tpr: float) -> float:
        """The fpr with R(fpr) = tpr, rounded down."""
        steep = (tpr - self.delta) * np.exp(-strength)
        flat = 1.0 - self.delta - np.exp(strength) * (1.0 - tpr)
        return float(max(steep, flat, 0.0)) * DOWN

    def implied(self, tpr: Reals, fpr: Reals) -> Array:
        """epsilon of the curve through a point."""
        y, x = np.asarray(tpr, float), np.asarray(fpr, float)
        steep = np.maximum(y - self.delta, 1e-300) / np.maximum(x, 1e-300)
        flat = np.maximum(1.0 - self.delta - x, 1e-300) / np.maximum(1.0 - y, 1e-300)
        epsilon: Array = np.clip(np.log(np.maximum(steep, flat)), 0.0, self.largest)
        return epsilon
