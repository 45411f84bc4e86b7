"""Copies: a ledger's file somewhere else than it says that it lies. It is read as it stands, and takes no entry.

SQLite would look for a log beside it by its name, and mix in whatever lies there. So a copy is opened as a file that
never changes (`immutable`): no log is read, none is made, nothing is written, and the file needs no lock.
"""

import sqlite3
from pathlib import Path

from psidp.ledger.access import Access
from psidp.ledger.file_identity import FileIdentity, frozen
from psidp.ledger.reading import PATIENCE, LedgerReading
from psidp.ledger.store import Store
from psidp.ledger.url import LedgerUrl

__all__ = ["LedgerCopy", "copy_at"]


class LedgerCopy(LedgerReading):
    """What can be asked of a copy; there is nothing here that writes.

    Attributes:
        original: where the ledger says that it lies.
    """

    def __init__(self, address: LedgerUrl, path: Path, original: str) -> None:
        self.original = original
        self._store = Store(address, PATIENCE, lambda: sqlite3.connect(frozen(path), uri=True, check_same_thread=False))
        self._access = Access(self._store, None, "")

    def __repr__(self) -> str:
        return f"LedgerCopy({self._access.shown!r}, of {self.original!r})"


def copy_at(url: str | Path) -> LedgerCopy | None:
    """The copy that lies there, if it is one; refused where a log lies beside it. None for a ledger at its place."""
    address = LedgerUrl.parse(url)
    if address.path is None:
        return None
    original = FileIdentity(address.path, address.shown).copied_from()
    return None if original is None else LedgerCopy(address, address.path, original)
