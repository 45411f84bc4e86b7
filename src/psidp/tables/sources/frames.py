"""Frames of pandas and Polars as Arrow tables, by their types alone: no cell decides the type of its column.

In pandas one cell decides whether a column holds whole numbers, fractions, truth values, instants, text or Python
objects. All of these are text here, which a question reads as text or as the numbers or dates it asks for: one rule,
whatever the rows hold. Each object becomes text by itself; objects that are not text, numbers, dates or the like
are missing.
"""

import datetime
from collections.abc import Collection, Iterable
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from psidp.errors import EngineError

__all__ = ["arrow_frame", "readable"]

GUESSING = ("CSV SCAN", "NDJSON SCAN", "JSON SCAN")
"""Parts of a plan of Polars in which types are guessed from rows."""

LONG = 2.0**63
"""Fractions below this that are whole are whole numbers."""

WIDEST = 1024
"""Bits of a whole number that has a double near it."""


def arrow_frame(source: Any, declared: Collection[str]) -> tuple[Any, frozenset[str]]:
    """The frame as Arrow has it, and its columns of text that may be read as other types.

    Args:
        source: a frame of pandas or Polars, or a table or batch of Arrow.
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
        "the table must be a path, a pandas, Polars or Arrow frame, or with name= a connection of DuckDB, psycopg or "
        f"Spark, got {type(source).__name__}.{advice}"
    )


def _total(table: Any, untyped: frozenset[str]) -> tuple[Any, frozenset[str]]:
    """The table with columns that DuckDB reads without a failure by row; a column of type null is text without a
    type."""
    import pyarrow as pa

    columns = [readable(column) for column in table.columns]
    empty = {name for name, column in zip(table.column_names, columns, strict=True) if pa.types.is_null(column.type)}
    columns = [column.cast(pa.string()) if pa.types.is_null(column.type) else column for column in columns]
    return pa.Table.from_arrays(columns, table.column_names), untyped | empty


def readable(column: Any) -> Any:
    """A column that DuckDB reads without a failure by row; its type follows from the type that it had.

    DuckDB multiplies times of seconds or milliseconds beyond 64 bits, fails on text that is not UTF-8, and does not
    know some types of numbers. Of a list or a record a question sees only whether it is missing; no more is kept.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit in ("s", "ms"):
        return _micros(column)
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_decimal256(kind):
        return column.cast(pa.float64())
    if pa.types.is_nested(kind):
        empty = pa.scalar({} if pa.types.is_struct(kind) else [None] * getattr(kind, "list_size", 0), kind)
        return pc.if_else(column.is_valid(), empty, pa.scalar(None, kind))
    if _is_text(column) and not _is_valid(column):
        return _texts(column.cast(pa.large_binary()).to_pylist()).cast(kind)
    return column


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
    """A Python object as text that depends on nothing else; None where it is missing or has no text of its own."""
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
        if float.is_integer(value) and abs(value) < LONG:
            return int.__repr__(int(value))  # pandas makes fractions of whole numbers where one is missing
        text = float.__repr__(value)
        return text if text != "nan" else None
    if issubclass(kind, bytes):
        return bytes.decode(value, "utf-8", "backslashreplace")
    if issubclass(kind, datetime.datetime):
        return _instant(value)
    if issubclass(kind, datetime.date):
        return datetime.date.isoformat(value)
    if issubclass(kind, Decimal):
        return Decimal.__str__(value) if not Decimal.is_nan(value) else None
    if issubclass(kind, UUID):
        return UUID.__str__(value)
    if issubclass(kind, np.integer | np.floating):
        return _text(value.item(), float if issubclass(kind, np.floating) else int)
    return str(value) if kind.__module__.split(".")[0] == "pandas" and not hasattr(value, "iloc") else None


def _instant(value: datetime.datetime) -> str:
    """An instant to the microsecond; one with a zone in UTC. As Arrow writes a column of them."""
    zoned = value.tzinfo is not None
    plain = value.astimezone(datetime.UTC).replace(tzinfo=None) if zoned else value
    return datetime.datetime.isoformat(plain, " ", "microseconds") + "Z" * zoned


def _from_pandas(source: Any, declared: Collection[str]) -> tuple[Any, frozenset[str]]:
    """Every column by its dtype; the index is no column."""
    import pyarrow as pa

    names = [str(name) for name in source.columns]
    series = [source.iloc[:, i] for i in range(len(names))]
    columns = [_column(one, name in declared) for name, one in zip(names, series, strict=True)]
    untyped = {
        name for name, one, column in zip(names, series, columns, strict=True) if _is_text(column) or _is_plain(one)
    }
    return pa.Table.from_arrays(columns, names), frozenset(untyped)


def _is_plain(series: Any) -> bool:
    """Whether it holds truth values, numbers or instants, which one cell would make another type of them."""
    dtype = series.dtype
    numpy = isinstance(dtype, np.dtype) or type(dtype).__name__ == "DatetimeTZDtype"  # pandas' instants with a zone
    return numpy and dtype.kind in "biufM"


def _column(series: Any, declared: bool) -> Any:
    """A column in the type that its dtype has in Arrow, fractions as doubles; text where it has none, and instants."""
    import pyarrow as pa

    typed = series.dtype != object and str(series.dtype) != "category" and (_is_plain(series) or not declared)
    typed = typed and getattr(series.dtype, "kind", "") != "m"  # spans of time are text, as the objects are
    try:
        kind = pa.Array.from_pandas(series.iloc[:0]).type if typed else None
        if kind is not None and not isinstance(kind, pa.BaseExtensionType):
            column = pa.Array.from_pandas(series)
            if _is_plain(series) and pa.types.is_timestamp(kind):
                return _instants(column)
            return column.cast(pa.float64()) if pa.types.is_floating(kind) else column
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError):
        pass
    return _texts(series)


def _instants(column: Any) -> Any:
    """A column of instants as `_instant` writes each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    zone = column.type.tz and "UTC"
    column = readable(column)
    finest = column.cast(pa.timestamp(column.type.unit, zone))
    return pc.floor_temporal(finest, unit="microsecond").cast(pa.timestamp("us", zone)).cast(pa.string())


def _texts(values: Iterable[Any]) -> Any:
    import pyarrow as pa

    return pa.array([text_of(value) for value in values], pa.string())


def _is_text(column: Any) -> bool:
    import pyarrow as pa

    kind = column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _collected(source: Any) -> Any:
    """A lazy frame's rows, unless Polars guesses their types. Its error messages are withheld, they may quote a row."""
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
    """Arrow's columns, and text for Python objects and numbers of 128 bits, which Arrow does not hold."""
    objects = [name for name, kind in source.schema.items() if str(kind) in ("Object", "Int128", "UInt128")]
    arrow = source.drop(objects).to_arrow()
    for name in objects:
        arrow = arrow.append_column(name, _texts(source[name].to_list()))
    return arrow.select(source.columns), frozenset(objects)
