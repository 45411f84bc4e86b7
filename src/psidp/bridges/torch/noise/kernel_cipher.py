"""ChaCha and the list of marked lanes, in Triton: what both kernels of the noise are made of."""

import triton
import triton.language as tl

__all__ = ["append", "block"]


@triton.jit
def _turn(x, by: tl.constexpr):
    """x rotated left."""
    return (x << by) | (x >> (32 - by))


@triton.jit
def _quarter(a, b, c, d, one):
    """A quarter round; sums as products with a 1 that the compiler does not know: products have a unit to spare."""
    a = a * one + b
    d = _turn(d ^ a, 16)
    c = c * one + d
    b = _turn(b ^ c, 12)
    a = a * one + b
    d = _turn(d ^ a, 8)
    c = c * one + d
    b = _turn(b ^ c, 7)
    return a, b, c, d


@triton.jit
def _upper(word):
    """The upper 32 bits of a signed word, which may have come as a short one."""
    return (word.to(tl.int64) >> 32).to(tl.uint32)


@triton.jit
def block(k0, k1, k2, k3, one, low, high, serial, domain, ROUNDS: tl.constexpr):
    """The 16 words of a ChaCha block for each lane; a loop, since unrolled it takes a minute to compile.

    The key comes in four words of 64 bits; `one` is a 1 that the compiler does not know (see `_quarter`).
    """
    s0 = tl.full((), 0x61707865, tl.uint32)
    s1 = tl.full((), 0x3320646E, tl.uint32)
    s2 = tl.full((), 0x79622D32, tl.uint32)
    s3 = tl.full((), 0x6B206574, tl.uint32)
    s4, s5, s6, s7 = k0.to(tl.uint32), _upper(k0), k1.to(tl.uint32), _upper(k1)
    s8, s9, s10, s11 = k2.to(tl.uint32), _upper(k2), k3.to(tl.uint32), _upper(k3)
    x0, x1, x2, x3, x4, x5, x6, x7 = s0, s1, s2, s3, s4, s5, s6, s7
    x8, x9, x10, x11, x12, x13, x14, x15 = s8, s9, s10, s11, low, high, serial, domain
    one = one.to(tl.uint32)
    same = tl.zeros_like(low)  # a loop carries values of one shape
    x0, x1, x2, x3, x4, x5 = x0 + same, x1 + same, x2 + same, x3 + same, x4 + same, x5 + same
    x6, x7, x8, x9, x10, x11 = x6 + same, x7 + same, x8 + same, x9 + same, x10 + same, x11 + same
    x13, x14, x15 = x13 + same, x14 + same, x15 + same
    for _ in range(ROUNDS // 4):
        for half in tl.static_range(2):  # noqa: B007
            x0, x4, x8, x12 = _quarter(x0, x4, x8, x12, one)
            x1, x5, x9, x13 = _quarter(x1, x5, x9, x13, one)
            x2, x6, x10, x14 = _quarter(x2, x6, x10, x14, one)
            x3, x7, x11, x15 = _quarter(x3, x7, x11, x15, one)
            x0, x5, x10, x15 = _quarter(x0, x5, x10, x15, one)
            x1, x6, x11, x12 = _quarter(x1, x6, x11, x12, one)
            x2, x7, x8, x13 = _quarter(x2, x7, x8, x13, one)
            x3, x4, x9, x14 = _quarter(x3, x4, x9, x14, one)
    return (
        x0 * one + s0,
        x1 * one + s1,
        x2 * one + s2,
        x3 * one + s3,
        x4 * one + s4,
        x5 * one + s5,
        x6 * one + s6,
        x7 * one + s7,
        x8 * one + s8,
        x9 * one + s9,
        x10 * one + s10,
        x11 * one + s11,
        x12 * one + low,
        x13 * one + high,
        x14 * one + serial,
        x15 * one + domain,
    )


@triton.jit
def append(marked, count, lane, marks):
    """Write (lane, lowest mark) behind the list and (lane, other marks), for the few lanes that have such."""
    low = marks & (0 - marks)
    _append_some(marked, count, lane, low)
    _append_some(marked, count, lane, marks ^ low)


@triton.jit
def _append_some(marked, count, lane, marks):
    """Write (lane, marks) behind the list, for lanes that have a mark."""
    some = marks != 0
    place = tl.atomic_add(count + tl.zeros_like(marks), 1, mask=some, sem="relaxed")
    tl.store(marked + place, (lane.to(tl.int64) << 24) | marks.to(tl.int64), mask=some)
