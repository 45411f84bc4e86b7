"""Levels: epsilon where delta is the chance of so many sampled steps but for its last digit, or less."""

import random
from fractions import Fraction
from itertools import pairwise
from math import comb, log, nextafter

import numpy as np
import pytest

from psidp import Guarantee
from psidp.accounting import DPSGD, account
from psidp.accounting.exact_sums import float_above, float_below
from psidp.accounting.levels import Levels
from psidp.accounting.methods import epsilon_bounds

flint = pytest.importorskip("flint", reason="pip install 'psidp[certify]'")
from flint import acb, arb, ctx  # noqa: E402


def removed(*events):
    return account(events).above[0]


def chance(q, steps, least):
    """The chance that at least so many steps sampled the record, exactly."""
    rate = Fraction(q)
    return 1 - sum(comb(steps, k) * rate**k * (1 - rate) ** (steps - k) for k in range(least))


def two_steps(sigma, q, epsilon, small):
    """delta(epsilon) of two steps, the record removed, as a ball: the closed form of one step over the other's noise.

    Its code has nothing in common with src. Where the first step's F(g) is so large that the second decides nothing,
    delta of the second is 1 - e^x, x what is left of epsilon.
    """
    ctx.prec = 128
    s, rate, ahead = arb(sigma), arb(q), arb(epsilon).exp()

    def upper_tail(x):
        return (x / arb(2).sqrt()).erfc() / 2

    def density(g):
        weight = (1 - rate) * (-g * g / 2).exp() + rate * (-(g - 1 / s) * (g - 1 / s) / 2).exp()
        return weight / (2 * arb.pi()).sqrt()

    def left(g):
        return ahead / (1 - rate + rate * (g / s - 1 / (2 * s * s)).exp())

    def inner(g, analytic):
        a = left(g)
        x = s * ((a - 1 + rate) / rate).log(analytic=analytic) + 1 / (2 * s)
        return density(g) * ((1 - rate) * upper_tail(x) + rate * upper_tail(x - 1 / s) - a * upper_tail(x))

    def outer(g, _):
        return density(g) * (1 - left(g))

    decided = float((s * ((ahead / (1 - rate) - 1 + rate) / rate).log() + 1 / (2 * s)).mid()) - 1e-9
    total, far = acb(0), 1.0 / sigma + 15.0
    for start, end, integrand in ((-15.0, min(decided, far), inner), (decided, far, outer)):
        cuts = np.linspace(start, end, 2 + int(max(end - start, 0.0))).tolist() if start < end else []
        for low, high in pairwise(cuts):
            total += acb.integral(integrand, low, high, rel_tol=arb(2) ** -68, abs_tol=small)
    beyond = 4 * upper_tail(arb(15)) + arb(1e-9) * density(arb(decided)).abs_upper()
    return total.real + arb(0, beyond.upper())


@pytest.mark.parametrize(
    ("sigma", "q", "least", "side"),
    [(0.022, 0.3, 1, -1), (0.022, 1e-8, 1, -1), (0.04, 0.01, 1, -1), (0.04, 0.3, 2, 1), (0.06, 0.01, 2, -1)],
)
def test_two_steps_at_the_edge_of_a_level_agree_with_ball_integration(sigma, q, least, side):
    """Both ends, at the floats beside the chance of a level: delta is at least the target below, at most it above."""
    exact = chance(q, 2, least)
    delta = Fraction(float_below(exact) if side < 0 else float_above(exact))
    low, high = Levels(removed(DPSGD(sigma, q, 2)), delta).epsilon()
    target = arb(delta.numerator) / arb(delta.denominator)
    assert high - low <= 1e-3 * high
    assert two_steps(sigma, q, low * (1 - 1e-3), target * arb(2) ** -68) > target
    assert two_steps(sigma, q, high * (1 + 1e-3), target * arb(2) ** -68) < target


def test_epsilon_is_zero_from_the_chance_of_any_sampled_step_on_and_large_before_it():
    """One unit in the last place of delta decides between no loss at all and a loss of hundreds."""
    for sigma, q, steps in ((0.022602527896648697, 7.894183154935145e-08, 10), (0.03, 1e-5, 1000)):
        curve, any_step = account(DPSGD(sigma, q, steps)), chance(q, steps, 1)
        enough = float_above(any_step)
        assert tuple(curve.epsilon(enough)) == (0.0, 0.0)
        found = curve.epsilon(nextafter(enough, 0.0))
        assert found.lower > 100.0
        assert found.width <= 1e-3 * found.upper
        assert found.method == Levels.method


def test_a_chance_that_is_a_float_is_met_exactly():
    """1 - (1/2)^3 needs no rounding: delta is never more, so epsilon is 0 there."""
    assert tuple(account(DPSGD(0.05, 0.5, 3)).epsilon(0.875)) == (0.0, 0.0)
    assert account(DPSGD(0.05, 0.5, 3)).epsilon(nextafter(0.875, 0.0)).lower > 20.0


def test_a_plain_gaussian_beside_tiny_noise_decides_above_the_level():
    curve = account([DPSGD(0.04268208721836143, 6.908714763418291e-07, 27), Guarantee(2.034990724731337)])
    any_step = chance(6.908714763418291e-07, 27, 1)
    above, below = (
        curve.epsilon(float_above(any_step) * (1 + 1e-12)),
        curve.epsilon(float_below(any_step) * (1 - 1e-12)),
    )
    assert 15.0 < above.lower <= above.upper < 25.0
    assert below.lower > 90.0
    for found in (above, below):
        assert found.width <= 1e-3 * found.upper


def test_levels_and_the_other_methods_do_not_exclude_each_other():
    dice, seen = random.Random(3), 0
    while seen < 8:
        runs = [
            DPSGD(10.0 ** dice.uniform(-1.7, -0.9), 10.0 ** dice.uniform(-8.0, -0.3), dice.randrange(1, 30))
            for _ in range(dice.randrange(1, 3))
        ]
        steps, delta = removed(*runs, Guarantee(10.0 ** dice.uniform(-3.0, 1.0))), 10.0 ** dice.uniform(-15.0, -0.5)
        low, high = Levels(steps, Fraction(delta)).epsilon()
        other_low, other_high, _ = epsilon_bounds(steps, log(delta))
        assert low <= other_high
        assert other_low <= high
        seen += 1


def test_levels_are_for_tiny_noise_few_levels_and_a_removed_record():
    half = Fraction(1, 2)
    assert Levels.fits(removed(DPSGD(0.05, 0.01, 100)), half)
    assert not Levels.fits(removed(DPSGD(0.5, 0.01, 100)), half)
    assert not Levels.fits(removed(DPSGD(0.05, 0.5, 10**6)), half)
    assert not Levels.fits(account(DPSGD(0.05, 0.01, 100)).above[1], half)
