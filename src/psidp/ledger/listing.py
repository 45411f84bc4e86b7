"""Listing: entries chosen by time, budget, actor and table, a page at a time, the newest first."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, get_args

from sqlalchemy import Column, Select, Text, false, select, text

from psidp.ledger.entry import COPIES, ENTRIES, Entry, State
from psidp.ledger.log import EntryLog
from psidp.symbols import whole

__all__ = ["LARGEST_PAGE", "Selection", "chosen", "page"]

LARGEST_PAGE = 10_000
BATCH = 500
_C = ENTRIES.c
_TIME = {
    dialect: f"SELECT time FROM psidp_entries WHERE id = {mark}"
    for dialect, mark in (("sqlite", "?"), ("postgresql", "%s"))
}
_ACTOR, _TABLE = (Column(name, Text) for name in COPIES)
_DAY = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which entries: of a budget, of an actor, of a table, in a state, from one moment to another.

    Args:
        budget, actor, table: exactly this name; any unless told.
        state: "spent" unless told, without what cost nothing, such as a period of a stream that is paid for; "" for
            every entry.
        since, until: a year, a month or a day (2026, 2026-05, 2026-05-09), or a moment of UTC (2026-05-09T12:00);
            `until` is included: until="2026" reaches to the end of the year.

    Examples:
        >>> Selection(since="2026-02", until="2026-02").times
        ('2026-02-01T00:00:00.000000Z', '2026-03-01T00:00:00.000000Z')
    """

    budget: str = ""
    actor: str = ""
    table: str = ""
    state: str = "spent"
    since: str = ""
    until: str = ""

    def __post_init__(self) -> None:
        if self.state and self.state not in get_args(State):
            raise ValueError(f"state must be one of {', '.join(get_args(State))}, got state={self.state!r}.")
        first, last = self.times
        if not (not first or not last or first < last):
            raise ValueError(f"since must lie before until, got since={self.since!r} and until={self.until!r}.")

    @property
    def times(self) -> tuple[str, str]:
        """The first moment that counts and the first that does not, as entries write them; "" where there is none."""
        return (_stretch("since", self.since)[0] if self.since else "",
                _stretch("until", self.until)[1] if self.until else "")  # fmt: skip

    def in_words(self) -> str:
        """The choice in words; "" where everything is chosen."""
        times = ("since", "until") if self.since != self.until else ()
        named = [(name, getattr(self, name)) for name in ("budget", "table", "actor", *times)]
        named += [("in", self.since)] if not times else []
        return ", ".join(f"{name} {value}" for name, value in named if value)


def page(log: EntryLog, which: Selection, size: int, before: int | None = None) -> list[Entry]:
    """The newest entries that are chosen, at most so many; of those before a number, if told."""
    if not whole("size", size) <= LARGEST_PAGE or size < 1:
        raise ValueError(f"size (entries of a page) must be in [1, {LARGEST_PAGE:,}], got size={size}.")
    query = _query(log, which)
    if before is not None:
        query = query.where(_C.id < before)
    return [Entry.from_row(row) for row in log.connection.execute(query.order_by(_C.id.desc()).limit(size))]


def chosen(log: EntryLog, which: Selection) -> Iterator[Entry]:
    """All entries that are chosen, in order, a few at a time."""
    query, after = _query(log, which).order_by(_C.id).limit(BATCH), 0
    while rows := log.connection.execute(query.where(_C.id > after)).all():
        batch = [Entry.from_row(row) for row in rows]
        yield from batch
        after = batch[-1].id


def _query(log: EntryLog, which: Selection) -> Select[Any]:
    """The query, with times turned into numbers of entries: both run the same way."""
    query = select(ENTRIES)
    if which.budget:
        query = query.where(_C.budget == which.budget)
    for copy, value in ((_ACTOR, which.actor), (_TABLE, which.table)):
        if value:
            query = query.where(copy == value, text(f"{copy.name} <> ''")) if log.version > 1 else query.where(false())
    if which.state:
        query = query.where(_C.state == which.state)
    if which.state == "spent":
        query = query.where((_C.psi > 0.0) | (_C.kappa > 0.0))
    first, last = which.times
    if first:
        query = query.where(_C.id >= _first_at(log, first))
    return query.where(_C.id < _first_at(log, last)) if last else query


def _first_at(log: EntryLog, time: str) -> int:
    """The number of the first entry at or after a time, found by halving: ids have no gap and time runs forward."""
    last = log.last()
    low, high = 1, 1 if last is None else last.id + 1
    while low < high:
        middle = (low + high) // 2
        found = log.run(_TIME[log.connection.dialect.name], (middle,))
        if found is None or found < time:
            low = middle + 1
        else:
            high = middle
    return low


def _stretch(name: str, text: str) -> tuple[str, str]:
    """The first moment of a year, month, day or moment, and the first after it."""
    found = _DAY.fullmatch(text)
    try:
        if found is None:
            moment = datetime.fromisoformat(text.removesuffix("Z"))
            return _stamp(moment), _stamp(moment + timedelta(microseconds=1))
        year, month, day = (int(part) if part else None for part in found.groups())
        first = datetime(year or 0, month or 1, day or 1)
    except ValueError:
        raise ValueError(
            f"{name} must be a year, a month, a day or a moment, such as 2026, 2026-05, 2026-05-09 or "
            f"2026-05-09T12:00, got {name}={text!r}."
        ) from None
    if day:
        return _stamp(first), _stamp(first + timedelta(days=1))
    years, months = (1, 0) if month is None else divmod(first.month, 12)
    return _stamp(first), _stamp(first.replace(year=first.year + years, month=1 if month is None else months + 1))


def _stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"
