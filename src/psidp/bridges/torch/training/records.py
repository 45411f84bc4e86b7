"""The records: the private data as a trainer reads it, by number, onto the model's device."""

import gc
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, default_collate

from psidp.bridges.torch.step.examples import Examples, count, mapped
from psidp.bridges.torch.step.rng import renew, set_aside
from psidp.symbols import whole

__all__ = ["Collate", "Reader", "Records"]

Collate = Callable[[Any], tuple[Any, Any]]
"""One record in, its inputs and its target out, in shapes that are the same for every record."""


class Records:
    """Inputs and targets under numbers 0 to n - 1: (inputs, targets) as tensors, or a map-style Dataset.

    A Dataset may draw random numbers from Python, NumPy or torch, as augmentation does, on the CPU or on the model's
    device: each record has fresh ones. `collate` makes a pair (inputs, target) of one record and sees no other one;
    `workers` processes read ahead.

    Examples:
        >>> records = Records((torch.arange(6.0).reshape(3, 2), torch.tensor([0, 1, 2])), torch.device("cpu"))
        >>> records.batch(np.array([0, 2]))
        (tensor([[0., 1.], [4., 5.]]), tensor([0, 2]))
    """

    def __init__(self, data: Any, device: torch.device, collate: Collate | None = None, workers: int = 0) -> None:
        if isinstance(data, TensorDataset):
            data = data.tensors
        self._device = device
        self._tensors = _pair(data) if isinstance(data, tuple) else None
        self._workers = whole("workers", workers) if workers != 0 else 0
        self._reader = Reader(data, collate)
        if self._tensors is not None:
            if collate is not None or self._workers:
                raise ValueError(
                    "collate and workers must go with a Dataset, whose records are read one by one, got tensors. "
                    "Prepare the tensors beforehand."
                )
            self.size = count(*self._tensors)
        elif isinstance(data, IterableDataset) or not (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
            raise TypeError(
                "data must be (inputs, targets) as tensors or a Dataset with length and index, "
                f"got {type(data).__name__}: each record tosses a coin of its own, so all must be within reach."
            )
        else:
            self.size = len(data)
        if not self.size >= 1:
            raise ValueError("data must have at least one record, got none.")
        self._stack = _Stacked(None)
        self._empty = self._fetched([0])
        self._stack = _Stacked(self._empty)
        if count(*self._empty) != 1:
            raise ValueError("data must give one pair (input, target) for each number.")

    def batch(self, chosen: NDArray[np.int64]) -> tuple[Examples, Examples]:
        """Inputs and targets of the chosen records; of none, where none was chosen, in the same shapes."""
        return self._placed(self._fetched(chosen.tolist()) if chosen.size else None)

    def batches(self, draws: Iterable[NDArray[np.int64]]) -> Generator[tuple[Examples, Examples], None, None]:
        """`batch` of each draw, in order; worker processes read a few draws ahead, and end with the iterator."""
        if not self._workers:
            yield from map(self.batch, draws)
            return
        loader = DataLoader(
            self._reader,
            batch_sampler=_Draws(draws),
            num_workers=self._workers,
            collate_fn=self._stack,
            generator=torch.Generator(),  # the caller's generator stays as it is
            worker_init_fn=_own_garbage_only,
        )
        with _no_collection():  # workers begin here, forked or not
            pairs = iter(loader)
        for pair in pairs:
            yield self._placed(pair)

    def zeros(self) -> tuple[Examples, Examples]:
        """One example of zeros, in the shape and type of the first record."""
        return _both(lambda tensor: torch.zeros_like(tensor, device=self._device), self._empty)

    def _placed(self, pair: tuple[Examples, Examples] | None) -> tuple[Examples, Examples]:
        """On the model's device; of no records in the shapes of the first one."""
        if pair is None:
            pair = _both(lambda tensor: tensor[:0], self._empty)
        return _both(lambda tensor: tensor.to(self._device), pair)

    def _fetched(self, chosen: list[int]) -> tuple[Examples, Examples]:
        if self._tensors is not None:
            at = torch.tensor(chosen)
            return _both(lambda tensor: tensor.detach()[at.to(tensor.device)], self._tensors)
        with set_aside(self._device):
            read = [self._reader.read(number, self._device) for number in chosen]
        found = self._stack(read)
        assert found is not None
        return found


class Reader:
    """One record at a time, with random numbers of its own, here or in a worker process."""

    def __init__(self, data: Any, collate: Collate | None) -> None:
        if not (collate is None or callable(collate)):
            raise TypeError(f"collate must be callable as collate(record), got {type(collate).__name__}.")
        self._data, self._collate = data, collate

    def __getitem__(self, number: int) -> tuple[Any, Any]:
        return self.read(number, torch.device("cpu"))

    def read(self, number: int, device: torch.device) -> tuple[Any, Any]:
        """The pair (inputs, target) of one record."""
        renew(device)
        record = self._data[number]
        return _pair(record if self._collate is None else self._collate(record))


class _Draws:
    """Draws as a loader's batch sampler: lists of numbers, perhaps empty."""

    def __init__(self, draws: Iterable[NDArray[np.int64]]) -> None:
        self._draws = draws

    def __iter__(self) -> Iterator[list[int]]:
        return (draw.tolist() for draw in self._draws)


class _Stacked:
    """Pairs of records as a pair of batches; None for no records.

    Each record is made a tensor by itself, in the types of the first of all records: from a list of them torch would
    take the types of those that happen to be there, and one record would change the numbers of the others.
    """

    def __init__(self, like: tuple[Examples, Examples] | None) -> None:
        self._like = like

    def __call__(self, pairs: list[tuple[Any, Any]]) -> tuple[Examples, Examples] | None:
        """One batch."""
        if not pairs:
            return None
        alone = [_pair(default_collate([pair])) for pair in pairs]
        if self._like is None:
            return alone[0]
        return _joined(self._like[0], [x for x, _ in alone]), _joined(self._like[1], [y for _, y in alone])


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage is collected meanwhile, here or in processes that are forked meanwhile."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _own_garbage_only(_: int) -> None:
    """A worker leaves what it inherited alone: the end of a DuckDB connection whose threads stayed behind crashes."""
    gc.freeze()
    gc.enable()


def _joined(like: Any, parts: list[Any]) -> Any:
    """Examples put one after the other, in the types and the structure of `like`."""
    if isinstance(like, torch.Tensor):
        return torch.cat([part.to(like.dtype) for part in parts])
    if isinstance(like, dict):
        return {name: _joined(value, [part[name] for part in parts]) for name, value in like.items()}
    return type(like)([_joined(value, [part[number] for part in parts]) for number, value in enumerate(like)])


def _both(f: Callable[[torch.Tensor], torch.Tensor], pair: tuple[Examples, Examples]) -> tuple[Examples, Examples]:
    """f of each tensor of inputs and of targets."""
    return mapped(f, pair[0]), mapped(f, pair[1])


def _pair(values: Any) -> tuple[Examples, Examples]:
    """Inputs and targets, or a refusal."""
    if isinstance(values, dict):
        names = ", ".join(map(repr, list(values)[:4]))
        raise TypeError(
            f"data must give pairs (input, target), got a dict with {names}. Say which part is the target: "
            "collate=lambda record: ({'input_ids': record['input_ids']}, record['labels']), or PadTo(length)."
        )
    if not (isinstance(values, tuple | list) and len(values) == 2):
        many = f" of {len(values)}" if isinstance(values, tuple | list) else ""
        raise TypeError(
            f"data must give pairs (input, target), got {type(values).__name__}{many}. "
            "Where a model takes several inputs, the first of a pair may be a dict or tuple of them."
        )
    return values[0], values[1]
