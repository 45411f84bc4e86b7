"""A public table beside the private one: wards and their regions, looked up by a key that is unique there.

No join runs. A column of the public table becomes a CASE over its keys: a function of each row, so that no row is
doubled or dropped whatever the keys are. A row whose key is not there, or has nothing there, has NULL.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psidp.curator.column_types import key_types, read_as
from psidp.curator.comparison import Side, UnfitError, among, constant, side
from psidp.curator.derived import chosen
from psidp.curator.engine import Engine, open_table
from psidp.curator.groups import key_from_text, plain_key, refuse_own_groups
from psidp.curator.text_rules import number_of

__all__ = ["JoinedTable", "joined_table"]

MOST_KEYS, MOST_VALUES = 20_000, 1_000
"""Keys of a public table, and different values of one of its columns: the SQL spells them out."""

ENGINES = ("duckdb", "postgres", "pyspark")


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """The private table with columns of the public one, and all values that these have there."""

    table: Any
    values: Mapping[str, tuple[Any, ...]]


def joined_table(
    table: Any, public: Any, on: str, columns: Sequence[str] | None, untyped: frozenset[str], source: Any
) -> JoinedTable:
    """The table with columns of a public one; refused by the schema and the public table alone.

    Args:
        public: columns by name, such as {"ward": ["A", "B"], "region": ["north", "south"]}; a frame; an Ibis table; or
            a .csv or .parquet file. on: the column of both that is looked up. columns: those to take; all unless told.
    """
    if on not in table.columns:
        raise ValueError(f"on must be a column of the table ({', '.join(table.columns[:40])}), got {on!r}.")
    if table.get_backend().name not in ENGINES:
        raise ValueError(
            "a public table must be joined on DuckDB, PostgreSQL or Spark. Give a view of the rows instead."
        )
    _refuse_own(public, on, table, source)
    given = _columns(public, on, table.schema()[on], on in untyped)
    wanted = [name for name in given if name != on] if columns is None else list(columns)
    for name in wanted:
        if name not in given or name == on:
            raise ValueError(f"columns must be of the public table ({', '.join(given)}), got {name!r}.")
        if name in table.columns:
            raise ValueError(
                f"the public table must not have a column that the table has besides {on!r}, got {name!r}."
            )
    if not wanted:
        raise ValueError(f"the public table must have a column besides {on!r}.")
    key, keys = _key(table, on, given[on], on in untyped)
    sides = {name: _looked_up(key, keys, given[name], name) for name in wanted}
    known = {name: tuple(v for v in made.values if v is not None) for name, made in sides.items() if made.values}
    return JoinedTable(table.mutate(**{name: made.value for name, made in sides.items()}), known)


def _refuse_own(public: Any, on: str, table: Any, source: Any) -> None:
    try:
        refuse_own_groups(public, (on,), table, source)
    except ValueError:
        raise ValueError(
            "a public table must not come from the table itself: what it holds would be shown for nothing."
        ) from None


def _columns(public: Any, on: str, kind: Any, untyped: bool) -> dict[str, list[Any]]:
    """The public table, column by column, as Python has its values."""
    if isinstance(public, str | Path) and Path(public).suffix.lower() == ".csv" and Path(public).is_file():
        return _from_csv(Path(public), on, kind, untyped)
    if isinstance(public, str | Path):
        if not (Path(public).suffix.lower() == ".parquet" and Path(public).is_file()):
            raise ValueError(f"a public table must be a .csv or .parquet file that exists, got {str(public)!r}.")
        public = open_table(public)
    if not isinstance(public, Mapping):
        arrow = public.to_pyarrow() if hasattr(public, "to_pyarrow") else public
        names = getattr(arrow, "column_names", getattr(arrow, "columns", None))
        if names is None:
            raise TypeError(f"a public table must be columns by name, a frame or a file, got {type(public).__name__}.")
        public = {str(name): _listed(arrow[name]) for name in names}
    made = {str(name): [plain_key(value) for value in values] for name, values in public.items()}
    if on not in made or len({len(values) for values in made.values()}) != 1:
        raise ValueError(f"a public table must have the column {on!r}, and columns of one length.")
    return made


def _listed(column: Any) -> list[Any]:
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column)


def _from_csv(path: Path, on: str, kind: Any, untyped: bool) -> dict[str, list[Any]]:
    """A public file: keys in the type of the table's column, other columns as numbers where all of them are."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name is not None] if rows else []
    if on not in names:
        raise ValueError(
            f"a public table must have the column {on!r}, got a file with {', '.join(names) or 'no rows'}."
        )
    made = {name: _as_numbers([row[name] or "" for row in rows]) for name in names if name != on}
    keys = [row[on] or "" if untyped else key_from_text(row[on] or "", on, kind) for row in rows]
    return {on: [None if key == "" else key for key in keys], **made}


def _as_numbers(texts: list[str]) -> list[Any]:
    """Public texts as numbers where all of them are written as numbers are; an empty one is missing."""
    numbers = [number_of(text) if text else None for text in texts]
    plain = all(
        n is not None and (isinstance(n, float) or str(n) == t) for n, t in zip(numbers, texts, strict=True) if t
    )
    return numbers if plain and any(texts) else [text or None for text in texts]


def _key(table: Any, on: str, keys: list[Any], untyped: bool) -> tuple[Side, list[Any]]:
    """The column that is looked up, and the keys, which must be different."""
    if not 0 < len(keys) <= MOST_KEYS:
        raise ValueError(f"a public table must have 1 to {MOST_KEYS:,} rows, got {len(keys):,}.")
    if any(key is None for key in keys):
        raise ValueError(f"a public table must have a key in every row of {on!r}, got one without.")
    try:
        given = _read(table, on, keys) if untyped else side(table[on], Engine(table).native_types(table, [on]).get(on))
        if given.kind.is_floating():
            raise UnfitError
        found = [constant(given, key) for key in keys]
    except UnfitError:
        raise ValueError(
            f"a public table must have keys that {on!r} of type {table[on].type()} can be compared with: text, whole "
            "numbers, dates or truth values of the same kind."
        ) from None
    if len(set(found)) < len(found):
        twice = next(key for key in keys if keys.count(key) > 1) if len(keys) <= 2_000 else "one"
        raise ValueError(f"a public table must have each key of {on!r} once, got {twice!r} twice or more.")
    return given, keys


def _read(table: Any, on: str, keys: list[Any]) -> Side:
    """An untyped column in the type of the keys."""
    kind = key_types([(key,) for key in keys], (on,), [on]).get(on)
    value = table[on] if kind is None else read_as(table[on], kind)
    found = value.type()
    return Side(value, found.copy(scale=6) if found.is_timestamp() else found)


def _looked_up(key: Side, keys: list[Any], column: list[Any], name: str) -> Side:
    """The column's value for each row's key."""
    by_value: dict[tuple[type, Any], list[Any]] = {}
    for one, value in zip(keys, column, strict=True):
        if value is not None:
            by_value.setdefault((type(value), value), []).append(one)
    if not 0 < len(by_value) <= MOST_VALUES:
        raise ValueError(
            f"column {name!r} of a public table must have 1 to {MOST_VALUES:,} different values, got {len(by_value):,}."
            " Name the columns that are needed: columns=[...]."
        )
    try:
        return chosen([(among(key, group), value) for (_, value), group in by_value.items()], None)
    except UnfitError:
        raise ValueError(
            f"column {name!r} of a public table must hold text, numbers or truth values, all of one kind."
        ) from None
