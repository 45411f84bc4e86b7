"""delta and log delta of a psi-mechanism, against ball arithmetic on random and cornered points."""

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from psidp import delta_from_psi, log_delta_from_psi
from reference import oracle


@pytest.fixture(scope="module")
def judged():
    """20,000 points with the true delta."""
    psi, epsilon = oracle.points(seed=20_000, count=20_000)
    truth = [oracle.delta(p, e) for p, e in zip(psi, epsilon, strict=True)]
    assert all(true.rel_accuracy_bits() > 300 for true in truth)
    return psi, epsilon, truth


def test_log_delta_is_never_below_the_truth_and_within_1e_14_of_it(judged):
    psi, epsilon, truth = judged
    ours = log_delta_from_psi(psi, epsilon)
    assert np.isfinite(ours).all()
    for value, true in zip(ours, truth, strict=True):
        log = true.log()
        excess = arb(float(value)) - log
        assert not excess < 0
        if log < -1e-3:
            assert excess <= arb(1e-14) * abs(log)


def test_delta_is_never_below_the_truth_and_keeps_its_digits_down_to_1e_300(judged):
    psi, epsilon, truth = judged
    for value, true in zip(delta_from_psi(psi, epsilon), truth, strict=True):
        assert not arb(float(value)) < true  # balls of relative radius 2^-300: not provably below is not below
        if true > 1e-300:
            assert arb(float(value)) <= true * (1 + arb(3e-15))


def test_a_delta_too_small_for_a_float_is_rounded_up_not_to_perfect_privacy():
    assert delta_from_psi(0.01, 10.0) == 5e-324
    assert log_delta_from_psi(1e-8, 1e300) == -np.finfo(float).max


@given(st.floats(1e-8, 1e3), st.floats(0, 1e6), st.floats(1.0, 2.0))
def test_delta_falls_with_epsilon_and_grows_with_psi(psi, epsilon, factor):
    slack = 1 + 1e-14
    assert delta_from_psi(psi, epsilon * factor) <= delta_from_psi(psi, epsilon) * slack
    assert delta_from_psi(psi * factor, epsilon) * slack >= delta_from_psi(psi, epsilon)


@given(st.floats(0, 1e308), st.floats(0, 1e308))
def test_any_finite_input_has_an_answer(psi, epsilon):
    assert 0 <= delta_from_psi(psi, epsilon) <= 1
    assert log_delta_from_psi(psi, epsilon) <= 0


def test_the_ends_of_the_domain():
    assert delta_from_psi(0.0, [0.0, 1.0, np.inf]).tolist() == [0, 0, 0]
    assert log_delta_from_psi(0.0, 1.0) == -np.inf
    assert delta_from_psi(1.0, np.inf) == 0.0
    assert delta_from_psi(1e300, 1.0) == 1.0


def test_a_scalar_and_a_vector_agree_to_the_last_bit():
    psi, epsilon = oracle.points(seed=5, count=300)
    assert [delta_from_psi(p, e) for p, e in zip(psi, epsilon, strict=True)] == delta_from_psi(psi, epsilon).tolist()
