"""The fast path in Triton: key stream, rectangle, rounding test and sum in one kernel, for all but one value in 200.

A lane is one ChaCha block. Lane l of tile t works on entries t BLOCK PER + k BLOCK + l, k = 0, 1, ..., PER - 1, so that
neighbouring lanes touch neighbouring entries. What cannot be decided here is left as it was and marked.
"""

import triton
import triton.language as tl

from psidp.bridges.torch.cipher import append, block

__all__ = ["narrow", "wide"]

KEY = ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "tile"]


@triton.jit
def _whole(t):
    """The double t rounded to a whole number, ties to even, for |t| < 2^52; zero has no sign."""
    shift = tl.where(t < 0, -4503599627370496.0, 4503599627370496.0).to(tl.float64)
    return (t + shift) - shift


@triton.jit
def narrow_value(x, word, steps, inverse, grid):
    """x plus noise from one word of 32 bits in floats, and whether that is certain; claims 2 and 3 of the design.

    The lowest bit of the word is the sign, twelve more are the cell, 19 the first bits of the place in it. With the
    sign taken out of x, Y = (A + b) + (G v + f) for v in [1, 2): the middle of what the undrawn bits leave open.
    """
    sign = word << 31
    x = tl.where(x == x, x, 0.0)
    x = (x.to(tl.uint32, bitcast=True) ^ sign).to(tl.float32, bitcast=True)
    row = (word & 8190).to(tl.int32)
    pair = tl.load(steps + row)
    g = tl.load(steps + row + 1).to(tl.uint32).to(tl.float32, bitcast=True)
    far = pair.to(tl.uint32).to(tl.float32, bitcast=True)
    b = (pair >> 32).to(tl.uint32).to(tl.float32, bitcast=True)
    v = (((word >> 9) & 0x007FFFF0) ^ 0x3FC00000).to(tl.float32, bitcast=True)
    t = x * inverse
    small = tl.abs(t) < 8388608.0
    shift = ((t.to(tl.uint32, bitcast=True) & 0x80000000) | 0x4B000000).to(tl.float32, bitcast=True)
    whole = (t + shift) - shift
    f = tl.where(small, t - whole, 0.0)
    y = g * v + (b + f)
    z = (y + 12582912.0) - 12582912.0
    sure = tl.abs(y - z) + g * 1.3113021850585938e-06 < 0.4999997615814209
    x = tl.where(small, whole * grid, x)
    x = (far + z) * grid + x
    x = (x.to(tl.uint32, bitcast=True) ^ sign).to(tl.float32, bitcast=True)
    return x + 0.0, sure


@triton.jit(do_not_specialize=KEY)
def narrow(
    x, steps, marked, count, inverse, grid, n, tile,
    k0, k1, k2, k3, k4, k5, k6, k7,
    EVEN: tl.constexpr, BLOCK: tl.constexpr, ROUNDS: tl.constexpr,
):  # fmt: skip
    """float32 and bfloat16 in place: 16 values from a block, 32 bits each."""
    tile = tile + tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    number = (tile * BLOCK + lane).to(tl.uint32)
    none = tl.full((), 0, tl.uint32)
    words = block(k0, k1, k2, k3, k4, k5, k6, k7, number, none, none, none, ROUNDS)
    start = tile.to(tl.int64) * (16 * BLOCK)
    marks = tl.zeros((BLOCK,), tl.int32)
    for k in tl.static_range(16):
        at = x + start + (k * BLOCK + lane)
        if EVEN:
            value = tl.load(at, cache_modifier=".cg")
        else:
            here = start + (k * BLOCK + lane) < n
            value = tl.load(at, mask=here, other=0.0)
        noisy, sure = narrow_value(value.to(tl.float32), words[k], steps, inverse, grid)
        unsure = sure == 0
        if not EVEN:
            sure, unsure = sure & here, unsure & here
        tl.store(at, as_type(noisy, x.dtype.element_ty), mask=sure)
        marks |= tl.where(unsure, 1 << k, 0)
    append(marked, count, number, marks)


@triton.jit(do_not_specialize=KEY)
def wide(
    x, centre, reach, numbers, marked, count, n, tile,
    k0, k1, k2, k3, k4, k5, k6, k7,
    BLOCK: tl.constexpr, ROUNDS: tl.constexpr,
):  # fmt: skip
    """Any float in place, on any grid: 8 values from a block, 64 bits each, in doubles."""
    tile = tile + tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    number = (tile * BLOCK + lane).to(tl.uint32)
    none = tl.full((), 0, tl.uint32)
    words = block(k0, k1, k2, k3, k4, k5, k6, k7, number, none, none, none, ROUNDS)
    start = tile.to(tl.int64) * (8 * BLOCK)
    sure_near = tl.load(numbers + 4)
    marks = tl.zeros((BLOCK,), tl.int32)
    for k in tl.static_range(8):
        at = start + (k * BLOCK + lane)
        here = at < n
        word = (words[2 * k].to(tl.uint64) | (words[2 * k + 1].to(tl.uint64) << 32)).to(tl.int64, bitcast=True)
        value = tl.load(x + at, mask=here, other=0.0).to(tl.float64)
        noisy, away = wide_value(value, (word & 8191).to(tl.int32), word, centre, reach, numbers)
        sure = away < sure_near
        tl.store(x + at, as_type(noisy, x.dtype.element_ty), mask=sure & here)
        marks |= tl.where(here & (sure == 0), 1 << k, 0)
    append(marked, count, number, marks)


@triton.jit
def wide_value(x, slot, word, centre, reach, numbers):
    """x plus the noise of a slot and a signed word in doubles, and how far its rounding went; NaN if it has none."""
    inverse = tl.load(numbers)
    grid = tl.load(numbers + 1)
    far = tl.load(numbers + 2)
    t = x * inverse
    t = tl.where(t == t, t, 0.0)
    t = tl.where(t > far, far, tl.where(t < -far, -far, t))
    whole = tl.where(tl.abs(t) < 4503599627370496.0, _whole(t), t)
    y = (tl.load(centre + slot) + tl.load(reach + slot) * word.to(tl.float64)) + (t - whole)
    z = _whole(y)
    return ((whole + z) + 0.0) * grid, tl.abs(y - z)


@triton.jit
def as_type(value, dtype: tl.constexpr):
    """A value as the tensor's own type; bfloat16 by way of float32, as on the CPU, in integers: ties to even."""
    if dtype == tl.bfloat16:
        bits = value.to(tl.float32).to(tl.uint32, bitcast=True)
        value = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).to(tl.uint16).to(tl.bfloat16, bitcast=True)
    return value.to(dtype)
