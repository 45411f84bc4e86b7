"""Groups: which groups an answer has. Public ones are given; private ones are chosen by noise, at a stated kappa."""

import csv
import datetime
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import product
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np

from psidp.curator.column_types import check_kind
from psidp.curator.contribution_sql import key_name
from psidp.curator.engine import open_table
from psidp.curator.row_sql import ibis_library, stairs, whole
from psidp.curator.source_files import paths_in, source_files
from psidp.curator.unit import Unit, named_units, owners, same_unit, units_in, with_units
from psidp.maths.thresholding import kappa_from_threshold, threshold_from_kappa
from psidp.mechanism.clipping import IntegerGrid
from psidp.symbols import symbol

__all__ = [
    "Key",
    "PrivateGroups",
    "key_filter",
    "key_from_text",
    "key_literal",
    "key_tuples",
    "keys_from_text",
    "plain_key",
    "public_groups",
    "refuse_own_groups",
]

Key = tuple[Any, ...]
MOST_TOUCHED = 4096
MOST_GROUPS = 10_000_000


@dataclass(frozen=True, slots=True)
class PrivateGroups:
    """Groups taken from the data: those whose noisy number of units exceeds a threshold.

    A unit that touches m groups adds w_m = min(1, contribution/sqrt m) to each; one that touches more than `at_most`
    adds nothing. No group is released merely because it is in the data.

    Args:
        kappa: the chance, at most, that a key which only one unit has comes through; it enters the Guarantee.
        at_most: how many groups a unit may touch and still count.
        contribution: bound on the L2 norm of what a unit adds, [1, 64].
        weight: share of psi^2, relative to the aggregates'.
    """

    kappa: float
    at_most: int
    contribution: float = 1.0
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not symbol("kappa").number(self.kappa) >= 1e-300:
            raise ValueError(f"kappa (probability of outright failure) must be above 0 here, got kappa={self.kappa}.")
        if isinstance(self.at_most, bool) or not (isinstance(self.at_most, int) and 1 <= self.at_most <= MOST_TOUCHED):
            raise ValueError(
                f"at_most (groups a unit may touch) must be a whole number in [1, {MOST_TOUCHED}], "
                f"got at_most={self.at_most}."
            )
        if not 1.0 <= self.contribution <= 64.0:
            raise ValueError(
                f"contribution of private groups must be in [1, 64], got contribution={self.contribution}."
            )
        if not 0.0 < self.weight < float("inf"):
            raise ValueError(f"weight (share of psi^2, relative) must be in (0, inf), got weight={self.weight}.")

    @property
    def lattice(self) -> IntegerGrid:
        """The integers in which units are counted."""
        return IntegerGrid.fitting(self.contribution, self.at_most)

    @property
    def steps(self) -> list[int]:
        """w_1, w_2, ... in lattice steps: m w_m^2 <= bound^2 in integers."""
        grid = self.lattice
        one = grid.truncated(1.0)
        return [min(one, isqrt(grid.bound**2 // m)) for m in range(1, self.at_most + 1)]

    def threshold(self, sigma: float, grid: float) -> float:
        """Smallest tau for which noise of this size, rounded to a grid, keeps kappa."""
        return threshold_from_kappa(self.kappa, sigma, self._weights()) + grid

    def kappa_at(self, threshold: float, sigma: float, grid: float) -> float:
        """The kappa that a threshold really has."""
        return kappa_from_threshold(threshold - grid, sigma, self._weights())

    def expression(self, rows: Any, unit: Unit, by: Sequence[str]) -> Any:
        """Every key in the data with the sum of its units' w_m in lattice steps; its rows, where they are units."""
        names = {key_name(i): rows[column] for i, column in enumerate(by)}
        if unit is None:
            cells = rows.select(**names)
            return cells.group_by(list(names)).aggregate(c0=cells.count())
        kept = with_units(rows, unit)
        cells = kept.select(**named_units(kept, unit), **{n: kept[c] for n, c in zip(names, by, strict=True)})
        cells = cells.group_by([*units_in(cells), *names]).aggregate(rows=cells.count())
        touched = cells.group_by(units_in(cells)).aggregate(m=cells.count())
        touched = touched.filter(touched.m <= whole(self.at_most))
        edges = [whole(m) for m in range(2, self.at_most + 1)]
        light = touched.select(**owners(touched), w=stairs(touched.m, edges, self.steps))
        joined = cells.inner_join(light, same_unit(cells, light))
        return joined.group_by(list(names)).aggregate(c0=joined.w.sum().cast("decimal(38, 0)"))

    def _weights(self) -> list[float]:
        """w_m in units, as doubles that are exact."""
        return [step * self.lattice.step for step in self.steps]

    def to_dict(self) -> dict[str, Any]:
        """The choice as plain values."""
        return {
            "kappa": self.kappa,
            "at_most": self.at_most,
            "contribution": self.contribution,
            "weight": self.weight,
        }


def public_groups(groups: Any, by: Sequence[str], schema: Any) -> tuple[Key, ...]:
    """The given groups as tuples of plain values, each of its column's type, in their order and without repetition.

    `groups`: a list of values, or of tuples where there are several columns; a dict from column to its values, all
    combinations of which are groups; an Enum; a frame or Ibis table with those columns; a .csv or .parquet file.
    """
    given = list(dict.fromkeys(_as_tuples(groups, by, schema)))
    if not 0 < len(given) <= MOST_GROUPS:
        raise ValueError(f"groups must be 1 to {MOST_GROUPS:,} groups, got {len(given)}.")
    checked = (tuple(_checked(value, name, schema[name]) for value, name in zip(key, by, strict=True)) for key in given)
    return tuple(dict.fromkeys(checked))


def key_tuples(groups: Any, by: Sequence[str], schema: Any) -> list[Key]:
    """The given groups as tuples of plain values, before they are held against the types of their columns."""
    return [tuple(map(plain_key, key)) for key in _as_tuples(groups, by, schema)]


def _as_tuples(groups: Any, by: Sequence[str], schema: Any) -> Iterable[Key]:
    """Whatever form groups come in, as tuples."""
    if isinstance(groups, type) and issubclass(groups, Enum):
        groups = [member.value for member in groups]
    if isinstance(groups, Mapping):
        missing = [name for name in by if name not in groups]
        if missing or len(groups) != len(by):
            raise ValueError(
                f"groups must have the columns {', '.join(map(repr, by))}, got {', '.join(map(repr, groups))}."
            )
        return product(*(list(groups[name]) for name in by))
    if isinstance(groups, str | Path):
        groups = _in_file(Path(groups), by, schema)
    if hasattr(groups, "to_pyarrow") and not hasattr(groups, "columns"):
        groups = groups.to_pyarrow()  # a column by itself
    if hasattr(groups, "to_pyarrow") or hasattr(groups, "columns") or hasattr(groups, "column_names"):
        return _from_frame(groups, by)
    if not isinstance(groups, Iterable):
        raise TypeError(f"groups must be a list of values or tuples, a table or a file, got {type(groups).__name__}.")
    return [_tuple(key, by) for key in groups]


def _in_file(path: Path, by: Sequence[str], schema: Any) -> Any:
    """The groups in a file; text of a CSV is read in the type of its column, and an empty cell as NULL."""
    if path.suffix.lower() == ".parquet" and path.is_file():
        return open_table(path)
    if not (path.suffix.lower() == ".csv" and path.is_file()):
        raise ValueError(f"groups must be values, a table, or a .csv or .parquet file that exists, got {str(path)!r}.")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    missing = [name for name in by if not rows or name not in rows[0]]
    if missing:
        raise ValueError(f"groups must have the columns {', '.join(map(repr, by))}, got a file without {missing[0]!r}.")
    return [tuple(key_from_text(row[name] or "", name, schema[name]) for name in by) for row in rows]


def key_from_text(text: str, name: str, kind: Any) -> Any:
    """A key's value written as text, in its column's type; nothing at all is NULL."""
    if text == "":
        return None
    readers: list[tuple[str, Callable[[str], Any]]] = [
        ("is_boolean", lambda word: {"true": True, "false": False}[word.lower()]),
        ("is_integer", int),
        ("is_date", datetime.date.fromisoformat),
        ("is_timestamp", datetime.datetime.fromisoformat),
        ("is_decimal", Decimal),
    ]
    for test, reader in readers:
        if getattr(kind, test)():
            try:
                return reader(text)
            except (ValueError, KeyError, ArithmeticError):
                raise ValueError(f"groups of {name!r} must be of type {kind}, got {text!r}.") from None
    return text


def keys_from_text(words: str, name: str, kind: Any) -> list[Any]:
    """Keys in a list such as A,B,C or 1..12, in their column's type; blanks around them are no part of them.

    Examples:
        >>> import ibis
        >>> keys_from_text("1..4", "month", ibis.dtype("int64"))
        [1, 2, 3, 4]
        >>> keys_from_text('North, "South, harbour"', "branch", ibis.dtype("string"))
        ['North', 'South, harbour']
    """
    first, dots, last = words.partition("..")
    if dots and all(end.strip().removeprefix("-").isdecimal() for end in (first, last)):
        if not int(first) <= int(last):
            raise ValueError(f"groups of {name!r} must count up, such as 1..12, got {words!r}.")
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


def _from_frame(frame: Any, by: Sequence[str]) -> Iterable[Key]:
    """The columns of a frame or table that bear the names."""
    arrow = frame.to_pyarrow() if hasattr(frame, "to_pyarrow") else frame
    names = list(getattr(arrow, "column_names", getattr(arrow, "columns", [])))
    missing = [name for name in by if name not in names]
    if missing:
        raise ValueError(f"groups must have the columns {', '.join(map(repr, by))}, got {', '.join(map(repr, names))}.")
    columns = [arrow[name].to_pylist() if hasattr(arrow[name], "to_pylist") else list(arrow[name]) for name in by]
    return zip(*columns, strict=True)


def _checked(given: Any, name: str, kind: Any) -> Any:
    """One value of a key, if its column can hold it."""
    value: Any = plain_key(given)
    if value is None:
        return None
    types, words = check_kind(name, kind)
    wrong = isinstance(value, bool) is not (bool in types) or isinstance(value, datetime.datetime) is not (
        datetime.datetime in types
    )
    if wrong or not isinstance(value, types):
        raise TypeError(f"groups of {name!r} must be {words}, got {type(value).__name__}.")
    if isinstance(value, str) and not _writable(value):
        raise ValueError(f"groups of {name!r} must be text without NUL and halves of letters, got {value!r}.")
    if kind.is_integer() and not kind.bounds.lower <= value <= kind.bounds.upper:
        raise ValueError(f"groups of {name!r} must fit into {kind}, got {value}.")
    return _decimal(value, name, kind) if kind.is_decimal() else value


def _writable(text: str) -> bool:
    """Whether every engine can hold a text."""
    return "\0" not in text and text.encode(errors="ignore").decode() == text


def _decimal(value: Any, name: str, kind: Any) -> Decimal:
    """A decimal that its column can hold: SQL's cast of another would fail, but only once a row comes so far."""
    number = Decimal(str(value))
    steps = Fraction(number) * 10 ** (kind.scale or 0) if number.is_finite() else None
    if steps is None or (
        kind.precision is not None and not (steps.denominator == 1 and abs(steps) < 10**kind.precision)
    ):
        raise ValueError(f"groups of {name!r} must fit into {kind}, got {value}.")
    return number


def plain_key(value: Any) -> Any:
    """A value as Python has it: out of NumPy or Arrow, NaN and NaT as None, instants in UTC without saying so."""
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


def key_filter(table: Any, by: Sequence[str], groups: Sequence[Key]) -> Any:
    """Whether a row belongs to one of the groups, NULL being a value like any other."""
    column = table[by[0]]
    if len(by) == 1:
        return _among(column, [key[0] for key in groups])
    heads: dict[Any, list[Key]] = {}
    for key in groups:
        heads.setdefault(key[0], []).append(key[1:])
    tails: dict[tuple[Key, ...], list[Any]] = {}
    for head, rest in heads.items():
        tails.setdefault(tuple(rest), []).append(head)
    conditions = [_among(column, same) & key_filter(table, by[1:], rest) for rest, same in tails.items()]
    return _either(conditions)


def _among(column: Any, values: Sequence[Any]) -> Any:
    """Whether a column has one of these values; whole numbers without a gap are a range."""
    kind, literal = column.type(), ibis_library().literal
    plain = kind.is_string() or kind.is_integer() or kind.is_boolean()
    known = [value for value in values if value is not None]
    absent = [column.isnull()] if len(known) < len(values) else []
    if kind.is_integer() and len(known) > 1 and max(known) - min(known) == len(set(known)) - 1:
        return _either([column.between(literal(min(known), kind), literal(max(known), kind)), *absent])
    present = [literal(value, kind) if plain else key_literal(value, kind) for value in known]
    return _either(([column.isin(present)] if present else []) + absent)


def key_literal(value: Any, kind: Any) -> Any:
    """A value in SQL, of its column's own type: dates and decimals through text, instants with their zone."""
    zone = "+00:00" if kind.is_timestamp() and kind.timezone is not None else ""
    text = f"{value:f}" if isinstance(value, Decimal) else f"{value}{zone}"  # no engine need read 1E-30
    return ibis_library().literal(text).cast(kind)


def _either(conditions: Sequence[Any]) -> Any:
    """Or, as a balanced tree."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return _either(conditions[:middle]) | _either(conditions[middle:])


def refuse_own_groups(groups: Any, by: Sequence[str], table: Any, source: Any) -> None:
    """Refuse groups that come from the table itself: each would be released merely because it is in the data.

    Seen are Ibis expressions over the table, its own file, and frames and columns that lie in the memory of the frame
    it was made of. A list of the values that occur cannot be told from a public one.
    """
    if _same_relation(groups, table) or _same_file(groups, source) or _shared(groups, by, source):
        raise ValueError(
            "groups must not come from the table itself: a group would be shown merely because somebody is in it. Give "
            "those that are known without it, or psidp.PrivateGroups(kappa=..., at_most=...) to choose them privately."
        )


def _same_relation(groups: Any, table: Any) -> bool:
    """Whether an Ibis expression reads a table that the curator reads."""
    import ibis.expr.operations as ops  # type: ignore[import-untyped,unused-ignore]

    op = groups.op() if hasattr(groups, "op") else None
    return op is not None and bool(set(op.find(ops.PhysicalTable)) & set(table.op().find(ops.PhysicalTable)))


def _same_file(groups: Any, source: Any) -> bool:
    """Whether both are one file."""
    if not (isinstance(groups, str | Path) and (isinstance(source, str | Path) or paths_in(source))):
        return False
    one, several = Path(groups), None
    with suppress(ValueError, OSError):
        several = source_files(source)
    files = several.paths if several else [Path(source)] if isinstance(source, str | Path) else []
    return one in files or (one.is_file() and any(file.is_file() and one.samefile(file) for file in files))


def _shared(groups: Any, by: Sequence[str], source: Any) -> bool:
    """Whether a frame or column lies in the memory of the frame that is asked about."""
    if groups is source:
        return True
    given = groups.values() if isinstance(groups, Mapping) else [groups[n] for n in by if _has(groups, n)] or [groups]
    with suppress(Exception):  # text that is none, say; its error would quote the cell
        own = {place for name in by if _has(source, name) for place in _places(source[name])}
        return any(_places(column) & own for column in given)
    return False


def _has(frame: Any, name: str) -> bool:
    """Whether it is a frame with such a column."""
    names: Any = getattr(frame, "column_names", getattr(frame, "columns", ()))
    return hasattr(frame, "__getitem__") and not hasattr(frame, "op") and name in list(names)


def _places(column: Any) -> set[int]:
    """Where in memory a column's values lie; nowhere where that is not known."""
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
