"""One run: valid under dependence, in the trap and out of it; as tight as its theorem; refusals by name."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from auditing.attacks import most
from psidp import Guarantee, audit, audit_one_run
from psidp.auditing.curves import Approximate, Gaussian
from psidp.auditing.one_run import possible

FALSE_ALARM = 1e-6


def trap(canaries, rng):
    """With probability 0.2 every canary goes through randomised response (epsilon 1.8), else none: 1-GDP a canary."""
    included = rng.random(canaries) < 0.5
    keep = np.exp(1.8) / (1 + np.exp(1.8))
    told = np.where(rng.random(canaries) < keep, included, ~included)
    return included, np.where(rng.random() < 0.2, told, rng.random(canaries) < 0.5) + 1e-3 * rng.random(canaries)


def test_in_the_trap_the_one_run_bound_holds_and_the_bound_for_independent_runs_does_not():
    rng = np.random.default_rng(1)
    fell, held_not = 0, 0
    for r in range(150):
        included, scores = trap(1000, rng)
        fell += audit(scores[included], scores[~included], method="pairs", seed=r).psi > 1.0
        held_not += audit_one_run(included, scores).psi > 1.0
    assert fell > 12  # about one in five: fewer than 13 of 150 with probability 6e-5 at the rate 0.2
    assert held_not <= most(150, 0.05, FALSE_ALARM)
    assert held_not == 0  # far below the nominal rate, as the theorem is not tight here


@pytest.mark.parametrize("psi", [0.0, 0.5, 1.0])
def test_with_independent_canaries_it_is_wrong_no_more_often_than_it_says(psi):
    rng, wrong = np.random.default_rng(2), 0
    for _ in range(120):
        included = rng.random(200) < 0.5
        result = audit_one_run(included, psi * included + rng.standard_normal(200), 0.9, claimed=Guarantee(psi))
        wrong += result.psi > psi or result.refuted
    assert wrong <= most(120, 0.1, FALSE_ALARM)


def test_a_canary_that_says_all_is_caught():
    rng = np.random.default_rng(3)
    included = rng.random(400) < 0.5
    result = audit_one_run(included, included * 1.0 + 0.5, claimed=Guarantee(1.0))
    assert result.psi > 1.2
    assert result.refuted
    assert result.epsilon(1e-5) > 2.5
    assert audit_one_run(included, np.where(included, 1, -1)).psi > 2.0


def test_the_bound_grows_with_the_leak_and_the_canaries():
    rng = np.random.default_rng(4)
    means = []
    for m, psi in product((200, 5000), (1.0, 2.0)):
        bounds = []
        for _ in range(6):
            included = rng.random(m) < 0.5
            bounds.append(audit_one_run(included, psi * included + rng.standard_normal(m)).psi)
        means.append(np.mean(bounds))
    few_small, few_large, many_small, many_large = means
    assert few_small < few_large < many_large
    assert few_small < many_small
    assert many_small > 0.55


def test_pure_privacy_gives_the_binomial_test_of_steinke_and_others_or_a_weaker_one():
    """At most Binomial(r, e^eps/(1 + e^eps)) guesses are right under epsilon-DP; randomised response attains it."""
    for right, made in [(70, 100), (40, 50), (10, 10)]:
        attained = binom.sf(right - 1, made, 1 / (1 + np.exp(-0.5)))
        assert possible(Approximate(0.0), 0.5, right, made, made, attained)
        assert not possible(Approximate(0.0), 0.5, right, made, made, min(100 * attained, 1.0))


def test_every_joint_law_of_a_private_mechanism_is_possible():
    """Brute force: the noisy number of included canaries, psi-GDP for each, tells about all of them together."""
    rng = np.random.default_rng(5)
    runs = 200_000
    for psi, m in product((0.5, 1.0, 2.0), (2, 3, 6)):
        coins = rng.random((runs, m)) < 0.5
        told = psi * coins.sum(axis=1) + rng.standard_normal(runs) > psi * m / 2
        right = (told[:, None] == coins).sum(axis=1)
        for v in range(1, m + 1):
            assert possible(Gaussian(), psi, v, m, m, (right >= v).mean() - 5 / runs**0.5)


def test_ties_are_guessed_wrong_first():
    included = np.array([True, False] * 50)
    assert audit_one_run(included, np.full(100, 7.0)).guesses[-1] == (0, 100)


def test_ready_guesses_are_counted_as_they_are():
    included = np.array([True, False] * 50)
    guesses = np.where(included, 1, -1)
    guesses[:20] = 0
    assert audit_one_run(included, guesses, guesses=80).guesses == ((80, 80),)
    with pytest.raises(ValueError, match="fixed before the scores are seen"):
        audit_one_run(included, guesses)


@pytest.mark.parametrize(
    ("included", "scores", "options", "sentence"),
    [
        ([True, False], [1.0], {}, "one entry a canary, got 2 and 1"),
        ([0.5, 0.0], [1.0, 2.0], {}, "must be True or False"),
        (np.ones(60), np.arange(60.0), {}, "must come from fair coins"),
        ([True, False], [1.5, 2.0], {"guesses": 3}, "whole number from 1 to 2"),
        ([True, False], [1.5, 2.0], {"confidence": 1.0}, "confidence"),
        ([True, False], [1.5, float("nan")], {}, "scores .* must not hold NaN"),
        ([], [], {}, "included .* at least one"),
    ],
)
def test_nonsense_is_refused_by_name(included, scores, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        audit_one_run(included, scores, **options)


def test_one_run_says_what_it_saw():
    rng = np.random.default_rng(6)
    included = rng.random(50) < 0.5
    said = audit_one_run(included, rng.standard_normal(50), claimed=Guarantee(1.0, 1e-3)).to_dict()
    assert said["method"] == "one run"
    assert said["kappa"] == 1e-3
    assert not said["refuted"]
