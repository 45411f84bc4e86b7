"""NormalSource: lazy standard normals from a key stream, with pools so that timing reveals nothing about the noise.

A normal is a slot of the table and a 64-bit word. Nearly all are one word of the key stream; about one in
820 lands among the slots that are left over and is replaced by a draw from `rejection`, which was made
before it was needed, in a batch of fixed size.
"""

from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from psidp.noise import rejection, table
from psidp.noise.normal import LazyNormal
from psidp.noise.stream import BLOCK, KeyStream, Words, process

__all__ = ["SMALL", "NormalSource", "borrowed", "forget"]

SMALL = 2048
"""Vectors up to this length come from a pool of finished normals."""

POOL = 16384
PROPOSALS = 4096
SINGLES = 1024
IDLE = 8

Ints = NDArray[np.int64]


class NormalSource:
    """Lazy normals for one caller at a time; tests pass scripted `words` in place of the key stream."""

    def __init__(self, words: Words | None = None) -> None:
        self.words: Words = KeyStream() if words is None else words
        self.process = process()
        self.word, self.slot = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
        self.offset, self.whole = np.empty(BLOCK), np.empty(BLOCK)
        self.near, self.away = np.empty(BLOCK), np.empty(BLOCK)
        self.flag = np.empty(BLOCK, np.bool_)
        self._special_slot, self._special_word = np.empty(0, np.int64), np.empty(0, np.int64)
        self._rare: dict[int, LazyNormal] = {}
        self._rare_seen = 0
        self._pool_slot, self._pool_word = np.empty(0, np.int64), np.empty(0, np.int64)
        self._values: list[float] = []
        self._single_slot, self._single_word = np.empty(0, np.int64), np.empty(0, np.int64)

    def fresh(self, n: int) -> tuple[Ints, Ints]:
        """Slots and words of n <= BLOCK normals; those in the left-over slots must still be replaced."""
        word, slot = self.word[:n], self.slot[:n]
        self.words.fill(word)
        np.bitwise_and(word, table.SLOTS - 1, out=slot)
        return slot, word

    def ready(self, n: int) -> tuple[Ints, Ints]:
        """Slots and words of n <= SMALL finished normals; how long it takes depends on n alone."""
        if self._pool_slot.size < n:
            self._refill()
        slot, word = self._pool_slot[:n].copy(), self._pool_word[:n].copy()
        self._pool_slot[:n] = self._pool_word[:n] = 0
        self._pool_slot, self._pool_word = self._pool_slot[n:], self._pool_word[n:]
        return slot, word

    def one(self) -> tuple[float, int]:
        """One finished normal as a double, NaN if only integers hold it, and its place; forgets the one before.

        The slot stays in its array: as an integer of Python it would take longer or less long to reach, depending
        on its size, and so on that of the noise.
        """
        if not self._values:
            slot, word = self.ready(SINGLES)
            self._values = (table.CENTRE[slot] + table.REACH[slot] * (word * 2.0**-63)).tolist()
            self._single_slot, self._single_word = slot, np.append(word, 0)
        value = self._values.pop()
        place = len(self._values)
        self._single_word[place + 1] = 0
        return value, place

    def single(self, place: int) -> tuple[int, int]:
        """Slot and word of the normal that `one` gave last."""
        return int(self._single_slot[place]), int(self._single_word[place])

    def replace(self, slot: Ints, word: Ints, at: Ints) -> None:
        """Put draws of what the rectangles leave over in the places `at`."""
        n = at.size
        while self._special_slot.size < n:
            self._stock()
        slot[at], word[at] = self._special_slot[:n], self._special_word[:n]
        self._special_slot, self._special_word = self._special_slot[n:], self._special_word[n:]

    def lazy(self, slot: int, word: int) -> LazyNormal:
        """The normal itself, with as many more bits as are needed; to be asked for once."""
        return self._rare.pop(word) if slot == rejection.RARE else LazyNormal.in_slot(slot, word)

    def wipe(self, n: int) -> None:
        """Forget what the last block drew."""
        self.word[:n] = self.slot[:n] = 0
        self.near[:n] = self.away[:n] = 0.0

    def _refill(self) -> None:
        """A pool of finished normals under a key of its own."""
        self.words.rekey()
        slot, word = np.empty(POOL, np.int64), np.empty(POOL, np.int64)
        self.words.fill(word)
        np.bitwise_and(word, table.SLOTS - 1, out=slot)
        self.replace(slot, word, np.flatnonzero(slot >= table.LEFT_OVER))
        self._pool_slot, self._pool_word = slot, word

    def _stock(self) -> None:
        """A batch more of what the rectangles leave over."""
        slot, word, rare = rejection.drawn(self.words, PROPOSALS)
        word[slot == rejection.RARE] += self._rare_seen
        self._rare.update(enumerate(rare, self._rare_seen))
        self._rare_seen += len(rare)
        self._special_slot = np.concatenate([self._special_slot, slot])
        self._special_word = np.concatenate([self._special_word, word])


_idle: list[NormalSource] = []


def forget() -> None:
    """Discard all idle sources: for a virtual machine that resumes from a snapshot, which nothing here can detect."""
    _idle.clear()


class borrowed:
    """A NormalSource that nobody else holds, for the length of a with-block.

    Guarantees:
        Two callers never hold the same source: not two threads, not a signal handler and what it interrupted,
        not a parent and its child. A source that saw an exception or a fork is discarded.
    """

    __slots__ = ("_dice",)

    def __enter__(self) -> NormalSource:
        """An idle source of this process, or a new one."""
        try:
            dice = _idle.pop()
        except IndexError:
            dice = NormalSource()
        if dice.process != process():
            _idle.clear()
            dice = NormalSource()
        self._dice = dice
        return dice

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Return the source to the idle ones, unless something went wrong."""
        if error is None and len(_idle) < IDLE:
            _idle.append(self._dice)
