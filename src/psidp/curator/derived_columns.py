"""Derived columns of a question: "month(visited)" in `by`, or as what is summed, becomes a column of the table.

Its groups may be left out where the definition says them all: a month is 1 to 12, whatever the rows hold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import Any

from psidp.curator.ask import Aggregate
from psidp.curator.comparison import Side
from psidp.curator.condition_text import parse, shorten
from psidp.curator.filters import derived_side, text_rules
from psidp.curator.groups import PrivateGroups, key_tuples, refuse_own_groups
from psidp.curator.readings import Reading
from psidp.curator.row_sql import ibis_library

__all__ = ["DerivedTable", "derived_cube", "derived_table", "with_groups"]

LONGEST_NAME = 63
"""Bytes of a name that PostgreSQL keeps; what is longer would be cut, and might meet another."""

NOTHING: Mapping[str, tuple[Any, ...]] = MappingProxyType({})
ENGINES = ("duckdb", "postgres", "pyspark")


@dataclass(frozen=True, slots=True)
class DerivedTable:
    """A table with the derived columns of a question.

    Args:
        table: the Ibis table with them. by: the names of the columns that make groups. asks: the aggregates, of columns
            that the table has. values: all values of derived columns whose definition says them. columns: of a cube.
        readings: how columns without a type were read for it.
    """

    table: Any
    by: tuple[str, ...]
    asks: tuple[Aggregate, ...]
    values: Mapping[str, tuple[Any, ...]]
    columns: Any = None
    readings: tuple[Reading, ...] = ()


def derived_table(
    table: Any, by: Any, asks: Sequence[Any], untyped: frozenset[str], known: Mapping[str, tuple[Any, ...]] = NOTHING
) -> DerivedTable:
    """The table with what `by` and the aggregates derive from its columns; refused by schema and form alone.

    Args:
        by: names of columns, texts such as "month(visited)" or "left(zip, 2) as area", or Ibis expressions. known: all
            values of columns that a public table gave.
    """
    sides: dict[str, Side] = {}
    seen: dict[Reading, None] = {}
    names = [_named(table, given, "by", untyped, sides, seen) for given in _listed(by)]
    made = tuple(
        replace(a, column=_named(table, a.column, "column", untyped, sides, seen))
        if isinstance(a, Aggregate) and a.column is not None and a.column not in table.columns
        else a
        for a in asks
    )
    known = {**known, **{name: side.values for name, side in sides.items() if side.values is not None}}
    if sides:
        table = table.mutate(**{name: side.value for name, side in sides.items()})
    return DerivedTable(table, tuple(names), made, known, readings=tuple(seen))


def derived_cube(
    table: Any, columns: Any, measures: Sequence[Any], untyped: frozenset[str], known: Mapping[str, tuple[Any, ...]]
) -> DerivedTable:
    """The same for the columns of a cube; None stands for all values of one whose definition says them."""
    if not isinstance(columns, Mapping):
        return replace(derived_table(table, (), measures, untyped), columns=columns)
    made = derived_table(table, columns, measures, untyped, known)
    given = zip(made.by, columns.values(), strict=True)
    return replace(made, columns={n: made.values.get(n) if values is None else values for n, values in given})


def with_groups(derived: DerivedTable, groups: Any, source: Any) -> Any:
    """The groups, with those of derived columns that were left out: all combinations with the others."""
    known = [name for name in derived.by if name in derived.values]
    rest = [name for name in derived.by if name not in derived.values]
    if not known or isinstance(groups, PrivateGroups):
        return groups
    if groups is None:
        return groups if rest else list(product(*(derived.values[name] for name in derived.by)))
    refuse_own_groups(groups, derived.by, derived.table, source)
    if isinstance(groups, Mapping):
        left_out = {name: derived.values[name] for name in known if name not in groups}
        return {**groups, **left_out} if left_out else groups
    if not rest:
        return groups
    try:
        given = key_tuples(groups, rest, derived.table.schema())
    except ValueError:
        return groups  # they name all columns, or are refused where all groups are
    rows = (dict(zip(rest, key, strict=True)) | dict(zip(known, values, strict=True))
            for key in given for values in product(*(derived.values[name] for name in known)))  # fmt: skip
    return [tuple(row[name] for name in derived.by) for row in rows]


def _listed(by: Any) -> Sequence[Any]:
    """What makes groups, one by one."""
    ibis = ibis_library()
    return (by,) if isinstance(by, str | ibis.Value | type(ibis._)) else tuple(by or ())


def _named(
    table: Any, given: Any, role: str, untyped: frozenset[str], sides: dict[str, Side], seen: dict[Reading, None]
) -> Any:
    """The name of a column; one that is derived is put with the others, and how it reads columns without a type."""
    if not _is_derived(table, given):
        return given
    if table.get_backend().name not in ENGINES:
        raise ValueError(f"{role} must name columns that the table has, unless it is on DuckDB, PostgreSQL or Spark.")
    if isinstance(given, str):
        node, name = parse(given, table.columns, role)
        side = text_rules(table, node, untyped, role, seen).side(node)
        name = name or given.strip()
    else:
        name, side = derived_side(table, given, role)
    if not len(name.encode(errors="replace")) <= LONGEST_NAME:
        raise ValueError(
            f"{role} must give a derived column a name of at most {LONGEST_NAME} letters, such as "
            f'"left(zip, 2) as area", got {shorten(name)!r}.'
        )
    if name in table.columns or (name in sides and not sides[name].value.equals(side.value)):
        raise ValueError(f"{role} must give a derived column a name that no other has, got {name!r}.")
    sides[name] = side
    return name


def _is_derived(table: Any, given: Any) -> bool:
    """Whether it is a definition rather than a name."""
    if isinstance(given, str):
        return given not in table.columns and ("(" in given or given.strip().lower().startswith("case "))
    ibis = ibis_library()
    return isinstance(given, ibis.Value | type(ibis._))
