"""EntryLog: the entries as one transaction sees them, read from the end, extended by one."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select, text

from psidp.errors import ClockError, UnknownBudgetError
from psidp.guarantee import Guarantee
from psidp.ledger.balance import Balance, step
from psidp.ledger.budget import Budget, period_of
from psidp.ledger.cost import ZERO, Cost
from psidp.ledger.entry import ENTRIES, Entry, canonical, genesis
from psidp.ledger.schema import identity_of

__all__ = ["Clock", "EntryLog", "moment"]

Clock = Callable[[], datetime]

SLACK = timedelta(minutes=5)
"""How far a clock may be behind the last entry, as clocks of several machines are, before the ledger refuses."""

BATCH = 500
_C = ENTRIES.c
_MINE = _C.budget == bindparam("budget")
_CHANGE = text("state NOT IN ('spent', 'answered', 'withheld', 'interrupted')")  # in the very words of its index
_LAST = select(ENTRIES).order_by(_C.id.desc()).limit(1)
_LAST_OF = _LAST.where(_MINE)
_ENTRY = select(ENTRIES).where(_C.id == bindparam("id"))
_LAST_UNTIL = _LAST_OF.where(_C.id <= bindparam("until"))
_LAST_OF_PARTITION = _LAST_OF.where(_C.partition == bindparam("partition"), text("partition <> ''"))
_KEYED = select(ENTRIES).where(_MINE, _C.key == bindparam("key"), text("key <> ''")).order_by(_C.id)
_CHANGES = select(ENTRIES).where(_CHANGE).order_by(_C.budget, _C.id)
_CHANGES_OF = _CHANGES.where(_MINE)
_OPENING = _CHANGES_OF.limit(1)
_INSERT = ENTRIES.insert()


class EntryLog:
    """The entries inside one transaction."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.connection = connection
        self._clock = clock

    def last(self) -> Entry | None:
        """The last entry of all; like every entry that is read to go on from, its hash is checked."""
        return self._one(_LAST)

    def last_of(self, budget: str, partition: str = "", until: int | None = None) -> Entry | None:
        """The last entry of a budget or of one of its partitions; of those up to a number, if told."""
        if partition:
            return self._one(_LAST_OF_PARTITION, budget=budget, partition=partition)
        if until is not None:
            return self._one(_LAST_UNTIL, budget=budget, until=until)
        return self._one(_LAST_OF, budget=budget)

    def spend(self, entry: int) -> Entry:
        """The spend that has this number, or a refusal."""
        found = self._one(_ENTRY, id=entry)
        if found is None or found.state != "spent":
            raise ValueError(f"entry {entry} of this ledger must be a spend, got {found.state if found else 'none'}.")
        return found

    def opening_of(self, budget: str) -> Entry:
        """The entry that opened a budget, or a refusal."""
        entry = self._one(_OPENING, budget=budget)
        if entry is None:
            raise UnknownBudgetError(f"no budget {budget!r} was opened in this ledger. psidp ledger show lists them.")
        return entry

    def some(self, budget: str | None, after: int) -> list[Entry]:
        """The next entries after a number, of one budget or of all."""
        query = select(ENTRIES).where(_C.id > after).order_by(_C.id).limit(BATCH)
        query = query if budget is None else query.where(_C.budget == budget)
        return [Entry.from_row(row) for row in self.connection.execute(query)]

    def under_key(self, budget: str, key: str) -> list[Entry]:
        """What was asked and answered under an idempotency key, in order; their hashes are checked."""
        found = [Entry.from_row(row) for row in self.connection.execute(_KEYED, {"budget": budget, "key": key})]
        for entry in found:
            entry.check_hash()
        return found

    def changes(self, budget: str | None = None) -> list[Entry]:
        """The entries that changed a budget itself, or any budget, in order."""
        query, values = (_CHANGES, {}) if budget is None else (_CHANGES_OF, {"budget": budget})
        entries = [Entry.from_row(row) for row in self.connection.execute(query, values)]
        return sorted(entries, key=lambda entry: entry.id)

    def budget(self, name: str) -> Budget:
        """The terms of a budget, or a refusal."""
        entry = self.opening_of(name)
        return Budget.from_event(name, entry.details(), entry.purpose)

    def now(self, last: Entry | None) -> datetime:
        """The time for the next entry: the clock's, never before the last entry's; a clock far behind is refused."""
        now = self._clock().astimezone(UTC)
        if last is None:
            return now
        before = moment(last.time)
        if now < before - SLACK:
            raise ClockError(
                f"the clock says {_stamp(now)}, but entry {last.id} was written at {last.time}: the clock is "
                f"{before - now} behind; nothing was spent and nothing released. Set the clock right."
            )
        return max(now, before)

    def append(
        self,
        budget: Budget | str,
        state: str,
        event: Mapping[str, Any],
        guarantee: Guarantee | None = None,
        *,
        partition: str = "",
        **columns: Any,
    ) -> Entry:
        """One more entry, with the budget's standing after it; refused where the rules do not allow it."""
        name = budget if isinstance(budget, str) else budget.name
        last = self.last()
        now = self.now(last)
        if state == "spent" and isinstance(budget, Budget) and budget.renews:
            last = self._renewed(budget, now) or last
        part = self.last_of(name, partition) if partition else None
        standing = step(
            self._standing(name, last),
            state,
            event,
            budget=name,
            price=ZERO if guarantee is None else Cost.of(guarantee),
            partition=partition,
            partition_before=None if part is None else Balance.read(part.standing),
        )
        entry = Entry.sealed(
            id=1 if last is None else last.id + 1,
            time=_stamp(now),
            budget=name,
            partition=partition,
            state=state,
            event=canonical(event),
            psi=0.0 if guarantee is None else guarantee.psi,
            kappa=0.0 if guarantee is None else guarantee.kappa,
            standing=standing.text(),
            previous=genesis(identity_of(self.connection)) if last is None else last.hash,
            **columns,
        )
        self.connection.execute(_INSERT, entry.to_dict())
        return entry

    def _one(self, query: Select[Any], **values: Any) -> Entry | None:
        row = self.connection.execute(query, values).first()
        if row is None:
            return None
        entry = Entry.from_row(row)
        entry.check_hash()
        return entry

    def _standing(self, budget: str, last: Entry | None) -> Balance | None:
        """How a budget stands; `last` is the last entry of all."""
        mine = last if last is not None and last.budget == budget else self.last_of(budget)
        return None if mine is None else Balance.read(mine.standing)

    def _renewed(self, budget: Budget, now: datetime) -> Entry | None:
        """The entry that begins a new period, if one has begun."""
        mine = self.last_of(budget.name)
        period = period_of(budget.renews, now)
        if mine is None or not period > Balance.read(mine.standing).period:
            return None
        return self.append(budget.name, "renewed", {"kind": "renewed", "period": period})


def moment(stamp: str) -> datetime:
    """The time that an entry carries."""
    return datetime.fromisoformat(stamp)


def _stamp(now: datetime) -> str:
    return f"{now:%Y-%m-%dT%H:%M:%S.%f}Z"
