"""Derived columns of a question: "month(visited)" among its groups or measures becomes a column of the table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psidp.tables.ask import Ask
from psidp.tables.conditions import derived_columns
from psidp.tables.sources.source import Source
from psidp.tables.types import Type

__all__ = ["DerivedTable", "derived_table"]


@dataclass(frozen=True, slots=True)
class DerivedTable:
    """A table with the derived columns of a question.

    Args:
        source: the table with them. by: the names of the columns that make groups. asks: the measures, of columns that
        the table has. values: the public values of columns that make groups, where they are known. readings: how
        columns without a type are read for it. definitions: of derived columns that have a name of their own. schema:
        the columns that a condition may name. A derived column without a name of its own is none of them: of "v > 1.5"
        it would take "v > 1" for the name.
    """

    source: Source
    by: tuple[str, ...]
    asks: tuple[Ask, ...]
    values: Mapping[str, tuple[Any, ...]]
    schema: Mapping[str, Type]
    readings: tuple[tuple[str, str], ...] = ()
    definitions: tuple[tuple[str, str], ...] = ()


def derived_table(
    source: Source, by: Sequence[str], asks: Sequence[Ask], public: Mapping[str, tuple[Any, ...]]
) -> DerivedTable:
    """The table with what groups and measures derive from its columns; refused by schema and form alone.

    `public`: all values of columns that a public table gave.
    """
    uses = dict.fromkeys(name for ask in asks for name in ask.measure.uses)
    made = derived_columns(by, source.schema, source.untyped, "by")
    made |= derived_columns(uses, source.schema, source.untyped, "column", made)
    if not made:
        known = {name: public[name] for name in by if name in public}
        return DerivedTable(source, tuple(by), tuple(asks), known, source.schema)
    names = {given: column.name for given, column in made.items()}
    dialect = source.dialect
    columns = {column.name: (column.sql(dialect), column.type) for column in made.values()}
    named = {column.name: column for given, column in made.items() if column.name != given.strip()}
    groups = tuple(names.get(name, name) for name in by)
    known = {**public, **{column.name: column.values for column in made.values() if column.values is not None}}
    return DerivedTable(
        source.with_columns(columns),
        groups,
        tuple(replace(ask, measure=ask.measure.renamed(names)) for ask in asks),
        {name: known[name] for name in groups if name in known},
        {**source.schema, **{name: column.type for name, column in named.items()}},
        tuple(dict.fromkeys(reading for column in made.values() for reading in column.readings)),
        tuple(sorted((name, column.text) for name, column in named.items())),
    )
