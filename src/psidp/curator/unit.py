"""Unit: the column that names whose data a row is, or several whose values do so together; and their names inside.

A row belongs to a unit where every column of it has a value; other rows do not count. Engines group and join by the
columns themselves, so that two pairs are one unit only where both values are the same.
"""

from collections.abc import Sequence
from typing import Any

__all__ = [
    "Unit", "columns_of", "named_units", "owners", "pinned", "same_unit", "unit_of", "unit_words", "units_in",
    "with_units",
]  # fmt: skip

Unit = str | tuple[str, ...] | None
"""None where every row is a unit."""

UNIT, OWNER = "unit", "owner"
"""How columns are called inside that hold a unit, and in the table of units that joins with them."""


def unit_of(unit: str | Sequence[str] | None) -> Unit:
    """One column by its name, several as a tuple.

    Examples:
        >>> unit_of(["carrier", "day"]), unit_of(["patient_id"]), unit_of(None)
        (('carrier', 'day'), 'patient_id', None)
    """
    if unit is None or isinstance(unit, str):
        return unit
    columns = tuple(unit) if isinstance(unit, list | tuple) else ()
    if not columns or not all(isinstance(name, str) for name in columns) or len(set(columns)) < len(columns):
        raise TypeError(
            "unit (column that names units of privacy) must be the name of a column, different names of several, or "
            f"None where every row is a unit, got unit={unit!r}."
        )
    return columns[0] if len(columns) == 1 else columns


def columns_of(unit: Unit) -> tuple[str, ...]:
    """The names of a unit's columns; none where every row is a unit."""
    return () if unit is None else (unit,) if isinstance(unit, str) else unit


def pinned(unit: Unit) -> str | list[str] | None:
    """A unit as a ledger keeps it: several columns in the order of their names, since theirs does not matter."""
    return sorted(unit) if isinstance(unit, tuple) else unit


def unit_words(unit: Unit, joined: str = " and ") -> str:
    """Its columns in words.

    Examples:
        >>> unit_words(("carrier", "day"))
        'carrier and day'
    """
    return joined.join(columns_of(unit))


def named_units(rows: Any, unit: Unit) -> dict[str, Any]:
    """A unit's columns of a table, under the names that they have inside."""
    return {f"{UNIT}{i or ''}": rows[name] for i, name in enumerate(columns_of(unit))}


def with_units(rows: Any, unit: Unit) -> Any:
    """The rows that belong to a unit; all where every row is one."""
    return rows.filter([rows[name].notnull() for name in columns_of(unit)]) if unit is not None else rows


def units_in(table: Any) -> list[str]:
    """The columns of a table inside that hold the unit."""
    return [name for name in table.columns if name == UNIT or name.removeprefix(UNIT).isdecimal()]


def owners(units: Any) -> dict[str, Any]:
    """The columns of a table of units under the names that they have where it is joined."""
    return {name.replace(UNIT, OWNER): units[name] for name in units_in(units)}


def same_unit(cells: Any, units: Any) -> list[Any]:
    """Which cells belong to which of the `owners`."""
    return [cells[name] == units[name.replace(UNIT, OWNER)] for name in units_in(cells)]
