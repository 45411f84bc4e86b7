"""Calibration: what it gives back meets the target, and hardly more than that."""

import pytest

from psidp.accounting import DPSGD, account, calibrate, largest_sampling_rate, largest_steps

SIGMAS = [  # epsilon at delta = 1e-5, rate, steps, the published optimum
    (2.0, 0.01, 1000, 0.9591015524837),
    (5.0, 0.05, 2000, 2.1405163860259),
    (2.0, 256 / 60000, 14062, 1.2241451421019),
    (4.0, 0.004, 15000, 0.8307342530724),
    (6.0, 0.001, 100000, 0.6029871232859),
]


@pytest.mark.parametrize(("epsilon", "rate", "steps", "sigma"), SIGMAS)
def test_noise_meets_the_certified_optimum_from_the_safe_side(epsilon, rate, steps, sigma):
    noise = calibrate(epsilon=epsilon, delta=1e-5, sampling_rate=rate, steps=steps)
    assert account(DPSGD(noise, rate, steps)).epsilon(1e-5).upper <= epsilon
    assert account(DPSGD(noise * (1 - 1e-9), rate, steps)).epsilon(1e-5).lower > epsilon
    assert abs(noise / sigma - 1) <= 1e-9


def test_noise_for_advantage_and_for_psi():
    noise = calibrate(advantage=0.1, sampling_rate=0.01, steps=1000)
    assert account(DPSGD(noise, 0.01, 1000)).advantage.upper <= 0.1
    assert account(DPSGD(noise * (1 - 1e-8), 0.01, 1000)).advantage.upper > 0.1
    noise = calibrate(psi=0.5, kappa=1e-8, sampling_rate=0.01, steps=1000)
    assert account(DPSGD(noise, 0.01, 1000)).guarantee(1e-8).psi <= 0.5


def test_steps_are_as_many_as_fit_and_not_one_more():
    steps = largest_steps(noise_multiplier=1.0, sampling_rate=0.01, epsilon=2.0, delta=1e-5)
    assert account(DPSGD(1.0, 0.01, steps)).epsilon(1e-5).upper <= 2.0
    assert account(DPSGD(1.0, 0.01, steps + 1)).epsilon(1e-5).upper > 2.0
    assert largest_steps(noise_multiplier=0.1, sampling_rate=0.9, epsilon=0.1, delta=1e-9) == 0


def test_rate_is_as_high_as_fits():
    rate = largest_sampling_rate(noise_multiplier=1.0, steps=1000, epsilon=2.0, delta=1e-5)
    assert account(DPSGD(1.0, rate, 1000)).epsilon(1e-5).upper <= 2.0
    assert account(DPSGD(1.0, rate * (1 + 1e-9), 1000)).epsilon(1e-5).upper > 2.0
    assert largest_sampling_rate(noise_multiplier=100.0, steps=1, epsilon=5.0, delta=1e-5) == 1.0


@pytest.mark.parametrize(
    "target", [{}, {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-5, "advantage": 0.1}, {"psi": 1}]
)
def test_exactly_one_target_must_be_given(target):
    with pytest.raises(TypeError, match="exactly one target"):
        calibrate(sampling_rate=0.01, steps=10, **target)


def test_targets_that_cannot_be_met_are_refused():
    with pytest.raises(ValueError, match="above 0: nothing is released"):
        calibrate(epsilon=1.0, delta=1e-5, sampling_rate=0.0, steps=10)
    with pytest.raises(ValueError, match=r"epsilon .* must be in \(0,inf\)"):
        calibrate(epsilon=0.0, delta=1e-5, sampling_rate=0.1, steps=10)


def test_steps_that_are_weaker_than_kappa_do_not_stop_the_search_for_their_number():
    """psi of a few such steps is 0."""
    settings = {"noise_multiplier": 1.0, "sampling_rate": 1e-3}
    assert account(DPSGD(**settings, steps=64)).guarantee(0.05).psi == 0.0
    found = largest_steps(**settings, psi=0.05, kappa=0.05)
    assert account(DPSGD(**settings, steps=found)).guarantee(0.05).psi <= 0.05
    assert account(DPSGD(**settings, steps=2 * found)).guarantee(0.05).psi > 0.05
