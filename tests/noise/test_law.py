"""The law of the noise, by goodness of fit. Each test states how often it would fail for perfect dice.

ALARM is that rate for one comparison. The suite draws under the same keys each time, so that what passes once passes
always; under fresh keys one run of the file in some thirty thousand fails by chance. Every test must also convict a
sigma that is wrong by 1 %.
"""

import numpy as np
import pytest
from scipy import special, stats

from psidp.noise import rejection, table
from psidp.noise.gaussian import RoundedGaussian
from psidp.noise.normal_source import SMALL
from psidp.noise.stream import KeyStream

ALARM = 1e-6
N = 10**7
FEWEST = 100
"""Draws expected in a bin, at least: with 4 the chi-square law understates the alarm fivefold, with 100 by 3 %."""


def step_chances(scale, offset, low, high):
    """Chance of each whole number under round(offset + scale N), the ends low and high taking the tails."""
    edges = (np.arange(low, high) + 0.5 - offset) / scale
    upper = np.append(special.ndtr(edges), 1.0)
    chances = np.diff(upper, prepend=0.0)
    mirrored = np.diff(special.ndtr(-edges), prepend=1.0, append=0.0) * -1  # accurate in the upper tail
    return np.where(np.arange(low, high + 1) > offset, mirrored, chances)


def fit(steps, scale, offset):
    """p-value of the chi-square test of whole numbers against round(offset + scale N), FEWEST in each bin or more."""
    reach = int(np.ceil(scale * special.ndtri(1 - FEWEST / steps.size)))
    while (expected := steps.size * step_chances(scale, offset, -reach, reach)).min() < FEWEST:
        reach -= 1
    counts = np.bincount(np.clip(steps, -reach, reach).astype(np.int64) + reach, minlength=2 * reach + 1)
    statistic = ((counts - expected) ** 2 / expected).sum()
    return stats.chi2.sf(statistic, counts.size - 1)


@pytest.mark.parametrize("offset", [0.0, 0.3, -0.4375])
@pytest.mark.parametrize("sigma", [1.0, 1.7, 8.0, 100.25])
def test_steps_have_the_law_of_a_rounded_normal(sigma, offset):
    """Chi-square at 10^7; perfect dice fail with 1e-6."""
    noise = RoundedGaussian(sigma, grid=1.0).add(np.full(N, offset))
    assert fit(noise, sigma, offset) > ALARM
    assert fit(noise, sigma * 1.01, offset) < ALARM
    assert fit(noise, sigma / 1.01, offset) < ALARM


def kolmogorov(values, cdf):
    """p-value of the Kolmogorov-Smirnov test."""
    n = values.size
    reached = cdf(np.sort(values))
    distance = max((np.arange(1, n + 1) / n - reached).max(), (reached - np.arange(n) / n).max())
    return stats.kstwobign.sf(distance * np.sqrt(n))


@pytest.mark.parametrize("bits", [24, 40])
def test_noise_has_the_law_of_a_normal(bits):
    """Kolmogorov-Smirnov at 10^7 on grids of 2^-24 and 2^-40; perfect dice fail with 1e-6."""
    noise = RoundedGaussian(1.0, grid=2.0**-bits).noise(N)
    assert kolmogorov(noise, special.ndtr) > ALARM
    assert kolmogorov(noise * 1.01, special.ndtr) < ALARM
    assert kolmogorov(noise / 1.01, special.ndtr) < ALARM


def test_small_vectors_and_single_values_have_the_same_law():
    """Chi-square at 4 * 10^6 and 3 * 10^5 draws from the pools; perfect dice fail with 1e-6."""
    gaussian = RoundedGaussian(8.0, grid=1.0)
    vectors = np.concatenate([gaussian.noise(SMALL) for _ in range(2000)])
    assert fit(vectors, 8.0, 0.0) > ALARM
    assert fit(vectors, 8.08, 0.0) < ALARM
    singles = np.array([gaussian.add_one(0.25) for _ in range(300_000)])
    assert fit(singles, 8.0, 0.25) > ALARM
    assert fit(singles, 8.2, 0.25) < ALARM


def test_low_bits_say_nothing_about_size():
    """256 equally likely sizes by 16 values of the low bits, 10^7; perfect dice fail with 1e-6."""
    steps = RoundedGaussian(2.0**24, grid=1.0).noise(N)
    size = np.minimum((special.ndtr(steps / 2.0**24) * 256).astype(np.int64), 255)
    counts = np.bincount(size * 16 + (steps.astype(np.int64) & 15), minlength=4096)
    statistic = ((counts - N / 4096) ** 2 / (N / 4096)).sum()
    assert stats.chi2.sf(statistic, 4095) > ALARM


def test_neighbours_are_independent():
    """Correlations of draws, of their squares and of signs at lags 1 to 4; perfect dice fail with 1e-6."""
    noise = RoundedGaussian(1.0).noise(2 * 10**6)
    for series in (noise, noise**2 - 1, np.sign(noise)):
        for lag in range(1, 5):
            product = series[lag:] * series[:-lag]
            z = product.mean() / product.std() * np.sqrt(product.size)
            assert abs(z) < stats.norm.isf(ALARM / 24)


def test_what_the_rectangles_leave_over_has_its_law():
    """Chi-square over all cells and signs, 2 * 10^6 proposals; perfect dice fail with 1e-6."""
    slots, _, _ = rejection.drawn(KeyStream(), 2 * 10**6)
    edges = np.append(table.EDGE, table.LIMIT) / table.UNIT
    mass = np.diff(-special.ndtr(-edges)) - np.where(np.arange(table.WIDTH.size) < table.RECTANGLES, 2.0**-13, 0)
    mass /= mass.sum()
    cells = np.array([table.cell_of(s) for s in range(table.CENTRE.size)])
    for sign in (0, 1):
        mine = slots[slots % 2 == sign]
        counts = np.bincount(cells[mine], minlength=mass.size)
        keep = mass * mine.size > FEWEST
        counts = np.append(counts[keep], counts[~keep].sum())
        expected = mine.size * np.append(mass[keep], mass[~keep].sum())
        assert stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), keep.sum()) > ALARM
    z = ((slots % 2).sum() - slots.size / 2) / np.sqrt(slots.size / 4)
    assert abs(z) < stats.norm.isf(ALARM / 2)


class Beyond:
    """The key stream, except that the cell proposed lies beyond `start` standard deviations."""

    def __init__(self, start):
        cell = int(np.searchsorted(table.EDGE, start * table.UNIT))
        self.start = int(table.EDGE[cell]) / table.UNIT if cell < table.EDGE.size else table.LIMIT / table.UNIT
        self.low = int(table.CHOICE[cell - 1])
        self.rng, self.stream = np.random.default_rng(0), KeyStream()

    def fill(self, words):
        self.stream.fill(words)
        if words.size % 3 == 0:
            choice = self.rng.integers(self.low, int(table.CHOICE[-1]), words.size // 3)
            words[: choice.size] = 2 * choice + (words[: choice.size] & 1)

    def rekey(self):
        """Nothing to forget."""


@pytest.mark.parametrize("start", [3.6, 5.0, 6.5, 8.0, 9.0])
def test_tails_have_the_right_conditional_law(start):
    """Kolmogorov-Smirnov of |N| given |N| > start; perfect dice fail with 1e-6."""
    source = Beyond(start)
    slots, words, rare = rejection.drawn(source, 900_000)
    values = np.abs(table.CENTRE[slots] + table.REACH[slots] * (words * 2.0**-63))
    for i, normal in zip(np.flatnonzero(slots == rejection.RARE).tolist(), rare, strict=True):
        low, _, shift = normal.bounds()
        values[i] = abs(low / 2**shift)
    assert values.size > 600_000  # so many that a sigma off by 1 % stands out by ten standard errors

    def given(x, sigma=1.0):
        return -np.expm1(special.log_ndtr(-x / sigma) - special.log_ndtr(-source.start / sigma))

    assert kolmogorov(values, given) > ALARM
    assert kolmogorov(values, lambda x: given(x, 1.01)) < ALARM


def test_the_far_tail_has_the_right_conditional_law():
    """Beyond 9.514 standard deviations, 3000 proposals in integers; perfect dice fail with 1e-6."""
    source = Beyond(20.0)
    _, _, rare = rejection.drawn(source, 3000)
    values = np.array([abs(low / 2**shift) for low, _, shift in (normal.bounds() for normal in rare)])
    assert values.size > 500
    limit = table.LIMIT / table.UNIT
    assert kolmogorov(values, lambda x: -np.expm1(special.log_ndtr(-x) - special.log_ndtr(-limit))) > ALARM
    wrong = 1.25  # 500 draws cannot see 1 %: they are to convict a tail that falls a third slower
    assert (
        kolmogorov(values, lambda x: -np.expm1(special.log_ndtr(-x / wrong) - special.log_ndtr(-limit / wrong))) < ALARM
    )
