r"""The privacy loss variable Omega of the Gaussian mechanism: normal with mean psi^2/2 and variance psi^2."""

from typing import overload

import numpy as np

from psidp.maths.elementwise import Array, Reals, elementwise, select
from psidp.maths.mills import mills
from psidp.maths.normal import SQRT_2PI, TINY, UNIT, tail, tail_error

__all__ = ["loss_mean", "loss_variance", "sufficient_delta", "sufficient_delta_gap"]


@overload
def loss_mean(psi: float) -> float: ...
@overload
def loss_mean(psi: Reals) -> Array: ...
@elementwise
def loss_mean(psi: Array) -> Array:
    """E Omega = psi^2/2, also the Kullback-Leibler divergence.

    Examples:
        >>> loss_mean(2.0)
        2.0
    """
    return 0.5 * psi * psi


@overload
def loss_variance(psi: float) -> float: ...
@overload
def loss_variance(psi: Reals) -> Array: ...
@elementwise
def loss_variance(psi: Array) -> Array:
    """Var Omega = psi^2.

    Examples:
        >>> loss_variance(2.0)
        4.0
    """
    return psi * psi


@overload
def sufficient_delta(psi: float, epsilon: float) -> float: ...
@overload
def sufficient_delta(psi: Reals, epsilon: Reals) -> Array: ...
@elementwise
def sufficient_delta(psi: Array, epsilon: Array) -> Array:
    r"""P(Omega >= epsilon), never rounded down: a delta that suffices for (epsilon, delta)-DP, not the smallest.

    .. math:: \mathrm{P}(\Omega \ge \varepsilon) = \Phi(\psi/2 - \varepsilon/\psi)

    The paper's Lemma 1 reads it as necessary; at psi = epsilon = 1 it is 0.3085 where the exact delta is 0.1269.

    Examples:
        >>> round(sufficient_delta(1.0, 1.0), 4)
        0.3085
    """
    a = epsilon / psi - 0.5 * psi
    error = np.minimum(tail_error(np.abs(a)) + 4.0 * UNIT * (np.abs(a) + 1.0) * (epsilon / psi + psi), 1.0)
    delta = select(a > 0.0, tail(a) * (1.0 + error) + 4.0 * TINY, np.nextafter(1.0 - tail(-a) * (1.0 - error), 1.0))
    delta = np.clip(delta, TINY, 1.0)
    return select((psi > 0.0) & (epsilon < np.inf), delta, 0.0)


@overload
def sufficient_delta_gap(psi: float, epsilon: float) -> float: ...
@overload
def sufficient_delta_gap(psi: Reals, epsilon: Reals) -> Array: ...
@elementwise
def sufficient_delta_gap(psi: Array, epsilon: Array) -> Array:
    r"""How much P(Omega >= epsilon) exceeds the exact delta: e^epsilon Phi(-psi/2 - epsilon/psi).

    Examples:
        >>> round(sufficient_delta_gap(1.0, 1.0), 4)
        0.1816
    """
    a, b = epsilon / psi - 0.5 * psi, epsilon / psi + 0.5 * psi
    gap = np.exp(-0.5 * a * a) / SQRT_2PI * mills(b)
    return select((psi > 0.0) & (epsilon < np.inf), gap, 0.0)
