"""What a release does to beliefs: Bayes error, predictive value, odds, reconstruction, divergence."""

import numpy as np
import pytest
from scipy.stats import norm

from psidp import delta_from_psi, tpr_from_psi
from psidp.maths.bayes import loss_tail_bound, loss_tail_quantile
from psidp.maths.covering import psi_covering_pure
from psidp.theory import bayes_error, divergence, odds_multiplier, positive_predictive_value, reconstruction_bound
from reference import twins
from reference.twins import real

RNG = np.random.default_rng(0)
PSI = 10 ** RNG.uniform(-8, 1.7, 1500)
PRIOR = np.choose(
    RNG.integers(0, 3, 1500),
    [RNG.random(1500), 10 ** RNG.uniform(-200, 0, 1500), 1 - 10 ** RNG.uniform(-15, 0, 1500)],
)


def test_bayes_error_is_never_above_the_truth_and_close_to_it():
    for p, q, value in zip(PSI, PRIOR, bayes_error(PSI, PRIOR), strict=True):
        exact = twins.bayes_error(p, q)
        assert real(value) <= exact
        odds = abs(np.log1p(-q) - np.log(q))
        # the sum loses what its arguments, psi and odds/psi, lose in a square; the dual a few roundings of the prior
        room = min(1e-14 * (3 + (odds / p + p) ** 2), max(1e-14, 2e-15 * float(min(q, 1 - q) / exact)))
        assert real(value) >= exact * (1 - room)


@pytest.mark.parametrize("psi", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("prior", [0.001, 0.3, 0.5, 0.8])
def test_bayes_error_is_the_smallest_over_all_thresholds(psi, prior):
    reach = abs(np.log(prior / (1 - prior))) / psi + 10
    c = np.linspace(psi / 2 - reach, psi / 2 + reach, 200_001)
    direct = ((1 - prior) * norm.sf(c) + prior * norm.cdf(c - psi)).min()
    assert bayes_error(psi, prior) <= direct
    assert bayes_error(psi, prior) == pytest.approx(direct, rel=1e-6)  # (step)^2 at a flat minimum


def test_bayes_error_at_the_ends_is_the_blind_guess_or_nothing():
    for prior in (0.0, 0.2, 0.5, 1.0):
        assert bayes_error(0.0, prior) == min(prior, 1 - prior)
        assert bayes_error(1e3, prior) == 0.0 or 0 < prior < 1
        assert bayes_error(1e200, prior) == 0.0
        assert bayes_error(1e-200, prior) == pytest.approx(min(prior, 1 - prior), rel=1e-15)
    assert bayes_error(1.0, 0.3) == pytest.approx(bayes_error(1.0, 0.7), rel=1e-14)
    assert bayes_error(1.0, 0.5) == pytest.approx(norm.cdf(-0.5), rel=1e-14)


def test_an_accusation_at_one_per_cent_is_right_half_the_time():
    assert tpr_from_psi(1.0, 0.01) == pytest.approx(0.092, abs=5e-4)
    assert positive_predictive_value(1.0, 0.01, 0.1) == pytest.approx(0.506, abs=5e-4)


def test_predictive_value_is_never_below_the_truth_even_for_tiny_rates():
    psi, fpr = twins.spread(1, 600)
    prior = np.random.default_rng(2).permutation(twins.spread(2, 600)[1])
    for p, x, q, value in zip(psi, fpr, prior, positive_predictive_value(psi, fpr, prior), strict=True):
        hit = real(q) * twins.tpr(p, x)
        exact = hit / (hit + (1 - real(q)) * real(x))
        assert value == 1.0 or real(value) >= exact
        assert real(value) <= exact * (1 + 1e-13 * (1 + norm.ppf(x) ** 2)) + 1e-320


@pytest.mark.parametrize(
    ("psi", "fpr", "prior", "expected"),
    [(1.0, 0.0, 0.1, 1.0), (0.0, 0.0, 0.1, 0.1), (0.0, 0.5, 0.1, 0.1), (1.0, 0.5, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0),
     (1.0, 0.5, 1.0, 1.0), (0.0, 0.0, 1.0, 1.0), (1.0, 1.0, 0.25, 0.25)],
)  # fmt: skip
def test_predictive_value_at_the_ends(psi, fpr, prior, expected):
    assert positive_predictive_value(psi, fpr, prior) == pytest.approx(expected, rel=1e-15)


def test_odds_of_the_tables():
    assert odds_multiplier(1.0, 0.05) == pytest.approx(8.5, abs=0.05)
    assert odds_multiplier(1.0, 0.01) == pytest.approx(16.9, abs=0.05)
    assert odds_multiplier(1.0, 1e-5) == pytest.approx(117, abs=0.5)


def test_odds_are_never_below_the_truth_and_close_to_it():
    psi, chance = twins.spread(3, 1000)
    psi = np.minimum(psi, 12.0)
    for p, c, value in zip(psi, chance, odds_multiplier(psi, chance), strict=True):
        exact = (real(p) ** 2 / 2 - real(p) * twins.quantile(real(c))).exp()
        assert real(value) >= exact
        assert real(value) <= exact * (1 + 1e-14 * (1 + p) * (p + 40))
    assert odds_multiplier(0.0, 0.5) == 1.0
    assert odds_multiplier(0.0, 0.0) == 1.0
    assert odds_multiplier(1.0, 0.0) == np.inf
    assert odds_multiplier(1.0, 1.0) == 0.0
    assert odds_multiplier(1e200, 0.5) == np.inf


def test_reconstruction_is_the_curve_read_at_the_prior_and_is_refused_under_its_own_name():
    np.testing.assert_array_equal(reconstruction_bound(1.0, [0.0, 0.1, 1.0]), tpr_from_psi(1.0, [0.0, 0.1, 1.0]))
    with pytest.raises(ValueError, match=r"^prior \(probability of membership before the release\)"):
        reconstruction_bound(1.0, 1.5)


def test_divergence_of_1_and_1_5_by_three_roads():
    priors = np.linspace(1e-6, 1 - 1e-6, 100_001)
    by_priors = (bayes_error(1.0, priors) - bayes_error(1.5, priors)).max()
    epsilon = np.linspace(0.0, 10.0, 100_001)
    by_profile = ((delta_from_psi(1.5, epsilon) - delta_from_psi(1.0, epsilon)) / (1 + np.exp(epsilon))).max()
    for value in (divergence(1.0, 1.5), by_priors, by_profile):
        assert value == pytest.approx(0.081910, abs=5e-7)


def test_divergence_is_never_below_the_truth_and_nothing_towards_more_privacy():
    first, second = PSI, np.random.default_rng(1).permutation(PSI)
    for p, q, value in zip(first, second, divergence(first, second), strict=True):
        exact = twins.phi(real(q) / 2) - twins.phi(real(p) / 2)
        if q <= p:
            assert value == 0.0
        else:
            assert exact < real(value) <= exact + 1e-14
    assert divergence(1e200, 1e201) == 5e-324
    assert divergence(1.0, 1.0) == 0.0
    assert type(divergence(1.0, 2.0)) is float


@pytest.mark.parametrize("psi", [0.1, 1.0, 3.0, 8.0])
def test_loss_tail_bound_lies_above_the_gaussian_tail(psi):
    for loss in np.concatenate([[0.0, 1e-9, 1e-6], np.linspace(0.01, psi * (psi / 2 + 6), 60)]):
        true = norm.sf((loss - psi**2 / 2) / psi)
        assert true <= loss_tail_bound(psi, 0.0, loss) <= 1.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_loss_tail_bound_lies_above_randomised_response_and_the_gaussian_formula_does_not(epsilon):
    psi, chance = psi_covering_pure(epsilon), np.exp(epsilon) / (1 + np.exp(epsilon))
    for loss in np.linspace(epsilon / 100, epsilon, 50):  # the loss is epsilon with this chance
        assert loss_tail_bound(psi, 0.0, loss) >= chance
    assert norm.sf((epsilon - psi**2 / 2) / psi) < chance


def test_loss_tail_bound_holds_failure():
    assert loss_tail_bound(0.0, 0.1, 5.0) == pytest.approx(0.1 / -np.expm1(-5.0), rel=0.05)  # the grid of s
    assert loss_tail_bound(1.0, 0.1, 30.0) >= 0.1
    assert loss_tail_bound(1.0, 0.0, np.nan) == 1.0


@pytest.mark.parametrize(("psi", "kappa"), [(1.0, 0.0), (0.3, 0.01), (3.0, 1e-6), (0.0, 0.1)])
def test_loss_tail_quantile_is_the_smallest_multiplier_that_the_bound_allows(psi, kappa):
    for probability in (0.5, 0.2, kappa + 0.01):
        factor = loss_tail_quantile(psi, kappa, probability)
        assert loss_tail_bound(psi, kappa, np.log(factor)) <= probability * (1 + 1e-12)
        assert loss_tail_bound(psi, kappa, np.log(factor) * (1 - 1e-6)) > probability
    assert loss_tail_quantile(psi, 0.2, 0.2) == np.inf
    assert loss_tail_quantile(0.0, 0.0, 0.0) == 1.0
    assert loss_tail_quantile(1.0, 0.0, 0.01) >= odds_multiplier(1.0, 0.01)
    assert loss_tail_quantile(1e3, 0.0, 0.5) == np.inf
