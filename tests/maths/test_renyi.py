"""Renyi divergence and its conversions: closed forms, optimal orders, quadrature, and never below the exact epsilon."""

from math import inf, log, nan, sqrt

import numpy as np
import pytest

from psidp import epsilon_from_psi, epsilon_from_rdp, psi_from_rho, psi_from_zcdp, rho_from_psi, zcdp_from_psi
from psidp.theory import alpha_optimal, epsilon_via_rdp, renyi_divergence
from reference import twins
from reference.twins import real

RNG = np.random.default_rng(0)
PSI = 10 ** RNG.uniform(-8, 3, 1000)
ALPHA = 1 + 10 ** RNG.uniform(-12, 12, 1000)
DELTA = np.where(RNG.random(1000) < 0.3, RNG.random(1000), 10 ** RNG.uniform(-300, 0, 1000))
CONVERSIONS = ["improved", "standard"]


def test_rho_is_never_below_the_truth_and_its_inverse_never_above():
    for psi, alpha in ((PSI, ALPHA), (10 ** RNG.uniform(-323, 150, 1000), ALPHA), (1e-162 * PSI, np.ones(1000))):
        psi = np.maximum(psi, 5e-324)
        for p, a, value, back in zip(psi, alpha, rho_from_psi(psi, alpha), psi_from_rho(psi, alpha), strict=True):
            exact = real(a) * real(p) ** 2 / 2
            assert real(value) >= exact
            assert real(value) <= exact * (1 + 1e-15) + 2e-323
            root = (2 * real(p) / real(a)).sqrt()
            assert root * (1 - 2e-15) <= real(back) <= root


def test_psi_and_rho_turn_each_other_round_on_the_private_side():
    assert (psi_from_rho(rho_from_psi(PSI, ALPHA), ALPHA) >= PSI * (1 - 2e-15)).all()
    assert (rho_from_psi(psi_from_rho(PSI, ALPHA), ALPHA) <= PSI).all()
    assert (zcdp_from_psi(psi_from_zcdp(PSI)) <= PSI).all()
    np.testing.assert_allclose(zcdp_from_psi(PSI), PSI**2 / 2, rtol=1e-15)


@pytest.mark.parametrize(
    ("psi", "alpha", "rho"), [(0.0, 2.0, 0.0), (0.0, inf, 0.0), (1.0, inf, inf), (1e200, 1.0, inf)]
)
def test_rho_at_the_ends(psi, alpha, rho):
    assert rho_from_psi(psi, alpha) == rho


@pytest.mark.parametrize(
    ("rho", "alpha", "psi"), [(0.0, 2.0, 0.0), (inf, 2.0, inf), (1.0, inf, 0.0), (inf, inf, inf), (0.0, inf, 0.0)]
)
def test_psi_from_rho_at_the_ends(rho, alpha, psi):
    assert psi_from_rho(rho, alpha) == psi


def test_zcdp_is_refused_under_its_own_name():
    with pytest.raises(ValueError, match=r"^zcdp \(zero-concentrated DP parameter\) must be in \[0, inf\)"):
        psi_from_zcdp(-1.0)


@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_a_conversion_is_never_rounded_down_and_never_below_nothing(conversion):
    rho = 10 ** RNG.uniform(-10, 4, 1000)
    cancelled = np.minimum(1 / ALPHA, 1.0)  # log delta + log alpha is about 0 here
    for delta in (DELTA, cancelled):
        values = epsilon_from_rdp(rho, ALPHA, delta, conversion)
        for r, a, d, value in zip(rho, ALPHA, delta, values, strict=True):
            exact = twins.rdp_epsilon(r, a, d, conversion)
            assert value >= 0.0
            assert real(value) >= exact
            size = r + (abs(log(d)) + log(a)) / (a - 1) + abs(log((a - 1) / a))
            assert value == 0.0 or real(value) <= exact + 2e-15 * size


@pytest.mark.parametrize("conversion", CONVERSIONS)
@pytest.mark.parametrize(
    ("rho", "alpha", "delta", "epsilon"),
    [(1.0, 1.0, 0.1, inf), (1.0, inf, 0.1, 1.0), (1.0, inf, 0.0, 1.0), (1.0, 2.0, 0.0, inf), (inf, 2.0, 0.1, inf)],
)
def test_a_conversion_at_the_ends(conversion, rho, alpha, delta, epsilon):
    assert epsilon_from_rdp(rho, alpha, delta, conversion) == epsilon


def test_the_improved_conversion_never_asks_for_more_than_the_standard_one():
    rho = rho_from_psi(1.0, ALPHA)
    assert (epsilon_from_rdp(rho, ALPHA, DELTA) <= epsilon_from_rdp(rho, ALPHA, DELTA, "standard") * (1 + 1e-14)).all()


def test_the_standard_conversion_at_its_best_order_is_the_closed_form():
    psi, delta = np.meshgrid(np.geomspace(1e-3, 50, 40), [1e-300, 1e-12, 1e-5, 0.1, 0.9])
    np.testing.assert_allclose(alpha_optimal(psi, delta, "standard"), 1 + np.sqrt(-2 * np.log(delta)) / psi, rtol=1e-15)
    closed = psi**2 / 2 + psi * np.sqrt(-2 * np.log(delta))
    np.testing.assert_allclose(epsilon_via_rdp(psi, delta, "standard"), closed, rtol=1e-13)
    assert epsilon_via_rdp(1.0, 1e-5, "standard") == pytest.approx(0.5 + sqrt(2 * log(1e5)), rel=1e-14)


@pytest.mark.parametrize("conversion", CONVERSIONS)
@pytest.mark.parametrize("psi", [1e-6, 0.1, 1.0, 6.0, 100.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.3, 1 - 1e-9])
def test_no_other_order_gives_a_smaller_epsilon(conversion, psi, delta):
    orders = 1 + (alpha_optimal(psi, delta, conversion) - 1) * np.geomspace(1e-3, 1e3, 4001)
    others = epsilon_from_rdp(rho_from_psi(psi, orders), orders, delta, conversion)
    best = epsilon_via_rdp(psi, delta, conversion)
    assert best <= others.min() + 1e-13 * (1 + psi**2)


def test_the_improved_order_solves_its_equation():
    psi, delta = np.meshgrid(
        10.0 ** np.arange(-10, 4), np.append(10.0 ** -np.arange(1, 300, 20), [0.5, 1 - 1e-9, 1 - 2**-53])
    )
    alpha = alpha_optimal(psi, delta)
    t = alpha - 1
    inner = t > 1e-6  # below, alpha itself has too few digits of alpha - 1
    left = t**2 * psi**2 / 2 + np.log1p(t)
    np.testing.assert_allclose(left[inner], -np.log(delta[inner]), rtol=1e-9)
    assert (alpha >= 1.0).all()


@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_rdp_never_promises_an_epsilon_below_the_exact_one(conversion):
    psi, delta = np.meshgrid(
        np.geomspace(1e-6, 100, 60), np.append(10.0 ** -np.arange(1, 300, 13), [0.3, 0.5, 0.9, 0.999])
    )
    via = epsilon_via_rdp(psi, delta, conversion)
    assert (via >= epsilon_from_psi(psi, delta) * (1 - 1e-14)).all()  # the exact one is itself rounded up
    assert np.isfinite(via).all()


@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_rdp_at_the_ends(conversion):
    assert epsilon_via_rdp(0.0, 1e-5, conversion) == 0.0
    assert epsilon_via_rdp(1.0, 1.0, conversion) == 0.0
    assert epsilon_via_rdp(1.0, 0.0, conversion) == inf
    assert epsilon_via_rdp(0.0, 0.0, conversion) == 0.0
    assert alpha_optimal(1.0, 0.0, conversion) == inf
    assert alpha_optimal(1.0, 1.0, conversion) == 1.0
    assert alpha_optimal(0.0, 1.0, conversion) == 1.0
    assert type(epsilon_via_rdp(1.0, 0.1, conversion)) is float
    with pytest.raises(ValueError, match=r"shapes must broadcast together, got psi \(2,\) and delta \(3,\)"):
        epsilon_via_rdp([1.0, 2.0], [0.1, 0.2, 0.3], conversion)


@pytest.mark.parametrize(
    "call",
    [
        lambda c: epsilon_from_rdp(1, 2, 0.1, c),
        lambda c: epsilon_via_rdp(1, 0.1, c),
        lambda c: alpha_optimal(1, 0.1, c),
    ],
)
def test_an_unknown_conversion_is_refused(call):
    with pytest.raises(ValueError, match='conversion must be "improved" or "standard", got conversion=\'best\''):
        call("best")


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0, 5.0])
@pytest.mark.parametrize(
    ("distance", "sigma_i", "sigma_j"), [(1.0, 1.0, 1.0), (0.5, 1.0, 2.0), (2.0, 1.1, 1.0), (0.0, 1.0, 1.5)]
)
def test_renyi_divergence_is_its_integral(alpha, distance, sigma_i, sigma_j):
    value = renyi_divergence(alpha, distance, sigma_i, sigma_j)
    assert value == pytest.approx(twins.renyi_by_quadrature(alpha, distance, sigma_i, sigma_j), rel=1e-12)


def test_renyi_divergence_is_never_below_the_truth_and_one_float_above_it_at_most():
    rng = np.random.default_rng(5)
    for _ in range(300):
        near = rng.random() < 0.5
        alpha = 1 + 10 ** rng.uniform(-15, 3)
        sigma_i = 10 ** rng.uniform(-3, 3)
        sigma_j = sigma_i * (
            (1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-15, -1)) if near else 10 ** rng.uniform(-1, 4)
        )
        distance, d = sigma_j * 10 ** rng.uniform(-9, 1), int(rng.integers(1, 50))
        value = renyi_divergence(alpha, distance, sigma_i, sigma_j, d)
        exact = twins.renyi(alpha, distance, sigma_i, sigma_j, d)
        if value < inf:
            assert real(np.nextafter(value, 0.0)) <= exact * (1 + real(2) ** -90)
            assert real(value) >= exact


def test_renyi_divergence_of_equal_variances_is_rho():
    for alpha in (1.0, 1.5, 8.0):
        assert renyi_divergence(alpha, 3.0, 2.0, 2.0) == pytest.approx(rho_from_psi(1.5, alpha), rel=1e-14)


def test_renyi_divergence_adds_up_over_dimensions():
    for alpha in (1.0, 2.0, inf):
        one, none = renyi_divergence(alpha, 0.7, 1.0, 1.3), renyi_divergence(alpha, 0.0, 1.0, 1.3)
        assert renyi_divergence(alpha, 0.7, 1.0, 1.3, dimension=5) == pytest.approx(one + 4 * none, rel=1e-14)
        assert renyi_divergence(alpha, 0.7, 1.0, 1.3, dimension=np.int64(1)) == one


def test_renyi_divergence_is_continuous_at_the_orders_one_and_infinity():
    assert renyi_divergence(1 + 1e-7, 1.0, 1.0, 1.5) == pytest.approx(renyi_divergence(1.0, 1.0, 1.0, 1.5), rel=1e-6)
    assert renyi_divergence(1e9, 1.0, 1.0, 1.5) == pytest.approx(renyi_divergence(inf, 1.0, 1.0, 1.5), rel=1e-7)
    x = np.linspace(-60, 60, 240_001)  # the largest log ratio of the densities themselves
    ratio = -(x**2) / 2 + (x - 1.0) ** 2 / (2 * 1.5**2) + log(1.5)
    assert renyi_divergence(inf, 1.0, 1.0, 1.5) == pytest.approx(ratio.max(), rel=1e-6)


def test_renyi_divergence_is_infinite_where_the_first_is_too_wide():
    assert renyi_divergence(3.0, 1.0, 2.0, 1.0) == inf
    assert renyi_divergence(1.125, 0.0, 3.0, 1.0) == inf  # alpha vj + (1 - alpha) vi = 0
    assert 50.0 < renyi_divergence(4 / 3, 0.0, 2.0, 1.0) < inf  # the float is just below 4/3
    assert renyi_divergence(1.3, 0.0, 2.0, 1.0) < inf
    assert renyi_divergence(inf, 0.0, 2.0, 1.0) == inf
    assert renyi_divergence(inf, 1.0, 1.0, 1.0) == inf
    assert renyi_divergence(inf, 0.0, 1.0, 1.0) == 0.0


@pytest.mark.parametrize("alpha", [1.0, 1.0 + 1e-9, 2.0, 1e6, inf])
def test_renyi_divergence_is_never_negative_and_never_fails(alpha):
    for r in (1.0, 1 + 1e-15, 1 + 1e-10, 1 - 1e-10, 1e-200, 1e200, 1e-308):
        for scale in (1e-150, 1.0, 1e150):
            assert renyi_divergence(alpha, 0.0, min(r * scale, 1e300) or 1e-300, scale) >= 0.0
            assert renyi_divergence(alpha, scale, min(r * scale, 1e300) or 1e-300, scale) >= 0.0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((0.5, 1.0, 1.0, 1.0), r"^alpha \("),
        ((2.0, -1.0, 1.0, 1.0), r"^sensitivity \("),
        ((2.0, 1.0, 0.0, 1.0), r"^sigma \("),
        ((2.0, 1.0, 1.0, nan), r"^sigma \("),
        ((2.0, 1.0, 1.0, 1.0, 0), "dimension must be a whole number of at least 1, got dimension=0"),
        ((2.0, 1.0, 1.0, 1.0, 1.5), "dimension must be a whole number"),
        ((2.0, 1.0, 1.0, 1.0, True), "dimension must be a whole number"),
    ],
)
def test_renyi_divergence_refuses_by_name(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        renyi_divergence(*arguments)
