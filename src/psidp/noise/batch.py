"""The batch: which records take part in a step, each chosen independently by a word of the key stream."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from psidp.noise.stream import BLOCK, KeyStream, Words
from psidp.symbols import symbol

__all__ = ["poisson_batch", "threshold"]


def threshold(sampling_rate: float) -> int:
    """How many of the 2^64 words put a record into the batch: floor(q 2^64), so never more than the rate allows.

    Examples:
        >>> threshold(0.25) == 2**62, threshold(1.0) == 2**64
        (True, True)
    """
    return int(Fraction(symbol("sampling_rate").number(sampling_rate)) * 2**64)


def poisson_batch(size: int, sampling_rate: float, words: Words | None = None) -> NDArray[np.int64]:
    """Numbers of the records in a Poisson batch, ascending: each of `size` records independently.

    Guarantees:
        A record is in with probability floor(q 2^64)/2^64 exactly, for words that are uniform: q itself from q = 2^-11
        on, and never more. The words come from a cipher under a key of the operating system made for this batch
        alone, so no seed, no fork and no second process can bring a batch back (docs/design/trainer.md).

    Args:
        size: number of records.
        sampling_rate: chance q of a record to be in the batch, [0, 1].
        words: where the words come from; a script, in tests only.

    Examples:
        >>> poisson_batch(4, 1.0).tolist(), poisson_batch(4, 0.0).tolist()
        ([0, 1, 2, 3], [])
    """
    limit = threshold(sampling_rate)
    if limit == 2**64:
        return np.arange(size, dtype=np.int64)
    source = KeyStream() if words is None else words
    chosen = [np.empty(0, np.int64)]
    for start in range(0, size, BLOCK):
        drawn = np.empty(min(BLOCK, size - start), np.int64)
        source.fill(drawn)
        chosen.append(start + np.flatnonzero(drawn.view(np.uint64) < np.uint64(limit)))
    return np.concatenate(chosen)
