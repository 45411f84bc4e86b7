"""x plus noise on a grid: exact from end to end, for every x, sigma and layout; dice that nobody shares."""

import os
import threading
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from psidp.noise import normal_source as dice_module
from psidp.noise.gaussian import RoundedGaussian
from psidp.noise.normal_source import SMALL, NormalSource, borrowed

STRANGE = [0.0, -0.0, 5e-324, -2.2e-308, 0.1, -1.0, 1e20, 3e25, 1e300, -1e300, np.nan, np.inf, -np.inf]


@pytest.fixture
def scripted(monkeypatch, script):
    """Put scripted dice where the idle ones lie."""

    def put(words=(), seed=0):
        dice = NormalSource(script(words, seed))
        monkeypatch.setattr(dice_module, "_idle", [dice])
        return dice

    return put


def cleaned(x, limit):
    """The value that counts: NaN is 0, and nothing lies beyond the limit."""
    return 0.0 if np.isnan(x) else min(max(x, -limit), limit)


@pytest.mark.parametrize("sigma", [1e-290, 1.3e-8, 1.0, 3.7, 1e9, 1e290])
@pytest.mark.parametrize("n", [1500, 6000])
def test_every_result_is_the_rounding_of_x_plus_a_real_normal(scripted, both_roundings, interval, sigma, n):
    rng = np.random.default_rng(1)
    gaussian = RoundedGaussian(sigma)
    x = np.concatenate([rng.normal(0, 3 * sigma, n - len(STRANGE)), STRANGE])
    dice = scripted(seed=2)
    ready, seen = dice.ready, []
    dice.ready = lambda k: seen.append(ready(k)) or seen[-1]
    dice.wipe = lambda k: None
    result = gaussian.add(x).tolist()
    slots, words = (p.tolist() for p in (seen[0] if n <= SMALL else (dice.slot[:n], dice.word[:n])))
    for i in range(n):
        steps = Fraction(cleaned(x[i], gaussian.limit)) / Fraction(gaussian.grid)
        low, high = both_roundings(slots[i], words[i], Fraction(sigma) / Fraction(gaussian.grid), steps)
        assert result[i] in (float(low * Fraction(gaussian.grid)), float(high * Fraction(gaussian.grid)))
        assert high - low <= 1


@pytest.mark.parametrize("sigma", [1e-290, 1.0, 1e290])
def test_one_value_is_the_rounding_of_x_plus_a_real_normal(scripted, both_roundings, sigma):
    gaussian = RoundedGaussian(sigma)
    dice = scripted(seed=3)
    one, seen = dice.one, []

    def watched():
        value, place = one()
        seen.append(dice.single(place))
        return value, place

    dice.one = watched
    for x in STRANGE * 20:
        result = gaussian.add_one(x)
        steps = Fraction(cleaned(x, gaussian.limit)) / Fraction(gaussian.grid)
        low, high = both_roundings(*seen[-1], Fraction(sigma) / Fraction(gaussian.grid), steps)
        assert result in (float(low * Fraction(gaussian.grid)), float(high * Fraction(gaussian.grid)))


def test_a_subnormal_x_on_a_coarse_grid_is_still_seen_by_the_integers():
    """x/grid is no double there; the exact road must use x itself."""
    gaussian = RoundedGaussian(2.0**900)
    assert gaussian._offset(5e-324, 0.0) == Fraction(1, 2 ** (1074 + 876))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [SMALL, 10 * SMALL])
def test_a_zero_has_no_sign_that_tells_where_x_was(dtype, n):
    released = RoundedGaussian(1.0, 1.0).add(np.full(n, -1e-30, dtype))
    assert (released == 0).sum() > n / 4
    assert not np.signbit(released[released == 0]).any()


@pytest.mark.parametrize("sigma", [1e-290, 1e-3, 1.0, 1e290])
def test_noise_has_its_scale_and_lies_on_its_grid(sigma):
    """The mean square of 10^5 draws is off by 3 % with probability below 1e-10."""
    gaussian = RoundedGaussian(sigma)
    noise = gaussian.noise(100_000)
    assert np.isfinite(noise).all()
    assert (np.rint(noise / gaussian.grid) * gaussian.grid == noise).all()
    assert np.mean((noise / sigma) ** 2) == pytest.approx(1.0, rel=0.03)
    assert 2**24 <= sigma / gaussian.grid < 2**25


def test_nothing_is_said_about_nan_and_infinity():
    x = np.array(STRANGE * 500)
    with np.errstate(all="raise"):
        result = RoundedGaussian(1.0).add(x).reshape(-1, len(STRANGE))
    limit = RoundedGaussian(1.0).limit
    assert np.isfinite(result).all()
    assert abs(result[:, STRANGE.index(1e300)] / 1e300 - 1).max() == 0
    assert (abs(result[:, -2]) == limit).all()
    assert (abs(result[:, -3]) < 10).all()


@pytest.mark.parametrize("shape", [(), (1,), (7, 11), (0,), (3, 0), (2, 40_000), (5000,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shape_and_type_are_kept(shape, dtype):
    x = np.ones(shape, dtype)
    result = RoundedGaussian(0.5).add(x)
    assert (result.shape, result.dtype) == (shape, dtype)


def test_out_may_be_the_input_and_needs_no_second_array():
    x = np.zeros(2_000_000)
    gaussian = RoundedGaussian(1.0)
    gaussian.noise(1)
    with borrowed():
        pass
    tracemalloc.start()
    result = gaussian.add(x, out=x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result is x
    assert peak < x.nbytes / 4
    assert 0.9 < x.std() < 1.1


def test_views_and_overlaps_come_out_right():
    gaussian = RoundedGaussian(2.0**-30)
    x = np.arange(12000.0)
    for source in (x[::3], x[::-1], x.reshape(100, 120).T, x[5:7000]):
        assert abs(gaussian.add(source) - source).max() < 1e-7
    columns = np.asfortranarray(x.reshape(100, 120))
    assert gaussian.add(columns, out=columns) is columns
    assert abs(columns - x.reshape(100, 120)).max() < 1e-7
    target = np.zeros((6000, 2))
    assert gaussian.add(x[:6000], out=target[:, 0]) is not None
    assert abs(target[:, 0] - x[:6000]).max() < 1e-7
    assert not target[:, 1].any()
    shifted = np.arange(12000.0)
    gaussian.add(shifted[:-1], out=shifted[1:])
    assert abs(shifted[1:] - x[:-1]).max() < 1e-7


def test_the_offset_of_whole_steps_is_honoured(scripted):
    """Integer totals come as whole and fraction: round(1/4 + scale N) has the mean 1/4."""
    gaussian = RoundedGaussian(1.0, grid=1.0)
    offset = np.full(400_000, 0.25)
    steps = gaussian.steps(offset, lambda i: Fraction(1, 4))
    assert (steps == np.rint(steps)).all()
    assert abs(steps.mean() - 0.25) < 6.5 / np.sqrt(400_000)  # perfect dice fail with 1e-9


@pytest.mark.parametrize("sigma", [0.0, -1.0, np.nan, np.inf, 1e300, 1e-300])
def test_sigma_is_refused_before_anything_is_drawn(sigma, scripted):
    dice = scripted()
    with pytest.raises(ValueError, match=r"sigma \(standard deviation of the noise\) must be in"):
        RoundedGaussian(sigma)
    assert dice.words.drawn == 0


@pytest.mark.parametrize("grid", [0.0, -0.5, 0.3, np.nan, np.inf, 2.0, 2.0**-50, "1"])
def test_a_grid_that_is_no_power_of_two_between_the_bounds_is_refused(grid):
    with pytest.raises(ValueError, match=r"grid \(step of the released values\) must be"):
        RoundedGaussian(1.0, grid=grid)


def test_a_grid_whose_inverse_is_no_double_is_refused():
    """x/grid would be 0 or infinite and nothing in between: a step that no sensitivity survives."""
    with pytest.raises(ValueError, match=r"grid \(step of the released values\) must be"):
        RoundedGaussian(2.0**-990, grid=2.0**-1030)
    assert RoundedGaussian(2.0**-990, grid=2.0**-1020).add_one(2.0**-1000) < 2.0**-980


def test_arithmetic_that_is_not_ieee_is_refused(monkeypatch):
    monkeypatch.setattr(np, "float64", lambda v: v if v == 1.0 else 0.0)
    with pytest.raises(ArithmeticError, match="IEEE 754"):
        RoundedGaussian(1.0)


def test_children_share_no_noise_with_each_other_or_their_parent():
    """Pools are dropped at a fork: single values, small and large vectors."""
    gaussian = RoundedGaussian(2.0**44, grid=1.0)

    def batch():
        return np.concatenate([[gaussian.add_one(0.0)], gaussian.noise(500), gaussian.noise(3000)])

    batch()
    parts = []
    for _ in range(2):
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(send, batch().tobytes())
            os._exit(0)
        os.close(send)
        with os.fdopen(receive, "rb") as pipe:
            parts.append(np.frombuffer(pipe.read()))
        os.waitpid(child, 0)
    parts.append(batch())
    everything = np.concatenate(parts)
    assert everything.size == 3 * 3501
    assert np.unique(everything).size == everything.size  # a chance repeat: 9e-7


def test_threads_share_no_noise():
    gaussian = RoundedGaussian(2.0**44, grid=1.0)
    parts = []

    def work():
        own = [gaussian.noise(50) for _ in range(20)]
        own.append(np.array([gaussian.add_one(0.0) for _ in range(500)]))
        parts.append(np.concatenate(own))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = np.concatenate(parts)
    assert np.unique(everything).size == everything.size == 6 * 1500  # a chance repeat: 6e-7


def test_dice_are_held_by_one_caller_at_a_time(monkeypatch):
    """Also when a signal handler draws in the middle of a draw: it finds other dice."""
    monkeypatch.setattr(dice_module, "_idle", [])
    with borrowed() as outer:
        with borrowed() as inner:
            assert inner is not outer
        with borrowed() as again:
            assert again is inner
    with pytest.raises(RuntimeError, match="broken"), borrowed() as dice:
        raise RuntimeError("broken")
    assert dice not in dice_module._idle


def test_a_machine_that_wakes_up_from_a_snapshot_can_forget(monkeypatch):
    gaussian = RoundedGaussian(1.0)
    gaussian.add_one(0.0)
    with borrowed() as before:
        pass
    dice_module.forget()
    with borrowed() as after:
        assert after is not before


def test_each_release_has_a_key_of_its_own(scripted):
    gaussian = RoundedGaussian(1.0)
    dice = scripted()
    for _ in range(3):
        gaussian.noise(SMALL + 1)
    assert dice.words.keys == 3
    gaussian.noise(10)
    assert dice.words.keys == 4  # the pool, once
    gaussian.add_one(0.0)
    assert dice.words.keys == 4


def test_what_was_drawn_is_forgotten(scripted):
    gaussian = RoundedGaussian(1.0)
    dice = scripted()
    gaussian.noise(5000)
    gaussian.noise(100)
    for scratch in (dice.word, dice.slot, dice.near, dice.away):
        assert not scratch[:5000].any()


def test_how_many_words_a_small_release_takes_depends_on_its_length_alone(scripted):
    """Fixed batches, drawn before the values are known: sixteen seeds, one count."""
    gaussian = RoundedGaussian(1.0)
    counts = set()
    for seed in range(16):
        dice = scripted(seed=seed)
        for n in (1, 100, 2048, 7):
            gaussian.noise(n)
        gaussian.add_one(1e5 * seed)
        counts.add(dice.words.drawn)
    assert len(counts) == 1
