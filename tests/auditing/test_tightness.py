"""The bounds come close to what there is, and closer with more scores."""

import numpy as np
import pytest

from psidp import audit


def mean_bound(method, n, repetitions, seed=1):
    rng = np.random.default_rng(seed)
    bounds = [audit(rng.normal(1, 1, n), rng.normal(0, 1, n), 0.95, method, seed=r).psi for r in range(repetitions)]
    return np.mean(bounds), 3.0 * np.std(bounds) / repetitions**0.5


@pytest.mark.parametrize(
    ("method", "n", "repetitions", "least"),
    [
        ("ranks", 1000, 12, 0.912),
        ("ranks", 10_000, 100, 0.972),
        ("ranks", 100_000, 12, 0.990),
        ("pairs", 1000, 300, 0.89),
        ("pairs", 10_000, 100, 0.966),
        ("pairs", 100_000, 12, 0.988),
        ("both", 10_000, 60, 0.965),
        ("both", 100_000, 12, 0.989),
    ],
)
def test_the_mean_bound_on_gaussian_scores_is_close_to_psi_one(method, n, repetitions, least):
    mean, error = mean_bound(method, n, repetitions)
    assert mean > least - error  # three standard errors of this mean


def test_both_finds_a_leak_that_sits_in_the_extremes():
    rng = np.random.default_rng(2)
    bounds = []
    for r in range(12):
        ins = rng.normal(0, 1, 10_000) + 4.0 * (rng.random(10_000) < 0.05)
        bounds.append(audit(ins, rng.normal(0, 1, 10_000), seed=r).psi)
    assert np.mean(bounds) > 1.2
    assert audit(ins, rng.normal(0, 1, 10_000), method="ranks", seed=1).psi < 0.3


def test_more_confidence_claims_less():
    rng = np.random.default_rng(3)
    ins, outs = rng.normal(1, 1, 500), rng.normal(0, 1, 500)
    for method in ("pairs", "ranks", "threshold", "both"):
        bounds = [audit(ins, outs, c, method, seed=4).psi for c in (0.8, 0.95, 0.99, 0.999)]
        assert bounds == sorted(bounds, reverse=True)


def test_raising_an_in_score_never_lowers_the_bound():
    rng = np.random.default_rng(4)
    for n in (30, 2000):
        ins, outs = rng.normal(1, 1, n), rng.normal(0, 1, n)
        raised = ins + 0.5 * (rng.random(n) < 0.2)
        for method in ("ranks", "threshold", "both"):
            assert audit(raised, outs, method=method, seed=5).psi >= audit(ins, outs, method=method, seed=5).psi - 1e-5
