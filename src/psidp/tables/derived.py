"""Derived columns of a question: "month(visited)" among its groups or measures becomes a column of the table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psidp.tables.ask import Ask
from psidp.tables.conditions import Condition, derived_columns
from psidp.tables.sources.source import Source
from psidp.tables.types import Type

__all__ = ["DerivedTable", "derived_table"]

Reading = tuple[str, str]
"""A column without a type, and as what it is read."""


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
    readings: tuple[Reading, ...] = ()
    definitions: tuple[tuple[str, str], ...] = ()

    def numbers(self, keys: Iterable[str]) -> dict[str, str]:
        """The columns without a type that measures read as numbers; `keys` tell units or groups apart and must not."""
        names = {name for ask in self.asks for name in ask.measure.columns if name in self.source.untyped}
        for name in keys:
            if name in names:
                raise ValueError(
                    f"column {name!r} has no type, and is asked for its numbers and for its units or groups at once. "
                    f'Declare what it holds: types={{{name!r}: "int64"}}, or --type {name}:int64.'
                )
        return dict.fromkeys(names, "float64")

    def read(self, where: Any, reads: Mapping[str, str]) -> tuple[Condition | None, Source, tuple[Reading, ...]]:
        """The condition, the rows that satisfy it with their columns read as asked, and how columns without a type are
        read. The condition goes first: it may take a column for something else than a measure does."""
        source, untyped = self.source, self.source.untyped
        rule = None if where is None else Condition.parse(where, self.schema, untyped)
        if rule is not None:
            source = source.filtered(rule.sql(source.dialect))
        keys = ((name, reads.get(name, "string")) for name in self.by if name in untyped)
        readings = dict.fromkeys((*self.readings, *keys, *(rule.readings if rule else ())))
        return rule, source.reading(reads), tuple(readings)


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
