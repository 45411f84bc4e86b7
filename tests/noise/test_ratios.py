"""Ratios of whole numbers plus noise: split exactly, rounded once, at every size and shift."""

from fractions import Fraction
from itertools import pairwise
from math import floor, frexp

import numpy as np
import pytest

from psidp.noise import normal_source as dice_module
from psidp.noise.gaussian import FINEST, RoundedGaussian
from psidp.noise.normal_source import SMALL, NormalSource
from psidp.noise.ratios import FAR, ROOM, _split, _split_large, noisy_ratios, ratio_gaussian
from psidp.noise.rounding import error_bound

NUMBERS = [0, 1, -1, 2, 3, 12345, 2**31 - 1, -(2**53) - 1, 2**53 + 1, 2**60 + 3, -(2**61) + 1, 2**62 - 1, -(2**62) + 1]
EXTREME = [2**63 - 1, -(2**63), 2**63 - 2, -(2**63) + 1]
MULTIPLES = [2**30, 2**30 + 1, 3 * 2**29 + 7, 2**31 - 1, 2**31]
POWERS = [-31, -30, -17, -1, 0, 1, 5, 28, 29, 30, 31, 32, 33, 47, 60, 61, 62, 63, 64, 65, 90, 91, 92, 93, 120, 1044]


def all_cases():
    rng = np.random.default_rng(6)
    numbers = NUMBERS + EXTREME + [int(n) for n in rng.integers(-(2**62), 2**62, 30)]
    numbers += [int(n) for n in (1 << rng.integers(0, 63, 30)) + rng.integers(-2, 3, 30)]
    cases = [(n, m, p) for n in numbers for m in MULTIPLES for p in POWERS]
    cases += [(m * k // 2 + d, m, 0) for m in MULTIPLES for k in (1, 3, 2**31 + 1) for d in (-1, 0, 1)]  # beside halves
    cases += [(m * 2**29 + d, m, 31 + e) for m in MULTIPLES[:1] for d in (-1, 0, 1) for e in (-1, 0, 1)]  # at the clamp
    cases += [
        (s * (2**60 * m // 2**p + d), m, p)
        for m in MULTIPLES
        for p in (30, 31, 40)
        for d in (-2, -1, 0, 1, 2)
        for s in (1, -1)
    ]
    columns = list(zip(*cases, strict=True))
    return np.array(columns[0], np.int64), np.array(columns[1], np.int64), np.array(columns[2], np.int64)


def exact_steps(number, multiple, power):
    """The ratio in steps, clamped, as a fraction."""
    return min(max(Fraction(number) * Fraction(2) ** power / multiple, Fraction(-FAR)), Fraction(FAR))


@pytest.mark.parametrize("split", [_split, _split_large], ids=["64 bits", "any size"])
def test_whole_steps_and_rest_are_the_ratio_exactly(split):
    numbers, multiple, power = all_cases()
    given = numbers.astype(object) if split is _split_large else numbers
    with np.errstate(all="raise"):
        whole, rest, below = split(given, multiple, power)
    for w, r, b, *case in zip(*(x.tolist() for x in (whole, rest, below, numbers, multiple, power)), strict=True):
        assert w + Fraction(r, b) == exact_steps(*case), case
        assert abs(Fraction(r, b)) <= Fraction(1, 2) + Fraction(1, 2**51)
        assert abs(w) <= FAR
        assert b < 2**63


def test_numbers_beyond_64_bits_are_split_exactly_too():
    numbers = [s * (10**k + d) for k in (19, 25, 40, 80) for d in (0, 1) for s in (1, -1)]
    for multiple in MULTIPLES:
        for power in (-31, 0, 33):
            many = np.full(len(numbers), multiple), np.full(len(numbers), power)
            whole, rest, below = _split_large(np.array(numbers, object), *many)
            for w, r, b, n in zip(whole.tolist(), rest.tolist(), below.tolist(), numbers, strict=True):
                assert w + Fraction(r, b) == exact_steps(n, multiple, power)


def test_the_quotient_in_doubles_is_within_what_the_rounding_grants():
    """Off by less than 2^-53: with the 2^-54 of the sum that is below the 2^-52 in the bound of every rounding."""
    _, multiple, _ = all_cases()
    rng = np.random.default_rng(3)
    below = np.concatenate([multiple << 31, multiple << 7, multiple])
    rest = np.concatenate([(rng.random(below.size) - 0.5) * below, below / 2, 0.25 * below + 1]).astype(np.int64)
    below = np.tile(below, 3)
    offset = rest / below
    worst = max(
        abs(Fraction(o) - Fraction(r, b))
        for o, r, b in zip(offset.tolist(), rest.tolist(), below.tolist(), strict=True)
    )
    assert Fraction(1, 2**56) < worst < Fraction(1, 2**53)
    assert worst + Fraction(1, 2**54) <= Fraction(error_bound(0.0, 0.0)) == Fraction(1, 2**52)


@pytest.fixture
def watched(monkeypatch, script):
    """Scripted dice, and the normals that they hand out."""
    dice, handed = NormalSource(script(seed=5)), []
    ready = dice.ready
    dice.ready = lambda n: handed.append(ready(n)) or handed[-1]
    dice.wipe = lambda n: None
    monkeypatch.setattr(dice_module, "_idle", [dice])
    return dice, handed


@pytest.mark.parametrize("kind", [np.int64, object], ids=["64 bits", "any size"])
@pytest.mark.parametrize("sigma", [1e-5, 0.7, 1.0, 5.3, 1000.0, 3e9])
@pytest.mark.parametrize("n", [1500, 5000])
def test_every_result_is_the_rounding_of_the_ratio_plus_a_real_normal(watched, interval, kind, sigma, n):
    rng = np.random.default_rng(8)
    shift = rng.integers(-20, 31, n)
    multiple = rng.integers(2**30, 2**31 + 1, n)
    numbers = rng.integers(-(2**62), 2**62, n) >> rng.integers(0, 62, n)
    numbers[: len(NUMBERS)] = NUMBERS
    gaussian = ratio_gaussian(sigma, shift)
    found = noisy_ratios(gaussian, numbers.astype(kind), multiple, shift).tolist()
    dice, handed = watched
    slots, words = (p.tolist() for p in (handed[0] if n <= SMALL else (dice.slot[:n], dice.word[:n])))
    grid, power = Fraction(gaussian.grid), frexp(gaussian.grid)[1] - 1
    for i in range(n):
        ratio = exact_steps(int(numbers[i]), int(multiple[i]), int(shift[i]) - power)
        near = [floor(ratio + Fraction(sigma) / grid * x + Fraction(1, 2)) * grid for x in interval(slots[i], words[i])]
        assert found[i] in [float(value) for value in near]


def test_both_roads_give_the_same_numbers(monkeypatch, script):
    """The same words, 64 bits or Python's integers."""
    rng = np.random.default_rng(9)
    shift, multiple = rng.integers(-5, 31, 1000), rng.integers(2**30, 2**31, 1000)
    numbers = rng.integers(-(10**12), 10**12, 1000)
    found = []
    for kind in (np.int64, object):
        monkeypatch.setattr(dice_module, "_idle", [NormalSource(script(seed=5))])
        found.append(noisy_ratios(ratio_gaussian(2.0, shift), numbers.astype(kind), multiple, shift))
    assert (found[0] == found[1]).all()


def test_the_grid_is_fine_enough_for_every_denominator():
    for sigma in (1e-6, 1.0, 3.7, 1e6):
        for low in (-30, -8, 0, 30):
            shift = np.array([30, low])
            gaussian = ratio_gaussian(sigma, shift)
            assert sigma * 2.0**-FINEST <= gaussian.grid <= sigma * 2.0**-24
            assert low - (frexp(gaussian.grid)[1] - 1) >= -ROOM


def test_noise_too_large_for_its_coefficients_is_refused_before_anything_is_drawn():
    shift = np.array([-40, 30])
    with pytest.raises(ValueError, match=r"sigma \(standard deviation of the noise\) must be at most 2\^35"):
        ratio_gaussian(2.0**35 * (1 + 2**-50), shift)
    assert ratio_gaussian(2.0**35, shift).grid == 2.0**-9


def test_far_numbers_count_as_the_clamp_and_shapes_are_kept():
    gaussian = RoundedGaussian(1.0)
    numbers = np.array([[2**62, -(2**62)], [0, 5]])
    multiple, shift = np.full((2, 2), 2**30), np.full((2, 2), 30)
    found = noisy_ratios(gaussian, numbers, multiple, shift)
    assert found.shape == (2, 2)
    assert found[0].tolist() == pytest.approx([FAR * gaussian.grid, -FAR * gaussian.grid], rel=1e-9)
    assert abs(found[1] - [0, 5]).max() < 10
    assert noisy_ratios(gaussian, np.array(7), np.array(2**30), np.array(30)).shape == ()


def test_clamping_brings_no_two_numbers_further_apart():
    numbers, multiple, power = all_cases()
    whole, rest, below = _split(numbers, multiple, power)
    clamped = [w + Fraction(r, b) for w, r, b in zip(whole.tolist(), rest.tolist(), below.tolist(), strict=True)]
    raw = [
        Fraction(n) * Fraction(2) ** p / m
        for n, m, p in zip(numbers.tolist(), multiple.tolist(), power.tolist(), strict=True)
    ]
    order = sorted(range(len(raw)), key=raw.__getitem__)
    for i, j in pairwise(order):
        assert 0 <= clamped[j] - clamped[i] <= raw[j] - raw[i]
