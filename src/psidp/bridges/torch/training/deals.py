"""Deals: each step's draw, dealt to the ranks that compute it together, and the count of steps that they share."""

import os
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from psidp.bridges.torch.step.ranks import Ranks
from psidp.bridges.torch.step.slots import order
from psidp.bridges.torch.training.batches import Batches, Numbers
from psidp.bridges.torch.training.journal import Tally

__all__ = ["Deals", "SharedTally"]


class Deals:
    """Rank 0 draws records and places; every rank takes its own micro-batches of them. Nothing of it is written down.

    Guarantees:
        The law of the places is that of one process: docs/design/step.md, claim 6, with the rank as part of the place.
        With micro_batch=1 an example's rank is drawn for it alone, so that nobody else's presence moves it.

    Args:
        ranks: who computes.
        batches: who draws.
        slots, micro_batch: of the step.
    """

    def __init__(self, ranks: Ranks, batches: Batches, slots: int, micro_batch: int) -> None:
        if not (slots or micro_batch == 1 or ranks.size == 1):
            raise ValueError("slots (places) on several processes must be a public number above 0, got slots=0.")
        self._ranks, self._batches = ranks, batches
        self._slots, self._size = slots, micro_batch
        self._places: deque[Numbers] = deque()

    def draws(self, steps: range) -> Iterator[Numbers]:
        """The records that this rank reads for each step, in order."""
        for step in steps:
            if self._ranks.size == 1:
                yield self._batches.of(step)
                continue
            drawn = torch.from_numpy(self._dealt(self._batches.of(step))) if self._ranks.first else None
            mine = self._ranks.told_numbers(drawn).numpy().reshape(self._ranks.size, -1)[self._ranks.rank]
            live = mine >= 0
            places = np.where(live, np.cumsum(live) - 1, -1)
            self._places.append(places if self._slots else places[live])
            yield mine[live]

    def places(self) -> Numbers | None:
        """Which of the records of the next step is in each of this rank's places, where there are others."""
        return self._places.popleft() if self._ranks.size > 1 else None

    def _dealt(self, numbers: Numbers) -> Numbers:
        """The record in each place of all ranks, one rank after the other; -1 for none."""
        if not self._slots:
            return _by_lot(numbers, self._ranks.size)
        who = order(numbers.size, self._slots)
        seated = np.where(who >= 0, np.append(numbers, -1)[who], -1)
        return np.append(seated, np.full(-seated.size % (self._ranks.size * self._size), -1))


class SharedTally:
    """A tally that rank 0 keeps and the others follow.

    Args:
        ranks: who takes the steps.
        tally: that of rank 0; the others' is not used.
        started: steps so far.
        ahead: whether draws are dealt before their step begins, as for workers that read ahead. Otherwise a draw comes
            after its step counts, and tells the others so.
    """

    def __init__(self, ranks: Ranks, tally: Tally, started: int, ahead: bool) -> None:
        self._ranks, self._tally, self._ahead = ranks, tally, ahead
        self._followed = started

    @property
    def started(self) -> int:
        """Steps started so far; on other ranks than the first, as far as they know."""
        return self._tally.started if self._ranks.first else self._followed

    def begin(self) -> None:
        """One more, which counts on the disk before any rank goes on."""
        if self._ranks.first:
            self._tally.begin()
        self._followed += 1
        if self._ahead:
            self._ranks.meet()


def _by_lot(numbers: Numbers, ranks: int) -> NDArray[Any]:
    """Records for each rank, as each record's own lot has it, filled up to the same length."""
    lots = np.frombuffer(os.urandom(8 * numbers.size), np.uint64) % np.uint64(ranks)
    hands = [numbers[lots == rank] for rank in range(ranks)]
    longest = max(hand.size for hand in hands)
    return np.concatenate([np.append(hand, np.full(longest - hand.size, -1)) for hand in hands])
