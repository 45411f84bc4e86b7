"""Places in micro-batches, given to the examples of a draw at random: who else was drawn must not move an example.

Kernels give an example's gradient other last bits in another place; docs/design/step.md, claims 5 to 7.
"""

import os
from math import ceil, exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

__all__ = ["enough", "order", "overflow"]

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


def enough(expected: float, size: int) -> int:
    """The fewest places, in micro-batches of `size`, that a draw exceeds no more often than once in 2^40."""
    batches = ceil((expected + 7.0 * sqrt(expected)) / size)
    while not overflow(expected, batches * size) <= RARE:
        batches += 1
    return batches * size
