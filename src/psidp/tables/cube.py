"""Cubes: measures in many tables over the same columns, planned, priced and released together."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import comb, inf, nan, prod
from typing import Any, NamedTuple, Unpack, cast

from psidp.escaping import one_line
from psidp.guarantee import Guarantee
from psidp.maths.notion import Notions, spelled_out
from psidp.strategies.marginals import Table
from psidp.strategies.residual_plan import Balance
from psidp.symbols import symbol
from psidp.tables.ask import Ask, Bins, Contribution, UpTo, check_contribution
from psidp.tables.choices.private_groups import PrivateGroups
from psidp.tables.columns import check_key, need_column
from psidp.tables.cube_answer import Cube, binned
from psidp.tables.derived import derived_table
from psidp.tables.notes import Note
from psidp.tables.payment import Payment
from psidp.tables.plan import ROWS
from psidp.tables.price import psi_from_notion
from psidp.tables.question import Drawn, Priced, Question
from psidp.tables.sources.public_groups import key_tuples, key_types, public_groups, refuse_own_groups
from psidp.tables.sources.source import Source
from psidp.tables.strategies.image import MOST_COLUMNS
from psidp.tables.strategies.residual import (
    MOST_CELLS,
    Bound,
    Column,
    Residual,
    Residuals,
    counts_rows,
)
from psidp.tables.table import check_asks, check_terms
from psidp.tables.words import asked_note, clipping_words, contribution_note, question_in_full, question_notes

__all__ = ["Bound", "CubePlan", "CubeQuestion", "Errors", "ExpectedTable", "cube_question"]

Errors = Mapping[Any, float]
"""Standard errors that are wanted of counts, by table or by number of columns: {("origin",): 2, 2: 5}."""

LEAST_PSI, MOST_PSI = 2.0**-30, 2.0**10
LEAST_ERROR, MOST_ERROR = 2.0**-40, 2.0**80
MOST_TABLES = 200_000

SHOWN = 40
"""Tables that a summary lists."""


@dataclass(frozen=True, slots=True)
class CubeQuestion(Question):
    """Measures in many tables: `Curator.cube` makes one; `plan` says what it would cost, `release` answers."""

    layout: Residual

    @spelled_out
    def plan(
        self, psi: float | None = None, *, errors: Errors | None = None, retry_key: str = "", **notions: Unpack[Notions]
    ) -> "CubePlan":
        """What `release` with the same arguments would run, cost and be worth. Reads no row and spends nothing."""
        priced = self.priced(psi, errors, notions)
        strategies = {column.name: _column_words(column) for column in self.layout.columns}
        notes = plan_notes(priced) + self.curator.payment.notes(priced, retry_key)
        gap = priced.noises[0].plans[0].gap
        return CubePlan(priced.guarantee, _expected(priced), strategies, gap, notes, tuple(priced.sql()))

    @spelled_out
    def release(
        self,
        psi: float | None = None,
        *,
        errors: Errors | None = None,
        purpose: str = "",
        retry_key: str = "",
        **notions: Unpack[Notions],
    ) -> Cube:
        """Noisy tables that agree with each other, paid for before they are drawn.

        Args:
            psi: what all of it costs together, [2^-30, 2^10]; or a notion, such as epsilon=1, delta=1e-6 or auc=0.6.
            errors: instead, standard errors that counts shall have, by table or by number of columns:
                {("origin",): 2, 2: 5}; the least psi that reaches them is paid.
            purpose, retry_key: as of a table.

        Nothing is spent when the engine fails before noise could have been drawn.
        """
        payment: Payment = self.curator.payment
        priced = self.priced(psi, errors, notions)
        return payment.release(priced, _answer, Cube.from_dict, _in_full, purpose=purpose, retry_key=retry_key)

    def check_quantile(self, column: str, by: Sequence[str] = ()) -> None:
        """Refuse quantiles that the answer would not hold: before it is paid for."""
        try:
            binned(self.layout.columns, self.layout.marginals, column, by)
        except KeyError as error:
            raise ValueError(error.args[0]) from None
        self._check_counts("quantiles")

    def _check_counts(self, what: str) -> None:
        if not any(counts_rows(ask.measure.vector) for ask in self.asks):
            raise ValueError(f"{what} must be those of a count: ask for ask.count() too.")

    def priced(self, psi: float | None, errors: Errors | None, notions: Mapping[str, Any]) -> Priced:
        """The question at its price; refuses noise that cannot be drawn exactly."""
        given = {name: value for name, value in notions.items() if value is not None}
        if (psi is None and not given) == (errors is None):
            raise ValueError(
                "a cube must have psi (what it costs), or another notion of it, or errors (standard errors that are "
                "wanted), one of them."
            )
        if errors is not None:
            priced = self._priced_by_errors(errors)
        else:
            found, note = psi_from_notion(psi, given)
            if not LEAST_PSI <= found <= MOST_PSI:
                raise ValueError(f"psi ({symbol('psi').meaning}) must be in [2^-30, 2^10] for a cube, got psi={found}.")
            priced = self.at(found, note)
        _ = priced.noises  # refused here where it cannot be drawn exactly
        return priced

    def _priced_by_errors(self, errors: Errors) -> Priced:
        """The question at the least psi for which counts have the wanted standard errors."""
        if any(ask.contribution == "auto" for ask in self.asks):
            raise ValueError('contribution must be a number where errors are wanted, which depend on it, got "auto".')
        self._check_counts("errors (standard errors that are wanted)")
        question = replace(self, layout=replace(self.layout, errors=tuple(_wanted(self.layout, errors))))
        psi, within = question.layout.cost(question.at(1.0))
        if not LEAST_PSI <= within <= MOST_PSI:
            raise ValueError(f"errors must be within reach of psi in [2^-30, 2^10], got errors that need {within:.3g}.")
        return question.at(psi)


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


def cube_question(
    curator: Any,
    columns: Mapping[str, Any],
    tables: UpTo | Iterable[str | Sequence[str]],
    measures: Sequence[Ask],
    *,
    balance: Balance,
    contribution: Contribution,
    bound: Bound,
    where: str | None,
    confidence: float,
    clipping_share: float,
) -> CubeQuestion:
    """The question, or a refusal that looked at schema and parameters alone."""
    _check_choices(balance, contribution, bound, curator.unit_columns)
    check_terms(confidence, clipping_share)
    check_asks(measures)
    if not (isinstance(columns, Mapping) and columns):
        raise TypeError(
            'columns must map names to public values, such as {"ward": ["A", "B"], "age": ask.bins([0, 18])}.'
        )
    derived = derived_table(curator.source, tuple(columns), measures, curator.public)
    check_asks(derived.asks)
    if len(set(derived.by)) < len(derived.by):
        raise ValueError(f"columns must have different names, got {', '.join(derived.by)}.")
    given = {n: derived.values.get(n) if v is None else v for n, v in zip(derived.by, columns.values(), strict=True)}
    reads, cube = _columns(given, derived.source, curator)
    numbers = derived.numbers((*curator.unit_columns, *(column.name for column in cube if column.keys)))
    rule, read, readings = derived.read(where, reads | numbers)
    asked = tuple(_measure(ask, contribution, read) for ask in derived.asks)
    wanted = _tables(tables, derived.by)
    _check_size(wanted, cube, bound)
    counts = all(counts_rows(ask.measure.vector) for ask in asked)
    layout = Residual(cube, wanted, balance, bound, counts=counts)
    return CubeQuestion(
        asked, layout, rule, float(confidence), float(clipping_share), read, curator, readings, derived.definitions
    )


def _check_choices(balance: Any, contribution: Any, bound: Any, unit: Sequence[str]) -> None:
    if balance not in ("worst", "total"):
        raise ValueError(f'balance (which error is least) must be "worst" or "total", got balance={balance!r}.')
    if bound not in ("rows", "image"):
        raise ValueError(f'bound (how a unit\'s rows are measured) must be "rows" or "image", got bound={bound!r}.')
    check_contribution(contribution)
    if not unit and not (contribution == 1 and bound == "rows"):
        raise ValueError(
            'contribution must be 1 and bound "rows" where every row is its own unit, '
            f"got contribution={contribution!r}, bound={bound!r}."
        )


def _columns(given: Mapping[str, Any], source: Source, curator: Any) -> tuple[dict[str, str], tuple[Column, ...]]:
    """The types in which columns without one are read, and the columns with their public values."""
    if curator.unit_columns and set(curator.unit_columns) <= set(given):
        raise ValueError(
            f"columns must not name the unit's own column, got {' and '.join(curator.unit_columns)!r}: every cell "
            "would be one unit."
        )
    reads: dict[str, str] = {}
    columns = []
    for name, values in given.items():
        need_column(name, source.schema, "columns")
        if isinstance(values, PrivateGroups):
            raise ValueError(
                f"values of {name!r} must be public in a cube: its noise is planned before any row is read."
            )
        if isinstance(values, Bins):
            reads |= {name: "float64"} if name in source.untyped else {}
            kind = source.schema[name]
            if not (kind.numeric or name in source.untyped):
                raise TypeError(f"bins need a column of numbers, got {name!r} of {kind}.")
            columns.append(Column(name, edges=values.edges, ordered=values.ordered))
            continue
        _refuse_own(values, name, source, curator)
        keys = key_tuples(values, (name,), source.schema)
        reads |= key_types(keys, (name,), source.untyped & {name})
        schema = source.reading({k: v for k, v in reads.items() if k == name}).schema
        fractions = name in source.untyped and any(isinstance(key, float) for (key,) in keys)
        if fractions or schema[name].kind == "float":
            raise TypeError(
                f"column {name!r} of fractions must be cut into bins in a cube: ask.bins(edges) or ask.ordered(edges), "
                "--bins or --ordered on the command line."
            )
        check_key(name, schema[name])
        columns.append(Column(name, keys=tuple(key for (key,) in public_groups(keys, (name,), schema))))
    return reads, tuple(columns)


def _refuse_own(values: Any, name: str, source: Source, curator: Any) -> None:
    """Refuse values that come from the table itself."""
    try:
        refuse_own_groups(values, (name,), curator.given)
    except ValueError:
        raise ValueError(
            f"values of {name!r} must not come from the table itself: each would be shown merely because somebody has "
            "it. Give those that are known without it."
        ) from None


def _measure(ask: Ask, contribution: Contribution, source: Source) -> Ask:
    """The measure with the cube's contribution; refused where it is no sum over rows."""
    measure = ask.measure
    if measure.chooses_bounds:
        raise ValueError(f"bounds of {ask.name!r} must be given in a cube, whose noise is planned before any row.")
    measure.check(source.schema)
    vector = measure.vector
    if vector.edges or vector.within is not None or vector.once or measure.simultaneous:
        raise ValueError(
            f"a cube must measure sums over rows, such as count, sum, mean, got {ask.name!r}. Ask for it in a release."
        )
    if ask.contribution is not None:
        raise ValueError("contribution must be the same for all measures of a cube: give it to the cube itself.")
    return replace(ask, contribution="auto" if contribution == "auto" else float(contribution or 1.0))


def _tables(tables: Any, names: Sequence[str]) -> tuple[Table, ...]:
    """The wanted tables as ascending numbers of columns."""
    if isinstance(tables, UpTo):
        order = min(tables.order, len(names))
        if not sum(comb(len(names), k) for k in range(1, order + 1)) <= MOST_TABLES:
            raise ValueError(
                f"tables must be at most {MOST_TABLES:,}, got all of up to {order} of {len(names)} columns."
            )
        return tuple(t for k in range(1, order + 1) for t in combinations(range(len(names)), k))
    if isinstance(tables, str) or not isinstance(tables, Iterable):
        raise TypeError(f'tables must be psidp.ask.up_to(2) or a list such as [("ward", "age")], got {tables!r}.')
    found = []
    for given in tables:
        table = (given,) if isinstance(given, str) else tuple(given)
        strange = [name for name in table if name not in names]
        if strange:
            raise ValueError(f"a table must be made of the cube's columns ({', '.join(names)}), got {strange[0]!r}.")
        if len(set(table)) < len(table):
            raise ValueError(f"a table must name different columns, got {', '.join(table)}.")
        found.append(tuple(sorted(names.index(name) for name in table)))
    if not 0 < len(found) <= MOST_TABLES:
        raise ValueError(f"tables must be 1 to {MOST_TABLES:,}, got {len(found)}.")
    return tuple(dict.fromkeys(found))


def _check_size(wanted: Sequence[Table], cube: Sequence[Column], bound: Bound) -> None:
    cells = sum(prod(cube[i].size for i in table) for table in wanted)
    if not cells <= MOST_CELLS:
        raise ValueError(
            f"tables must have at most {MOST_CELLS:,} cells together, got {cells:,}. Ask for fewer columns together, "
            "or for coarser ones."
        )
    if bound == "image" and any(column.ordered for column in cube):
        raise ValueError(
            'bound must be "rows" where a column is ordered: for the image norm that is not proved. Or cut the column '
            "by ask.bins instead of ask.ordered (--bins, not --ordered)."
        )
    if bound == "image" and not len(cube) <= MOST_COLUMNS:
        raise ValueError(f'bound must be "rows" for a cube of more than {MOST_COLUMNS} columns, got {len(cube)}.')


def _wanted(layout: Residual, errors: Errors) -> list[float]:
    """The wanted error of every table: its own, or that of its number of columns."""
    if not isinstance(errors, Mapping):
        raise TypeError(
            'errors must map tables or numbers of columns to standard errors, such as {("ward",): 2, 2: 5}.'
        )
    names = [column.name for column in layout.columns]
    known: dict[Any, float] = {}
    for key, error in errors.items():
        columns = (key,) if isinstance(key, str) else key
        if isinstance(columns, tuple):
            strange = [name for name in columns if name not in names]
            if strange:
                raise ValueError(f"errors must name columns of the cube, got {strange[0]!r}.")
            columns = tuple(sorted(names.index(name) for name in columns))
            if columns not in layout.wanted:
                raise ValueError(f"errors must name tables that are asked for, got {key!r}.")
        if not LEAST_ERROR <= error <= MOST_ERROR:
            raise ValueError(f"errors (standard errors that are wanted) must be in [2^-40, 2^80], got {error}.")
        known[columns] = float(error)
    for table in layout.wanted:
        if table not in known and len(table) not in known:
            asked = ", ".join(names[i] for i in table)
            raise ValueError(
                f"errors must say one for every table, got none for ({asked}) or for {len(table)} columns."
            )
    return [known.get(table, known.get(len(table), nan)) for table in layout.wanted]


def _answer(drawn: Drawn) -> Cube:
    """The cube made of noisy residuals, with its notes."""
    priced, worth, noisy = drawn.priced, drawn.priced.contributions[0], cast("tuple[Residuals, ...]", drawn.noisy)
    layout = priced.layout
    norms = drawn.norms.get(priced.asks[0].name)
    lost, rows = (nan, inf) if norms is None else norms.at_most(worth)
    notes = [asked_note(priced)]
    if priced.unit:
        notes += [_worth(priced), Note("clipped", clipping_words(norms, worth))]
    return Cube(
        layout.columns, priced.asks, noisy, priced.guarantee, priced.question.confidence,
        (*notes, *_notes(priced)), lost, excess=rows if layout.bounded == "rows" else inf,
    )  # fmt: skip


def plan_notes(priced: Priced) -> tuple[Note, ...]:
    """What a plan says before any row is read."""
    if priced.asks[0].contribution == "auto":
        words = "Standard errors are those at a contribution of 1; they grow in proportion to what is chosen."
        return (Note("plan", words), *_notes(priced))
    return (_worth(priced), *_notes(priced)) if priced.unit else _notes(priced)


def _notes(priced: Priced) -> tuple[Note, ...]:
    """What a reader has to know about units, values and noise."""
    share, notes = priced.sizes_share(priced.asks[0]), []
    if priced.asks[0].contribution == "auto" or priced.found.chosen:
        notes.append(Note("method", f"The contribution is chosen privately, with {share:.0%} of psi^2."))
    elif share:
        notes.append(Note("method", f"{share:.0%} of psi^2 goes into saying what clipping took."))
    words = (
        "The values of all columns are taken as public: as given, and not read from this table. A row outside of them "
        "in any column is in no table."
    )
    notes.append(Note("public", words))
    cut = [column.name for column in priced.layout.columns if column.edges]
    if cut:
        words = (
            f"Numbers beyond the edges of {', '.join(cut)} count in the first and the last bin; a row in which one "
            "is missing is in no table at all."
        )
        notes.append(Note("given bounds", words))
    for ask in priced.asks:
        words = ask.measure.clipped_words()
        notes += [Note("given bounds", f"{ask.name}: {words}.")] if words else []
    return question_notes(priced, notes)


def _worth(priced: Priced) -> Note:
    """What one unit adds at most."""
    unit, c = priced.guarantee.unit, priced.contributions[0]
    chosen = " (chosen)" if priced.found.chosen else ""
    measured = priced.sizes_share(priced.asks[0]) > 0.0
    if priced.layout.bounded == "rows":
        words = (
            f"One {unit} counts {c:.4g} rows at most{chosen}: where it has more, each of them counts less, all alike."
        )
        return contribution_note(words, "", c, "each", measured)
    words = (
        f"One {unit} counts at most what {c:.4g} rows in one cell are worth under the noise{chosen}: where its rows "
        "are worth more, each of them counts less, all alike."
    )
    return contribution_note(words, "", c, "cell", measured)


def _in_full(priced: Priced) -> str:
    """The question of a cube in full, for an approval."""
    layout = priced.layout
    chosen = "chosen" if priced.asks[0].contribution == "auto" else f"{priced.contributions[0]:g}"
    tables = f"; {len(layout.wanted)} tables of {', '.join(column.name for column in layout.columns)}"
    return question_in_full(priced, f"{tables}; contribution {chosen}")


def _expected(priced: Priced) -> tuple[ExpectedTable, ...]:
    """What to expect of each table."""
    layout = priced.layout
    found: list[dict[str, float | dict[int, float]]] = [{} for _ in layout.wanted]
    for ask, noise in zip(priced.asks, priced.noises, strict=True):
        one, most = ask.measure.error_scale, ask.measure.largest_error
        for table, rows in zip(found, noise.errors, strict=True):
            by_rows = {n: min(most, one * rows / n) for n in ROWS}
            table[ask.name] = by_rows if ask.measure.spread.ratio else rows * noise.scales[0]
    names = [tuple(layout.columns[i].name for i in table) for table in layout.wanted]
    cells = map(layout.marginals.cells, layout.wanted)
    return tuple(map(ExpectedTable, names, cells, found))


def _column_words(column: Column) -> str:
    if column.ordered:
        return f"{column.size} bins in order, noise made for cumulative sums"
    return f"{column.size} values without order, the same noise for each"


def _shown(error: float | dict[int, float]) -> str:
    if isinstance(error, dict):
        return ", ".join(f"{value:.3g} in a cell of {rows:,} rows" for rows, value in error.items())
    return f"{error:.4g}"


def _plain(errors: dict[str, float | dict[int, float]]) -> dict[str, Any]:
    return {
        name: {str(rows): e for rows, e in error.items()} if isinstance(error, dict) else error
        for name, error in errors.items()
    }
