"""Seal: a file that keeps what the closed periods of a stream had, where their rows may be overwritten. It is secret.

One SQLite file, which only its owner may read: totals of each closed period, and which units were counted in it. Each
period is written once, in one transaction, with a random mark that the ledger keeps beside what the period released.
"""

import json
import os
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from psidp.errors import NewerFormError
from psidp.forms import check_form

__all__ = ["Bar", "Seal", "Sealed"]

KIND = 0x70736964
"""SQLite's application_id of such a file: "psid"."""
VERSION = 1
"""SQLite's user_version of such a file; 0 in those of version 0.2, which are the same."""
SCHEMA = """
CREATE TABLE sealed (stream TEXT NOT NULL, period INTEGER NOT NULL, mark INTEGER NOT NULL, totals TEXT NOT NULL,
                     PRIMARY KEY (stream, period)) WITHOUT ROWID;
CREATE TABLE counted (stream TEXT NOT NULL, unit TEXT NOT NULL, period INTEGER NOT NULL,
                      PRIMARY KEY (stream, unit, period)) WITHOUT ROWID;
"""
BARRED = """
SELECT unit FROM counted WHERE stream = ? AND period < ? GROUP BY unit
HAVING count(*) >= ? OR max(period) > ? OR max(period) >= ?
"""
WAIT_S = 60.0
"""How long a writer waits for another."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """What one closed period had: its exact totals, in steps, and its mark."""

    totals: tuple[int, ...]
    mark: int


@dataclass(frozen=True, slots=True)
class Bar:
    """Which units do not count in a period, by where they counted before.

    Args:
        at_most: those that counted in so many periods. apart: those that counted less than so many periods ago.
        bucket: those that counted in this period or later: where the bucket of the period begins.
    """

    period: int
    at_most: int
    apart: int
    bucket: int


class Seal:
    """The sealed periods of streams in one file. It is made when the first period is sealed."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"Seal({str(self.path)!r})"

    def periods(self, stream: str) -> list[Sealed]:
        """What is sealed of a stream, from its first period on."""
        if not self.path.exists():
            return []
        with closing(self._opened()) as file:
            rows = file.execute(
                "SELECT period, totals, mark FROM sealed WHERE stream = ? ORDER BY period", [stream]
            ).fetchall()
        found = [Sealed(tuple(json.loads(totals)), mark) for _, totals, mark in rows]
        return found[: next((i for i, (period, *_) in enumerate(rows) if period != i + 1), len(found))]

    def barred(self, stream: str, bar: Bar) -> set[str]:
        """The units that must not count in a period."""
        if not self.path.exists():
            return set()
        limits = [stream, bar.period, bar.at_most, bar.period - bar.apart, bar.bucket]
        with closing(self._opened()) as file:
            return {unit for (unit,) in file.execute(BARRED, limits)}

    def keep(self, stream: str, period: int, totals: Sequence[int], units: Iterable[str]) -> Sealed:
        """What is sealed of a period: this, or what somebody sealed before; durable once it is given back."""
        with closing(self._opened()) as file, file:
            file.execute("BEGIN IMMEDIATE")
            before = file.execute(
                "SELECT totals, mark FROM sealed WHERE stream = ? AND period = ?", [stream, period]
            ).fetchone()
            if before is not None:
                return Sealed(tuple(json.loads(before[0])), before[1])
            made = Sealed(tuple(totals), secrets.randbits(62))
            row = [stream, period, made.mark, json.dumps(made.totals)]
            file.execute("INSERT INTO sealed (stream, period, mark, totals) VALUES (?, ?, ?, ?)", row)
            file.executemany(
                "INSERT INTO counted (stream, unit, period) VALUES (?, ?, ?)",
                ((stream, unit, period) for unit in units),
            )
        return made

    def _opened(self) -> sqlite3.Connection:
        """The file, made where there is none; nobody else may read it."""
        try:
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            file = sqlite3.connect(self.path, timeout=WAIT_S, isolation_level=None)
        except (OSError, sqlite3.Error):
            raise ValueError(
                f"seal (file that keeps the totals of closed periods) must be a file that can be written, "
                f"got seal={str(self.path)!r}."
            ) from None
        try:
            self._prepare(file)
        except NewerFormError:
            file.close()
            raise
        except (sqlite3.DatabaseError, ValueError):
            file.close()
            raise ValueError(
                f"seal (file that keeps the totals of closed periods) must be a new file or one that a stream made, "
                f"got seal={str(self.path)!r}."
            ) from None
        return file

    def _prepare(self, file: sqlite3.Connection) -> None:
        """Refuse another's file; make the tables of a new one."""
        file.execute("PRAGMA synchronous = FULL")
        if file.execute("PRAGMA application_id").fetchone() == (KIND,):
            (version,) = file.execute("PRAGMA user_version").fetchone()
            check_form(version or None, VERSION, f"the seal {self.path.name}")
            return
        with file:
            file.execute("BEGIN IMMEDIATE")
            (tables,) = file.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if file.execute("PRAGMA application_id").fetchone() == (KIND,):
                return
            if tables:
                raise ValueError
            for statement in SCHEMA.split(";")[:-1]:
                file.execute(statement)
            file.execute(f"PRAGMA application_id = {KIND}")
            file.execute(f"PRAGMA user_version = {VERSION}")
