"""Relocation: a ledger restored from an export, or accepted at a new place."""

from collections.abc import Callable, Iterable
from datetime import UTC

from sqlalchemy import Connection

from psidp.errors import NotALedgerError
from psidp.ledger import export, schema
from psidp.ledger.access import Access
from psidp.ledger.log import EntryLog
from psidp.ledger.verify import Head

__all__ = ["moved", "restored"]


def restored(access: Access, lines: Iterable[str]) -> None:
    """Write an exported ledger to a new database, verified on the way; refused where there is a ledger already."""
    rest = iter(lines)
    identity = export.read_header(rest)

    def written(connection: Connection) -> None:
        if schema.version_of(connection, access.shown):
            raise NotALedgerError(f"{access.shown} holds a ledger already; restore into a new place.")
        schema.create(connection, access.clock().astimezone(UTC).isoformat(), identity)
        export.restore_entries(EntryLog(connection, access.clock), identity, rest)

    access.store.found(written)
    access.store.take_place()


def moved(access: Access, actor: str, purpose: str, verify: Callable[[], Head]) -> Head:
    """The head, once everything is verified and the file says that it lies here now."""
    store, place = access.store, access.store.place
    if place is None:
        raise ValueError("a ledger on a server has no file that could move.")
    if not store.exists():
        raise NotALedgerError(f"there is no ledger at {place.shown}.")
    place.check_left_behind()
    store.dispose()
    place.moving = True
    try:
        found = verify()
        store.take_place(actor, purpose)
    finally:
        place.moving = False
        store.dispose()
    return found
