"""Correlated noise on totals: exact in integers, of the right covariance, no further from a neighbour than promised."""

import copy
import os
import pickle
from math import sqrt

import numpy as np
import pytest
import torch

import psidp
from psidp.bridges.torch.noise.tensors import add_noise_
from psidp.bridges.torch.training import correlated
from psidp.bridges.torch.training.correlated import CorrelatedNoise, fineness_for
from psidp.strategies import ModelError, Toeplitz

torch.set_num_threads(1)
CPU = torch.device("cpu")


def noise_for(strategy, size, **more):
    return CorrelatedNoise(strategy, size, CPU, 1.0, **more)


def test_error_feedback_is_encode_then_decode_in_every_bit(monkeypatch):
    """The same whole noise from the exact sampler on both roads; Python's integers on the second."""
    steps, size, sigma = 25, 4000, 2.0**27
    strategy = ModelError().strategy(steps, 6)
    c, wide = strategy.coefficients, strategy.sensitivity(correlated.ONCE, sigma)
    drawn = [add_noise_(torch.zeros(size, dtype=torch.float64), wide, grid=1.0) for _ in range(steps)]
    rng = np.random.default_rng(1)
    totals = [torch.from_numpy(rng.integers(-(2**30), 2**30, size)) for _ in range(steps)]
    source = iter(drawn)

    def scripted(tensor, asked, grid=None):
        assert asked == wide
        return tensor.add_(next(source))

    monkeypatch.setattr(correlated, "add_noise_", scripted)
    noise, given = noise_for(strategy, size, grid=1.0), []
    for step, x in enumerate(totals):
        noise.at(step)
        given.append([int(g) for g in noise(x.clone(), sigma).tolist()])
    exact = [[int(n) for n in row.tolist()] for row in totals]
    whole = [[int(n) for n in row.tolist()] for row in drawn]
    decoded = []
    for t in range(steps):
        ages = range(min(t + 1, len(c)))
        released = [sum(c[j] * exact[t - j][i] for j in ages) + whole[t][i] for i in range(size)]
        rest = [released[i] - sum(c[j] * decoded[t - j][i] for j in ages if j) for i in range(size)]
        decoded.append([(r + c[0] // 2) // c[0] for r in rest])
    assert given == decoded


def test_the_noise_has_the_covariance_of_the_strategy():
    """20,000 runs at once, one a parameter; 60 entries, each within five standard errors."""
    steps, size, sigma = 12, 20_000, 2.0**24
    strategy = ModelError().strategy(steps, 4)
    c = np.array(strategy.coefficients, float)
    matrix = sum(np.diag(np.full(steps - j, c[j]), -j) for j in range(c.size))
    wanted = np.linalg.inv(matrix.T @ matrix) * (sigma * np.linalg.norm(c)) ** 2
    noise, rng, rows = noise_for(strategy, size), np.random.default_rng(2), []
    for step in range(steps):
        x = torch.from_numpy(rng.integers(-(2**28), 2**28, size))
        noise.at(step)
        rows.append((noise(x.clone(), sigma) - x).numpy())
    found = np.cov(np.array(rows))
    room = np.sqrt((wanted**2 + np.outer(np.diag(wanted), np.diag(wanted))) / size)
    assert np.abs((found - wanted) / room).max() < 5.0
    totals = np.cumsum(rows, axis=0)
    independent = sigma**2 * np.arange(1, steps + 1)
    assert totals.var(axis=1).mean() < 0.7 * independent.mean()


def differences(rng, strategy, plan, size, bound):
    """Squared lengths, block by block, of the difference of what two neighbours encode where releases are the same.

    plan: for each step whether the record takes part, and whether the step fails, or is the first after a kill.
    """
    encoded = []

    def replayed(tensor, sigma, grid=None):
        encoded.append(tensor.numpy().copy())
        return tensor.copy_(torch.from_numpy(replies[len(encoded) - 1]))

    worlds = []
    others = [rng.integers(-(2**20), 2**20, size) for _ in plan]
    replies = [rng.integers(-(2**34), 2**34, size).astype(float) for _ in plan]
    added = [unit(rng, size, bound) for _ in plan]
    for present in (True, False):
        noise, rows = noise_for(strategy, size), []
        for step, (takes_part, fate) in enumerate(plan):
            if fate == "killed":
                noise = noise_for(strategy, size)
            if fate == "failed":
                rows.append(np.zeros(size))
                encoded.append(None)
                continue
            x = others[step] + (added[step] if present and takes_part else 0)
            noise.at(step)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(correlated, "add_noise_", replayed)
                noise(torch.from_numpy(x), 2.0**20)
            rows.append(encoded[-1])
        worlds.append(np.array(rows))
        encoded.clear()
    return ((worlds[0] - worlds[1]) ** 2).sum(axis=1)


def unit(rng, size, bound):
    """A whole vector of norm at most the bound, often at it."""
    v = rng.standard_normal(size) * rng.integers(0, 2, size)
    norm = np.linalg.norm(v)
    return np.trunc(v * (bound / norm)).astype(np.int64) if norm else np.zeros(size, np.int64)


def test_neighbours_encode_no_further_apart_than_promised_in_300_runs_with_failures_and_kills():
    rng, closest = np.random.default_rng(3), 0.0
    for case in range(300):
        bands, size, bound = int(rng.integers(1, 7)), int(rng.integers(1, 5)), 2**18
        steps = int(rng.integers(bands, 5 * bands + 2))
        c = np.sort(rng.integers(1, 4097, bands))[::-1]
        strategy = Toeplitz(steps, (4096, *map(int, c[1:])))
        klass, fates = int(rng.integers(bands)), ["", "", "", "", "failed", "killed"]
        calm = case % 3 == 0
        plan = [
            (t % bands == klass and rng.random() < 0.7, "" if calm or t == 0 else rng.choice(fates))
            for t in range(steps)
        ]
        rows = differences(rng, strategy, plan, size, bound)
        most = sum(n * n for n in strategy.coefficients) * bound**2
        for start in range(klass, steps, bands):
            block = rows[start : start + bands].sum()
            assert block <= most
            closest = max(closest, block / most)
            if not (plan[start][0] and plan[start][1] != "failed"):
                assert block == 0.0
        assert rows[:klass].sum() == 0.0
    assert closest > 0.999


def test_a_buffer_that_forgot_which_step_it_is_of_would_break_the_promise():
    """What `at` is for: a step that failed, taken as if it had not been there, lets a column grow beyond its block."""
    rng = np.random.default_rng(4)
    strategy, plan = Toeplitz(8, (4096, 4000, 3900)), [(t == 0, "failed" if t == 1 else "") for t in range(8)]
    rows = differences(rng, strategy, plan, 3, 2**18)
    assert rows[3:].sum() == 0.0
    with pytest.MonkeyPatch.context() as patch:
        naive = CorrelatedNoise._earlier

        def whatever_is_there(self, step):
            held, self._held = self._held, [step - 1 - (step - 1 - p) % 2 for p in range(2)]
            try:
                return naive(self, step)
            finally:
                self._held = held

        patch.setattr(CorrelatedNoise, "_earlier", whatever_is_there)
        shifted = [(t == 0, "failed" if t in (2, 3) else "") for t in range(8)]
        assert differences(rng, strategy, shifted, 3, 2**18)[3:].sum() > 0.0


def scores(strategy, sigma, rate, present, runs=20_000):
    """Likelihood ratios of whole runs, one a parameter: a record with constant gradients 2^20 in class 0."""
    bands, rng = strategy.bands, np.random.default_rng(6 + present)
    noise, ratio = noise_for(strategy, runs), np.zeros(runs)
    c = np.array(strategy.coefficients, float)
    wide, before, block = sigma * np.linalg.norm(c), [], np.zeros(runs)
    for step in range(strategy.periods):
        x = np.where(present & (rng.random(runs) < rate) & (step % bands == 0), 2**20, 0)
        noise.at(step)
        given = noise(torch.from_numpy(x), sigma).numpy()
        encoded = c[0] * given + sum(c[j] * g for j, g in enumerate(before[: bands - 1], 1))
        before.insert(0, given)
        shift = c[step % bands] * 2.0**20
        block += encoded * shift / wide**2 - 0.5 * (shift / wide) ** 2
        if step % bands == bands - 1:
            ratio, block = ratio + np.log1p(rate * np.expm1(block)), np.zeros(runs)
    return ratio


def test_an_audit_of_a_banded_run_agrees_with_its_price_and_finds_a_wrong_one():
    strategy, rate = ModelError().strategy(16, 4), 0.5
    honest = psidp.account(psidp.BandMF(1.0, rate / 4, 16, 4)).guarantee(1e-6)
    found = psidp.audit(*(scores(strategy, 2.0**20, rate, present) for present in (True, False)), claimed=honest)
    assert 0.7 * honest.psi < found.psi <= honest.psi
    wrong = psidp.audit(*(scores(strategy, 2.0**19, rate, present) for present in (True, False)))
    assert wrong.psi > honest.psi


def test_totals_are_as_fine_as_32_bits_for_what_was_wrong_allow():
    for bands, multiplier in ((2, 0.5), (8, 1.0), (8, 20.0), (64, 2.0)):
        strategy = ModelError().strategy(500, bands)
        fineness = fineness_for(strategy, multiplier)
        spread = np.linalg.norm(strategy.inverse()) * sqrt(strategy.squared(correlated.ONCE)) * multiplier
        assert 12 * spread * 2.0 ** (fineness + 1) <= 2**31
        assert 12 * spread * 2.0 ** (fineness + 2) > 2**31 or fineness == 30
    assert fineness_for(strategy, 2.0**90) == 16


def test_huge_totals_end_at_the_reach_and_do_not_wrap_around():
    noise = noise_for(Toeplitz(4, (4096, 2048)), 2)
    for step in range(3):
        noise.at(step)
        given = noise(torch.tensor([2**62, -(2**62)]), 2.0**20)
        assert given[0] > 2**40 > -(2**40) > given[1]


def test_what_it_keeps_is_neither_copied_nor_shown_nor_carried_through_a_fork():
    noise = noise_for(Toeplitz(4, (4096, 2048)), 2)
    noise.at(0)
    noise(torch.tensor([5, 7]), 2.0**20)
    assert repr(noise) == "CorrelatedNoise(bands=2)"
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="must not be copied"):
            copied(noise)
    noise.at(1)
    child = os.fork()
    if not child:
        try:
            noise(torch.tensor([5, 7]), 2.0**20)
        except RuntimeError as error:
            os._exit(0 if "fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    noise.wipe()
    assert not noise._ring.any()


def test_steps_come_in_order_each_once_and_are_told_first():
    noise = noise_for(Toeplitz(4, (4096, 2048)), 1)
    with pytest.raises(RuntimeError, match="must be told its step first"):
        noise(torch.tensor([1]), 2.0**20)
    noise.at(2)
    noise(torch.tensor([1]), 2.0**20)
    for step in (2, 1, 4):
        with pytest.raises(RuntimeError, match=f"step {step} must come after step 2, and before step 4"):
            noise.at(step)
    with pytest.raises(ValueError, match="strategy must begin with a power of two, got 5"):
        noise_for(Toeplitz(4, (5, 1)), 1)


def test_a_step_that_breaks_off_half_way_is_forgotten(monkeypatch):
    noise, real, calls = noise_for(Toeplitz(9, (4096, 3000, 2000)), 6), correlated.add_noise_, []

    def breaks(tensor, sigma, grid=None):
        calls.append(tensor.clone())
        if len(calls) == 5:
            raise RuntimeError("out of memory")
        return real(tensor, sigma, grid=grid)

    monkeypatch.setattr(correlated, "add_noise_", breaks)
    monkeypatch.setattr(correlated, "PART", {"cpu": 2})
    for step in range(3):
        noise.at(step)
        if step == 1:
            with pytest.raises(RuntimeError, match="out of memory"):
                noise(torch.full((6,), 2**20), 2.0**20)
        else:
            noise(torch.full((6,), 2**20), 2.0**20)
    first = noise._ring[0].clone()
    assert noise._held == [2, None]
    assert (torch.cat(calls[-3:]) - 4096 * 2**20 != 0).all()  # step 0, remembered with c_2
    noise.at(3)
    noise(torch.zeros(6, dtype=torch.int64), 2.0**20)
    assert torch.equal(torch.cat(calls[-3:]), 3000.0 * first.double())  # step 2 alone
