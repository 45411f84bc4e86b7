"""Correlated noise: exact totals of step after step in, noisy totals out, by a strategy of whole numbers.

With c the strategy's whole numbers, c_0 = 2^F, and x_t the totals of step t, it keeps e_t = x_t - g_t, what was wrong
in the totals g_t that it gave out, and adds fresh exact noise to m = c_0 x_t + sum_j c_j e_(t-j). This is the release
of the strategy, decoded, to the last bit (docs/design/correlated.md, claim 3).
"""

from math import ldexp, log2
from typing import NoReturn

import numpy as np
import torch
from torch import nn

from psidp.bridges.torch.noise.tensors import add_noise_
from psidp.bridges.torch.step.ranks import Ranks
from psidp.bridges.torch.step.trainable import trainable
from psidp.noise.stream import process
from psidp.strategies import Participation, Toeplitz

__all__ = ["CorrelatedNoise", "correlated_noise", "fineness_for"]

EXACT = 2**53
"""Encoded totals end here: up to so many a double is exact."""

LARGEST = 2**50
"""Totals end here, so that times c_0 they fit into 64 bits."""

MOST = 2**31 - 1
"""What was wrong ends here, so that 32 bits hold it; planned to be twelve standard deviations away."""

WIDE = 12.0
FINEST, COARSEST = 30, 16
"""An example's norm bound is 2^30 units at most, as without correlation, and 2^16 at least."""

PART = {"cpu": 2**18}
LARGE = 2**24
"""Entries at a time: on the CPU so many that they stay in its cache."""

ONCE = Participation(at_most=1)


class CorrelatedNoise:
    """Noise for the totals of a run, step by step; what it keeps is as secret as the data, and never leaves memory.

    Guarantees:
        What comes out in all steps together is a function of the strategy's release, sum_j c_j x_(t-j) + sigma |c| N_t
        with independent true normals N_t, and of what came out before. A step that was left out, or that failed, counts
        as zero totals: the column of an earlier step is then cut, which costs no more (claim 5).

    Args:
        strategy: whole numbers whose first is a power of two.
        size: number of parameters.
        device: where they are.
        noise_multiplier: from which it follows how fine the totals may be.
        grid: for tests; 1 makes the noise whole.

    Examples:
        >>> noise = CorrelatedNoise(Toeplitz(8, (4096, 2048)), 3, torch.device("cpu"), 1.0)
        >>> noise.at(0)
        >>> noise(torch.tensor([2**20, 0, 0]), sigma=1000.0).shape
        torch.Size([3])
    """

    def __init__(
        self,
        strategy: Toeplitz,
        size: int,
        device: torch.device,
        noise_multiplier: float,
        *,
        grid: float | None = None,
    ) -> None:
        first = strategy.coefficients[0]
        if first & (first - 1):
            raise ValueError(f"strategy must begin with a power of two, got {first}.")
        self.strategy, self._bits, self._grid = strategy, first.bit_length() - 1, grid
        self.fineness = fineness_for(strategy, noise_multiplier)
        self._ring = torch.zeros((max(strategy.bands - 1, 1), size), dtype=torch.int32, device=device)
        self._held: list[int | None] = [None] * len(self._ring)
        self._next: int | None = None
        self._process = process()

    def __repr__(self) -> str:
        return f"CorrelatedNoise(bands={self.strategy.bands})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("correlated noise must not be copied or stored: it holds what the noise hides.")

    def at(self, step: int) -> None:
        """Say which step of the run, counted from 0, the next totals are of; each once, and in order."""
        last = max((held for held in self._held if held is not None), default=-1)
        if not last < step < self.strategy.periods:
            raise RuntimeError(
                f"step {step} must come after step {last}, and before step {self.strategy.periods}, where the run ends."
            )
        self._next = step

    def __call__(self, totals: torch.Tensor, sigma: float) -> torch.Tensor:
        """The totals (64-bit integers, one flat tensor, of which nothing is left) with noise, as doubles.

        sigma is that of independent noise, noise_multiplier times the norm bound; the strategy's is |c| times as large.
        """
        if process() != self._process:
            raise RuntimeError("correlated noise must go on in the process that began it; this one is a fork.")
        if self._next is None:
            raise RuntimeError("correlated noise must be told its step first: at(step).")
        step, self._next = self._next, None
        wide = self.strategy.sensitivity(ONCE, sigma)
        earlier = self._earlier(step)
        slot = step % len(self._held)
        self._held[slot] = None  # until all of it is there: a step that fails half-way is forgotten
        totals.clamp_(-LARGEST, LARGEST)
        doubles = totals.view(torch.float64)
        length = PART.get(totals.device.type, LARGE)
        for start in range(0, totals.numel(), length):
            part = slice(start, min(start + length, totals.numel()))
            given = self._given(totals[part], part, earlier, wide)
            error = (totals[part] - given).clamp_(-MOST, MOST)
            doubles[part] = given.to(torch.float64)
            if self.strategy.bands > 1:
                self._ring[slot, part] = error.to(torch.int32)
        self._held[slot] = step
        return doubles

    def wipe(self) -> None:
        """Forget everything: the run is over."""
        self._ring.zero_()
        self._held = [None] * len(self._held)

    def _earlier(self, step: int) -> list[tuple[int, int]]:
        """Places in the ring with their coefficients, of the steps before that are remembered."""
        ages = range(1, self.strategy.bands)
        places = [((step - age) % len(self._held), self.strategy.coefficients[age], step - age) for age in ages]
        return [(place, c) for place, c, when in places if self._held[place] == when]

    def _given(self, x: torch.Tensor, part: slice, earlier: list[tuple[int, int]], sigma: float) -> torch.Tensor:
        """g = (m + sigma N) / c_0, to the nearest integer."""
        m = x << self._bits
        for place, c in earlier:
            m.add_(self._ring[place, part], alpha=c)
        noisy = add_noise_(m.clamp_(-EXACT, EXACT).to(torch.float64), sigma, grid=self._grid)
        return noisy.add_(ldexp(0.5, self._bits)).mul_(ldexp(1.0, -self._bits)).floor_().to(torch.int64)


def fineness_for(strategy: Toeplitz, noise_multiplier: float) -> int:
    """How fine totals are: an example's norm bound is so many bits of units, so that 32 bits hold what was wrong.

    Examples:
        >>> fineness_for(Toeplitz(100, (4096, 2048)), 1.0), fineness_for(Toeplitz(100, (4096, 2048)), 20.0)
        (26, 21)
    """
    spread = float(np.linalg.norm(strategy.inverse())) * float(np.linalg.norm(np.asarray(strategy.coefficients, float)))
    room = log2(MOST / (WIDE * spread * noise_multiplier)) - 1.0  # the bound is below twice that power of two
    return max(COARSEST, min(FINEST, int(room) if room > 0 else 0))


def correlated_noise(strategy: Toeplitz, model: nn.Module, noise_multiplier: float, ranks: Ranks) -> CorrelatedNoise:
    """The noise of a run, for a rank's own part of the parameters of a model that are trained."""
    parameters = list(trainable(model, ranks.size).values())
    size = ranks.part_of(sum(p.numel() for p in parameters))
    return CorrelatedNoise(strategy, size, parameters[0].device, noise_multiplier)
