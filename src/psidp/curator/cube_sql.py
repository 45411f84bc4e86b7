"""A cube in the engine: exact integer totals of many tables, from rows that are weighed once for all of them."""

import secrets
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from math import frexp, ldexp, prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from psidp.curator.column_types import with_keys
from psidp.curator.contribution_sql import SIZES
from psidp.curator.cube_columns import CubeColumn, with_codes
from psidp.curator.cube_weights import FULL, OWN, SIZE, ImageBound, RowBound, with_words
from psidp.curator.engine import Engine
from psidp.curator.query import check_unit
from psidp.curator.row_sql import amount_steps, centred_steps, ibis_library, usable, whole
from psidp.curator.temp_table import creation, stored
from psidp.curator.unit import Unit, named_units, same_unit, with_units
from psidp.mechanism.clipping import IntegerGrid

__all__ = ["CubeTotals", "ImageBound", "Layer", "RowBound"]

WIDE = "decimal(38, 0)"
MOST_CELLS = 50_000_000
NAME = "psidp_cube"
BITS = 20


@dataclass(frozen=True, slots=True)
class Layer:
    """What one row adds to one number of each cell, as an integer of size at most `steps`.

    Args:
        kind: rows: 1. present: 1 where the column has a value. centred: trunc(2^20 (v - middle)/half), v clipped to
        the bounds. amount: the clipped value in whole steps of a power of two. Missing values add 0.
        column: of which column. lower, upper: its public bounds.

    Examples:
        >>> Layer("centred", "delay", -60.0, 180.0).step * 2**20
        120.0
        >>> Layer("amount", "fare", 0.0, 100.0).steps
        1638400
    """

    kind: Literal["rows", "present", "centred", "amount"]
    column: str | None = None
    lower: float = 0.0
    upper: float = 0.0

    def __post_init__(self) -> None:
        if (self.kind == "rows") is not (self.column is None):
            raise ValueError(f"a layer must name a column unless it counts rows, got {self.kind!r} of {self.column!r}.")
        if self.kind in ("rows", "present"):
            return
        reach = max(abs(self.lower), abs(self.upper))
        if not (self.lower < self.upper and reach <= 2.0**850 and self.upper - self.lower >= 2.0**-850):
            raise ValueError(
                f"bounds of {self.column!r} must be lower < upper within 2^-850 to 2^850, "
                f"got lower={self.lower}, upper={self.upper}."
            )

    @property
    def grid(self) -> IntegerGrid:
        """The steps of an amount: a power of two, of which the larger bound has 2^20 to 2^21."""
        reach = max(abs(self.lower), abs(self.upper))
        unit = frexp(reach)[1] - 1 - BITS
        return IntegerGrid(reach, unit, int(Fraction(reach) / Fraction(2) ** unit))

    @property
    def steps(self) -> int:
        """The largest size of what a row adds."""
        return {"rows": 1, "present": 1, "centred": 1 << BITS}.get(self.kind) or self.grid.bound

    @property
    def step(self) -> float:
        """One step in the column's own scale; of a centred value, from the middle of the bounds."""
        if self.kind == "amount":
            return self.grid.step
        return 1.0 if self.kind in ("rows", "present") else ldexp((self.upper - self.lower) / 2.0, -BITS)

    def check(self, schema: Any) -> None:
        """Refuse a column that the table has not, or that holds no numbers."""
        if self.column is None:
            return
        if self.column not in schema:
            raise ValueError(f"a measure must be a column of the table, got {self.column!r}.")
        kind = schema[self.column]
        if self.kind != "present" and not (kind.is_numeric() or kind.is_boolean()):
            raise TypeError(f"a measure needs a column of numbers, got {self.column!r} of {kind}.")

    def value(self, rows: Any) -> Any:
        """What a row adds."""
        if self.kind == "rows":
            return whole(1)
        column = rows[self.column]
        if self.kind == "present":
            return ibis_library().cases((usable(column), whole(1)), else_=whole(0))
        if self.kind == "amount":
            return amount_steps(column, self.lower, self.upper, self.grid)
        return centred_steps(column, self.lower, self.upper, 1 << BITS)


@dataclass(frozen=True, slots=True)
class CubeTotals:
    """Exact totals of a cube's tables, sum over units of w_u times what its rows add.

    Args:
        rows: the table after every filter, columns read in their types. unit: its column or columns that name units, or
        None where each row is one and has weight 1. columns: the cube's columns. tables: which of them each table has,
        as ascending numbers; () is the total. layers: what a row adds. bound: how units are weighed.
        measured: whether units are counted by their size as well.

    Guarantees:
        A row outside the keys and bins of any column, or without a unit, adds nothing and is not counted in a weight.
        All tables and layers see the same rows and weights. docs/design/cubes.md proves what that means.
    """

    rows: Any
    unit: Unit
    columns: tuple[CubeColumn, ...]
    tables: tuple[tuple[int, ...], ...]
    layers: tuple[Layer, ...]
    bound: RowBound | ImageBound | None
    measured: bool = False

    def __post_init__(self) -> None:
        schema = self.rows.schema()
        check_unit(self.unit, schema)
        for column in self.columns:
            column.check(schema)
        for layer in self.layers:
            layer.check(schema)
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names):
            raise ValueError(f"a cube must name different columns, got {', '.join(names)}.")
        for table in self.tables:
            if list(table) != sorted(set(table).intersection(range(len(self.columns)))):
                raise ValueError(f"a table must be ascending numbers of a cube's columns, got {table}.")
        if not (self.layers and self.tables and len(set(self.tables)) == len(self.tables)):
            raise ValueError("a cube must have one layer or more, and one table or more, none of them twice.")
        if (self.bound is None) is not (self.unit is None):
            raise ValueError("a cube must have a bound where a column names its units, and only there.")
        if self.bound is not None:
            self.bound.check(self.columns)
        if not sum(prod(self.shape(table)) for table in self.tables) <= MOST_CELLS:
            raise ValueError(f"a cube must have at most {MOST_CELLS:,} cells. Ask for smaller tables.")

    def shape(self, table: Sequence[int]) -> tuple[int, ...]:
        """Sizes of a table's columns."""
        return tuple(self.columns[i].size for i in table)

    @property
    def scale(self) -> int:
        """The weight of a row of a unit that is not shrunk."""
        return 1 if self.unit is None else FULL

    def sql(self, engine: Engine) -> tuple[str, ...]:
        """The texts that will run; names of temporary tables get a random end then. Reads no row."""
        stages = self._stages("", engine)
        found = [creation(engine, name, expression) for name, expression in stages]
        found += [engine.sql(self._summed(engine, stages[-1], table)) for table in self.tables]
        return (*found, *([engine.sql(self._sized(stages[-1]))] if self.measured else []))

    def exact(self, engine: Engine) -> list[list[NDArray[Any]]]:
        """For each table and each layer its totals, an array by the table's columns.

        64-bit integers where all are below 2^62 in size, else Python's.
        """
        return self.exact_and_sizes(engine)[0]

    def exact_and_sizes(self, engine: Engine) -> tuple[list[list[NDArray[Any]]], NDArray[Any]]:
        """The totals, and how many units there are of each size where that is measured."""
        with self._stored(engine) as stage:
            found = [engine.integers(self._summed(engine, stage, table)) for table in self.tables]
            sizes = self._sizes(engine, stage) if self.measured else np.zeros(0, np.int64)
        return [self._placed(table, columns) for table, columns in zip(self.tables, found, strict=True)], sizes

    def sizes(self, engine: Engine) -> NDArray[Any]:
        """How many units are worth at most 1 row, at most 2, at most 4, ..., at most 2^20, and more."""
        with self._stored(engine) as stage:
            return self._sizes(engine, stage)

    @contextmanager
    def _stored(self, engine: Engine) -> Iterator[tuple[str, Any]]:
        """The weighted rows as a temporary table: its name, and what it holds."""
        engine.check_keys(self._keyed(), [column.name for column in self.columns if column.keys])
        stages = self._stages(f"_{secrets.token_hex(8)}", engine)
        with ExitStack() as tables:
            for name, expression in stages:
                tables.enter_context(stored(engine, name, expression))
            yield stages[-1]

    def _stages(self, end: str, engine: Engine) -> list[tuple[str, Any]]:
        """The temporary tables: names, and what they hold. The last has the weighted rows.

        The table itself is read once: rows that come in between would not be in their unit's weight. On Spark, which
        reads a relation again wherever a statement names it, coded rows are stored first.
        """
        rows = self._coded()
        if not isinstance(self.bound, ImageBound) and (self.bound is None or engine.name != "pyspark"):
            return [(NAME + end, self._weighted(rows))]
        first, rows = f"{NAME}_rows{end}", with_words(rows, self.columns)
        again = ibis_library().table(rows.schema(), name=first)
        return [(first, rows), (NAME + end, self._weighted(again))]

    def _sizes(self, engine: Engine, stage: tuple[str, Any]) -> NDArray[Any]:
        """Units by their size, from rows: each unit stands in as many rows as it has."""
        assert self.bound is not None
        found = np.zeros(len(SIZES) + 1, np.int64)
        over = [int(size) * self.bound.one for size in SIZES]
        for size, own, rows in engine.rows(self._sized(stage)):
            found[bisect_left(over, int(size))] += int(rows) // int(own)
        return found

    def _sized(self, stage: tuple[str, Any]) -> Any:
        """Rows by the size and the number of rows of their unit."""
        name, weighted = stage
        rows = ibis_library().table(weighted.schema(), name=name)
        return rows.group_by([SIZE, OWN]).aggregate(n=rows.count())

    def _keyed(self) -> Any:
        return with_keys(self.rows, [column.name for column in self.columns if column.keys])

    def _coded(self) -> Any:
        """Rows that count: unit, keys and bins as numbers k0, k1, ..., and what they add, v0, v1, ..."""
        rows = with_units(self._keyed(), self.unit)
        more = {f"v{j}": layer.value(rows).cast("!int32") for j, layer in enumerate(self.layers)}
        return with_codes(rows, self.columns, more | named_units(rows, self.unit))

    def _weighted(self, rows: Any) -> Any:
        """Rows that count, with what they add times their unit's weight."""
        codes = [f"k{i}" for i in range(len(self.columns))]
        if self.bound is None:
            return rows.select(*codes, *(f"v{j}" for j in range(len(self.layers))))
        units = self.bound.weights(rows, self.columns)
        rows = rows.inner_join(units, same_unit(rows, units))
        more = {SIZE: rows[SIZE], OWN: rows[OWN]} if self.measured else {}
        added = {f"v{j}": _product(rows, j, layer) for j, layer in enumerate(self.layers)}
        return rows.select(*codes, **more, **added)

    def _summed(self, engine: Engine, stage: tuple[str, Any], table: tuple[int, ...]) -> Any:
        """The totals of one table: the place of each cell, the last column's varying first, a sum for each layer."""
        name, weighted = stage
        rows = ibis_library().table(weighted.schema(), name=name)
        sums = {f"v{j}": _sum(rows[f"v{j}"], engine.narrow) for j in range(len(self.layers))}
        place = self._place(rows, table)
        return rows.aggregate(**sums) if place is None else rows.group_by(place=place).aggregate(**sums)

    def _place(self, rows: Any, table: tuple[int, ...]) -> Any:
        """The number of a row's cell."""
        kind = "int32" if prod(self.shape(table)) < 2**31 else "int64"
        place = None
        for i in table:
            code = rows[f"k{i}"].cast(kind)
            place = code if place is None else place * ibis_library().literal(self.columns[i].size, kind) + code
        return place

    def _placed(self, table: tuple[int, ...], columns: list[NDArray[Any]]) -> list[NDArray[Any]]:
        """Totals at their places."""
        shape, placed = self.shape(table), []
        place = columns.pop(0) if table else slice(None)
        for totals in columns:
            cells: NDArray[Any] = np.zeros(prod(shape), totals.dtype)
            cells[place] = totals
            placed.append(cells.reshape(shape))
        return placed


def _product(rows: Any, j: int, layer: Layer) -> Any:
    """What a row adds times its weight, below 2^42."""
    value, weight = rows[f"v{j}"], rows.weight
    if layer.kind == "rows":
        return weight
    return value * weight if layer.kind == "present" else value.cast("int64") * weight.cast("int64")


def _sum(column: Any, narrow: bool) -> Any:
    """A sum that cannot overflow."""
    return (column.cast(WIDE).sum() if narrow else column.sum()).cast(WIDE)
