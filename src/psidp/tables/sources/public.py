"""A public table beside the private one: wards and their regions, looked up by a key that is unique there.

No join runs. A column of the public table becomes a CASE over its keys: a function of each row, so that no row is
doubled or dropped whatever the keys are. A row whose key is not there, or has nothing there, has NULL.
"""

import csv
import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from psidp.tables.sources.files import open_files
from psidp.tables.sources.groups import (
    key_from_text,
    key_types,
    plain_key,
    public_groups,
    refuse_own_groups,
    values_of,
)  # fmt: skip
from psidp.tables.sources.source import Source
from psidp.tables.types import DECLARED, Type

__all__ = ["joined"]

MOST_KEYS, MOST_VALUES = 20_000, 1_000
"""Keys of a public table, and different values of one of its columns: the SQL spells them out."""

KINDS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bool,), "boolean"),
    ((int,), "integer"),
    ((int, float, Decimal), "float"),
    ((str,), "text"),
)
"""What a public column can hold, by the types of its values."""


def joined(
    source: Source, public: Any, on: str, columns: Sequence[str] | None, given: Any
) -> tuple[Source, dict[str, tuple[Any, ...]]]:
    """The source with columns of a public table, and all values that each of these has there.

    Refusals depend on the schema and the public table alone.

    Args:
        public: columns by name, such as {"ward": ["A", "B"], "region": ["north", "south"]}; a frame; or a .csv or
            .parquet file. on: the column of both that is looked up. columns: those to take; defaults to all. given:
            what the source was opened from.
    """
    if on not in source.schema:
        raise ValueError(f"on must be a column of the table ({', '.join(list(source.schema)[:40])}), got {on!r}.")
    _refuse_own(public, on, source, given)
    table = _columns(public, on, source.schema[on], on in source.untyped)
    wanted = [name for name in table if name != on] if columns is None else list(columns)
    for name in wanted:
        if name not in table or name == on:
            raise ValueError(f"columns must be of the public table ({', '.join(table)}), got {name!r}.")
        if name in source.schema:
            raise ValueError(
                f"the public table must not have a column that the table has besides {on!r}, got {name!r}."
            )
    if not wanted:
        raise ValueError(f"the public table must have a column besides {on!r}.")
    keys, key, literal = _key(source, on, table[on])
    found = {name: _looked_up(source, name, table[name], keys, key, literal) for name in wanted}
    made = source.with_columns({name: (sql, kind) for name, (sql, kind, _) in found.items()})
    return made, {name: values for name, (_, _, values) in found.items() if values is not None}


def _refuse_own(public: Any, on: str, source: Source, given: Any) -> None:
    try:
        refuse_own_groups(public, (on,), source, given)
    except ValueError:
        raise ValueError(
            "a public table must not come from the table itself: what it holds would be shown without noise."
        ) from None


def _columns(public: Any, on: str, kind: Type, untyped: bool) -> dict[str, list[Any]]:
    """The public table, column by column, as Python has its values."""
    if isinstance(public, str | Path):
        path, suffix = Path(public), Path(public).suffix.lower()
        if not (suffix in (".csv", ".parquet") and path.is_file()):
            raise ValueError(f"a public table must be a .csv or .parquet file that exists, got {str(public)!r}.")
        if suffix == ".csv":
            return _from_csv(path, on, kind, untyped)
        public = _from_parquet(path)
    if not isinstance(public, Mapping):
        names = getattr(public, "column_names", getattr(public, "columns", None))
        if names is None:
            raise TypeError(f"a public table must be columns by name, a frame or a file, got {type(public).__name__}.")
        public = {str(name): values_of(public[name]) for name in names}
    made = {str(name): [plain_key(value) for value in values] for name, values in public.items()}
    if on not in made or len({len(values) for values in made.values()}) != 1:
        raise ValueError(f"a public table must have the column {on!r}, and columns of one length.")
    return made


def _from_parquet(path: Path) -> dict[str, list[Any]]:
    source = open_files(path, None)
    try:
        rows = source.engine.rows(f"SELECT * FROM {source.text} AS source")
    finally:
        source.close()
    return {name: [row[i] for row in rows] for i, name in enumerate(source.schema)}


def _from_csv(path: Path, on: str, kind: Type, untyped: bool) -> dict[str, list[Any]]:
    """A public file: keys in the type of the table's column, other columns as numbers where all of them are."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name is not None] if rows else []
    if on not in names:
        raise ValueError(
            f"a public table must have the column {on!r}, got a file with {', '.join(names) or 'no rows'}."
        )
    made = {name: _as_numbers([row[name] or "" for row in rows]) for name in names if name != on}
    keys = [row[on] or None if untyped else key_from_text(row[on] or "", on, kind) for row in rows]
    return {on: keys, **made}


def _as_numbers(texts: list[str]) -> list[Any]:
    """Public texts as numbers where all of them are written as numbers are; an empty one is missing."""
    numbers = [_number(text) if text else None for text in texts]
    plain = all(
        n is not None and (isinstance(n, float) or str(n) == t) for n, t in zip(numbers, texts, strict=True) if t
    )
    return numbers if plain and any(texts) else [text or None for text in texts]


def _number(text: str) -> int | float | None:
    """A word as a whole number or a fraction; None where it is neither."""
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return int(text)
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return float(value) if value.is_finite() else None


def _key(source: Source, on: str, values: list[Any]) -> tuple[list[Any], str, Callable[[Any], str]]:
    """The keys, which must be different, None for those that the column cannot hold; the column that is looked up, in
    SQL; and how a key is written."""
    if not 0 < len(values) <= MOST_KEYS:
        raise ValueError(f"a public table must have 1 to {MOST_KEYS:,} rows, got {len(values):,}.")
    if any(value is None for value in values):
        raise ValueError(f"a public table must have a key in every row of {on!r}, got one without.")
    dialect, kind, column = source.dialect, source.schema[on], source.dialect.key(on)
    for word in key_types([(value,) for value in values], (on,), source.untyped & {on}).values():
        kind, column = DECLARED[word], dialect.read(dialect.column(on), word)
    try:
        keys = [_key_of(value, on, kind) for value in values]
    except (TypeError, ValueError):
        raise ValueError(
            f"a public table must have keys that {on!r} of type {kind} can be compared with: text, whole numbers, "
            "dates or truth values of the same kind."
        ) from None
    found = [key for key in keys if key is not None]
    if len(set(found)) < len(found):
        twice = next(key for key in found if found.count(key) > 1) if len(found) <= 2_000 else "one"
        raise ValueError(f"a public table must have each key of {on!r} once, got {twice!r} twice or more.")
    own = kind == source.schema[on]
    return keys, column, lambda key: dialect.key_literal(key, on) if own else dialect.literal(key, kind)


def _key_of(value: Any, on: str, kind: Type) -> Any:
    """A public key as a value of the column; None where it is of the same sort, but no value of the column."""
    if isinstance(value, str) and not kind.text:
        value = key_from_text(value, on, kind)
    elif isinstance(value, float | Decimal) and kind.whole:
        value = int(value) if value == value // 1 else None
    elif isinstance(value, float) and kind.kind == "decimal":
        value = Decimal(repr(value))
    elif isinstance(value, datetime.datetime) and kind.kind == "date":
        value = value.date() if value.time() == datetime.time() else None
    elif type(value) is datetime.date and kind.kind == "timestamp":
        value = datetime.datetime.combine(value, datetime.time())
    try:
        return public_groups([value], (on,), {on: kind})[0][0]
    except ValueError:
        if kind.text:
            raise
        return None  # it does not fit


def _looked_up(
    source: Source, name: str, column: list[Any], keys: list[Any], key: str, literal: Callable[[Any], str]
) -> tuple[str, Type, tuple[Any, ...] | None]:
    """The column's value for each row's key in SQL; its type; and all its values, None where they are fractions."""
    by_value: dict[tuple[type, Any], list[Any]] = {}
    for one, value in zip(keys, column, strict=True):
        if value is not None:
            by_value.setdefault((type(value), value), []).append(one)
    if not 0 < len(by_value) <= MOST_VALUES:
        raise ValueError(
            f"column {name!r} of a public table must have 1 to {MOST_VALUES:,} different values, got {len(by_value):,}."
            " Name the columns that are needed: columns=[...]."
        )
    values = [value for _, value in by_value]
    kind = next((kind for types, kind in KINDS if all(type(value) in types for value in values)), None)
    if kind is None or not all(_fits(value, kind) for value in values):
        raise ValueError(f"column {name!r} of a public table must hold text, numbers or truth values, all of one kind.")
    dialect = source.dialect
    found = dialect.type(kind)
    written = [dialect.literal(float(value) if kind == "float" else value, found) for value in values]
    held = [[one for one in group if one is not None] for group in by_value.values()]
    cases = [
        (f"{key} IN ({', '.join(map(literal, group))})", result)
        for group, result in zip(held, written, strict=True)
        if group
    ]
    missing = dialect.literal(None, found)
    known = None if kind == "float" else tuple(dict.fromkeys(values))
    return dialect.cases(cases, missing) if cases else missing, found, known


def _fits(value: Any, kind: str) -> bool:
    """Whether every engine can hold a public value."""
    if kind == "text":
        return "\0" not in value and value.encode(errors="ignore").decode() == value
    return bool(abs(value) <= 1e300 if kind == "float" else -(2**63) <= value < 2**63)
