"""The kernels in Triton's interpreter: bit for bit with NumPy, and true to exact rationals, on the same key stream."""

import dataclasses
import os
from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from psidp.bridges.torch.noise import host_fallback, launch
from psidp.bridges.torch.noise.chacha import FAST, LAST, MORE, PROPOSAL, Key, blocks
from psidp.bridges.torch.noise.host_fallback import Layout, settled_values, steps_at
from psidp.bridges.torch.noise.kernel_slow import _cell
from psidp.bridges.torch.noise.replay import replayed
from psidp.bridges.torch.noise.tables import tables
from psidp.noise import table
from psidp.noise.gaussian import RoundedGaussian

SIGMA = 1.3
NARROW, WIDE, SHORT, COARSE = 2.0**-20, 2.0**-24, 2.0**-7, 1.0
STRANGE = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-40, 3e38, -3e38]
BITS = {torch.float64: torch.int64, torch.float32: torch.int32, torch.bfloat16: torch.int16}


def key(seed):
    return Key(np.random.default_rng(seed).integers(0, 2**32, 8, np.uint32))


def launched(x, noise, seed, block=512, rounds=20):
    """x after the kernels, and the layout of its key stream."""
    shape = launch.Shape(block=block, lanes=1024, programs=1)
    layout = launch.layout_of(noise, x, shape, rounds)
    noisy = x.clone()
    with np.errstate(all="ignore"):
        launch.add(noisy, noise, key(seed), layout, shape)
    return noisy, layout


def bits(values, dtype):
    """Doubles as the bits that a tensor of this type holds."""
    values = torch.as_tensor(values, dtype=torch.float64)
    return (values if dtype == torch.float64 else values.to(torch.float32).to(dtype)).view(BITS[dtype])


def mixed(n, grid, dtype, seed):
    """Values of all sizes, halves of the grid, and those that are no numbers."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n) * 10.0 ** rng.integers(-3, 6, n)
    x[: n // 3] = rng.integers(-(2**25), 2**25, n // 3) * (grid / 2)
    x[: len(STRANGE)] = STRANGE
    return torch.from_numpy(x).to(dtype)


@pytest.mark.parametrize("many", [1, 100])
def test_the_key_stream_is_chacha20_as_the_library_has_it(many):
    for seed in range(5):
        numbers, serial, domain = np.arange(many, dtype=np.uint64) + np.uint64(2**40 + seed), 7, LAST
        ours = blocks(key(seed), numbers, serial, domain)
        for column in {0, many - 1}:
            number = int(numbers[column])
            nonce = b"".join(word.to_bytes(4, "little") for word in (number % 2**32, number >> 32, serial, domain))
            cipher = Cipher(algorithms.ChaCha20(key(seed).words.tobytes(), nonce), None).encryptor()
            assert ours[:, column].tobytes() == cipher.update(bytes(64))


@pytest.mark.parametrize(
    ("rounds", "begin"), [(8, "3e00ef2f895f40d6"), (12, "9bf49a6a0755f953"), (20, "76b8e0ada0f13d90")]
)
def test_ciphers_with_fewer_rounds_have_their_published_blocks(rounds, begin):
    zero = Key(np.zeros(8, np.uint32))
    assert blocks(zero, np.zeros(1, np.uint64), 0, FAST, rounds)[:, 0].tobytes()[:8].hex() == begin


@pytest.mark.parametrize(
    ("dtype", "sigma", "grid", "n"),
    [
        (torch.float32, SIGMA, NARROW, 2**17 + 77),
        (torch.float32, 1.99, NARROW, 2**15),
        (torch.float32, SIGMA, COARSE, 2**14 + 1),
        (torch.float32, 1e30, 2.0**80, 2**14),
        (torch.bfloat16, SIGMA, NARROW, 2**15 + 5),
        (torch.bfloat16, SIGMA, SHORT, 2**16 + 5),
        (torch.bfloat16, 1.999, SHORT, 2**15),
        (torch.bfloat16, 1.7, 1.0, 2**14),
        (torch.float32, SIGMA, SHORT, 2**15 + 7),
        (torch.float32, SIGMA, 2.0**-8, 2**14),
        (torch.float32, SIGMA, WIDE, 2**14 + 3),
        (torch.float64, SIGMA, WIDE, 2**15 + 3),
        (torch.float64, 1e-200, 2.0**-690, 2**13),
    ],
)
def test_kernels_and_numpy_agree_bit_for_bit(dtype, sigma, grid, n):
    noise, x = RoundedGaussian(sigma, grid), mixed(n, grid, dtype, seed=n)
    noisy, layout = launched(x, noise, seed=n)
    expected = replayed(noise, key(n), layout, x.to(torch.float64 if dtype == torch.float64 else torch.float32).numpy())
    assert torch.equal(noisy.view(BITS[dtype]), bits(expected, dtype))


@pytest.mark.parametrize("rounds", [8, 12])
@pytest.mark.parametrize("block", [32, 256])
@pytest.mark.parametrize("grid", [NARROW, SHORT])
def test_every_cipher_and_shape_agrees_with_numpy(rounds, block, grid):
    noise, x = RoundedGaussian(SIGMA, grid), mixed(9000, grid, torch.float32, seed=1)
    noisy, layout = launched(x, noise, seed=3, block=block, rounds=rounds)
    assert torch.equal(noisy.view(torch.int32), bits(replayed(noise, key(3), layout, x.numpy()), torch.float32))


@pytest.mark.parametrize(("sigma", "grid"), [(SIGMA, NARROW), (1.999, NARROW), (SIGMA, 2.0**-10)])
def test_values_beside_a_half_are_rounded_as_rationals_say(sigma, grid):
    n, scale, rng = 2048, sigma / grid, np.random.default_rng(5)
    words = Layout(16, 512).words(key(6), np.arange(n))
    slot = words & (table.SLOTS - 1)
    with np.errstate(invalid="ignore"):
        y = scale * (table.CENTRE[slot] + table.REACH[slot] * (words * 2.0**-63))
        f = 0.5 - (y - np.floor(y)) + rng.normal(size=n) * scale * table.REACH[slot] * 2.0**-18
    x = torch.from_numpy(np.where(np.isnan(f), 0.25, f - np.rint(f)) * grid).to(torch.float32)
    noise = RoundedGaussian(sigma, grid)
    noisy, layout = launched(x, noise, seed=6)
    assert layout.per == 16
    expected = settled_values(noise, key(6), layout, list(range(n)), x.double().tolist())
    assert torch.equal(noisy.view(torch.int32), bits(expected, torch.float32))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("sigma", "grid"), [(SIGMA, SHORT), (1.999, SHORT), (3.0, COARSE)])
def test_values_beside_a_half_are_rounded_as_rationals_say_with_short_words(sigma, grid, dtype):
    n, scale, rng = 2048, sigma / grid, np.random.default_rng(5)
    words = Layout(24, 512).words(key(6), np.arange(n))
    slot = words & (table.SLOTS - 1)
    with np.errstate(invalid="ignore"):
        y = scale * (table.CENTRE[slot] + table.REACH[slot] * (words * 2.0**-63))
        f = 0.5 - (y - np.floor(y)) + rng.normal(size=n) * (scale * table.REACH[slot] * 2.0**-8 + 2.0**-13)
    x = torch.from_numpy(np.where(np.isnan(f), 0.25, f - np.rint(f)) * grid).to(dtype)
    noise = RoundedGaussian(sigma, grid)
    noisy, layout = launched(x, noise, seed=6)
    assert layout.per == 24
    expected = settled_values(noise, key(6), layout, list(range(n)), x.double().tolist())
    assert torch.equal(noisy.view(BITS[dtype]), bits(expected, dtype))


@pytest.mark.parametrize("t", [0.5, -0.5, 1.5, 2.0**22 + 0.5, -(2.0**22) - 0.5, 2.0**23, -(2.0**23) - 1, 2.0**24 - 1])
@pytest.mark.parametrize("power", [0, 1, 2, 6, 23, 24, 25, 60])
def test_the_whole_part_of_any_float_is_whole_and_its_rest_is_exact(t, power):
    """As the kernel has them, in floats: the rest is small, or so large that the value is marked."""
    t, far = np.float32(t * 2.0**power), np.float32(25165824.0)
    whole = (t + far) - far
    rest = t - whole
    assert Fraction(float(whole)).denominator == 1
    assert Fraction(float(rest)) == Fraction(float(t)) - Fraction(float(whole))
    assert abs(rest) <= max(1.0, 2 * np.spacing(abs(t)))


@pytest.mark.parametrize("scale", [2.0**21 * (1 - 2.0**-53), SIGMA * 2.0**20, 1.7 * 2.0**10, 2.0**8])
def test_the_error_of_floats_stays_inside_its_bound(scale):
    rows = tables(scale, 1.0, torch.device("cpu")).steps.view(torch.float32).view(-1, 4).numpy()[: table.RECTANGLES]
    rng, worst = np.random.default_rng(8), Fraction(0)
    for cell in [*range(0, 4091, 41), *range(4080, 4091)]:
        far, b, e = rows[cell, :3]
        for place in (0, 2**19 - 1, int(rng.integers(0, 2**19))):
            f = np.float32(rng.uniform(-1, 1))
            y = Fraction(float(np.float32(np.float32(e * np.float32(place * 2.0**-22)) + np.float32(b + f))))
            ends = [
                Fraction(float(f))
                + Fraction(scale) * (Fraction(table.CENTRE[2 * cell]) + Fraction(table.REACH[2 * cell]) * u)
                for u in (Fraction(place, 2**18) - 1, Fraction(place + 1, 2**18) - 1)
            ]
            y += Fraction(float(far))
            granted = Fraction(float(e)) * Fraction(19, 2**27) + Fraction(float(abs(f))) / 2**23
            granted += Fraction(5, 2**25)  # of 2^-22, for 3 2^-25 are kept for the test itself
            worst = max(worst, max(abs(y - end) for end in ends) / granted)
    assert Fraction(1, 3) < worst <= 1


@pytest.mark.parametrize("scale", [2.0**8 * (1 - 2.0**-53), SIGMA * 2.0**7, 1.7, 1.0])
def test_the_error_of_floats_stays_inside_its_bound_with_short_words(scale):
    rows = tables(scale, 1.0, torch.device("cpu")).steps.view(torch.float32).view(-1, 2).numpy()
    assert np.isnan(rows[table.LEFT_OVER :]).all()
    rng, worst, floats = np.random.default_rng(8), {False: Fraction(0), True: Fraction(0)}, Fraction(0)
    for slot in [*range(0, table.LEFT_OVER, 41), *range(table.LEFT_OVER - 20, table.LEFT_OVER)]:
        a, e = rows[slot]
        undrawn = Fraction(scale) * Fraction(table.REACH[slot]) / 2**8
        power = 2.0 ** rng.integers(0, 22)
        for f in map(np.float32, (rng.uniform(-1, 1), -power, power, rng.uniform(-2, 2) * power, -(2.0**21), 2.0**21)):
            place = int(rng.choice([0, 2**8 - 1, rng.integers(0, 2**8)]))
            y = Fraction(float(np.float32(np.float32(e * np.float32(place * 2.0**-12)) + np.float32(a + f))))
            ends = [
                Fraction(float(f)) + Fraction(scale) * (Fraction(table.CENTRE[slot]) + Fraction(table.REACH[slot]) * u)
                for u in (Fraction(place, 2**7) - 1, Fraction(place + 1, 2**7) - 1)
            ]
            granted = Fraction(float(e)) * Fraction(17, 2**17) + Fraction(float(abs(f))) / 2**23
            granted += Fraction(1, 2**13) - Fraction(3, 2**25)  # the last for the test itself
            off, far = max(abs(y - end) for end in ends), bool(abs(f) > 1)
            worst[far] = max(worst[far], off / granted)
            floats = floats if far else max(floats, off - undrawn)
    assert all(Fraction(1, 3) < ratio <= 1 for ratio in worst.values())
    assert floats <= Fraction(3, 2**15) + Fraction(1, 2**17)


def test_where_short_words_have_large_steps_their_slots_are_wide():
    """What the error of floats rests on, far from zero: |A| is at most 682 + 681 G."""
    rows = tables(2.0**8 * (1 - 2.0**-53), 1.0, torch.device("cpu")).steps.view(torch.float32).view(-1, 2).double()
    a, g = rows[: table.LEFT_OVER, 0].abs(), rows[: table.LEFT_OVER, 1] / 16
    assert a.max() > 800
    assert (a + g + 0.5 <= 2 / 3 * 2**10 * (1 + g)).all()
    ends = np.abs(table.CENTRE[: table.LEFT_OVER]) + table.REACH[: table.LEFT_OVER]
    assert ends.max() < 3.52
    assert (2 * table.REACH[: table.LEFT_OVER])[ends > 2.66].min() > 0.0107


@pytest.mark.parametrize("grid", [NARROW, SHORT])
@pytest.mark.parametrize(("power", "share"), [(46, 0.0), (47, 0.5), (48, 0.0)])
def test_half_of_all_values_of_one_size_are_always_marked(grid, power, share):
    noise, shape, n = RoundedGaussian(SIGMA, grid), launch.Shape(block=512), 2 * 48 * 512
    x = torch.from_numpy(np.random.default_rng(power).uniform(1, 2, n) * 2.0**power * grid).float()
    layout, lookup = launch.layout_of(noise, x, shape, 20), tables(SIGMA, grid, x.device)
    marked, count = torch.zeros(2 * n // layout.per, dtype=torch.int64), torch.zeros(4, dtype=torch.int32)
    with np.errstate(all="ignore"):
        launch._narrow(x, noise, (*key(power).arguments(), 1), layout, shape, lookup, marked, count)
    marks = sum((lane & 0xFFFFFF).bit_count() for lane in marked[: int(count[0])].tolist())
    assert abs(marks / n - share) < 0.02


def test_short_words_share_no_bit():
    """Of the 512 bits of a block each value has 21 of its own, and eight are left."""
    owners = np.zeros((16, 32), int)
    for word in range(16):
        for bit in range(32):
            one = np.zeros((16, 1), np.uint32)
            one[word, 0] = 1 << bit
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(host_fallback, "blocks", lambda *_, flipped=one: np.repeat(flipped, 24, axis=1))
                with_it = Layout(24, 1).words(key(0), np.arange(24))
                patch.setattr(host_fallback, "blocks", lambda *_: np.zeros((16, 24), np.uint32))
                without = Layout(24, 1).words(key(0), np.arange(24))
            looked = (with_it ^ without) & ~np.int64(0xFFFFFFFFFFFFFFFF >> 8 & ~0x1FFF)
            owners[word, bit] = np.count_nonzero(looked)
    assert owners.max() == 1
    assert owners.sum() == 24 * 21


@pytest.mark.parametrize("grid", [NARROW, SHORT])
def test_the_host_settles_what_the_kernels_leave_open_to_the_same_bits(monkeypatch, grid):
    noise, x = RoundedGaussian(SIGMA, grid), mixed(2**14, grid, torch.float32, seed=2)
    expected, layout = launched(x, noise, seed=9)
    never = tables(SIGMA, grid, x.device).numbers.clone()
    never[5] = -1.0
    unsure = dataclasses.replace(tables(SIGMA, grid, x.device), numbers=never)
    monkeypatch.setattr(launch, "tables", lambda *_: unsure)
    noisy = x.clone()
    with np.errstate(all="ignore"):
        left = launch.add(noisy, noise, key(9), layout, launch.Shape(512, 1024, 1))
    assert left > 20
    assert torch.equal(noisy.view(torch.int32), expected.view(torch.int32))


def test_a_device_that_leaves_too_much_open_is_not_believed(monkeypatch):
    monkeypatch.setattr(launch, "HARD", 3)
    never = tables(SIGMA, NARROW, torch.device("cpu")).numbers.clone()
    never[5] = -1.0
    unsure = dataclasses.replace(tables(SIGMA, NARROW, torch.device("cpu")), numbers=never)
    monkeypatch.setattr(launch, "tables", lambda *_: unsure)
    with np.errstate(all="ignore"), pytest.raises(ArithmeticError, match="does not compute as it should"):
        launch.add(
            torch.zeros(2**14), RoundedGaussian(SIGMA, NARROW), key(9), Layout(16, 512), launch.Shape(512, 1024, 1)
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_zero_from_the_kernels_has_no_sign(dtype):
    noisy, _ = launched(torch.full((8192,), -1e-30, dtype=dtype), RoundedGaussian(1.0, 1.0), seed=4)
    assert (noisy == 0).sum() > 2048
    assert not torch.signbit(noisy[noisy == 0]).any()


@pytest.mark.parametrize("n", [1, 15, 513])
@pytest.mark.parametrize("grid", [NARROW, SHORT])
def test_short_tensors_come_out_right(n, grid):
    noise, x = RoundedGaussian(SIGMA, grid), torch.linspace(-3, 3, n)
    noisy, layout = launched(x, noise, seed=n)
    assert torch.equal(noisy.view(torch.int32), bits(replayed(noise, key(n), layout, x.numpy()), torch.float32))


def test_a_key_whose_words_are_short_is_used_whole(monkeypatch):
    short = Key(np.array([5, 0, 2**32 - 7, 2**32 - 1, 0, 0, 2**31, 2**32 - 1], np.uint32))
    monkeypatch.setattr(f"{__name__}.key", lambda _: short)
    noise, x = RoundedGaussian(SIGMA, NARROW), mixed(9000, NARROW, torch.float32, seed=1)
    noisy, layout = launched(x, noise, seed=0)
    assert torch.equal(noisy.view(torch.int32), bits(replayed(noise, short, layout, x.numpy()), torch.float32))


def test_the_guide_finds_the_cell_of_every_choice():
    lookup = tables(SIGMA, NARROW, torch.device("cpu"))
    totals, guide = lookup.weights.numpy().tolist(), lookup.guide.numpy().tolist()
    assert len(guide) == 4097
    choices = {min(max(total + by, 0), 2**63 - 1) for total in totals for by in (-1, 0, 1)}
    choices |= {min(max((t << 51) + by, 0), 2**63 - 1) for t in range(4097) for by in (-1, 0, 1)}
    for choice in choices:
        between = guide[choice >> 51], guide[(choice >> 51) + 1]
        assert between[0] <= bisect_right(totals, choice) <= between[1]
    ordered = np.array(sorted(choices), np.int64)
    found = np.zeros(ordered.size, np.int64)

    @triton.jit
    def cells(choice, weights, guide, out, N: tl.constexpr):
        at = tl.arange(0, N)
        tl.store(out + at, _cell(tl.load(choice + at), weights, guide, at >= 0).to(tl.int64))

    for start in range(0, ordered.size, 4096):
        part = np.resize(ordered[start : start + 4096], 4096)
        out = torch.zeros(4096, dtype=torch.int64)
        cells[(1,)](torch.from_numpy(part), lookup.weights, lookup.guide, out, N=4096)
        found[start : start + 4096] = out.numpy()[: ordered.size - start]
    assert np.array_equal(found, np.searchsorted(totals, ordered, side="right"))


@pytest.mark.parametrize("per", [24, 16, 8])
def test_no_block_of_a_launch_is_read_for_two_purposes(per, monkeypatch):
    layout, position = Layout(per, 64), np.arange(5000)
    lane, index = layout.places(position)
    assert len(set(zip(lane.tolist(), index.tolist(), strict=True))) == position.size
    assert (index.min(), index.max()) == (0, per - 1)
    read = []

    def seen(key, number, serial, domain, rounds):
        read.extend((domain, int(n), serial) for n in number)
        return blocks(key, number, serial, domain, rounds)

    monkeypatch.setattr(host_fallback, "blocks", seen)
    steps_at(key(7), layout, position.tolist(), 2.0**60, [Fraction(0)] * position.size)  # which asks for every word
    of = {domain: [block[1:] for block in read if block[0] == domain] for domain in (FAST, MORE, PROPOSAL, LAST)}
    assert sum(map(len, of.values())) == len(read)
    assert of[FAST] == [(one, 0) for one in lane.tolist()]  # shared by the entries of a lane, at their indices
    assert of[MORE] == [(one, 0) for one in position.tolist() if per > 8]
    for domain in (PROPOSAL, LAST):
        assert len(set(of[domain])) == len(of[domain]) > 0


def test_no_two_launches_or_processes_share_a_key():
    read, write = os.pipe()
    for _ in range(2):
        if os.fork() == 0:
            os.write(write, Key().words.tobytes())
            os._exit(0)
        os.wait()
    theirs = os.read(read, 64)
    keys = {theirs[:32], theirs[32:], Key().words.tobytes(), Key().words.tobytes()}
    assert len(keys) == 4


def test_a_key_is_not_shown():
    assert repr(Key()) == "Key(...)"
