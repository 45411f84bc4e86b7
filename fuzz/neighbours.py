"""No unit moves the totals of any feature further than its bound, no value has one fail, and all engines have the same.

A round has its tables on DuckDB and PostgreSQL; on Spark, which takes some seconds for a question, in one of eight.
"""

import atexit
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from random import Random
from typing import Any
from unittest.mock import patch

import postgres
import sparks
from fuzz.distinct import whole_weights
from psidp.tables.unit_bounds import NormBound, RowBound
from reference import feature_tables as features

__all__ = ["RELAPSES", "explore", "on_engine", "servers"]

PAIRS = 12
SPARK_IN = 8


def explore(random: Random) -> None:
    """Pairs of neighbours and two questions on each engine."""
    rows = features.batch(random, PAIRS)
    names = random.sample(list(features.QUESTIONS), 2)
    on_engine("duckdb", None, rows, names, PAIRS)
    connections = servers()
    if "postgres" in connections:
        on_engine("postgres", connections["postgres"](), rows, names, PAIRS)
    if "spark" in connections and random.randrange(SPARK_IN) == 0:
        on_engine("spark", connections["spark"](), rows, names[:1], PAIRS)


def on_engine(engine: str, connection: Any, rows: list[dict[str, Any]], names: list[str], pairs: int) -> None:
    """The questions by these names on one engine: plain Python's integers, neighbours within the bound."""
    table, tables = features.placed(engine, connection, rows, 2 * pairs)
    curator = features.curator_of(table)
    for name in names:
        question = features.QUESTIONS[name]
        priced = features.priced_of(curator, question, tables)
        found, plain = features.integers(priced), features.expected(priced, question, rows)
        for measure, (totals, bound) in found.items():
            shared = {key: total for key, total in totals.items() if key[0] < 2 * pairs}
            apart = [key for key in shared.keys() | plain[measure].keys()
                     if shared.get(key) != plain[measure].get(key)]  # fmt: skip
            assert not apart, f"{engine}: {measure} of {name} is not plain Python's in {sorted(map(str, apart))[:3]}"
            for pair in range(tables // 2):
                assert features.moved(totals, pair) <= bound**2, (
                    f"{engine}: pair {pair} moves {measure} of {name} beyond its bound"
                )
    if engine == "duckdb":
        curator.dispose()


@cache
def servers() -> dict[str, Callable[[], Any]]:
    """How PostgreSQL and Spark are reached, where they can be started; each when it is first asked for."""
    reached: dict[str, tuple[str, Callable[[], Any]]] = {
        "postgres": (postgres.why_no_server(), _postgres),
        "spark": (sparks.why_no_spark(), spark),
    }
    return {name: begin for name, (reason, begin) in reached.items() if not reason}


@cache
def _postgres() -> Any:
    import psycopg

    server = postgres.Server()
    server.__enter__()
    atexit.register(server.__exit__)
    connection = psycopg.connect(server.place("neighbours"), autocommit=True)
    atexit.register(connection.close)
    return connection


def spark() -> Any:
    """The session of this process, begun where there is none; it ends with the process."""
    return sparks.session()


def _unclipped(self: NormBound, size: str, quotient: str, dialect: Any) -> str:
    """Every unit's vector as it is."""
    return str(self.full)


RELAPSES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "units count for all their values": lambda: patch.object(RowBound, "weight", whole_weights),
    "units are not clipped": lambda: patch.object(NormBound, "weight", _unclipped),
}
