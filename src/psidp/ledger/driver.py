"""Driver: the statements of a spend, given to SQLite directly: through SQLAlchemy they cost more than they do."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

__all__ = ["execute"]


def execute(connection: Connection, statement: str, values: Sequence[Any] = ()) -> Any:
    """The first value of the first row, or None; errors are those that SQLAlchemy raises.

    On a server, or where somebody listens to the engine's statements, SQLAlchemy runs it.
    """
    if connection.dialect.name != "sqlite" or connection.engine.dispatch.before_cursor_execute:
        found = connection.exec_driver_sql(statement, tuple(values))
        return found.scalar() if found.returns_rows else None
    raw: Any = connection.connection.driver_connection
    try:
        row = raw.execute(statement, values).fetchone()
    except sqlite3.Error as error:
        raise DBAPIError(statement, None, error, hide_parameters=True) from error
    return None if row is None else row[0]
