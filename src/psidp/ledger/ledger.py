"""Ledger: a privacy budget that cannot be overspent, lost or forgotten."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from sqlalchemy import Connection

from psidp.accounting import DPSGD, BandMF, FixedOrder, RandomAllocation
from psidp.errors import NotALedgerError
from psidp.guarantee import Guarantee
from psidp.ledger import export, schema
from psidp.ledger.budget import Budget, Partitions, Renewal, period_of
from psidp.ledger.cost import shares
from psidp.ledger.entry import Entry, genesis
from psidp.ledger.event import checked, priced_run
from psidp.ledger.log import Clock, EntryLog
from psidp.ledger.report import Report, history_of, report_of, standing_of
from psidp.ledger.spend import Spend, request_digest
from psidp.ledger.store import Store
from psidp.ledger.unit_column import Known, Units, said
from psidp.ledger.url import LedgerUrl
from psidp.ledger.usage import noted
from psidp.ledger.verify import Head, Verification
from psidp.maths.sensitivity import Adjacency
from psidp.symbols import check_text

__all__ = ["Ledger"]

PATIENCE = 30.0
Result = TypeVar("Result")


class Ledger:
    """Budgets and what was spent from them, in a SQLite file or on a PostgreSQL server.

    Args:
        url: a path, sqlite:///path, or postgresql://user@host/database.
        patience: seconds to wait while others write, before refusing.
        clock: where the time comes from; the system's clock unless told.

    Guarantees:
        The sum of psi_i^2 never exceeds psi^2, to the last bit, and 1 - prod(1 - kappa_i) never exceeds kappa, whoever
        spends at the same time and whatever crashes. This is a privacy filter: it holds when each release is chosen
        after seeing all earlier ones (docs/design/ledger.md). A spend is on the disk before its block begins. Entries
        are hash-chained and never changed.

    Examples:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger(f"{folder.name}/ledger.db")
        >>> _ = ledger.open("survey", psi=1.0, unit="patient", actor="Ann", purpose="the 2026 survey")
        >>> with ledger.spend("survey", Guarantee(0.6, unit="patient"), purpose="mean age") as entry:
        ...     print("entry", entry.id)
        entry 2
        >>> ledger.remaining("survey")
        Guarantee(psi=0.7999..., unit='patient')
        >>> ledger.dispose(); folder.cleanup()

    References:
        Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy", 2022.
    """

    def __init__(self, url: str | Path, *, patience: float = PATIENCE, clock: Clock | None = None) -> None:
        self._store = Store(LedgerUrl.parse(url), patience)
        self._clock: Clock = clock or _system_clock
        self._terms: dict[str, Budget] = {}
        self._units = Units()
        self._ready = False

    def __repr__(self) -> str:
        return f"Ledger({self._store.address.shown!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.dispose()

    def dispose(self) -> None:
        """Close the connections; the ledger can be used again afterwards."""
        self._store.dispose()

    # Budgets

    def open(
        self,
        budget: str,
        psi: float,
        kappa: float = 0.0,
        *,
        actor: str,
        purpose: str,
        unit: str = "record",
        adjacency: Adjacency = "add-remove",
        partitions: Partitions | None = None,
        renews: Renewal = "",
    ) -> Entry:
        """The entry that opens a budget; the first one makes the ledger. A name is opened once."""
        guarantee = Guarantee(psi, kappa, adjacency, unit)
        terms = Budget(
            name=budget, guarantee=guarantee, actor=actor, purpose=purpose, partitions=partitions, renews=renews
        )
        return self._write(lambda chain: self._opened(chain, terms), create=True)

    def raise_to(self, budget: str, psi: float, kappa: float = 0.0, *, actor: str, purpose: str) -> Entry:
        """The entry that raises a budget's cap; everybody will see it."""
        cap = Guarantee(psi, kappa)
        return self._change(budget, "raised", {"psi": cap.psi, "kappa": cap.kappa}, actor, purpose)

    def reset(self, budget: str, *, actor: str, purpose: str) -> Entry:
        """The entry that begins a budget anew; reports go on showing what was spent since it was opened."""
        return self._change(budget, "reset", {}, actor, purpose)

    def close(self, budget: str, *, actor: str, purpose: str) -> Entry:
        """The entry that closes a budget for good."""
        return self._change(budget, "closed", {}, actor, purpose)

    def split(self, budget: str, weights: Mapping[str, float], *, actor: str, purpose: str) -> list[Entry]:
        """Everything that is left, given to shares: new budgets with these names, in proportion to the weights.

        The last share takes the exact remainder, so that the shares' psi^2 sum to what was left, to the last bit.
        """
        return self._write(lambda chain: self._split(chain, budget, dict(weights), actor, purpose))

    def budgets(self) -> list[str]:
        """The names of all budgets, in the order they were opened."""
        return self._read(lambda chain: [entry.budget for entry in chain.changes() if entry.state == "opened"])

    def budget(self, name: str) -> Budget:
        """The terms under which a budget was opened."""
        return self._read(lambda chain: self._budget(chain, name))

    # Spending

    def spend(
        self,
        budget: str,
        guarantee: Guarantee | DPSGD | BandMF | FixedOrder | RandomAllocation,
        *,
        purpose: str,
        kappa: float = 0.0,
        failure: float = 0.0,
        event: Mapping[str, Any] | None = None,
        partition: str = "",
        retry_key: str = "",
        request: Any = None,
    ) -> Spend:
        """A block that is entered only once the spend is durable: `with ledger.spend(...) as entry:`.

        Args:
            budget: its name.
            guarantee: what the release costs; or a training run, which is charged whole.
            purpose: why, in words.
            kappa: for a run, the probability of outright failure to account it at.
            failure: for a run, the part of kappa that its implementation has of its own, such as PrivateStep.kappa.
            event: what is released, such as {"kind": "gaussian", "sensitivity": 1.0, "sigma": 2.0}; the guarantee has
                to be its price, and verify recomputes it. A curator's also says its "unit_column".
            partition: the part of the data that is read, in a budget opened in partitions.
            retry_key: idempotency key; see Spend.answer.
            request: what is asked, as JSON values; under one key only one request is answered.

        Refused, with the ledger as it was: what does not fit (BudgetExceededError), what speaks of another unit or
        adjacency, a closed or unknown budget, a key that was used for another request.
        """
        check_text("purpose", purpose)
        if retry_key:
            check_text("retry_key", retry_key)
        if isinstance(guarantee, DPSGD | BandMF | FixedOrder | RandomAllocation):
            guarantee, event = priced_run(guarantee, kappa, failure)
        elif kappa or failure:
            raise TypeError("kappa and failure must be given with a DP-SGD run; a guarantee has its own.")
        event = checked(event, guarantee)
        return Spend(
            store=self._begun(),
            clock=self._clock,
            budget=lambda chain: self._budget(chain, budget),
            known=lambda chain: self._known(chain, budget),
            guarantee=guarantee,
            purpose=purpose,
            event=event,
            partition=partition,
            retry_key=retry_key,
            request=request_digest(request, guarantee, event, partition) if retry_key else "",
        )

    def record_usage(self, spend: Entry, steps: int) -> Entry:
        """The entry that says how many steps of a DP-SGD run were taken, all of which `spend` paid for; no refund.

        Refused, with the ledger as it was: an entry that is not this ledger's spend on a run, more steps than it paid.
        """

        return self._write(lambda chain: noted(chain, spend, steps))

    def spent(self, entry: int) -> Entry:
        """The spend that has this number."""
        return self._read(lambda chain: chain.spend(entry))

    def answered(self, budget: str, retry_key: str) -> bool:
        """Whether an answer is stored under an idempotency key, so that asking again costs nothing."""
        return any(entry.state == "answered" for entry in self.under_key(budget, retry_key))

    def under_key(self, budget: str, retry_key: str) -> list[Entry]:
        """What was asked and answered under an idempotency key, in order."""
        return self._read(lambda chain: chain.under_key(budget, retry_key))

    def remaining(self, budget: str, partition: str = "") -> Guarantee:
        """The largest guarantee in psi, and in kappa, that still fits; rounded down, so that spending it does."""

        def left(chain: EntryLog) -> Guarantee:
            terms = self._budget(chain, budget)
            if partition:
                terms.check_spend(terms.guarantee, partition)
            standing = standing_of(chain, terms, partition)
            if standing.closed:
                return Guarantee(0.0, 0.0, terms.adjacency, terms.unit)
            return standing.left(bool(partition)).guarantee_below(terms.guarantee)

        return self._read(left)

    def check_unit(self, budget: str, column: str | None, same_unit: str = "") -> None:
        """Refuse a unit column that is not the budget's (None: every row is a unit), unless `same_unit` says why."""
        event = {"unit_column": column, "same_unit": same_unit}
        self._read(lambda chain: said(self._budget(chain, budget), self._known(chain, budget), event))

    def report(self, budget: str) -> Report:
        """How a budget stands, now and since it was opened, with every change it has seen."""

        def found(chain: EntryLog) -> Report:
            return report_of(chain, self._budget(chain, budget), self._units.saying(chain, budget))

        return self._read(found)

    def history(self, budget: str, points: int = 60) -> list[tuple[str, float]]:
        """Time and lifetime psi at so many entries, evenly spread from the first to the last."""
        return self._read(lambda chain: history_of(chain, self._budget(chain, budget), points))

    # The chain

    def now(self) -> datetime:
        """The time of the ledger's clock, never before the last entry's."""
        return self._read(lambda chain: chain.now(chain.last()))

    def entries(self, budget: str | None = None, *, after: int = 0) -> Iterator[Entry]:
        """All entries, or one budget's, in order, a few at a time."""
        while batch := self._read(lambda chain, last=after: chain.some(budget, last)):  # type: ignore[misc]
            yield from batch
            after = batch[-1].id

    def head(self) -> Head:
        """The last entry's number and hash, for somebody else to keep."""

        def found(chain: EntryLog) -> Head:
            last = chain.last()
            return Head(0, genesis(schema.identity_of(chain.connection))) if last is None else Head(last.id, last.hash)

        return self._read(found)

    def verify(self, head: Head | str | None = None) -> Head:
        """The head, once every hash, price and total was recomputed; TamperedLedgerError names the first bad entry.

        Args:
            head: one that was kept earlier: the ledger must still contain it.
        """
        kept = Head.parse(head) if isinstance(head, str) else head
        self._begun().check_file()
        walk = Verification(self._read(lambda chain: genesis(schema.identity_of(chain.connection))))
        return walk.over(self.entries(), kept)

    def export(self) -> Iterator[str]:
        """The ledger as lines of JSON, for `Ledger.restore` and for anybody who wants to verify it."""
        identity = self._read(lambda chain: schema.identity_of(chain.connection))
        yield from export.lines_of(identity, self.entries())

    @classmethod
    def restore(cls, url: str | Path, lines: Iterable[str], *, patience: float = PATIENCE) -> Self:
        """An exported ledger in a new database, verified on the way; refused where there is a ledger already."""
        ledger = cls(url, patience=patience)
        rest = iter(lines)
        identity = export.read_header(rest)

        def written(connection: Connection) -> None:
            if schema.version_of(connection, ledger._store.address.shown):
                raise NotALedgerError(
                    f"{ledger._store.address.shown} holds a ledger already; restore into a new place."
                )
            schema.create(connection, ledger._clock().astimezone(UTC).isoformat(), identity)
            export.restore_entries(connection, identity, rest)

        ledger._store.found(written)
        ledger._store.take_place()
        return ledger

    def moved(self, *, actor: str, purpose: str, head: Head | str | None = None) -> Head:
        """The head, once a SQLite ledger that was moved, copied or restored may be used where it lies now.

        Everything is verified first. Who says so is written into the file, outside of the chain.

        Args:
            actor: who says that this is now the only one.
            purpose: why it moved, in words.
            head: one that was kept earlier: the ledger must still contain it. Without one, a restored old copy has
                forgotten what was spent since, and nobody can tell.

        Refused, with the file as it was: while the old place, where it can be seen, still holds the ledger or its log.
        """
        check_text("actor", actor)
        check_text("purpose", purpose)
        place = self._store.place
        if place is None:
            raise ValueError("a ledger on a server has no file that could move.")
        if not self._store.exists():
            raise NotALedgerError(f"there is no ledger at {place.shown}.")
        place.check_left_behind()
        self._store.dispose()
        place.moving = True
        try:
            found = self.verify(head)
            self._store.take_place(actor, purpose)
        finally:
            place.moving = False
            self._store.dispose()
        return found

    # How it is done

    def _opened(self, chain: EntryLog, terms: Budget, **more: Any) -> Entry:
        period = period_of(terms.renews, chain.now(chain.last()))
        event = terms.event() | ({"period": period} if period else {}) | more
        return chain.append(terms, "opened", event, purpose=terms.purpose)

    def _split(self, chain: EntryLog, name: str, weights: dict[str, float], actor: str, purpose: str) -> list[Entry]:
        terms = self._budget(chain, name)
        if terms.renews:
            raise ValueError(f"budget {name!r} renews; a share of it would not. Split a budget that does not renew.")
        left = standing_of(chain, terms).left()
        parts = shares(left, weights)
        event = {"taken": left.text(), "shares": {share: part.text() for share, part in parts.items()}}
        made = [chain.append(name, "split", _signed("split", event, actor), purpose=check_text("purpose", purpose))]
        for share, part in parts.items():
            cap = part.guarantee_below(terms.guarantee)
            child = Budget(name=share, guarantee=cap, actor=actor, purpose=purpose, part_of=name)
            made.append(self._opened(chain, child, cap=part.text()))
        return made

    def _change(self, budget: str, state: str, event: dict[str, Any], actor: str, purpose: str) -> Entry:
        signed = _signed(state, event, actor)
        check_text("purpose", purpose)
        return self._write(lambda chain: chain.append(self._budget(chain, budget), state, signed, purpose=purpose))

    def _budget(self, chain: EntryLog, name: str) -> Budget:
        """The terms, which never change once a budget is open."""
        if name not in self._terms:
            self._terms[name] = chain.budget(name)
        return self._terms[name]

    def _known(self, chain: EntryLog, budget: str) -> Known | None:
        return self._units.known(chain, budget, lambda name: self._budget(chain, name))

    def _read(self, work: Callable[[EntryLog], Result]) -> Result:
        return self._begun().read(lambda connection: work(EntryLog(connection, self._clock)))

    def _write(self, work: Callable[[EntryLog], Result], create: bool = False) -> Result:
        return self._begun(create).write(lambda connection: work(EntryLog(connection, self._clock)))

    def _begun(self, create: bool = False) -> Store:
        """The store, once it is known to hold a ledger of this version: made, if asked, or brought forward."""
        store, shown = self._store, self._store.address.shown
        if self._ready:
            return store
        version = store.read(lambda c: schema.version_of(c, shown)) if create or store.exists() else 0
        if version == 0 and not create:
            raise NotALedgerError(f"there is no ledger at {shown}. Opening a budget begins one.")
        if version < schema.VERSION:
            store.found(self._brought_forward)
        self._ready = True
        return store

    def _brought_forward(self, connection: Connection) -> None:
        """In one transaction: the schema made or migrated, unless somebody else was faster."""
        version = schema.version_of(connection, self._store.address.shown)
        applied = self._clock().astimezone(UTC).isoformat()
        if version == 0:
            schema.create(connection, applied)
        elif version < schema.VERSION:
            schema.migrate(connection, version, applied)


def _signed(kind: str, event: dict[str, Any], actor: str) -> dict[str, Any]:
    return {"kind": kind, "by": check_text("actor", actor)} | event


def _system_clock() -> datetime:
    return datetime.now(UTC)
