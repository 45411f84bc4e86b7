"""Frames of pandas and Polars as Arrow tables, by their types alone: no cell decides what its column is.

pandas keeps columns of mixed values as Python objects. Each object becomes text by itself; what is no text, number,
date or the like is missing. A question then reads the column as text, or as the numbers or dates it asks for.
"""

import datetime
from collections.abc import Collection, Iterable
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from psidp.errors import EngineError

__all__ = ["arrow_frame"]

GUESSING = ("CSV SCAN", "NDJSON SCAN", "JSON SCAN")
"""Parts of a plan of Polars in which types are guessed from rows."""

WIDEST = 1024
"""Bits of a whole number that has a double near it."""


def arrow_frame(source: Any, declared: Collection[str]) -> tuple[Any, frozenset[str]]:
    """The frame as Arrow has it, and its columns of text that may be read as other types.

    Args:
        source: a frame of pandas or Polars, or whatever DuckDB reads where it lies.
        declared: columns of a pandas frame whose types are declared, and which are made text first.
    """
    if hasattr(source, "iloc") and hasattr(source, "dtypes"):
        return _total(*_from_pandas(source, declared))
    if hasattr(source, "collect_schema") and hasattr(source, "explain"):
        return _total(*_from_polars(_collected(source)))
    if hasattr(source, "to_arrow"):
        return _total(*_from_polars(source))
    if hasattr(source, "combine_chunks") or hasattr(source, "from_struct_array"):  # Arrow's table and batch
        return _total(source, frozenset())
    advice = " Call its to_table() first." if hasattr(source, "to_table") else ""
    raise TypeError(
        "the table must be an Ibis table, a pandas, Polars or Arrow frame, or a path, got "
        f"{type(source).__name__}.{advice}"
    )


def _total(table: Any, untyped: frozenset[str]) -> tuple[Any, frozenset[str]]:
    """The table with columns that DuckDB reads without a failure by row: no times of seconds or milliseconds, which it
    multiplies beyond 64 bits, and no text that is no UTF-8, in a dictionary neither."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        kind = field.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
            table = table.set_column(i, field.name, table.column(i).cast(kind))
        if (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit in ("s", "ms"):
            table = table.set_column(i, field.name, _micros(table.column(i)))
        elif _is_text(table.column(i)) and not _is_valid(table.column(i)):
            table = table.set_column(i, field.name, _texts(table.column(i).cast(pa.large_binary()).to_pylist()))
    return table, untyped


def _micros(column: Any) -> Any:
    """Times in microseconds; those that they cannot hold are missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, times = column.type, 10**6 if column.type.unit == "s" else 10**3
    made = pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.duration("us")
    numbers = column.cast(pa.int64())
    held = pc.and_(pc.less_equal(numbers, 2**62 // times), pc.greater_equal(numbers, -(2**62) // times))
    return pc.multiply(pc.if_else(held, numbers, pa.scalar(None, pa.int64())), times).cast(made)


def _is_valid(column: Any) -> bool:
    """Whether all texts are UTF-8."""
    try:
        column.validate(full=True)
    except ValueError:
        return False
    return True


def text_of(value: Any) -> str | None:
    """A Python object as text that depends on nothing else; None where it is missing or says nothing."""
    try:
        return _text(value, type(value))
    except Exception:  # an object may do anything when asked for its text
        return None


def _text(value: Any, kind: type) -> str | None:
    if issubclass(kind, str):
        return str.encode(value, "utf-8", "backslashreplace").decode()
    if value is None or kind.__name__ in ("NAType", "NaTType"):
        return None
    if issubclass(kind, bool | np.bool_):
        return "true" if value else "false"
    if issubclass(kind, int):
        return int.__repr__(value) if int.bit_length(value) <= WIDEST else None
    if issubclass(kind, float):
        text = float.__repr__(value)
        return text if text != "nan" else None
    if issubclass(kind, bytes):
        return bytes.decode(value, "utf-8", "backslashreplace")
    if issubclass(kind, datetime.datetime):
        return datetime.datetime.isoformat(value, " ")
    if issubclass(kind, datetime.date):
        return datetime.date.isoformat(value)
    if issubclass(kind, Decimal):
        return Decimal.__str__(value) if not Decimal.is_nan(value) else None
    if issubclass(kind, UUID):
        return UUID.__str__(value)
    if issubclass(kind, np.integer | np.floating):
        return _text(value.item(), float if issubclass(kind, np.floating) else int)
    return str(value) if kind.__module__.split(".")[0] == "pandas" and not hasattr(value, "iloc") else None


def _from_pandas(source: Any, declared: Collection[str]) -> tuple[Any, frozenset[str]]:
    """Every column by its dtype; the index is no column."""
    import pyarrow as pa

    names = [str(name) for name in source.columns]
    columns = [_column(source.iloc[:, i], name in declared) for i, name in enumerate(names)]
    untyped = {name for name, column in zip(names, columns, strict=True) if _is_text(column)}
    return pa.Table.from_arrays(columns, names), frozenset(untyped)


def _column(series: Any, as_text: bool) -> Any:
    """A column in the type that its dtype has in Arrow; text where it has none."""
    import pyarrow as pa

    plain = series.dtype != object and str(series.dtype) != "category" and not as_text
    try:
        kind = pa.Array.from_pandas(series.iloc[:0]).type if plain else None
        if kind is not None and not pa.types.is_float16(kind) and not isinstance(kind, pa.BaseExtensionType):
            return pa.Array.from_pandas(series)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError):
        pass
    return _texts(series)


def _texts(values: Iterable[Any]) -> Any:
    import pyarrow as pa

    return pa.array([text_of(value) for value in values], pa.string())


def _is_text(column: Any) -> bool:
    import pyarrow as pa

    kind = column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _collected(source: Any) -> Any:
    """A lazy frame's rows, unless Polars guesses their types. What it says when it fails stays there."""
    plan = [line.strip().upper() for line in str(source.explain(optimized=False)).splitlines()]
    if any(line.startswith(GUESSING) for line in plan):
        raise ValueError(
            "a lazy frame must not be read by Polars' scan_csv or scan_ndjson, which guess types from some rows: one "
            "row could change how all are read. Give the path of the .csv file itself."
        )
    try:
        return source.collect()
    except Exception as error:
        kind = type(error).__name__
    raise EngineError("polars", kind)


def _from_polars(source: Any) -> tuple[Any, frozenset[str]]:
    """Arrow's columns, and text for Python objects, which Arrow does not hold."""
    objects = [name for name, kind in source.schema.items() if str(kind) == "Object"]
    arrow = source.drop(objects).to_arrow()
    for name in objects:
        arrow = arrow.append_column(name, _texts(source[name].to_list()))
    return arrow.select(source.columns), frozenset(objects)
