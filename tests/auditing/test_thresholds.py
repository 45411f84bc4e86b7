"""The ladder of thresholds: exact rungs, and the stored calibration made again in part and tried between its points."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, binom

from auditing.attacks import most
from psidp.auditing.calibration import gain
from psidp.auditing.curves import Approximate, Gaussian
from psidp.auditing.thresholds import rung_p_values, rungs
from reference import make_calibration


@pytest.mark.parametrize("n", [1, 2, 3, 30, 1000, 1001, 10**7])
def test_the_ladder_climbs_from_one_end_to_the_other(n):
    k = rungs(n)
    assert k[0] == 0
    assert k[-1] == n - 1
    assert (np.diff(k) > 0).all()
    assert (k + k[::-1] == n - 1).all()


@pytest.mark.parametrize("curves", [Gaussian(), Gaussian(0.05), Approximate(1e-5)])
@pytest.mark.parametrize(
    ("k", "m", "n_in", "n_out"), [(0, 4, 40, 50), (10, 30, 40, 50), (49, 40, 40, 50), (3, 300, 900, 90)]
)
def test_a_rung_is_never_below_its_integral_and_close_to_it(curves, k, m, n_in, n_out):
    p = rung_p_values(curves, 0.8, np.array([k]), np.array([m]), n_in, n_out)[0]
    law = beta(k + 1, n_out - k)
    truth = quad(lambda u: binom.sf(m - 1, n_in, float(curves.roc(0.8, law.ppf(u)))), 0, 1, epsrel=1e-9, limit=200)[0]
    assert truth * (1 - 1e-7) <= p <= 1.35 * truth


@pytest.mark.parametrize("curves", [Gaussian(), Gaussian(0.05), Approximate(1e-3)])
def test_a_curve_and_its_inverse_meet_and_lean_to_the_safe_side(curves):
    for strength in (0.0, 0.5, 2.0):
        for tpr in (0.001, 0.1, 0.6, 0.99):
            fpr = curves.inverse(strength, tpr)
            if fpr > 0.0:
                assert tpr * (1 - 1e-7) <= float(curves.roc(strength, fpr * (1 + 1e-8)))
                assert float(curves.roc(strength, fpr)) <= tpr * (1 + 1e-7)
            assert abs(float(curves.implied(tpr, fpr)) - strength) < 1e-6 or fpr in (0.0, 1.0)


def test_the_stored_gain_is_the_one_its_script_makes():
    assert f"{make_calibration.gain(60):.1f}" == f"{gain(60, 60):.1f}"


@pytest.mark.parametrize(("psi", "n_in", "n_out"), [(0.6, 300, 130), (0.0, 700, 700), (1.5, 400, 2500)])
def test_between_its_points_the_calibration_holds(psi, n_in, n_out):
    alphas, experiments = np.array([0.01, 0.05]), 20_000
    used = np.array([gain(n_in, n_out)])
    rng = np.random.default_rng(3)
    seen = make_calibration.refuted(psi, n_in, n_out, alphas, used, experiments, rng)[:, 0]
    assert all(s <= most(experiments, a, 1e-6) for s, a in zip(seen, alphas, strict=True))


def test_outside_the_table_bonferroni_holds():
    assert gain(100, 19) == 1.0
    assert gain(100, 5000) == 1.0
    assert gain(10**9, 10**9) == 1.0
