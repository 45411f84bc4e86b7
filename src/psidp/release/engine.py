"""Engine: where the table lives. Opens files, frames and databases as Ibis tables, and reads exact totals from them."""

import datetime
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar

from psidp.errors import EngineError, MissingExtraError
from psidp.release.cell import ibis_library
from psidp.release.key_column import merging
from psidp.release.native import Native, native_types

__all__ = ["Engine", "open_table"]

READERS = {".parquet": "read_parquet", ".csv": "read_csv"}
FILES = {".duckdb", ".db"}

Answered = TypeVar("Answered")


class Engine:
    """Runs expressions where the table is. What an engine says when it fails stays there: it may speak of the data."""

    def __init__(self, table: Any) -> None:
        self.backend = table.get_backend()
        self._exact: set[str] = set()

    @property
    def name(self) -> str:
        """duckdb, postgres, pyspark, ..."""
        return str(self.backend.name)

    @property
    def narrow(self) -> bool:
        """Whether a sum of 64-bit integers may overflow, as on Spark; elsewhere sums are wider than their terms."""
        return self.name == "pyspark"

    def dispose(self) -> None:
        """Close the connection; a Spark session goes on."""
        _closed(self.backend)

    def progress(self) -> float | None:
        """Percent of the running query that is done, where the engine says so."""
        if self.name != "duckdb":
            return None
        percent = float(self.backend.con.query_progress())
        return percent if 0.0 <= percent <= 100.0 else None

    def sql(self, expression: Any) -> str:
        """The text that will run."""
        return str(self.backend.compile(expression, pretty=True))

    def check_keys(self, rows: Any, by: Sequence[str]) -> None:
        """Refuse a column of text in which the engine takes different texts for one; reads no row."""
        texts = [name for name in by if rows[name].type().is_string() and name not in self._exact]
        for name, merges in zip(texts, self.rows(merging(rows, texts))[0] if texts else (), strict=True):
            if merges:
                raise ValueError(
                    f"column {name!r} cannot make groups: the database takes different texts in it for one (by case, "
                    "accents or blanks), and the text it shows depends on the rows. Give a view in which the column is "
                    "plain text, such as lower(...) under the database's binary collation."
                )
        self._exact |= set(texts)

    def rows(self, expression: Any) -> list[tuple[Any, ...]]:
        """All rows of a small result, as Python values."""
        return _silenced(self.name, lambda: self._rows(expression))

    def native_types(self, table: Any, names: Sequence[str]) -> dict[str, Native]:
        """What the engine itself calls the types of columns; reads no row."""
        return _silenced(self.name, lambda: native_types(table, names))

    def _rows(self, expression: Any) -> list[tuple[Any, ...]]:
        if self.name == "pyspark":
            frame = self.backend.raw_sql(self.backend.compile(expression))
            local = [field.dataType.typeName() == "timestamp" for field in frame.schema.fields]
            return [
                tuple(_instant(value) if here else value for value, here in zip(row, local, strict=True))
                for row in frame.collect()
            ]
        if self.name == "postgres":
            with closing(self.backend.raw_sql(self.backend.compile(expression))) as cursor:
                found = [tuple(row) for row in cursor.fetchall()]
            with suppress(Exception):
                self.backend.con.commit()
            return found
        table = self.backend.to_pyarrow(expression)
        return [tuple(row.values()) for row in table.to_pylist()]


def _instant(value: Any) -> Any:
    """What Spark shows in this process's zone, where an hour comes twice when clocks go back, in UTC."""
    return None if value is None else value.astimezone(datetime.UTC).replace(tzinfo=None)


def open_table(source: Any, *, name: str | None = None, engine: str | None = None) -> Any:
    """The Ibis table behind a file, a frame or a database.

    Args:
        source: an Ibis table; a .parquet, .csv or .duckdb file; a pandas, Polars or Arrow frame; or, with `engine`, the
            name of a table in it, table or schema.table.
        name: which table of a .duckdb file.
        engine: postgresql://user@host/database, or spark://host:port, spark://local for a session in this process.
    """
    ibis = ibis_library()
    if isinstance(source, ibis.Table):
        return source
    if engine is not None:
        return _in_database(ibis, engine, str(source))
    if isinstance(source, str | Path):
        return _in_file(ibis, Path(source), name)
    return _frame(ibis, source)


def _in_file(ibis: Any, path: Path, name: str | None) -> Any:
    """A table that DuckDB reads from a file."""
    kind = path.suffix.lower()
    if kind not in READERS and kind not in FILES:
        raise ValueError(f"the table must be a .parquet, .csv or .duckdb file, got {str(path)!r}.")
    if kind not in READERS and name is None:
        raise ValueError(f"name (which table of the file) must be given for {str(path)!r}.")
    if not path.is_file() and not (kind == ".parquet" and "*" in path.name):
        raise ValueError(f"the table must be a file that exists, got {str(path)!r}.")
    if kind in READERS:
        return _read(ibis.duckdb.connect(), path)
    return _named(ibis.duckdb.connect(str(path), read_only=True), str(name))


def _read(connection: Any, path: Path) -> Any:
    """A file as a view that bears its name, the same whenever it is opened. Lines of CSV that do not fit the types of
    the first are left out without a word: a complaint would quote them."""
    kind, spark = path.suffix.lower(), connection.name == "pyspark"
    name = f"file_{str(path).encode().hex()}" if spark else str(path)
    more = {"ignore_errors": True} if kind == ".csv" and not spark else {}
    with suppress(Exception):
        return getattr(connection, READERS[kind])(str(path), table_name=name, **more)
    _closed(connection)
    raise ValueError(f"the table must be a {kind} file that the engine can read, got {str(path)!r}.")


def _in_database(ibis: Any, engine: str, name: str) -> Any:
    """A table of a server."""
    kind = engine.split("://", 1)[0]
    if kind in ("postgresql", "postgres"):
        _need("psycopg", "psycopg", "postgres")
        return _named(_silenced(kind, lambda: ibis.connect(engine)), name)
    if kind == "spark":
        _need("pyspark", "PySpark", "spark")
        return _named(_silenced(kind, lambda: _spark(ibis, engine)), name)
    raise ValueError(f"engine must be postgresql://... or spark://..., got {kind!r}.")


def _spark(ibis: Any, engine: str) -> Any:
    """A Spark connection; spark://local runs in this process."""
    from pyspark.sql import SparkSession  # type: ignore[import-not-found,unused-ignore]

    local = engine.removeprefix("spark://").strip("/") in ("local", "")
    builder = SparkSession.builder.master("local[*]" if local else engine)
    return ibis.pyspark.connect(builder.appName("psidp").getOrCreate())


def _silenced(engine: str, work: Callable[[], Answered]) -> Answered:
    """What the engine gives; or an error that has none of its words, which may quote a row or a password, nor the error
    it came from."""
    try:
        return work()
    except Exception as error:
        kind = type(error).__name__
    raise EngineError(engine, kind)


def _named(connection: Any, name: str) -> Any:
    """A table of a connection, as table or schema.table; files and views of Spark may be given by path."""
    path = Path(name)
    if connection.name == "pyspark" and path.suffix.lower() in READERS:
        return _read(connection, path)
    schema, _, rest = name.partition(".")
    for table, more in ((name, {}), (rest, {"database": schema})):
        with suppress(Exception):
            return connection.table(table, **more)
    _closed(connection)
    raise ValueError(f"the table must be one the engine has, table or schema.table, got {name!r}.")


def _closed(connection: Any) -> None:
    """End a connection of ours; a Spark session may be somebody else's and goes on."""
    if connection.name != "pyspark":
        with suppress(Exception):
            connection.disconnect()


def _frame(ibis: Any, source: Any) -> Any:
    """A pandas, Polars or Arrow frame, read by DuckDB where it lies."""
    arrow = source.to_arrow() if hasattr(source, "to_arrow") else source
    if not (hasattr(arrow, "schema") or hasattr(arrow, "dtypes")):
        raise TypeError(
            f"the table must be an Ibis table, a pandas, Polars or Arrow frame, or a path, got {type(source).__name__}."
        )
    connection = ibis.duckdb.connect()
    connection.con.register("frame", arrow)
    return connection.table("frame")


def _need(module: str, library: str, extra: str) -> None:
    """Refuse early what is not installed."""
    try:
        __import__(module)
    except ImportError:
        raise MissingExtraError(library, extra) from None
