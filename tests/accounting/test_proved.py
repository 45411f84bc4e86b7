"""Proved means proved: ends that once were false, and proofs that contradict each other."""

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from flint import arb, ctx

from psidp import Guarantee
from psidp.accounting import DPSGD, account, largest_sampling_rate
from psidp.accounting.composition import Composition, cut, loss
from psidp.accounting.contours.contour import Contour
from psidp.accounting.contours.saddle import saddle_at_epsilon
from psidp.accounting.exact_sums import Squares, failure, float_above, float_below
from psidp.accounting.interval import agreed
from psidp.accounting.methods import epsilon_bounds
from psidp.accounting.pld.loss_grid import Lattice
from psidp.accounting.pld.step_law import Law, log_mass
from psidp.errors import ContradictionError
from reference import corners

EXTENDED = np.finfo(np.longdouble).nmant == 63


def test_one_step_keeps_its_delta_where_e_to_the_epsilon_over_q_is_no_float():
    interval = account(DPSGD(0.02, 1e-5, 1)).delta(705.0)
    assert 0.99e-5 < interval.lower <= interval.upper <= 1.01e-5
    for sigma, q, epsilon in ((0.02, 1e-5, 705.0), (0.02, 1e-8, 800.0), (0.05, 1e-300, 40.0), (0.03, 0.3, 600.0)):
        interval = account(DPSGD(sigma, q, 1)).delta(epsilon)
        truth = corners.one_step(sigma, q, epsilon, 1)
        assert arb(interval.lower) <= truth <= arb(interval.upper)
        assert interval.width <= 1e-9 * interval.upper + 5e-324  # which is what is said of 7e-456


@pytest.mark.parametrize("q", [0.3, 1e-5, 1e-200, 1e-310])
def test_the_loss_and_its_inverse_agree_where_the_likelihood_ratio_is_no_float(q):
    x = np.array([1e-3, 1.0, 30.0, 400.0, 690.0, 720.0, 1500.0])
    with np.errstate(all="ignore"):
        g = cut(0.03, q, x)
        again, v = loss(np.array(0.03), np.array(q), g)
    np.testing.assert_allclose(again, x, rtol=1e-11, atol=1e-13)
    assert ((v >= 0.0) & (v <= 1.0 + 1e-12)).all()


@pytest.mark.parametrize(("sigma", "q", "steps", "epsilon", "truth"), corners.LONG)
@pytest.mark.parametrize("extended", [False, EXTENDED])
def test_contours_of_long_runs_enclose_the_truth_in_every_precision(sigma, q, steps, epsilon, truth, extended):
    """1 + c, pi and the Gaussian constants were doubles where only 2^-64 was charged."""
    run = Composition.merge([(sigma, q, steps, 1)])
    with np.errstate(all="ignore"):
        contour = Contour(run, saddle_at_epsilon(run, epsilon), 1e-16 if extended else 1e-12, extended=extended)
        low, high = contour.log_delta(np.array([epsilon]))
    exact = corners.number(truth)
    assert corners.log_at_most(low[0], exact)
    assert corners.log_at_least(high[0], exact)
    assert high[0] - low[0] <= (1e-9 if extended else 1e-5)


def test_plain_gaussians_add_up_without_loss():
    psi = account([DPSGD(10.0, 1.0, 1)] * 10**5).guarantee(0.0).psi
    assert Fraction(psi) ** 2 >= 10**5 / Fraction(10.0) ** 2 > Fraction(np.nextafter(psi, 0.0)) ** 2
    rng = np.random.default_rng(3)
    psis = [float(x) for x in 10 ** rng.uniform(-160, 3, 500)]
    exact = sum(Fraction(p) ** 2 for p in psis)
    low, high = Squares.of((Fraction(p) ** 2, 1) for p in psis).psi
    assert Fraction(low) ** 2 <= exact <= Fraction(high) ** 2
    assert high <= np.nextafter(low, 1e9)
    assert isqrt(10**10) == 10**5


def test_a_square_that_underflows_is_still_a_loss():
    assert account([Guarantee(1e-170)] * 4).guarantee(0.0).psi >= 2e-170
    assert account(Guarantee(1e-170)).delta(0.0).upper >= Guarantee(1e-170).delta(0.0) * (1 - 1e-12) > 0.0
    run = DPSGD(1.0, 0.01, 1000)
    beside = account([run, Guarantee(1e-170)])
    assert beside.epsilon(1e-5).upper >= account(run).epsilon(1e-5).lower
    assert beside.epsilon(1e-5).width <= 1e-9


def test_the_failure_probability_is_rounded_to_both_sides():
    for kappas in ([1 / 3] * 3, [1e-6], [1e-300] * 3, [1e-5, 1e-17, 0.3], []):
        exact = Fraction(1)
        for kappa in kappas:
            exact *= 1 - Fraction(kappa)
        low, high = failure(kappas)
        assert Fraction(low) <= 1 - exact <= Fraction(high)
        assert high <= np.nextafter(low, 1.0)
    assert failure([1e-6]) == (1e-6, 1e-6)
    curve = account([Guarantee(0.0, kappa=1 / 3)] * 3)
    interval = curve.delta(0.0)
    assert Fraction(interval.lower) <= 1 - (1 - Fraction(1 / 3)) ** 3 <= Fraction(interval.upper)
    lone = account(Guarantee(0.0, kappa=1e-6))
    assert (lone.delta(1.0).lower, lone.epsilon(1e-6).lower) == (pytest.approx(1e-6, rel=1e-14), np.inf)
    assert lone.delta(1.0).lower <= 1e-6 <= lone.delta(1.0).upper


def test_a_failure_probability_never_raises_a_lower_end():
    """kappa was rounded up there too."""
    kappas = [1e-3, 2e-3, 3e-3]
    curve = account([Guarantee(1.0, kappa=kappa) for kappa in kappas])
    exact = Fraction(1)
    for kappa in kappas:
        exact *= 1 - Fraction(kappa)
    old, ctx.prec = ctx.prec, 200
    try:
        truth = 1 - corners.fraction(exact) * (1 - corners.gaussian(arb(3).sqrt(), 0.5))
        interval = curve.delta(0.5)
        assert arb(interval.lower) <= truth <= arb(interval.upper)
        assert interval.width <= 1e-12
    finally:
        ctx.prec = old


def test_a_rate_of_whole_numbers_is_rounded_to_the_private_side():
    assert Fraction(DPSGD(1.0, batch_size=1, dataset_size=3, steps=10).sampling_rate) >= Fraction(1, 3)
    big = 2**60 + 1
    assert Guarantee(big).psi >= big


def test_floats_above_and_below():
    assert float_below(Fraction(1, 3)) < Fraction(1, 3) < float_above(Fraction(1, 3))
    assert float_below(Fraction(1, 4)) == float_above(Fraction(1, 4)) == 0.25
    assert float_above(Fraction(10) ** 400) == np.inf
    assert float_below(Fraction(10) ** 400) < np.inf


def test_proofs_that_contradict_each_other_raise_instead_of_choosing(monkeypatch):
    agreed("a number", 1.0, 1.0)
    with pytest.raises(ContradictionError, match=r"a number would be at least 2.0 and at most 1.0. This is a defect"):
        agreed("a number", np.array([0.0, 2.0]), np.array([0.0, 1.0]))
    with pytest.raises(ContradictionError):
        agreed("a number", np.nan, 1.0)
    steps = Composition.merge([(1.0, 0.01, 1000, 1)])
    monkeypatch.setattr("psidp.accounting.methods.unsampled", lambda *_: 1.0)
    monkeypatch.setattr("psidp.accounting.search.ENOUGH", 0.0)
    monkeypatch.setattr("psidp.accounting.methods._methods_for_epsilon", lambda *_: [(_Road(), 1.8)])
    with pytest.raises(ContradictionError, match="epsilon would be at least"):
        epsilon_bounds(steps, float(np.log(1e-5)))


class _Road:
    """A method that is narrow and wrong."""

    method = "wrong"

    def log_delta(self, epsilon):
        value = np.log(1e-5) - (np.asarray(epsilon) - 1.8)
        return value - 1e-3, value + 1e-3


def test_settings_that_crashed_hung_or_said_nothing_are_answered():
    near = account(DPSGD(0.11, 0.99996, 37)).epsilon(1.7e-12)
    assert near.width <= 1e-3 * near.lower
    mixed = account([DPSGD(0.05, 0.3, 100), DPSGD(1.0, 0.01, 10)]).epsilon(1e-5)
    assert mixed.width <= 1e-3 * mixed.lower
    almost = account(DPSGD(2.9, 0.9999999, 2)).epsilon(1e-6)
    whole = account(DPSGD(2.9, 1.0, 2)).epsilon(1e-6)
    assert almost.upper <= whole.upper * (1 + 1e-9)
    assert almost.width <= 1e-3 * almost.lower


def test_the_search_for_a_rate_ends_where_the_rate_is_tiny():
    """It went round in circles below 1e-9."""
    settings = {"noise_multiplier": 0.5, "steps": 1000}
    rate = largest_sampling_rate(**settings, advantage=1e-6)
    assert 1.33e-8 < rate < 1.352e-8  # by simulation, 1.351e-8 with an error of 4e-11
    assert account(DPSGD(sampling_rate=rate, **settings)).advantage.upper <= 1e-6


def test_many_points_are_answered_in_blocks():
    steps = Composition.merge([(1.0, 0.01, 1000, 1)])
    contour = Contour(steps, saddle_at_epsilon(steps, 1.0))
    epsilon = np.linspace(0.5, 1.5, 40_000)
    low, high = contour.log_delta(epsilon)
    assert low.shape == high.shape == epsilon.shape
    assert (low <= high).all()
    assert contour.u.size * 40_000 > 1 << 20  # so that there is more than one block


@pytest.mark.parametrize("setting", corners.LATTICE)
def test_the_lattice_encloses_what_ball_arithmetic_says(setting):
    sigma, q, steps, epsilon, sign, truth = setting
    with np.errstate(all="ignore"):
        lattice = Lattice(
            Composition.merge([(sigma, q, steps, sign)]), epsilon, float(corners.number(truth).log()), 1 << 14
        )
        low, high = lattice.log_delta(np.array([epsilon]))
    exact = corners.number(truth)
    assert corners.log_at_most(low[0], exact)
    assert corners.log_at_least(high[0], exact)
    assert high[0] - low[0] <= 0.05


@pytest.mark.parametrize(
    ("left", "right"), [(-7.0, 1.3), (-1.0, 2.4), (-0.3, 0.3), (-0.1, 4.0), (0.1, 0.9), (2.0, 9.0)]
)
def test_wide_cells_of_the_noise_hold_their_mass(left, right):
    """A cell with 0 inside was given the mass between |left| and |right|."""
    old, ctx.prec = ctx.prec, 200
    try:
        truth = ((arb(right) / arb(2).sqrt()).erf() - (arb(left) / arb(2).sqrt()).erf()) / 2
        low, high = log_mass(np.array([left]), np.array([right]))
        assert arb(float(low[0])).exp() <= truth <= arb(float(high[0])).exp()
        assert high[0] - low[0] <= 1e-12
    finally:
        ctx.prec = old


def test_a_step_with_next_to_no_noise_beside_an_ordinary_run():
    """Its cells are wide: delta was said to be 0.0367. It shows the record, with chance q, or multiplies F by 1 - q."""
    q, epsilon = 1e-3, 1.0
    rest = account(DPSGD(1.0, 0.5, 3)).delta(epsilon - np.log1p(-q))
    for sigma in (1e-4, 1e-5, 1e-6):
        interval = account([DPSGD(sigma, q, 1), DPSGD(1.0, 0.5, 3)]).delta(epsilon)
        assert interval.lower <= (q + (1.0 - q) * rest.upper) * (1.0 + 1e-12)
        assert interval.upper >= (q + (1.0 - q) * rest.lower) * (1.0 - 1e-12)


@pytest.mark.parametrize("q", [0.6, 0.9999, 1.0 - 1e-7, 1.0 - 1e-10])
def test_small_likelihood_ratios_keep_their_digits(q):
    """1 + q (e^t - 1) cancelled where q is near 1: the error was up to 1e7 times what was granted."""
    old, ctx.prec = ctx.prec, 200
    try:
        law = Law(0.2, q, 2.0, 1, -6.0, 6.0)
        g = np.linspace(-5.0, 5.0, 301)
        value, granted = law._loss(g)
        for x, found, error in zip(g.tolist(), value.tolist(), granted.tolist(), strict=True):
            t = arb(x) / arb(0.2) - 1 / (2 * arb(0.2) ** 2)
            assert abs((1 - arb(q) + arb(q) * t.exp()).log() - arb(found)) <= arb(error)
    finally:
        ctx.prec = old


def test_a_coarse_lattice_keeps_the_mass_of_the_numerator():
    """The share of the upper lattice point underflowed and its mass was dropped: delta was said to be below e^-90."""
    sigma, q, steps, epsilon, truth = corners.LONG[0]
    with np.errstate(all="ignore"):
        upper = Lattice(Composition.merge([(sigma, q, steps, 1)]), epsilon, -6.9, 1 << 11).log_delta(
            np.array([epsilon])
        )[1]
    assert corners.log_at_least(upper[0], corners.number(truth))
    masses = Law(1.0, 0.9, 2.0, 1, -8.0, 9.0).upwards(1000.0)
    assert masses.mass.sum() >= 1.0 - 1e-12
