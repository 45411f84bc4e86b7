"""The columns that name units of privacy: one, several that do so together, or none where every row is a unit.

A row belongs to a unit where every column of it has a value; other rows do not count. Engines group and join by the
columns themselves, so that two pairs are one unit only where both values are the same.
"""

from collections.abc import Mapping, Sequence

from psidp.tables.columns import need_column
from psidp.tables.types import Type

__all__ = ["check_unit", "unit_columns"]

KINDS = ("integer", "text", "decimal", "date", "timestamp", "time", "boolean", "uuid", "binary", "inet", "macaddr")
"""Types of a unit's column. Others, JSON among them, are stored in another form than they are compared in."""


def unit_columns(unit: str | Sequence[str] | None) -> tuple[str, ...]:
    """The names of a unit's columns; none where every row is a unit.

    Examples:
        >>> unit_columns(["carrier", "day"]), unit_columns("patient_id"), unit_columns(None)
        (('carrier', 'day'), ('patient_id',), ())
    """
    if unit is None or isinstance(unit, str):
        return () if unit is None else (unit,)
    columns = tuple(unit) if isinstance(unit, list | tuple) else ()
    if not columns or not all(isinstance(name, str) for name in columns) or len(set(columns)) < len(columns):
        raise TypeError(
            "unit (column that names units of privacy) must be the name of a column, different names of several, or "
            f"None where every row is one, got unit={unit!r}."
        )
    return columns


def check_unit(columns: Sequence[str], schema: Mapping[str, Type]) -> None:
    """Refuse columns that are missing, and types whose values are not told apart in one way only."""
    for name in columns:
        kind = need_column(name, schema, "unit")
        if kind.kind == "float":
            raise TypeError(
                f"unit must be a column of whole numbers, text or the like, got {name!r} of {kind}. Give a view in "
                "which it is one of these."
            )
        if kind.kind not in KINDS:
            raise TypeError(
                "unit must be a column of whole numbers, text, decimals, dates, times, truth values, UUIDs, bytes or "
                f"addresses, got {name!r} of {kind}: other types are not told apart in one way only."
            )
