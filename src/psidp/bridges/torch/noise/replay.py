"""The NumPy path on the key stream of a launch: what the kernels have to agree with, bit for bit."""

import numpy as np
from numpy.typing import NDArray

from psidp.bridges.torch.noise.chacha import Key
from psidp.bridges.torch.noise.host_fallback import Layout, settled_values
from psidp.noise import table
from psidp.noise.gaussian import RoundedGaussian
from psidp.noise.normal_source import SMALL, NormalSource

__all__ = ["replayed"]


class _Script:
    """Words of the launch for the normals themselves, and for nothing else."""

    def __init__(self, words: NDArray[np.int64]) -> None:
        self._words, self._next = words, 0
        self.dice: NormalSource | None = None

    def fill(self, words: NDArray[np.int64]) -> None:
        """The next words, if the normals ask; a fixed pattern for draws that are thrown away here."""
        if self.dice is not None and np.may_share_memory(words, self.dice.word):
            words[:] = self._words[self._next : self._next + words.size]
            self._next += words.size
        else:
            words[:] = np.arange(words.size) * 0x5851F42D4C957F2D

    def rekey(self) -> None:
        """A launch has one key."""


def replayed(noise: RoundedGaussian, key: Key, layout: Layout, x: NDArray[np.floating]) -> NDArray[np.float64]:
    """x plus noise as the NumPy path has it for these words, as doubles; left-over slots settled in integers.

    Where NumPy would draw a word more, once in 10^8 entries, the result may be a neighbouring one.
    """
    if x.size <= SMALL:  # NumPy takes such from a pool
        return np.array(settled_values(noise, key, layout, list(range(x.size)), x.astype(np.float64).tolist()))
    words = layout.words(key, np.arange(x.size))
    script = _Script(words)
    dice = script.dice = NormalSource(script)
    result = np.empty(x.size)
    with np.errstate(all="ignore"):
        noise._add(dice, x, result)
    special = np.flatnonzero((words & (table.SLOTS - 1)) >= table.LEFT_OVER).tolist()
    result[special] = settled_values(noise, key, layout, special, x[special].astype(np.float64).tolist())
    return result
