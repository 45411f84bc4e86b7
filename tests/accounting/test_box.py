"""The DP-SGD box: every random setting is answered with a proved and narrow interval, on every method."""

from itertools import pairwise

import numpy as np
import pytest

from psidp.accounting import DPSGD, account
from psidp.accounting.composition import Composition
from psidp.accounting.contours.contour import Contour
from psidp.accounting.contours.saddle import saddle_at_delta
from psidp.accounting.contours.window import Window
from psidp.accounting.methods import epsilon_bounds
from psidp.accounting.pld.loss_grid import Lattice

CASES = 40
EXTENDED = np.finfo(np.longdouble).nmant == 63


def settings(seed, cases):
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        sigma = float(np.exp(rng.uniform(np.log(0.5), np.log(5.0))))
        q = float(np.exp(rng.uniform(np.log(5e-4), np.log(0.3))))
        steps = int(np.exp(rng.uniform(0.0, np.log(3e5))))
        yield sigma, q, steps, float(10.0 ** rng.uniform(-12.0, -2.0))


def narrow_enough(interval, steps):
    share = 1e-6 if steps >= 50 else 1e-3
    return interval.width <= max(share * interval.lower, 1e-9)


def test_random_settings_are_answered_with_narrow_intervals():
    for sigma, q, steps, delta in settings(31, CASES):
        interval = account(DPSGD(sigma, q, steps)).epsilon(delta)
        assert 0.0 <= interval.lower <= interval.upper < np.inf
        assert narrow_enough(interval, steps) or not EXTENDED, (sigma, q, steps, delta, interval)


@pytest.mark.parametrize("sign", [1, -1])
def test_roads_do_not_contradict_each_other(sign):
    steps, log_delta = Composition.merge([(1.3, 0.02, 20, sign)]), float(np.log(1e-5))
    low, high, _ = epsilon_bounds(steps, log_delta)
    at = np.array([0.5 * (low + high)])
    with np.errstate(all="ignore"):
        saddle = saddle_at_delta(steps, log_delta)
        window = Window.around(steps, saddle.c, saddle.epsilon, log_delta - 25.0)
        methods = [
            Contour(steps, saddle),
            Contour(steps, saddle_at_delta(steps, log_delta, window), 1e-9, window),
            Lattice(steps, float(at[0]), log_delta, 1 << 16),
        ]
        methods += [Contour(steps, saddle, extended=True)] if EXTENDED else []
        bounds = [method.log_delta(at) for method in methods]
    assert max(lower[0] for lower, _ in bounds) <= min(upper[0] for _, upper in bounds)
    assert all(abs(upper[0] - log_delta) < 0.01 for _, upper in bounds)


def test_the_fft_table_agrees_with_the_matrix_product(monkeypatch):
    steps = Composition.merge([(1.1, 0.004, 2000, 1), (0.9, 0.01, 50, -1)], 0.01)
    with np.errstate(all="ignore"):
        saddle = saddle_at_delta(steps, float(np.log(1e-8)))
        dense = Contour(steps, saddle)
        monkeypatch.setattr("psidp.accounting.contours.mgf_table.DENSE_LIMIT", 0.0)
        binned = Contour(steps, saddle)
    assert np.abs(dense.real - binned.real).max() < 1e-11
    assert np.abs(dense.phase - binned.phase).max() < 1e-11


def test_intervals_of_neighbours_never_contradict_monotony():
    for sigma, q, steps, delta in settings(32, 6):
        if steps < 2:
            continue
        chain = [
            account(DPSGD(sigma * 1.01, q, steps)).epsilon(delta),
            account(DPSGD(sigma, q, steps)).epsilon(delta),
            account(DPSGD(sigma, min(q * 1.01, 1.0), steps)).epsilon(delta),
            account(DPSGD(sigma, min(q * 1.01, 1.0), steps + 1)).epsilon(delta),
            account(DPSGD(sigma, min(q * 1.01, 1.0), steps + 1)).epsilon(delta / 1.1),
        ]
        for less, more in pairwise(chain):
            assert less.lower <= more.upper
