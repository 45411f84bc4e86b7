"""Entry: one line of the ledger, and the hash that ties it to the line above."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from hashlib import sha256
from operator import attrgetter
from typing import Any, Literal, Self

from sqlalchemy import BigInteger, Column, Double, Integer, MetaData, Table, Text

from psidp.errors import TamperedLedgerError
from psidp.maths.rounding import digits_up

__all__ = [
    "COLUMNS", "COPIES", "ENTRIES", "INSERT", "LEDGER", "NAMES", "NOTES", "Entry", "State", "canonical", "digest",
    "genesis", "moment", "stamp",
]  # fmt: skip

State = Literal[
    "opened", "spent", "answered", "withheld", "interrupted", "raised", "split", "reset", "renewed", "closed",
    "limited", "paused", "resumed", "requested", "approved", "denied",
]  # fmt: skip
NOTES = ("answered", "withheld", "interrupted")
"""States of entries that say what became of a spend, and change no balance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What happened, when, under which budget, at what price, and the budget's balance after it (`standing`)."""

    id: int
    time: str
    budget: str
    partition: str = ""
    state: str
    event: str
    psi: float = 0.0
    kappa: float = 0.0
    purpose: str = ""
    refers: int = 0
    key: str = ""
    request: str = ""
    answer: str = ""
    standing: str
    previous: str
    hash: str = ""

    @classmethod
    def sealed(cls, **columns: Any) -> Self:
        """The entry with its own hash."""
        entry = cls(**columns)
        object.__setattr__(entry, "hash", entry.expected_hash())
        return entry

    @classmethod
    def from_row(cls, row: Any) -> Self:
        """The entry of a database row, if every column holds what it should."""
        columns = dict(zip(NAMES, row, strict=True))
        for name, kind in KINDS.items():
            if type(columns[name]) is not kind:
                raise TamperedLedgerError(
                    f"entry {columns['id']} is not what was written: its {name} is {columns[name]!r}.",
                    columns["id"] if isinstance(columns["id"], int) else 0,
                )
        return cls(**columns)

    def expected_hash(self) -> str:
        """SHA-256 of every column but the hash itself, as one line of JSON."""
        return sha256(_COMPACT(["psidp-entry-1", *_VALUES(self)[:-1]]).encode()).hexdigest()

    def check_hash(self) -> None:
        """Refuse an entry that is not the one its hash was made for."""
        if self.hash != self.expected_hash():
            raise TamperedLedgerError(
                f"entry {self.id} is not what was written: its content does not match its hash.", self.id
            )

    def details(self) -> dict[str, Any]:
        """The event as values."""
        values: dict[str, Any] = json.loads(self.event)
        return values

    def what(self) -> str:
        """What happened, in words: the state, whom it stops or lets go on, what it asks, which request it answers."""
        if self.state in ("paused", "resumed"):
            person = self.details().get("person", "")
            return f"{self.state} for {person}" if person else self.state
        if self.state == "requested":
            return f"requested psi {digits_up(self.details()['psi'], 6):g}"
        return f"{self.state} request {self.refers}" if self.state in ("approved", "denied") else self.state

    def to_dict(self) -> dict[str, Any]:
        """The columns as plain values, as exported."""
        return dict(zip(NAMES, _VALUES(self), strict=True))

    def row(self, details: Mapping[str, Any] | None = None) -> tuple[Any, ...]:
        """The columns in the order of the table, and the copies of who asked and of which table."""
        event = self.details() if details is None else details
        return (*_VALUES(self), event.get("by", ""), event.get("table", ""))


NAMES = tuple(field.name for field in fields(Entry))
COPIES = ("actor", "table_name")
"""Columns that repeat what the event says, so that lists find it; they are no part of the hash."""
_VALUES = attrgetter(*NAMES)
_COMPACT = json.JSONEncoder(separators=(",", ":")).encode
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
KINDS: dict[str, type] = dict.fromkeys(NAMES, str) | {"id": int, "refers": int, "psi": float, "kappa": float}

_TYPES: dict[type, Any] = {str: Text, int: BigInteger, float: Double}
ENTRIES = Table("psidp_entries", MetaData(), *(Column(name, _TYPES[KINDS[name]]) for name in NAMES))
COLUMNS = ", ".join(f'"{name}"' for name in (*NAMES, *COPIES))
INSERT = {
    dialect: f"INSERT INTO psidp_entries ({COLUMNS}) VALUES ({', '.join([mark] * len((*NAMES, *COPIES)))})"
    for dialect, mark in (("sqlite", "?"), ("postgresql", "%s"))
}
"""One row, in the words of each database; the same columns as Entry.row."""
LEDGER = Table(
    "psidp_ledger", MetaData(), Column("version", Integer), Column("identity", Text), Column("applied", Text)
)


def genesis(identity: str) -> str:
    """What stands for the hash above the first entry."""
    return sha256(f"psidp-ledger-1 {identity}".encode()).hexdigest()


def moment(text: str) -> datetime:
    """The time that an entry carries; refused where it is not written as entries write it, in UTC."""
    found = datetime.fromisoformat(text)
    if stamp(found) != text:
        raise ValueError(f"a time must read as 2026-01-31T23:59:59.999999Z, got {text!r}.")
    return found


def stamp(time: datetime) -> str:
    """A time of UTC as entries write it."""
    return f"{time.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def canonical(value: Any) -> str:
    """`value` as JSON in one way only: names sorted, no spaces, no NaN."""
    return _CANONICAL(value)


def digest(value: Any) -> str:
    """SHA-256 of `value` as canonical JSON."""
    return sha256(canonical(value).encode()).hexdigest()
