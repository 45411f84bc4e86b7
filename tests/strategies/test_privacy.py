"""The promise by another road: densities of whole streams, adaptive units, other caps; and what decoding can do."""

import random

import numpy as np
import pytest

from psidp import Guarantee, delta_from_psi
from psidp.strategies.participation import Participation
from psidp.strategies.toeplitz import Toeplitz

STRATEGY = Toeplitz(2, (2, 1))
SIGMA = 3.0
RULES = {
    "always": lambda y: np.ones_like(y),
    "the sign of what was seen": lambda y: np.sign(y),
    "only after a large release": lambda y: (y > 2.0).astype(float),
    "against what was seen": lambda y: -np.tanh(y),
}


def likelihoods(rule):
    """Densities of two releases with a unit that adds 1, and then what a rule makes of the first, and without it."""
    first = np.linspace(-40.0, 40.0, 1201)
    y, z = first[:, None], first[None, :]
    cell = (first[1] - first[0]) ** 2
    apart = np.exp(-((y - 2.0) ** 2 + (z - 1.0 - 2.0 * rule(y)) ** 2) / (2 * SIGMA**2))
    without = np.exp(-(y**2 + z**2) / (2 * SIGMA**2))
    return (cell / (2 * np.pi * SIGMA**2)) * apart, (cell / (2 * np.pi * SIGMA**2)) * without


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_what_a_unit_adds_after_seeing_releases_costs_no_more(rule):
    """Hockey sticks by a sum over a grid of 1,201 by 1,201 cells, in both directions; off by less than 1e-4."""
    psi = Guarantee.gaussian(sensitivity=STRATEGY.sensitivity(Participation(2)), sigma=SIGMA).psi
    one, other = likelihoods(rule)
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        for p, q in ((one, other), (other, one)):
            assert np.maximum(p - np.exp(epsilon) * q, 0.0).sum() <= delta_from_psi(psi, epsilon) + 1e-4


def test_the_worst_unit_attains_the_promise():
    """Utility twin: nothing smaller than this psi could be promised."""
    psi = Guarantee.gaussian(sensitivity=STRATEGY.sensitivity(Participation(2)), sigma=SIGMA).psi
    one, other = likelihoods(RULES["always"])
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        found = np.maximum(one - np.exp(epsilon) * other, 0.0).sum()
        assert found == pytest.approx(delta_from_psi(psi, epsilon), rel=1e-3)


def test_a_strategy_priced_as_independent_noise_would_break_the_promise():
    """The test above has teeth: sqrt(2) c_0, as if no period were remembered, is caught."""
    false = Guarantee.gaussian(sensitivity=np.sqrt(8.0), sigma=SIGMA).psi
    one, other = likelihoods(RULES["always"])
    assert np.maximum(one - other, 0.0).sum() > delta_from_psi(false, 0.0) + 0.05


def test_neighbouring_streams_differ_by_no_more_than_the_bound_in_exact_integers():
    """Random totals with and without one unit that keeps its promise, encoded period by period."""
    chance = random.Random("neighbours")
    for _ in range(300):
        n = chance.randint(1, 40)
        c = sorted((chance.randrange(1 << 16) for _ in range(chance.randint(1, n))), reverse=True)
        strategy, apart, at_most = Toeplitz(n, (max(c[0], 1), *c[1:])), chance.randint(1, 8), chance.randint(1, 6)
        norm, place, unit = chance.randint(1, 9), chance.randrange(apart), [0] * n
        while place < n and sum(map(bool, unit)) < at_most:
            unit[place] = chance.randint(-norm, norm)
            place += apart + chance.choice([0, 0, 1, 5])
        others = [chance.randrange(10**12) for _ in range(n)]
        without, joined = (strategy.encode(x) for x in (others, [a + b for a, b in zip(others, unit, strict=True)]))
        moved = sum((a - b) ** 2 for a, b in zip(joined, without, strict=True))
        assert moved <= norm**2 * strategy.squared(Participation(at_most, apart=apart))


def test_under_an_l2_cap_over_the_periods_no_strategy_beats_independent_noise():
    """Then Delta is the largest singular value, and tr(W G^-1 W^T) times its square is at least tr(W W^T)."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        c = np.sort(rng.random(20))[::-1]
        strategy = Toeplitz.floor(20, c)
        matrix = np.array(
            [[(*strategy.coefficients, *[0] * 20)[t - j] if t >= j else 0 for j in range(20)] for t in range(20)]
        )
        questions = rng.normal(size=(7, 20))
        error = np.sum(strategy.deviation(questions) ** 2) * np.linalg.norm(matrix.astype(float), 2) ** 2
        assert error >= np.sum(questions**2) * (1 - 1e-9)


def test_running_sums_of_the_inverse_are_chances_so_that_decoding_cannot_blow_up():
    """c_0 times them lie in [0, 1] for every falling series, which bounds the error of a total and of a period."""
    chance = random.Random("renewal")
    for _ in range(200):
        n = chance.randint(1, 60)
        c = sorted((chance.randrange(1 << chance.choice([1, 4, 16])) for _ in range(n)), reverse=True)
        strategy = Toeplitz(n, (max(c[0], 1), *c[1:]))
        sums = strategy.coefficients[0] * np.cumsum(strategy.inverse())
        assert sums.min() >= -1e-12
        assert sums.max() <= 1.0 + 1e-12
