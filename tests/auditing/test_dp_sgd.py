"""A real training loop under audit: independent runs and one run, honest and broken."""

import numpy as np
import pytest

from auditing.attacks import most
from auditing.dp_sgd import SIGMA, independent_runs, train
from psidp import Guarantee, audit, audit_one_run

ONE = Guarantee(psi=1.0)


def test_honest_training_is_not_refuted_and_most_of_its_psi_is_found():
    result = audit(*independent_runs(600, np.random.default_rng(1)), 1 - 1e-3, claimed=ONE, seed=1)
    assert not result.refuted  # false-alarm rate 1e-3
    assert result.psi > 0.6


def test_honest_training_is_refuted_no_more_often_than_the_confidence_allows():
    rng = np.random.default_rng(2)
    refuted = sum(audit(*independent_runs(40, rng), 0.9, "pairs", claimed=ONE, seed=r).refuted for r in range(30))
    assert refuted <= most(30, 0.1, 1e-6)


@pytest.mark.parametrize("broken", [{"sigma": 0.8 * SIGMA}, {"clip": 2.0}, {"clip": 1e9}], ids=str)
def test_training_with_too_little_noise_or_clipping_is_refuted(broken):
    assert audit(*independent_runs(800, np.random.default_rng(3), **broken), claimed=ONE, seed=1).refuted


def test_one_training_with_a_thousand_canaries_tells_honest_from_broken():
    rng = np.random.default_rng(4)
    included = rng.random(1000) < 0.5
    honest = audit_one_run(included, train(included, rng), 1 - 1e-3, claimed=ONE)
    assert not honest.refuted  # false-alarm rate 1e-3
    assert honest.psi > 0.2
    assert audit_one_run(included, train(included, rng, sigma=SIGMA / 3), claimed=ONE).refuted
