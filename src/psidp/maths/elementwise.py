"""Arrays in, arrays out: one wrapper that checks, broadcasts, works in blocks and gives a float back for floats."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psidp.symbols import Symbol, symbol

__all__ = ["Array", "Entries", "Mask", "Reals", "elementwise", "select"]

Reals = ArrayLike
"""A real number or an array of them, as anything that NumPy turns into one."""
Array = NDArray[np.float64]
"""What kernels compute with: a flat array; or, in a call with plain numbers, a NumPy scalar, which has its methods."""
Entries = Array | np.float64
"""An array, or one number as NumPy has it."""
Mask = NDArray[np.bool_] | np.bool_

BLOCK = 8192
"""Entries worked on at once: the dozen temporaries of a kernel then stay in the second-level cache."""


def elementwise(kernel: Callable[..., Array], opposite: Collection[str] = ()) -> Callable[..., Any]:
    """`kernel` on anything that broadcasts: arguments named after symbols are checked against their domains.

    Integers that are no floats are rounded to the side of their symbol, or to the `opposite` one for arguments of
    which the result is a claim's and not a Gaussian mechanism's.

    The kernel itself sees flat float64 arrays of one length, inside their domains, and returns such an array; or, for
    a call with plain numbers, NumPy scalars, on which arithmetic is six times faster than on arrays of one entry.
    """
    names = list(signature(kernel).parameters)
    symbols = [replace(s, up=not s.up) if s.name in opposite else s for s in map(symbol, names)]

    @wraps(kernel)
    def conversion(*args: Reals, **kwargs: Reals) -> float | Array:
        values = args if not kwargs else signature(kernel).bind(*args, **kwargs).args
        if len(values) != len(symbols):
            signature(kernel).bind(*values)
        if set(map(type, values)) == {float}:
            return float(_run(kernel, [np.float64(s.number(v)) for s, v in zip(symbols, values, strict=True)]))
        arrays = [s.array(v) for s, v in zip(symbols, values, strict=True)]
        shape = _shape(symbols, arrays)
        if shape == ():
            return float(_run(kernel, [a[()] for a in arrays]))
        flat = [np.broadcast_to(a, shape).reshape(-1) for a in arrays]
        return _in_blocks(kernel, flat).reshape(shape)

    return conversion


def _shape(symbols: list[Symbol], arrays: list[Array]) -> tuple[int, ...]:
    """The common shape, or a refusal that names the shapes."""
    try:
        return np.broadcast_shapes(*(a.shape for a in arrays))
    except ValueError:
        shapes = " and ".join(f"{s.name} {a.shape}" for s, a in zip(symbols, arrays, strict=True))
        raise ValueError(f"shapes must broadcast together, got {shapes}.") from None


def _in_blocks(kernel: Callable[..., Array], flat: list[Array]) -> Array:
    """The kernel over long vectors, a cache-sized block at a time."""
    size = flat[0].size
    if 0 < size <= BLOCK:
        return _run(kernel, flat)
    out = np.empty(size)
    for start in range(0, size, BLOCK):
        part = slice(start, start + BLOCK)
        out[part] = _run(kernel, [a[part] for a in flat])
    return out


def select(condition: Mask, yes: Array | float, no: Array | float) -> Array:
    """np.where, without its price when all three are scalars."""
    if condition.ndim:
        return np.where(condition, yes, no)
    return np.float64(yes if condition else no)  # type: ignore[return-value]  # a NumPy scalar has an array's methods


def _run(kernel: Callable[..., Array], flat: Sequence[Array | np.float64]) -> Array:
    """The kernel with IEEE limits (1/0, 0*inf in unused lanes, underflow) left silent: kernels select, not branch."""
    with np.errstate(all="ignore"):
        result: Array = kernel(*flat)
        return result
