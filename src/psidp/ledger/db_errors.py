"""Failure: why a database refused, in the same few words for SQLite and PostgreSQL."""

from enum import Enum

from sqlalchemy.exc import DBAPIError

__all__ = ["Failure", "failure_of"]


class Failure(Enum):
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
    5: Failure.BUSY,
    6: Failure.BUSY,
    8: Failure.READ_ONLY,
    10: Failure.DISK,
    11: Failure.DAMAGED,
    13: Failure.FULL,
    14: Failure.NO_ACCESS,
    26: Failure.NOT_A_DATABASE,
}
_SQLITE_IO = {522: Failure.DAMAGED, 266: Failure.DAMAGED}
_POSTGRESQL = {  # SQLSTATE, whole or by class
    "55P03": Failure.BUSY,
    "40001": Failure.BUSY,
    "40P01": Failure.BUSY,
    "23505": Failure.BUSY,  # another writer took this id
    "53300": Failure.BUSY,
    "57P03": Failure.BUSY,  # the server is starting up
    "53100": Failure.FULL,
    "58": Failure.DISK,
    "25006": Failure.READ_ONLY,
    "42501": Failure.NO_ACCESS,
    "28": Failure.NO_ACCESS,
    "3D": Failure.NO_ACCESS,
    "57": Failure.LOST,
    "08": Failure.LOST,
    "XX": Failure.DAMAGED,
}


def failure_of(error: Exception) -> Failure:
    """Why the driver raised this error."""
    orig = error.orig if isinstance(error, DBAPIError) else None
    code = getattr(orig, "sqlite_errorcode", None)
    if code is not None:
        return _SQLITE_IO.get(code) or _SQLITE.get(code & 0xFF, Failure.OTHER)
    state = getattr(orig, "sqlstate", None)
    if state:
        return _POSTGRESQL.get(state) or _POSTGRESQL.get(state[:2], Failure.OTHER)
    if type(orig).__module__.startswith("psycopg") or getattr(error, "connection_invalidated", False):
        return Failure.LOST
    return Failure.OTHER
