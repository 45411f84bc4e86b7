"""Jumps: rare large losses beside many tiny ones, against balls, whole numbers and each other."""

import gzip
import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import comb, erfc
from pathlib import Path

import numpy as np
import pytest

from psidp.accounting import DPSGD, account
from psidp.accounting.contours.error_bounds import NotCertified
from psidp.accounting.pld import small_losses
from psidp.accounting.pld.aside import Aside
from psidp.accounting.pld.balanced import UNDER, balanced
from psidp.accounting.pld.convolution import Part, composed
from psidp.accounting.pld.jumps import Jumps, _counted, _poisson, log_sum
from psidp.accounting.pld.small_losses import SmallLosses
from psidp.accounting.pld.step_law import Law

flint = pytest.importorskip("flint", reason="pip install 'psidp[certify]'")
from flint import arb, ctx  # noqa: E402

from tests.reference import corners  # noqa: E402

FILE = Path(__file__).parent.parent / "reference" / "corners.2000.jsonl.gz"


def removed(*run):
    return account(DPSGD(*run)).above[0]


def ball(text):
    ctx.prec = corners.BITS
    return corners.fraction(Fraction(text))


def rare_corners(most):
    """Stored corners of one run at a small rate, as many as are asked for, with the oracle's enclosure of delta."""
    lines = map(json.loads, gzip.decompress(FILE.read_bytes()).decode().splitlines())
    found = [x for x in lines if "delta" in x and len(x["runs"]) == 1 and not (x["psi"] or x["kappa"])]
    return [x for x in found if x["runs"][0][1] < 1e-4 and Jumps.fits(removed(*x["runs"][0]))][:most]


@pytest.mark.parametrize("corner", rare_corners(24), ids=lambda x: "-".join(f"{y:.3g}" for y in x["runs"][0]))
def test_jumps_enclose_what_the_oracle_says(corner):
    low, high = (ball(corner["delta"][end]) for end in ("lower", "upper"))
    epsilon = max(corner["epsilon"], 1e-9)
    jumps = Jumps(removed(*corner["runs"][0]), epsilon, float(high.log()))
    below, above = (float(x[0]) for x in jumps.log_delta(np.array([corner["epsilon"]])))
    assert not (below > -np.inf and corners.log_at_least(below - 1e-9, high) and not corners.log_at_most(below, high))
    assert not arb(above).exp() < low


@pytest.mark.parametrize(
    ("sigma", "q", "steps", "epsilon", "delta"), [(*x[:4], x[5]) for x in corners.LATTICE if x[4] > 0]
)
def test_jumps_enclose_ball_arithmetic_closely(sigma, q, steps, epsilon, delta):
    exact = corners.number(delta)
    low, high = (float(x[0]) for x in Jumps(removed(sigma, q, steps), epsilon, float(exact.log())).log_delta(epsilon))
    assert corners.log_at_most(low, exact)
    assert corners.log_at_least(high, exact)
    assert high - low < 0.02


@pytest.mark.parametrize(
    ("run", "delta"),
    [
        ((1.8231161899195274, 3.078325572600327e-07, 10**6), 9.503789740034626e-114),
        ((7.734801013375453, 5.095003597960367e-07, 18), 1.282927503896466e-126),
        ((3.7202251770390076, 2.1854157063382719e-07, 1000), 2.7779686390285643e-198),
        ((0.759229581954385, 8.530012842150217e-08, 10**5), 1.8424185577908358e-13),
    ],
)
def test_one_large_loss_beside_many_tiny_ones_has_a_narrow_epsilon(run, delta):
    found = account(DPSGD(*run)).epsilon(delta)
    assert found.method == "jumps"
    assert found.width <= 1e-3 * found.lower


def hockey_stick(mass, losses, epsilon):
    """sum mass (1 - e^(epsilon - loss))_+ in balls."""
    terms = (arb(m) * (1 - (arb(epsilon) - x).exp()) for m, x in zip(mass, losses, strict=True))
    return sum((term for term in terms if term > 0), arb(0))


def as_balls(masses, eta, raised=0.0):
    """Masses on a grid, and their losses, exactly."""
    index = np.flatnonzero(masses.mass)
    return masses.mass[index].tolist(), [
        arb(int(masses.first + i)) * arb(eta) + arb(masses.base) + arb(raised) for i in index
    ]


@pytest.mark.parametrize("eta", [3e-6, 4e-7, 5e-8])
def test_balanced_outcomes_tell_no_more_than_they_did_and_hardly_less(eta):
    ctx.prec = 200
    mass, losses, off = Law(1.8, 3e-7, 1e6, 1, -9.0, 9.0).outcomes(0.25 * eta)
    moved = balanced(mass, losses, eta, off)
    before, after = (mass.tolist(), [arb(x) for x in losses.tolist()]), as_balls(moved, eta)
    for epsilon in np.quantile(losses, np.linspace(0.0, 1.0, 9)).tolist():
        assert hockey_stick(*after, epsilon) <= hockey_stick(*before, epsilon)
    means = [sum((arb(m) * (-x).exp() for m, x in zip(*law, strict=True)), arb(0)) for law in (before, after)]
    assert abs(float(means[1] - means[0])) < 2.0 * UNDER * eta + 1e-11  # e^-loss: nothing is lost but the margin
    higher = as_balls(moved, eta, 1e-3 * eta)
    everything = float(losses.min()) - 1.0
    assert hockey_stick(*higher, everything) > hockey_stick(*before, everything)  # the test sees a thousandth of a step


@np.errstate(divide="ignore")
def test_counts_of_jumps_are_what_fractions_say():
    mass, first, eta, steps = [0.25, 0.125, 0.0, 0.5], 3, 0.01, 7
    part = Part(np.array([3, 4, 6]), np.log([0.25, 0.125, 0.5]), 1.0, eta)
    counts = _counted(part, 3, float(steps), 40.0, eta, 0.0)
    for k in range(4):
        exact: dict[int, Fraction] = {}
        for chosen in product(range(4), repeat=k):
            total, chance = sum(first + i for i in chosen), Fraction(comb(steps, k))
            for i in chosen:
                chance *= Fraction(mass[i])
            exact[total] = exact.get(total, Fraction(0)) + chance
        found = np.exp(counts[k].log_mass)
        for at, value in exact.items():
            assert found[at - counts[k].first] == pytest.approx(float(value), rel=1e-12)
        assert counts[k].log_beyond == -np.inf


@pytest.mark.parametrize(("rate", "first"), [(-30.0, 1), (-2.0, 1), (0.5, 3), (1.0, 2), (3.0, 2)])
def test_more_jumps_are_bounded_by_poisson_tails(rate, first):
    ctx.prec = 200
    r = arb(rate).exp()
    tail = r.exp() - sum((r**k / arb(k).fac() for k in range(first)), arb(0))
    assert corners.log_at_least(float(_poisson(np.array([rate]), first)[0]) + 1e-12, tail)


@np.errstate(all="ignore")
@pytest.mark.parametrize("run", [(1.3, 1e-5, 1 << 13), (2.5, 1e-6, 1 << 14), (1.8, 1e-6, 1 << 13)])
def test_blocks_of_steps_enclose_what_single_steps_do(run, monkeypatch):
    law = Law(*run[:2], float(run[2]), 1, -9.0, 6.0)
    spread = run[1] * np.sqrt(run[2])
    blocks = SmallLosses([law], 2.0 / spread, 3.0 * spread)
    monkeypatch.setattr(small_losses, "LONG", 1 << 30)
    single = SmallLosses([law], 2.0 / spread, 3.0 * spread)
    assert blocks.blocks > 1.0 > single.blocks
    x = spread * np.linspace(-2.0, 2.0, 9)
    for one, other in ((blocks, single), (single, blocks)):
        low = np.fmax.reduce([side.log_delta(x, -1.0) for side in one.sides(False, law.count)])
        high = np.fmin.reduce([side.log_delta(x, 1.0) for side in other.sides(True, law.count)])
        assert (low <= high).all()
        assert (high - low)[:6].max() < 0.05


@np.errstate(divide="ignore")
def test_jumps_beyond_the_grid_are_counted_whole():
    """Bounded at the grid's end with the tilt of all that lies beyond, they were e^200 times too many."""
    eta, steps, size = 0.01, 7, 1500
    index = np.array([1, size])
    part = Part(index, np.log([0.25, 0.5]), 1.0, eta)
    counts = _counted(part, 3, float(steps), 40.0, eta, 0.0)
    assert counts[2].log_beyond == -np.inf
    exact = comb(steps, 3) * Fraction(1, 8)  # three large ones alone pass 4,096 places
    assert np.exp(counts[3].log_beyond) == pytest.approx(float(exact), rel=1e-12)


@np.errstate(all="ignore")
def test_sums_of_logarithms_have_the_rounding_of_one_term():
    ctx.prec = 200
    x = -690.0 + np.random.default_rng(3).normal(size=40_000)
    exact = sum((arb(v).exp() for v in x.tolist()), arb(0)).log()
    assert abs(float(arb(log_sum(x)) - exact)) <= 4e-13
    assert log_sum(np.array([-np.inf])) == -np.inf


@np.errstate(all="ignore")
def test_masses_of_an_upper_grid_are_as_far_off_as_its_losses():
    """A loss that is off by 1e-6 has a mass that is: far below all losses only that factor is left."""
    plain, off = (
        composed([Part(np.arange(-40, 41), np.full(81, -np.log(81.0)), 100.0, 1e-3, off=off)], 1.0, 1 << 14, 1e-3, 0.0)
        for off in (0.0, 1e-6)
    )
    x = np.array([-7.0])
    assert off.log_delta(x, 1.0)[0] >= plain.log_delta(x, 1.0)[0] + 100.0 * 1e-6


@pytest.mark.parametrize("epsilon", [0.0753, 0.07545, 0.0756])
def test_few_outcomes_find_a_good_place_of_the_grid(epsilon):
    """At the second and third place the lower end lost a sixth of delta."""
    jumps = Jumps(removed(1.8231161899195274, 3.078325572600327e-07, 10**6), epsilon, -260.24)
    low, high = (float(x[0]) for x in jumps.log_delta(np.array([0.07545])))
    assert high - low < 0.03


@pytest.mark.parametrize(
    ("run", "epsilon"),
    [
        ((1.8231161899195274, 3.078325572600327e-07, 10**6), 0.07546993478029618),
        ((3.7202251770390076, 2.1854157063382719e-07, 1000), 0.0006428400853729648),
        ((8.889187679381438, 0.0001456178411337416, 21), 0.006813613147009578),
    ],
)
def test_delta_of_one_large_loss_is_narrow(run, epsilon):
    """They were said to be in [0, 1e-46] and the like."""
    found = account(DPSGD(*run)).delta(epsilon)
    assert found.method == "jumps"
    assert 0.97 * found.upper < found.lower < 1e-100


def test_more_jumps_than_can_be_counted_are_no_answer():
    with pytest.raises(NotCertified, match="more steps"):
        Jumps(removed(0.6740319966141339, 9.900275791676917e-06, 10**5), 64.948, -1298.8)


def test_what_is_undecided_counts_every_step():
    """Half of all paths have a step above the grid: the steps' chances add up to more than that of any of them."""
    law = Law(1.0, 0.01, 10.0, 1, -9.0, 1.5)
    aside = Aside([law], True, 0.0, 1.0)
    epsilon = np.array([0.01])
    extra = np.exp(aside.log_bounds(epsilon, 0.0)[1]) - np.exp(replace(aside, doubt=700.0).log_bounds(epsilon, 0.0)[1])
    chance = 0.5 * erfc(1.5 / 2.0**0.5)
    assert extra[0] >= 10.0 * chance * np.exp(0.01 - 1.0) * (1.0 - 1e-9)
