"""Poisson-sampled DP-SGD: the certified table, its laws, and the same answers by ball arithmetic."""

import numpy as np
import pytest

from psidp.accounting import DPSGD, account
from psidp.accounting.composition import Composition
from psidp.accounting.methods import epsilon_bounds

RUNS = {
    "A": (1.0, 0.01, 1000),
    "B": (0.8, 0.004, 15000),
    "C": (0.6, 0.001, 100000),
    "D": (2.0, 0.05, 2000),
    "E": (1.1, 256 / 60000, 14062),
}
TABLE = [  # run, delta, epsilon to its last digit, half a unit of that digit plus the width printed with it
    ("A", 1e-5, 1.82823666652, 1.5e-11),
    ("A", 1e-8, 2.69786793449, 1e-11),
    ("A", 1e-12, 3.91429815604, 1e-11),
    ("B", 1e-5, 4.37947436007, 1e-11),
    ("B", 1e-8, 5.99236211044, 1e-11),
    ("B", 1e-12, 7.90019651123, 1e-11),
    ("C", 1e-5, 6.11282518361, 1e-11),
    ("C", 1e-8, 8.58475420587, 1e-11),
    ("C", 1e-12, 11.6866130970, 6e-11),
    ("D", 1e-5, 5.47173846117, 1e-11),
    ("D", 1e-8, 7.22548923262, 1e-11),
    ("D", 1e-12, 9.09312410645, 1e-11),
    ("E", 1e-5, 2.38159692142, 1e-11),
    ("E", 1e-8, 3.25055409061, 1e-11),
    ("E", 1e-12, 4.17446869913, 1e-11),
]
GROUPS = [DPSGD(1.0, 0.01, 500), DPSGD(0.8, 0.004, 2000), DPSGD(2.0, 0.05, 300)]


@pytest.mark.parametrize(("name", "delta", "epsilon", "unit"), TABLE)
def test_epsilon_meets_the_certified_table(name, delta, epsilon, unit):
    interval = account(DPSGD(*RUNS[name])).epsilon(delta)
    assert interval.lower - unit <= epsilon <= interval.upper + unit
    assert interval.width <= 1e-9 * interval.lower


def test_heterogeneous_groups_meet_the_certified_values():
    curve = account(GROUPS)
    assert curve.epsilon(1e-5).upper == pytest.approx(2.84356176185, abs=2e-11)
    assert curve.epsilon(1e-12).upper == pytest.approx(5.65529, abs=6e-6)
    assert curve.epsilon(1e-5).width <= 1e-9 * curve.epsilon(1e-5).lower


@pytest.mark.parametrize("delta", [1e-2, 1e-20, 1e-50, 1e-100, 1e-300])
@pytest.mark.parametrize("name", list(RUNS))
def test_large_and_tiny_delta_are_answered(name, delta):
    interval = account(DPSGD(*RUNS[name])).epsilon(delta)
    assert 0.0 < interval.lower <= interval.upper
    assert interval.width <= 1e-8 * interval.lower


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", list(RUNS))
def test_delta_and_epsilon_are_inverse_to_each_other(name, sign):
    steps = Composition.merge([(*RUNS[name], sign)])
    low, high, _ = epsilon_bounds(steps, float(np.log(1e-6)))
    curve = account(DPSGD(*RUNS[name]))
    assert curve.delta(high).upper >= 1e-6 * (1.0 - 1e-8)
    if sign > 0:
        assert curve.delta(low).lower <= 1e-6 * (1.0 + 1e-8)


def test_composing_a_list_equals_composing_its_merge():
    apart = account([DPSGD(1.0, 0.01, 300), DPSGD(1.0, 0.01, 700)]).epsilon(1e-6)
    together = account(DPSGD(1.0, 0.01, 1000)).epsilon(1e-6)
    assert (apart.lower, apart.upper) == (together.lower, together.upper)


def test_order_of_the_list_does_not_matter():
    assert account(GROUPS).epsilon(1e-6) == account(GROUPS[::-1]).epsilon(1e-6)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-11])
def test_loss_falls_with_noise_and_grows_with_rate_and_steps(delta):
    base = account(DPSGD(1.0, 0.01, 1000)).epsilon(delta)
    more_noise = account(DPSGD(1.0 + 1e-6, 0.01, 1000)).epsilon(delta)
    more_rate = account(DPSGD(1.0, 0.01 * (1 + 1e-6), 1000)).epsilon(delta)
    more_steps = account(DPSGD(1.0, 0.01, 1001)).epsilon(delta)
    larger_delta = account(DPSGD(1.0, 0.01, 1000)).epsilon(delta * (1 + 1e-6))
    assert more_noise.upper < base.lower < base.upper < more_rate.lower
    assert base.upper < more_steps.lower
    assert larger_delta.upper < base.lower


def test_vectors_are_answered_like_their_entries():
    curve = account(DPSGD(1.0, 0.01, 1000))
    deltas = np.array([[1e-4, 1e-6], [1e-8, 1e-10]])
    interval = curve.epsilon(deltas)
    assert interval.lower.shape == interval.upper.shape == (2, 2)
    assert interval.upper[1, 0] == curve.epsilon(1e-8).upper
    epsilons = np.linspace(0.0, 6.0, 25)
    both = curve.delta(epsilons)
    assert (both.lower <= both.upper).all()
    assert (np.diff(both.upper) < 0).all()
    for i in (0, 7, 24):
        one = curve.delta(float(epsilons[i]))
        assert one.lower <= both.upper[i]
        assert both.lower[i] <= one.upper


def test_twenty_random_intervals_are_proved_again_by_ball_arithmetic():
    proof = _proof()
    for setting in proof.draw(seed=20261, cases=20):
        lower, upper, _ = epsilon_bounds(proof.composition(setting), float(np.log(setting.delta)))
        proof.prove(setting, lower, upper, 0.9 * proof.saddle(setting).c)


def test_the_proof_refuses_intervals_that_miss_the_truth():
    proof = _proof()
    setting = proof.Setting(1.0, 0.01, 1000, 1e-5, 1)
    steps = Composition.merge([(1.0, 0.01, 1000, 1)])
    lower, upper, _ = epsilon_bounds(steps, float(np.log(1e-5)))
    with pytest.raises(AssertionError, match="is above delta"):
        proof.prove(setting, lower * (1 - 1e-9), upper * (1 - 1e-9), 6.0)
    with pytest.raises(AssertionError, match="is below delta"):
        proof.prove(setting, lower * (1 + 1e-9), upper * (1 + 1e-9), 6.0)


def _proof():
    """The proof script beside this file, as a module."""
    import importlib.util
    import sys
    from pathlib import Path

    if "accounting_proof" not in sys.modules:
        spec = importlib.util.spec_from_file_location("accounting_proof", Path(__file__).with_name("proof.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules["accounting_proof"] = module
        spec.loader.exec_module(module)
    return sys.modules["accounting_proof"]
