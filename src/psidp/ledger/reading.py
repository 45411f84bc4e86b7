"""LedgerReading: everything that can be asked of a ledger without writing to it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from psidp.guarantee import Guarantee
from psidp.ledger import export, openings, requests, schema
from psidp.ledger.access import Access
from psidp.ledger.approvals import Asked
from psidp.ledger.budget import Budget
from psidp.ledger.cost import Cost
from psidp.ledger.entry import Entry, genesis
from psidp.ledger.json_value import from_json
from psidp.ledger.kept import check_against, key_in, read_kept, write_kept
from psidp.ledger.known_head import not_as_written
from psidp.ledger.listing import Selection, page
from psidp.ledger.log import Clock, EntryLog
from psidp.ledger.names import check_name
from psidp.ledger.report import Report, history_of, report_of, standing_of
from psidp.ledger.results import Result, results_of
from psidp.ledger.statement import Statement, statement_of
from psidp.ledger.store import Store
from psidp.ledger.unit_column import said
from psidp.ledger.url import LedgerUrl
from psidp.ledger.verify import Head, Verification

__all__ = ["PATIENCE", "LedgerReading"]

PATIENCE = 30.0
Found = TypeVar("Found")


class LedgerReading:
    """The half of `Ledger` that reads."""

    def __init__(
        self, url: str | Path, *, patience: float = PATIENCE, clock: Clock | None = None, actor: str = ""
    ) -> None:
        self._store = Store(LedgerUrl.parse(url), patience)
        self._access = Access(self._store, clock, actor)

    def __repr__(self) -> str:
        return f"Ledger({self._access.shown!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.dispose()

    def dispose(self) -> None:
        """Close the connections; the ledger can be used again afterwards."""
        self._store.dispose()

    @property
    def actor(self) -> str:
        """Who asks, unless a call says otherwise."""
        return self._access.actor

    # Budgets

    def budgets(self) -> list[str]:
        """The names of all budgets, in the order they were opened."""
        return self._read(lambda log: [entry.budget for entry in log.changes() if entry.state == "opened"])

    def budget(self, name: str) -> Budget:
        """The terms under which a budget was opened."""
        return self._read(lambda log: self._access.budget(log, name))

    def beside(self, budget: str) -> list[str]:
        """Other open budgets that protect the same unit, of the same table where both say one: their psi add up."""
        return self._read(lambda log: openings.beside(log, self._access.budget(log, budget)))

    def needs_approval(self, budget: str, guarantee: Guarantee) -> bool:
        """Whether a spend of this size has to be approved by somebody else."""
        return self._read(
            lambda log: standing_of(log, self._access.budget(log, budget)).needs_approval(Cost.of(guarantee))
        )

    def waiting(self, budget: str = "") -> list[tuple[Entry, Asked]]:
        """The requests that wait for an answer, and the approvals that were not used, each with how it stands."""
        return self._read(lambda log: requests.waiting(log, budget))

    # What was spent

    def spent(self, entry: int) -> Entry:
        """The spend that has this number."""
        return self._read(lambda log: log.spend(entry))

    def answered(self, budget: str, retry_key: str) -> bool:
        """Whether an answer is stored under an idempotency key, so that asking again costs nothing."""
        return any(entry.state == "answered" for entry in self.under_key(budget, retry_key))

    def under_key(self, budget: str, retry_key: str) -> list[Entry]:
        """What was asked and answered under an idempotency key, in order."""
        return self._read(lambda log: log.under_key(budget, retry_key))

    def answer(self, retry_key: str, budget: str = "") -> Any:
        """The answer that is stored under an idempotency key, as plain values; reading it costs nothing.

        A table's is what `Answer.to_dict` gave, a cube's what `Cube.to_dict` gave, a mechanism's {"value": ...}, a
        period's of a stream its encoded numbers.

        Args:
            budget: whose key it is; needed where several budgets have an answer under it.
        """
        return from_json(self.answer_entry(retry_key, budget).answer)

    def answer_entry(self, retry_key: str, budget: str = "") -> Entry:
        """The entry that holds the answer under an idempotency key; it refers to the spend that paid for it."""
        names = [budget] if budget else self.budgets()
        under = [entry for name in names for entry in self.under_key(name, retry_key)]
        found = {entry.budget: entry for entry in reversed(under) if entry.state == "answered"}
        if len(found) > 1:
            raise ValueError(
                f"budget (whose key it is) must be one of {', '.join(map(repr, sorted(found)))}, which all have an "
                f"answer under retry_key {retry_key!r}."
            )
        if not found:
            first = under[0] if under else None
            why = f"no answer is stored for entry {first.id} of budget {first.budget!r}" if first else "no entry has it"
            raise ValueError(
                f"retry_key (idempotency key) must be one with a stored answer, got retry_key={retry_key!r}: {why}. "
                "psidp ledger list LEDGER --state answered --json shows the keys."
            )
        return next(iter(found.values()))

    def remaining(self, budget: str, partition: str = "") -> Guarantee:
        """The largest guarantee in psi, and in kappa, that still fits; rounded down, so that spending it does."""

        def left(log: EntryLog) -> Guarantee:
            terms = self._access.budget(log, budget)
            if partition:
                terms.check_spend(terms.guarantee, partition)
            standing = standing_of(log, terms, partition)
            if standing.closed:
                return Guarantee(0.0, 0.0, terms.adjacency, terms.unit)
            return standing.left(bool(partition)).guarantee_below(terms.guarantee)

        return self._read(left)

    def check_unit(self, budget: str, column: str | None, same_unit: str = "") -> None:
        """Refuse a unit column that is not the budget's (None: every row is a unit), unless `same_unit` says why."""
        event = {"unit_column": column, "same_unit": same_unit}
        self._read(lambda log: said(self._access.budget(log, budget), self._access.unit_column(log, budget), event))

    # Reports

    def report(self, budget: str) -> Report:
        """How a budget stands, now and since it was opened, with every change it has seen."""
        return self._read(lambda log: self._report(log, budget))

    def history(self, budget: str, points: int = 60) -> list[tuple[str, float]]:
        """Time and lifetime psi at so many entries, evenly spread from the first to the last."""
        return self._read(lambda log: history_of(log, self._access.budget(log, budget), points))

    def list(self, which: Selection | None = None, *, size: int = 20, before: int | None = None) -> list[Entry]:
        """A page of entries, the newest first; `before` the number of the last one gives the next page."""
        return self._read(lambda log: page(log, which or Selection(), size, before))

    def results(self, entries: Sequence[Entry]) -> dict[int, Result]:
        """What became of the spends among some entries, by their numbers."""
        return self._read(lambda log: results_of(log, entries))

    def approver(self, spend: Entry) -> str:
        """Who approved a spend; "" where nobody had to."""
        return self._read(lambda log: log.approver(spend))

    def statement(self, which: Selection | None = None) -> Statement:
        """What was spent in a stretch of time, by unit, budget, table and actor, and who allowed the largest."""

        def found(log: EntryLog) -> Statement:
            names = [entry.budget for entry in log.changes() if entry.state == "opened"]
            terms = {name: self._access.budget(log, name) for name in names}
            return statement_of(
                log, which or Selection(), log.stamp(), terms, [self._report(log, name) for name in names]
            )

        return self._read(found)

    def verified_statement(self, which: Selection | None = None) -> Statement:
        """`statement`, once every entry was recomputed; TamperedLedgerError names the first bad one instead."""
        seen, found = self.verify(), self.statement(which)
        if found.head not in ("", str(seen)):  # somebody wrote meanwhile
            seen = self.verify(found.head)
        verified = Head.parse(found.head).id if found.head else 0
        return replace(found, verified=verified, not_recomputed=seen.not_recomputed)

    # The chain

    def now(self) -> datetime:
        """The time of the ledger's clock, never before the last entry's."""
        return self._read(lambda log: log.now(log.last()))

    def entries(self, budget: str | None = None, *, after: int = 0) -> Iterator[Entry]:
        """All entries, or one budget's, in order, a few at a time."""
        while batch := self._read(lambda log, last=after: log.some(budget, last)):  # type: ignore[misc]
            yield from batch
            after = batch[-1].id

    def head(self) -> Head:
        """The last entry's number and hash, for somebody else to keep."""

        def found(log: EntryLog) -> Head:
            last = log.last()
            return Head(0, genesis(schema.identity_of(log.connection))) if last is None else Head(last.id, last.hash)

        return self._read(found)

    def verify(
        self, head: Head | str | None = None, *, kept: str | Path | None = None, key: str | Path | None = None
    ) -> Head:
        """The head, once every hash, price and total was recomputed; TamperedLedgerError names the first bad entry.

        Args:
            head: one that was kept earlier: the ledger must still contain it.
            kept: a file from which this verification goes on, if it is there, and which it leaves for the next one.
                Then only newer entries are read (docs/ledger.md says what that does not find).
            key: a file with a secret that signs `kept`; it is made where there is none.
        """
        if key is not None and kept is None:
            raise TypeError("key signs the file that kept names: give both.")
        asked = Head.parse(head) if isinstance(head, str) else head
        identity = self._read(lambda log: schema.identity_of(log.connection))
        file, secret = None if kept is None else Path(kept), key_in(None if key is None else Path(key))
        walk = Verification(genesis(identity))
        if file is not None and file.exists():
            walk = read_kept(file, identity, secret)
            self._read(lambda log: check_against(log, walk))
        else:
            self._store.check_file()
        before, walk.kept = walk.id, asked
        while self._read(lambda log: walk.over(log.some(None, walk.id), log)):
            pass
        found = walk.end()
        if wrong := self._read(lambda log: log.wrong_copy(before)):
            raise not_as_written(wrong, "its copy of the actor or the table is not what its event says")
        if file is not None:
            write_kept(file, identity, walk, secret)
        return found

    def export(self) -> Iterator[str]:
        """The ledger as lines of JSON, for `Ledger.restore` and for anybody who wants to verify it."""
        identity = self._read(lambda log: schema.identity_of(log.connection))
        yield from export.lines_of(identity, self.entries())

    # How it is done

    def _who(self, actor: str) -> str:
        return check_name("actor", actor) if actor else self._access.actor

    def _report(self, log: EntryLog, budget: str) -> Report:
        return report_of(log, self._access.budget(log, budget), self._access.units.saying(log, budget))

    def _read(self, work: Callable[[EntryLog], Found]) -> Found:
        return self._access.read(work)
