"""The units: whose data a run protects, record by record, or user by user with at most so many examples of each."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from psidp.bridges.torch.step.user_places import lot
from psidp.bridges.torch.training.batches import Batches, checked_ids
from psidp.symbols import whole

__all__ = ["EveryRecord", "Units", "UserBatches", "Users", "units_of"]

Numbers = NDArray[np.int64]


def units_of(users: Any, examples_per_user: int | None, ids: Any, unit: str | None, records: int) -> "Units":
    """The units of a run, or a refusal."""
    if users is None:
        if examples_per_user is not None:
            raise TypeError(f"examples_per_user needs users, one name for each record, got {examples_per_user} alone.")
        return EveryRecord(records, checked_ids(ids, records), "record" if unit is None else unit)
    if examples_per_user is None:
        raise TypeError("users needs examples_per_user: how many examples of a user take part in a step at most.")
    if ids is not None:
        raise TypeError("ids (names of the records) must not be given with users, who have names. Leave them out.")
    if unit == "record":
        raise ValueError(
            'unit must not be "record" where users are protected: one record more of a user is a user that changed, '
            "which costs up to twice as much as a user more or less. Say whose records they are, such as a patient's."
        )
    return Users(users, examples_per_user, records, "user" if unit is None else unit)


@final
@dataclass(frozen=True, slots=True)
class EveryRecord:
    """Every record is a unit."""

    size: int
    names: list[Any] | None
    unit: str
    examples_per_user: None = None

    def drawn(self, batches: Batches) -> Batches:
        """The batches as they are."""
        return batches

    def of(self, numbers: Numbers) -> tuple[()]:
        """Nothing that a step need be told."""
        return ()

    def terms(self, public: bool) -> Any:
        """Their number, if it is public, for the journal."""
        return self.size if public else None


@final
class Users:
    """Every user is a unit, with all records that name it; records that name nobody take no part.

    A user's number follows from the names alone, by their SHA-256, and not from the order of the records: a user whose
    records are replaced keeps its place in a fixed order, and so does everybody else.

    Examples:
        >>> users = Users(["Ann", "Bob", "Ann", None], 2, 4, "user")
        >>> users.size, sorted(users.records(n).tolist() for n in range(2))
        (2, [[0, 2], [1]])
    """

    def __init__(self, users: Any, examples_per_user: int, records: int, unit: str) -> None:
        self.examples_per_user, self.unit = whole("examples_per_user", examples_per_user), unit
        if getattr(getattr(users, "dtype", None), "kind", "O") == "f":
            raise TypeError("users must be text or whole numbers, got floats. Write missing ones as None, or as text.")
        names, found = _told_apart(users)
        if found.size != records:
            raise ValueError(f"users must be one name for each of the {records} records, got {found.size}.")
        if not names:
            raise ValueError("users must name somebody: text or whole numbers, and None for a record of nobody.")
        turned = sorted(range(len(names)), key=lambda number: _digest(names[number]))
        self.names = [names[number] for number in turned]
        place = np.full(len(names) + 1, -1)
        place[turned] = np.arange(len(names))
        self._owner = place[found]
        self._sorted = np.argsort(self._owner, kind="stable")
        self._starts = np.searchsorted(self._owner, np.arange(len(names) + 1), sorter=self._sorted)

    @property
    def size(self) -> int:
        """How many users there are."""
        return len(self.names)

    def records(self, user: int) -> Numbers:
        """Numbers of all records of one user."""
        return self._sorted[self._starts[user] : self._starts[user + 1]]

    def drawn(self, batches: Batches) -> "UserBatches":
        """Batches of records from batches of users."""
        return UserBatches(batches, self)

    def of(self, numbers: Numbers) -> tuple[Numbers]:
        """The users of these records, which a step is told."""
        return (self._owner[numbers],)

    def taken(self, users: Iterable[int]) -> Numbers:
        """Records of these users, at most examples_per_user of each, by lot and afresh each time; ascending."""
        found = [np.empty(0, np.int64)]
        for user in users:
            own = self.records(user)
            found.append(own[lot(own.size, self.examples_per_user)])
        return np.sort(np.concatenate(found))

    def terms(self, public: bool) -> Any:
        """What they are, for the journal; the number of records is nobody's business."""
        return {"users": self.size if public else None, "examples_per_user": self.examples_per_user}


Units = EveryRecord | Users


class UserBatches:
    """Batches of users, as the records of theirs that take part."""

    def __init__(self, batches: Batches, users: Users) -> None:
        self._batches, self._users = batches, users

    def of(self, step: int) -> Numbers:
        """Numbers of the records of one step."""
        return self._users.taken(self._batches.of(step).tolist())


def _told_apart(users: Any) -> tuple[list[Any], Numbers]:
    """All different names, and the number of each record's among them; -1 for what is no name."""
    if isinstance(users, np.ndarray) and users.ndim == 1 and users.dtype.kind in "iuU":
        values, found = np.unique(users, return_inverse=True)
        return values.tolist(), found.astype(np.int64)
    seen: dict[Any, int] = {}
    given = users.tolist() if hasattr(users, "tolist") else users
    given = [int(name) if isinstance(name, np.integer) else name for name in given]
    numbers = [seen.setdefault(name, len(seen)) if isinstance(name, str | int) else -1 for name in given]
    return list(seen), np.array(numbers, np.int64)


def _digest(name: Any) -> bytes:
    return sha256(f"{type(name).__name__}/{name}".encode("utf-8", "surrogatepass")).digest()
