"""ChaCha and the list of marked lanes, in Triton: what both kernels of the noise are made of."""

import triton
import triton.language as tl

__all__ = ["append", "block"]


@triton.jit
def _turn(x, by: tl.constexpr):
    """x rotated left."""
    return (x << by) | (x >> (32 - by))


@triton.jit
def _quarter(a, b, c, d):
    """A quarter round."""
    a = a + b
    d = _turn(d ^ a, 16)
    c = c + d
    b = _turn(b ^ c, 12)
    a = a + b
    d = _turn(d ^ a, 8)
    c = c + d
    b = _turn(b ^ c, 7)
    return a, b, c, d


@triton.jit
def block(k0, k1, k2, k3, k4, k5, k6, k7, low, high, serial, domain, ROUNDS: tl.constexpr):
    """The 16 words of a ChaCha block for each lane; a loop, since unrolled it takes a minute to compile."""
    s0 = tl.full((), 0x61707865, tl.uint32)
    s1 = tl.full((), 0x3320646E, tl.uint32)
    s2 = tl.full((), 0x79622D32, tl.uint32)
    s3 = tl.full((), 0x6B206574, tl.uint32)
    s4, s5, s6, s7 = k0.to(tl.uint32), k1.to(tl.uint32), k2.to(tl.uint32), k3.to(tl.uint32)
    s8, s9, s10, s11 = k4.to(tl.uint32), k5.to(tl.uint32), k6.to(tl.uint32), k7.to(tl.uint32)
    x0, x1, x2, x3, x4, x5, x6, x7 = s0, s1, s2, s3, s4, s5, s6, s7
    x8, x9, x10, x11, x12, x13, x14, x15 = s8, s9, s10, s11, low, high, serial, domain
    same = tl.zeros_like(low)  # a loop carries values of one shape
    x0, x1, x2, x3, x4, x5 = x0 + same, x1 + same, x2 + same, x3 + same, x4 + same, x5 + same
    x6, x7, x8, x9, x10, x11 = x6 + same, x7 + same, x8 + same, x9 + same, x10 + same, x11 + same
    x13, x14, x15 = x13 + same, x14 + same, x15 + same
    for _ in range(ROUNDS // 2):
        x0, x4, x8, x12 = _quarter(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter(x3, x4, x9, x14)
    return (
        x0 + s0,
        x1 + s1,
        x2 + s2,
        x3 + s3,
        x4 + s4,
        x5 + s5,
        x6 + s6,
        x7 + s7,
        x8 + s8,
        x9 + s9,
        x10 + s10,
        x11 + s11,
        x12 + low,
        x13 + high,
        x14 + serial,
        x15 + domain,
    )


@triton.jit
def append(marked, count, lane, marks):
    """Write (lane, marks) behind the list, for the lanes that have a mark: one atomic for all of them."""
    some = (marks != 0).to(tl.int32)
    first = tl.atomic_add(count, tl.sum(some, 0), sem="relaxed")
    place = first + tl.cumsum(some, 0) - 1
    tl.store(marked + place, (lane.to(tl.int64) << 16) | marks.to(tl.int64), mask=marks != 0)
