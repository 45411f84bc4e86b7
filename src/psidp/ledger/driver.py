"""Driver: the statements of a spend, given to SQLite directly: through SQLAlchemy they cost more than they do."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

__all__ = ["Run", "runner"]

Run = Callable[..., Any]
"""run(statement, values=()): the first value of the first row, or None; errors are those that SQLAlchemy raises."""


def runner(connection: Connection) -> Run:
    """What runs statements on a connection for the length of one transaction.

    On a server, or where somebody listens to the engine's statements, SQLAlchemy runs them.
    """
    if connection.dialect.name != "sqlite" or connection.engine.dispatch.before_cursor_execute:
        return lambda statement, values=(): _through(connection, statement, values)
    raw: Any = connection.connection.driver_connection
    return lambda statement, values=(): _directly(raw.execute, statement, values)


def _through(connection: Connection, statement: str, values: Sequence[Any]) -> Any:
    found = connection.exec_driver_sql(statement, tuple(values))
    return found.scalar() if found.returns_rows else None


def _directly(execute: Callable[[str, Sequence[Any]], Any], statement: str, values: Sequence[Any]) -> Any:
    try:
        row = execute(statement, values).fetchone()
    except sqlite3.Error as error:
        raise DBAPIError(statement, None, error, hide_parameters=True) from error
    return None if row is None else row[0]
