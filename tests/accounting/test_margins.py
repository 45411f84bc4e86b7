"""Each margin of the proof, set against a slower truth; and corners that once were wide, slow or wrong."""

import numpy as np
import pytest
from flint import arb, ctx

from psidp.accounting import DPSGD, account
from psidp.accounting.composition import Composition
from psidp.accounting.contours.contour import Contour
from psidp.accounting.contours.error_bounds import Survey
from psidp.accounting.contours.mgf_table import _modulus
from psidp.accounting.contours.saddle import saddle_at_delta, saddle_at_epsilon
from psidp.accounting.contours.window import Window
from psidp.accounting.crude import log_any, unsampled
from psidp.accounting.easier_direction import stays_below
from psidp.accounting.methods import delta_bounds, epsilon_bounds
from psidp.accounting.pld.aside import _any
from psidp.accounting.pld.convolution import _suffix
from psidp.accounting.pld.loss_grid import Lattice
from psidp.accounting.pld.step_law import POINTS, SAFE, STEEP, TALL, WEIGHTS, Law, log_tail


@pytest.mark.parametrize(
    ("runs", "delta"),
    [
        ([(0.0277, 0.009, 17462)], 1e-69),
        ([(0.0374, 8.4e-5, 16_557_178)], 6e-72),
        ([(0.029, 1 - 2e-8, 10), (0.74, 2.8e-6, 4_424_637), (248.0, 0.048, 58_055_924)], 1.4e-14),
        ([(0.078, 8.7e-5, 2), (0.69, 1.7e-4, 29_643_380), (55.0, 0.27, 80912)], 8e-52),
        ([(705.0, 2.2e-8, 2_646_983)], 4e-269),
        ([(39.0, 1.1e-8, 528_358)], 3e-12),
        ([(2.41, 2.7e-5, 3)], 3.3e-6),
        ([(84.0, 2.4e-5, 2)], 2.2e-249),
        ([(4.34, 9.2e-4, 13)], 6.5e-229),
        ([(0.0382, 1.3e-8, 24)], 2.7e-7),
    ],
)
def test_corners_are_narrow(runs, delta):
    """All but the last, which a search that starts too low misses, were wider; most of them by factors."""
    interval = account([DPSGD(*run) for run in runs]).epsilon(delta)
    assert interval.width <= 1e-3 * max(interval.lower, 1e-6)


def test_the_saddle_of_a_run_with_next_to_no_noise_is_that_of_two_points():
    """log A(1 + c) = log((1-q)^(1+c) + q^(1+c) e^(c(1+c)/(2 sigma^2))), which the clipped sums missed."""
    steps = Composition.merge([(0.03, 0.01, 10_000, 1)])
    saddle = saddle_at_delta(steps, float(np.log(1e-6)))
    c = saddle.beyond_c
    exact = 1e4 * np.logaddexp((1 + c) * np.log(0.99), (1 + c) * (np.log(0.01) + 0.5 * c / 0.03**2))
    np.testing.assert_allclose(saddle.beyond_k, exact, rtol=1e-2)


@np.errstate(all="ignore")
def test_a_ratio_near_zero_keeps_its_digits_and_one_below_its_error_its_bound():
    """2 re + re^2 + im^2 is near -1 there: its rounding was as large as the square of the modulus, and not charged."""
    angles = np.array([0.1, 1.0, 2.0])
    for size in (1e-3, 1e-6, 1e-9, 1e-13):
        whole = size * np.exp(1j * angles)
        ratio = whole - 1.0
        modulus, relative = _modulus(ratio, np.full(3, 1e-15))
        truth = np.log(np.hypot(1.0 + ratio.real, ratio.imag))
        np.testing.assert_allclose(modulus, truth, atol=1e-15 / size)
        np.testing.assert_allclose(relative, 1e-15 / np.exp(truth), rtol=1e-9)
    modulus, relative = _modulus(np.array([-1.0 + 1e-20j, -1.0 + 0.0j]), np.array([1e-12, 1e-9]))
    np.testing.assert_allclose(np.exp(modulus), [1e-12, 1e-9])
    np.testing.assert_allclose(relative, 2.0)


def test_factors_that_vanish_leave_a_bound_and_no_nan():
    steps = Composition.merge([(0.16, 4e-8, 5, 1), (142.0, 0.0018, 16_644_756, 1)])
    contour = Contour(steps, saddle_at_epsilon(steps, 501.0))
    low, high = contour.log_delta(np.array([501.0]))
    assert high[0] - low[0] <= 1e-6
    assert contour.error.max() > 1.0  # some factor is below its error


@pytest.mark.parametrize(
    ("sigma", "q", "c"), [(1.0, 0.01, 3.0), (40.0, 1e-8, 2e7), (0.1, 0.3, 0.5), (5.0, 1e-5, 300.0)]
)
@pytest.mark.parametrize("windowed", [False, True])
@np.errstate(all="ignore")
def test_the_noise_beyond_the_grid_falls_as_fast_as_is_said(sigma, q, c, windowed):
    """The rate is concave, then rising, so that two places bound it; the sum beyond is compared with the bound."""
    steps = Composition.merge([(sigma, q, 100, 1)])
    saddle = saddle_at_delta(steps, -20.0)
    window = Window.around(steps, c, 0.01, -60.0) if windowed else None
    survey = Survey(steps, saddle, window, 1e-9)
    s, u = survey.s, np.array([0.0, survey.c, 30.0 * survey.c])
    with np.errstate(all="ignore"):
        bound = survey._turned(s, u)
        last, h0 = float(survey.g[0, -1]), float(survey.h0[0, 0])
        g = last + h0 * np.arange(1, 20_000)
        t = g / sigma - 0.5 / sigma**2
        keep = 0.0 if window is None else window.log_keep(g[None, :])[0]
        for i, theta in enumerate((survey.y / survey.sigma)[0]):
            turned = np.log(q) + t + 1j * theta
            turned = np.where(
                turned.real < 0, np.log(1 - q + np.exp(turned)), turned + np.log1p((1 - q) * np.exp(-turned))
            )
            for j, level in enumerate(u):
                x = (
                    np.log(h0 / np.sqrt(2 * np.pi))
                    - 0.5 * g * g
                    + keep
                    + float(s[0, 0]) * turned.real
                    + level * turned.imag
                )
                assert np.logaddexp.reduce(x) <= bound[0, i, j]


def test_a_lattice_wider_than_floats_reach_keeps_its_mass():
    """The share e^-858 of a cell was 0, and with it all that moves up: delta was said to be below e^-89."""
    law = Law(0.3, 0.5, 1e6, 1, -14.0, 17.0)
    assert law.upwards(858.0).mass.sum() >= 1.0 - 1e-12
    steps = Composition.merge([(0.3, 0.5, 10**6, 1)])
    with np.errstate(all="ignore"):
        high = Lattice(steps, 6e5, -100.0, 1 << 14).log_delta(np.array([1e5]))[1]
    assert high[0] >= -1e-5


def test_any_of_many_is_exact():
    """It was bounded by the sum, which is off by half its square: a share of delta where steps are few."""
    old, ctx.prec = ctx.prec, 1000
    try:
        for counts, p in (((3.0,), (1e-4,)), ((1e6, 5.0), (1e-7, 0.3)), ((2.0,), (1e-200,)), ((9.0,), (1e-9,))):
            rest = arb(1)
            for n, x in zip(counts, p, strict=True):
                rest *= (1 - arb(float(np.exp(np.log(x))))) ** int(n)
            found = arb(_any(np.array(counts), np.log(np.array(p)))).exp()
            assert abs(found / (1 - rest) - 1) <= 1e-12
    finally:
        ctx.prec = old


@pytest.mark.parametrize("sigma", [1e-2, 1e-4, 1e-5])
def test_mass_beyond_the_grid_is_known_as_well_as_is_said(sigma):
    """The margin was 1e-11 at every sigma; below 1e-4 a tail at 1/sigma is not known so well."""
    old, ctx.prec = ctx.prec, 300
    try:
        law = Law(sigma, 0.01, 5.0, 1, -9.0, 1.0 / sigma + 8.3)
        x = arb(law.high) - 1 / arb(sigma)
        tails = [(y / arb(2).sqrt()).erfc() / 2 for y in (arb(law.high), x)]
        mixed = (1 - arb(0.01)) * tails[0] + arb(0.01) * tails[1]
        for found, exact in zip(law.beyond, (mixed, tails[0]), strict=True):
            assert abs(arb(found) - exact.log()) <= law.beyond_error
    finally:
        ctx.prec = old


def test_the_suffix_sums_are_the_plain_ones():
    rng = np.random.default_rng(1)
    mass = rng.random(1000)
    for decay in (1e-4, 0.3, 40.0):
        plain = np.zeros(1001)
        for i in range(999, -1, -1):
            plain[i] = mass[i] + np.exp(-decay) * plain[i + 1]
        np.testing.assert_allclose(_suffix(mass, decay), plain[:-1], rtol=1e-12)


def test_fft_rounding_is_far_below_what_is_charged():
    """8 log2 N roundings of the sum of moduli are charged per transform; it is a tenth, against long doubles."""
    rng = np.random.default_rng(2)
    for bits in (10, 12):
        n = 1 << bits
        mass = rng.random(n) ** 8
        k, table = np.arange(n), np.exp(-2j * np.pi * np.arange(n).astype(np.longdouble) / n)
        rows = rng.integers(0, n // 2 + 1, 64)
        exact = np.array([(mass.astype(np.longdouble) * table[(k * row) % n]).sum() for row in rows])
        assert np.abs(np.fft.rfft(mass)[rows] - exact).max() <= 0.1 * 2.0**-53 * 8.0 * bits * mass.sum()


@pytest.mark.parametrize("sign", [1, -1])
def test_one_test_bounds_delta_from_below(sign):
    for sigma, q, count in ((0.05, 1e-3, 10**6), (0.3, 0.01, 50), (0.1, 1e-4, 300)):
        steps = Composition.merge([(sigma, q, count, sign)])
        epsilon = np.array([0.0, 0.5, 3.0])
        assert (log_any(steps, epsilon) <= delta_bounds(steps, epsilon)[1]).all()


def test_advantage_and_auc_of_runs_that_show_the_record():
    """The AUC was said to be in [0.5, 1]."""
    curve = account(DPSGD(0.05, 1e-3, 10**6))
    assert curve.advantage.lower >= 1.0 - 1e-10
    assert curve.auc.lower >= 1.0 - 1e-10
    weak = account(DPSGD(0.05, 1e-3, 10))
    assert weak.advantage.lower <= 1.0 - (1.0 - 1e-3) ** 10 * (1.0 - 1e-9)


def test_the_largest_loss_bounds_epsilon_where_the_record_is_added():
    """Each group by its largest loss or as a plain Gaussian, whichever is less."""
    steps = Composition.merge([(0.05, 1e-6, 1000, -1), (2.0, 0.9, 3, -1)])
    rest = Composition.merge([(2.0, 1.0, 3, 1)])
    target = float(np.log(1e-6))
    assert unsampled(steps, target) <= unsampled(rest, target) + 1.1e-3
    low, high, _ = epsilon_bounds(steps, target)
    assert low <= unsampled(steps, target)
    assert stays_below(steps, high * 1.5, target)
    assert not stays_below(steps, low * 0.98, target)


def test_tails_of_either_sign_are_known():
    old, ctx.prec = ctx.prec, 300
    try:
        for x in (-30.0, -3.0, 0.0, 3.0, 20.0, 40.0, 1e4):
            exact = ((arb(x) / arb(2).sqrt()).erfc() / 2).log()
            assert abs(arb(float(log_tail(np.array(x)))) - exact) <= 1e-14 * (1 + x * x)
    finally:
        ctx.prec = old


@pytest.mark.parametrize(("sigma", "cut"), [(0.0265, 38.4), (0.0265, 38.3), (0.0266, 38.45), (0.026, 38.35)])
def test_what_is_set_aside_is_known_where_tails_are_no_floats(sigma, cut):
    """A tail of 1e-323 has no digits left, and e^705 of them matter: the lower end was above the truth."""
    old, ctx.prec = ctx.prec, 3000
    try:
        window = Window(Composition.merge([(sigma, 1e-12, 1, 1)]), np.array([[cut]]), np.array([[0.01]]))
        spread = (1 + arb(0.01) ** 2).sqrt() * arb(2).sqrt()
        plain, shifted = ((x / spread).erfc() / 2 for x in (arb(cut), arb(cut) - 1 / arb(sigma)))
        exact = (1 - arb(1e-12)) * plain + arb(1e-12) * shifted - arb(705).exp() * plain
        low, high = (float(x[0]) for x in window.aside(np.array([705.0])))
        assert 0.9 * float(exact) < low
        assert arb(low) <= exact <= arb(high)
    finally:
        ctx.prec = old


def test_what_is_set_aside_far_out_is_known_as_well_as_is_said():
    """1e-13 was granted at every distance; beyond 20 a tail is not known so well."""
    old, ctx.prec = ctx.prec, 2000
    try:
        steps = Composition.merge([(1.0, 0.01, 1000, 1)])
        for cut in (8.0, 25.1, 33.3, 36.7):
            window = Window(steps, np.array([[cut]]), np.array([[0.3]]))
            spread = (1 + arb(0.3) ** 2).sqrt()
            plain, shifted = (((arb(cut) - d) / spread / arb(2).sqrt()).erfc() / 2 for d in (0, 1))
            mixed = (1 - arb(0.01)) * plain + arb(0.01) * shifted
            truth = (1 - (1 - mixed) ** 1000) - arb(1.0).exp() * (1 - (1 - plain) ** 1000)
            low, high = window.aside(np.array([1.0]))
            assert arb(float(low[0])) <= truth <= arb(float(high[0]))
    finally:
        ctx.prec = old


def test_the_moment_of_a_plain_gaussian_is_not_cut_off():
    """At q = 1 losses have no floor: what lies 40 below the grid was left out."""
    law = Law(0.01, 1.0, 1.0, 1, -5.0, 5.0)
    assert law.log_moment_below(3.0) >= 0.5 * 3.0 * 4.0 / 0.01**2


def test_bounds_of_the_survey_are_over_the_a_of_the_table():
    steps = Composition.merge([(1.0, 0.01, 100, -1)])
    with np.errstate(all="ignore"):
        contour = Contour(steps, saddle_at_epsilon(steps, 0.3))
        before = contour.error.copy()
        object.__setattr__(contour.bounds, "log_a", contour.bounds.log_a + 10.0)
        contour._fill()
    assert (contour.error >= before).all()
    assert contour.error[-1] > before[-1]


def test_a_guess_that_is_no_probability_does_not_stop_the_lattice():
    """Far beyond what a direction can lose the saddle's guess of delta is above 1, or no number at all."""
    curve = account(DPSGD(0.03592675071148714, 0.9999999853666585, 496_056))
    for epsilon, truth in ((1e6, 1.0), (1.9e8, 1.0), (3e8, 0.0)):
        interval = curve.delta(epsilon)
        assert interval.lower <= truth <= interval.upper + 1e-4
        assert interval.width < 1e-3


def test_five_points_of_gauss_give_the_mean_of_a_cell_to_what_is_charged():
    """The place of the mean of e^(tau x) - 1 under the density e^(-ax), against its closed form in balls."""
    ctx.prec = 200
    points, weights = ([arb(x) for x in column.tolist()] for column in (POINTS, WEIGHTS))
    worst = arb(0)
    for a in np.linspace(-STEEP, STEEP, 13).tolist():
        for tau in (1e-6, 1e-3, 0.05, 0.1, TALL):
            rate, gain = arb(a) + arb("1e-30"), arb(tau)
            mass, lifted = ((1 - (-x).exp()) / x for x in (rate, rate - gain))
            exact = (lifted / mass - 1) / gain.expm1()
            density = [w * (-rate * x).exp() for w, x in zip(weights, points, strict=True)]
            found = sum(d * (gain * x).expm1() for d, x in zip(density, points, strict=True)) / sum(density)
            worst = max(worst, abs(found / gain.expm1() - exact).upper())
    assert worst < 0.5 * SAFE


def test_a_cell_that_is_too_wide_for_gauss_is_not_given_to_it():
    """Just beyond the limits five points err by more than a tenth of what is charged, so that the limits matter."""
    ctx.prec = 200
    rate, gain = -arb(0.9), arb(0.4)
    mass, lifted = ((1 - (-x).exp()) / x for x in (rate, rate - gain))
    points, weights = ([arb(x) for x in column.tolist()] for column in (POINTS, WEIGHTS))
    density = [w * (-rate * x).exp() for w, x in zip(weights, points, strict=True)]
    found = sum(d * (gain * x).expm1() for d, x in zip(density, points, strict=True)) / sum(density)
    assert abs((found - lifted / mass + 1) / gain.expm1()) > SAFE
