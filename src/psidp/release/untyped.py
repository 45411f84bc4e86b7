"""Untyped columns: text of CSV files and of pandas frames, read as numbers, dates or truth values row by row.

Which type a column has comes from a declaration or from the use, never from the rows; what does not read so is missing.
"""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import Any

from psidp.release.cell import ibis_library

__all__ = ["TYPES", "key_types", "read_as", "read_for", "with_types"]

TYPES = ("string", "int64", "float64", "boolean", "date", "timestamp")
"""What can be declared."""

WHOLE = r"^ *[+-]?[0-9]{1,19}(\.0*)? *$"
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}($|[ T])"
INSTANT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]*)?)?)?(Z|[+-][0-9]{2}:?[0-9]{2})?$"
KEYS = ((bool, "boolean"), (int, "int64"), (datetime.datetime, "timestamp"), (datetime.date, "date"))


def with_types(table: Any, types: Mapping[str, str]) -> Any:
    """The table with some columns of text read as these types."""
    read = {name: read_as(table[name], kind) for name, kind in types.items() if kind != "string"}
    return table.mutate(**read) if read else table


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


def read_for(column: Any, word: str) -> Any:
    """A column of text in the type of the value that it is compared with; as text where that stands in quotes."""
    if word.lower() in ("true", "false"):
        return read_as(column, "boolean")
    with suppress(ValueError):
        if isfinite(float(word)):
            return read_as(column, "float64")
    with suppress(ValueError):
        datetime.datetime.fromisoformat(word)
        return read_as(column, "timestamp")
    return column


def key_types(keys: Iterable[Sequence[Any]], by: Sequence[str], untyped: Iterable[str]) -> dict[str, str]:
    """The types in which untyped columns are read to be compared with keys: those of the keys, where all have one."""
    columns = dict(zip(by, zip(*keys, strict=True), strict=False))
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
