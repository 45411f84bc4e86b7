"""The key stream of one launch: ChaCha under a key of the operating system, as NumPy sees it.

A block is 16 words of 32 bits, a function of the key and of (number, serial, domain), which no two blocks of a
launch have in common. Every launch has a key of its own, so that no word is ever made twice: not by two calls,
streams, devices or processes. The kernels compute the same blocks on the GPU.
"""

import os

import numpy as np
from numpy.typing import NDArray

from psidp.noise.stream import chacha20

__all__ = ["FAST", "LAST", "MORE", "PROPOSAL", "ROUNDS", "Key", "blocks"]

ROUNDS = 20
"""The cipher of RFC 8439, with no round left out; docs/design/torch.md says why."""

FAST, MORE, PROPOSAL, LAST = 0, 1, 2, 3
"""Domains: first words, their extension, proposals for what the rectangles leave over, and the host's last resort."""

FEW = 64
"""So many blocks are made one by one."""

_SIGMA = np.frombuffer(b"expand 32-byte k", "<u4")

Words32 = NDArray[np.uint32]


class Key:
    """32 bytes of the operating system, as the eight words that a kernel takes; its text does not show them."""

    __slots__ = ("words",)

    def __init__(self, words: Words32 | None = None) -> None:
        self.words = np.frombuffer(os.urandom(32), "<u4") if words is None else words

    def __repr__(self) -> str:
        return "Key(...)"

    def arguments(self) -> list[int]:
        """Four signed words of 64 bits: one type for a kernel, whatever their value."""
        return [int(word) for word in self.words.view("<i8")]


def blocks(key: Key, number: NDArray[np.uint64], serial: int, domain: int, rounds: int = ROUNDS) -> Words32:
    """The blocks of these numbers, a row per word: shape (16, number.size)."""
    if rounds == ROUNDS and number.size <= FEW:
        return np.array([_library(key, int(n), serial, domain) for n in number], "<u4").reshape(-1, 16).T
    low, high = number.astype(np.uint32), (number >> np.uint64(32)).astype(np.uint32)
    first = [np.full_like(low, word) for word in (*_SIGMA, *key.words)]
    first += [low, high, np.full_like(low, serial), np.full_like(low, domain)]
    state = [word.copy() for word in first]
    for _ in range(rounds // 2):
        for i in range(4):
            _quarter(state, i, i + 4, i + 8, i + 12)
        for i in range(4):
            _quarter(state, i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12)
    return np.stack([word + start for word, start in zip(state, first, strict=True)])


def _library(key: Key, number: int, serial: int, domain: int) -> Words32:
    """One block by the library, which is quicker for a few."""
    place = number.to_bytes(8, "little") + serial.to_bytes(4, "little") + domain.to_bytes(4, "little")
    return np.frombuffer(chacha20(key.words.tobytes(), place), "<u4")


def _quarter(state: list[Words32], a: int, b: int, c: int, d: int) -> None:
    """A quarter round on four words of the state, in place."""
    for target, source, rotated, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[target] += state[source]
        state[rotated] ^= state[target]
        state[rotated] = (state[rotated] << np.uint32(by)) | (state[rotated] >> np.uint32(32 - by))
