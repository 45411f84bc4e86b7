"""What a unit adds is its true vector times one number, within the bound, in the integers of plain Python."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from psidp import Curator, ask
from psidp.tables.sources import open_source
from psidp.tables.unit_bounds import NormBound
from psidp.tables.vector import Coordinate, Vector
from reference.bounded_totals import totals as oracle
from reference.odd_tables import ASKS, SCHEMA, VALUES, engine_totals, grid_of, own, random_table, without_zeros

TABLES = 20
BATCH = SCHEMA.append(pa.field("t", pa.int64()))


def explore(random: Random) -> None:
    """A batch of random tables against the oracle, every unit's norm, and the mean of equal values."""
    tables = [random_table(random) for _ in range(TABLES)]
    rows = [row | {"t": t, "u": own(row["u"], t)} for t, table in enumerate(tables) for row in table]
    source = open_source(pa.Table.from_pylist(rows, BATCH))
    try:
        asked = random.choice(ASKS)
        _compare(source, rows, asked, grid_of(asked, random.choice([1.0, 1.3, 4.0, 100.0])))
    finally:
        source.close()
    _equal_values(random)


def _compare(source: Any, rows: list[dict[str, Any]], asked: Any, grid: Any) -> None:
    """The engine's totals are the oracle's; and no unit alone is beyond the bound."""
    values = VALUES | {"t": tuple(range(TABLES))}
    found = engine_totals(source, "u", ("t", "g", "h"), [(asked, grid)], values)[asked]
    expected = without_zeros(oracle(rows, "u", ("t", "g", "h"), asked, grid))
    assert found == expected, f"totals of {asked} on {grid} differ from plain Python's for {rows}"
    for unit in {row["u"] for row in rows} - {None}:
        mine = [row for row in rows if row["u"] == unit]
        square = sum(x * x for total in oracle(mine, "u", ("g", "h"), asked, grid).values() for x in total)
        assert square <= grid.bound**2, f"unit {unit} adds {square} > {grid.bound}^2 under {asked} for {mine}"


def _equal_values(random: Random) -> None:
    """The mean of equal values is that value, whatever the number of rows and the contribution."""
    value, units, each = random.uniform(0, 100), random.randint(1, 40), random.choice([1, 2, 9, 100])
    contribution = random.choice([1.0, 3.0, 50.0])
    n = units * each
    table = pa.table({"who": [i % units for i in range(n)], "x": [value] * n})
    question = Curator(table, "who").ask(ask.mean("x", 0, 100), contribution=contribution, clipping_share=0.0)
    (row,) = question.release(psi=1e9)
    words = f"{units} units with {each} rows of {value} each have mean {row['value']} at contribution {contribution}"
    assert abs(row["value"] - value) < 1e-3, words


def _clamped(self: NormBound, total: str, vector: Vector, coordinate: Coordinate) -> str:
    """What a cell was in version 0.1: each entry clamped to the bound before the norm is taken."""
    bound, row = self.grid.bound, self.row(vector) if coordinate.counts else 1
    if coordinate.once:
        return f"CAST({min(row, bound)} AS BIGINT)"
    return f"CAST(greatest(-{bound}, least({bound}, {total} * {row})) AS BIGINT)"


RELAPSES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "entries clamped before the norm": lambda: patch.object(NormBound, "cell", _clamped),
}
