"""Different values are those of plain Python in integers, and no unit moves them further than its bound."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from psidp import ask
from psidp.tables.sources import open_source
from psidp.tables.unit_bounds import RowBound
from reference.bounded_totals import distinct as oracle
from reference.odd_tables import SCHEMA, engine_totals, random_table

__all__ = ["RELAPSES", "explore", "whole_weights"]


def explore(random: Random) -> None:
    """One table with one unit more or less: the engine's totals are the oracle's, and differ by at_most at most."""
    rows, most = [row for _ in range(3) for row in random_table(random)], random.choice([1.0, 1.7, 3.0, 8.0])
    column, by = random.choice([("h", ("g",)), ("g", ("h",)), ("n", ()), ("h", ())])
    full = _totals(rows, by, column, most)
    plain = {group: total for group, total in oracle(rows, "u", by, column, most).items() if total}
    assert full == plain, f"{column} by {by}, at most {most}: {rows}"
    unit = random.choice([row["u"] for row in rows] or [0])
    less = _totals([row for row in rows if row["u"] != unit], by, column, most)
    square = sum((full.get(g, 0) - less.get(g, 0)) ** 2 for g in full.keys() | less.keys())
    assert square <= (most * 2**20) ** 2, f"unit {unit} moves {column} by {by} beyond {most}: {rows}"


def _totals(rows: list[dict[str, Any]], by: tuple[str, ...], column: str, most: float) -> dict[Any, int]:
    """{group: total} on DuckDB."""
    source, asked = open_source(pa.Table.from_pylist(rows, SCHEMA)), ask.distinct(column, most)
    try:
        (found,) = engine_totals(source, "u", by, [(asked, most)]).values()
    finally:
        source.close()
    return {group: total for group, (total,) in found.items()}


def whole_weights(self: RowBound, size: str, quotient: str, dialect: Any) -> str:
    """Every value of a unit counted fully, however many it has."""
    return str(self.full)


RELAPSES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "units count for all their values": lambda: patch.object(RowBound, "weight", whole_weights),
}
