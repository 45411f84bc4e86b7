"""The examples of a draw as micro-batches of one shape, in given places; empty places hold zeros."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["Examples", "count", "mapped", "micro_batches", "own_code", "plain"]

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


def own_code(tensor: torch.Tensor) -> bool:
    """Whether a class outside torch overrides what torch's functions do with a tensor."""
    told = {"__torch_function__", "__torch_dispatch__"}
    return any(
        told & vars(kind).keys() for kind in type(tensor).__mro__ if kind.__module__.partition(".")[0] != "torch"
    )


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers as a tensor of torch's own class, or a refusal."""
    if type(tensor) is torch.Tensor:
        return tensor
    if own_code(tensor):
        raise TypeError(
            f"inputs and targets must be plain tensors, got {type(tensor).__name__}, whose own code would see the "
            "whole micro-batch. Give tensor.as_subclass(torch.Tensor)."
        )
    return tensor.as_subclass(torch.Tensor)


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


def micro_batches(
    inputs: Examples, targets: Examples, who: NDArray[np.int64], size: int, device: torch.device
) -> Iterator[tuple[Examples, Examples, torch.Tensor]]:
    """Micro-batches of `size` places on the device, each in memory of its own; and which places hold an example.

    Nothing waits for the device, if the examples are there already.
    """
    padded = torch.from_numpy(np.append(who, np.full(-who.size % size, -1)))
    indices = {torch.device("cpu"): padded, device: padded.to(device)}
    for start in range(0, len(padded), size):

        def cut(tensor: torch.Tensor, start: int = start) -> torch.Tensor:
            tensor = tensor.detach()
            if not tensor.shape[0]:
                return tensor.new_zeros((size, *tensor.shape[1:]), device=device)
            index = indices[tensor.device if tensor.device in indices else device][start : start + size]
            chosen = tensor.to(index.device).index_select(0, index.clamp(min=0)).to(device)
            empty = (indices[device][start : start + size] < 0).view(-1, *[1] * (chosen.ndim - 1))
            return chosen.masked_fill_(empty, 0)

        yield mapped(cut, inputs), mapped(cut, targets), indices[device][start : start + size] >= 0
