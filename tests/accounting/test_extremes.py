"""Every account that may be asked for is answered, or refused by name, however extreme the settings are."""

import warnings
from dataclasses import replace
from math import expm1, inf, log1p, nan
from random import Random

import numpy as np
import pytest

from psidp import Guarantee
from psidp.accounting import DPSGD, BandMF, FixedOrder, RandomAllocation, account, calibrate
from psidp.accounting.calibration import described_run, largest_sampling_rate, largest_steps

NOISE = [5e-324, 1e-300, 1e-160, 2.0**-40, 3e-6, 0.05, 1.0, 1e3, 1e11, 1e30, 1e200, 1.7e308]
RATES = [0.0, 5e-324, 1e-300, 1e-20, 1e-8, 0.3, 1.0 - 2.0**-53, 1.0]
STEPS = [1, 3, 100, 2**53]
PSIS = [0.0, 5e-324, 1e-200, 1e-3, 1.0, 50.0, 1e8, 1e154, 1e200, 1.7e308]
KAPPAS = [0.0, 5e-324, 1e-10, 0.5, 1.0 - 2.0**-53]
EPSILONS = [0.0, 5e-324, 1e-9, 1.0, 700.0, 1e300, inf]
DELTAS = [5e-324, 1e-300, 1e-10, 0.3, 1.0 - 2.0**-53]
RATES_OF_ERROR = [0.0, 5e-324, 1e-300, 1e-3, 0.5, 1.0 - 2.0**-53, 1.0]


def event(random):
    kind = random.choice("dddgggbfa")
    noise, steps = random.choice(NOISE), random.choice(STEPS)
    if kind == "g":
        return Guarantee(random.choice(PSIS), random.choice(KAPPAS))
    if kind == "b":
        return BandMF(noise, random.choice([0.0, 1e-300, 1e-8, 0.25]), steps, bands=random.choice([1, 4]))
    if kind == "f":
        return FixedOrder(noise, random.choice([1, 4, 2**53]))
    if kind == "a":
        return RandomAllocation(noise, random.choice([1, 2]), 3)
    return DPSGD(noise, random.choice(RATES), steps, random.choice(["poisson"] * 3 + ["without-replacement"]))


def fits(answer):
    return bool((np.asarray(answer.lower) <= np.asarray(answer.upper)).all())  # false for NaN


@pytest.mark.filterwarnings("error")
def test_no_corner_of_the_domain_gives_nan_a_raw_error_or_a_warning():
    for seed in range(100):
        random = Random(seed)
        events = [event(random)]
        if random.random() < 0.5:
            events += [e for e in [event(random)] if e.adjacency == events[0].adjacency]
        try:
            curve = account(events)
        except ValueError as refusal:
            assert str(refusal).startswith("kappa (probability of outright failure) of all events")  # noqa: PT017
            continue
        assert "nan" not in repr(curve)
        extreme = any(not steps.ordinary or not steps.sampled for steps in curve.above)
        assert fits(curve.epsilon(random.choice(DELTAS))), events
        assert fits(curve.delta(random.choice(EPSILONS))), events
        assert fits(curve.advantage), events
        if extreme:  # of others these take long, and have their own tests
            assert fits(curve.auc), events
            assert fits(curve.roc(random.choice(RATES_OF_ERROR))), events
            assert fits(curve.tradeoff(random.choice(RATES_OF_ERROR))), events
            try:
                assert curve.guarantee(random.choice(KAPPAS)).psi >= 0.0
            except ValueError as refusal:
                assert str(refusal).startswith(("kappa (", "the result is too large for a float"))  # noqa: PT017


def test_what_hardly_any_noise_and_hardly_any_loss_cost():
    """Without noise a run fails with the chance that it samples the record; a Gaussian may be as weak as it likes."""
    run = account(DPSGD(1e-160, 1e-3, 3))
    chance = -expm1(3 * log1p(-1e-3))
    assert run.epsilon(1e-5).upper == inf
    assert run.epsilon(1.01 * chance) == account(DPSGD(1e-160, 1e-3, 3)).epsilon(1.01 * chance)
    assert chance <= run.delta(1.0).upper <= 1.002 * chance
    assert run.advantage.upper <= 1.002 * chance
    weak = account(Guarantee(1e200))
    assert weak.epsilon(1e-5).upper == inf
    assert weak.delta(1.0).lower > 0.99
    assert weak.guarantee(0.0).psi == 1e200
    assert account(DPSGD(1e200, 0.5, 10)).epsilon(0.1).upper <= 1e-100
    assert account([Guarantee(1e200), DPSGD(1.0, 0.01, 10)]).delta(1.0).upper == 1.0


def test_a_run_that_does_not_end_is_refused_by_name():
    for epochs in (inf, nan, 2**60, 0, 1.5, "4"):
        with pytest.raises(ValueError, match=r"^epochs must be"):
            FixedOrder(1.0, epochs=epochs)
        with pytest.raises((ValueError, TypeError), match=r"^epochs"):
            RandomAllocation(1.0, 4, epochs)
    for epochs in (inf, nan, 0.0):
        with pytest.raises(ValueError, match=r"^epochs \("):
            DPSGD(1.0, 0.1, epochs=epochs)
    with pytest.raises(ValueError, match=r"^steps \("):
        DPSGD(1.0, 1e-300, epochs=1)
    assert FixedOrder(1.0, epochs=2**53).psi >= 2**26.5


def test_the_roc_curve_keeps_its_ends_apart_down_to_the_smallest_rate():
    curve = account(DPSGD(1.0, 0.01, 1000))
    low, high = curve.roc([5e-324, 1e-310, 1e-300, 1e-200])
    assert (low <= high).all()
    assert (high <= 1.2 * low).all()
    assert (low[3:] > 0.999999 * high[3:]).all()


RUNS = [
    {"sampling_rate": 0.5, "steps": 1}, {"sampling_rate": 0.01, "steps": 1000}, {"sampling_rate": 0.3, "steps": 2},
    {"sampling_rate": 1.0, "steps": 3}, {"epochs": 4, "order": "fixed"},
    {"sampling_rate": 0.01, "steps": 3, "bands": 8}, {"sampling_rate": 0.1, "steps": 3, "bands": 8},
    {"sampling_rate": 0.01, "steps": 21, "bands": 8},
]  # fmt: skip


def test_calibrated_noise_meets_the_target_and_a_billionth_less_does_not():
    targets = [{"epsilon": 2.0, "delta": 1e-6}, {"epsilon": 0.1, "delta": 1e-9}, {"epsilon": 20.0, "delta": 0.01}]
    for run in RUNS:
        for target in targets:
            noise, delta = calibrate(**run, **target), target["delta"]
            upper = [
                account(replace(described_run(**run), noise_multiplier=z)).epsilon(delta).upper
                for z in (noise, noise * (1 - 1e-9))
            ]
            assert upper[0] <= target["epsilon"] < upper[1], (run, target, noise)
    noise = calibrate(advantage=0.1, sampling_rate=0.5, steps=1)
    assert (
        account(DPSGD(noise, 0.5, 1)).advantage.upper
        <= 0.1
        < account(DPSGD(noise * (1 - 1e-9), 0.5, 1)).advantage.upper
    )
    noise = calibrate(psi=0.5, kappa=1e-8, sampling_rate=0.5, steps=1)
    assert account(DPSGD(noise, 0.5, 1)).guarantee(1e-8).psi <= 0.5


def test_targets_at_the_ends_of_their_domains_are_met_or_refused_by_name():
    run = {"sampling_rate": 0.5, "steps": 1}
    targets = [{"epsilon": e, "delta": d} for e in (5e-324, 1e-300, 1e-5, 1e300) for d in (5e-324, 1e-300, 0.3)]
    targets += [{"epsilon": 1.0, "delta": d} for d in (0.0, 1.0)] + [{"epsilon": e, "delta": 0.1} for e in (0.0, inf)]
    targets += [{"advantage": a} for a in (0.0, 5e-324, 1e-300, 1.0 - 2.0**-53, 1.0)]
    targets += [{"psi": p, "kappa": k} for p in (0.0, 5e-324, 1e300) for k in (0.0, 5e-324, 0.4)]
    refusals = ("epsilon (", "delta (", "advantage (", "psi (", "kappa (", "the target allows any", "no noise_mul",
                "the result is too large")  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for target in targets:
            for call in (
                lambda t: calibrate(**run, **t),
                lambda t: largest_steps(noise_multiplier=2.0, sampling_rate=0.5, **t) if t.get("epsilon") == 1.0 else 0,
                lambda t: largest_sampling_rate(noise_multiplier=2.0, steps=2, **t) if t.get("epsilon") == 1.0 else 0,
            ):
                try:
                    assert 0.0 <= call(target) < inf
                except ValueError as refusal:
                    assert str(refusal).startswith(refusals), (target, str(refusal))  # noqa: PT017
