"""CubePlan: what a cube would run, cost and be worth, before anything is spent. No row is read."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from psidp.curator.answer import Note
from psidp.curator.ask import count
from psidp.curator.contribution import UnitNorms, best_contribution
from psidp.curator.cube import Cube
from psidp.curator.cube_price import layers_of
from psidp.curator.cube_query import CubeQuery
from psidp.curator.engine import Engine
from psidp.curator.notes import clipping_words, contribution_note, hardly_private, nobodys
from psidp.curator.readings import readings_words
from psidp.escaping import one_line
from psidp.guarantee import Guarantee
from psidp.maths.sensitivity import histogram
from psidp.mechanism.gaussian import GaussianMechanism
from psidp.mechanism.residual_release import noisy_residuals
from psidp.strategies.residual_plan import ResidualPlan

__all__ = ["CubePlan", "ExpectedTable", "cube_planned", "prepare_cube"]

Ints = NDArray[np.int64]

SHOWN = 40
"""Tables that a summary lists."""

ROWS = (100, 1_000, 10_000)
"""Numbers of rows in a cell for which a plan says the error of a mean."""


class ExpectedTable(NamedTuple):
    """One table of a plan: its columns, how many cells it has, and the standard error of its cells by measure.

    Of columns that are ordered, the error is that of cumulative sums, root mean square over all of them. Of a mean, in
    cells of 100, 1,000 and 10,000 rows with values about the middle of the bounds.
    """

    columns: tuple[str, ...]
    cells: int
    errors: dict[str, float | dict[int, float]]


@dataclass(frozen=True, slots=True)
class CubePlan:
    """Standard errors by table, the strategy of each column, the SQL.

    Args:
        guarantee: what it would cost. tables: what to expect of each. strategies: what each column's noise is made for.
        gap: how far above the least possible the worst error, the total or psi can be, relative; proved. notes: what
        else to know. sql: the queries.
    """

    guarantee: Guarantee
    tables: tuple[ExpectedTable, ...]
    strategies: dict[str, str]
    gap: float
    notes: tuple[Note, ...]
    sql: tuple[str, ...] = field(repr=False)

    def error(self, *columns: str) -> float:
        """The standard error of a count in one table."""
        for table in self.tables:
            if set(table.columns) == set(columns) and isinstance(found := table.errors.get("count"), float):
                return found
        raise KeyError(f"no count in a table of {', '.join(columns) or 'nothing'} in this plan.")

    def summary(self) -> str:
        """The plan in words, without the SQL."""
        g = self.guarantee
        lines = [f"{name}: {words}" for name, words in self.strategies.items()]
        for table in self.tables[:SHOWN]:
            errors = "; ".join(f"{name} {_shown(error)}" for name, error in table.errors.items())
            lines.append(f"{', '.join(table.columns) or 'total'} ({table.cells:,} cells): standard error of {errors}")
        if len(self.tables) > SHOWN:
            lines.append(f"... and {len(self.tables) - SHOWN:,} more tables.")
        cost = f"It would cost psi = {g.psi:.6g} ({g.adjacency}, per {g.unit}), all tables together. No row was read."
        return "\n".join(one_line(str(line)) for line in [*lines, *self.notes, cost])

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {
            "form": "psidp-cube-plan-1",
            "guarantee": self.guarantee.to_dict(),
            "tables": [{"columns": list(t.columns), "cells": t.cells, "errors": _plain(t.errors)} for t in self.tables],
            "strategies": self.strategies,
            "gap": self.gap,
            "notes": [note.to_dict() for note in self.notes],
            "sql": list(self.sql),
        }

    def to_json(self) -> str:
        """The plan as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)


def cube_planned(asked: CubeQuery, engine: Engine) -> CubePlan:
    """What a cube would run and be worth."""
    plans = _by_measure(asked)
    errors = [[plan.errors for plan in parts] for parts in plans]
    tables = []
    for n, table in enumerate(asked.marginals.tables):
        found: dict[str, float | dict[int, float]] = {}
        for a, parts in zip(asked.measures, errors, strict=True):
            if a.kind == "mean":
                half = (a.upper - a.lower) / 2.0
                found[a.name] = {rows: half * min(1.0, parts[1][n] / rows) for rows in ROWS}
            else:
                layer = layers_of(a)[0]
                found[a.name] = parts[0][n] * layer.steps * layer.step
        tables.append(ExpectedTable(asked.names(table), asked.marginals.cells(table), found))
    strategies = {column.name: _strategy(column.size, column.ordered) for column in asked.columns}
    return CubePlan(
        asked.guarantee, tuple(tables), strategies, asked.plans[0].gap, _planned_notes(asked), asked.totals.sql(engine)
    )


def _planned_notes(asked: CubeQuery) -> tuple[Note, ...]:
    """What a plan says of units before any is seen."""
    if asked.auto:
        words = "Standard errors are those at a contribution of 1, and as many times as large as what is chosen."
        return (Note("plan", words), *cube_notes(asked))
    return cube_notes(asked) if asked.unit is None else (_worth(asked), *cube_notes(asked))


def prepare_cube(asked: CubeQuery, engine: Engine) -> Callable[[], Cube]:
    """Ask the engine for exact numbers; what comes back draws noise, and is called once it is paid for."""
    if asked.auto:
        sizes = asked.totals.sizes(engine)
        return lambda: _with_sizes(asked, engine, sizes)
    exact, sizes = asked.totals.exact_and_sizes(engine)
    return lambda: _drawn(asked, exact, _norms(asked, sizes))


def _with_sizes(asked: CubeQuery, engine: Engine, sizes: Ints) -> Cube:
    """Choose the contribution from noisy unit sizes, then query totals and add noise."""
    norms = _norms(asked, sizes)
    assert norms is not None
    cells = sorted(asked.marginals.cells(table) for table in asked.marginals.tables)
    worst = max(max(plan.errors) for plan in asked.plans)
    best = best_contribution(count(), norms, cells[len(cells) // 2], 1.0 / worst)
    chosen = asked.chosen(best)
    return _drawn(chosen, chosen.totals.exact(engine), norms)


def _norms(asked: CubeQuery, sizes: Ints) -> UnitNorms | None:
    """Noise on the numbers of units by size; a unit is in one of them."""
    if not asked.clipping_share > 0.0:
        return None
    adjacency = asked.guarantee.adjacency
    sensitivity = histogram(adjacency)
    sigma = Guarantee(asked.psi_of_norms).sigma(sensitivity)
    return UnitNorms(GaussianMechanism(sensitivity, sigma, adjacency).release(sizes).value, sigma)


def _drawn(asked: CubeQuery, exact: Sequence[Sequence[NDArray[Any]]], norms: UnitNorms | None) -> Cube:
    """Noise on every residual of every layer."""
    query, found = asked.totals, []
    for n, (plan, layer) in enumerate(zip(asked.plans, asked.layers, strict=True)):
        totals = {table: parts[n] for table, parts in zip(query.tables, exact, strict=True)}
        found.append(noisy_residuals(plan, totals, layer.steps * query.scale))
    sizes = [len(layers_of(a)) for a in asked.measures]
    lost, rows = (nan, inf) if norms is None else norms.at_most(asked.contribution)
    said, took = Note("asked", f"Asked: {cube_words(asked)}.", {"unit_column": asked.unit}), []
    if asked.unit is not None:
        took = [_worth(asked), Note("clipped", clipping_words(norms, asked.contribution))]
    return Cube(
        asked.columns, asked.measures, _split(asked.layers, sizes), _split(asked.plans, sizes), _split(found, sizes),
        asked.guarantee, asked.confidence, (said, *took, *cube_notes(asked)),
        lost, excess=rows if asked.bound == "rows" else inf,
    )  # fmt: skip


def cube_words(asked: CubeQuery) -> str:
    """The question in words."""
    some = f" where {asked.some}" if asked.some else ""
    tables = len(asked.marginals.tables)
    names = ", ".join(column.name for column in asked.columns)
    return f"{', '.join(a.name for a in asked.measures)} in {tables} table{'s' * (tables > 1)} of {names}{some}"


def cube_notes(asked: CubeQuery) -> tuple[Note, ...]:
    """What a reader has to know about units, values and noise."""
    unit, said = asked.guarantee.unit, [Note("price", asked.price)] if asked.price else []
    share = f"{asked.clipping_share:.0%} of psi^2"
    if asked.auto:
        said.append(Note("method", f"The contribution is chosen privately, with {share}."))
    elif asked.unit is not None and asked.clipping_share > 0.0:
        said.append(Note("method", f"{share} goes into saying what clipping took."))
    words = (
        "The values of all columns are taken as public: as given, and not read from this table. A row outside of them "
        "in any column is in no table."
    )
    said.append(Note("public", words))
    binned = [column.name for column in asked.columns if column.edges]
    if binned:
        words = (
            f"Numbers beyond the edges of {', '.join(binned)} count in the first and the last bin; a row in which one "
            "is missing is in no table at all."
        )
        said.append(Note("given bounds", words))
    said += [
        Note("given bounds", f"{a.name}: values are clipped to {a.lower:.15g} to {a.upper:.15g}.")
        for a in asked.measures
        if a.column is not None
    ]
    if asked.readings:
        said.append(Note("readings", readings_words(asked.readings)))
    if asked.unit is not None:
        said.append(nobodys(asked.unit))
    if asked.adjacency_doubles:
        words = f"Under replace-one one {unit} can move the tables further, and the noise is larger for it."
        said.append(Note("adjacency", words))
    return (*said, *hardly_private(asked.guarantee))


def _worth(asked: CubeQuery) -> Note:
    """What one unit adds at most."""
    unit, c = asked.guarantee.unit, asked.contribution
    chosen = " (chosen)" if asked.auto else ""
    less = "each of them counts less, all alike."
    if asked.bound == "rows":
        words = f"One {unit} counts {c:.4g} rows at most{chosen}: where it has more, {less}"
        return contribution_note(words, "", c, "each", asked.clipping_share > 0.0)
    words = (
        f"One {unit} counts at most what {c:.4g} rows in one cell are worth under the noise{chosen}: where its rows "
        f"are worth more, {less}"
    )
    return contribution_note(words, "", c, "cell", asked.clipping_share > 0.0)


def _by_measure(asked: CubeQuery) -> tuple[tuple[ResidualPlan, ...], ...]:
    found: tuple[tuple[ResidualPlan, ...], ...] = _split(asked.plans, [len(layers_of(a)) for a in asked.measures])
    return found


def _split(parts: Any, sizes: list[int]) -> Any:
    """Layer by layer becomes measure by measure."""
    found, start = [], 0
    for size in sizes:
        found.append(tuple(parts[start : start + size]))
        start += size
    return tuple(found)


def _strategy(size: int, ordered: bool) -> str:
    if ordered:
        return f"{size} bins in order, noise made for cumulative sums"
    return f"{size} values without order, the same noise for each"


def _shown(error: float | dict[int, float]) -> str:
    if isinstance(error, dict):
        return ", ".join(f"{value:.3g} in a cell of {rows:,} rows" for rows, value in error.items())
    return f"{error:.4g}"


def _plain(errors: dict[str, float | dict[int, float]]) -> dict[str, Any]:
    return {
        name: {str(rows): e for rows, e in error.items()} if isinstance(error, dict) else error
        for name, error in errors.items()
    }
