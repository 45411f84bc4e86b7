"""Public groups, which are known without the data: from lists, frames and files to tuples of plain values."""

import csv
import datetime
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from psidp.tables.columns import check_key
from psidp.tables.sources.files import files_of, is_paths, open_files
from psidp.tables.types import Type

__all__ = [
    "Key", "columns_in", "key_from_text", "key_tuples", "key_types", "keys_from_text", "names_of", "plain_key",
    "public_groups", "refuse_own_groups", "shares_rows", "values_of",
]  # fmt: skip

Key = tuple[Any, ...]

MOST_GROUPS = 10_000_000

PARSERS: Mapping[str, Callable[[str], Any]] = {
    "boolean": lambda word: {"true": True, "false": False}[word.lower()],
    "integer": int,
    "date": datetime.date.fromisoformat,
    "timestamp": datetime.datetime.fromisoformat,
    "decimal": Decimal,
}
"""How a key is read from text, by the kind of its column."""

READ_AS = ((bool, "boolean"), (int, "int64"), (datetime.datetime, "timestamp"), (datetime.date, "date"))


def public_groups(groups: Any, by: Sequence[str], schema: Mapping[str, Type]) -> tuple[Key, ...]:
    """The given groups as tuples of plain values, each of its column's type, in their order and without repetition.

    Args:
        groups: a list of values, or of tuples where there are several columns; a dict from column to its values, all
            combinations of which are groups; an Enum; a frame with those columns; a .csv or .parquet file.
    """
    given = list(dict.fromkeys(_as_tuples(groups, by, schema)))
    if not 0 < len(given) <= MOST_GROUPS:
        raise ValueError(f"groups must be 1 to {MOST_GROUPS:,} groups, got {len(given)}.")
    checked = (tuple(_checked(value, name, schema[name]) for value, name in zip(key, by, strict=True)) for key in given)
    return tuple(dict.fromkeys(checked))


def key_tuples(groups: Any, by: Sequence[str], schema: Mapping[str, Type]) -> list[Key]:
    """The given groups as tuples of plain values, before they are checked against the types of their columns."""
    return [tuple(map(plain_key, key)) for key in _as_tuples(groups, by, schema)]


def key_types(groups: Iterable[Sequence[Any]], by: Sequence[str], untyped: Iterable[str]) -> dict[str, str]:
    """The types in which untyped columns are compared with groups: those of the groups, where all have one."""
    columns = dict(zip(by, zip(*groups, strict=True), strict=False))
    found = {}
    for name in untyped:
        values = [value for value in columns.get(name, ()) if value is not None]
        kinds = (kind for type_, kind in READ_AS if values and all(isinstance(value, type_) for value in values))
        if (kind := next(kinds, None)) is not None:
            found[name] = kind
    return found


def _as_tuples(groups: Any, by: Sequence[str], schema: Mapping[str, Type]) -> Iterable[Key]:
    """Groups in any form, as tuples."""
    if isinstance(groups, type) and issubclass(groups, Enum):
        groups = [member.value for member in groups]
    if isinstance(groups, Mapping):
        if set(groups) != set(by):
            raise _other_columns(by, groups)
        return product(*(list(groups[name]) for name in by))
    if isinstance(groups, str | Path):
        return _in_file(Path(groups), by, schema)
    if (names := names_of(groups)) is not None:
        if not set(by) <= set(names):
            raise _other_columns(by, names)
        return zip(*(values_of(groups[name]) for name in by), strict=True)
    if not isinstance(groups, Iterable):
        raise TypeError(f"groups must be a list of values or tuples, a frame or a file, got {type(groups).__name__}.")
    return [_tuple(key, by) for key in groups]


def _other_columns(by: Sequence[str], names: Iterable[Any]) -> ValueError:
    shown = ", ".join(map(repr, names)) or "none"
    return ValueError(f"groups must have the columns {', '.join(map(repr, by))}, got {shown}.")


def _in_file(path: Path, by: Sequence[str], schema: Mapping[str, Type]) -> Iterable[Key]:
    """The groups in a file; text of a CSV is read in the type of its column, and an empty cell as NULL."""
    columns = columns_in(path, "groups must be values, a frame, or a .csv or .parquet file that exists")
    if not set(by) <= set(columns):
        raise _other_columns(by, columns)
    if path.suffix.lower() == ".csv":
        columns = {name: [key_from_text(text, name, schema[name]) for text in columns[name]] for name in by}
    return zip(*(columns[name] for name in by), strict=True)


def columns_in(path: Path, rule: str) -> dict[str, list[Any]]:
    """A public file, column by column; cells of a CSV as text, "" where there is nothing. `rule` begins a refusal."""
    kind = path.suffix.lower()
    if not (kind in (".csv", ".parquet") and path.is_file()):
        raise ValueError(f"{rule}, got {str(path)!r}.")
    if kind == ".csv":
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
        return {name: [row[name] or "" for row in rows] for name in reader.fieldnames or ()}
    source = open_files(path, None)
    try:
        found = source.engine.rows(f"SELECT * FROM {source.text} AS source")
    finally:
        source.close()
    return {name: [row[i] for row in found] for i, name in enumerate(source.schema)}


def key_from_text(text: str, name: str, kind: Type) -> Any:
    """A key's value written as text, in its column's type; an empty text is NULL."""
    if text == "" or kind.kind not in PARSERS:
        return text or None
    try:
        return PARSERS[kind.kind](text)
    except (ValueError, KeyError, ArithmeticError):
        raise ValueError(f"groups of {name!r} must be of type {kind}, got {text!r}.") from None


def keys_from_text(words: str, name: str, kind: Type) -> list[Any]:
    """Keys in a list such as A,B,C or 1..12, in their column's type; blanks around them do not count.

    Examples:
        >>> keys_from_text("1..4", "month", Type("integer", "BIGINT"))
        [1, 2, 3, 4]
        >>> keys_from_text('North, "South, harbour"', "branch", Type("text", "VARCHAR"))
        ['North', 'South, harbour']
    """
    first, dots, last = words.partition("..")
    if dots and all(end.strip().removeprefix("-").isdecimal() for end in (first, last)):
        if not 0 <= int(last) - int(first) < MOST_GROUPS:
            raise ValueError(
                f"groups of {name!r} must count up, such as 1..12, and be at most {MOST_GROUPS:,}, got {words!r}."
            )
        return [key_from_text(str(number), name, kind) for number in range(int(first), int(last) + 1)]
    try:
        listed = next(csv.reader([words], skipinitialspace=True, strict=True), [""])
    except csv.Error:
        raise ValueError(f"groups of {name!r} must close the quotes that they open, got {words!r}.") from None
    return [key_from_text(word.strip(), name, kind) for word in listed]


def _tuple(key: Any, by: Sequence[str]) -> Key:
    made = tuple(key) if isinstance(key, tuple | list) else (key,)
    if len(made) != len(by):
        raise ValueError(f"groups must have {len(by)} values each, one for each of {', '.join(by)}, got {len(made)}.")
    return made


def names_of(frame: Any) -> list[Any] | None:
    """The names of a frame's columns; None where it is no frame."""
    names = getattr(frame, "column_names", getattr(frame, "columns", None))
    return None if names is None else list(names)


def values_of(column: Any) -> list[Any]:
    """The values of a frame's column."""
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column)


def plain_key(value: Any) -> Any:
    """A value of NumPy, pandas or Arrow as Python's: NaN, NaT and NA as None, instants in UTC without their zone."""
    if type(value).__name__ == "NAType":
        return None
    if isinstance(value, np.datetime64) and isinstance(value.item(), int):  # of nanoseconds
        value = value.astype("datetime64[us]")
    if hasattr(value, "to_pydatetime"):
        value = None if value != value else value.to_pydatetime()
    elif hasattr(value, "item") or hasattr(value, "as_py"):
        value = value.item() if hasattr(value, "item") else value.as_py()
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, Enum):
        return value.value
    return value


def _checked(given: Any, name: str, kind: Type) -> Any:
    """One value of a key, if its column can hold it; SQL's cast of another value would fail."""
    value: Any = plain_key(given)
    if value is None:
        return None
    types, words = check_key(name, kind)
    wide = kind.whole and kind.bits > 64  # DuckDB gives these as decimals
    wrong = isinstance(value, bool) is not (bool in types) or isinstance(value, datetime.datetime) is not (
        datetime.datetime in types
    )
    if wrong or not isinstance(value, (*types, Decimal) if wide else types):
        raise TypeError(f"groups of {name!r} must be {words}, got {type(value).__name__}.")
    if isinstance(value, str) and not _writable(value):
        raise ValueError(f"groups of {name!r} must be text without NUL and halves of letters, got {value!r}.")
    if wide or kind.kind == "decimal":
        value = _decimal(value, name, kind, *((38, 0) if wide else (kind.precision, kind.scale)))
    if kind.whole and not kind.ends[0] <= value <= kind.ends[1]:
        raise ValueError(f"groups of {name!r} must fit into {kind}, got {value}.")
    return value


def _writable(text: str) -> bool:
    """Whether every engine can hold a text."""
    return "\0" not in text and text.encode(errors="ignore").decode() == text


def _decimal(value: Any, name: str, kind: Type, precision: int | None, scale: int | None) -> Decimal:
    """A decimal of this many digits."""
    number = Decimal(str(value))
    steps = Fraction(number) * 10 ** (scale or 0) if number.is_finite() else None
    if steps is None or (precision is not None and not (steps.denominator == 1 and abs(steps) < 10**precision)):
        raise ValueError(f"groups of {name!r} must fit into {kind}, got {value}.")
    return number


def refuse_own_groups(groups: Any, by: Sequence[str], given: Any) -> None:
    """Refuse groups that come from the table itself: each would be released merely because it is in the data."""
    if shares_rows(groups, by, given):
        raise ValueError(
            "groups must not come from the table itself: a group would be shown merely because somebody is in it. Give "
            "those that are known without it, or psidp.PrivateGroups(kappa=..., at_most=...) to choose them privately."
        )


def shares_rows(groups: Any, by: Sequence[str], given: Any) -> bool:
    """Whether public values come from the table itself, which was opened from `given`.

    Recognized are the table's own files, and frames and columns that share memory with it. A list of the values that
    occur in it looks like a public one.
    """
    return _same_file(groups, given) or _shared(groups, by, given)


def _same_file(groups: Any, given: Any) -> bool:
    """Whether groups are one of the table's files."""
    if not (isinstance(groups, str | Path) and is_paths(given)):
        return False
    one, files = Path(groups), [Path(given)] if isinstance(given, str | Path) else []
    with suppress(ValueError, OSError):
        files = [*files, *files_of(given)[0]]
    return one in files or (one.is_file() and any(file.is_file() and one.samefile(file) for file in files))


def _shared(groups: Any, by: Sequence[str], given: Any) -> bool:
    """Whether a frame or column lies in the memory of the frame that is asked about."""
    if groups is given and groups is not None:
        return True
    frames = groups.values() if isinstance(groups, Mapping) else [groups[n] for n in by if _has(groups, n)] or [groups]
    with suppress(Exception):  # text that is not UTF-8, say; its error would quote the cell
        own = {place for name in by if _has(given, name) for place in _places(given[name])}
        return any(_places(column) & own for column in frames)
    return False


def _has(frame: Any, name: str) -> bool:
    """Whether it is a frame with such a column."""
    return hasattr(frame, "__getitem__") and name in (names_of(frame) or ())


def _places(column: Any) -> set[int]:
    """The addresses of a column's memory; empty where they are not known."""
    array = getattr(column, "array", column)  # pandas
    if hasattr(array, "__arrow_array__"):
        array = array.__arrow_array__()
    elif hasattr(array, "to_arrow"):  # Polars
        array = array.to_arrow(compat_level=sys.modules["polars"].CompatLevel.newest())
    chunks = getattr(array, "chunks", [array])
    if all(hasattr(chunk, "buffers") for chunk in chunks):
        return {buffer.address for chunk in chunks for buffer in chunk.buffers() if buffer is not None and buffer.size}
    if isinstance(array, np.ndarray) or hasattr(array, "to_numpy"):
        values = array if isinstance(array, np.ndarray) else array.to_numpy()
        return {int(values.__array_interface__["data"][0])} if values.size else set()
    return set()
