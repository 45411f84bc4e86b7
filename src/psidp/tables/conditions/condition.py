"""Which rows a question is about, and columns that it derives: SQL text, read once, checked by schema alone.

A condition looks at one row at a time, or units could sway others' rows. And it cannot fail on any row: whether
1/(patient_id - 7) > 0 fails tells, at no cost, whether patient 7 is there. So it is made of types and operations in a
list (`tree`), each of which has a value for every row on every engine.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from psidp.errors import MissingExtraError
from psidp.tables.conditions.readings import Reading
from psidp.tables.conditions.text import quoted, read_words, shorten
from psidp.tables.conditions.tree import Joined, Literal, Value
from psidp.tables.engines.engine import Dialect
from psidp.tables.types import Type

if TYPE_CHECKING:
    from psidp.tables.conditions.reader import Reader

__all__ = ["Condition", "Derived", "derived_columns"]

LONGEST_NAME = 63
"""Bytes of a name that PostgreSQL keeps; what is longer would be cut, and might meet another."""

DEFINING = re.compile(r"[(<>=!]|\b(?:case|not|and|or|is|in|like|between)\s", re.IGNORECASE)
"""What a definition has and few names have: a call, CASE, or a condition such as "delay > 15"."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on single rows.

    Args:
        text: the condition as SQL text in one form of blanks and quotes; reads as the same condition. value: its tree.
        readings: as what it reads columns without a type.
    """

    text: str
    value: Value
    readings: tuple[Reading, ...] = ()

    @classmethod
    def parse(cls, text: Any, schema: Mapping[str, Type], untyped: Iterable[str] = (), role: str = "where") -> Self:
        """A condition such as "age >= 18 and ward in ('A', 'B')", or a list of them that must all hold.

        Args:
            text: SQL text, or a list of it; an empty list is true. schema: the columns' types. untyped: columns of text
                that are read in the type of the constants that they meet. role: what the text is, for refusals.

        Refused by schema and form alone: what is not true or false for each row, and what is not in the list of
        docs/tables.md, since it could fail on some row.
        """
        parts: list[tuple[str, Value]] = []
        seen: dict[Reading, None] = {}
        for given in _flat(text, role):
            words = read_words(given, schema, role)
            if words.name:
                name = shorten(words.name)
                raise ValueError(f"{role} must be a condition, and has no name of its own, got AS {name}.")
            reader = _reader(schema, untyped, role, given, seen)
            parts.append((words.canonical, reader.truth(reader.tree(words))))
        if len(parts) <= 1:
            return cls(*(parts or [("true", Literal(True))])[0], tuple(seen))
        joined = " and ".join(f"({part})" if " or " in part else part for part, _ in parts)
        return cls(joined, Joined("AND", tuple(value for _, value in parts)), tuple(seen))

    def sql(self, dialect: Dialect) -> str:
        """SQL text that stands anywhere: true, false, or NULL where it is not known, as in SQL. NaN is as in Python."""
        return self.value.sql(dialect)


@dataclass(frozen=True, slots=True)
class Derived:
    """A column that is made of each row's own values, such as month(visited).

    Args:
        name: of the column. text: its definition, in one form of blanks and quotes. value: its tree. readings: as what
            it reads columns without a type.
    """

    name: str
    text: str
    value: Value
    readings: tuple[Reading, ...] = ()

    @classmethod
    def parse(cls, text: str, schema: Mapping[str, Type], untyped: Iterable[str] = (), role: str = "by") -> Self:
        """A column such as "month(visited)" or "left(zip, 2) as area"; its name is its definition by default."""
        if not isinstance(text, str):
            raise TypeError(_wanted(role, '"month(visited)"', text))
        seen: dict[Reading, None] = {}
        words, reader = read_words(text, schema, role), _reader(schema, untyped, role, text, seen)
        name = words.name or text.strip()
        if not len(name.encode(errors="replace")) <= LONGEST_NAME:
            raise ValueError(
                f"{role} must give a derived column a name of at most {LONGEST_NAME} letters, such as "
                f'"left(zip, 2) as area", got {shorten(name)!r}.'
            )
        if name.casefold() in map(str.casefold, schema):  # DuckDB and Spark would read the other column
            raise _taken(role, name)
        value = reader.value(reader.tree(words))
        canonical = f"{words.canonical} as {quoted(words.name)}" if words.name else words.canonical
        return cls(name, canonical, value, tuple(seen))

    @property
    def type(self) -> Type:
        """What the column holds."""
        return self.value.type

    @property
    def values(self) -> tuple[Any, ...] | None:
        """All values of the column where its definition says them: a month is 1 to 12, whatever the rows hold."""
        return self.value.values

    def sql(self, dialect: Dialect) -> str:
        """SQL text of the column, which fails on no row."""
        return self.value.sql(dialect)


NOTHING: Mapping[str, Derived] = MappingProxyType({})


def derived_columns(
    names: Iterable[str],
    schema: Mapping[str, Type],
    untyped: Iterable[str] = (),
    role: str = "by",
    others: Mapping[str, Derived] = NOTHING,
) -> dict[str, Derived]:
    """Those of some names that are definitions rather than names of columns, made into derived columns.

    Args:
        role: what the names are, for refusals. others: derived columns of the same question, whose names are taken.
    """
    found: dict[str, Derived] = {}
    for given in names:
        if given in schema or not (isinstance(given, str) and DEFINING.search(given)):
            continue
        made = Derived.parse(given, schema, untyped, role)
        for other in (*found.values(), *others.values()):
            same = (made.name, made.value) == (other.name, other.value)
            if made.name.casefold() == other.name.casefold() and not same:
                raise _taken(role, made.name)
        found[given] = made
    return found


def _reader(
    schema: Mapping[str, Type], untyped: Iterable[str], role: str, text: str, seen: dict[Reading, None]
) -> "Reader":
    """What reads a text; sqlglot is loaded where there is one to read."""
    try:
        from psidp.tables.conditions.reader import Reader
    except ImportError:
        raise MissingExtraError("sqlglot", "db") from None
    return Reader(schema, frozenset(untyped), role, text, seen)


def _taken(role: str, name: str) -> ValueError:
    return ValueError(
        f"{role} must give a derived column a name that no other has, got {name!r}. Large and small letters are alike."
    )


def _wanted(role: str, example: str, given: Any) -> str:
    return (
        f"{role} must be SQL text such as {example}, got {type(given).__name__}. Expressions of Ibis and functions are "
        'not read: ibis._.age >= 18 is written "age >= 18".'
    )


def _flat(text: Any, role: str) -> list[str]:
    """The texts of a list, of lists in it too; one text is a list of one."""
    if isinstance(text, list | tuple):
        return [part for given in text for part in _flat(given, role)]
    if not isinstance(text, str):
        raise TypeError(_wanted(role, "\"age >= 18 and ward in ('A', 'B')\"", text))
    return [text]
