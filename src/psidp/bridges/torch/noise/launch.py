"""One launch of the kernels: noise added in place to a contiguous tensor under a key of its own."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from psidp.bridges.torch.noise import kernel_fast, kernel_short, kernel_slow
from psidp.bridges.torch.noise.chacha import Key
from psidp.bridges.torch.noise.host_fallback import Layout, settled_values
from psidp.bridges.torch.noise.tables import Tables, narrow_fits, short_fits, tables
from psidp.noise.gaussian import RoundedGaussian

__all__ = ["LONGEST", "Shape", "add", "layout_of", "started"]

LONGEST = 2**28
"""Entries of one launch at most."""

AGAIN = 2**17
"""Room for entries whose first proposals were refused: twice as many as a launch has; what does not fit is hard."""

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
        """Counters at zero that nobody else has had: how many are marked, open, tried again, and one to spare."""
        unused = self._unused.setdefault(device, [])
        if not unused:
            unused.extend(torch.zeros(512, 4, dtype=torch.int32, device=device).unbind())
            if device.type == "cuda":
                torch.cuda.synchronize(device)  # another stream may use them first
        return unused.pop()


_COUNTERS = _Counters()


def layout_of(noise: RoundedGaussian, x: torch.Tensor, shape: Shape, rounds: int) -> Layout:
    """24 or 16 entries to a lane where words of 21 or 32 bits do, else 8."""
    per = 8
    if x.dtype != torch.float64 and narrow_fits(noise.sigma, noise.grid):
        per = 24 if short_fits(noise.sigma, noise.grid) else 16
    return Layout(per, shape.block, rounds)


def add(x: torch.Tensor, noise: RoundedGaussian, key: Key, layout: Layout, shape: Shape) -> int:
    """Add noise to a flat contiguous tensor; how many entries the host had to settle."""
    return started(x, noise, key, layout, shape)()


def started(x: torch.Tensor, noise: RoundedGaussian, key: Key, layout: Layout, shape: Shape) -> Callable[[], int]:
    """What waits for the kernels that were launched here, settles the rest on the host and says how many that were.

    Until it is called, some entries may be bare.
    """
    if not (x.dim() == 1 and x.is_contiguous()):
        raise ValueError("the kernels take one contiguous stretch of memory; anything else would be left bare.")
    fit = layout_of(noise, x, shape, layout.rounds)
    if not layout == fit:
        raise ValueError(
            f"layout (which words of the key stream are whose) must be {fit}, that of this grid and type, got "
            f"layout={layout}. Take layout_of."
        )
    lanes = -(-x.numel() // (layout.per * layout.block)) * layout.block
    marked = torch.empty(2 * lanes, dtype=torch.int64, device=x.device)
    count = _COUNTERS.zeros(x.device)
    lookup = tables(noise.sigma, noise.grid, x.device)
    words = (*key.arguments(), 1)
    (_wide if layout.per == 8 else _narrow)(x, noise, words, layout, shape, lookup, marked, count)
    again, hard = torch.empty(AGAIN + HARD, dtype=torch.int64, device=x.device).split([AGAIN, HARD])
    for number, (listed, most) in enumerate(((marked, lanes), (again, min(AGAIN, lanes)))):
        kernel_slow.settle[(min(shape.programs, -(-most // shape.lanes)),)](
            x, listed, count, again, AGAIN, hard, HARD, layout.block,
            lookup.centre, lookup.reach, lookup.numbers, lookup.weights, lookup.guide, lookup.cells,
            *words,
            PASS=number, PER=layout.per, LANES=shape.lanes, ROUNDS=layout.rounds, num_warps=max(1, shape.lanes // 32),
        )  # fmt: skip
    return partial(_finish, x, noise, key, layout, hard, count)


def _narrow(
    x: torch.Tensor, noise: RoundedGaussian, words: tuple[int, ...], layout: Layout, shape: Shape,
    lookup: Tables, marked: torch.Tensor, count: torch.Tensor,
) -> None:  # fmt: skip
    """A fast kernel in floats: whole tiles without a mask, then the rest with one."""
    kernel, more = (kernel_short.short, {"CONVERTS": x.is_cuda}) if layout.per == 24 else (kernel_fast.narrow, {})
    n, tile = x.numel(), layout.per * layout.block
    for first, tiles, even in ((0, n // tile, True), (n // tile, int(n % tile != 0), False)):
        if tiles:
            kernel[(tiles,)](
                x, lookup.steps, marked, count, 1.0 / noise.grid, noise.grid, n, first,
                *words,
                EVEN=even, BLOCK=layout.block, ROUNDS=layout.rounds, num_warps=max(1, shape.block // 32), **more,
            )  # fmt: skip


def _wide(
    x: torch.Tensor, noise: RoundedGaussian, words: tuple[int, ...], layout: Layout, shape: Shape,
    lookup: Tables, marked: torch.Tensor, count: torch.Tensor,
) -> None:  # fmt: skip
    """The fast kernel in doubles."""
    tiles = -(-x.numel() // (layout.per * layout.block))
    kernel_fast.wide[(tiles,)](
        x, lookup.centre, lookup.reach, lookup.numbers, marked, count, x.numel(), 0,
        *words,
        BLOCK=layout.block, ROUNDS=layout.rounds, num_warps=max(1, shape.block // 32),
    )  # fmt: skip


def _finish(
    x: torch.Tensor, noise: RoundedGaussian, key: Key, layout: Layout, hard: torch.Tensor, count: torch.Tensor
) -> int:
    """Settle on the host what both kernels left as it was; how many entries that were."""
    left = int(count.tolist()[1])
    if left == 0:
        return 0
    if left > HARD:
        raise ArithmeticError(
            f"{left} values were left open where fewer than {HARD} can be; this device does not compute as it should. "
            "The tensor is spoilt: throw it away."
        )
    at = hard[:left]
    settled = settled_values(noise, key, layout, at.tolist(), x[at].to(torch.float64).tolist())
    wanted = torch.float32 if x.dtype == torch.bfloat16 else x.dtype
    x[at] = torch.tensor(settled, dtype=torch.float64).to(wanted).to(x.dtype).to(x.device)
    return left
