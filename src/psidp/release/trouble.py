"""Trouble: what a database means by its error, the same few words for SQLite and PostgreSQL."""

from enum import Enum

from sqlalchemy.exc import DBAPIError

__all__ = ["Trouble", "trouble_of"]


class Trouble(Enum):
    """Why a database did not do what it was asked."""

    BUSY = "others hold it"
    NOT_A_DATABASE = "not a database"
    DAMAGED = "the file is damaged"
    FULL = "the disk is full"
    DISK = "the disk takes no more or fails"
    READ_ONLY = "it is read-only"
    NO_ACCESS = "no access"
    LOST = "the connection is lost"
    OTHER = "the database refused"


_SQLITE = {  # primary result codes, https://www.sqlite.org/rescode.html
    5: Trouble.BUSY,
    6: Trouble.BUSY,
    8: Trouble.READ_ONLY,
    10: Trouble.DISK,
    11: Trouble.DAMAGED,
    13: Trouble.FULL,
    14: Trouble.NO_ACCESS,
    26: Trouble.NOT_A_DATABASE,
}
_SQLITE_IO = {522: Trouble.DAMAGED, 266: Trouble.DAMAGED}
_POSTGRESQL = {  # SQLSTATE, whole or by class
    "55P03": Trouble.BUSY,
    "40001": Trouble.BUSY,
    "40P01": Trouble.BUSY,
    "23505": Trouble.BUSY,  # another writer took this id
    "53300": Trouble.BUSY,
    "57P03": Trouble.BUSY,  # the server is starting up
    "53100": Trouble.FULL,
    "58": Trouble.DISK,
    "25006": Trouble.READ_ONLY,
    "42501": Trouble.NO_ACCESS,
    "28": Trouble.NO_ACCESS,
    "3D": Trouble.NO_ACCESS,
    "57": Trouble.LOST,
    "08": Trouble.LOST,
    "XX": Trouble.DAMAGED,
}


def trouble_of(error: Exception) -> Trouble:
    """The trouble behind a driver's error."""
    orig = error.orig if isinstance(error, DBAPIError) else None
    code = getattr(orig, "sqlite_errorcode", None)
    if code is not None:
        return _SQLITE_IO.get(code) or _SQLITE.get(code & 0xFF, Trouble.OTHER)
    state = getattr(orig, "sqlstate", None)
    if state:
        return _POSTGRESQL.get(state) or _POSTGRESQL.get(state[:2], Trouble.OTHER)
    if type(orig).__module__.startswith("psycopg") or getattr(error, "connection_invalidated", False):
        return Trouble.LOST
    return Trouble.OTHER
