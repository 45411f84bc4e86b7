"""Integer totals plus noise: exact at every size, grid coarser or finer than the unit."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest

from psidp.noise import normal_source as dice_module
from psidp.noise.gaussian import LARGEST, RoundedGaussian, noisy_integer, noisy_integers, noisy_total, noisy_totals
from psidp.noise.normal_source import NormalSource

TOTALS = [0, 1, -1, 7, 12345, -(2**53) - 1, 2**53 + 1, 2**60 + 3, -(2**61) + 1]
SIGMAS = [1e-3, 1.0, 5.3, 2.0**24, 3e9, 1.1 * 2.0**40, 2.0**60, 2.0**90]


@pytest.fixture
def seen(monkeypatch, script):
    """Scripted dice, and the list of normals they hand out."""
    dice, handed = NormalSource(script(seed=9)), []
    ready, one = dice.ready, dice.one
    dice.ready = lambda n: handed.append(ready(n)) or handed[-1]

    def watched():
        value, place = one()
        handed.append(dice.single(place))
        return value, place

    dice.one = watched
    monkeypatch.setattr(dice_module, "_idle", [dice])
    return handed


def possible(interval, slot, word, gaussian, total, unit):
    """Grid multiples nearest to total 2^unit + sigma X, at both ends of what the word leaves open."""
    grid = Fraction(gaussian.grid)
    return [
        floor(total * Fraction(2) ** unit / grid + Fraction(gaussian.sigma) / grid * x + Fraction(1, 2)) * grid
        for x in interval(slot, word)
    ]


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("unit", [0, -30, 5])
def test_totals_come_out_as_the_rounding_of_the_exact_sum(interval, seen, sigma, unit):
    gaussian = RoundedGaussian(sigma)
    totals = np.array(TOTALS * 20)
    released = noisy_totals(gaussian, totals, unit).tolist()
    slots, words = (part.tolist() for part in seen[-1])
    for i, total in enumerate(totals.tolist()):
        near = possible(interval, slots[i], words[i], gaussian, total, unit)
        assert min(abs(Fraction(released[i]) - value) for value in near) <= abs(near[0]) * Fraction(1, 2**52)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_a_single_total_is_exact_at_any_size(interval, seen, sigma):
    gaussian = RoundedGaussian(sigma)
    for total in [*TOTALS, 10**40 + 1, -(10**40)]:
        released = noisy_total(gaussian, total)
        near = possible(interval, *seen[-1], gaussian, total, 0)
        assert released in [float(value) for value in near]
        whole = noisy_integer(gaussian, total)
        near = possible(interval, *seen[-1], gaussian, total, 0)
        assert whole in [floor(value + Fraction(1, 2)) for value in near]


@pytest.mark.parametrize("sigma", SIGMAS)
def test_integers_come_out_as_integers(interval, seen, sigma):
    gaussian = RoundedGaussian(sigma)
    totals = np.array(TOTALS * 20)
    released = noisy_integers(gaussian, totals)
    assert released.dtype == np.int64
    slots, words = (part.tolist() for part in seen[-1])
    for i, total in enumerate(totals.tolist()):
        near = possible(interval, slots[i], words[i], gaussian, total, 0)
        near = [min(max(floor(value + Fraction(1, 2)), -(2**62)), 2**62) for value in near]
        assert min(abs(int(released[i]) - value) for value in near) <= (sigma > 2**24) * 2**9


def test_a_count_beyond_two_to_the_53_is_not_bent_by_a_double():
    """float(2^60 + 1) is 2^60; with next to no noise the integer must come back whole."""
    assert noisy_integer(RoundedGaussian(1e-9), 2**60 + 1) == 2**60 + 1
    assert noisy_integers(RoundedGaussian(1e-9), np.array([2**60 + 1])).tolist() == [2**60 + 1]


def test_array_entries_saturate_without_a_word():
    extreme = np.array([2**63 - 1, -(2**63)])
    assert abs(noisy_integers(RoundedGaussian(1.0), extreme)).tolist() == pytest.approx([LARGEST] * 2)


def test_a_fraction_of_a_step_is_kept_in_the_mean():
    """Grid 2^6, total 16: the mean is 16, not 0; 10^6 draws, perfect dice fail with 1e-9."""
    gaussian = RoundedGaussian(64.0, grid=64.0)
    released = noisy_totals(gaussian, np.full(10**6, 16))
    assert abs(released.mean() - 16) < 6.2 * 67 / 1000
