"""The attacker's view: every rate against ball arithmetic, on the private side, and tied to every other notion."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import psidp
from psidp import (
    advantage_from_psi,
    auc_from_psi,
    delta_from_psi,
    fnr_from_psi,
    psi_from_advantage,
    psi_from_auc,
    psi_from_rates,
    tpr_from_psi,
)
from psidp.theory import Rates, binormal_auc, binormal_roc, failed_roc, rates_at_threshold, region_tpr, tangent
from reference import twins
from reference.twins import real

COUNT = 3000
PSI, FPR = twins.spread(1, COUNT)
Z2 = norm.ppf(FPR) ** 2
GRID = np.concatenate([[0.0], np.geomspace(1e-12, 0.5, 400), 1 - np.geomspace(0.5, 1e-12, 400), [1.0]])


def test_tpr_is_never_below_the_truth_and_keeps_its_digits():
    for p, x, z2, value in zip(PSI, FPR, Z2, tpr_from_psi(PSI, FPR), strict=True):
        exact = twins.tpr(p, x)
        assert value == 1.0 or real(value) >= exact
        assert real(value) <= exact * (1 + 1e-13 * (1 + z2))


def test_fnr_is_never_above_the_truth_and_keeps_its_digits():
    for p, x, z2, value in zip(PSI, FPR, Z2, fnr_from_psi(PSI, FPR), strict=True):
        exact = twins.fnr(p, x)
        assert real(value) <= exact
        y2 = min(float((real(p) + twins.quantile(real(x))) ** 2), 1e6)  # the hazard rate, at psi = 1e3 a mass of 0
        assert real(value) >= exact * (1 - 1e-13 * (1 + z2 + y2)) - 1e-307


def test_rates_far_below_the_normal_floats_still_err_on_the_private_side():
    rng = np.random.default_rng(2)
    fpr = np.maximum(10 ** rng.uniform(-323, -305, 300), 5e-324)
    psi = 10 ** rng.uniform(-6, 1.5, 300)
    for p, x, high, low in zip(psi, fpr, tpr_from_psi(psi, fpr), fnr_from_psi(37 + psi, 0.3 + fpr), strict=True):
        assert real(high) >= twins.tpr(p, x)
        assert real(low) <= twins.fnr(37 + p, 0.3)


def test_tpr_and_fnr_add_to_one():
    np.testing.assert_allclose(tpr_from_psi(PSI, FPR) + fnr_from_psi(PSI, FPR), 1.0, atol=1e-13 * (1 + Z2.max() * 0.01))


def test_the_curve_grows_with_psi_and_with_fpr_up_to_its_rounding():
    room = 1 + 1e-13 * (1 + norm.ppf(np.clip(GRID, 1e-12, 1 - 1e-12)) ** 2)
    for low, high in ((0.0, 1e-8), (1e-8, 0.1), (0.1, 1.0), (1.0, 6.0), (6.0, 1e3)):
        assert (tpr_from_psi(low, GRID) <= tpr_from_psi(high, GRID) * room).all()
    curve = tpr_from_psi(1.0, GRID)
    assert (curve[:-1] <= curve[1:] * room[1:]).all()


def test_the_curve_is_symmetric_about_the_antidiagonal():
    x = np.geomspace(1e-10, 0.9, 100)
    for psi in (0.1, 1.0, 3.0):  # the trade-off is its own inverse
        np.testing.assert_allclose(fnr_from_psi(psi, fnr_from_psi(psi, x)), x, rtol=1e-9, atol=1e-15)  # of 1 - x


@pytest.mark.parametrize("psi", [0.0, 1e-300, 1.0, 1e3, 1e200, 1.7e308])
def test_nobody_accused_means_nobody_found_and_everybody_accused_means_all(psi):
    assert tpr_from_psi(psi, 0.0) == 0.0
    assert tpr_from_psi(psi, 1.0) == 1.0
    assert fnr_from_psi(psi, 0.0) == 1.0
    assert fnr_from_psi(psi, 1.0) == 0.0


def test_without_a_leak_the_curve_is_the_diagonal_and_with_an_endless_one_the_corner():
    np.testing.assert_array_equal(tpr_from_psi(0.0, GRID), GRID)
    np.testing.assert_array_max_ulp(fnr_from_psi(0.0, GRID), 1.0 - GRID, maxulp=1)
    assert all(Fraction(float(f)) <= 1 - Fraction(float(x)) for f, x in zip(fnr_from_psi(0.0, GRID), GRID, strict=True))
    np.testing.assert_allclose(tpr_from_psi(1e-12, GRID), GRID, rtol=1e-11, atol=1e-12)
    for psi in (1e2, 1e10, 1e160, 1.7e308):
        assert (tpr_from_psi(psi, GRID[1:]) == 1.0).all()
        assert (fnr_from_psi(psi, GRID[1:]) == 0.0).all() or psi == 1e2
    assert auc_from_psi(0.0) == 0.5
    assert auc_from_psi(1e200) == 1.0
    assert advantage_from_psi(0.0) == 0.0
    assert advantage_from_psi(1e200) == 1.0


def test_psi_from_rates_is_never_above_the_truth_and_close_to_it():
    rng = np.random.default_rng(3)
    low = FPR
    high = np.clip(np.maximum(low, np.where(rng.random(COUNT) < 0.5, tpr_from_psi(PSI, low), rng.random(COUNT))), 0, 1)
    inner = (high < 1.0) & (low > 0.0)
    high, low = high[inner], low[inner]
    assert inner.sum() > COUNT / 2
    for y, x, value in zip(high, low, psi_from_rates(high, low), strict=True):
        a, b = twins.quantile(real(y)), twins.quantile(real(x))
        assert real(value) <= a - b or value == 0.0
        assert real(value) >= a - b - 1e-14 * (1 + abs(a) + abs(b))


def test_psi_from_rates_turns_the_curve_round():
    psi, fpr = np.meshgrid([0.01, 0.5, 1.0, 3.0], [1e-100, 1e-5, 0.1, 0.6])
    back = psi_from_rates(tpr_from_psi(psi, fpr), fpr)
    # 1e-13 (1 + z^2) of the smaller rate over the hazard rate, z up to 21
    np.testing.assert_allclose(back, psi, atol=1e-11)
    assert psi_from_rates(1.0, 0.5) == np.inf
    assert psi_from_rates(0.5, 0.0) == np.inf
    assert psi_from_rates(0.3, 0.3) == 0.0


@pytest.mark.parametrize(
    ("tpr", "fpr", "sentence"),
    [
        (0.1, 0.2, "tpr must be at least fpr"),
        ([0.5, 0.1], 0.2, "tpr must be at least fpr"),
        (0.0, 0.0, "lie on every ROC curve"),
        (1.0, 1.0, "lie on every ROC curve"),
        ([0.9, 0.8], [0.1, 0.1, 0.1], r"shapes must broadcast together, got tpr \(2,\) and fpr \(3,\)"),
    ],
)
def test_rates_that_name_no_psi_are_refused(tpr, fpr, sentence):
    with pytest.raises(ValueError, match=sentence):
        psi_from_rates(tpr, fpr)


def test_auc_is_never_below_the_truth_and_its_inverse_never_above():
    for p, value in zip(PSI, auc_from_psi(PSI), strict=True):
        exact = twins.phi(real(p) / real(2).sqrt())
        assert value == 1.0 or real(value) >= exact
        assert real(value) <= exact + 1e-15
    rng = np.random.default_rng(4)
    areas = np.concatenate(
        [rng.uniform(0.5, 1, 400), 0.5 + 10 ** rng.uniform(-16, -1, 400), 1 - 10 ** rng.uniform(-16, -1, 200)]
    )
    areas = areas[(areas > 0.5) & (areas < 1.0)]
    for a, value in zip(areas, psi_from_auc(areas), strict=True):
        exact = real(2).sqrt() * twins.quantile(real(a))
        assert real(value) <= exact
        assert real(value) >= exact * (1 - 1e-14) - 1e-14 * exact * exact
    assert psi_from_auc(0.5) == 0.0
    assert psi_from_auc(1.0) == np.inf


@pytest.mark.parametrize("psi", [0.1, 1.0, 2.5])
def test_auc_is_the_area_under_the_curve_and_the_advantage_its_largest_height_above_the_diagonal(psi):
    assert auc_from_psi(psi) == pytest.approx(quad(lambda x: tpr_from_psi(psi, x), 0, 1, epsabs=1e-10)[0], abs=1e-9)
    x = np.linspace(0, 1, 200_001)
    height = (tpr_from_psi(psi, x) - x).max()
    assert height <= advantage_from_psi(psi) + 1e-15
    assert height == pytest.approx(advantage_from_psi(psi), abs=1e-9)  # the top is flat: (grid step)^2
    assert advantage_from_psi(psi) == delta_from_psi(psi, 0.0)


def test_advantage_and_its_inverse_err_on_the_private_side():
    for p, value in zip(PSI, advantage_from_psi(PSI), strict=True):
        exact = twins.delta(p, 0.0)
        assert value == 1.0 or real(value) >= exact
        assert real(value) <= exact * (1 + 3e-15)
    advantage = np.concatenate([FPR[FPR < 0.999], [1e-300]])
    for a, value in zip(advantage, psi_from_advantage(advantage), strict=True):
        assert real(value) <= 2 * twins.quantile((1 + real(a)) / 2) or a < 1e-100  # where 1 + a has lost a
        assert value == pytest.approx(a * np.sqrt(2 * np.pi), rel=1e-13) or a > 1e-8
    with pytest.raises(ValueError, match=r"advantage \(largest TPR - FPR of any attack\) must be in \[0, 1\]"):
        psi_from_advantage(1.5)


def test_the_threshold_of_figure_2_gives_the_rates_of_figure_2():
    rates = rates_at_threshold(-1.0, without=-2.0, with_=2.0, sigma=2.0)
    assert rates.tpr == pytest.approx(norm.cdf(1.5), rel=1e-14)
    assert rates.fpr == pytest.approx(norm.cdf(-0.5), rel=1e-14)
    assert rates.fnr == 1 - rates.tpr
    assert rates.tnr == 1 - rates.fpr
    assert tpr_from_psi(2.0, rates.fpr) == pytest.approx(rates.tpr, rel=1e-13)


def test_every_threshold_lies_on_the_curve_of_psi():
    for c in np.linspace(-5, 7, 25):
        rates = rates_at_threshold(c, without=0.0, with_=1.5, sigma=1.0)
        assert tpr_from_psi(1.5, rates.fpr) == pytest.approx(rates.tpr, rel=1e-12)
    assert rates_at_threshold(1e300, 0.0, 1.0, 1e-300) == Rates(tpr=0.0, fpr=0.0)
    assert rates_at_threshold(-1e300, 0.0, 1.0, 1e-300) == Rates(tpr=1.0, fpr=1.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, "1", None, True])
@pytest.mark.parametrize("name", ["threshold", "without", "with_", "sigma"])
def test_a_threshold_attack_without_numbers_is_refused_by_name(name, bad):
    values = {"threshold": 0.0, "without": 0.0, "with_": 1.0, "sigma": 1.0} | {name: bad}
    with pytest.raises((ValueError, TypeError), match=rf"^{name} \("):
        rates_at_threshold(**values)


@pytest.mark.parametrize(
    ("gap", "sigma_0", "sigma_1"), [(1.0, 1.0, 1.0), (1.0, 0.5, 2.0), (2.0, 3.0, 1.0), (-0.5, 1, 2)]
)
def test_binormal_rates_and_area_are_those_of_two_gaussians(gap, sigma_0, sigma_1):
    a, b = gap / sigma_1, sigma_0 / sigma_1
    for fpr in (1e-6, 0.01, 0.5, 0.99):
        cut = norm.isf(fpr, 0.0, sigma_0)
        mass = quad(lambda t: norm.pdf(t, gap, sigma_1), cut, gap + 40 * sigma_1, epsabs=1e-13)[0]
        assert binormal_roc(fpr, a, b) == pytest.approx(mass, rel=1e-8)
    area = quad(lambda t: norm.sf(t, gap, sigma_1) * norm.pdf(t, 0.0, sigma_0), -40 * sigma_0, 40 * sigma_0)[0]
    assert binormal_auc(a, b) == pytest.approx(area, rel=1e-8)
    np.testing.assert_array_equal(binormal_roc([0.0, 1.0], a, b), [0.0, 1.0])


def test_binormal_parameters_are_refused_by_their_own_names_and_extremes_are_answered():
    assert binormal_roc(0.1, 1.0, 1e308) == 0.0
    assert binormal_roc(0.1, 1e200, 1.0) == 1.0
    assert binormal_auc(1e200, 1.0) == 1.0
    assert binormal_auc(-1e200, 2.0) == 0.0
    for a, b, name in ((np.nan, 1.0, "a"), ("x", 1.0, "a"), (1.0, 0.0, "b"), (1.0, np.inf, "b")):
        with pytest.raises((ValueError, TypeError), match=rf"^{name} \("):
            binormal_auc(a, b)
        with pytest.raises((ValueError, TypeError), match=rf"^{name} \("):
            binormal_roc(0.5, a, b)


@pytest.mark.parametrize("psi", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 5.0])
def test_a_tangent_meets_the_axis_at_delta_touches_the_curve_and_its_mirror_lies_above_it(psi, epsilon):
    line, curve = tangent(psi, epsilon), tpr_from_psi(psi, GRID)
    exact = twins.delta(psi, epsilon)
    assert line.intercept == pytest.approx(float(exact), rel=3e-15)
    assert line.tpr == pytest.approx(line.intercept + line.slope * line.fpr, rel=1e-13)
    assert line.tpr == pytest.approx(tpr_from_psi(psi, line.fpr), rel=1e-12)
    assert (curve <= (line.intercept + line.slope * GRID) * (1 + 1e-12)).all()
    mirror = line.mirror
    assert mirror.slope == pytest.approx(np.exp(-epsilon), rel=1e-15)
    assert mirror.tpr == pytest.approx(mirror.intercept + mirror.slope * mirror.fpr, rel=1e-13)
    assert mirror.tpr == pytest.approx(tpr_from_psi(psi, mirror.fpr), rel=1e-12)
    assert (curve <= (mirror.intercept + mirror.slope * GRID) * (1 + 1e-12)).all()


@pytest.mark.parametrize(("psi", "epsilon"), [(0.0, 1.0), (1.0, 700.0), (1.0, np.inf)])
def test_a_tangent_that_no_float_can_draw_is_refused(psi, epsilon):
    with pytest.raises(ValueError, match=r"a tangent needs psi > 0 and epsilon < 700"):
        tangent(psi, epsilon)


@pytest.mark.parametrize("psi", [0.3, 1.0, 3.0])
def test_the_privacy_regions_of_all_epsilon_leave_exactly_the_curve(psi):
    epsilon = np.linspace(0.0, psi * (psi / 2 + 8), 4000)[:, None]
    x = np.geomspace(1e-9, 0.999, 200)
    envelope = region_tpr(x, epsilon, delta_from_psi(psi, epsilon)).min(axis=0)
    curve = tpr_from_psi(psi, x)
    assert (envelope >= curve * (1 - 1e-13 * (1 + norm.ppf(x) ** 2))).all()
    np.testing.assert_allclose(envelope, curve, rtol=1e-4)  # (step of epsilon)^2, half of it at most


def test_a_region_is_never_drawn_too_small():
    rng = np.random.default_rng(5)
    x, e, d = rng.random(1500), 10 ** rng.uniform(-6, 2, 1500), 10 ** rng.uniform(-12, 0, 1500)
    x = np.where(rng.random(1500) < 0.5, 10 ** rng.uniform(-30, 0, 1500), x)
    for a, b, c, value in zip(x, e, d, region_tpr(x, e, d), strict=True):
        steep, flat = real(c) + real(b).exp() * real(a), 1 - (-real(b)).exp() * (1 - real(c) - real(a))
        exact = min(steep, flat, real(1))
        assert real(value) >= exact
        assert real(value) <= exact * (1 + 1e-15) + 1e-15
    assert region_tpr(0.0, np.inf, 0.25) == 0.25
    assert region_tpr(0.5, np.inf, 0.0) == 1.0
    assert region_tpr(0.0, 0.0, 0.0) == 0.0


@pytest.mark.parametrize("psi", [0.0, 1e-3, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("kappa", [0.0, 1e-6, 0.1, 0.3, 0.5, 0.9])
def test_a_failed_mechanism_has_the_smallest_concave_curve_above_its_own_that_starts_at_kappa(psi, kappa):
    x = np.linspace(0.0, 1.0, 2001)
    failed, curve = failed_roc(psi, kappa, x), tpr_from_psi(psi, x)
    assert failed[0] == kappa
    assert failed[-1] == 1.0
    assert (failed >= curve * (1 - 1e-12)).all()
    assert (np.diff(failed, 2) <= 1e-9).all(), "not concave"
    if kappa:  # the line from (0, kappa) is the steepest one to a point of the curve
        fine = np.concatenate([np.geomspace(1e-12, 0.1, 5000), np.linspace(0.1, 1.0, 5000)])
        slopes = (tpr_from_psi(psi, fine) - kappa) / fine
        hull = np.where(x <= fine[slopes.argmax()], kappa + slopes.max() * x, curve)
        np.testing.assert_allclose(failed, np.maximum(hull, curve), rtol=1e-4)  # step of the fine grid, squared


def test_every_rate_that_is_public_is_tested_here():
    from psidp.maths import roc, tangent

    names = {*roc.__all__, *tangent.__all__}
    assert all(name in globals() or name == "Tangent" for name in names)
    assert names <= {*psidp.__all__, *psidp.theory.__all__}
