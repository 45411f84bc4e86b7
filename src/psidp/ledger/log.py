"""EntryLog: the entries inside one transaction. It reads them from the end, and appends."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select, text

from psidp.errors import ClockError, NewerLedgerError, PsidpError, UnknownBudgetError
from psidp.guarantee import Guarantee
from psidp.ledger.approvals import Proposed, approval_of
from psidp.ledger.balance import Balance, step
from psidp.ledger.budget import Budget, period_of
from psidp.ledger.cost import ZERO, Cost
from psidp.ledger.driver import runner
from psidp.ledger.entry import COLUMNS, COPIES, ENTRIES, INSERT, NAMES, Entry, canonical, genesis, moment, stamp
from psidp.ledger.known_head import KnownHead, not_as_written
from psidp.ledger.rules import SLACK, check, is_known, stopped_everywhere
from psidp.ledger.schema import VERSION, identity_of

__all__ = ["BATCH", "NOTE", "Before", "Clock", "EntryLog"]

Clock = Callable[[], datetime]

BATCH = 500
MOST = 2**62
"""Above every entry's number."""
_C = ENTRIES.c
_MINE = _C.budget == bindparam("budget")
_CHANGE = text("state NOT IN ('spent', 'answered', 'withheld', 'interrupted')")  # in the very words of its index
_LAST = select(ENTRIES).order_by(_C.id.desc()).limit(1)
_LAST_OF = _LAST.where(_MINE)
_ENTRY = select(ENTRIES).where(_C.id == bindparam("id"))
_LAST_UNTIL = _LAST_OF.where(_C.id <= bindparam("until"))
_PART_UNTIL = _LAST_UNTIL.where(_C.partition == bindparam("partition"), text("partition <> ''"))
_LAST_OF_PARTITION = _LAST_OF.where(_C.partition == bindparam("partition"), text("partition <> ''"))
_UNTIL = _C.id < bindparam("until")
_KEYED = select(ENTRIES).where(_MINE, _C.key == bindparam("key"), text("key <> ''")).order_by(_C.id)
NOTE = text("state IN ('answered', 'withheld', 'interrupted')")  # in the very words of its index
_NOTES_ON = select(ENTRIES).where(NOTE, _C.refers == bindparam("id"), _MINE, _C.id > bindparam("id"), _UNTIL)
_CHANGES = select(ENTRIES).where(_CHANGE).order_by(_C.budget, _C.id)
_CHANGES_OF = _CHANGES.where(_MINE)
_OPENING = _CHANGES_OF.limit(1)
_SAID = {"sqlite": "json_extract(event, '$.{name}')", "postgresql": "(CAST(event AS jsonb) ->> '{name}')"}
_SAME = {
    dialect: f"SELECT (SELECT max(id) FROM psidp_entries) = {mark} AND EXISTS (SELECT 1 FROM psidp_entries WHERE "
    + " AND ".join(f'"{name}" = {mark}' for name in (*NAMES, *COPIES))
    + ")"
    for dialect, mark in (("sqlite", "?"), ("postgresql", "%s"))
}
"""Whether the ledger ends with a row, in every column."""
_HEAD = f"SELECT {COLUMNS} FROM psidp_entries ORDER BY id DESC LIMIT 1"


class EntryLog:
    """The entries inside one transaction.

    Args:
        connection: the transaction's. clock: where the time comes from.
        known: the head that this process saw last, so that what did not change is not read again.
        version: of the ledger; one that is only read may be older than this program.
    """

    def __init__(
        self, connection: Connection, clock: Clock, known: KnownHead | None = None, version: int = VERSION
    ) -> None:
        self.connection, self.version = connection, version
        self.known = KnownHead() if known is None else known
        self.written: Entry | None = None
        self._clock, self.run = clock, runner(connection)
        self._keyed: dict[tuple[str, str], list[Entry]] = {}

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

    def entry(self, number: int) -> Entry | None:
        """The entry that has this number."""
        return self._one(_ENTRY, id=number)

    def approver(self, spend: Entry) -> str:
        """Who approved a spend; "" where nobody had to."""
        found = self._one(_ENTRY, id=spend.refers) if spend.state == "spent" and spend.refers else None
        return "" if found is None else str(found.details()["by"])

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

    def under_key(self, budget: str, key: str, until: int = MOST) -> list[Entry]:
        """What was asked and answered under an idempotency key before an entry, in order; their hashes are checked."""
        if (budget, key) not in self._keyed:
            rows = self.connection.execute(_KEYED, {"budget": budget, "key": key})
            self._keyed[budget, key] = [Entry.from_row(row) for row in rows]
        found = [entry for entry in self._keyed[budget, key] if entry.id < until]
        for entry in found:
            entry.check_hash()
        return found

    def notes_on(self, spend: Entry, until: int = MOST) -> list[Entry]:
        """What became of a spend, as far as anybody wrote it down before an entry, in order."""
        values = {"id": spend.id, "budget": spend.budget, "until": until}
        return [Entry.from_row(row) for row in self.connection.execute(_NOTES_ON.order_by(_C.id), values)]

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
                f"the clock says {stamp(now)}, but entry {last.id} was written at {last.time}: the clock is "
                f"{before - now} behind; nothing was spent and nothing released. Set the clock right."
            )
        return max(now, before)

    def wrong_copy(self, after: int = 0) -> int:
        """The first entry whose copies of actor and table are not what its event says; 0 where all are right."""
        if self.version < 2:
            return 0
        said = _SAID[self.connection.dialect.name]
        wrong = " OR ".join(
            f"{copy} <> coalesce({said.format(name=name)}, '')"
            for copy, name in zip(COPIES, ("by", "table"), strict=True)
        )
        query = f"SELECT min(id) FROM psidp_entries WHERE id > {after:d} AND ({wrong})"
        return int(self.connection.execute(text(query)).scalar() or 0)

    def stamp(self) -> str:
        """The time for the next entry, as entries write it."""
        return stamp(self.now(self.last()))

    def append(
        self,
        budget: Budget | str,
        state: str,
        event: Mapping[str, Any],
        guarantee: Guarantee | None = None,
        *,
        partition: str = "",
        purpose: str = "",
        refers: int = 0,
        now: datetime | None = None,
        **columns: str,
    ) -> Entry:
        """One more entry, with the budget's balance after it; refused where the rules do not allow it."""
        name = budget if isinstance(budget, str) else budget.name
        last = self.head()
        now = now or self.now(last)
        if state == "spent" and isinstance(budget, Budget) and budget.renews:
            last = self._renewed(budget, now, event) or last
        part = self.last_of(name, partition) if partition else None
        psi, kappa = (0.0, 0.0) if guarantee is None else (guarantee.psi, guarantee.kappa)
        proposed = Proposed(
            name, state, event, ZERO if guarantee is None else Cost.of(guarantee), psi, kappa, partition, purpose,
            stamp(now), 1 if last is None else last.id + 1, refers, **columns,
        )  # fmt: skip
        before = self._balance(name, last)
        if state == "spent" and before is not None and before.needs_approval(proposed.price) and not before.closed:
            proposed = proposed._replace(refers=approval_of(before.waiting, proposed))
        check(proposed, before, Before(self, proposed.id, last))
        balance = step(before, proposed, None if part is None else Balance.read(part.standing))
        entry = Entry.sealed(
            id=proposed.id,
            time=proposed.time,
            budget=name,
            partition=partition,
            state=state,
            event=canonical(event),
            psi=psi,
            kappa=kappa,
            purpose=purpose,
            refers=proposed.refers,
            standing=balance.text(),
            previous=genesis(identity_of(self.connection)) if last is None else last.hash,
            **columns,
        )
        row = entry.row(event)
        self._keyed.clear()
        self.run(INSERT[self.connection.dialect.name], row)
        if not self.run(_SAME[self.connection.dialect.name], (entry.id, *row)):
            raise not_as_written(entry.id, "the database does not end with the row that was written to it")
        self.known.wrote(row, entry, balance)
        self.written = entry
        return entry

    def head(self) -> Entry | None:
        """The last entry of all, to go on from: the one that this process knows, or one that is checked.

        A head that others wrote has to follow from the entry above it, in its hash and in its balance; and the entry
        that this process saw last has to be there still.
        """
        known = self.known
        if known.row is not None:
            values = (known.row[0], *known.row)
            if self.run(_SAME[self.connection.dialect.name], values):
                return known.entry
        found = self.connection.exec_driver_sql(_HEAD).first()
        row = None if found is None else tuple(found)
        entry = None if row is None else Entry.from_row(row[: len(NAMES)])
        self._check_still_there(entry)
        if entry is None or row is None:
            return None
        entry.check_hash()
        self.known.saw(row, entry, self._followed(entry))
        return entry

    def _check_still_there(self, head: Entry | None) -> None:
        """Refuse a ledger that was cut or rewritten since this process looked at it."""
        seen = self.known.committed
        if seen is None:
            return
        again = head if head is not None and head.id == seen.id else self._one(_ENTRY, id=seen.id)
        if again is None or again.hash != seen.hash:
            raise not_as_written(seen.id, "it was there, with another content, when this process last looked")

    def _followed(self, entry: Entry) -> Balance:
        """The balance of a head that others wrote, if it follows from the entries above."""
        above = self._one(_ENTRY, id=entry.id - 1)
        expected = genesis(identity_of(self.connection)) if above is None else above.hash
        if (above is None) != (entry.id == 1) or entry.previous != expected:
            raise not_as_written(entry.id, "it does not follow the entry above")
        if entry.state != "spent" and not is_known(entry, entry.details()):
            raise NewerLedgerError(
                f"entry {entry.id} is of a kind that this psidp does not know: nothing can follow it. Install a newer "
                "psidp."
            )
        mine = above if above is not None and above.budget == entry.budget else None
        mine = mine or self.last_of(entry.budget, until=entry.id - 1)
        part = self._one(_PART_UNTIL, budget=entry.budget, partition=entry.partition, until=entry.id - 1)
        before, proposed = None if mine is None else Balance.read(mine.standing), Proposed.again(entry)
        try:
            moment(entry.time)
            check(proposed, before, Before(self, proposed.id, above))
            balance = step(
                before, proposed, None if part is None or not entry.partition else Balance.read(part.standing)
            )
        except (PsidpError, ValueError, TypeError, LookupError) as trouble:
            raise not_as_written(entry.id, str(trouble).removesuffix(".")) from None
        if balance.text() != entry.standing:
            raise not_as_written(entry.id, "its totals do not follow from the ones before")
        return balance

    def _one(self, query: Select[Any], **values: Any) -> Entry | None:
        row = self.connection.execute(query, values).first()
        if row is None:
            return None
        entry = Entry.from_row(row)
        entry.check_hash()
        return entry

    def _balance(self, budget: str, last: Entry | None) -> Balance | None:
        """How a budget stands; `last` is the last entry of all."""
        if last is None:
            return None
        if (known := self.known.balances.get(budget)) is not None:
            return known
        mine = last if last.budget == budget else self.last_of(budget)
        if mine is None:
            return None
        after = None if mine is last else self._one(_ENTRY, id=mine.id + 1)
        if after is not None and after.previous != mine.hash:
            raise not_as_written(mine.id, "the entry below does not follow it")
        return Balance.read(mine.standing)

    def _renewed(self, budget: Budget, now: datetime, spend: Mapping[str, Any]) -> Entry | None:
        """The entry that begins a new period, if one has begun."""
        mine = self.last_of(budget.name)
        period = period_of(budget.renews, now)
        if mine is None or not period > Balance.read(mine.standing).period:
            return None
        event = {"kind": "renewed", "period": period} | ({"by": spend["by"]} if "by" in spend else {})
        return self.append(budget.name, "renewed", event, now=now)


class Before:
    """The entries before one, as the rules look at them; the one above it, where it is known, is not read again."""

    def __init__(self, log: EntryLog, number: int, above: Entry | None = None) -> None:
        self._log, self._number, self._above = log, number, above

    def budget(self, name: str) -> Budget:
        """The terms of a budget."""
        return self._log.budget(name)

    def balance(self, budget: str) -> Balance | None:
        """How a budget stood after its last entry; None where it was never opened."""
        last = self._log.last_of(budget, until=self._number - 1)
        return None if last is None else Balance.read(last.standing)

    def entry(self, number: int) -> Entry | None:
        """The entry that has this number."""
        if self._above is not None and number == self._above.id:
            return self._above
        return self._log.entry(number) if number < self._number else None

    def under_key(self, budget: str, key: str) -> list[Entry]:
        """What was asked and answered under an idempotency key, in order."""
        return self._log.under_key(budget, key, self._number)

    def notes_on(self, spend: Entry) -> list[Entry]:
        """What became of a spend, in order."""
        return [] if spend.id == self._number - 1 else self._log.notes_on(spend, self._number)

    def changes(self) -> list[Entry]:
        """The entries that changed a budget, in order."""
        return [entry for entry in self._log.changes() if entry.id < self._number]

    def stopped_everywhere(self) -> list[str]:
        """Who was paused in all budgets, and not resumed in all of them since."""
        persons: list[str] = []
        for entry in self.changes():
            persons = stopped_everywhere(persons, entry.state, entry.details())
        return persons
