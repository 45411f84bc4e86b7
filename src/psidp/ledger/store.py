"""Store: the database of a ledger. Commits are durable, one process writes at a time, waits end, errors have names."""

import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from random import SystemRandom
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import NullPool

from psidp.errors import LedgerBusyError, LedgerError, LedgerUnavailableError, NotALedgerError, TamperedLedgerError
from psidp.ledger.db_errors import Failure, failure_of
from psidp.ledger.driver import runner
from psidp.ledger.file_identity import FileIdentity
from psidp.ledger.url import LedgerUrl

__all__ = ["Store"]

LOCK = 0x7073696470  # "psidp": the advisory lock that writers to a PostgreSQL ledger share
FIRST_PAUSE, LONGEST_PAUSE = 0.0005, 0.05

Result = TypeVar("Result")
_dice = SystemRandom()


class Store:
    """Connections to one database, reading and writing in transactions.

    A write is retried, with a growing and jittered pause, only while it is certain that nothing was committed, and
    for `patience` seconds at most.

    Args:
        connect: what opens a file that is only read, instead of SQLite's usual way.
    """

    def __init__(self, address: LedgerUrl, patience: float, connect: Callable[[], Any] | None = None) -> None:
        if not 0.0 <= patience <= 86_400.0:
            raise ValueError(f"patience (seconds to wait for others) must be in [0, 86400], got patience={patience}.")
        address.check_driver()
        self.address = address
        self.patience = patience
        self.place = FileIdentity(address.path, address.shown) if address.path and connect is None else None
        self._connect = connect
        self._placed = False
        self._engine: Engine | None = None
        self._idle: list[Connection] = []
        self._process = 0

    @property
    def is_server(self) -> bool:
        """Whether this is PostgreSQL."""
        return self.address.file is None

    @property
    def engine(self) -> Engine:
        """This process's engine: connections are never carried through a fork."""
        if self._engine is None or self._process != os.getpid():
            if self._engine is not None:
                _ABANDONED.append((self._engine, self._idle))
            self._engine, self._idle = self._made(), []
            self._process = os.getpid()
            weakref.finalize(self, _close, self._engine, self._idle, self._process)
        return self._engine

    def dispose(self) -> None:
        """Close the connections."""
        if self._engine is not None:
            _close(self._engine, self._idle, self._process)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection for one transaction.

        Those to a file are kept beside SQLAlchemy's pool, since its checkout takes longer than the statements of a
        spend; those to a server come from the pool, which looks whether they are alive.
        """
        engine, idle = self.engine, self._idle
        if self.is_server:
            with engine.connect() as connection:
                yield connection
            return
        try:
            connection = idle.pop()
        except IndexError:
            connection = engine.connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        idle.append(connection)

    def _made(self) -> Engine:
        if self._connect is not None:
            url = "sqlite+pysqlite://"
            return create_engine(
                url, creator=self._connect, poolclass=NullPool, isolation_level="AUTOCOMMIT", hide_parameters=True
            )
        wait = max(2, int(self.patience))
        server = {"connect_timeout": wait, "tcp_user_timeout": 1000 * wait, "keepalives_idle": wait}
        connect = server if self.is_server else {"timeout": 0.0}
        engine = create_engine(
            self.address.url,
            isolation_level="AUTOCOMMIT",  # BEGIN and COMMIT are ours, said aloud
            hide_parameters=True,
            max_overflow=-1,
            pool_pre_ping=self.is_server,
            connect_args={name: value for name, value in connect.items() if name not in self.address.url.query},
        )
        if self.place is not None:
            event.listen(engine, "do_connect", partial(_connected, self.place))
        event.listen(engine, "connect", _durable_server if self.is_server else _durable_file)
        return engine

    def exists(self) -> bool:
        """Whether there is anything at a file's address; a server is always there, or says that it is not."""
        path = self.address.path
        return path is None or (path.exists() and path.stat().st_size > 0)

    def check_file(self) -> None:
        """Refuse a SQLite file whose pages or indexes are damaged; a server looks after its own."""
        if not self.is_server:
            found = self.read(lambda connection: connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar())
            if found != "ok":
                said = " ".join(str(found).split())
                raise TamperedLedgerError(f"the file {self.address.shown} is damaged: {said}.")

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` finds in one snapshot."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if self.is_server else "BEGIN"
        return self._patiently(lambda: self._transact(work, [begin], writes=False))

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` answers, once all that it wrote is durable. If it raises, nothing was written, or the error says
        that nobody knows."""
        if self.place is not None and not self._placed:
            self.take_place()
        return self.found(work)

    def take_place(self, by: str = "", purpose: str = "") -> None:
        """Write into the file itself, not only into its log, where the ledger lies; a server needs no such mark."""
        place, end, pause = self.place, time.monotonic() + self.patience, FIRST_PAUSE
        if place is None:
            return
        since = datetime.now(UTC).isoformat()
        while not (self._placed or place.is_recorded()):
            self.found(lambda connection: place.record(connection, since, by, purpose))
            self._patiently(self._checkpoint)
            if not (place.is_recorded() or time.monotonic() < end):
                raise self._busy()
            time.sleep(pause)
            pause = min(2.0 * pause, LONGEST_PAUSE)
        self._placed = True

    def _checkpoint(self) -> None:
        """What the log holds, written to the file proper as far as readers allow."""
        with self.connection() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")

    def found(self, work: Callable[[Connection], Result]) -> Result:
        """`write`, where there is no ledger yet that could say its place."""
        begin = ["BEGIN IMMEDIATE"]
        if self.is_server:
            begin = [
                "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
                f"SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = {max(1, int(self.patience * 1000))}",
                f"SELECT pg_advisory_xact_lock({LOCK})",
            ]
        return self._patiently(lambda: self._transact(work, begin, writes=True))

    def _transact(self, work: Callable[[Connection], Result], begin: list[str], writes: bool) -> Result:
        with self.connection() as connection:
            committing = False
            try:
                run = runner(connection)
                for statement in begin:
                    run(statement)
                self._check_place(connection, writes)
                result = work(connection)
                committing = True
                run("COMMIT")
                if writes:
                    self._check_place(connection, writes, committed=True)
            except BaseException as error:
                _undo(connection)
                if isinstance(error, DBAPIError) and committing:
                    raise self._named(failure_of(error), error, committing) from None
                raise
            return result

    def _check_place(self, connection: Connection, writes: bool, committed: bool = False) -> None:
        if self.place is not None:
            self.place.check(committed)
            if writes:
                self.place.check_log(connection.info, committed)

    def _patiently(self, attempt: Callable[[], Result]) -> Result:
        """`attempt`, again and again while others hold the ledger, until patience ends."""
        end = time.monotonic() + self.patience
        pause = FIRST_PAUSE
        while True:
            try:
                return attempt()
            except UnicodeDecodeError:
                shown = self.address.shown
                raise TamperedLedgerError(f"the ledger {shown} is damaged: it holds broken text.") from None
            except (DBAPIError, PoolTimeoutError) as error:
                trouble = failure_of(error)
                if trouble is not Failure.BUSY:
                    raise self._named(trouble, error) from None
                if not time.monotonic() + pause < end:
                    raise self._busy() from None
            time.sleep(pause * (0.5 + _dice.random()))
            pause = min(2.0 * pause, LONGEST_PAUSE)

    def _busy(self) -> LedgerBusyError:
        return LedgerBusyError(
            f"Others have held the ledger {self.address.shown} for {self.patience:g} s; nothing was spent "
            "and nothing released. Try again, or wait longer with patience=."
        )

    def _named(self, trouble: Failure, error: Exception, committing: bool = False) -> LedgerError:
        """The error that a program may catch, without secrets."""
        said = str(getattr(error, "orig", error)).strip().splitlines() or [type(error).__name__]
        because = self.address.without_secrets(said[0])
        if trouble is Failure.NOT_A_DATABASE:
            return NotALedgerError(f"{self.address.shown} is not a ledger: {because}.")
        if trouble is Failure.DAMAGED:
            return TamperedLedgerError(f"the ledger {self.address.shown} is damaged: {because}.")
        fate = "it is not known whether the entry was written" if committing else "nothing was written"
        return LedgerUnavailableError(
            f"The ledger {self.address.shown} cannot be used ({trouble.value}: {because}); {fate}, and nothing was "
            "released."
        )


_ABANDONED: list[tuple[Engine, list[Connection]]] = []
"""Engines and connections of a parent process: a child must not even close them."""


def _undo(connection: Connection) -> None:
    """Roll back, or drop a connection that cannot."""
    try:
        connection.exec_driver_sql("ROLLBACK")
    except SQLAlchemyError:
        connection.invalidate()


def _close(engine: Engine, idle: list[Connection], process: int) -> None:
    if process == os.getpid():
        while idle:
            idle.pop().close()
        engine.dispose()


def _connected(place: FileIdentity, dialect: Any, _: Any, arguments: Any, options: Any) -> Any:
    """A connection to a file that lies where it should."""
    return place.open(lambda: dialect.connect(*arguments, **options))


def _durable_file(connection: Any, _: Any) -> None:
    """A SQLite connection that has synced to the disk when COMMIT returns."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA busy_timeout = 5000")
    mode = cursor.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA fullfsync = ON")  # macOS: through the drive's cache
    cursor.execute("PRAGMA trusted_schema = OFF")
    cursor.execute("PRAGMA busy_timeout = 0")
    cursor.close()
    if mode == "memory":
        raise LedgerUnavailableError("a ledger must outlive the process: this database is in memory.")


def _durable_server(connection: Any, _: Any) -> None:
    """A PostgreSQL connection to a server that syncs, in UTF-8."""
    for setting, needed, reason in (
        ("fsync", "on", "a crash would forget spends"),
        ("server_encoding", "UTF8", "names could not be stored as they are"),
    ):
        found = connection.execute(f"SHOW {setting}").fetchone()[0]
        if found != needed:
            raise LedgerUnavailableError(f"the server must run with {setting} = {needed}, got {found}: {reason}.")
