"""Chain: the entries as one transaction sees them, read from the end, extended by one."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, TextClause, select, text

from psidp.errors import ClockError, UnknownBudgetError
from psidp.guarantee import Guarantee
from psidp.release.budget import Budget, period_of
from psidp.release.entry import ENTRIES, Entry, canonical, genesis
from psidp.release.loss import ZERO, Loss
from psidp.release.schema import identity_of
from psidp.release.standing import Standing
from psidp.release.step import step

__all__ = ["CHANGES", "Chain", "Clock", "moment"]

Clock = Callable[[], datetime]

SLACK = timedelta(minutes=5)
"""How far a clock may be behind the last entry, as clocks of several machines are, before the ledger refuses."""

CHANGES = text("state NOT IN ('spent', 'answered', 'withheld', 'interrupted')")
"""Entries that change a budget itself, in the very words of the index that holds them."""

_COLUMNS = ENTRIES.c


class Chain:
    """The entries inside one transaction."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.connection = connection
        self._clock = clock

    def last(self, *where: ColumnElement[bool] | TextClause) -> Entry | None:
        """The last entry, or the last with a property; its hash is checked."""
        query = select(ENTRIES).where(*where).order_by(_COLUMNS.id.desc()).limit(1)
        row = self.connection.execute(query).first()
        if row is None:
            return None
        entry = Entry.from_row(row)
        entry.check_hash()
        return entry

    def last_of(self, budget: str, partition: str = "", until: int | None = None) -> Entry | None:
        """The last entry of a budget or of one of its partitions; of those up to a number, if told."""
        where: list[ColumnElement[bool] | TextClause] = [_COLUMNS.budget == budget]
        if partition:
            where += [_COLUMNS.partition == partition, text("partition <> ''")]
        if until is not None:
            where.append(_COLUMNS.id <= until)
        return self.last(*where)

    def opening_of(self, budget: str) -> Entry:
        """The entry that opened a budget, or a refusal."""
        where = (_COLUMNS.budget == budget, CHANGES)
        row = self.connection.execute(select(ENTRIES).where(*where).order_by(_COLUMNS.id).limit(1)).first()
        if row is None:
            raise UnknownBudgetError(f"no budget {budget!r} was opened in this ledger.")
        entry = Entry.from_row(row)
        entry.check_hash()
        return entry

    def under_key(self, budget: str, key: str) -> list[Entry]:
        """What was asked and answered under an idempotency key, in order."""
        where = (_COLUMNS.budget == budget, _COLUMNS.key == key, text("key <> ''"))
        rows = self.connection.execute(select(ENTRIES).where(*where).order_by(_COLUMNS.id))
        return [Entry.from_row(row) for row in rows]

    def changes(self, budget: str | None = None) -> Iterator[Entry]:
        """The entries that changed a budget itself, or any budget."""
        where = [CHANGES] if budget is None else [CHANGES, _COLUMNS.budget == budget]
        for row in self.connection.execute(select(ENTRIES).where(*where).order_by(_COLUMNS.id)):
            yield Entry.from_row(row)

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
            price=ZERO if guarantee is None else Loss.of(guarantee),
            partition=partition,
            partition_before=None if part is None else Standing.read(part.standing),
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
        self.connection.execute(ENTRIES.insert(), entry.to_dict())
        return entry

    def _standing(self, budget: str, last: Entry | None) -> Standing | None:
        """How a budget stands; `last` is the last entry of all."""
        mine = last if last is not None and last.budget == budget else self.last_of(budget)
        return None if mine is None else Standing.read(mine.standing)

    def _renewed(self, budget: Budget, now: datetime) -> Entry | None:
        """The entry that begins a new period, if one has begun."""
        mine = self.last_of(budget.name)
        period = period_of(budget.renews, now)
        if mine is None or not period > Standing.read(mine.standing).period:
            return None
        return self.append(budget.name, "renewed", {"kind": "renewed", "period": period})


def moment(stamp: str) -> datetime:
    """The time that an entry carries."""
    return datetime.fromisoformat(stamp)


def _stamp(now: datetime) -> str:
    return f"{now:%Y-%m-%dT%H:%M:%S.%f}Z"
