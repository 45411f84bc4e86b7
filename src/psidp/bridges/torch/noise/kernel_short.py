"""The fast path on coarse grids in Triton: 24 values from a block of the key stream, in floats, one lookup each.

As in kernel_fast.py, a lane is one block, and what cannot be decided here is left as it was and marked.
"""

import triton
import triton.language as tl

from psidp.bridges.torch.noise.kernel_cipher import append, block
from psidp.bridges.torch.noise.kernel_fast import as_type, high_float, low_float

__all__ = ["short", "short_word"]

KEY = ["k0", "k1", "k2", "k3", "one", "tile"]


@triton.jit
def short_word(words, k: tl.constexpr):
    """The 21 bits of value k at the top of a word: those of a word of its own, or what is left of two of them.

    What lies below them belongs to others, or to nobody, and is not looked at.
    """
    return words[k] if k < 16 else (words[2 * (k - 16)] << 21) | ((words[2 * (k - 16) + 1] << 11) & 0x001FF800)


@triton.jit
def short_value(x, word, steps, inverse, grid, unit):
    """x plus noise from the highest 21 bits of a word in floats, and whether that is certain.

    13 of them are the slot, 8 the first bits of the place in it. Y = A + E v + f is the middle of what the undrawn bits
    leave open. Few operations on integers, since the cipher needs what does them; `unit` are the bits of 1.0.
    """
    pair = tl.load(steps + (word >> 19).to(tl.int32))
    a, e = low_float(pair), high_float(pair)
    v = ((word & 0x0007F800) | unit).to(tl.float32, bitcast=True) - 1.0
    whole = tl.fma(x, inverse, 25165824.0) - 25165824.0  # as in kernel_fast.py
    f = tl.fma(x, inverse, -whole)
    y = e * v + (a + f)
    z = (y + 12582912.0) - 12582912.0
    doubt = tl.fma(tl.abs(f), 1.1920928955078125e-07, tl.fma(e, 0.00012969970703125, tl.abs(y - z)))
    return (z + whole) * grid + 0.0, doubt < 0.4998779296875


@triton.jit(do_not_specialize=KEY)
def short(
    x, steps, marked, count, inverse, grid, n, tile,
    k0, k1, k2, k3, one,
    CONVERTS: tl.constexpr, EVEN: tl.constexpr, BLOCK: tl.constexpr, ROUNDS: tl.constexpr,
):  # fmt: skip
    """float32 and bfloat16 in place: 24 values from a block, 21 bits each. They are read while the cipher works.

    CONVERTS says that the device rounds to bfloat16 as `as_type` does, in one operation; the interpreter cuts off.
    """
    tile = tile + tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    number = (tile * BLOCK + lane).to(tl.uint32)
    none = tl.full((), 0, tl.uint32)
    start = tile.to(tl.int64) * (24 * BLOCK)
    here, at = x + start + lane, start + lane
    values = ()
    for k in tl.static_range(24):
        if EVEN:
            values = values + (tl.load(here + k * BLOCK, cache_modifier=".cg"),)  # noqa: RUF005
        else:
            values = values + (tl.load(here + k * BLOCK, mask=at + k * BLOCK < n, other=0.0),)  # noqa: RUF005
    words = block(k0, k1, k2, k3, one, number, none, none, none, ROUNDS)
    marks = tl.zeros((BLOCK,), tl.float32)  # a whole number below 2^24: floats have units of their own
    unit = one.to(tl.uint32) * 0x3F800000  # kept in a register, as the compiler does not know it
    for k in tl.static_range(24):
        noisy, sure = short_value(values[k].to(tl.float32), short_word(words, k), steps, inverse, grid, unit)
        unsure = sure == 0
        if not EVEN:
            sure, unsure = sure & (at + k * BLOCK < n), unsure & (at + k * BLOCK < n)
        value = noisy.to(x.dtype.element_ty) if CONVERTS else as_type(noisy, x.dtype.element_ty)
        tl.store(here + k * BLOCK, value, mask=sure)
        marks += tl.where(unsure, 1 << k, 0.0)
    append(marked, count, number, marks.to(tl.int32))
