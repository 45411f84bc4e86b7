"""Temporary tables: rows that several queries read, stored once in the engine and dropped whatever happens."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from psidp.curator.engine import Engine

__all__ = ["creation", "stored"]


def creation(engine: Engine, name: str, expression: Any) -> str:
    """The text that stores the rows of an expression; reads no row."""
    text = engine.sql(expression)
    return text if engine.name == "pyspark" else f'CREATE TEMPORARY TABLE "{name}" AS\n{text}'


@contextmanager
def stored(engine: Engine, name: str, expression: Any) -> Iterator[None]:
    """Within it the engine has a temporary table of this name; after it, none.

    A temporary table belongs to one connection, and a DuckDB file that is only read may have one. On Spark it is a
    view of a cached frame.
    """
    text = creation(engine, name, expression)
    frames: list[Any] = []
    try:
        engine.run(lambda: _create(engine, name, expression, text, frames))
        yield
    finally:
        with suppress(Exception):
            _drop(engine, name, frames)


def _create(engine: Engine, name: str, expression: Any, text: str, frames: list[Any]) -> None:
    backend = engine.backend
    backend._run_pre_execute_hooks(expression)  # frames and functions that the query needs
    if engine.name == "duckdb":
        backend.con.execute(text)
    elif engine.name == "pyspark":
        frames.append(backend.raw_sql(text).persist())
        frames[0].createTempView(name)
    else:
        backend.raw_sql(text).close()
        backend.raw_sql(f'ANALYZE pg_temp."{name}"').close()  # else joins are planned for a table of no size
        with suppress(Exception):
            backend.con.commit()


def _drop(engine: Engine, name: str, frames: list[Any]) -> None:
    backend = engine.backend
    if engine.name == "duckdb":
        backend.con.execute(f'DROP TABLE IF EXISTS temp."{name}"')
    elif engine.name == "pyspark":
        backend._session.catalog.dropTempView(name)
        for frame in frames:
            frame.unpersist()
    else:
        with suppress(Exception):
            backend.con.rollback()
        backend.raw_sql(f'DROP TABLE IF EXISTS pg_temp."{name}"').close()
        with suppress(Exception):
            backend.con.commit()
