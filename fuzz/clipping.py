"""What a unit adds is its true vector times one number, within the bound, in the integers of plain Python."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random
from typing import Any
from unittest.mock import patch

import ibis
import pyarrow as pa

from psidp import Curator, ask
from psidp.curator.row_sql import Coordinate
from reference.bounded_totals import totals as oracle
from reference.curator_tables import AGGREGATES, KNOWN, SCHEMA, engine_totals, lattice, own, random_table, without_zeros

BATCH = SCHEMA.append(pa.field("t", pa.int64()))


def explore(random: Random) -> None:
    """A batch of random tables against the oracle, every unit's norm, and the mean of equal values."""
    tables = [random_table(random) for _ in range(20)]
    rows = [row | {"t": t, "u": own(row["u"], t)} for t, table in enumerate(tables) for row in table]
    connection = ibis.duckdb.connect(threads=1)
    try:
        connection.con.register("batch", pa.Table.from_pylist(rows, BATCH))
        aggregate = random.choice(AGGREGATES)
        grid = lattice(aggregate, random.choice([1.0, 1.3, 4.0, 100.0]))
        _compare(connection.table("batch"), rows, aggregate, grid)
    finally:
        connection.disconnect()
    _equal_values(random)


def _compare(table: Any, rows: list[dict[str, Any]], aggregate: Any, grid: Any) -> None:
    """The engine's totals are the oracle's; and no unit alone is beyond the bound."""
    KNOWN.clear()  # SQL of an earlier round
    found = engine_totals(table, "u", ("t", "g", "h"), [(aggregate, grid)])[aggregate]
    expected = without_zeros(oracle(rows, "u", ("t", "g", "h"), aggregate, grid))
    assert found == expected, f"totals of {aggregate} on {grid} differ from plain Python's for {rows}"
    for unit in {row["u"] for row in rows} - {None}:
        mine = [row for row in rows if row["u"] == unit]
        square = sum(x * x for total in oracle(mine, "u", ("g", "h"), aggregate, grid).values() for x in total)
        assert square <= grid.bound**2, f"unit {unit} adds {square} > {grid.bound}^2 under {aggregate} for {mine}"


def _equal_values(random: Random) -> None:
    """The mean of equal values is that value, whatever the number of rows and the contribution."""
    value, units, each = random.uniform(0, 100), random.randint(1, 40), random.choice([1, 2, 9, 100])
    contribution = random.choice([1.0, 3.0, 50.0])
    n = units * each
    table = pa.table({"who": [i % units for i in range(n)], "x": [value] * n})
    (row,) = Curator(table, "who").release(
        ask.mean("x", 0, 100), psi=1e9, contribution=contribution, clipping_share=0.0
    )
    said = f"{units} units with {each} rows of {value} each have mean {row['value']} at contribution {contribution}"
    assert abs(row["value"] - value) < 1e-3, said


def _clamped(self: Coordinate, total: Any) -> Any:
    """What a cell was in version 0.1: each entry clamped to the bound before the norm is taken."""
    bound = self.lattice.bound
    if self.aggregate.kind == "units":
        return ibis.literal(min(self.weight, bound), "int64").cast("!int64")
    amount = (total if self.power else total * self.weight).cast("!int64")
    return ibis.cases((amount >= bound, bound), (amount <= -bound, -bound), else_=amount).cast("!int64")


RELAPSES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "entries clamped before the norm": lambda: patch.object(Coordinate, "of_unit", _clamped),
}
