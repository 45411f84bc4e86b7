"""One launch of the kernels: noise added in place to a contiguous tensor under a key of its own."""

import threading
from dataclasses import dataclass

import torch

from psidp.bridges.torch.noise import kernel_fast, kernel_slow
from psidp.bridges.torch.noise.chacha import Key
from psidp.bridges.torch.noise.host_fallback import Layout, settled_values
from psidp.bridges.torch.noise.tables import Tables, narrow_fits, tables
from psidp.noise.gaussian import RoundedGaussian

__all__ = ["LONGEST", "Shape", "add", "layout_of"]

LONGEST = 2**28
"""Entries of one launch at most."""

HARD = 2**16
"""Room for entries that the host settles: eighty times as many as a launch leaves on the finest grid."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a launch is cut: lanes to a tile of the fast kernel and of the slow one, a thread each, and its programs."""

    block: int = 128
    lanes: int = 32
    programs: int = 8448


class _Counters(threading.local):
    """Zeros on a device, made many at a time, since making a few takes as long as a launch.

    All lie on multiples of 16 bytes: kernels are compiled anew for pointers that are aligned differently.
    """

    def __init__(self) -> None:
        self._unused: dict[torch.device, list[torch.Tensor]] = {}

    def zeros(self, device: torch.device) -> torch.Tensor:
        """Counters at zero that nobody else has had: how many are marked, how many are open, and two to spare."""
        unused = self._unused.setdefault(device, [])
        if not unused:
            unused.extend(torch.zeros(512, 4, dtype=torch.int32, device=device).unbind())
            if device.type == "cuda":
                torch.cuda.synchronize(device)  # another stream may use them first
        return unused.pop()


_COUNTERS = _Counters()


def layout_of(noise: RoundedGaussian, x: torch.Tensor, shape: Shape, rounds: int) -> Layout:
    """16 entries to a lane where words of 32 bits do, else 8."""
    narrow = x.dtype != torch.float64 and narrow_fits(noise.sigma, noise.grid)
    return Layout(16 if narrow else 8, shape.block, rounds)


def add(x: torch.Tensor, noise: RoundedGaussian, key: Key, layout: Layout, shape: Shape) -> int:
    """Add noise to a flat contiguous tensor; how many entries the host had to settle."""
    if not (x.dim() == 1 and x.is_contiguous()):
        raise ValueError("the kernels take one contiguous stretch of memory; anything else would be left bare.")
    lanes = -(-x.numel() // (layout.per * layout.block)) * layout.block
    marked = torch.empty(lanes, dtype=torch.int64, device=x.device)
    count = _COUNTERS.zeros(x.device)
    lookup = tables(noise.sigma, noise.grid, x.device)
    (_narrow if layout.per == 16 else _wide)(x, noise, key, layout, shape, lookup, marked, count)
    hard = torch.empty(HARD, dtype=torch.int64, device=x.device)
    kernel_slow.settle[(min(shape.programs, -(-lanes // shape.lanes)),)](
        x, marked, count, hard, HARD, layout.block,
        lookup.centre, lookup.reach, lookup.numbers, lookup.weights, lookup.cells,
        *key.arguments(), 1,
        PER=layout.per, LANES=shape.lanes, ROUNDS=layout.rounds, num_warps=max(1, shape.lanes // 32),
    )  # fmt: skip
    left = int(count.tolist()[1])
    if left:
        _finish(x, noise, key, layout, hard, left)
    return left


def _narrow(
    x: torch.Tensor, noise: RoundedGaussian, key: Key, layout: Layout, shape: Shape,
    lookup: Tables, marked: torch.Tensor, count: torch.Tensor,
) -> None:  # fmt: skip
    """The fast kernel in floats: whole tiles without a mask, then the rest with one."""
    n, tile = x.numel(), layout.per * layout.block
    for first, tiles, even in ((0, n // tile, True), (n // tile, int(n % tile != 0), False)):
        if tiles:
            kernel_fast.narrow[(tiles,)](
                x, lookup.steps, marked, count, 1.0 / noise.grid, noise.grid, n, first,
                *key.arguments(), 1,
                EVEN=even, BLOCK=layout.block, ROUNDS=layout.rounds, num_warps=max(1, shape.block // 32),
            )  # fmt: skip


def _wide(
    x: torch.Tensor, noise: RoundedGaussian, key: Key, layout: Layout, shape: Shape,
    lookup: Tables, marked: torch.Tensor, count: torch.Tensor,
) -> None:  # fmt: skip
    """The fast kernel in doubles."""
    tiles = -(-x.numel() // (layout.per * layout.block))
    kernel_fast.wide[(tiles,)](
        x, lookup.centre, lookup.reach, lookup.numbers, marked, count, x.numel(), 0,
        *key.arguments(), 1,
        BLOCK=layout.block, ROUNDS=layout.rounds, num_warps=max(1, shape.block // 32),
    )  # fmt: skip


def _finish(x: torch.Tensor, noise: RoundedGaussian, key: Key, layout: Layout, hard: torch.Tensor, left: int) -> None:
    """Settle on the host what both kernels left as it was."""
    if left > HARD:
        raise ArithmeticError(
            f"{left} values were left open where fewer than {HARD} can be; this device does not compute as it should. "
            "The tensor is spoilt: throw it away."
        )
    at = hard[:left]
    settled = settled_values(noise, key, layout, at.tolist(), x[at].to(torch.float64).tolist())
    wanted = torch.float32 if x.dtype == torch.bfloat16 else x.dtype
    x[at] = torch.tensor(settled, dtype=torch.float64).to(wanted).to(x.dtype).to(x.device)
