"""Column types: as what a column is read. Text without a type becomes numbers or dates; some types make groups.

Which type a column has comes from a declaration or from the use, never from the rows; what does not read so is missing.

The columns of groups are read so that an engine's groups and Python's keys are one to one. Where an engine takes two
values for one (text of a collation that ignores case) it shows one of them, and which one depends on its rows; where
Python takes two for one (instants finer than a microsecond) one total hides the other. One unit could so move a group
by all it holds. And a value that Python cannot hold (a date that is infinite) would be an error that speaks of a row.
"""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from math import isfinite
from typing import Any

from psidp.curator.row_sql import ibis_library, real, usable

__all__ = [
    "TYPES",
    "check_kind",
    "has_columns",
    "key_types",
    "merging",
    "read_as",
    "read_kind",
    "with_keys",
    "with_types",
    "without_words",
]

TYPES = ("string", "int64", "float64", "boolean", "date", "timestamp")
"""What can be declared."""

WHOLE = r"^ *[+-]?[0-9]{1,19}(\.0*)? *$"
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}($|[ T])"
INSTANT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]*)?)?)?(Z|[+-][0-9]{2}:?[0-9]{2})?$"
KEYS = ((bool, "boolean"), (int, "int64"), (datetime.datetime, "timestamp"), (datetime.date, "date"))

KINDS: tuple[tuple[str, tuple[type, ...], str], ...] = (
    ("is_boolean", (bool,), "True or False"),
    ("is_integer", (int,), "a whole number"),
    ("is_string", (str,), "text"),
    ("is_date", (datetime.date,), "a datetime.date"),
    ("is_timestamp", (datetime.datetime,), "a datetime.datetime"),
    ("is_decimal", (Decimal, int), "a decimal.Decimal"),
)

ALIKE = (("a", "A"), ("a", "a "), ("a", "\u00e1"), ("\u00e9", "e\u0301"), ("ss", "\u00df"), ("ab", "a-b"), ("1", "01"))
"""Texts that some collation takes for one: by case, blanks, accents, composition, letters, punctuation, digits."""

FINEST = 6
"""Digits of a second that Python's instants have."""


def has_columns(table: Any, by: Any, asks: Iterable[Any]) -> bool:
    """Whether a table has all columns that make groups and that aggregates are about, so that none is derived."""
    names = by if isinstance(by, list | tuple) else () if by is None else (by,)
    about = [name for a in asks if (name := getattr(a, "column", None)) is not None]
    return all(isinstance(name, str) and name in table.columns for name in (*names, *about))


def with_types(table: Any, types: Mapping[str, str]) -> Any:
    """The table with some columns of text read as these types."""
    read = {name: read_as(table[name], kind) for name, kind in types.items() if kind != "string"}
    return table.mutate(**read) if read else table


def without_words(table: Any, names: Iterable[str], missing: str | Sequence[str]) -> Any:
    """The table in whose columns of text these words stand for a missing value; row by row."""
    words = [missing] if isinstance(missing, str) else missing if isinstance(missing, list | tuple) else []
    texts = [name for name in table.columns if name in set(names) and table[name].type().is_string()]
    if not (words and all(isinstance(word, str) for word in words)):
        raise TypeError(
            f"missing (text that stands for a missing value) must be text or a list of it, got {missing!r}."
        )
    if not texts:
        raise ValueError(
            "missing must be for text of a .csv file or a pandas frame: other tables have NULL of their own."
        )
    return table.mutate(**{name: ibis_library().cases((table[name].notin(words), table[name])) for name in texts})


def read_as(column: Any, kind: str) -> Any:
    """A column of text as this type; what does not read so is NULL.

    A number may have an exponent; true is 1 and false is 0. A whole number may end in .0. Dates and times are those of
    ISO 8601, with a blank or a T between; the date of a time is its day.
    """
    ibis = ibis_library()
    if kind == "float64":
        return ibis.coalesce(column.try_cast("float64"), _truth(column).cast("float64"))
    if kind == "int64":
        return ibis.cases((column.re_search(WHOLE), column.try_cast("int64")))
    if kind == "boolean":
        return _truth(column) == ibis.literal(1, "int8")
    if kind == "date":
        return ibis.cases((column.re_search(DAY), column.left(10).try_cast("date")))
    return ibis.cases((column.re_search(INSTANT), column.try_cast("timestamp")))


def read_kind(word: str) -> str:
    """The type in which a column of text is read where it meets this bare word: numbers, dates, truth values, text."""
    if word.lower() in ("true", "false"):
        return "boolean"
    with suppress(ValueError):
        if isfinite(float(word)):
            return "float64"
    with suppress(ValueError):
        datetime.datetime.fromisoformat(word)
        return "timestamp"
    return "string"


def key_types(groups: Iterable[Sequence[Any]], by: Sequence[str], untyped: Iterable[str]) -> dict[str, str]:
    """The types in which untyped columns are compared with groups: those of the groups, where all have one."""
    columns = dict(zip(by, zip(*groups, strict=True), strict=False))
    kinds = {name: _key_type([value for value in columns.get(name, ()) if value is not None]) for name in untyped}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def _key_type(values: Sequence[Any]) -> str | None:
    """What all values are, if that is not text."""
    for type_, kind in KEYS:
        if values and all(isinstance(value, type_) for value in values):
            return kind
    return None


def _truth(column: Any) -> Any:
    """1 for true, 0 for false."""
    ibis = ibis_library()
    one, zero = (ibis.literal(value, "int8") for value in (1, 0))
    return ibis.cases(
        (column.isin(["true", "True", "TRUE", "1"]), one), (column.isin(["false", "False", "FALSE", "0"]), zero)
    )


def check_kind(name: str, kind: Any) -> tuple[tuple[type, ...], str]:
    """Python's types for the keys of a column and what they are called; or the refusal of one that makes no groups."""
    for test, types, words in KINDS:
        if getattr(kind, test)():
            return types, words
    advice = (
        "Use ask.histogram for numbers." if kind.is_floating() else "Use text, whole numbers, dates or truth values."
    )
    raise TypeError(f"column {name!r} of type {kind} cannot make groups. {advice}")


def with_keys(rows: Any, by: Sequence[str]) -> Any:
    """The rows whose keys Python can hold, keys in the form in which Python tells them apart. Row by row."""
    many = rows.get_backend().name == "postgres"
    plain = {name: kind for name in by if (kind := _plain(rows[name].type(), many)) != rows[name].type()}
    wide = [rows[name].isnull() | _narrow(rows[name]) for name in plain if _wide(rows[name].type())]
    rows = rows.filter(wide) if wide else rows
    rows = rows.mutate(**{name: _cast(rows[name], kind) for name, kind in plain.items()}) if plain else rows
    held = [rule for name in by if (rule := _held(rows[name])) is not None]
    return rows.filter(held) if held else rows


def _cast(column: Any, kind: Any) -> Any:
    """The column in this type; a decimal only where it fits."""
    if not kind.is_decimal():
        return column.cast(kind)
    return ibis_library().cases((_narrow(column), column.cast(kind)))


def _narrow(column: Any) -> Any:
    """Whether a whole number of 128 bits has 38 digits: DuckDB's, which Ibis takes for a decimal, may have 39."""
    return column.cast("float64").between(real(-9.9e37), real(9.9e37))


def merging(rows: Any, texts: Sequence[str]) -> Any:
    """One row that says of each column of text whether the engine takes different texts for one; reads no row.

    MAX over no rows is NULL of the column's own type and collation.
    """
    ibis = ibis_library()
    none = rows.filter(ibis.literal(False))
    empty = none.aggregate(**{f"k{i}": none[name].max() for i, name in enumerate(texts)})
    return empty.select(
        **{f"k{i}": ibis.or_(*(empty[f"k{i}"].fill_null(a) == b for a, b in ALIKE)) for i in range(len(texts))}
    )


def _plain(kind: Any, many: bool) -> Any:
    """Instants no finer than a microsecond; and where text has many types (padded, enumerated, of no case), the plain.

    Ibis knows one type of text and leaves out a cast to it, unless one of the two is told to hold no NULL.
    """
    if kind.is_string():
        return kind.copy(length=None, nullable=not kind.nullable) if many else kind
    if _wide(kind):
        return kind.copy(nullable=not kind.nullable)
    return kind.copy(scale=FINEST) if kind.is_timestamp() and (kind.scale or 0) > FINEST else kind


def _wide(kind: Any) -> bool:
    """Whether Ibis may take a whole number of 128 bits for it."""
    return bool(kind.is_decimal()) and kind.precision == 38 and kind.scale == 0


def _held(column: Any) -> Any:
    """Whether Python can hold a value, or None where it always can."""
    kind = column.type()
    if kind.is_decimal():
        return column.isnull() | usable(column)
    if not (kind.is_date() or kind.is_timestamp()):
        return None
    zoned = kind.is_timestamp() and kind.timezone is not None  # another zone may lie a day further
    ends = ("0001-01-02", "9999-12-30") if zoned else ("0001-01-01", "9999-12-31")
    times = (" 00:00:00", " 23:59:59.999999") if kind.is_timestamp() else ("", "")
    low, high = (
        ibis_library().literal(day + time + ("+00:00" if zoned else "")).cast(kind)
        for day, time in zip(ends, times, strict=True)
    )
    return column.isnull() | column.between(low, high)
