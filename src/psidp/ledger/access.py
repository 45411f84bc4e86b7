"""Access: the database of a ledger, and what one process knows about it; transactions that read or append entries."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeVar

from sqlalchemy import Connection

from psidp.errors import LedgerUnavailableError, NotALedgerError
from psidp.ledger import schema
from psidp.ledger.actor import system_user
from psidp.ledger.budget import Budget
from psidp.ledger.entry import Entry
from psidp.ledger.known_head import KnownHead
from psidp.ledger.log import Clock, EntryLog
from psidp.ledger.names import check_name
from psidp.ledger.store import Store
from psidp.ledger.unit_column import Known, Units

__all__ = ["Access"]

Result = TypeVar("Result")


class Access:
    """The store, the clock, who asks, and what never changes once it was read: terms and unit columns of budgets."""

    def __init__(self, store: Store, clock: Clock | None, actor: str) -> None:
        self.store = store
        self.clock: Clock = clock or _system_clock
        self.units = Units()
        self._said = check_name("actor", actor) if actor else ""
        self._user, self._login = system_user(), ""
        self._terms: dict[str, Budget] = {}
        self._known = KnownHead()
        self._version, self._guarded = 0, True

    @property
    def shown(self) -> str:
        """The ledger's address, without secrets."""
        return self.store.address.shown

    @property
    def actor(self) -> str:
        """Who asks: as the ledger was told; on a server with roles the login; else the operating system's user."""
        if self._said:
            return self._said
        if self.store.is_server and not self._version:
            with suppress(NotALedgerError):  # the first budget makes it
                self.begun()
        return self._login or self._user

    def budget(self, log: EntryLog, name: str) -> Budget:
        """The terms, which never change once a budget is open."""
        if name not in self._terms:
            self._terms[name] = log.budget(name)
        return self._terms[name]

    def unit_column(self, log: EntryLog, budget: str) -> Known | None:
        """The column that names a budget's units, once a release has said it."""
        return self.units.known(log, budget, lambda name: self.budget(log, name))

    def read(self, work: Callable[[EntryLog], Result]) -> Result:
        """What `work` finds in one snapshot."""
        return self.begun().read(lambda connection: work(EntryLog(connection, self.clock, version=self._version)))

    def write(self, work: Callable[[EntryLog], Result], create: bool = False) -> Result:
        """What `work` answers, once everything it wrote is durable."""
        written: list[Entry] = []

        def transaction(connection: Connection) -> Result:
            log = EntryLog(connection, self.clock, self._known)
            result = work(log)
            written[:] = [log.written] if log.written else []
            return result

        result = self.begun(writes=True, create=create).write(transaction)
        for entry in written:
            self._known.commit(entry)
        return result

    def begun(self, writes: bool = False, create: bool = False) -> Store:
        """The store, once it is known to hold a ledger: made, if asked, and brought forward before it is written to."""
        store = self.store
        if not (self._version == schema.VERSION or (self._version and not writes)):
            self._look(writes, create)
        if writes and not self._guarded:
            self._version = 0  # the owner may have brought them forward when this process asks again
            raise LedgerUnavailableError(
                f"The guards of the roles on {self.shown} are not those of this psidp; nothing was spent and nothing "
                "released. The owner of its tables brings them forward: psidp ledger roles | psql DATABASE."
            )
        return store

    def _look(self, writes: bool, create: bool) -> None:
        """Find out what the database holds; make or bring forward what is to be written to."""
        store = self.store
        version = store.read(self._looked_at) if create or store.exists() else 0
        if version == 0 and not create:
            raise NotALedgerError(
                f"there is no ledger at {self.shown}. Opening a budget begins one: psidp ledger open {self.shown} NAME "
                "--psi 1 --unit patient --purpose WHY. If one was there and is lost, bring it back from its last "
                "export: psidp ledger import."
            )
        if writes and version < schema.VERSION:
            self._bring_forward(version)
            version = store.read(self._looked_at)
        self._version = version

    def _looked_at(self, connection: Connection) -> int:
        """The ledger's version; remembers the login where a server's ledger has roles, and whether its guards hold."""
        version = schema.version_of(connection, self.shown)
        if version:
            schema.check_objects(connection, version, self.shown)
        self._login = schema.login(connection) if version and self.store.is_server else ""
        self._guarded = not self._login or version < schema.VERSION or schema.guards_are_current(connection)
        return version

    def _bring_forward(self, version: int) -> None:
        try:
            self.store.found(self._brought_forward)
        except LedgerUnavailableError as refusal:
            if not version:
                raise
            raise LedgerUnavailableError(
                f"{refusal} The ledger has version {version}, and this psidp writes version {schema.VERSION}. Whoever "
                "owns the database brings it forward once, with any command that writes, such as psidp ledger open."
            ) from None

    def _brought_forward(self, connection: Connection) -> None:
        """In one transaction: the schema made or migrated, unless somebody else was faster."""
        version = schema.version_of(connection, self.shown)
        applied = self.clock().astimezone(UTC).isoformat()
        if version == 0:
            schema.create(connection, applied)
        elif version < schema.VERSION:
            schema.migrate(connection, version, applied)


def _system_clock() -> datetime:
    return datetime.now(UTC)
