"""FileIdentity: where a SQLite ledger lies. One file, one name, and a mark inside the file that says which.

SQLite finds a file's log by the file's name. Under a second name the same file has a second log, so that what is spent
under one name is unknown under the other, and forgotten in the end. A file that moved without its log forgets, too.
"""

import os
import re
import sqlite3
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote_from_bytes

from sqlalchemy import Connection

from psidp.errors import LedgerUnavailableError
from psidp.ledger.inode import inode
from psidp.ledger.private_file import made_private

__all__ = ["FileIdentity", "Mark", "frozen"]

MOUNTS = Path("/proc/self/mountinfo")
NOTHING = "Nothing was spent and nothing released."

_TABLE = """CREATE TABLE IF NOT EXISTS psidp_place (
    id      INTEGER PRIMARY KEY,  -- the last one counts
    folder  TEXT NOT NULL,        -- inode of the folder
    name    TEXT NOT NULL,        -- name in that folder
    file    TEXT NOT NULL,        -- inode of the file
    path    TEXT NOT NULL,        -- for people; a folder may be mounted in several places
    since   TEXT NOT NULL,
    by      TEXT NOT NULL,        -- who said that the ledger moved here, or ''
    purpose TEXT NOT NULL
)"""
_LAST = "SELECT folder, name, file, path FROM psidp_place ORDER BY id DESC LIMIT 1"
_INSERT = "INSERT INTO psidp_place (folder, name, file, path, since, by, purpose) VALUES (?, ?, ?, ?, ?, ?, ?)"


class Mark(NamedTuple):
    """The folder, the name in it and the file itself, by their inodes; the path is for people."""

    folder: str
    name: str
    file: str
    path: str

    @classmethod
    def at(cls, path: Path) -> Self:
        """The mark of the file that lies there now."""
        return cls(str(path.parent.stat().st_ino), _text(path.name), str(path.lstat().st_ino), _text(str(path)))

    def is_at(self, other: "Mark") -> bool:
        """Whether both speak of the same file under the same name in the same folder."""
        return self[:3] == other[:3]


class FileIdentity:
    """The place of one SQLite file.

    Guarantees:
        A file with one link, which is no mount of its own, has one folder and one name; so everybody who opens it finds
        the same log beside it, by whatever path they come to the folder. The mark is in the file proper before
        anything is spent. So whoever opens a moved file, a copy or a restored one learns it there, log or no log.

    Args:
        path: absolute, without symbolic links. shown: as the user knows it.

    Attributes:
        moving: whether the mark may speak of another place just now.
    """

    def __init__(self, path: Path, shown: str) -> None:
        self.path, self.shown, self.moving = path, shown, False
        self.log = Path(f"{path}-wal")
        self._name, self._log_name = str(path), os.fsencode(self.log)  # looked at twice for each spend
        self._opened: tuple[int, int] | None = None

    def open(self, connect: Callable[[], Any]) -> Any:
        """A connection that `connect` makes to the file that lies here: looked at before, the same one after."""
        before = self._looked_at()
        if before is not None and self._opened not in (None, before):
            raise self._gone()
        if before is None:
            made_private(self.path)  # SQLite gives the log and its index the mode of the file
        connection = connect()
        try:
            after = self._alone()
            if before not in (None, after) or self._opened not in (None, after):
                raise self._gone()
        except BaseException:
            connection.close()
            raise
        self._opened = after
        return connection

    def check(self, committed: bool = False) -> None:
        """Refuse once the name leads elsewhere, to nothing, or to a file with other names."""
        if self._alone(committed) != self._opened:
            raise self._gone(committed)

    def check_log(self, seen: dict[Any, Any], committed: bool = False) -> None:
        """Refuse once the log is not the one that a connection found, which `seen` remembers, when it first wrote."""
        try:
            log = inode(self._log_name)
        except OSError:
            raise self._gone(committed) from None
        if seen.setdefault("log", log) != log:
            raise self._gone(committed)

    def recorded(self) -> Mark | None:
        """The mark in the file proper, its log left aside; None where there is none, or where it cannot be read."""
        try:
            connection = sqlite3.connect(frozen(self.path), uri=True)
        except sqlite3.Error:
            return None
        try:
            row = connection.execute(_LAST).fetchone()
            return None if row is None else Mark(*row)
        except sqlite3.Error:
            return None
        finally:
            connection.close()

    def copied_from(self) -> str | None:
        """Where the ledger says that it lies, if that is not here; refused where a log lies here, whosever it is, and
        where this may be the very file that others write to, under another name."""
        last = self.recorded() if self.path.exists() else None
        if last is None or last.is_at(Mark.at(self.path)):
            return None
        self._alone()
        self._check_mount()
        if _holds_something(self.log):
            raise LedgerUnavailableError(
                f"The ledger {self.shown} was used as {last.path} before, and {self.log} may hold its last entries or "
                f"another ledger's. Take {self.log} away to read the copy without them; or, if both came here together "
                f'and are now the only ones: psidp ledger moved {self.shown} --purpose "why".'
            )
        return last.path

    def is_recorded(self) -> bool:
        """Whether the file proper says that it lies here."""
        found = self.recorded()
        return found is not None and found.is_at(Mark.at(self.path))

    def record(self, connection: Connection, since: str, by: str = "", purpose: str = "") -> None:
        """The mark written, where there is none; or anew, where the ledger was moved."""
        here = Mark.at(self.path)
        connection.exec_driver_sql(_TABLE)
        row = connection.exec_driver_sql(_LAST).first()
        last = None if row is None else Mark(*row)
        if last is not None and not last.is_at(here) and not self.moving:
            raise self._elsewhere(last)
        if last is None or not last.is_at(here):
            connection.exec_driver_sql(_INSERT, (*here, since, by, purpose))

    def check_left_behind(self) -> None:
        """Before a move is accepted: refuse while the old place still holds the ledger or its log, as far as we see."""
        last, still_there = self.recorded(), False
        if last is None or last.is_at(Mark.at(self.path)) or not _is_folder(last):
            return
        log, again = Path(f"{last.path}-wal"), f"psidp ledger moved {self.shown}"
        with suppress(OSError):
            still_there = Mark.at(Path(last.path)).is_at(last)
        if still_there:
            raise LedgerUnavailableError(
                f"The ledger {self.shown} is a copy of {last.path}, which is still there: two of them would spend the "
                f"budget twice. Use that one, or take it away and then say: {again}."
            )
        if not _holds_something(log):
            return
        if last.path == _text(str(self.path)):
            raise LedgerUnavailableError(
                f"The ledger {self.shown} is another file than the one that was here, and {log} may be that one's. "
                f"Stop everything that uses it. Then remove {log}; or, if it was restored together with {self.shown}, "
                f"put both into a new folder. Then say there: {again}."
            )
        raise LedgerUnavailableError(
            f"The last entries of the ledger {self.shown} may still be in {log}. Stop everything that uses it, "
            f"rename {log} to {self.shown}-wal, and then say: {again}."
        )

    def _looked_at(self) -> tuple[int, int] | None:
        """What lies here before SQLite touches it; None where there is nothing yet."""
        if not _holds_something(self.path) and _holds_something(self.log):
            raise LedgerUnavailableError(
                f"There is no ledger at {self.shown}, but {self.log} holds the last entries of one that was here. "
                f"{NOTHING} Put the ledger back, or take {self.log} along to where it is."
            )
        if not self.path.exists():
            return None
        found = self._alone()
        self._check_mount()
        last = None if self.moving else self.recorded()
        if last is not None and not last.is_at(Mark.at(self.path)):
            raise self._elsewhere(last)
        return found

    def _check_mount(self) -> None:
        """Refuse a file that is a mount of its own."""
        if _is_mounted(self.path):
            raise LedgerUnavailableError(
                f"The ledger {self.shown} must be a file in its folder, got a file that is mounted by itself. Its log "
                f"would be another one here than elsewhere. {NOTHING} Mount the folder instead."
            )

    def _alone(self, committed: bool = False) -> tuple[int, int]:
        """Device and inode of a file that has this name only."""
        try:
            found = os.lstat(self._name)
        except OSError:
            raise self._gone(committed) from None
        if found.st_nlink > 1:
            raise LedgerUnavailableError(
                f"The ledger {self.shown} must have one name, got {found.st_nlink} hard links: what is spent under one "
                f"name is not seen under the other. {_fate(committed)} Remove the other names."
            )
        return found.st_dev, found.st_ino

    def _gone(self, committed: bool = False) -> LedgerUnavailableError:
        return LedgerUnavailableError(
            f"The ledger {self.shown}, or its log {self.shown}-wal, was deleted, moved or replaced while it was in "
            f"use. {_fate(committed)} Put it back, or begin again with the ledger at its new place."
        )

    def _elsewhere(self, last: Mark) -> LedgerUnavailableError:
        return LedgerUnavailableError(
            f"The ledger {self.shown} was used as {last.path} before: it was moved, copied or restored. {NOTHING} Use "
            f'it there. If this is now the only one, say so: psidp ledger moved {self.shown} --purpose "why".'
        )


def frozen(path: Path) -> str:
    """The address by which SQLite reads a file as it stands: no log, no lock, nothing written."""
    return f"file:{quote_from_bytes(os.fsencode(path))}?mode=ro&immutable=1"


def _fate(committed: bool) -> str:
    return "An entry may be in a file that is lost, and nothing was released." if committed else NOTHING


def _text(name: str) -> str:
    """A file's name as text that a database can hold, whatever bytes it is made of."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _is_folder(mark: Mark) -> bool:
    """Whether a mark's folder can be seen from here, as the same one."""
    try:
        return str(Path(mark.path).parent.stat().st_ino) == mark.folder
    except OSError:
        return False


def _holds_something(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def _is_mounted(path: Path) -> bool:
    """Whether a file is a mount by itself, as a container's `-v ledger.db:/data/ledger.db`; only Linux has such."""
    if sys.platform != "linux":
        return False
    try:
        lines = MOUNTS.read_bytes().splitlines()
    except OSError:
        raise LedgerUnavailableError(
            f"{MOUNTS} must be readable, which says whether a file is mounted by itself. {NOTHING} Mount /proc."
        ) from None
    points = (re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), line.split(b" ")[4]) for line in lines)
    return os.fsencode(path) in points
