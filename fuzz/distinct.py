"""Different values are those of plain Python in integers, and no unit moves them further than its bound."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random
from typing import Any
from unittest.mock import patch

import ibis
import pyarrow as pa

from psidp import ask
from psidp.curator.distinct_sql import WHOLE, DistinctTotals
from psidp.curator.engine import Engine
from psidp.curator.row_sql import whole
from reference.bounded_totals import distinct as oracle
from reference.curator_tables import SCHEMA, random_table


def explore(random: Random) -> None:
    """One table with one unit more or less: the engine's totals are the oracle's, and differ by at_most at most."""
    rows, most = [row for _ in range(3) for row in random_table(random)], random.choice([1.0, 1.7, 3.0, 8.0])
    column, by = random.choice([("h", ("g",)), ("g", ("h",)), ("n", ()), ("h", ())])
    connection = ibis.duckdb.connect(threads=1)
    try:
        full = _totals(connection, rows, by, column, most)
        assert full == oracle(rows, "u", by, column, most), f"{column} by {by}, at most {most}: {rows}"
        unit = random.choice([row["u"] for row in rows] or [0])
        less = _totals(connection, [row for row in rows if row["u"] != unit], by, column, most)
        square = sum((full.get(g, 0) - less.get(g, 0)) ** 2 for g in full.keys() | less.keys())
        assert square <= (most * WHOLE) ** 2, f"unit {unit} moves {column} by {by} beyond {most}: {rows}"
    finally:
        connection.disconnect()


def _totals(
    connection: Any, rows: list[dict[str, Any]], by: tuple[str, ...], column: str, most: float
) -> dict[Any, int]:
    """{group: total} on DuckDB."""
    table = connection.create_table("t", pa.Table.from_pylist(rows, SCHEMA), overwrite=True)
    made = DistinctTotals(table, "u", by, ask.distinct(column, most))
    return {tuple(row[:-1]): int(row[-1]) for row in Engine(table).rows(made.expression()) if row[-1]}


def _whole_weights(self: DistinctTotals, m: Any) -> Any:
    """Every value of a unit counted fully, however many it has."""
    return m * whole(0) + whole(WHOLE)


RELAPSES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "units count for all their values": lambda: patch.object(DistinctTotals, "_weight", _whole_weights),
}
