"""What the GPU left open, settled on the host: one value at a time, in integers, from the same key stream."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from psidp.bridges.torch.noise.chacha import FAST, LAST, MORE, PROPOSAL, ROUNDS, Key, blocks
from psidp.noise import rejection, table
from psidp.noise.gaussian import RoundedGaussian
from psidp.noise.normal import LazyNormal

__all__ = ["Layout", "settled_values", "steps_at"]


@dataclass(frozen=True, slots=True)
class Layout:
    """Which word of the key stream belongs to which entry: `per` entries to a lane, `block` lanes to a tile."""

    per: int
    block: int
    rounds: int = ROUNDS

    def places(self, position: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lane and index in it of each entry."""
        tile, rest = np.divmod(position, self.per * self.block)
        return tile * self.block + rest % self.block, rest // self.block

    def words(self, key: Key, position: NDArray[np.int64]) -> NDArray[np.int64]:
        """The 64-bit word that each entry begins with, the slot in its 13 low bits.

        Of 16 entries to a lane each has 32 bits of its lane's block: cell, 19 bits of the place and sign, followed by
        32 of its own block in domain MORE; in an odd slot, which is a mirrored one, all bits of the place are flipped.
        Of 24 each has 21 bits, slot and 8 of the place, followed by 43 of its own block.
        """
        lane, index = self.places(position)
        block = blocks(key, lane.astype(np.uint64), 0, FAST, self.rounds).astype(np.uint64)
        column = np.arange(position.size)
        if self.per == 8:
            low, high = block[2 * index, column], block[2 * index + 1, column]
            return np.asarray((low | high << np.uint64(32)).view(np.int64))
        more = blocks(key, position.astype(np.uint64), 0, MORE, self.rounds)[:2].astype(np.int64)
        if self.per == 24:
            third, at = index >= 16, np.where(index < 16, index, 2 * (index - 16))
            rest = (block[at, column] & 0x7FF) << 10 | block[np.minimum(at + 1, 15), column] & 0x3FF
            first = np.where(third, rest, block[at, column] >> 11).view(np.int64)
            place = ((first & 0xFF) - 0x80) << 43 | (more[1] & 0x7FF) << 32 | more[0]
            return np.asarray(place << 13 | first >> 8)
        first, more = block[index, column].view(np.int64), more[0]
        sign, place = first & 1, (((first >> 1 & 0x7FFFF) - 0x40000) << 32) | more
        return np.asarray((np.where(sign == 1, ~place, place) << 13) | (first >> 20 << 1 | sign))


class _Own:
    """The words of one entry beyond its first: given ones, then those of its blocks in domain LAST."""

    def __init__(self, key: Key, position: int, rounds: int) -> None:
        self.given: list[int] = []
        self._rest = self._last(key, position, rounds)

    def fill(self, words: NDArray[np.int64]) -> None:
        """Overwrite `words` with the next ones."""
        for i in range(words.size):
            words[i] = self.given.pop(0) if self.given else next(self._rest)

    def rekey(self) -> None:
        """A launch has one key."""

    @staticmethod
    def _last(key: Key, position: int, rounds: int) -> Iterator[int]:
        """The words of domain LAST."""
        for serial in range(2**32):
            yield from _block(key, position, serial, LAST, rounds)


def settled_values(noise: RoundedGaussian, key: Key, layout: Layout, at: list[int], x: list[float]) -> list[float]:
    """Values plus the noise of their places, exactly, then as doubles."""
    x = [min(max(value, -noise.limit), noise.limit) if value == value else 0.0 for value in x]
    whole = [float(np.rint(value / noise.grid)) for value in x]
    offset = [Fraction(v) / Fraction(noise.grid) - Fraction(w) for v, w in zip(x, whole, strict=True)]
    steps = steps_at(key, layout, at, noise.sigma / noise.grid, offset)
    return [((w + float(z)) + 0.0) * noise.grid for w, z in zip(whole, steps, strict=True)]


def steps_at(key: Key, layout: Layout, position: list[int], scale: float, offset: list[Fraction]) -> list[int]:
    """round(offset + scale N) for the normal N that the key stream holds at each of these entries; exact."""
    first = layout.words(key, np.array(position, np.int64)).tolist()
    steps = []
    for at, word, rest in zip(position, first, offset, strict=True):
        words = _Own(key, at, layout.rounds)
        slot = word & (table.SLOTS - 1)
        normal = LazyNormal.in_slot(slot, word) if slot < table.LEFT_OVER else _replacement(key, layout, at, words)
        steps.append(normal.rounded(Fraction(scale), rest, words))
    return steps


def _replacement(key: Key, layout: Layout, position: int, words: _Own) -> LazyNormal:
    """The first accepted of the entry's proposals, two to a block."""
    for serial in range(2**32):
        block = _block(key, position, serial, PROPOSAL, layout.rounds)
        for given in (block[0:3], block[3:6]):
            words.given = given
            slots, places, rare = rejection.drawn(words, 1)
            if slots.size:
                return rare[0] if rare else LazyNormal.in_slot(int(slots[0]), int(places[0]))
    raise ArithmeticError("2^33 proposals in a row were refused; this machine does not compute.")


def _block(key: Key, position: int, serial: int, domain: int, rounds: int) -> list[int]:
    """A block as eight signed 64-bit words."""
    words = blocks(key, np.array([position], np.uint64), serial, domain, rounds)
    return [int(word) for word in np.ascontiguousarray(words[:, 0]).view("<i8")]
