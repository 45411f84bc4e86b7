"""The promise itself, by two other roads: the exact law of the rounded mechanism, and attacks on real releases."""

import numpy as np
import pytest
from scipy.special import ndtr

from psidp import GaussianMechanism, Guarantee, delta_from_psi

EPSILONS = [0.0, 0.1, 0.5, 1.0, 3.0]


def step_chances(x, scale):
    """Law of round(x + scale N) on the whole numbers from -150 to 150, accurate in both tails."""
    edges = np.arange(-150, 152) - 0.5 - x
    below, above = np.diff(ndtr(edges / scale)), -np.diff(ndtr(-edges / scale))
    return np.where(edges[:-1] > 0, above, below)


def delta(first, second, epsilon):
    """Smallest delta for which first is (epsilon, delta)-close to second."""
    return np.maximum(first - np.exp(epsilon) * second, 0.0).sum()


@pytest.mark.parametrize("scale", [1.0, 2.0, 8.0])
@pytest.mark.parametrize("distance", [0.3, 1.0, 2.5])
def test_rounding_after_the_noise_never_costs_privacy(scale, distance):
    """Wherever x lies on the grid, coarse as it may be: sums of 300 doubles, good to 1e-15."""
    for x in np.linspace(-0.5, 0.5, 7):
        one, other = step_chances(x, scale), step_chances(x + distance, scale)
        for epsilon in EPSILONS:
            promised = delta_from_psi(distance / scale, epsilon) + 1e-15
            assert delta(one, other, epsilon) <= promised
            assert delta(other, one, epsilon) <= promised


def test_rounding_before_the_noise_would():
    """Why we add first: 0.4999 and 0.5001 are rounded apart, and psi grows from 0.000025 to 0.125."""
    before = delta(step_chances(0.0, 8.0), step_chances(1.0, 8.0), 0.0)
    after = delta(step_chances(0.4999, 8.0), step_chances(0.5001, 8.0), 0.0)
    assert before > 0.049
    assert after <= delta_from_psi(0.0002 / 8.0, 0.0) + 1e-15 < 1.1e-5


@pytest.mark.parametrize("grid", [None, 1.0, 2.0**-44])
def test_the_best_attack_on_a_million_releases_gains_what_psi_says(grid):
    """TPR at several thresholds against the ROC curve; off by 6 standard errors happens once in 10^8."""
    n, psi = 10**6, 1.0
    mechanism = GaussianMechanism(1.0, 1.0 / psi, grid=grid)
    out, inside = mechanism.release(np.zeros(n)).value, mechanism.release(np.ones(n)).value
    for threshold in (-0.5, 0.5, 1.5, 2.5):
        fpr, tpr = (out > threshold).mean(), (inside > threshold).mean()
        allowed = Guarantee(psi).roc(min(1.0, fpr + 6 * np.sqrt(fpr * (1 - fpr) / n)))
        assert tpr <= allowed + 6 * np.sqrt(tpr * (1 - tpr) / n)
        if grid is None:
            assert tpr > Guarantee(psi).roc(fpr) - 0.01  # and no privacy is given away for nothing


def test_vectors_cost_what_their_l2_distance_says():
    """100 coordinates, each moved by 0.1: distance 1, psi 1; the best attack sums them up."""
    mechanism = GaussianMechanism(1.0, 1.0)
    n, d = 20_000, 100
    scores = [mechanism.release(np.full((n, d), x)).value.sum(axis=1) / 10.0 for x in (0.0, 0.1)]
    advantage = (scores[1] > 0.5).mean() - (scores[0] > 0.5).mean()
    assert advantage == pytest.approx(mechanism.guarantee.advantage, abs=6 * np.sqrt(0.5 / n))
