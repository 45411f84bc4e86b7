"""Intervals for the attack itself: ROC band, AUC, TPR at an FPR, epsilon; coverage by simulation."""

import numpy as np
import pytest
from scipy.stats import norm

from auditing.attacks import most, scores
from psidp import audit

FALSE_ALARM = 1e-6


def truth(psi, fpr):
    return norm.sf(norm.isf(fpr) - psi)


def test_the_band_holds_the_whole_curve():
    rng, grid = np.random.default_rng(1), np.geomspace(1e-4, 1.0, 60)
    missed = 0
    for _ in range(200):
        band = audit(*scores(1.0, 150, 100, "identity", rng), 0.9, "pairs", seed=1).roc(grid)
        missed += bool(((truth(1.0, grid) < band.lower) | (truth(1.0, grid) > band.upper)).any())
        assert (band.lower <= band.tpr).all()
        assert (band.tpr <= band.upper).all()
    assert missed <= most(200, 0.1, FALSE_ALARM)


@pytest.mark.parametrize("fpr", [0.001, 0.05, 0.5])
def test_the_interval_of_the_true_positive_rate_holds_it(fpr):
    rng = np.random.default_rng(2)
    missed = 0
    for _ in range(200):
        low, high = audit(*scores(1.0, 300, 400, "identity", rng), 0.9, "pairs", seed=1).tpr(fpr)
        missed += not low <= truth(1.0, fpr) <= high
    assert missed <= most(200, 0.1, FALSE_ALARM)
    assert high - low < 0.35 or fpr == 0.001


def test_the_interval_of_the_area_holds_it_also_with_ties():
    rng = np.random.default_rng(3)
    missed = 0
    for r in range(200):
        result = audit(*scores(1.0, 100, 120, "sign", rng), 0.9, "pairs", seed=r)
        low, high = result.auc_interval
        area = 0.5 + 0.5 * (norm.cdf(0.5) - norm.cdf(-0.5))
        missed += not low <= area <= high
    assert missed <= most(200, 0.1, FALSE_ALARM)


@pytest.mark.parametrize("n", [50, 2000])
def test_epsilon_of_randomised_response_is_never_overstated(n):
    rng, keep, missed = np.random.default_rng(4), np.e / (1 + np.e), 0
    for _ in range(120):
        ins, outs = (rng.random(n) < keep) * 1.0, (rng.random(n) < 1 - keep) * 1.0
        missed += audit(ins, outs, 0.9, "pairs", seed=1).epsilon(0.0) > 1.0
    assert missed <= most(120, 0.1, FALSE_ALARM)


def test_a_curve_ends_in_its_corners():
    band = audit([1.0, 2.0, 3.0], [0.0, 1.0], method="pairs", seed=1).roc([0.0, 0.5, 1.0])
    assert band.tpr.tolist() == [2 / 3, 1.0, 1.0]
