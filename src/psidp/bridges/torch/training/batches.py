"""Batches: which records take part in which step."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from psidp.noise.batch import poisson_batch

__all__ = ["Batches", "CyclicBatches", "FixedBatches", "PoissonBatches", "checked_ids", "class_of", "classes_of"]

Numbers = NDArray[np.int64]


class Batches(Protocol):
    """Numbers of the records in each step."""

    def of(self, step: int) -> Numbers:
        """Those of one step, counted from 0."""


class PoissonBatches:
    """Every record tosses a coin of its own in every step."""

    def __init__(self, size: int, rate: float) -> None:
        self._size, self._rate = size, rate

    def of(self, step: int) -> Numbers:
        """A fresh draw."""
        return poisson_batch(self._size, self._rate)


class CyclicBatches:
    """Step t draws from class t mod b alone: every record of it tosses a coin of its own.

    Examples:
        >>> batches = CyclicBatches(np.array([0, 1, 0, 1, 1]), 2, 1.0)
        >>> batches.of(0).tolist(), batches.of(1).tolist(), batches.of(2).tolist()
        ([0, 2], [1, 3, 4], [0, 2])
    """

    def __init__(self, classes: Numbers, bands: int, rate: float) -> None:
        self._members = [np.flatnonzero(classes == number) for number in range(bands)]
        self._rate = rate

    def of(self, step: int) -> Numbers:
        """A fresh draw from the step's class."""
        members = self._members[step % len(self._members)]
        return members[poisson_batch(members.size, self._rate)]


class FixedBatches:
    """One order for all epochs: step t has the records of its place in the epoch, always the same.

    Examples:
        >>> batches = FixedBatches(7, 3)
        >>> [batches.of(step).tolist() for step in range(4)]
        [[0, 1], [2, 3], [4, 5, 6], [0, 1]]
    """

    def __init__(self, size: int, epoch: int) -> None:
        self._size, self._epoch = size, epoch

    @property
    def largest(self) -> int:
        """Records in the largest batch."""
        return -(-self._size // self._epoch)

    def of(self, step: int) -> Numbers:
        """The records of the step's place."""
        place = step % self._epoch
        return np.arange(place * self._size // self._epoch, (place + 1) * self._size // self._epoch)


def class_of(name: Any, bands: int, salt: str) -> int:
    """The class of a record, from its own id and a public salt alone: SHA-256, modulo the number of classes.

    Examples:
        >>> class_of("patient 7", 8, "a run") == class_of("patient 7", 8, "a run")
        True
    """
    digest = sha256(f"{salt}/{type(name).__name__}/{name}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest, "big") % bands


def classes_of(size: int, ids: Sequence[Any] | None, bands: int, salt: str) -> Numbers:
    """The class of every record: by its id, or, without ids, by its position."""
    if ids is None:
        return np.arange(size) % bands
    return np.fromiter((class_of(name, bands, salt) for name in ids), np.int64, size)


def checked_ids(ids: Any, size: int) -> list[Any] | None:
    """Ids as plain values, one for each record, or a refusal that looks at their number and type alone."""
    if ids is None:
        return None
    names = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    if len(names) != size:
        raise ValueError(f"ids (names of the records) must be one for each of the {size} records, got {len(names)}.")
    if not all(isinstance(name, str | int) for name in names):
        raise TypeError("ids (names of the records) must be text or whole numbers.")
    return names
