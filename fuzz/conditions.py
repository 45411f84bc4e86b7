"""A condition that is accepted fails on no row, whatever types its columns have and whatever it compares them with."""

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

import ibis
import ibis.expr.operations as ops

from psidp.curator import comparison, derived, filters

__all__ = ["RELAPSES", "explore"]

sys.path.append(str(Path(__file__).parents[1] / "tests"))
tables: Any = import_module("reference.typed_tables")
servers: Any = import_module("postgres")
sparks: Any = import_module("sparks")

DRAWS = {"DuckDB": 1000, "PostgreSQL": 1000, "Spark": 300}
"""Conditions that are drawn in a round."""

SPARK_IN = 8

SURE = (
    *(
        "Field",
        "Literal",
        "Alias",
        "Equals",
        "NotEquals",
        "Greater",
        "GreaterEqual",
        "Less",
        "LessEqual",
        "IdenticalTo",
    ),
    *(
        "Between",
        "InValues",
        "Coalesce",
        "NullIf",
        "StringContains",
        "StartsWith",
        "EndsWith",
        "Lowercase",
        "Uppercase",
    ),
    *("StringLength", "Strip", "LStrip", "RStrip", "And", "Or", "Xor", "Not", "IsNull", "NotNull", "IsNan", "IsInf"),
)
"""What version 0.1 took for sure, on whatever types Ibis compares."""


def explore(random: Random) -> None:
    """Draw conditions for each engine's table of all types, and run the accepted ones on it, with and without rows."""
    for engine, types, (bare, full) in (("DuckDB", tables.DUCKDB, _on_duckdb()), *_servers(), *_spark(random)):
        conditions = {}
        with tables.knowing(full):
            for _ in range(DRAWS[engine]):
                name, asked = tables.drawn(random, full.columns)
                rule = tables.accepted(full, asked)
                if rule is not None:
                    conditions[name] = rule
        for name, failure in tables.failing(bare, full, conditions).items():
            _on_duckdb.cache_clear()  # a failure may have been its last
            kinds = [f"{c}: {list(types)[int(c[1:])]}" for c in sorted(set(re.findall(r"\bc[0-9]+\b", name)))]
            raise AssertionError(f"{engine}: {name} ({', '.join(kinds)}) is accepted and fails on table {failure}")


@cache
def _on_duckdb() -> Any:
    """DuckDB's tables, bare and full."""
    return tables.on_duckdb()


@cache
def _servers() -> list[tuple[str, dict[str, list[str]], Any]]:
    """PostgreSQL's types and tables, where a server can be started; it is stopped with this process."""
    return [] if servers.why_no_server() else [_on_postgres()]


def _spark(random: Random) -> list[tuple[str, dict[str, list[str]], Any]]:
    """The same of Spark, in one round of eight: a plan there takes as long as a hundred elsewhere."""
    return [_on_spark()] if random.randrange(SPARK_IN) == 0 and not sparks.why_no_spark() else []


@cache
def _on_spark() -> tuple[str, dict[str, list[str]], Any]:
    return "Spark", tables.SPARK, tables.on_spark(ibis.pyspark.connect(sparks.session()))


def _on_postgres() -> tuple[str, dict[str, list[str]], Any]:
    server = servers.Server()
    server.__enter__()
    atexit.register(server.__exit__)
    connection = ibis.connect(server.place("conditions"))
    atexit.register(connection.disconnect)
    return "PostgreSQL", tables.POSTGRES, tables.on_postgres(connection)


def _as_written(_: Any, node: Any) -> Any:
    """The expression as it is, if its operations are sure by their names alone."""
    for part in node.find(ops.Value, filter=ops.Value):
        if type(part).__name__ not in SURE:
            raise ValueError("where must be made of other operations.")
    return node.to_expr()


def _as_the_engine_reads_it(given: Any, operator: str, written: Any) -> Any:
    """A constant that the engine casts as it likes."""
    return comparison.OPERATORS[operator](given.value, ibis.literal(comparison.constant(given, written)))


def _of_any_year(given: Any, times: Any = ()) -> Any:
    """Whether a date is there, infinite ones and those of six digits included."""
    if given.family not in (("timestamp",) if times else ("date", "timestamp")):
        raise comparison.UnfitError
    return given.value.notnull()


RELAPSES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "operations without types": lambda: patch.object(filters._Rules, "truth", _as_written),
    "constants cast by the engine": lambda: patch.object(filters, "compare", _as_the_engine_reads_it),
    "parts of infinite dates": lambda: patch.object(derived, "_inside", _of_any_year),
}
