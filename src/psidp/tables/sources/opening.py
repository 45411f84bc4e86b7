"""The source behind a path, a frame, a connection or an address. Names and types are read, never rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from psidp.ledger.budget import shorten
from psidp.tables.engines.duckdb import DuckDB
from psidp.tables.engines.engine import Engine, quoted
from psidp.tables.engines.registry import engine_at, engine_of
from psidp.tables.sources.files import is_paths, open_files
from psidp.tables.sources.frames import arrow_frame
from psidp.tables.sources.source import Source
from psidp.tables.types import DECLARED, Type

__all__ = ["open_source"]


def open_source(
    table: Any,
    *,
    name: str | None = None,
    engine: str | None = None,
    types: Mapping[str, str] | None = None,
    missing: str | Sequence[str] | None = None,
) -> Source:
    """The table as a source.

    Guarantees:
        No row is read, and nothing that is refused depends on one.

    Args:
        table: a .parquet, .csv or .duckdb file; a folder of .parquet files, a pattern with stars or a list of files; a
            pandas, Polars or Arrow frame; a connection of DuckDB or psycopg or a Spark session, with `name`; or, with
            `engine`, the name of a table there, table or schema.table.
        name: which table of a .duckdb file or of a connection.
        engine: postgresql://user@host/database, or spark://host:port, spark://local for a session in this process.
        types: what columns of a .csv file or a pandas frame hold, such as {"age": "int64"}.
        missing: texts in them that stand for a missing value.
    """
    if engine is not None:
        source = _in_engine(engine_at(engine), str(table), shorten(Path(str(table).partition("?")[0]).name))
    elif is_paths(table):
        source = open_files(table, name)
    elif (opened := engine_of(table)) is not None:
        if name is None:
            raise ValueError("name (which table of the connection) must be given for a connection.")
        source = _in_engine(opened, name, shorten(name))
    else:
        source = _framed(table, types or {})
    try:
        return _declared(_without_words(source, missing), types or {})
    except (TypeError, ValueError):
        source.close()
        raise


def _in_engine(engine: Engine, table: str, name: str) -> Source:
    """A table of a database."""
    try:
        text, schema = engine.table(table)
        place = engine.place()
    except Exception:
        engine.close()
        raise
    at, of = (f" at {place}", f" of {place}") if place else ("", "")
    return Source(engine, text, schema, frozenset(), name, f"{table}{at}", f"{table}{of}")


def _framed(frame: Any, types: Mapping[str, str]) -> Source:
    """A frame in memory as a view; columns whose types one cell may change are text there."""
    arrow, untyped = arrow_frame(frame, types)
    engine = DuckDB.connect()
    _, cells = engine.register("cells", arrow)
    names = zip(cells, arrow.column_names, strict=True)  # DuckDB renames columns that differ by case alone
    untyped = frozenset(cell for cell, name in names if name in untyped)
    columns = ", ".join(_as_text(n, kind) if n in untyped else quoted(n) for n, kind in cells.items())
    text, schema = engine.view("frame", f"SELECT {columns} FROM cells")
    return Source(engine, text, schema, untyped, "", "a table in memory", "frame")


def _as_text(name: str, kind: Type) -> str:
    """A column as text; a fraction that is whole as the whole number that it may have been."""
    column = quoted(name)
    text = f"CAST({column} AS VARCHAR)"
    if kind.kind == "float" and kind.bits == 64:
        whole = f"CASE WHEN trunc({column}) = {column} THEN TRY_CAST({column} AS BIGINT) END"
        text = f"coalesce(CAST({whole} AS VARCHAR), {text})"
    return f"{text} AS {column}"


def _declared(source: Source, types: Mapping[str, str]) -> Source:
    """The same with the types of untyped columns declared."""
    strange = [name for name in types if name not in source.untyped]
    if strange:
        known = ", ".join(sorted(source.untyped)[:20]) or "none here"
        raise ValueError(
            f"types must name columns that have none of their own, of a .csv file or a pandas frame ({known}), "
            f"got {strange[0]!r}."
        )
    for name, kind in types.items():
        if kind not in DECLARED:
            raise ValueError(f"the type of column {name!r} must be one of {', '.join(DECLARED)}, got {kind!r}.")
    return source.reading(types)


def _without_words(source: Source, missing: str | Sequence[str] | None) -> Source:
    """The same with these words as missing values in the columns without a type, whatever they are read as later."""
    if missing is None:
        return source
    words = [missing] if isinstance(missing, str) else missing if isinstance(missing, list | tuple) else []
    if not (words and all(isinstance(word, str) for word in words)):
        raise TypeError(
            f"missing (text that stands for a missing value) must be text or a list of it, got {missing!r}."
        )
    if not source.untyped:
        raise ValueError(
            "missing must be for text of a .csv file or a pandas frame: other tables have NULL of their own."
        )
    dialect, listed = source.dialect, ", ".join(source.dialect.quote(word) for word in words)
    made = {
        n: (f"CASE WHEN {dialect.column(n)} NOT IN ({listed}) THEN {dialect.column(n)} END", source.schema[n])
        for n in source.untyped
    }
    return source.with_columns(made, untyped=source.untyped)
