"""A public table beside the private one: wards and their regions, looked up by a key that is unique there.

No join runs. A column of the public table becomes a CASE over its keys: a function of each row, so that no row is
doubled or dropped whatever the keys are. A row whose key is not there, or has nothing there, has NULL.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from psidp.ledger.entry import digest
from psidp.tables.columns import need_column
from psidp.tables.sources.public_groups import (
    columns_in,
    key_from_text,
    key_types,
    names_of,
    plain_key,
    shares_rows,
    values_of,
)  # fmt: skip
from psidp.tables.sources.source import Source
from psidp.tables.types import Type

__all__ = ["joined"]

MOST_KEYS, MOST_VALUES = 20_000, 1_000
"""Keys of a public table, and different values of one of its columns: the SQL spells them out."""


def joined(
    source: Source, public: Any, on: str, columns: Sequence[str] | None, given: Any
) -> tuple[Source, dict[str, tuple[Any, ...]], str]:
    """The source with columns of a public table, all values that each of these has there, and a digest of what they say
    of each key.

    Refusals depend on the schema and the public table alone.

    Args:
        public: columns by name, such as {"ward": ["A", "B"], "region": ["north", "south"]}; a frame; or a .csv or
            .parquet file. on: the column of both that is looked up. columns: those to take; defaults to all. given:
            what the source was opened from.
    """
    kind = need_column(on, source.schema, "on")
    if shares_rows(public, (on,), given):
        raise ValueError(
            "a public table must not come from the table itself: what it holds would be shown without noise."
        )
    table = _columns(public, on, kind, on in source.untyped)
    wanted = [name for name in table if name != on] if columns is None else list(columns)
    for name in wanted:
        if name not in table or name == on:
            raise ValueError(f"columns must be of the public table ({', '.join(table)}), got {name!r}.")
        if name.lower() in map(str.lower, source.schema):  # names that differ by case alone are one to some engines
            raise ValueError(
                f"the public table must not have a column that the table has besides {on!r}, got {name!r}."
            )
    if not wanted:
        raise ValueError(f"the public table must have a column besides {on!r}.")
    key, keys = _key(source, on, table[on])
    found = {name: _looked_up(key, keys, table[name], name) for name in wanted}
    dialect = source.dialect
    made = source.with_columns({n: (value.sql(dialect), dialect.type(value.type.kind)) for n, value in found.items()})
    known = {name: tuple(v for v in value.values if v is not None) for name, value in found.items() if value.values}
    said = {name: sorted(zip(keys, map(repr, table[name]), strict=True)) for name in wanted}
    return made, known, digest([on, said])


def _columns(public: Any, on: str, kind: Type, untyped: bool) -> dict[str, list[Any]]:
    """The public table, column by column, as Python has its values."""
    if isinstance(public, str | Path):
        path = Path(public)
        public = columns_in(path, "a public table must be a .csv or .parquet file that exists")
        if path.suffix.lower() == ".csv":
            keys = [text or None if untyped else key_from_text(text, on, kind) for text in public.get(on, [])]
            public = {name: keys if name == on else _as_numbers(texts) for name, texts in public.items()}
    if not isinstance(public, Mapping):
        if (names := names_of(public)) is None:
            raise TypeError(f"a public table must be columns by name, a frame or a file, got {type(public).__name__}.")
        public = {str(name): values_of(public[name]) for name in names}
    made = {str(name): [plain_key(value) for value in values] for name, values in public.items()}
    if on not in made or len({len(values) for values in made.values()}) != 1:
        raise ValueError(
            f"a public table must have the column {on!r}, and columns of one length, got {', '.join(made) or 'none'}."
        )
    return made


def _as_numbers(texts: list[str]) -> list[Any]:
    """Public texts as numbers where all of them are written as numbers are; "" is missing."""
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


def _key(source: Source, on: str, keys: list[Any]) -> tuple[Any, list[str]]:
    """The column that is looked up, in the type of the keys where it has none; and the keys, all different, as text."""
    from psidp.tables.conditions.compare import UnfitError, read
    from psidp.tables.conditions.tree import Column, Read

    if not 0 < len(keys) <= MOST_KEYS:
        raise ValueError(f"a public table must have 1 to {MOST_KEYS:,} rows, got {len(keys):,}.")
    if any(key is None for key in keys):
        raise ValueError(f"a public table must have a key in every row of {on!r}, got one without.")
    column: Any = Column(on, source.schema[on])
    for kind in key_types([(key,) for key in keys], (on,), source.untyped & {on}).values():
        column = Read(on, kind)
    try:
        if column.type.kind == "float" or (column.type.text and not all(isinstance(key, str) for key in keys)):
            raise UnfitError
        found = [read(column.type, str(key)) for key in keys]
    except UnfitError:
        raise ValueError(
            f"a public table must have keys that {on!r} of type {column.type} can be compared with: text, whole "
            "numbers, dates or truth values of the same kind."
        ) from None
    if len(set(found)) < len(found):
        twice = next(key for key in keys if keys.count(key) > 1) if len(keys) <= 2_000 else "one"
        raise ValueError(f"a public table must have each key of {on!r} once, got {twice!r} twice or more.")
    return column, list(map(str, keys))


def _looked_up(key: Any, keys: list[str], values: list[Any], name: str) -> Any:
    """The value of a public column for each row's key."""
    from psidp.tables.conditions.compare import UnfitError, among
    from psidp.tables.conditions.functions import choose

    by_value: dict[tuple[type, Any], list[str]] = {}
    for one, value in zip(keys, values, strict=True):
        value = float(value) if isinstance(value, Decimal) else value
        if value is not None:
            by_value.setdefault((type(value), value), []).append(one)
    if not 0 < len(by_value) <= MOST_VALUES:
        raise ValueError(
            f"column {name!r} of a public table must have 1 to {MOST_VALUES:,} different values, got {len(by_value):,}."
            " Name the columns that are needed: columns=[...]."
        )
    try:
        return choose([(among(key, group), value) for (_, value), group in by_value.items()], None)
    except UnfitError:
        raise ValueError(
            f"column {name!r} of a public table must hold text, numbers or truth values, all of one kind."
        ) from None
