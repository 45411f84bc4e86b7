"""The key stream: AES-256 in counter mode under a key from the operating system; no word is used twice."""

import os
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

__all__ = ["BLOCK", "KeyStream", "Words", "chacha20", "process"]

BLOCK = 65536
"""Words worked on at once: the fastest of 16 to 128 Ki here, and no array of a block is larger than 512 KiB."""

KEY_LIFE = 2**28
"""Bytes under one key at most; 2^24 counter blocks differ from random ones by an advantage below 2^-81."""

_ZEROS = memoryview(bytes(8 * BLOCK))
_forks = 0


class Words(Protocol):
    """Where random words come from: the key stream, or, in tests only, a script."""

    def fill(self, words: NDArray[np.int64]) -> None:
        """Overwrite `words` with independent uniform 64-bit words."""

    def rekey(self) -> None:
        """Take a new key: earlier words cannot be computed again."""


class KeyStream:
    """Uniform 64-bit words from AES-256-CTR, under a random key that nobody can set or read.

    Guarantees:
        No seed: a key is 32 bytes of `os.urandom` and is kept nowhere else. No word is read twice: a child
        process starts under a key of its own, a key serves at most `KEY_LIFE` bytes, and `rekey` leaves
        nothing from which earlier words could be made again. A stream belongs to one caller at a time;
        `normal_source.borrowed` ensures it.
    """

    def __init__(self) -> None:
        self.rekey()

    def rekey(self) -> None:
        """Start over under a fresh key from the operating system."""
        self._process = process()
        self._left = KEY_LIFE
        self._cipher = Cipher(algorithms.AES256(os.urandom(32)), modes.CTR(bytes(16))).encryptor()

    def fill(self, words: NDArray[np.int64]) -> None:
        """Overwrite `words` (contiguous) with the next words of the stream."""
        target = words.data.cast("B")
        for start in range(0, len(target), len(_ZEROS)):
            part = target[start : start + len(_ZEROS)]
            if self._left < len(part) or self._process != process():
                self.rekey()
            self._left -= self._cipher.update_into(_ZEROS[: len(part)], part)


def process() -> tuple[int, int]:
    """Which process this is: forks since the first one, and the number the system gave it."""
    return _forks, os.getpid()


def _forked() -> None:
    """A child process begins: nothing drawn before may be drawn again."""
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_forked)


def chacha20(key: bytes, place: bytes) -> bytes:
    """The 64 bytes of ChaCha20 under a key of 32 bytes at one of its 2^128 places (16 bytes, the counter first)."""
    return Cipher(algorithms.ChaCha20(key, place), None).encryptor().update(bytes(64))
