"""Places of a step: how many there are, how many are computed at a time, and who is in which.

All of it follows from public numbers, but for the draw of who is where. docs/design/step.md, claims 5 to 7.
"""

from math import ceil
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from psidp.bridges.torch.step.slots import RARE, cheapest, enough, even, inhabited, order, overflow, packed
from psidp.symbols import symbol, whole

__all__ = ["Empty", "Places"]

Empty = Literal["skipped", "computed"]
"""What happens to micro-batches in which nobody is."""

MEMORY, FEWEST, MOST = 2**31, 16, 256
"""Unless told, so many examples at a time that their gradients would take these bytes, or between 16 and 256."""

ROOM = 1.1
"""And no more than so many times the expected draw: 129 places are then two micro-batches for a draw of 64."""

BEGIN, EVERY, SPEED = 1.5e-3, 0.13e-3, 6e10
"""On a CPU: seconds to begin a micro-batch, more for each parameter tensor, operations a second of each thread."""


class Places:
    """Places in micro-batches for the examples of a draw, or for users; arguments as PrivateStep has them.

    Attributes:
        micro_batch, slots: examples at a time, and places; 0 where there are as many as are drawn.
        settled: whether micro_batch stays as it is; else `settle` may choose another one.
        work: operations that one example takes, once a step has rehearsed.
        by_lot: whether the model was seen to draw random numbers. Examples of a micro-batch share their seed, and so
            nobody moves to another one.
        counts: whether model or loss were seen to count their passes. All places are computed then, so that their
            number does not depend on the draw.

    Examples:
        >>> places = Places(64.0, bytes_of_one=4000)
        >>> places.micro_batch, places.slots, len(places.arranged(64)) <= 130
        (65, 130, True)
    """

    def __init__(
        self,
        expected: float,
        *,
        bytes_of_one: int,
        micro_batch: int | None = None,
        memory: int | None = None,
        slots: int | None = None,
        kappa: float | None = None,
        empty: Empty = "skipped",
        each: int = 1,
        tensors: int = 1,
        ranks: int = 1,
        chooses: bool = True,
    ) -> None:
        if empty not in ("skipped", "computed"):
            raise ValueError(
                f'empty (micro-batches with nobody in them) must be "skipped" or "computed", got {empty!r}.'
            )
        self._expected, self._each, self._tensors, self._ranks = expected, each, tensors, ranks
        self._packs, self._told_slots = empty == "skipped", slots is not None
        chance = _chance(kappa, slots)
        most = self._size(micro_batch, memory, bytes_of_one, ROOM if slots is None else 1.0)
        self.micro_batch, self.slots = self._evened(most, slots, chance)
        free = micro_batch is None and memory is None and self.slots > 0 and self._packs
        self.settled = not (free and chooses)
        self._fit = min(2 * MOST, MEMORY * each // bytes_of_one) // each
        self.work: float | None = None
        self.by_lot = self.counts = False

    @property
    def kappa(self) -> float:
        """Chance at most that an example more or less makes another change its place, in a step with Poisson draws."""
        if self.micro_batch == 1:
            return 0.0
        return overflow(self._expected, self.slots) if self.slots else 1.0

    @property
    def moves(self) -> bool:
        """Whether examples are moved into as few micro-batches as hold them."""
        return self._packs and not (self.by_lot or self.counts)

    @property
    def most(self) -> int:
        """For how many places sums must be exact."""
        return max(self.slots, self.micro_batch, ceil(self._expected))

    def arranged(self, who: int | NDArray[np.int64]) -> NDArray[np.int64]:
        """Which unit is in each place that is computed, -1 for none: of a draw of so many, or in these places."""
        places = order(who, self.slots) if isinstance(who, int) else who
        if not self._packs or self.counts:
            return places
        return (packed if self.moves else inhabited)(places, self.micro_batch)

    def settle(self) -> int:
        """The micro_batch from now on: chosen by the time it takes, once, if none was given and one was rehearsed.

        By public numbers alone: places, which never get fewer, parameters, threads, and the operations that an
        example's shape needs. All places at once, where to begin takes longer than to compute them. Where the model
        draws random numbers or counts its passes it stays as it is, since nobody moves.
        """
        if self.work is not None and not self.settled:
            begin, speed = BEGIN + EVERY * self._tensors, SPEED * torch.get_num_threads()
            each = self.work * self._each / speed
            all_ = ceil(self.slots / self._ranks)
            if self.by_lot or self.counts:
                self.take(self.micro_batch)
            elif all_ <= self._fit and begin >= each * all_:
                self.take(all_)
            else:
                how = {"begin": begin, "each": each, "ranks": self._ranks}
                self.take(cheapest(self.slots, self._expected, self.micro_batch, **how))
        return self.micro_batch

    def take(self, micro_batch: int) -> None:
        """Micro-batches of this size from now on, as `settle` has it, here or on rank 0."""
        if micro_batch != self.micro_batch:
            self.micro_batch = micro_batch
            self.slots = self.slots if self._told_slots else micro_batch * ceil(self.slots / micro_batch)
        self.settled = True

    def _size(self, micro_batch: int | None, memory: int | None, one: int, room: float) -> int:
        """Units at a time at most."""
        if memory is not None and not whole("memory", memory) >= one:
            raise ValueError(
                f"memory (bytes for per-example gradients) must be at least {one}, what one example takes, "
                f"got memory={memory}."
            )
        if micro_batch is not None:
            return whole("micro_batch", micro_batch)
        if memory is not None:
            return max(1, memory // one)
        most = max(FEWEST, min(MOST, MEMORY * self._each // one))
        return max(1, min(most, max(FEWEST, ceil(room * self._expected) * self._each)) // self._each)

    def _evened(self, most: int, slots: int | None, chance: float) -> tuple[int, int]:
        """Units at a time, evenly, and places; where all examples have the only place, none need be empty."""
        need = enough(self._expected, chance) if slots is None else whole("slots", slots or 1)
        if slots == 0 or most == 1:
            return most, 0
        size = even(need, most, self._ranks)
        return size, size * ceil(need / size) if slots is None else need


def _chance(kappa: float | None, slots: int | None) -> float:
    """How often a draw may exceed its places, or a refusal."""
    if kappa is None:
        return RARE
    if slots is not None:
        raise TypeError(f"give slots (places) or kappa (how often a draw exceeds them), not both, got slots={slots}.")
    if not 0.0 < symbol("kappa").number(kappa) < 1.0:
        raise ValueError(f"kappa (chance of a draw to exceed its places) must be in (0, 1), got kappa={kappa}.")
    return float(kappa)
