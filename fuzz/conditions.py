"""A condition that is accepted fails on no row, whatever types its columns have, and means what Python says of it."""

import atexit
import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import duckdb

from psidp.tables.conditions import Condition, compare, functions, reader, tree
from psidp.tables.engines.engine import Dialect
from psidp.tables.sources import Source, open_source

__all__ = ["RELAPSES", "explore"]

sys.path.append(str(Path(__file__).parents[1] / "tests"))
conditions: Any = import_module("reference.conditions_at_random")
tables: Any = import_module("reference.typed_columns")
servers: Any = import_module("postgres")
sparks: Any = import_module("sparks")

DRAWS = {"DuckDB": 1000, "PostgreSQL": 1000, "Spark": 300}
"""Conditions that are drawn in a round."""

SPARK_IN = 8
ROWS, MEANT = 100, 200
"""Rows and conditions whose meaning is compared with Python's."""


def explore(random: Random) -> None:
    """Run random conditions on each engine's table of all types, with and without rows; compare others with Python."""
    _compare(random)
    for engine, types, (bare, full) in (("DuckDB", tables.DUCKDB, _on_duckdb()), *_servers(), *_spark(random)):
        accepted = {}
        for _ in range(DRAWS[engine]):
            text = conditions.written(random, list(full.schema))
            sql = _sql(full, text)
            if sql:
                accepted[text] = sql
        for text, failure in conditions.failing(bare, full, accepted).items():
            _on_duckdb.cache_clear()  # a failure may have been its last
            kinds = [f"{c}: {list(types)[int(c[1:])]}" for c in sorted(set(re.findall(r"\bc[0-9]+\b", text)))]
            raise AssertionError(f"{engine}: {text} ({', '.join(kinds)}) is accepted and fails on table {failure}")


def _sql(source: Source, text: str) -> str:
    """The condition in SQL, "" where it is refused."""
    try:
        return Condition.parse(text, source.schema).sql(source.dialect)
    except (ValueError, TypeError) as refusal:
        if not str(refusal).startswith("where must "):
            raise
        return ""


def _compare(random: Random) -> None:
    """Conditions on odd rows, beside what they mean in Python."""
    rows, asked = conditions.odd_rows(random, ROWS), [conditions.meant(random) for _ in range(MEANT)]
    connection = duckdb.connect()
    connection.execute(f"create table odd ({conditions.ODD_COLUMNS})")
    marks = ", ".join("?" * len(rows[0]))
    connection.executemany(f"insert into odd values ({marks})", [tuple(row.values()) for row in rows])
    source = open_source(connection, name="odd")
    columns = ", ".join(Condition.parse(text, source.schema).sql(source.dialect) for text, _ in asked)
    for row, found in zip(rows, source.engine.rows(f"SELECT {columns} FROM {source.text} AS source"), strict=True):
        for (text, meaning), value in zip(asked, found, strict=True):
            assert value is meaning(row), f"{text} is {value} of {row}"


@cache
def _on_duckdb() -> tuple[Source, Source]:
    """DuckDB's tables, bare and full."""
    bare, full = tables.sources(tables.on_duckdb())
    return bare, full


@cache
def _servers() -> list[tuple[str, dict[str, list[str]], Any]]:
    """PostgreSQL's types and tables, where a server can be started; it is stopped with this process."""
    return [] if servers.why_no_server() else [_on_postgres()]


def _spark(random: Random) -> list[tuple[str, dict[str, list[str]], Any]]:
    """The same of Spark, in one round of eight: a plan there takes as long as a hundred elsewhere."""
    return [_on_spark()] if random.randrange(SPARK_IN) == 0 and not sparks.why_no_spark() else []


@cache
def _on_spark() -> tuple[str, dict[str, list[str]], Any]:
    return "Spark", tables.SPARK, tables.sources(tables.on_spark(sparks.session()))


def _on_postgres() -> tuple[str, dict[str, list[str]], Any]:
    import psycopg

    server = servers.Server()
    server.__enter__()
    atexit.register(server.__exit__)
    connection = psycopg.connect(server.place("conditions"), autocommit=True)
    atexit.register(connection.close)
    return "PostgreSQL", tables.POSTGRES, tables.sources(tables.on_postgres(connection))


def _as_the_engine_reads_it(value: Any, operator: str, written: Any) -> Any:
    """A constant that the engine casts as it likes."""
    return tree.Compared(value, operator, compare.read(value.type, written))


def _of_any_type(left: Any, operator: str, right: Any) -> Any:
    """Two columns whose common type the engine looks for."""
    if not compare.family(left.type) == compare.family(right.type) != "":
        raise compare.UnfitError
    return tree.Sides(left, operator, right, as_doubles=False)


def _of_any_year(value: Any) -> Any:
    """Whether a date is there, infinite ones and those of six digits included."""
    return tree.Not(tree.Missing(value))


RELAPSES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "constants between two values": lambda: patch.object(compare, "compare", _as_the_engine_reads_it),
    "columns of two types": lambda: patch.object(reader, "compare_sides", _of_any_type),
    "parts of infinite dates": lambda: patch.object(functions, "between_years", _of_any_year),
    "NaN above all numbers": lambda: patch.object(Dialect, "nan", lambda *_: ""),
}
