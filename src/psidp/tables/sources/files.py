"""Files: which .parquet or .csv files are one table, and how DuckDB reads them. Reads names and footers alone.

A table is named by the absolute paths of its files, links resolved: the same name from every working directory.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from psidp.ledger.budget import shorten
from psidp.tables.engines.duckdb import DuckDB
from psidp.tables.engines.engine import quoted
from psidp.tables.engines.registry import check_engine
from psidp.tables.sources.csv import CsvFile
from psidp.tables.sources.parquet_through_arrow import ParquetFile
from psidp.tables.sources.source import Source
from psidp.tables.types import Type

__all__ = ["files_of", "is_paths", "open_files"]

KINDS, DATABASES = (".parquet", ".csv"), (".duckdb", ".db")
SQLITE = b"SQLite format 3\0"

SPECIAL = "[*?"
"""DuckDB takes a path with one of these as a pattern of many files. Here a path means one file."""


def is_paths(source: Any) -> bool:
    """Whether a source is a path or a list of paths."""
    listed = isinstance(source, list | tuple) and bool(source) and all(isinstance(one, str | Path) for one in source)
    return listed or isinstance(source, str | Path)


def open_files(source: str | Path | Sequence[str | Path], name: str | None) -> Source:
    """The table in a file, in the files of a folder, a pattern or a list, or in a DuckDB database of this `name`.

    Refused are files of other kinds, several files with different columns, and databases without a name.
    """
    if isinstance(source, str | Path) and Path(source).suffix.lower() in DATABASES and not Path(source).is_dir():
        return _in_database(Path(source), name)
    paths, title = files_of(source)
    if isinstance(source, str | Path):
        home, short = title, shorten(Path(source).resolve().name)
    else:
        home, short = f"{min(Path(path).resolve() for path in source)} and others", ""
    engine = DuckDB.connect()
    csv = paths[0].suffix.lower() == ".csv"
    try:
        text, schema = engine.register(title, CsvFile(*paths)) if csv else _parquet(engine, title, paths)
    except ValueError:
        engine.close()
        raise
    return Source(engine, text, schema, frozenset(schema if csv else ()), short, title, home)


def files_of(source: str | Path | Sequence[str | Path]) -> tuple[tuple[Path, ...], str]:
    """The files that a path, a folder, a pattern or a list means, absolute and in order, and their table's name.

    A folder means all .parquet files in it and below; a star in a path that is not a file's name stands for any text,
    and two of them for any folders.
    """
    if not isinstance(source, str | Path):
        return _listed([Path(one) for one in source])
    path = Path(source)
    if path.is_dir():
        return _together(sorted(path.resolve().rglob("*.parquet")), str(path.resolve()), source)
    if "*" in str(path) and not path.exists():
        first = next(i for i, part in enumerate(path.parts) if "*" in part)
        base, rest = Path(*path.parts[:first]).resolve(), "/".join(path.parts[first:])
        return _together(sorted(p for p in base.glob(rest) if p.is_file()), f"{base}/{rest}", source)
    if path.suffix.lower() not in KINDS:
        raise ValueError(f"the table must be a .parquet, .csv or .duckdb file, got {str(path)!r}.")
    if not path.is_file():
        raise ValueError(f"the table must be a file that exists, got {str(path)!r}.")
    return (path.resolve(),), str(path.resolve())


def _listed(paths: Sequence[Path]) -> tuple[tuple[Path, ...], str]:
    """Files that were named one by one."""
    absent = [str(path) for path in paths if not path.is_file()]
    if absent:
        raise ValueError(f"the table must be files that exist, got {absent[0]!r}.")
    found = sorted({path.resolve() for path in paths})
    if len(found) < len(paths):
        raise ValueError(
            "the table must be a list of different files: rows of one that is named twice would count twice."
        )
    known = hashlib.sha256("\n".join(map(str, found)).encode(errors="surrogateescape")).hexdigest()[:16]
    return _together(found, f"{found[0]} and {len(found) - 1} others ({known})", paths[0])


def _together(paths: Sequence[Path], title: str, source: Any) -> tuple[tuple[Path, ...], str]:
    """Files of one kind that are read as one table."""
    kinds = {path.suffix.lower() for path in paths}
    if not paths:
        raise ValueError(
            f"the table must be a folder or pattern with .parquet files, or a file that exists, got {str(source)!r}."
        )
    if len(kinds) > 1 or not kinds <= set(KINDS):
        raise ValueError(f"several files must be all .parquet or all .csv, got {', '.join(sorted(kinds))}.")
    return tuple(paths), title


def _in_database(path: Path, name: str | None) -> Source:
    """A table of a DuckDB database, which is opened for reading only."""
    if name is None:
        raise ValueError(f"name (which table of the file) must be given for {str(path)!r}.")
    if not path.is_file():
        raise ValueError(f"the table must be a file that exists, got {str(path)!r}.")
    with path.open("rb") as file:
        if file.read(len(SQLITE)) == SQLITE:
            check_engine("sqlite")
    engine = DuckDB.connect(str(path.resolve()), read_only=True)
    try:
        text, schema = engine.table(name)
    except ValueError:
        engine.close()
        raise
    place, short = engine.place(), shorten(f"{path.resolve().name}: {name}")
    return Source(engine, text, schema, frozenset(), short, f"{name} at {place}", f"{name} of {place}")


def _pattern(path: Path) -> str:
    """The pattern that this path alone matches: visits[1].parquet becomes visits[[]1].parquet."""
    text = str(path)
    if "\\" in text and any(letter in text for letter in SPECIAL):
        raise ValueError(f"a path must not have a backslash beside one of {SPECIAL}, got {text!r}. Rename the file.")
    return "".join(f"[{letter}]" if letter in SPECIAL else letter for letter in text)


def _parquet(engine: DuckDB, title: str, paths: Sequence[Path]) -> tuple[str, Mapping[str, Type]]:
    """Parquet files as a view of this title; names of folders make no columns."""
    patterns = [_pattern(path) for path in paths]
    if not _alike(engine, patterns):
        raise ValueError(
            f"several .parquet files must have the same columns of the same types, got {title!r}: a value that does "
            "not fit the first file's type would fail by row."
        )
    files = ", ".join("'" + pattern.replace("'", "''") + "'" for pattern in patterns)
    with suppress(Exception):
        text, schema = engine.view(title, f"SELECT * FROM read_parquet([{files}], hive_partitioning = false)")
        engine.once_more_after(partial(_through_arrow, engine, title, paths, schema))
        return text, schema
    raise ValueError(f"the table must be a .parquet file that the engine can read, got {title!r}.")


def _through_arrow(engine: DuckDB, title: str, paths: Sequence[Path], schema: Mapping[str, Type]) -> None:
    """From now on the view reads the files through Arrow, columns in the types that they had: slower, but no value
    makes it fail, and the totals are the same."""
    casts = ", ".join(f"{_again(f'c{i}', kind)} AS {quoted(n)}" for i, (n, kind) in enumerate(schema.items()))
    places = ", ".join(f"c{i}" for i in range(len(schema)))  # names may differ by case alone
    engine.register("rows through Arrow", ParquetFile(*paths))
    engine.view(title, f'SELECT {casts} FROM "rows through Arrow" AS t({places})')


def _again(column: str, kind: Type) -> str:
    """A column of Arrow in the type that it had; spans of time are bytes to Arrow, and a question sees only whether
    one is missing."""
    if kind.native == "INTERVAL":
        return f"CASE WHEN {column} IS NOT NULL THEN INTERVAL 0 DAY END"
    return f"TRY_CAST({column} AS {kind})"


def _alike(engine: DuckDB, patterns: list[str]) -> bool:
    """Whether the footers of all files declare the same columns of the same types."""
    types = (
        "list((name, type, type_length, repetition_type, num_children, converted_type, scale, precision, logical_type))"
    )
    files = f"SELECT file_name, {types} AS columns FROM parquet_schema(?) GROUP BY file_name"
    with suppress(Exception):
        query = f"SELECT count(DISTINCT columns) FROM ({files})"
        ((kinds,),) = engine.connection.execute(query, [patterns]).fetchall()
        return bool(kinds <= 1)
    return True
