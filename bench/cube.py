"""Exact totals of a cube beside the plain GROUP BYs of the same tables, in DuckDB on one thread."""

from itertools import combinations
from random import Random

import duckdb

from bench.timing import Report, interleave
from psidp.tables.sources import open_source
from psidp.tables.strategies.image import ImageBound
from psidp.tables.strategies.residual import Column
from psidp.tables.totals import Totals
from psidp.tables.unit_bounds import RowBound
from psidp.tables.vector import Rows, Vector

ROWS, UNITS = 10_000_000, 1_000_000
SIZES = (3, 5, 7, 12, 20, 31, 50, 100)
CONTRIBUTION = 8.0


def run(full: bool, seed: int) -> list[Report]:
    """Ten million rows, a million units, eight columns, all 56 three-way tables."""
    connection = _made(seed)
    tables = tuple(combinations(range(len(SIZES)), 3))

    def plain() -> None:
        for a, b, c in tables:
            connection.sql(f"SELECT k{a}, k{b}, k{c}, count(*) FROM visits GROUP BY 1, 2, 3").to_arrow_table()

    axes = tuple(Column(f"k{i}", tuple(range(size))).axis for i, size in enumerate(SIZES))
    vectors, source = (Vector((Rows(),)),), open_source(connection, name="visits")
    cubes = {
        "own": Totals((), axes, tables, vectors, (RowBound(1.0),)),
        "rows": Totals(("u",), axes, tables, vectors, (RowBound(CONTRIBUTION),), measured=(0,)),
        "image": Totals(("u",), axes, tables, vectors, (ImageBound(CONTRIBUTION, _gram(seed)),), measured=(0,)),
    }
    contenders = {name: (lambda cube=cube: cube.exact(source, source.dialect)) for name, cube in cubes.items()}
    best = interleave({"plain": plain} | contenders, 4 if full else 2, seconds=180.0)
    report = Report(
        f"exact totals of {len(tables)} three-way tables, {ROWS:,} rows, {UNITS:,} units, DuckDB, one thread"
    )
    report.add("plain GROUP BYs", best["plain"], "s CPU")
    report.add("every row its own unit, over plain", best["own"] / best["plain"], "x")
    report.add("weights by rows", best["rows"], "s CPU")
    report.add("weights by rows, over plain", best["rows"] / best["plain"], "x", at_most=1.6)
    report.add("weights by the image norm", best["image"], "s CPU")
    report.add("weights by the image norm, over plain", best["image"] / best["plain"], "x", at_most=5.0)
    return [report]


def _made(seed: int) -> duckdb.DuckDBPyConnection:
    """The rows as a DuckDB table in memory, ten for each unit on average."""
    connection = duckdb.connect(config={"threads": 1})
    step = len(SIZES) + 1
    keys = ", ".join(f"(hash({seed} + {step} * i + {j + 1}) % {n})::INTEGER AS k{j}" for j, n in enumerate(SIZES))
    unit = f"(hash({seed} + {step} * i) % {UNITS})::BIGINT AS u"
    connection.execute(f"CREATE TABLE visits AS SELECT {unit}, {keys} FROM range({ROWS}) t(i)")
    return connection


def _gram(seed: int) -> tuple[int, ...]:
    """A value for each pattern, larger where more columns agree; their size does not change the time."""
    dice = Random(seed)
    last = (1 << len(SIZES)) - 1
    return tuple(2**24 if p == last else 2**20 * p.bit_count() + dice.randrange(2**20) for p in range(last + 1))
