"""No bound claims more than there is: violation rates by simulation, each with the test's own false-alarm rate."""

import numpy as np
import pytest

from auditing.attacks import ATTACKS, most, scores
from psidp import Guarantee, audit

PSIS = (0.0, 0.25, 1.0, 2.0, 3.0)
FALSE_ALARM = 1e-6
"""Chance that one of these tests fails although the bound is valid; seeds are fixed, so it failed or not once."""


def violations(method, psi, n, attacks, repetitions, kappa=0.0, **options):
    rng = np.random.default_rng([int(100 * psi), n, repetitions])
    wrong = 0
    for r in range(repetitions):
        ins, outs = scores(psi, n, n, attacks[r % len(attacks)], rng)
        ins[rng.random(n) < kappa], outs[rng.random(n) < kappa] = np.inf, -np.inf
        claim = Guarantee(psi, kappa)
        result = audit(ins, outs, 0.9, method, claimed=claim, seed=int(rng.integers(1 << 50)), **options)
        wrong += result.refuted or result.psi > psi
    return wrong


@pytest.mark.parametrize("psi", PSIS)
@pytest.mark.parametrize("n", [30, 1000, 10_000])
@pytest.mark.parametrize("method", ["pairs", "threshold", "clopper-pearson"])
def test_pairs_thresholds_and_one_threshold_are_wrong_no_more_often_than_they_say(method, n, psi):
    options = {"threshold": 0.5} if method == "clopper-pearson" else {}
    repetitions = {30: 180, 1000: 90, 10_000: 45}[n]
    wrong = violations(method, psi, n, list(ATTACKS), repetitions, **options)
    assert wrong <= most(repetitions, 0.1, FALSE_ALARM)


@pytest.mark.parametrize("psi", PSIS)
def test_simulated_ranks_are_wrong_no_more_often_than_they_say(psi):
    assert violations("ranks", psi, 25, list(ATTACKS), 135) <= most(135, 0.1, FALSE_ALARM)


@pytest.mark.parametrize("psi", PSIS)
def test_bounded_ranks_are_wrong_no_more_often_than_they_say(psi):
    assert violations("ranks", psi, 2000, list(ATTACKS), 180) <= most(180, 0.1, FALSE_ALARM)


@pytest.mark.parametrize("psi", PSIS)
def test_the_default_is_wrong_no_more_often_than_it_says(psi):
    assert violations("both", psi, 25, list(ATTACKS), 45) <= most(45, 0.1, FALSE_ALARM)
    assert violations("both", psi, 5000, list(ATTACKS), 45) <= most(45, 0.1, FALSE_ALARM)


def test_the_identity_attack_comes_close_to_the_nominal_rate_so_the_test_could_have_failed():
    wrong = violations("pairs", 1.0, 1000, ["identity"], 600)
    assert 30 <= wrong <= most(600, 0.1, FALSE_ALARM)  # below 30 with probability 2e-6 if the rate is 0.09


@pytest.mark.parametrize("method", ["pairs", "ranks"])
def test_one_seed_for_all_audits_is_as_good_as_a_fresh_one_each(method):
    rng = np.random.default_rng(7)
    draws = [scores(1.0, 60, 60, "identity", rng) for _ in range(200)]
    wrong = sum(audit(*draw, 0.9, method, seed=1).psi > 1.0 for draw in draws)
    assert wrong <= most(200, 0.1, FALSE_ALARM)


@pytest.mark.parametrize("method", ["pairs", "ranks", "threshold", "both"])
@pytest.mark.parametrize("n", [40, 3000])
def test_a_claim_with_kappa_is_tested_as_it_is_written(method, n):
    repetitions = 90 if n == 40 else 45
    assert violations(method, 1.0, n, ["identity"], repetitions, kappa=0.1) <= most(repetitions, 0.1, FALSE_ALARM)


@pytest.mark.parametrize("method", ["pairs", "ranks", "threshold", "both"])
@pytest.mark.parametrize("n", [1000, 3000])
def test_failures_that_the_claim_does_not_mention_refute_it(method, n):
    rng = np.random.default_rng(5)
    ins, outs = rng.normal(1, 1, n), rng.normal(0, 1, n)
    ins[: n // 5] = np.inf
    result = audit(ins, outs, 0.95, method, claimed=Guarantee(1.0), seed=1)
    assert result.refuted
    assert result.psi > 1.0
    assert not audit(ins, outs, 0.95, method, claimed=Guarantee(1.0, 0.2), seed=1).refuted


def test_uneven_sides_are_audited_too():
    rng = np.random.default_rng(6)
    for n_in, n_out in [(20, 5000), (5000, 20), (3000, 9000)]:
        wrong = 0
        for r in range(40):
            wrong += audit(rng.normal(1, 1, n_in), rng.normal(0, 1, n_out), 0.9, seed=r).psi > 1.0
        assert wrong <= most(40, 0.1, FALSE_ALARM)
