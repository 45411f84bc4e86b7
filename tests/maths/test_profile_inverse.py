"""epsilon from (psi, delta) and psi from (epsilon, delta): accuracy, and which side they fall to."""

import numpy as np
import pytest
from flint import arb

from psidp import (
    delta_from_psi,
    epsilon_from_log_delta,
    epsilon_from_psi,
    log_delta_from_psi,
    psi_from_epsilon_delta,
)
from reference import oracle

COUNT = 10_000


def deltas(rng, largest):
    """delta over the whole range, close to its largest value, in the usual range, and close to one."""
    kind = rng.integers(0, 4, largest.size)
    size = largest.size
    return np.choose(
        kind,
        [
            10 ** rng.uniform(-300, -0.001, size),
            np.maximum(largest * (1 - 10 ** rng.uniform(-15, 0, size)), 1e-300),
            10 ** rng.uniform(-13, -0.1, size),
            1 - 10 ** rng.uniform(-15, -0.01, size),
        ],
    )


def epsilon_points(seed, count):
    rng = np.random.default_rng(seed)
    psi = 10 ** rng.uniform(-8, 3, count)
    return psi, deltas(rng, delta_from_psi(psi, 0.0))


def psi_points(seed, count):
    rng = np.random.default_rng(seed)
    epsilon = np.where(rng.random(count) < 0.05, 0.0, 10 ** rng.uniform(-12, 6, count))
    epsilon = np.where(rng.random(count) < 0.1, 10 ** rng.uniform(-300, 6, count), epsilon)
    return epsilon, np.minimum(deltas(rng, delta_from_psi(10 ** rng.uniform(-8, 3, count), epsilon)), 1 - 1e-15)


def test_epsilon_never_promises_more_privacy_than_there_is_and_costs_32_ulp_at_most():
    psi, delta = epsilon_points(1, COUNT)
    epsilon = epsilon_from_psi(psi, delta)
    assert np.isfinite(epsilon).all()
    for p, d, e in zip(psi, delta, epsilon, strict=True):
        excess = arb(float(d)) - oracle.delta(p, e)  # >= 0: delta at our epsilon does not exceed the target
        assert excess >= 0
        if e > 0:
            price = float(excess / oracle.slope_in_epsilon(p, e))
            assert price <= 1e-14 * (e + p)
            assert price <= 32 * np.spacing(e + p)


def test_epsilon_from_log_delta_reaches_far_below_the_floats():
    rng = np.random.default_rng(2)
    psi, log_delta = 10 ** rng.uniform(-8, 3, 3000), -(10 ** rng.uniform(-3, 6, 3000))
    epsilon = epsilon_from_log_delta(psi, log_delta)
    for p, goal, e in zip(psi, log_delta, epsilon, strict=True):
        true = oracle.delta(p, e)
        excess = arb(float(goal)) - true.log()
        assert excess >= 0
        if e > 0:
            steepness = oracle.slope_in_epsilon(p, e) / true
            price = float(excess / steepness)
            assert price <= 1e-14 * (e + p + abs(goal) / float(steepness))


def test_psi_never_promises_more_privacy_than_there_is_and_costs_32_ulp_at_most():
    epsilon, delta = psi_points(3, COUNT)
    psi = psi_from_epsilon_delta(epsilon, delta)
    assert (np.isfinite(psi) & (psi > 0)).all()
    for e, d, p in zip(epsilon, delta, psi, strict=True):
        if p < 1e-290:
            continue  # delta itself is then subnormal or next to it, and has no more digits to give
        excess = arb(float(d)) - oracle.delta(p, e)
        assert excess >= 0
        price = float(excess / oracle.slope_in_psi(p, e))
        if d < 0.3:
            assert price <= 1e-14 * p
            assert price <= 32 * np.spacing(p)
        else:  # the conditioning of 1 - delta: three roundings of it, carried to psi
            assert price <= 1e-14 * p + 3 * np.spacing(1 - d) / float(oracle.slope_in_psi(p, e))


@pytest.mark.parametrize("seed", range(4))
def test_as_computed_no_round_trip_exceeds_its_target(seed):
    psi, delta = epsilon_points(seed, 100_000)
    assert (delta_from_psi(psi, epsilon_from_psi(psi, delta)) <= delta).all()
    goal = -(10 ** np.random.default_rng(seed).uniform(-3, 6, psi.size))
    assert (log_delta_from_psi(psi, epsilon_from_log_delta(psi, goal)) <= goal).all()
    epsilon, delta = psi_points(seed, 100_000)
    assert (delta_from_psi(psi_from_epsilon_delta(epsilon, delta), epsilon) <= delta).all()


def test_the_ends_of_the_domain():
    assert epsilon_from_psi(1.0, [0.0, 1.0]).tolist() == [np.inf, 0.0]
    assert epsilon_from_psi(0.0, [0.0, 0.5]).tolist() == [0.0, 0.0]
    assert epsilon_from_psi(1.0, delta_from_psi(1.0, 0.0)) == 0.0
    assert epsilon_from_log_delta(1.0, [-np.inf, 0.0]).tolist() == [np.inf, 0.0]
    assert psi_from_epsilon_delta(1.0, [0.0, 1.0]).tolist() == [0.0, np.inf]
    assert psi_from_epsilon_delta(np.inf, 0.5) == np.inf


@pytest.mark.parametrize("delta", [5e-324, 1e-308, 1e-300])
def test_epsilon_and_psi_keep_their_promise_at_the_edge_of_the_floats(delta):
    psi = psi_from_epsilon_delta(1.0, delta)
    assert 0.02 < psi < 0.05
    assert oracle.delta(psi, 1.0) <= arb(delta)
    assert oracle.delta(0.03, epsilon_from_psi(0.03, delta)) <= arb(delta)


def test_a_scalar_and_a_vector_agree_to_the_last_bit():
    psi, delta = epsilon_points(7, 200)
    assert [epsilon_from_psi(p, d) for p, d in zip(psi, delta, strict=True)] == epsilon_from_psi(psi, delta).tolist()
    epsilon, delta = psi_points(7, 200)
    one_by_one = [psi_from_epsilon_delta(e, d) for e, d in zip(epsilon, delta, strict=True)]
    assert one_by_one == psi_from_epsilon_delta(epsilon, delta).tolist()
