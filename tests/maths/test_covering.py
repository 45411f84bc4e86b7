"""The psi that a claim about any mechanism is worth: it covers the claim, and a little less does not."""

from itertools import pairwise
from math import inf

import numpy as np
import pytest
from flint import arb
from scipy.optimize import minimize_scalar

from psidp import delta_from_psi, epsilon_from_rdp, psi_from_epsilon_delta
from psidp.maths.covering import psi_covering, psi_covering_pure, psi_covering_rdp, psi_covering_zcdp
from reference import twins
from reference.twins import real

LESS = 1 - 1e-6
RDP = [(8.0, 0.5, 1e-6), (2.0, 0.1, 1e-3), (1.5, 3.0, 1e-9), (64.0, 0.01, 1e-12), (1.1, 20.0, 1e-6), (1e6, 1.0, 1e-5)]
ZCDP = [(0.5, 1e-6), (0.005, 1e-12), (5.0, 1e-3), (18.0, 1e-9), (1e-8, 1e-10)]


def covered(psi, kappa, epsilon):
    return kappa + (1 - kappa) * delta_from_psi(psi, epsilon)


def randomised_response(epsilon, at):
    """delta of randomised response: (e^epsilon - e^at)/(1 + e^epsilon)."""
    return np.maximum(np.exp(epsilon) - np.exp(at), 0.0) / (1 + np.exp(epsilon))


def conversion(rdp, most, epsilon):
    """delta of the improved conversion of rdp(alpha) at epsilon, at the best of all orders up to 1 + most."""

    def log_delta(log_t):
        t = np.exp(log_t)
        return t * (rdp(1 + t) - epsilon) - t * np.log1p(1 / t) - np.log1p(t)

    found = minimize_scalar(
        log_delta, bounds=(np.log(most) - 40, np.log(most)), method="bounded", options={"xatol": 1e-9}
    )
    return float(np.exp(min(found.fun, log_delta(np.log(most)), 0.0)))


def needed(claim, kappa, top):
    """The largest psi that any epsilon in [0, top] asks for, by four looks that each come closer."""
    low, high = 0.0, top
    for _ in range(4):
        epsilon = np.linspace(low, high, 101)
        rest = np.clip((np.array([claim(e) for e in epsilon]) - kappa) / (1 - kappa), 0.0, 1.0)
        psi = psi_from_epsilon_delta(epsilon, rest)
        best, step = epsilon[psi.argmax()], (high - low) / 100
        low, high = max(best - step, 0.0), best + step
    return psi.max()


def test_randomised_response_with_epsilon_one_needs_psi_1_232():
    assert psi_covering_pure(1.0) == pytest.approx(1.232, abs=5e-4)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.9, 3.0, 10.0, 30.0])
def test_pure_covers_randomised_response_and_less_does_not(epsilon):
    psi, at = psi_covering_pure(epsilon), np.linspace(0.0, epsilon, 5001)
    claim = randomised_response(epsilon, at)
    assert (delta_from_psi(psi, at) >= claim * (1 - 1e-15)).all()
    exact = (1 - (-real(epsilon)).exp()) / (1 + (-real(epsilon)).exp())
    assert twins.delta(psi * LESS, 0.0) < exact <= twins.delta(psi, 0.0)


def test_pure_is_never_rounded_down_and_costs_a_hundred_roundings_at_most():
    for epsilon in np.concatenate([np.geomspace(1e-300, 1, 60), np.linspace(0.1, 60, 300), [2.944, 2.945, 600.0]]):
        rest = 1 / (1 + real(epsilon).exp())
        exact = -2 * twins.quantile(rest) if epsilon > 1e-60 else real(epsilon) * (arb.pi() / 2).sqrt()
        value = real(psi_covering_pure(float(epsilon)))
        assert value >= exact * (1 - (1e-60 if epsilon <= 1e-60 else 0))
        assert value <= exact * (1 + 3e-14)


def test_pure_at_the_ends():
    assert psi_covering_pure(0.0) == 0.0
    assert psi_covering_pure(inf) == inf
    assert psi_covering_pure(1e300) == pytest.approx(2 * np.sqrt(2) * 1e150, rel=1e-12)
    assert psi_covering_pure(1e308) == pytest.approx(2 * np.sqrt(2) * 1e154, rel=1e-12)


@pytest.mark.parametrize(("alpha", "rho", "kappa"), RDP)
def test_rdp_is_covered_at_every_epsilon_and_by_no_smaller_psi(alpha, rho, kappa):
    psi, top = psi_covering_rdp(alpha, rho, kappa), epsilon_from_rdp(rho, alpha, kappa) * 1.1 + 1e-9
    for epsilon in np.concatenate([np.linspace(0.0, top, 200), np.geomspace(1e-6 * top, top, 100)]):
        assert covered(psi, kappa, epsilon) >= conversion(lambda _: rho, alpha - 1, epsilon) * (1 - 1e-12)
    assert psi * LESS <= needed(lambda e: conversion(lambda _: rho, alpha - 1, e), kappa, top)


@pytest.mark.parametrize(("rho", "kappa"), ZCDP)
def test_zcdp_is_covered_at_every_epsilon_and_by_no_smaller_psi(rho, kappa):
    psi, top = psi_covering_zcdp(rho, kappa), (rho + 2 * np.sqrt(rho * np.log(1 / kappa))) * 1.1
    most = 1e3 * (1 + np.sqrt(np.log(1 / kappa) / rho))
    for epsilon in np.concatenate([np.linspace(0.0, top, 200), np.geomspace(1e-6 * top, top, 100)]):
        assert covered(psi, kappa, epsilon) >= conversion(lambda a: a * rho, most, epsilon) * (1 - 1e-12)
    assert psi * LESS <= needed(lambda e: conversion(lambda a: a * rho, most, e), kappa, top)


@pytest.mark.parametrize("true", [0.05, 1.0, 4.0])
@pytest.mark.parametrize("kappa", [0.0, 1e-6, 0.1])
def test_a_gaussian_claim_for_which_every_epsilon_is_critical_is_worth_its_own_psi_to_a_hundredth(true, kappa):
    end = true * (true / 2 + 6)  # delta is 1e-9 of its largest there

    def claim(epsilon):
        return np.where(epsilon > end, 0.0, covered(true, kappa, epsilon))

    assert true * (1 - 1e-14) <= psi_covering(claim, kappa) <= true * 1.01  # 65,536 cells, each as good as its width


def test_a_step_that_falls_between_two_grid_points_is_still_covered():
    def step(epsilon):
        return np.where(epsilon < 0.7310585, 0.2, 0.0)

    psi = psi_covering(step, 0.0)
    assert delta_from_psi(psi, 0.7310585) >= 0.2
    assert delta_from_psi(psi * LESS, 0.7310585) < 0.2


def test_more_kappa_never_asks_for_more_psi_and_a_weaker_claim_never_for_less():
    for one, two in pairwise([1e-12, 1e-6, 1e-3, 0.1]):
        assert psi_covering_rdp(8.0, 0.5, two) <= psi_covering_rdp(8.0, 0.5, one)
        assert psi_covering_zcdp(0.5, two) <= psi_covering_zcdp(0.5, one)
    for one, two in pairwise([1e-4, 0.01, 0.5, 5.0, 30.0]):
        assert psi_covering_zcdp(one, 1e-6) < psi_covering_zcdp(two, 1e-6)
        assert psi_covering_rdp(4.0, one, 1e-6) < psi_covering_rdp(4.0, two, 1e-6)


def test_zcdp_of_any_mechanism_asks_for_more_than_the_gaussian_reading():
    for rho in (0.005, 0.462, 5.0):
        assert psi_covering_zcdp(rho, 1e-9) > np.sqrt(2 * rho)
    assert psi_covering_zcdp(0.462, 1e-9) > 1.232, "randomised response is 0.462-zCDP and needs 1.232"


def test_claims_at_the_ends():
    assert psi_covering_zcdp(0.0, 1e-6) == 0.0
    assert psi_covering_rdp(inf, 1.0, 1e-6) == psi_covering_pure(1.0)
    assert psi_covering_rdp(1 + 1e-7, 1.0, 1e-6) < inf
    assert psi_covering_rdp(2.0, 0.0, 1e-6) < psi_covering_rdp(2.0, 0.01, 1e-6)
