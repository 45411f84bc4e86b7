"""LedgerUrl: where a ledger lives. A bare path is a SQLite file, postgresql:// a server; passwords are never shown."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from psidp.errors import MissingExtraError

__all__ = ["LedgerUrl"]

SERVERS = ("postgresql", "postgres", "postgresql+psycopg")


@dataclass(frozen=True, slots=True, repr=False)
class LedgerUrl:
    """A parsed address.

    Examples:
        >>> LedgerUrl.parse("ledger.db").shown
        'ledger.db'
        >>> LedgerUrl.parse("postgresql://ann:secret@db.example/privacy?sslpassword=secret").shown
        'postgresql://ann:***@db.example/privacy'
    """

    url: URL  # of a file: absolute, links resolved
    file: Path | None  # as it was given

    @classmethod
    def parse(cls, text: str | Path) -> Self:
        """The address in words, or a refusal that does not repeat what may be a secret."""
        if isinstance(text, Path) or "://" not in str(text):
            return cls._of_file(str(text))
        try:
            url = make_url(str(text))
        except (ArgumentError, ValueError):
            raise ValueError(f"a ledger's address must read {_ALLOWED}; this one cannot be parsed.") from None
        if url.drivername in SERVERS:
            return cls(url.set(drivername="postgresql+psycopg"), None)
        if url.drivername in ("sqlite", "sqlite+pysqlite"):
            if url.query or url.host:
                raise ValueError("a SQLite ledger's address must read sqlite:///path, without host or ?options.")
            return cls._of_file(url.database or "")
        raise ValueError(f"a ledger's address must read {_ALLOWED}, got {url.drivername}://...")

    @classmethod
    def _of_file(cls, name: str) -> Self:
        if not name or name == ":memory:" or "\0" in name:
            raise ValueError("a ledger must outlive the process: give the path of a file.")
        return cls(URL.create("sqlite+pysqlite", database=os.path.realpath(name)), Path(name))

    @property
    def path(self) -> Path | None:
        """Where a file lies, however the working folder or a link changes later; None for a server."""
        return None if self.file is None else Path(str(self.url.database))

    @property
    def shown(self) -> str:
        """The address as it may be printed: no password, no options."""
        if self.file is not None:
            return str(self.file)
        plain = self.url.set(drivername="postgresql", query={})
        return plain.render_as_string(hide_password=True)

    def without_secrets(self, sentence: str) -> str:
        """`sentence` with this address's password blotted out."""
        options = [value for name, value in self.url.query.items() if "pass" in name]
        for secret in [self.url.password, *options]:
            sentence = sentence.replace(str(secret), "***") if secret else sentence
        return sentence

    def check_driver(self) -> None:
        """Refuse, with the line that installs it, where the server's driver is missing."""
        if self.file is None:
            try:
                import psycopg  # noqa: F401
            except ImportError:
                raise MissingExtraError("psycopg", "postgres") from None

    def __repr__(self) -> str:
        return f"LedgerUrl({self.shown!r})"


_ALLOWED = "path, sqlite:///path or postgresql://user@host/database"
