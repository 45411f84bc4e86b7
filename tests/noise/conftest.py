"""A scripted source of words, for paths that chance would reach once in a million years."""

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest

from psidp.noise import table

HALF = Fraction(1, 2)


class Script:
    """Words in the order given and, when they are used up, those of a fixed generator."""

    def __init__(self, words=(), seed=0):
        self.words = [int(w) for w in words]
        self.rest = np.random.default_rng(seed)
        self.drawn = 0
        self.keys = 0

    def fill(self, words):
        n = words.size
        first = np.array(self.words[:n], np.uint64).view(np.int64) if self.words else np.empty(0, np.int64)
        del self.words[:n]
        words[: first.size] = first
        words[first.size :] = self.rest.integers(-(2**63), 2**63, n - first.size, np.int64)
        self.drawn += n

    def rekey(self):
        self.keys += 1


def ends(slot, word, extension=None):
    """The interval, as fractions, that a slot, a word and perhaps a second word confine the normal to."""
    cell = table.cell_of(slot)
    centre = (-1 if slot % 2 else 1) * (2 * int(table.EDGE[cell]) + int(table.WIDTH[cell]))
    known, bits = word >> 13, 50
    if extension is not None:
        known, bits = (known << 64) | (extension & (2**64 - 1)), 114
    low = (centre << bits) + int(table.WIDTH[cell]) * known
    return Fraction(low, 1 << (41 + bits)), Fraction(low + int(table.WIDTH[cell]), 1 << (41 + bits))


def roundings(slot, word, scale, offset, extension=None):
    """Nearest integers at the two ends of that interval."""
    low, high = ends(slot, word, extension)
    return floor(offset + scale * low + HALF), ceil(offset + scale * high + HALF) - 1


@pytest.fixture
def script():
    return Script


@pytest.fixture(scope="session")
def interval():
    return ends


@pytest.fixture(scope="session")
def both_roundings():
    return roundings
