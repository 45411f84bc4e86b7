"""Places in micro-batches, given to the examples of a draw at random: who else was drawn must not move an example.

Kernels give an example's gradient other last bits in another place; docs/design/step.md, claims 5 to 7.
"""

import os
from math import ceil, exp, log

import numpy as np
from numpy.typing import NDArray

from psidp.maths.bisection import between

__all__ = ["enough", "even", "order", "overflow"]

RARE = 2.0**-40
"""Unless told, places are so many that a draw exceeds them no more often than this."""


ROUNDING = 2.0**-48
"""What the terms of an exponent can lose, relative to the largest of them."""


def order(total: int, slots: int) -> NDArray[np.int64]:
    """Which example is in each of max(total, slots) places, -1 for none: all arrangements equally likely.

    Sorted by 128 bits of the operating system each, so that no two are ever equal.
    """
    used = max(total, slots)
    who = np.lexsort(np.frombuffer(os.urandom(16 * used), np.uint64).reshape(2, used))
    return np.where(who < total, who, -1)


def overflow(expected: float, slots: int) -> float:
    """Upper bound on the chance of a Poisson draw of this mean, or of a neighbour's, to exceed the slots.

    Chernoff's bound exp(N - M - N log(N/M)) for M = expected + 1 and N = slots + 1, which holds for any sum of
    independent draws of mean M at most.
    """
    mean, more = expected + 1.0, slots + 1.0
    if not more > mean:
        return 1.0
    exponent = more - mean - more * log(more / mean) + ROUNDING * more
    return max(exp(min(0.0, exponent)) * (1.0 + 2.0**-20), 5e-324)


def enough(expected: float, chance: float = RARE) -> int:
    """The fewest places that a draw of this mean exceeds with this chance at most.

    Examples:
        >>> enough(1024.0), enough(4096.0), enough(1024.0, 1e-16)
        (1272, 4582, 1311)
    """
    low, high = 0, ceil(2.0 * expected) + 1
    while not overflow(expected, high) <= chance:
        low, high = high, 2 * high
    return between(lambda places: not overflow(expected, places) <= chance, low, high)[1]


def even(slots: int, most: int) -> int:
    """The size of micro-batches of at most `most`, as few as possible and all alike, that leave the least to fill up.

    Examples:
        >>> even(1272, 256), even(2395, 256), even(5, 8)
        (255, 240, 5)
    """
    return ceil(slots / ceil(slots / most))
