"""A standard normal known to finitely many bits, which draws more of them when a decision asks for more."""

from fractions import Fraction
from math import ceil, floor

import numpy as np

from psidp.noise import table
from psidp.noise.stream import Words

__all__ = ["LazyNormal", "next_word"]

HALF = Fraction(1, 2)


class LazyNormal:
    """X = (centre + reach u) 2^-41 with u in [known, known + 1) 2^-bits, uniform there.

    The 51 high bits of a word say where in its slot the normal lies; further words extend them for ever, so
    that X is a real number of which only as much has been drawn as was needed.
    """

    __slots__ = ("_bits", "_centre", "_known", "_reach")

    def __init__(self, centre: int, reach: int, word: int) -> None:
        self._centre, self._reach = centre, reach
        self._known, self._bits = word >> 13, 50

    @classmethod
    def in_slot(cls, slot: int, word: int) -> "LazyNormal":
        """The normal that a slot of the table and a signed 64-bit word stand for."""
        cell = table.cell_of(slot)
        centre = 2 * int(table.EDGE[cell]) + int(table.WIDTH[cell])
        return cls(-centre if slot % 2 else centre, int(table.WIDTH[cell]), word)

    def extend(self, word: int) -> None:
        """Know 64 bits more; `word` holds them, signed or not."""
        self._known = (self._known << 64) | (word & (2**64 - 1))
        self._bits += 64

    def bounds(self) -> tuple[int, int, int]:
        """low, high and shift with low 2^-shift <= X < high 2^-shift."""
        low = (self._centre << self._bits) + self._reach * self._known
        return low, low + self._reach, 41 + self._bits

    def rounded(self, scale: Fraction, offset: Fraction, words: Words) -> int:
        """Nearest integer to offset + scale X, halves upward; exact."""
        while True:
            low, high, shift = self.bounds()
            least = floor(offset + scale * Fraction(low, 1 << shift) + HALF)
            most = ceil(offset + scale * Fraction(high, 1 << shift) + HALF) - 1
            if least == most:
                return least
            self.extend(next_word(words))


def next_word(words: Words) -> int:
    """One unsigned 64-bit word."""
    word = np.empty(1, np.int64)
    words.fill(word)
    return int(word[0]) & (2**64 - 1)
