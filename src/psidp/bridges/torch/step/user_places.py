"""Users in places: so many places in a row for each user, filled with its own examples, whoever else was drawn.

What a user has too much of is left out by lot, and what it lacks is filled up with its own examples again, each with
so much less weight: so a user's gradient is the mean over the examples taken, and no place of a user is empty.
docs/design/users.md, claims 1 and 2.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from psidp.bridges.torch.step.examples import Examples, mapped, micro_batches

__all__ = ["EveryExample", "UserPlaces", "lot", "seated", "weighed"]

Numbers = NDArray[np.int64]


def lot(many: int, few: int) -> Numbers:
    """`few` of the numbers below `many`, ascending; all sets equally likely, by 64 bits of the operating system each.

    Examples:
        >>> lot(3, 5).tolist(), len(lot(1000, 5))
        ([0, 1, 2], 5)
    """
    if many <= few:
        return np.arange(many)
    return np.sort(np.argpartition(np.frombuffer(os.urandom(8 * many), np.uint64), few)[:few])


def seated(users: Any, examples: int, each: int | None) -> "EveryExample | UserPlaces":
    """Who has which places: every example one, or with `each` every user so many."""
    if each is None:
        if users is not None:
            raise TypeError("users (one name for each example) must go with examples_per_user. Give both to the step.")
        return EveryExample(examples)
    if users is None:
        raise TypeError("users (one name for each example) must be given where a step has examples_per_user.")
    names = users.tolist() if hasattr(users, "tolist") else list(users)
    if len(names) != examples:
        raise ValueError(f"users must be one name for each of the {examples} examples, got {len(names)}.")
    plain = [int(name) if isinstance(name, np.integer) else name for name in names]
    if not all(isinstance(name, str | int) for name in plain):
        raise TypeError("users (one name for each example) must be text or whole numbers. Pass tensor.tolist().")
    return UserPlaces.of(plain, each)


@final
@dataclass(frozen=True, slots=True)
class EveryExample:
    """An example is a unit, and has one place."""

    units: int

    def micro_batches(
        self, inputs: Examples, targets: Examples, who: Numbers, size: int, device: torch.device
    ) -> Iterator[tuple[Examples, Examples, torch.Tensor, None]]:
        """Micro-batches of `size` examples in the places that `who` gives them."""
        for some, wanted, live in micro_batches(inputs, targets, who, size, device):
            yield some, wanted, live, None

    def all(self, inputs: Examples, targets: Examples) -> tuple[Examples, Examples, None]:
        """All examples, as they come."""
        return inputs, targets, None


@final
@dataclass(frozen=True, slots=True)
class UserPlaces:
    """A user is a unit, and has a row of places: which example is in each, and its weight in the user's mean.

    Examples:
        >>> places = UserPlaces.of(["Ann", "Bob", "Ann"], 4)
        >>> places.examples.tolist(), places.weights[1].tolist()
        ([[0, 2, 0, 2], [1, 1, 1, 1]], [0.25, 0.25, 0.25, 0.25])
    """

    examples: Numbers
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, names: list[Any], each: int) -> "UserPlaces":
        """The places of the users with these examples, in the order in which they come."""
        owned: dict[Any, list[int]] = {}
        for number, name in enumerate(names):
            owned.setdefault(name, []).append(number)
        examples, weights = np.empty((len(owned), each), np.int64), np.empty((len(owned), each))
        seats = np.arange(each)
        for user, numbers in enumerate(owned.values()):
            taken = np.asarray(numbers)[lot(len(numbers), each)]
            which = seats % len(taken)
            examples[user] = taken[which]
            weights[user] = 1.0 / (len(taken) * np.bincount(which))[which]
        return cls(examples, weights)

    @property
    def units(self) -> int:
        """How many users there are."""
        return len(self.examples)

    def micro_batches(
        self, inputs: Examples, targets: Examples, who: Numbers, size: int, device: torch.device
    ) -> Iterator[tuple[Examples, Examples, torch.Tensor, torch.Tensor]]:
        """Micro-batches of `size` users in the places that `who` gives them, with weights; `live` is of users."""
        each = self.examples.shape[1]
        who = np.append(who, np.full(-who.size % size, -1))
        empty = who[:, None] < 0
        if self.units:
            at = np.where(empty, -1, self.examples[who]).reshape(-1)
            weights = torch.from_numpy(np.where(empty, 0.0, self.weights[who]).reshape(-1)).to(device)
        else:
            at, weights = np.full(who.size * each, -1), torch.zeros(who.size * each, device=device)
        parts = micro_batches(inputs, targets, at, size * each, device)
        for start, (some, wanted, live) in zip(range(0, at.size, size * each), parts, strict=True):
            yield some, wanted, live[::each], weights[start : start + size * each]

    def all(self, inputs: Examples, targets: Examples) -> tuple[Examples, Examples, torch.Tensor | None]:
        """The examples of all users in their places, user by user, with weights."""
        at = torch.from_numpy(self.examples.reshape(-1))
        some, wanted = (mapped(lambda tensor: tensor[at.to(tensor.device)], of) for of in (inputs, targets))
        device: list[torch.device] = []
        mapped(lambda tensor: device.append(tensor.device), [inputs, targets])
        return some, wanted, torch.from_numpy(self.weights.reshape(-1)).to(device[0])


def weighed(losses: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
    """Losses times their weights, in float32 at least."""
    return losses if weights is None else losses * weights.to(torch.promote_types(losses.dtype, torch.float32))
