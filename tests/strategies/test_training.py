"""Strategies for training leave the least noise in the model, by formula and as measured on simulated optimizers."""

import numpy as np
import pytest

from psidp.strategies.toeplitz import Toeplitz
from psidp.strategies.training import ModelError

FIGURES = {2: 22.4551, 4: 16.0325, 8: 11.5800, 16: 8.5346, 32: 6.4826, 64: 5.1252, 128: 4.2533}
LONG = {2: 158.16, 4: 111.92, 8: 79.27, 16: 56.26, 32: 40.08, 64: 28.74, 128: 20.83}


@pytest.mark.parametrize(("steps", "figures"), [(2000, FIGURES), (100_000, LONG)])
def test_prefix_errors_are_the_best_known_ones(steps, figures):
    error = ModelError("prefix")
    for bands, figure in figures.items():
        assert error.of(error.strategy(steps, bands)) <= figure * (1 + 1e-4)


@pytest.mark.parametrize(("epochs", "buffered"), [(1, 3.27), (4, 7.10), (20, 21.4)])
def test_bands_as_long_as_an_epoch_leave_no_more_than_four_buffers_do(epochs, buffered):
    error = ModelError("prefix")
    assert epochs**0.5 * error.of(error.strategy(2000, 2000 // epochs)) <= buffered


def test_the_error_is_that_of_an_optimizer_that_sees_the_noise():
    """Momentum and decay stepped by hand through the rows of the inverse matrix."""
    steps, momentum, decay = 60, 0.9, 0.02
    for bands in (1, 3, 8):
        error = ModelError("last", momentum, decay)
        strategy = error.strategy(steps, bands)
        c = np.array(strategy.coefficients, float)
        matrix = sum(np.diag(np.full(steps - j, c[j]), -j) for j in range(c.size))
        rows = np.linalg.inv(matrix)
        speed, place, places = np.zeros(steps), np.zeros(steps), []
        for row in rows:
            speed = momentum * speed + row
            place = (1.0 - decay) * place + speed
            places.append(place)
        assert error.of(strategy) == pytest.approx(np.linalg.norm(c) * np.linalg.norm(place), rel=1e-9)
        totals = np.cumsum(rows, axis=0)
        mean = np.mean(np.sum(totals * totals, axis=1))
        assert ModelError("prefix").of(strategy) == pytest.approx(np.linalg.norm(c) * np.sqrt(mean), rel=1e-9)


@pytest.mark.parametrize(("momentum", "decay"), [(0.0, 0.0), (0.9, 0.0), (0.9, 1e-3), (0.5, 0.5)])
def test_what_is_made_for_the_last_step_is_best_there_and_among_its_neighbours(momentum, decay):
    error, prefix, rng = ModelError("last", momentum, decay), ModelError("prefix"), np.random.default_rng(3)
    for steps, bands in ((300, 4), (6000, 16)):
        found = error.strategy(steps, bands)
        assert error.of(found) <= error.of(prefix.strategy(steps, bands)) * (1 + 1e-5)
        assert error.of(found) <= error.of(Toeplitz.independent(steps)) * (1 + 1e-5)
        for _ in range(10):
            near = np.sort(np.array(found.coefficients) * (1 + 0.03 * rng.standard_normal(found.bands)))[::-1]
            assert error.of(Toeplitz.floor(steps, near, 12)) >= error.of(found) * (1 - 1e-4)


def test_workloads_come_back_from_plain_values():
    error = ModelError("last", 0.9, 1e-3)
    assert ModelError.from_dict(error.to_dict()) == error


@pytest.mark.parametrize(("made", "said"), [
    (lambda: ModelError("first"), 'workload must be "prefix" or "last"'),
    (lambda: ModelError("last", 1.0), r"momentum must be in \[0, 1\)"),
    (lambda: ModelError("last", 0.0, float("nan")), "decay"),
    (lambda: ModelError("prefix", 0.9), 'momentum belongs to workload="last"'),
    (lambda: ModelError().strategy(4, 5), "bands must be at most the number of steps, 4, got bands=5"),
])  # fmt: skip
def test_what_is_no_workload_is_refused(made, said):
    with pytest.raises(ValueError, match=said):
        made()
