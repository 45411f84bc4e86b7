"""Engine: where a table lives. Opens files, frames and databases by names and types alone, and runs queries there."""

import datetime
import json
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from psidp.curator.column_types import TYPES, merging, with_types
from psidp.curator.csv_file import CsvFile
from psidp.curator.frame import arrow_frame
from psidp.curator.native_types import Native, native_types, quoted
from psidp.curator.parquet_file import ParquetFile
from psidp.curator.row_sql import ibis_library
from psidp.curator.source_files import SourceFiles, is_sqlite, paths_in, source_files
from psidp.curator.whole_numbers import from_arrow, from_python
from psidp.errors import EngineError, MissingExtraError

__all__ = ["SPECIAL", "Engine", "Source", "close", "location", "open_source", "open_table", "pattern_of", "silenced"]

SPECIAL = "[*?"
"""DuckDB takes a path with one of these for a pattern of many files. Here a path means one file."""

READ, DATABASES = (".parquet", ".csv"), (".duckdb", ".db")
PROGRESS = ("SET enable_progress_bar = true", "SET enable_progress_bar_print = false", "SET progress_bar_time = 100")
"""DuckDB keeps count of how far a query is, and prints nothing."""
GUESSING = ("READ_CSV", "READ_JSON", "READ_NDJSON", "PANDAS_SCAN", "SNIFF")
"""Parts of a plan in which DuckDB guesses types from rows."""
FAILING = ("READ_PARQUET", "PARQUET_SCAN")
"""Parts of a plan that fail at a value which is not what the file declares."""
Answered = TypeVar("Answered")

NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Source:
    """An Ibis table, and those of its columns of text that are read as what a question takes them for."""

    table: Any
    untyped: frozenset[str] = NOTHING

    def declared(self, types: Mapping[str, str] | None) -> "Source":
        """The same with types of untyped columns declared."""
        types = types or {}
        strange = [name for name in types if name not in self.untyped]
        if strange:
            known = ", ".join(sorted(self.untyped)[:20]) or "none here"
            raise ValueError(
                f"types must name columns that have none of their own, of a .csv file or a pandas frame ({known}), "
                f"got {strange[0]!r}."
            )
        for name, kind in types.items():
            if kind not in TYPES:
                raise ValueError(f"the type of column {name!r} must be one of {', '.join(TYPES)}, got {kind!r}.")
        return Source(with_types(self.table, types), self.untyped - set(types))


def open_source(
    source: Any, *, name: str | None = None, engine: str | None = None, types: Mapping[str, str] | None = None
) -> Source:
    """The Ibis table behind a file, a frame or a database.

    Args:
        source: an Ibis table; a .parquet, .csv or .duckdb file; a folder of .parquet files, a pattern with stars or a
            list of files; a pandas, Polars or Arrow frame; or, with `engine`, the name of a table in it, table or
            schema.table.
        name: which table of a .duckdb file.
        engine: postgresql://user@host/database, or spark://host:port, spark://local for a session in this process.
        types: what columns of a .csv file or a pandas frame hold, such as {"age": "int64"}.
    """
    ibis = ibis_library()
    if isinstance(source, ibis.Table):
        _check_engine(str(source.get_backend().name))
        return Source(_without_guesses(source)).declared(types)
    if engine is not None:
        return Source(_in_database(ibis, engine, str(source))).declared(types)
    if isinstance(source, str | Path) or paths_in(source):
        one = isinstance(source, str | Path) and Path(source).is_file()
        files = None if one else source_files(source)
        return (_in_file(ibis, Path(source), name) if files is None else _in_files(ibis, files)).declared(types)
    return _framed(ibis, source, types or {}).declared(types)


def _framed(ibis: Any, source: Any, types: Mapping[str, str]) -> Source:
    """A frame in memory as a view; columns whose types one cell may change are text there, made when they are read."""
    frame, untyped = arrow_frame(source, types)
    connection = connect(ibis)
    connection.con.register("cells", frame)
    described = connection.con.execute("DESCRIBE cells").fetchall()
    columns = ", ".join(_as_text(name, kind) if name in untyped else quoted(name) for name, kind, *_ in described)
    connection.con.execute(f"CREATE VIEW frame AS SELECT {columns} FROM cells")
    return Source(connection.table("frame"), untyped)


def _as_text(name: str, kind: str) -> str:
    """A column in SQL as text; a fraction that is whole as the whole number that it may have been."""
    column = quoted(name)
    text = f"CAST({column} AS VARCHAR)"
    if kind == "DOUBLE":
        whole = f"CASE WHEN trunc({column}) = {column} THEN TRY_CAST({column} AS BIGINT) END"
        text = f"coalesce(CAST({whole} AS VARCHAR), {text})"
    return f"{text} AS {column}"


def open_table(source: Any, *, name: str | None = None, engine: str | None = None) -> Any:
    """The Ibis table behind a file, a frame or a database."""
    return open_source(source, name=name, engine=engine).table


def connect(ibis: Any, database: str = ":memory:", read_only: bool = False) -> Any:
    """A DuckDB of ours. What memory cannot hold goes to a folder that nobody else may enter, and that ends with it."""
    folder = tempfile.mkdtemp(prefix="psidp-")
    connection = ibis.duckdb.connect(database, read_only=read_only, temp_directory=folder)
    for setting in PROGRESS:
        connection.con.execute(setting)
    connection.spilled = weakref.finalize(connection, shutil.rmtree, folder, ignore_errors=True)
    return connection


def close(connection: Any) -> None:
    """End a connection of ours; a Spark session may be somebody else's and goes on."""
    if connection.name != "pyspark":
        with suppress(Exception):
            connection.disconnect()
    getattr(connection, "spilled", bool)()


def _in_file(ibis: Any, path: Path, name: str | None) -> Source:
    """A table that DuckDB reads from a file."""
    kind = path.suffix.lower()
    if kind not in READ and kind not in DATABASES:
        raise ValueError(f"the table must be a .parquet, .csv or .duckdb file, got {str(path)!r}.")
    if kind in DATABASES and name is None:
        raise ValueError(f"name (which table of the file) must be given for {str(path)!r}.")
    if not path.is_file():
        raise ValueError(f"the table must be a file that exists, got {str(path)!r}.")
    if kind in DATABASES and is_sqlite(path):
        _check_engine("sqlite")
    if kind in DATABASES:
        return Source(_without_guesses(_named(connect(ibis, str(path.resolve()), read_only=True), str(name))))
    if kind == ".csv":
        return _csv(ibis, [path.resolve()], str(path.resolve()))
    return Source(_parquet(ibis, str(path.resolve()), [path.resolve()]))


def _in_files(ibis: Any, files: SourceFiles) -> Source:
    """A table that DuckDB reads from several .parquet or .csv files."""
    if files.kind == ".csv":
        return _csv(ibis, files.paths, files.name)
    return Source(_parquet(ibis, files.name, files.paths))


def pattern_of(path: Path) -> str:
    """The pattern that this path alone matches.

    Examples:
        >>> pattern_of(Path("visits[1].parquet"))
        'visits[[]1].parquet'
    """
    text = str(path)
    if "\\" in text and any(letter in text for letter in SPECIAL):
        raise ValueError(f"a path must not have a backslash beside one of {SPECIAL}, got {text!r}. Rename the file.")
    return "".join(f"[{letter}]" if letter in SPECIAL else letter for letter in text)


def _csv(ibis: Any, paths: Sequence[Path], name: str) -> Source:
    """CSV files as a view that bears their name, the same whenever and from wherever it is opened; all of it text."""
    file, connection = CsvFile(*paths), connect(ibis)
    connection.con.register(name, file)
    return Source(connection.table(name), frozenset(file.names))


def _parquet(ibis: Any, name: str, paths: Sequence[Path]) -> Any:
    """Parquet files as a view that bears their name; names of folders make no columns."""
    patterns = [pattern_of(path) for path in paths]  # before a connection is open
    connection = connect(ibis)
    if not _alike(connection, patterns):
        close(connection)
        raise ValueError(
            f"several .parquet files must have the same columns of the same types, got {name!r}: a value that does not "
            "fit the first file's type would fail by row."
        )
    files = ", ".join("'" + pattern.replace("'", "''") + "'" for pattern in patterns)
    with suppress(Exception):
        connection.con.execute(
            f"CREATE VIEW {quoted(name)} AS SELECT * FROM read_parquet([{files}], hive_partitioning = false)"
        )
        connection.reread = partial(_through_arrow, connection, name, paths)
        return connection.table(name)
    close(connection)
    raise ValueError(f"the table must be a .parquet file that the engine can read, got {name!r}.")


def _through_arrow(connection: Any, name: str, paths: Sequence[Path]) -> None:
    """From now on the view reads the files through Arrow, columns in the types that they had; slower, and total."""
    columns = connection.con.execute(f"DESCRIBE {quoted(name)}").fetchall()
    casts = ", ".join(f"{_again(f'c{i}', kind)} AS {quoted(column)}" for i, (column, kind, *_) in enumerate(columns))
    places = ", ".join(f"c{i}" for i in range(len(columns)))  # names may differ by case alone
    connection.con.register("rows through Arrow", ParquetFile(*paths))
    connection.con.execute(
        f'CREATE OR REPLACE VIEW {quoted(name)} AS SELECT {casts} FROM "rows through Arrow" AS t({places})'
    )


def _again(column: str, kind: str) -> str:
    """A column of Arrow in the type that it had; spans of time are bytes to Arrow, and a question sees only whether
    one is missing."""
    if kind == "INTERVAL":
        return f"CASE WHEN {column} IS NOT NULL THEN INTERVAL 0 DAY END"
    return f"TRY_CAST({column} AS {kind})"


def _alike(connection: Any, patterns: list[str]) -> bool:
    """Whether all files have the same columns of the same types; asked of their footers."""
    types = (
        "list((name, type, type_length, repetition_type, num_children, converted_type, scale, precision, logical_type))"
    )
    files = f"SELECT file_name, {types} AS columns FROM parquet_schema(?) GROUP BY file_name"
    with suppress(Exception):
        ((kinds,),) = connection.con.execute(f"SELECT count(DISTINCT columns) FROM ({files})", [patterns]).fetchall()
        return bool(kinds <= 1)
    return True


def _without_guesses(table: Any) -> Any:
    """The table, unless DuckDB would guess its types from rows or fail at one; asked of the query's plan, also through
    views. The plan is not optimised, since that looks at the least and largest values of a file."""
    backend, plan = table.get_backend(), "[]"
    if backend.name == "duckdb":
        try:
            backend._run_pre_execute_hooks(table)  # frames and functions that the plan needs
            backend.con.execute("PRAGMA disable_optimizer")
            ((_, plan),) = backend.con.execute(f"EXPLAIN (FORMAT json) {backend.compile(table)}").fetchall()
        except Exception as error:
            plan = type(error).__name__
        finally:
            backend.con.execute("PRAGMA enable_optimizer")
        if not plan.startswith("["):
            raise ValueError(f"the table must be one that DuckDB can plan a query of, which fails with {plan}.")
    nodes = list(json.loads(plan))
    for node in nodes:
        if str(node["name"]).upper().startswith(GUESSING):
            raise ValueError(
                f"the table must not be read by DuckDB's {node['name']}, which guesses types from some rows: one row "
                "could change how all are read. Give the path of the .csv file, or the pandas frame, itself."
            )
        if str(node["name"]).upper().startswith(FAILING):
            raise ValueError(
                f"the table must not be read by DuckDB's {node['name']}, which fails at a value that is not what the "
                "file declares: the failure would speak of that row. Give the path of the .parquet file itself, or "
                "store the rows as a table of DuckDB."
            )
        nodes += node["children"]
    return table


def _in_database(ibis: Any, engine: str, name: str) -> Any:
    """A table of a server."""
    kind = engine.split("://", 1)[0]
    if kind in ("postgresql", "postgres"):
        _need("psycopg", "psycopg", "postgres")
        return _named(silenced(kind, lambda: ibis.connect(engine)), name)
    if kind == "spark":
        _need("pyspark", "PySpark", "spark")
        return _named(silenced(kind, lambda: _spark(ibis, engine)), name)
    _check_engine(kind)
    raise ValueError(f"engine must be postgresql://... or spark://..., got {kind!r}.")


def _check_engine(kind: str) -> None:
    """Refuse engines in which a row can make a query fail."""
    why = {
        "sqlite": "a column of SQLite holds values of any type, and a sum of them that is too large fails",
        "mysql": "whether MySQL fails on a number that is too large depends on its mode",
    }.get(kind.partition("+")[0])
    if why:
        raise ValueError(
            f"engine must be DuckDB, PostgreSQL or Spark, got {kind}: {why}, which would speak of the rows. Write the "
            "table as Parquet first, or have it on one of these."
        )


def _spark(ibis: Any, engine: str) -> Any:
    """A Spark connection; spark://local runs in this process."""
    from pyspark.sql import SparkSession  # type: ignore[import-not-found,unused-ignore]

    local = engine.removeprefix("spark://").strip("/") in ("local", "")
    builder = SparkSession.builder.master("local[*]" if local else engine)
    return ibis.pyspark.connect(builder.appName("psidp").getOrCreate())


def silenced(engine: str, work: Callable[[], Answered]) -> Answered:
    """What the engine gives; or an error that has none of its words, which may quote a row or a password, nor the error
    it came from. Ctrl-C stays Ctrl-C: DuckDB answers it with an error of its own."""
    try:
        return work()
    except Exception as error:
        kind = type(error).__name__
        stopped = kind == "InterruptException" or (kind == "RuntimeError" and str(error) == "Query interrupted")
    if stopped:
        raise KeyboardInterrupt
    raise EngineError(engine, kind)


def _named(connection: Any, name: str) -> Any:
    """A table of a connection, as table or schema.table; Parquet files may be given to Spark by path."""
    kind = ".parquet" if Path(name).is_dir() else Path(name).suffix.lower()
    if connection.name == "pyspark" and kind in READ:
        return _on_spark(connection, name, kind)
    schema, _, rest = name.partition(".")
    for table, more in ((name, {}), (rest, {"database": schema})):
        with suppress(Exception):
            return connection.table(table, **more)
    close(connection)
    raise ValueError(f"the table must be one the engine has, table or schema.table, got {name!r}.")


def _on_spark(connection: Any, name: str, kind: str) -> Any:
    """A Parquet file as a view that bears its name."""
    if kind == ".csv":
        raise ValueError(
            f"a .csv file is not read on Spark, whose rules for lines and types look beyond a line, got {name!r}. "
            "Leave out the engine, or write the file as Parquet first."
        )
    path = Path(name).resolve()  # a path of this machine, or one that Spark alone knows
    files = re.sub(r"([][*?{}\\,])", r"\\\1", str(path)) if path.exists() else name
    with suppress(Exception):
        return connection.read_parquet(files, table_name=f"file_{files.encode().hex()}", recursiveFileLookup=True)
    raise ValueError(f"the table must be a .parquet file that the engine can read, got {name!r}.")


def _need(module: str, library: str, extra: str) -> None:
    """Refuse early what is not installed."""
    try:
        __import__(module)
    except ImportError:
        raise MissingExtraError(library, extra) from None


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
        close(self.backend)

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

    def run(self, work: Callable[[], Answered]) -> Answered:
        """What the engine gives, or an EngineError that says nothing of the rows.

        A Parquet file is read by DuckDB's own reader, which is faster. If a query fails, some value may have made that
        reader fail, so the query runs once more over the file as Arrow reads it: the totals are the same.
        """
        reread = getattr(self.backend, "reread", None)
        if reread is None:
            return silenced(self.name, work)
        try:
            return silenced(self.name, work)
        except EngineError:
            self.backend.reread = None
            silenced(self.name, reread)
        return silenced(self.name, work)

    def rows(self, expression: Any) -> list[tuple[Any, ...]]:
        """All rows of a small result, as Python values."""
        return self.run(lambda: self._rows(expression))

    def integers(self, expression: Any) -> list[NDArray[Any]]:
        """Columns of whole numbers: 64 bits where all are below 2^62 in size, else Python's. NULL is 0."""
        return self.run(lambda: self._integers(expression))

    def native_types(self, table: Any, names: Sequence[str]) -> dict[str, Native]:
        """What the engine itself calls the types of columns; reads no row."""
        return self.run(lambda: native_types(table, names))

    def _rows(self, expression: Any) -> list[tuple[Any, ...]]:
        self.backend._run_pre_execute_hooks(expression)  # lists of ours that the query joins with
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

    def _integers(self, expression: Any) -> list[NDArray[Any]]:
        if self.name == "duckdb":
            table = self.backend.con.sql(self.backend.compile(expression)).to_arrow_table()
            return [from_arrow(column.combine_chunks()) for column in table.columns]
        rows = self._rows(expression)
        return [from_python(row[i] for row in rows) for i in range(len(expression.columns))]


def _instant(value: Any) -> Any:
    """What Spark shows in this process's zone, where an hour comes twice when clocks go back, in UTC."""
    return None if value is None else value.astimezone(datetime.UTC).replace(tzinfo=None)


def location(backend: Any) -> str:
    """Which database it is: a DuckDB's files, a PostgreSQL's server without user and password; else nothing."""
    return silenced(backend.name, lambda: _location(backend))


def _location(backend: Any) -> str:
    if backend.name == "duckdb":
        files = "SELECT path FROM duckdb_databases() WHERE path IS NOT NULL ORDER BY path"
        return ", ".join(path for (path,) in backend.con.execute(files).fetchall())
    if backend.name == "postgres":
        info = backend.con.info
        return f"{info.host}:{info.port}/{info.dbname}/{backend.current_database}"
    return ""
