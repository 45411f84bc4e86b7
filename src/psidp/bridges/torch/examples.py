"""A draw of examples, spread at random over places in micro-batches of one shape; empty places hold zeros."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["Examples", "count", "mapped", "micro_batches", "places"]

Examples = Any
"""A tensor, or a dict, tuple or list of them (and so on); an example is an index of every tensor's first dimension."""


def mapped(f: Callable[[torch.Tensor], Any], examples: Examples) -> Any:
    """The same structure with f of each tensor."""
    if isinstance(examples, torch.Tensor):
        return f(examples)
    if isinstance(examples, dict):
        return {key: mapped(f, value) for key, value in examples.items()}
    if isinstance(examples, tuple | list):
        return [mapped(f, value) for value in examples]
    raise TypeError(
        f"inputs and targets must be tensors, or dicts, tuples or lists of them, got {type(examples).__name__}."
    )


def count(inputs: Examples, targets: Examples) -> int:
    """How many examples there are, or a refusal."""
    lengths: list[int] = []

    def measured(tensor: torch.Tensor) -> None:
        if tensor.ndim == 0:
            raise ValueError(
                "inputs and targets must have a first dimension that counts examples, got a tensor without dimensions."
            )
        lengths.append(tensor.shape[0])

    mapped(measured, [inputs, targets])
    if len(set(lengths)) != 1:
        raise ValueError("inputs and targets must be tensors with one and the same number of examples.")
    return lengths[0]


def places(total: int, slots: int, size: int) -> NDArray[np.int64]:
    """Which example is in each place, -1 for none: `total` examples in a random order, among at least `slots` places.

    A multiple of `size` places. The order is that of 128 bits of the operating system for each.
    """
    used = max(total, slots)
    keys = np.frombuffer(os.urandom(16 * used), np.uint64).reshape(2, used)
    order = np.full(-(-used // size) * size, -1)
    order[:used] = np.lexsort(keys)
    order[order >= total] = -1
    return order


def micro_batches(
    inputs: Examples, targets: Examples, who: NDArray[np.int64], size: int, device: torch.device
) -> Iterator[tuple[Examples, Examples, torch.Tensor]]:
    """Micro-batches of `size` places on the device, each in memory of its own; and which places hold an example."""
    for start in range(0, who.size, size):
        here = who[start : start + size]
        place, example = torch.from_numpy(np.flatnonzero(here >= 0)), torch.from_numpy(here[here >= 0])

        def cut(tensor: torch.Tensor, place: torch.Tensor = place, example: torch.Tensor = example) -> torch.Tensor:
            chosen = tensor.index_select(0, example.to(tensor.device)).to(device)
            return chosen.new_zeros((size, *tensor.shape[1:])).index_copy_(0, place.to(device), chosen)

        yield mapped(cut, inputs), mapped(cut, targets), torch.from_numpy(here >= 0).to(device)
