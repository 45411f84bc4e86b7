"""The lattice: the privacy loss laid on a grid, upwards and downwards, composed by a tilted FFT. Wider, never wrong.

The method for few steps at small rates and for tiny noise, where the contour is too long, and for C_gamma. A step whose
loss alone decides the question is not on the grid: it is counted in closed form, as by the window. Everything is kept
in logarithms, so that no loss is too large.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from psidp.accounting.composition import Array, Composition
from psidp.accounting.contours.mgf_table import ULP
from psidp.accounting.pld.aside import Aside
from psidp.accounting.pld.convolution import Part, Side, composed, outside, tilt
from psidp.accounting.pld.step_law import Law

__all__ = ["Lattice"]

LOST = 1e-6
"""What may wrap around the grid, beside delta."""


class Lattice:
    """Two grids of the composed loss, made for questions near one epsilon."""

    method = "lattice"

    def __init__(self, steps: Composition, epsilon: float, log_delta: float, points: int, room: float = 0.1) -> None:
        self.steps, self.room = steps, room
        with np.errstate(all="ignore"):
            self.aside = Aside.around(steps, self.laws_of(steps, log_delta), epsilon, log_delta, room)
            self.laws = self.aside.laws
            span = self._span(epsilon, log_delta, points)
            self.upper = self._side(span, points, True, epsilon)
            self.lower = self._side(span, points, False, epsilon)

    def log_delta(self, epsilon: Array) -> tuple[Array, Array]:
        """Proved lower and upper bounds of log delta at each epsilon."""
        epsilon = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
        with np.errstate(all="ignore"):
            low, high = self.aside.log_bounds(epsilon, self.upper.shift)
            upper = np.logaddexp(self.upper.log_delta(epsilon, 1.0), high)
            lower = np.logaddexp(self.lower.log_delta(epsilon, -1.0), low)
            upper, lower = upper + 8.0 * ULP * (1.0 + np.abs(upper)), lower - 8.0 * ULP * (1.0 + np.abs(lower))
        return np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), 0.0, np.minimum(upper, 0.0))

    @staticmethod
    def laws_of(steps: Composition, log_delta: float) -> list[Any]:
        """The laws of all groups, with the noise that matters to this delta."""
        rare = float(np.log(steps.steps + sum(pair.count for pair in steps.pairs) + 1.0)) - log_delta + 14.0
        reach = float(np.sqrt(2.0 * rare))
        laws: list[Any] = [pair.law(-rare) for pair in steps.pairs]
        for sigma, q, count, sign in _columns(steps):
            high = reach + (1.0 / sigma if sign > 0 else 0.0)
            laws.append(Law(sigma, q, count, int(sign), -reach, high))
        if steps.gauss > 0:
            psi = float(np.sqrt(steps.gauss))
            laws.append(Law(1.0 / psi, 1.0, 1.0, 1, -reach, reach + psi))
        return laws

    def _tilted(self, span: float, points: int, up: bool, epsilon: float) -> tuple[list[Part], float]:
        """The masses of every group on a grid of so many points, and the tilt."""
        eta = span / points
        parts = [Part.of(law.upwards(eta) if up else law.downwards(eta), law.count, eta) for law in self.laws]
        return parts, tilt(parts, epsilon)

    def _span(self, epsilon: float, log_delta: float, points: int) -> float:
        """A window wide enough that what wraps around it does not matter beside delta."""
        span = 2.0 * max(high - low for low, high in (law.losses for law in self.laws)) + 2.0 * epsilon
        widest, points = (8.0 * span, min(points, 1 << 14)) if self.steps.pairs else (np.inf, points)
        for _ in range(24):
            parts, c = self._tilted(span, points, True, epsilon)
            low = epsilon - sum(part.count * part.base for part in parts) - 0.5 * span
            scale = sum(part.count * part.log_mgf(c) for part in parts) - c * (low + 0.5 * span)
            wrapped = np.log(outside(parts, c, low, low + span) + 1e-300) - np.log(max(c, 1.0))
            if wrapped <= max(log_delta - scale + np.log(LOST), np.log(1e-9 / max(c, 1.0)) - 20.0) or span > widest:
                break
            span *= 2.0
        return float(span)

    def _side(self, span: float, points: int, up: bool, epsilon: float) -> Side:
        """The composition on one grid."""
        parts, c = self._tilted(span, points, up, epsilon)
        return composed(parts, c, points, span / points, epsilon)


def _columns(steps: Composition) -> Iterator[tuple[float, float, float, float]]:
    return zip(steps.sigma.tolist(), steps.q.tolist(), steps.count.tolist(), steps.sign.tolist(), strict=True)
