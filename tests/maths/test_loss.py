"""The privacy loss variable: its moments, and the delta that the paper's Lemma 1 speaks of."""

import numpy as np
import pytest

from psidp import delta_from_psi
from psidp.theory import loss_mean, loss_variance, sufficient_delta, sufficient_delta_gap
from reference import twins
from reference.twins import real

RNG = np.random.default_rng(0)
PSI = 10 ** RNG.uniform(-8, 3, 2000)
EPSILON = np.where(RNG.random(2000) < 0.1, 0.0, PSI * np.abs(PSI / 2 + RNG.uniform(-9, 35, 2000)))


def twin(psi, epsilon):
    return twins.phi(real(psi) / 2 - real(epsilon) / real(psi))


def test_mean_and_variance_are_those_of_simulated_losses():
    psi = 1.5
    output = np.random.default_rng(1).normal(psi, 1.0, 400_000)
    loss = psi * output - psi**2 / 2  # log of the density ratio where the person is in
    assert loss.mean() == pytest.approx(loss_mean(psi), abs=5 * psi / np.sqrt(loss.size))  # five standard errors
    assert loss.var() == pytest.approx(loss_variance(psi), rel=5 * np.sqrt(2 / loss.size))
    assert loss_mean(0.0) == loss_variance(0.0) == 0.0
    np.testing.assert_array_equal(loss_mean([1.0, 2.0]), [0.5, 2.0])
    np.testing.assert_array_equal(loss_variance([1.0, 2.0]), [1.0, 4.0])


def test_sufficient_delta_is_never_below_the_truth_and_close_to_it():
    for p, e, value in zip(PSI, EPSILON, sufficient_delta(PSI, EPSILON), strict=True):
        exact = twin(p, e)
        a = e / p - p / 2
        assert value == 1.0 or real(value) >= exact
        assert real(value) <= exact * (1 + 1e-15 * (20 + (1 + abs(a)) * (e / p + p + abs(a)))) + 1e-307


def test_sufficient_delta_is_sufficient_and_exceeds_the_exact_delta_by_the_gap():
    enough, exact, gap = (f(PSI, EPSILON) for f in (sufficient_delta, delta_from_psi, sufficient_delta_gap))
    assert (enough * (1 + 1e-13) >= exact).all()
    np.testing.assert_allclose(enough, exact + gap, rtol=1e-9)  # e^(-a^2/2) loses what a^2/2, up to 1e6, has lost
    assert sufficient_delta(1.0, 1.0) == pytest.approx(0.3085, abs=5e-5)
    assert delta_from_psi(1.0, 1.0) == pytest.approx(0.1269, abs=5e-5)
    for p, e in zip(PSI[:300], EPSILON[:300], strict=True):
        if e < 300 and p < 30:
            truth = real(e).exp() * twins.phi(-real(p) / 2 - real(e) / real(p))
            assert sufficient_delta_gap(p, e) == pytest.approx(float(truth), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(
    ("psi", "epsilon", "expected"),
    [(0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (1.0, np.inf, 0.0), (1e200, 1.0, 1.0), (1e3, 0.0, 1.0)],
)
def test_sufficient_delta_at_the_ends(psi, epsilon, expected):
    assert sufficient_delta(psi, epsilon) == expected
    assert 0.0 <= sufficient_delta_gap(psi, epsilon) <= 1.0


@pytest.mark.parametrize(("psi", "epsilon"), [(1e-200, 1e200), (5e-324, 1.0), (1e-8, 1e6), (1.0, 1e300)])
def test_a_delta_below_the_floats_comes_back_tiny_and_not_as_nothing(psi, epsilon):
    assert 0.0 < sufficient_delta(psi, epsilon) < 1e-320
    assert sufficient_delta_gap(psi, epsilon) == 0.0
