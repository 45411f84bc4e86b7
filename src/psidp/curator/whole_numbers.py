"""Whole numbers out of an engine as NumPy arrays: 64 bits where all are below 2^62 in size, else Python's."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["from_arrow", "from_python"]

LARGEST = 2**62


def from_python(values: Iterable[Any]) -> NDArray[Any]:
    """Integers and decimals that are whole; None is 0.

    Examples:
        >>> from_python([1, None, -3])
        array([ 1,  0, -3])
        >>> from_python([2**70]).dtype
        dtype('O')
    """
    numbers = [int(value or 0) for value in values]
    small = all(-LARGEST < number < LARGEST for number in numbers)
    return np.array(numbers, np.int64 if small else object)


def from_arrow(array: Any) -> NDArray[Any]:
    """A column of integers or of decimals of scale 0, read from its memory: a decimal is two words of 64 bits."""
    if array.null_count or str(array.type) not in ("decimal128(38, 0)", "int32", "int64"):
        return from_python(array.to_pylist())
    if str(array.type) != "decimal128(38, 0)":
        return np.asarray(array.to_numpy(), np.int64)
    if not len(array):
        return np.zeros(0, np.int64)
    words = np.frombuffer(array.buffers()[1], "<i8")[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2)
    low, high = words[:, 0], words[:, 1]
    small = (high == low >> 63) & (low > -LARGEST) & (low < LARGEST)
    return low.astype(np.int64) if small.all() else from_python(array.to_pylist())
