"""No conversion promises more privacy than there is, there and back, against arbitrary precision."""

from contextlib import AbstractContextManager
from random import Random
from typing import Any
from unittest.mock import patch

import mpmath

from fuzz.campaign import Relapse
from psidp import Guarantee
from psidp.maths import profile, profile_inverse

__all__ = ["RELAPSES", "explore"]

TOLERANCE = 1e-12
"""Relative; delta itself may be larger than the truth by this much."""


def explore(random: Random) -> None:
    """Fifty settings: delta and epsilon of a psi, psi of both, and a guarantee written down."""
    for _ in range(50):
        psi = 10.0 ** random.uniform(-6, 2)
        epsilon = psi * 10.0 ** random.uniform(-3, 1.2) if random.random() < 0.9 else 0.0
        delta = 10.0 ** random.uniform(-200, -0.001)
        _delta(psi, epsilon)
        _there_and_back(psi, epsilon, delta)
        _written(Guarantee(psi, random.choice((0.0, delta))))


def _delta(psi: float, epsilon: float) -> None:
    """delta is the true one, or above by a few ulp."""
    with mpmath.workdps(60):
        p, e = mpmath.mpf(psi), mpmath.mpf(epsilon)
        truth = mpmath.ncdf(p / 2 - e / p) - mpmath.exp(e) * mpmath.ncdf(-p / 2 - e / p)
        found = mpmath.mpf(profile.delta_from_psi(psi, epsilon))
        fits = truth <= found <= truth * (1 + TOLERANCE * (1 + p + e)) + mpmath.mpf(5e-324)
    assert fits, f"delta_from_psi({psi!r}, {epsilon!r}) = {found}, but it is {truth}"


def _there_and_back(psi: float, epsilon: float, delta: float) -> None:
    back = profile_inverse.epsilon_from_psi(psi, delta)
    assert profile.delta_from_psi(psi, back) <= delta, f"epsilon_from_psi({psi!r}, {delta!r}) = {back!r} is too small"
    found = profile_inverse.psi_from_epsilon_delta(epsilon, delta)
    reached = profile.delta_from_psi(found, epsilon)
    assert reached <= delta, f"psi_from_epsilon_delta({epsilon!r}, {delta!r}) = {found!r} has delta {reached!r}"


def _written(guarantee: Guarantee) -> None:
    again = Guarantee.from_json(guarantee.to_json())
    assert again == guarantee, f"{guarantee!r} is read back as {again!r}"


def _scaled(module: Any, name: str, factor: float) -> AbstractContextManager[object]:
    real = getattr(module, name)
    return patch.object(module, name, lambda *given: real(*given) * factor)


RELAPSES: dict[str, Relapse] = {
    "epsilon is rounded to nearest": lambda: _scaled(profile_inverse, "epsilon_from_psi", 1 - 1e-12),
    "psi is rounded to nearest": lambda: _scaled(profile_inverse, "psi_from_epsilon_delta", 1 + 1e-12),
    "delta is a little too small": lambda: _scaled(profile, "delta_from_psi", 1 - 1e-10),
}
