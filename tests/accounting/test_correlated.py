"""Runs with correlated noise cost what a plain run costs, for the neighbours that they name."""

from math import sqrt

import numpy as np
import pytest

import psidp
from psidp.accounting.calibration import described_run
from psidp.accounting.comparison import compare
from psidp.bridges.dp_accounting import to_dp_event
from psidp.errors import MismatchError
from psidp.maths import sensitivity

CASES = [(1.0, 0.01, 2000, 8), (2.0, 0.01, 2000, 32), (1.5, 0.002, 2000, 16), (3.0, 0.01, 2001, 32)]


@pytest.mark.parametrize(("noise", "rate", "steps", "bands"), CASES)
def test_bands_cost_what_dp_accounting_says_of_cyclic_sampling(noise, rate, steps, bands):
    library = pytest.importorskip("dp_accounting", reason="dp-accounting is an extra of its own")
    pld = pytest.importorskip("dp_accounting.pld")
    run = psidp.BandMF(noise, rate, steps, bands)
    step = library.PoissonSampledDpEvent(bands * rate, library.GaussianDpEvent(noise))
    peer = pld.PLDAccountant().compose(step, -(-steps // bands)).get_epsilon(1e-6)
    assert psidp.account(run).epsilon(1e-6).upper == pytest.approx(peer, abs=2e-6)
    again = pld.PLDAccountant().compose(to_dp_event(run)).get_epsilon(1e-6)
    assert again == pytest.approx(peer, rel=1e-12)


def test_one_band_is_dp_sgd():
    one, plain = psidp.account(psidp.BandMF(1.0, 0.01, 1000, 1)), psidp.account(psidp.DPSGD(1.0, 0.01, 1000))
    assert one.epsilon(1e-5) == plain.epsilon(1e-5)
    assert one.guarantee(1e-10) == plain.guarantee(1e-10)


def test_the_interval_is_tight_where_bands_divide_the_steps_and_open_below_where_not():
    whole = psidp.account(psidp.BandMF(1.0, 0.01, 2000, 8)).epsilon(1e-6)
    assert whole.upper - whole.lower < 1e-9
    part = psidp.account(psidp.BandMF(1.0, 0.01, 2001, 8)).epsilon(1e-6)
    assert part.lower == pytest.approx(whole.lower, rel=1e-9)
    assert part.upper == pytest.approx(psidp.account(psidp.DPSGD(1.0, 0.08, 251)).epsilon(1e-6).upper, rel=1e-12)
    short = psidp.account(psidp.BandMF(1.0, 0.01, 5, 8)).epsilon(1e-6)
    assert short.lower == 0.0 < short.upper


def test_constant_gradients_attain_the_price_and_an_adaptive_rule_does_not_exceed_it():
    """Likelihood ratios of whole runs of 24 steps and 4 bands, class 0: 100,000 each; 5 standard errors of room."""
    rng, steps, bands, rate, noise, runs = np.random.default_rng(7), 24, 4, 0.3, 1.2, 100_000
    c = np.array([1.0, 0.6, 0.4, 0.3])
    sigma, curve = noise * np.linalg.norm(c), psidp.account(psidp.BandMF(noise, rate / bands, steps, bands))
    for adaptive in (False, True):
        ratio, seen = np.zeros(runs), np.zeros(runs)
        for _ in range(steps // bands):
            size = np.where(seen > 0.0, 0.2, 1.0) if adaptive else np.ones(runs)
            coin = rng.random(runs) < rate
            drawn = sigma * rng.standard_normal((runs, bands)) + (coin * size)[:, None] * c
            step = (drawn @ c) * size / sigma**2 - 0.5 * (size * np.linalg.norm(c) / sigma) ** 2
            ratio += np.log1p(rate * np.expm1(step))
            seen = drawn[:, 0]
        for epsilon in (0.5, 1.0):
            lost = np.maximum(-np.expm1(epsilon - ratio), 0.0)
            room, promised = 5.0 * lost.std() / sqrt(runs), curve.delta(epsilon).upper
            assert lost.mean() <= promised + room
            assert adaptive or lost.mean() >= promised - room
            assert not adaptive or lost.mean() < 0.9 * promised


def test_a_fixed_order_has_one_exact_psi():
    for epochs in (1, 4, 9):
        run = psidp.FixedOrder(3.0, epochs, 100)
        assert run.psi == pytest.approx(sqrt(epochs) / 3.0, rel=1e-15)
        assert psidp.account(run).guarantee(0.0) == psidp.Guarantee(run.psi, adjacency="zero-out")
    noise = psidp.calibrate(epsilon=2.0, delta=1e-6, epochs=4, order="fixed")
    assert 1.999999 < psidp.account(psidp.FixedOrder(noise, 4)).epsilon(1e-6).upper <= 2.0


def test_calibrated_bands_meet_the_target_and_hardly_less_noise_does_not():
    for bands in (1, 4, 20):
        noise = psidp.calibrate(epsilon=2.0, delta=1e-6, sampling_rate=0.01, steps=1000, bands=bands)
        assert psidp.account(psidp.BandMF(noise, 0.01, 1000, bands)).epsilon(1e-6).upper <= 2.0
        assert psidp.account(psidp.BandMF(noise * (1 - 1e-6), 0.01, 1000, bands)).epsilon(1e-6).lower > 2.0


def test_a_rate_that_bands_fill_up_to_one_is_taken_as_one():
    assert psidp.BandMF(1.0, 0.1, 100, 10).class_rate == 1.0
    assert psidp.BandMF(1.0, batch_size=10, dataset_size=1000, epochs=2, bands=8).dpsgd.steps == 25


@pytest.mark.parametrize(("made", "said"), [
    (lambda: psidp.BandMF(1.0, 0.2, 100, 6), r"bands \(steps over which noise is correlated\) must be at most 1/sampl"),
    (lambda: psidp.BandMF(1.0, 0.2, 100, 2, "replace-one"), 'adjacency must be "add-remove" or "zero-out" with bands'),
    (lambda: psidp.BandMF(1.0, 0.2, 100, 0), "bands must be a whole number"),
    (lambda: psidp.FixedOrder(1.0, 2, adjacency="add-remove"), "moves all later ones to other batches"),
    (lambda: psidp.FixedOrder(1.0, 1.5), "epochs must be a whole number"),
    (lambda: psidp.BandMF(float("nan"), 0.1, 10, 2), "noise_multiplier"),
    (lambda: described_run(order="random", epochs=1), 'order .* must be "fixed"'),
    (lambda: described_run(order="fixed", epochs=1, sampling_rate=0.1), "order .* does not go with sampling_rate"),
    (lambda: described_run(bands=2, sampling_rate=0.1, steps=3, group=2), "bands .* does not go with group"),
    (lambda: described_run(bands=2, batches=3), "give one of batches"),
], ids=range(10))  # fmt: skip
def test_what_has_no_account_is_refused_by_name(made, said):
    with pytest.raises((ValueError, TypeError), match=said):
        made()


def test_promises_for_other_neighbours_are_never_composed(tmp_path):
    blanked, joined = psidp.BandMF(1.0, 0.01, 100, 4, "zero-out"), psidp.BandMF(1.0, 0.01, 100, 4)
    with pytest.raises(MismatchError, match="adjacency"):
        psidp.account([blanked, joined])
    with pytest.raises(MismatchError, match="adjacency"):
        psidp.compose([psidp.Guarantee(1.0), psidp.Guarantee(1.0, adjacency="zero-out")])
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("models", psi=3.0, kappa=1e-9, actor="Ann", purpose="test")
    with pytest.raises(MismatchError, match="adjacency 'add-remove', got a guarantee with 'zero-out'"):
        ledger.spend("models", blanked, kappa=1e-10, purpose="test").__enter__()
    (tmp_path / "rows.csv").write_text("x\n1\n")
    with pytest.raises(ValueError, match='for a table, got adjacency="zero-out"'):
        psidp.Curator(tmp_path / "rows.csv", None, adjacency="zero-out")
    ledger.dispose()


def test_blanked_records_move_sums_as_far_as_removed_ones():
    for norm in (1.0, 2.5):
        assert sensitivity.clipped_vector(norm, "zero-out") == sensitivity.clipped_vector(norm, "add-remove")
    assert sensitivity.clipped_sum(-1.0, 5.0, "zero-out") == 5.0
    assert sensitivity.histogram("zero-out") == 1.0
    plain, blanked = (psidp.DPSGD(1.0, 0.1, 100, adjacency=side) for side in ("add-remove", "zero-out"))
    assert psidp.account(plain).epsilon(1e-5) == psidp.account(blanked).epsilon(1e-5)


def test_other_methods_are_compared_at_the_price_of_bands():
    rows, plain = (compare(run, 1e-5) for run in (psidp.BandMF(1.0, 0.01, 800, 8), psidp.DPSGD(1.0, 0.08, 100)))
    assert rows == plain
