"""A draw of examples as micro-batches of one shape: the last one is filled up with zeros, so that all are alike."""

from collections.abc import Callable, Iterator
from typing import Any

import torch

__all__ = ["Examples", "count", "mapped", "micro_batches"]

Examples = Any
"""A tensor, or a dict, tuple or list of them (and so on); an example is an index of every tensor's first dimension."""


def mapped(f: Callable[[torch.Tensor], Any], examples: Examples) -> Any:
    """The same structure with f of each tensor."""
    if isinstance(examples, torch.Tensor):
        return f(examples)
    if isinstance(examples, dict):
        return {key: mapped(f, value) for key, value in examples.items()}
    if isinstance(examples, tuple | list):
        return type(examples)([mapped(f, value) for value in examples])
    raise TypeError(
        f"inputs and targets must be tensors, or dicts, tuples or lists of them, got {type(examples).__name__}."
    )


def count(inputs: Examples, targets: Examples) -> int:
    """How many examples there are, or a refusal."""
    lengths: list[int] = []

    def measured(tensor: torch.Tensor) -> None:
        if tensor.ndim == 0:
            raise ValueError(
                "inputs and targets must have a first dimension that counts examples, got a single number."
            )
        lengths.append(tensor.shape[0])

    mapped(measured, [inputs, targets])
    if len(set(lengths)) != 1:
        raise ValueError(f"inputs and targets must have as many examples each, got {lengths}.")
    return lengths[0]


def micro_batches(inputs: Examples, targets: Examples, size: int) -> Iterator[tuple[Examples, Examples, int]]:
    """Micro-batches of exactly `size`, and how many examples of each are real."""
    total = count(inputs, targets)
    for start in range(0, total, size):

        def cut(tensor: torch.Tensor, start: int = start) -> torch.Tensor:
            part = tensor[start : start + size]
            missing = size - part.shape[0]
            return torch.cat([part, part.new_zeros((missing, *part.shape[1:]))]) if missing else part

        yield mapped(cut, inputs), mapped(cut, targets), min(size, total - start)
