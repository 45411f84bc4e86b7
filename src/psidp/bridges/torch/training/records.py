"""The records: the private data as a trainer reads it, by number, onto the model's device."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset, IterableDataset, TensorDataset, default_collate

from psidp.bridges.torch.step.examples import Examples, count, mapped
from psidp.bridges.torch.step.rng import renew, set_aside

__all__ = ["Records"]


class Records:
    """Pairs of inputs and targets under numbers 0 to n - 1: (inputs, targets) as tensors, or a map-style Dataset.

    A Dataset may draw random numbers from Python, NumPy or torch, as augmentation does, on the CPU or on the model's
    device: each record has fresh ones.

    Examples:
        >>> records = Records((torch.arange(6.0).reshape(3, 2), torch.tensor([0, 1, 2])), torch.device("cpu"))
        >>> records.batch(np.array([0, 2]))
        (tensor([[0., 1.], [4., 5.]]), tensor([0, 2]))
    """

    def __init__(self, data: Any, device: torch.device) -> None:
        if isinstance(data, TensorDataset):
            data = data.tensors
        self._data, self._device = data, device
        self._whole = isinstance(data, tuple)
        if self._whole:
            self.size = count(*_pair(data))
        elif isinstance(data, IterableDataset) or not (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
            raise TypeError(
                "data must be (inputs, targets) as tensors or a Dataset with length and index, "
                f"got {type(data).__name__}: each record tosses a coin of its own, so all must be within reach."
            )
        else:
            self.size = len(data)
        if not self.size >= 1:
            raise ValueError("data must have at least one record, got none.")
        self._empty = self._fetched([0])
        if count(*self._empty) != 1:
            raise ValueError("data must give one pair (input, target) for each number.")

    def batch(self, chosen: NDArray[np.int64]) -> tuple[Examples, Examples]:
        """Inputs and targets of the chosen records; of none, where none was chosen, in the same shapes."""
        pair = self._fetched(chosen.tolist()) if chosen.size else _both(lambda tensor: tensor[:0], self._empty)
        return _both(lambda tensor: tensor.to(self._device), pair)

    def zeros(self) -> tuple[Examples, Examples]:
        """One example of zeros, in the shape and type of the first record."""
        return _both(lambda tensor: torch.zeros_like(tensor, device=self._device), self._empty)

    def _fetched(self, chosen: list[int]) -> tuple[Examples, Examples]:
        if self._whole:
            at = torch.tensor(chosen)
            return _both(lambda tensor: tensor.detach()[at.to(tensor.device)], self._data)
        data: Dataset[Any] = self._data
        read = []
        with set_aside(self._device):
            for number in chosen:
                renew(self._device)
                read.append(data[number])
        return _pair(default_collate(read))


def _both(f: Callable[[torch.Tensor], torch.Tensor], pair: tuple[Examples, Examples]) -> tuple[Examples, Examples]:
    """f of each tensor of inputs and of targets."""
    return mapped(f, pair[0]), mapped(f, pair[1])


def _pair(values: Any) -> tuple[Examples, Examples]:
    """Inputs and targets, or a refusal."""
    if not (isinstance(values, tuple | list) and len(values) == 2):
        many = f" of {len(values)}" if isinstance(values, tuple | list) else ""
        raise TypeError(
            f"data must give pairs (input, target), got {type(values).__name__}{many}. "
            "Where a model takes several inputs, the first of a pair may be a dict or tuple of them."
        )
    return values[0], values[1]
