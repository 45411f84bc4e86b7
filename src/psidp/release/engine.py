"""Engine: where the table lives. Runs expressions there, and reads exact totals from them."""

import datetime
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Any

from psidp.release.key_column import merging
from psidp.release.native import Native, native_types
from psidp.release.source import close, silenced

__all__ = ["Engine", "location"]


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

    def rows(self, expression: Any) -> list[tuple[Any, ...]]:
        """All rows of a small result, as Python values."""
        return silenced(self.name, lambda: self._rows(expression))

    def native_types(self, table: Any, names: Sequence[str]) -> dict[str, Native]:
        """What the engine itself calls the types of columns; reads no row."""
        return silenced(self.name, lambda: native_types(table, names))

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
