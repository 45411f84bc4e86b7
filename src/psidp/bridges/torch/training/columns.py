"""Columns: records that are dicts of numbers as tensors of one shape, whatever a record holds or lacks."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from psidp.symbols import whole

__all__ = ["Columns"]

NO_CLASS = -100
"""The target of a record without a class: cross_entropy leaves it out, and the mean of nothing is NaN."""


class Columns:
    """A collate for dict records of numbers, such as those of ParquetRecords: some columns in, one out.

    It answers for every record. What is missing or no number becomes NaN, and an example whose gradient is NaN adds
    nothing (docs/design/step.md, claim 2); nobody sees that it did not.

    Args:
        inputs: columns of numbers, or of lists of numbers, put together in this order.
        target: the column of the target.
        size: numbers of an input, which is public; as many as columns unless told. Others are cut or filled with NaN.
        classes: for a target that is a class: how many there are, 0 to classes - 1. Unless told it is a float.

    Examples:
        >>> inputs, target = Columns(["age", "weight"], "ill", classes=2)({"age": 31, "weight": None, "ill": 1})
        >>> inputs, target
        (tensor([31., nan]), tensor(1))
    """

    def __init__(self, inputs: Iterable[str], target: str, *, size: int | None = None, classes: int | None = None):
        self.inputs, self.target = list(inputs), target
        self.size = len(self.inputs) if size is None else whole("size", size)
        self.classes = None if classes is None else whole("classes", classes)

    def __call__(self, record: Mapping[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and target of one record."""
        given = np.concatenate([np.empty(0), *(_floats(record.get(name)) for name in self.inputs)])[: self.size]
        inputs = torch.full((self.size,), torch.nan)
        inputs[: given.size] = torch.from_numpy(given).float()
        found = _floats(record.get(self.target))
        value = float(found[0]) if found.size == 1 else torch.nan
        if self.classes is None:
            return inputs, torch.tensor(value, dtype=torch.float32)
        known = 0 <= value < self.classes and value == int(value)
        return inputs, torch.tensor(int(value) if known else NO_CLASS)


def _floats(value: Any) -> Any:
    """Numbers as doubles, in a row; NaN for anything else."""
    try:
        return np.asarray(np.nan if value is None else value, np.float64).reshape(-1)
    except (ValueError, TypeError, OverflowError):
        return np.array([np.nan])
