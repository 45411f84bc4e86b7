"""Clipped integer sums in Triton: gradients are read once for their norms, once to be scaled, cut and added up.

Nothing as large as the gradients is ever written, and the bits are those of the plain version in clipping.py.
"""

import torch
import triton
import triton.language as tl

__all__ = ["add_units", "write_squares"]

BLOCK = 128
"""Entries of the sum to a program: so few that short rows keep the device busy too."""


def write_squares(g: torch.Tensor, partial: torch.Tensor, column: int, lanes: int, chunk: int) -> None:
    """Sums of squares of each chunk of each row of g, as doubles, into the columns of `partial` from `column` on."""
    rows, n = g.shape
    chunks = triton.cdiv(n, chunk)
    _squares[(rows * chunks,)](
        g, partial, n, partial.shape[1], column, chunks,
        LANES=lanes, LOG=lanes.bit_length() - 1, CHUNK=chunk, num_warps=8,
    )  # fmt: skip


def add_units(sums: torch.Tensor, g: torch.Tensor, factor: torch.Tensor, step: float) -> None:
    """Add to the sums each row of g times its factor, cut toward zero, times step."""
    rows, n = g.shape
    _add_units[(triton.cdiv(n, BLOCK),)](sums, g, factor, n, rows, step, BLOCK=BLOCK, num_warps=1)


@triton.jit
def _squares(
    g, partial, n, width, column, chunks,
    LANES: tl.constexpr, LOG: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """One chunk of one row: lane by lane, then the second half of the lanes added to the first until one is left."""
    row = (tl.program_id(0) // chunks).to(tl.int64)
    chunk = tl.program_id(0) % chunks
    start = chunk.to(tl.int64) * CHUNK
    lane = tl.arange(0, LANES)
    first = g + (row * n + start) + lane
    left = tl.minimum(n - start, CHUNK).to(tl.int32)
    total = tl.zeros((LANES,), tl.float64)
    for done in range(0, left, LANES):
        value = tl.load(first + done, mask=lane < left - done, other=0.0).to(tl.float32).to(tl.float64)
        total += value * value  # exact for the squares of floats, fused or not
    for k in tl.static_range(LOG):
        total = tl.sum(tl.reshape(total, (2, LANES >> (k + 1))), 0)
    tl.store(partial + (row * width + column + chunk), tl.sum(total, 0))


@triton.jit
def _add_units(sums, g, factor, n, rows, step, BLOCK: tl.constexpr):
    """One stretch of all rows."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    here = at < n
    total = tl.zeros((BLOCK,), tl.int64)
    row = g + at
    for k in range(rows):
        scale = tl.load(factor + k)
        value = tl.load(row, mask=here, other=0.0).to(tl.float32).to(tl.float64)
        value = tl.where(scale > 0.0, value, 0.0)  # what is undefined must not meet a product
        total += (value * scale).to(tl.int32).to(tl.int64)  # toward zero, below 2^31
        row += n
    before = tl.load(sums + at, mask=here, other=0.0)
    tl.store(sums + at, before + total.to(tl.float64) * step, mask=here)
