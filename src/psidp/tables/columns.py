"""Which columns a question may use, as values, groups or units of privacy. Refusals depend on the schema alone.

Units of privacy are named by one column, by several together, or by none where every row is a unit. A row belongs to a
unit where every column of it has a value; other rows do not count. Engines group and join by the columns themselves, so
that two pairs are one unit only where both values are the same.
"""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

from psidp.tables.types import Type

__all__ = ["check_key", "check_unit", "meant", "need_column", "need_number", "some_names", "unit_columns"]

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

UNIT_KINDS = ("integer", "text", "decimal", "date", "timestamp", "time", "boolean", "uuid", "binary", "inet", "macaddr")
"""Types of a unit's column. Others, JSON among them, are stored in another form than they are compared in."""


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


def unit_columns(unit: str | Sequence[str] | None) -> tuple[str, ...]:
    """The names of a unit's columns; none where every row is a unit.

    Examples:
        >>> unit_columns(["carrier", "day"]), unit_columns("patient_id"), unit_columns(None)
        (('carrier', 'day'), ('patient_id',), ())
    """
    if unit is None or isinstance(unit, str):
        return () if unit is None else (unit,)
    columns = tuple(unit) if isinstance(unit, list | tuple) else ()
    if not columns or not all(isinstance(name, str) for name in columns) or len(set(columns)) < len(columns):
        raise TypeError(
            "unit (column that names units of privacy) must be the name of a column, different names of several, or "
            f"None where every row is one, got unit={unit!r}."
        )
    return columns


def check_unit(columns: Sequence[str], schema: Mapping[str, Type]) -> None:
    """Refuse columns that are missing, and types whose values are not told apart in one way only."""
    for name in columns:
        kind = need_column(name, schema, "unit")
        if kind.kind == "float":
            raise TypeError(
                f"unit must be a column of whole numbers, text or the like, got {name!r} of {kind}. Give a view in "
                "which it is one of these."
            )
        if kind.kind not in UNIT_KINDS:
            raise TypeError(
                "unit must be a column of whole numbers, text, decimals, dates, times, truth values, UUIDs, bytes or "
                f"addresses, got {name!r} of {kind}: other types are not told apart in one way only."
            )


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
