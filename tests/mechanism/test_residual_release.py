"""Noisy residuals: no row moves what runs by more than psi, in fractions; an attack gains what psi says."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from psidp import Guarantee, audit
from psidp.mechanism import residual_release
from psidp.mechanism.residual_release import check_noise, noisy_residuals
from psidp.noise import normal_source
from psidp.noise.normal_source import NormalSource
from psidp.strategies.haar import Haar
from psidp.strategies.marginals import Marginals
from psidp.strategies.ordered import ordered
from psidp.strategies.residual_plan import ResidualPlan, least_total, least_worst

RELEASES = 2_500


class Words:
    """Words of a fixed generator, in place of those of the system: the suite is the same each time."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def fill(self, words):
        words[:] = self.rng.integers(-(2**63), 2**63, words.size, np.int64)

    def rekey(self):
        pass


@pytest.fixture
def fixed(monkeypatch):
    monkeypatch.setattr(normal_source, "_idle", [NormalSource(Words(12))])


@pytest.fixture
def passed(monkeypatch):
    """What is given to the noise, residual by residual: sigma, whole numbers, multiples, shifts."""
    seen = []

    def watch(gaussian, numbers, multiple, shift):
        seen.append((gaussian.sigma, *(x.reshape(-1).tolist() for x in (numbers, multiple, shift))))
        return np.zeros(numbers.shape)

    monkeypatch.setattr(residual_release, "noisy_ratios", watch)
    return seen


def random_plan(rng):
    sizes = rng.integers(1, 5, rng.integers(1, 4)).tolist()
    bases = tuple(ordered(n, rng.choice(["prefixes", "ranges"])) if rng.random() < 0.4 else Haar(n) for n in sizes)
    every = [t for k in range(len(sizes) + 1) for t in combinations(range(len(sizes)), k)]
    chosen = rng.choice(len(every), rng.integers(1, len(every) + 1), replace=False)
    marginals = Marginals(bases, tuple(every[i] for i in sorted(chosen)))
    return (least_worst if rng.random() < 0.5 else least_total)(marginals, float(np.exp(rng.uniform(-1, 1))))


def rolled(counts, marginals):
    every = range(len(marginals.bases))
    sums = {table: counts.sum(axis=tuple(i for i in every if i not in table)) for table in marginals.maximal}
    return {table: np.asarray(totals, counts.dtype) for table, totals in sums.items()}


def ratios(seen):
    """All coefficients over their scales and sigma, as fractions."""
    return [
        (Fraction(c) * Fraction(2) ** s / m, Fraction(sigma))
        for sigma, numbers, multiples, shifts in seen
        for c, m, s in zip(numbers, multiples, shifts, strict=True)
    ]


def test_no_row_moves_the_residuals_by_more_than_psi(passed):
    """300 random cubes, unordered and ordered, rows of 1 to 2^41 steps, totals up to 2^80; no tolerance."""
    rng, nearest = np.random.default_rng(17), []
    for _ in range(300):
        plan = random_plan(rng)
        shape = tuple(basis.size for basis in plan.marginals.bases)
        steps = int(rng.choice([1, 3, 2**20, 2**41]))
        counts = rng.integers(0, 10**6, shape).astype(object) * steps * int(rng.choice([1, 2**20]))
        if abs(counts).sum() < 2**62 and rng.random() < 0.7:
            counts = counts.astype(np.int64)
        joined = counts.copy()
        joined[tuple(rng.integers(0, n) for n in shape)] += steps
        moved = Fraction(0)
        both = []
        for table in (counts, joined):
            passed.clear()
            noisy_residuals(plan, rolled(table, plan.marginals), steps)
            both.append(ratios(passed))
        for (a, sigma), (b, same) in zip(*both, strict=True):
            assert sigma == same
            moved += ((a - b) / sigma) ** 2
        assert moved <= plan.squared <= Fraction(plan.psi) ** 2
        nearest.append(float(moved / plan.squared))
        if all(isinstance(basis, Haar) for basis in plan.marginals.bases):
            assert moved >= Fraction(9995, 10000) ** 2 * plan.squared
    assert sum(part > 0.9995**2 for part in nearest) > 100


def test_a_scale_below_a_norm_would_be_seen(passed, monkeypatch):
    """The test above has teeth: scales of the rows' largest entries, not of their norms, exceed psi."""
    plan = least_worst(Marginals((Haar(4),), ((0,),)), 1.0)
    counts = np.array([3, 1, 4, 1])
    both = []
    for table in (counts, counts + np.array([1, 0, 0, 0])):
        passed.clear()
        noisy_residuals(plan, {(0,): table}, 1)
        both.append([(Fraction(c), Fraction(sigma)) for sigma, numbers, *_ in passed for c in numbers])
    assert sum(((a - b) / s) ** 2 for (a, s), (b, _) in zip(*both, strict=True)) > plan.squared


def scores(plan, counts, cell, releases):
    """Log likelihood ratios, up to constants, of releases with and without one row."""
    marginals = plan.marginals
    table = marginals.maximal[0]
    unit = np.zeros_like(counts)
    unit[cell] = 1
    ways = {
        s: marginals.encode(s, table, unit) / (marginals.scales(s).value * plan.sigma(s)) ** 2
        for s in marginals.residuals
    }
    found = []
    for exact in (counts + unit, counts):
        released = [noisy_residuals(plan, {table: exact}, 1) for _ in range(releases)]
        found.append([sum(float((ways[s] * r[s]).sum()) for s in ways) for r in released])
    return found


def small_plan(psi=1.0):
    return least_worst(Marginals((Haar(2), ordered(3)), ((0,), (0, 1))), psi)


def test_the_best_attack_gains_what_psi_says_and_no_more(fixed):
    """Noise is scripted, so that this never fails by chance; `./dev bench cube-accuracy` has 10,000 fresh ones."""
    counts = np.array([[5, 0, 2], [1, 7, 3]])
    result = audit(*scores(small_plan(), counts, (0, 1), RELEASES), claimed=Guarantee(1.0), seed=1)
    assert not result.refuted
    assert 0.85 < result.psi <= 1.0


def test_noise_ten_percent_too_small_is_caught(fixed):
    counts = np.array([[5, 0, 2], [1, 7, 3]])
    honest = small_plan()
    short = ResidualPlan(honest.marginals, tuple(0.9 * sigma for sigma in honest.sigmas))
    result = audit(*scores(short, counts, (0, 1), RELEASES), claimed=Guarantee(1.0), seed=1)
    assert result.refuted
    assert result.psi > 1.0


def test_standard_errors_are_those_of_the_noise(fixed):
    """1,500 releases, 40 questions: mean and variance of what is off. True ones fail once in a million a question."""
    rng, n = np.random.default_rng(5), 1_500
    marginals = Marginals((Haar(3), ordered(4), Haar(2)), ((0, 1), (1, 2)))
    plan = least_worst(marginals, 0.5)
    counts = rng.integers(0, 1000, (3, 4, 2))
    exact = rolled(counts * 5, marginals)
    released = [noisy_residuals(plan, exact, 5) for _ in range(n)]
    for table in marginals.tables:
        cells = np.array([marginals.decode(table, r).reshape(-1) for r in released])
        truth = counts.sum(axis=tuple(i for i in range(3) if i not in table)).reshape(-1)
        for _ in range(20):
            q = rng.normal(size=marginals.shape(table))
            off = (cells - truth) @ q.reshape(-1) / plan.deviation(table, q)
            assert abs(off.mean()) < 4.9 / np.sqrt(n)
            assert abs(off.var() - 1.0) < 4.9 * np.sqrt(2.0 / n)


def test_a_wrong_standard_error_would_be_seen(fixed):
    """The bound above is 18 % of a variance: a sigma off by 10 % is outside."""
    plan = small_plan()
    counts = np.array([[5, 0, 2], [1, 7, 3]])
    q, table = np.ones((2, 3)), (0, 1)
    cells = [plan.marginals.decode(table, noisy_residuals(plan, {table: counts}, 1)).sum() for _ in range(1_500)]
    off = (np.array(cells) - counts.sum()) / (0.9 * plan.deviation(table, q))
    assert abs(off.var() - 1.0) > 4.9 * np.sqrt(2.0 / 1_500)


def test_released_tables_agree_and_are_unbiased_at_any_size(fixed):
    marginals = Marginals((Haar(3), Haar(5)), ((0,), (1,), (0, 1)))
    plan = least_worst(marginals, 1.0)
    counts = np.arange(15).reshape(3, 5) * 10**6
    for steps in (1, 2**20, 2**41, 10**25):
        released = noisy_residuals(plan, {(0, 1): counts.astype(object) * steps}, steps)
        cells = marginals.decode((0, 1), released)
        assert abs(cells - counts).max() < 7 * max(plan.errors)
        assert abs(cells.sum(axis=1) - marginals.decode((0,), released)).max() <= 1e-12 * counts.sum()


def test_noise_that_cannot_be_drawn_exactly_is_refused_before_anything_is_read():
    marginals = Marginals((Haar(5), Haar(5), Haar(5)), ((0, 1, 2),))
    plan = least_worst(marginals, 1.0)
    check_noise(plan, 2**41)
    with pytest.raises(ValueError, match="sigma"):
        check_noise(plan.scaled(2.0**60), 2**41)
