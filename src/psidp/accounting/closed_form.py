"""Closed forms: plain Gaussians and a single sampled step need no integral.

One step at rate q is the Gaussian mechanism's profile read at another epsilon: with psi = 1/sigma,
delta_remove(epsilon) = q delta_psi(log(1 + (e^epsilon - 1)/q)), delta_add(epsilon) = r delta_psi(log(q e^epsilon/r)),
r = 1 - (1-q) e^epsilon, which is 0 once r <= 0 (Balle, Barthe and Gaboardi 2018, Theorem 2, and its mirror).
"""

from sys import float_info

import numpy as np

from psidp.accounting.composition import Array, Composition, exponent
from psidp.accounting.contours.mgf_table import ULP
from psidp.maths.profile import log_delta_from_psi

__all__ = ["Closed"]

MOST = float_info.max
GRANTED = 3e-14
"""Relative error granted to log delta of the Gaussian mechanism; tests/maths measures 3e-15."""


class Closed:
    """log delta of plain Gaussians, or of one sampled step, with the rounding of the formula as its only error."""

    method = "closed form"

    def __init__(self, steps: Composition) -> None:
        self.steps = steps

    @staticmethod
    def fits(steps: Composition) -> bool:
        """Whether this composition has a closed form."""
        if steps.pairs:
            return False
        return not steps.count.size or (not steps.plain.high and steps.count.size == 1 and steps.steps == 1.0)

    def log_delta(self, epsilon: Array) -> tuple[Array, Array]:
        """Proved lower and upper bounds of log delta at each epsilon >= 0."""
        epsilon = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
        if not self.steps.count.size:
            return _gaussian(*self.steps.plain.psi, epsilon, 0.0)
        sigma, q = float(self.steps.sigma[0]), float(self.steps.q[0])
        with np.errstate(all="ignore"):
            return (_remove if self.steps.sign[0] > 0 else _add)(sigma, q, epsilon)


def _remove(sigma: float, q: float, epsilon: Array) -> tuple[Array, Array]:
    """q delta_psi(t) with t = log(1 + (e^epsilon - 1)/q), in logarithms where e^epsilon/q is no float."""
    lower, upper = _gaussian(1.0 / sigma, 1.0 / sigma, exponent(q, epsilon), 16.0 * ULP)
    slack = 8.0 * ULP * (1.0 + abs(np.log(q)))
    return lower + np.log(q) - slack, upper + np.log(q) + slack


def _add(sigma: float, q: float, epsilon: Array) -> tuple[Array, Array]:
    """r is known to a few roundings of e^epsilon, so both ends of it are tried; delta increases with r."""
    ends = []
    for side in (-1.0, 1.0):
        r = q - (1.0 - q) * np.expm1(epsilon) + side * 8.0 * ULP * (q + (1.0 - q) * np.exp(epsilon))
        good = r > 0.0
        r = np.where(good, np.minimum(r, q), q)
        inner = np.maximum(epsilon + np.log(q / r), 0.0)
        bounds = _gaussian(1.0 / sigma, 1.0 / sigma, inner, 16.0 * ULP)
        value = bounds[0 if side < 0 else 1] + np.log(r) + side * 16.0 * ULP * (1.0 + np.abs(np.log(r)))
        ends.append(np.where(good, value, -np.inf))
    return ends[0], ends[1]


def _gaussian(psi_low: float, psi_high: float, epsilon: Array, wobble: float) -> tuple[Array, Array]:
    """log delta_psi with psi and epsilon known to a relative `wobble`: delta falls with epsilon and grows with psi."""
    high = log_delta_from_psi(min(psi_high * (1.0 + wobble), MOST), np.maximum(epsilon * (1.0 - wobble) - wobble, 0.0))
    low = log_delta_from_psi(min(psi_low, MOST) * (1.0 - wobble), epsilon * (1.0 + wobble) + wobble)
    return low * (1.0 + GRANTED) - GRANTED, np.minimum(high * (1.0 - GRANTED) + GRANTED, 0.0)
