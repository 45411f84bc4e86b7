"""Refusals of columns: names that a table does not have, and types that make no groups. From the schema alone."""

import datetime
from collections.abc import Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

from psidp.tables.types import Type

__all__ = ["check_key", "meant", "need_column", "need_number", "some_names"]

MOST_NAMED = 40
"""Columns that a refusal names."""

KEYS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "boolean": ((bool,), "True or False"),
    "integer": ((int,), "a whole number"),
    "text": ((str,), "text"),
    "date": ((datetime.date,), "a datetime.date"),
    "timestamp": ((datetime.datetime,), "a datetime.datetime"),
    "decimal": ((Decimal, int), "a decimal.Decimal"),
}
"""Python's types for the keys of a column, and what they are called."""


def need_column(name: Any, schema: Mapping[str, Type], role: str) -> Type:
    """The type of a column; refused where the table has none of this name."""
    if not isinstance(name, str) or name not in schema:
        raise ValueError(
            f"{role} must be a column of the table ({some_names(schema)}), got {name!r}.{meant(name, schema)}"
        )
    return schema[name]


def need_number(name: str, schema: Mapping[str, Type], statistic: str) -> None:
    """Refuse a column that holds no numbers."""
    kind = need_column(name, schema, "column")
    if not kind.numeric:
        raise TypeError(f"column {name!r} must hold numbers to have a {statistic}, got {kind}.")


def check_key(name: str, kind: Type) -> tuple[tuple[type, ...], str]:
    """Python's types for the keys of a column and what they are called; refused for a type that makes no groups."""
    if kind.kind in KEYS:
        return KEYS[kind.kind]
    advice = "Use ask.histogram for numbers." if kind.numeric else "Use text, whole numbers, dates or truth values."
    raise TypeError(f"column {name!r} of type {kind} cannot make groups. {advice}")


def meant(name: Any, names: Iterable[str]) -> str:
    """The question whether another name was meant, where one is near.

    Examples:
        >>> meant("carier", ["carrier", "origin"])
        " Did you mean 'carrier'?"
    """
    near = get_close_matches(name, list(names), 1) if isinstance(name, str) else []
    return f" Did you mean {near[0]!r}?" if near else ""


def some_names(schema: Iterable[str]) -> str:
    """Names of columns for a refusal; not all, where there are many."""
    names = list(schema)
    shown = ", ".join(name if len(name) <= 60 else f"{name[:60]}..." for name in names[:MOST_NAMED])
    return shown if len(names) <= MOST_NAMED else f"{shown}, and {len(names) - MOST_NAMED} more"
