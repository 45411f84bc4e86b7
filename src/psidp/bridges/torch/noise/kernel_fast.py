"""The fast path in Triton: key stream, rectangle, rounding test and sum in one kernel, for all but one value in 200.

A lane is one ChaCha block. Lane l of tile t works on entries t BLOCK PER + k BLOCK + l, k = 0, 1, ..., PER - 1, so that
neighbouring lanes touch neighbouring entries. What cannot be decided here is left as it was and marked.
"""

import triton
import triton.language as tl

from psidp.bridges.torch.noise.kernel_cipher import append, block

__all__ = ["as_type", "high_float", "low_float", "narrow", "wide", "wide_value"]

KEY = ["k0", "k1", "k2", "k3", "one", "tile"]


@triton.jit
def _whole(t):
    """The double t rounded to a whole number, ties to even, for |t| < 2^52; zero has no sign."""
    shift = tl.where(t < 0, -4503599627370496.0, 4503599627370496.0).to(tl.float64)
    return (t + shift) - shift


@triton.jit
def narrow_value(x, word, steps, inverse, grid):
    """x plus noise from one word of 32 bits in floats, and whether that is certain; claims 2 and 3 of the design.

    The highest twelve bits of the word are the cell, 19 the first bits of the place in it, the lowest is the sign.
    With the sign taken out of x, Y = A + (E v + (b + f)) is the middle of what the undrawn bits leave open. Written
    for the units of a GPU: its integer unit is the narrow place, and the cipher needs it.
    """
    one = ((word << 31) | 0x3F800000).to(tl.float32, bitcast=True)
    row = (word >> 20).to(tl.int32) * 2
    first, second = tl.load(steps + row), tl.load(steps + row + 1)
    far, b, e, room = low_float(first), high_float(first), low_float(second), high_float(second)
    v = ((word & 0x000FFFFE) | 0x3F800000).to(tl.float32, bitcast=True) - 1.0
    scale = inverse * one
    whole = tl.fma(x, scale, 25165824.0) - 25165824.0  # an even number beside x/g, up to 2^23; a whole one always
    f = tl.fma(x, scale, -whole)
    y = e * v + (b + f)
    z = (y + 12582912.0) - 12582912.0
    sure = tl.abs(y - z) + tl.abs(f) * 1.1920928955078125e-07 < room
    return ((far + z) + whole) * (grid * one) + 0.0, sure


@triton.jit
def low_float(pair):
    """The first of two floats in a word of 64 bits."""
    return pair.to(tl.uint32).to(tl.float32, bitcast=True)


@triton.jit
def high_float(pair):
    """The second of two floats in a word of 64 bits."""
    return (pair >> 32).to(tl.uint32).to(tl.float32, bitcast=True)


@triton.jit(do_not_specialize=KEY)
def narrow(
    x, steps, marked, count, inverse, grid, n, tile,
    k0, k1, k2, k3, one,
    EVEN: tl.constexpr, BLOCK: tl.constexpr, ROUNDS: tl.constexpr,
):  # fmt: skip
    """float32 and bfloat16 in place: 16 values from a block, 32 bits each. They are read while the cipher works."""
    tile = tile + tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    number = (tile * BLOCK + lane).to(tl.uint32)
    none = tl.full((), 0, tl.uint32)
    start = tile.to(tl.int64) * (16 * BLOCK)
    values = ()
    for k in tl.static_range(16):
        at = start + (k * BLOCK + lane)
        if EVEN:
            values = values + (tl.load(x + at, cache_modifier=".cg"),)  # noqa: RUF005
        else:
            values = values + (tl.load(x + at, mask=at < n, other=0.0),)  # noqa: RUF005
    words = block(k0, k1, k2, k3, one, number, none, none, none, ROUNDS)
    marks = tl.zeros((BLOCK,), tl.int32)
    for k in tl.static_range(16):
        at = start + (k * BLOCK + lane)
        noisy, sure = narrow_value(values[k].to(tl.float32), words[k], steps, inverse, grid)
        unsure = sure == 0
        if not EVEN:
            sure, unsure = sure & (at < n), unsure & (at < n)
        tl.store(x + at, as_type(noisy, x.dtype.element_ty), mask=sure)
        marks |= tl.where(unsure, 1 << k, 0)
    append(marked, count, number, marks)


@triton.jit(do_not_specialize=KEY)
def wide(
    x, centre, reach, numbers, marked, count, n, tile,
    k0, k1, k2, k3, one,
    BLOCK: tl.constexpr, ROUNDS: tl.constexpr,
):  # fmt: skip
    """Any float in place, on any grid: 8 values from a block, 64 bits each, in doubles."""
    tile = tile + tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    number = (tile * BLOCK + lane).to(tl.uint32)
    none = tl.full((), 0, tl.uint32)
    words = block(k0, k1, k2, k3, one, number, none, none, none, ROUNDS)
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
