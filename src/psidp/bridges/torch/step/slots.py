"""Places in micro-batches, given to the examples of a draw at random: who else was drawn must not move an example.

Kernels give an example's gradient other last bits in another place; docs/design/step.md, claims 5 to 7.
"""

import os
from math import ceil, exp, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from psidp.maths.bisection import between

__all__ = ["RARE", "cheapest", "enough", "even", "inhabited", "order", "overflow", "packed"]

RARE = 2.0**-40
"""Unless told, places are so many that a draw exceeds them no more often than this."""

SMALLEST, FREE, TRIES = 8, 0.98, 256
"""The least size that is chosen by cost, the part of the time below which it is, and how many arrangements tell."""

ROUNDING = 2.0**-48
"""What the terms of an exponent can lose, relative to the largest of them."""


def order(total: int, slots: int) -> NDArray[np.int64]:
    """Which example is in each of max(total, slots) places, -1 for none: all arrangements equally likely.

    Sorted by 128 bits of the operating system each, so that no two are ever equal.
    """
    used = max(total, slots)
    who = np.lexsort(np.frombuffer(os.urandom(16 * used), np.uint64).reshape(2, used))
    return np.where(who < total, who, -1)


def packed(who: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The same examples in the same places of as few micro-batches as hold them; -1 for none.

    Where nothing is drawn by lot, a gradient depends on the place in a micro-batch, and not on which it is: claim 6.

    Examples:
        >>> packed(np.array([-1, 0, 2, -1, -1, -1, -1, 1]), 2).tolist()
        [2, 0, -1, 1]
    """
    rows = _rows(who, size)
    return inhabited(np.take_along_axis(rows, np.argsort(rows < 0, axis=0, kind="stable"), axis=0).reshape(-1), size)


def inhabited(who: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The same examples in the same micro-batches, without those in which nobody is; -1 for none.

    Examples:
        >>> inhabited(np.array([-1, 0, 2, -1, -1, -1, -1, 1]), 2).tolist()
        [-1, 0, 2, -1, -1, 1]
    """
    rows = _rows(who, size)
    return np.asarray(rows[rows.max(axis=1, initial=-1) >= 0].reshape(-1), np.int64)


def overflow(expected: float, slots: int) -> float:
    r"""Upper bound on the chance of a Poisson draw of this mean, or of a neighbour's, to exceed the slots.

    .. math:: P(X \ge N) \le \frac{e^{N - M - N \log(N/M)}}{\sqrt{2 \pi N}} \cdot \frac{1}{1 - M/(N + 1)},
        \qquad M = \texttt{expected} + 1, \quad N = \texttt{slots} + 1

    Guarantees:
        Never below the tail of the Poisson law of mean M, and at most a few percent above it; for N >= M + 1 that law
        has the heaviest tail of all sums of independent draws of mean M (Hoeffding 1956; Anderson and Samuels 1967).
        Closer to the mean, Chernoff's bound, the numerator alone, holds for them all.
    """
    mean, more = expected + 1.0, slots + 1.0
    if not more > mean:
        return 1.0
    exponent = more - mean - more * log(more / mean) + ROUNDING * more
    chernoff = exp(min(0.0, exponent)) * (1.0 + 2.0**-20)
    if more >= mean + 1.0:
        chernoff *= min(1.0, (1.0 + 2.0**-20) / (sqrt(2.0 * pi * more) * (1.0 - mean / (more + 1.0))))
    return max(chernoff, 5e-324)


def enough(expected: float, chance: float = RARE) -> int:
    """The fewest places that a draw of this mean exceeds with this chance at most.

    Examples:
        >>> enough(1024.0), enough(4096.0), enough(1024.0, 1e-16)
        (1259, 4556, 1299)
    """
    low, high = 0, ceil(2.0 * expected) + 1
    while not overflow(expected, high) <= chance:
        low, high = high, 2 * high
    return between(lambda places: not overflow(expected, places) <= chance, low, high)[1]


def even(slots: int, most: int, ranks: int = 1) -> int:
    """The size of micro-batches of at most `most`, as few as possible and all alike, that leave the least to fill up.

    Every rank has as many of them as the others.

    Examples:
        >>> even(1272, 256), even(2395, 256), even(5, 8)
        (255, 240, 5)
        >>> even(1272, 256, ranks=4)
        159
    """
    return ceil(slots / (ranks * ceil(slots / (ranks * most))))


def _rows(who: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Micro-batches of this size, the last one filled up with nobody."""
    return np.append(who, np.full(-who.size % size, -1)).reshape(-1, size)


def cheapest(
    slots: int, expected: float, size: int, *, begin: float, each: float, ranks: int = 1, most: int = 4096
) -> int:
    """The size of micro-batches, `size` or less, with which a packed draw takes the least time, by public numbers.

    A micro-batch takes `begin` seconds and `each` for every place. As many are computed as the fullest place needs; its
    mean is taken over the same arrangements each time, so that the answer is the same everywhere.

    Examples:
        >>> cheapest(129, 64.0, 65, begin=8e-3, each=5e-3), cheapest(129, 64.0, 65, begin=8e-3, each=1e-4)
        (9, 65)
    """
    drawn = ceil(expected)
    if not SMALLEST < size <= most or not drawn < slots <= most:
        return size

    def seconds(size: int) -> float:
        rows = ceil(slots / (size * ranks))
        fair = np.random.default_rng(0)  # public numbers choose a size: nothing is drawn from it
        fullest = fair.multivariate_hypergeometric([rows] * (size * ranks), drawn, TRIES).max(axis=1).mean()
        return float(fullest) * (begin + each * size)

    sizes = {ceil(slots / (k * ranks)) for k in range(1, slots // (SMALLEST * ranks) + 1)}
    fewer = min((some for some in sizes if SMALLEST <= some < size), key=seconds, default=size)
    return fewer if seconds(fewer) < FREE * seconds(size) else size
