"""Clipped gradients as integers: no example adds more than the bound, whatever it holds; Python's integers judge."""

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
import torch

from psidp.bridges.torch.step import clipping, contribution, kernel_clipping, squares
from psidp.bridges.torch.step.clipping import ClippedTotals, bound_of
from psidp.bridges.torch.step.contribution import Factors
from psidp.bridges.torch.step.squares import CHUNK, LANES, Squares

CLIPS = [1.0, 0.1, 3.7, 2.0**-100, 1.9999999999999998 * 2.0**100, 1e-12, 1e12]
TYPES = [torch.float32, torch.bfloat16, torch.float64]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small tensors, for which threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def totals(gradients, clip, live=None):
    """What the rows of these gradients add up to, as Python's integers, and how many were undefined."""
    running = ClippedTotals([g[0] for g in gradients], clip)
    rows = gradients[0].shape[0]
    live = torch.ones(rows, dtype=torch.bool) if live is None else live
    undefined = running.add([g.clone() for g in gradients], live)
    return running.units.tolist(), int(undefined)


def length_squared(units):
    return sum(k * k for k in units)


def hostile(rng, kind, shape, dtype):
    """Gradients meant to break a bound: one row each."""
    n = shape[0]
    largest = torch.finfo(dtype).max if dtype != torch.float64 else 2.0**400
    if kind == "normal":
        g = rng.normal(size=n)
    elif kind == "huge":
        g = rng.choice([-1.0, 1.0], n) * largest * rng.uniform(0.5, 1.0, n)
    elif kind == "denormal":
        g = rng.integers(-3, 4, n) * 2.0 ** (-149 if dtype != torch.float64 else -1074)
    elif kind == "equal":
        g = np.full(n, rng.normal() * 10.0 ** rng.integers(-10, 10))
    elif kind == "one-hot":
        g = np.zeros(n)
        g[rng.integers(n)] = rng.normal() * 10.0 ** rng.integers(-20, 20)
    elif kind == "all sizes":
        g = rng.normal(size=n) * 2.0 ** rng.integers(-120, 120, n)
    elif kind == "NaN":
        g = rng.normal(size=n)
        g[rng.integers(n)] = np.nan
    else:
        g = rng.normal(size=n)
        g[rng.integers(n)] = rng.choice([np.inf, -np.inf])
    return torch.from_numpy(g).to(dtype)


KINDS = ["normal", "huge", "denormal", "equal", "one-hot", "all sizes", "NaN", "infinity"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("clip", CLIPS)
def test_neighbouring_batches_differ_by_at_most_the_clip_in_integers(clip, dtype):
    rng = np.random.default_rng([CLIPS.index(clip), TYPES.index(dtype)])
    bound, unit = bound_of(clip)
    assert Fraction(bound) * Fraction(2) ** unit <= Fraction(clip)
    for n in (1, 7, 300):
        rows = torch.stack([hostile(rng, kind, (n,), dtype) for kind in KINDS])
        everyone, undefined = totals([rows], clip)
        assert undefined == 2
        for row in range(len(KINDS)):
            others, _ = totals([torch.cat([rows[:row], rows[row + 1 :]])], clip)
            moved = [a - b for a, b in zip(everyone, others, strict=True)]
            assert length_squared(moved) <= bound**2


@pytest.mark.parametrize("dtype", TYPES)
def test_no_example_on_the_rim_adds_more_than_the_bound(dtype):
    rng, bound, filled = np.random.default_rng(3), bound_of(1.0)[0], 0
    for n in (2, 3, 17, 1000, CHUNK + 1):
        g = rng.normal(size=(12, n))
        g /= np.linalg.norm(g, axis=1, keepdims=True)
        g *= 1.0 + np.linspace(-3, 3, 12)[:, None] * 2.0**-53 if dtype == torch.float64 else 1.0
        for row in torch.from_numpy(g).to(dtype):
            units, _ = totals([row[None]], 1.0)
            assert length_squared(units) <= bound**2
            filled += n < 20 and length_squared(units) > (bound - n) ** 2 * (1 - 2.0**-20)
    assert filled > 2 or dtype == torch.bfloat16  # the bound is reached, so that the test could fail


def test_a_norm_without_slack_would_exceed_the_bound(monkeypatch):
    monkeypatch.setattr(clipping, "SLACK", 1.0 - 2.0**-30)
    bound = bound_of(1.0)[0]
    rows = torch.from_numpy(np.random.default_rng(4).normal(size=(50, 3)))
    assert any(length_squared(totals([row[None]], 1.0)[0]) > bound**2 for row in rows)


def test_a_device_that_flushes_subnormal_numbers_stays_inside_the_bound(monkeypatch):
    def flushed(g):
        return original(torch.where(g.abs() < 2.0**-126, torch.zeros_like(g), g))

    original = squares._squares_of_one
    monkeypatch.setattr(squares, "_squares_of_one", flushed)
    monkeypatch.setattr(clipping, "EXPONENTS", (-140, 100))
    for clip in (2.0**-140, 2.0**-127, 2.0**-100):
        units, _ = totals([torch.full((1, 5000), 2.0**-127)], clip)
        assert length_squared(units) <= bound_of(clip)[0] ** 2


def test_a_gradient_within_the_clip_is_only_cut_to_the_grid():
    g = torch.from_numpy(np.random.default_rng(5).normal(size=(1, 100)).astype(np.float32)) / 20
    assert float(g.norm()) < 1
    units, _ = totals([g], 1.0)
    assert units == [int(Fraction(float(v)) * 2**30) for v in g[0]]  # int cuts toward zero


def test_a_gradient_beyond_the_clip_keeps_its_direction_and_nearly_all_of_the_norm():
    g = torch.from_numpy(np.random.default_rng(6).normal(size=(1, 100))) * 1e5
    units, _ = totals([g], 1.0)
    assert isqrt(length_squared(units)) > 2**30 - 20
    assert float(torch.dot(torch.tensor(units).double(), g[0])) > float(g.norm()) * (2**30 - 20)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("dtype", TYPES)
def test_an_undefined_gradient_adds_zero_in_every_parameter(bad, dtype):
    gradients = [torch.ones(3, 5, dtype=dtype), torch.ones(3, 2, 2, dtype=dtype)]
    gradients[1][1, 0, 1] = bad
    alone = [g[1:2] for g in gradients]
    assert totals(alone, 1.0) == ([0] * 9, 1)
    others = [g[[0, 2]] for g in gradients]
    assert totals(gradients, 1.0)[0] == totals(others, 1.0)[0]


def test_a_float64_norm_beyond_all_squares_counts_as_infinite():
    assert totals([torch.full((1, 4), 1e200, dtype=torch.float64)], 1.0) == ([0] * 4, 1)


def test_the_clip_is_over_all_parameters_together_and_their_order_is_kept():
    gradients = [torch.full((1, 3), 5.0), torch.full((1, 2, 2), -5.0), torch.zeros(1, 0)]
    units, _ = totals(gradients, 1.0)
    assert len(units) == 7
    assert all(k > 0 for k in units[:3])
    assert all(k < 0 for k in units[3:])
    assert 0.999 * 2**60 < length_squared(units) <= 2**60


def test_places_that_are_not_live_add_nothing_and_are_not_counted():
    g = torch.ones(4, 6)
    g[2] = float("nan")
    live = torch.tensor([True, False, False, True])
    assert totals([g], 1.0, live) == (totals([g[[0, 3]]], 1.0)[0], 0)


def test_order_and_splitting_of_a_batch_cannot_matter():
    g = torch.from_numpy(np.random.default_rng(7).normal(size=(40, 200)).astype(np.float32))
    together = ClippedTotals([g[0]], 0.5)
    together.add([g], torch.ones(40, dtype=torch.bool))
    apart = ClippedTotals([g[0]], 0.5)
    for part in g.flip(0).split(7):
        apart.add([part], torch.ones(len(part), dtype=torch.bool))
    assert torch.equal(together.units, apart.units)


def test_gradients_in_any_layout_are_read_right():
    g = torch.from_numpy(np.random.default_rng(8).normal(size=(3, 20, 30)).astype(np.float32))
    assert totals([g.transpose(1, 2).contiguous().transpose(1, 2)], 1.0) == totals([g], 1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kernels_and_plain_version_agree_in_every_integer(dtype, monkeypatch):
    rng = np.random.default_rng(9)
    for size in (CHUNK + 2 * LANES + 5, 15, LANES, 1, 2 * LANES + 1):
        g = torch.from_numpy(rng.normal(size=(5, size))).to(dtype)
        g[0], g[1], g[2], g[3] = g[0] * 1e-4, g[1] * 1e30, g[2] * 0.0, g[3] * 1e-42
        plain = squares._squares_in_doubles(g)
        factor = torch.where(plain > 0, 2.0**30 / plain.sqrt(), 0.0)
        sums, there = torch.zeros(size, dtype=torch.float64), torch.zeros(size, dtype=torch.float64)
        clipping._add_rows(sums, g, factor, 3, as_floats=False)
        with monkeypatch.context() as patch:
            for module in (clipping, squares):
                patch.setattr(module, "kernels_for", lambda g: kernel_clipping)
            patch.setattr(kernel_clipping, "BLOCK", 2048)  # fewer programs: each takes the interpreter its time
            found = Squares([g], len(g), g.device).total
            clipping._add_rows(there, g, factor, 3, as_floats=False)
        assert torch.equal(sums, there)
        assert sums.abs().max() > 2**24
        assert torch.allclose(found, plain, rtol=2.0**-20)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_squares_added_as_floats_are_bounds_and_no_more_than_a_hair_too_large(dtype):
    rng = np.random.default_rng(10)
    for size in (400, 5000, 70_001):
        g = torch.from_numpy(rng.normal(size=(50, size)) * 10.0 ** rng.integers(-25, 25, (50, 1))).to(dtype)
        exact = g.double().square().sum(1)
        found = Squares([g], len(g), g.device).total
        assert bool((found >= exact).all())
        assert bool((found <= exact * (1 + 2.0**-16)).all())


def test_squares_of_rows_and_of_products_stand_side_by_side_and_are_taken_again(monkeypatch):
    """A few examples at a time, by the kernels, in chunks; the second time a product may not have grown."""
    torch.manual_seed(11)
    rows, f = torch.randn(5, LANES), Factors(torch.randn(5, 6, 300), torch.randn(5, 6, 250))
    for module, name, value in (
        (squares, "kernels_for", lambda g: kernel_clipping),
        (contribution, "UNFOLDED", {"cpu": 160_000}),
    ):
        monkeypatch.setattr(module, name, value)
    assert len(list(f.formed())) == 3
    found = Squares([rows, f], 5, rows.device)
    exact = torch.stack([g.double().square().sum(1) for g in (rows, f.gradients())]).sum(0)
    assert bool((found.total >= exact).all())
    assert torch.allclose(found.total, exact, rtol=2.0**-30)
    used = torch.ones(5, dtype=torch.bool)
    assert found.grown(used) is None
    assert torch.equal(torch.cat([some for _, some in found.once_more(f)]), f.gradients())
    assert not found.grown(used)
    f.b[3] *= 1.0 + 2.0**-20
    list(found.once_more(f))
    assert found.grown(used)
    assert not found.grown(torch.arange(5) != 3)


def test_only_floats_on_a_gpu_take_the_kernels(monkeypatch):
    assert squares.kernels_for(torch.zeros(1, 1)) is None

    class Elsewhere:
        device, dtype = type("device", (), {"type": "cuda"}), torch.float32

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert squares.kernels_for(Elsewhere()) is kernel_clipping
    Elsewhere.dtype = torch.float64
    assert squares.kernels_for(Elsewhere()) is None


def test_totals_beyond_what_a_double_holds_end_there():
    running = ClippedTotals([torch.zeros(3)], 1.0)
    running._carried = torch.tensor([2**62, -(2**62), 2**53 - 1])
    noisy = running.noisy(2.0**-40)
    assert noisy.tolist() == [2.0**53, -(2.0**53), 2.0**53 - 1]


def test_totals_meet_the_noise_as_doubles_that_are_exact():
    running = ClippedTotals([torch.zeros(1)], 1.0)
    running._sums.fill_(2**50 + 1)  # not a float32
    assert running.noisy(2.0**-40).tolist() == [2.0**50 + 1]


def test_totals_of_more_examples_than_doubles_add_exactly_go_on_as_integers():
    g = torch.from_numpy(np.random.default_rng(7).normal(size=(40, 200)).astype(np.float32))
    live = torch.ones(10, dtype=torch.bool)
    few, many = (ClippedTotals([g[0]], 0.5, places=places) for places in (20, 1000))
    for part in g.split(10):
        few.add([part], live)
        many.add([part], live)
    assert few._carried is not None
    assert many._carried is None
    assert torch.equal(few.units, many.units)
    assert torch.equal(few.noisy(2.0**-40), many.noisy(2.0**-40))


def test_totals_are_never_shown():
    assert "bound" not in repr(ClippedTotals([torch.zeros(1)], 1.0))


@pytest.mark.parametrize("clip", [0.0, -1.0, float("nan"), float("inf"), 2.0**101, 2.0**-101])
def test_a_clip_outside_its_bounds_is_refused(clip):
    with pytest.raises(ValueError, match=r"clip .* must be in \[2\^-100, 2\^101\), got clip="):
        bound_of(clip)


def test_sums_of_very_many_places_are_put_away_before_a_double_is_full():
    """Beyond 2^20 places at 30 bits a total could reach 2^53, where one more example would move it by more or less."""
    many = ClippedTotals([torch.zeros(1)], 1.0, places=2**24)
    assert many._places * many.bound < 2**52
    many.add([torch.ones(2**20, 1)], torch.ones(2**20, dtype=torch.bool))
    many.add([torch.ones(1, 1)], torch.ones(1, dtype=torch.bool))
    assert many._carried is not None
    assert 0.999 * many.bound < int(many.units) / (2**20 + 1) <= many.bound
    with pytest.raises(ValueError, match=r"micro_batch .* must be at most 1048576, got 1048577"):
        many.add([torch.ones(2**20 + 1, 1)], torch.ones(2**20 + 1, dtype=torch.bool))
