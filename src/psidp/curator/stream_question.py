"""What a stream may ask, checked against schema and parameters alone."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from psidp.curator.calendar import Calendar, Every
from psidp.curator.engine import location
from psidp.curator.groups import PrivateGroups
from psidp.curator.query import Query, rows_in_words
from psidp.curator.source_files import paths_in
from psidp.strategies import Participation

__all__ = ["Place", "check_groups", "check_wait", "place_of", "stream_question", "table_words"]

KINDS = ("count", "units", "sum")
ARRIVED = "arrived (when a row came into the table)"
DATED = "dated (the day that a row is about)"


class Place(NamedTuple):
    """The column that says in which period a row counts, the file that keeps closed periods, where they are, and which
    table it is."""

    column: str
    seal: Path | None
    table: str = ""


def place_of(
    query: Query, schema: Mapping[str, Any], untyped: frozenset[str], arrived: str | None, totals: str | None,
    dated: str | None, seal: str | Path | None,
) -> Place:  # fmt: skip
    """Where rows have their periods from: one of arrived= and totals="sealed", since without either nothing holds."""
    if totals not in (None, "sealed"):
        raise ValueError(f'totals must be "sealed" or left out, got totals={totals!r}.')
    if bool(arrived) == bool(totals):
        raise ValueError(
            'one of arrived and totals="sealed" must be given. arrived names the column that says when a row came into '
            'a table to which rows are only added. totals="sealed", with dated and seal, is for a table that is '
            "written anew: what a period has when it is published is kept in a file."
        )
    if totals is None:
        if dated is not None or seal is not None:
            raise ValueError('dated and seal must be given with totals="sealed", and be left out with arrived.')
        return Place(_column(ARRIVED, "arrived", str(arrived), schema, untyped), None)
    if dated is None or seal is None:
        raise ValueError(
            'totals="sealed" must be given with dated, the column of the day that a row is about, and seal, the file '
            "that keeps the totals of closed periods and is as secret as the table."
        )
    if query.unit is None:
        raise ValueError(
            'unit must be a column where totals are "sealed": a row without a unit has no name by which to know that '
            "it was counted before, got unit=None."
        )
    if isinstance(query.unit, tuple):
        raise ValueError(
            'unit must be one column where totals are "sealed", since units are kept as text, got '
            f"unit={query.unit!r}. Give arrived, or a column that holds both."
        )
    kind = schema[query.unit]
    if not (kind.is_integer() or kind.is_string() or kind.is_uuid()):
        raise TypeError(
            'the unit column must hold whole numbers, text or UUIDs where totals are "sealed", since units are kept as '
            f"text, got {query.unit!r} of {kind}."
        )
    return Place(_column(DATED, "dated", dated, schema, untyped), Path(seal))


def table_words(table: Any, source: Any) -> str:
    """Which table it is, whatever columns it has: its place and name; a frame, which has none, is "frame".

    Of files that are listed one by one the first: more of them may come.
    """
    import ibis.expr.operations as ops  # type: ignore[import-untyped,unused-ignore]

    if hasattr(source, "op"):
        name = rows_in_words(table, None)
    elif paths_in(source):
        name = f"{min(Path(path).resolve() for path in source)} and others"
    else:
        found = table.op().find(ops.PhysicalTable)
        name = ", ".join("frame" if isinstance(op, ops.InMemoryTable) else op.name for op in found)
    place = location(table.get_backend())
    return f"{name} of {place}" if place else name


def _column(meaning: str, name: str, column: str, schema: Mapping[str, Any], untyped: frozenset[str]) -> str:
    """A column of dates or instants."""
    if column not in schema:
        raise ValueError(f"{meaning} must be a column of it, got {name}={column!r}.")
    kind = schema[column]
    if not (kind.is_date() or kind.is_timestamp() or column in untyped):
        raise TypeError(f"{meaning} must be a column of dates or instants, got {column!r} of {kind}.")
    return column


def check_wait(wait: timedelta) -> timedelta:
    """Refuse to publish a period that is not over: what came later would change it."""
    if not wait >= timedelta(0):
        raise ValueError(f"wait (from the end of a period until it is published) must not be negative, got {wait}.")
    return wait


def check_groups(by: str | Sequence[str], groups: Any) -> None:
    """Refuse columns without groups: those of a stream are public and fixed."""
    if by and groups is None:
        columns = by if isinstance(by, str) else ", ".join(map(str, by))
        raise ValueError(
            f"groups must be given for by={columns}: a list that does not depend on the data and stays for all "
            "periods. On the command line: --groups A,B,C or --groups groups.csv."
        )


def stream_question(
    query: Query, calendar: Calendar, at_most: int | None, apart: int, each: int | Every | None
) -> Participation:
    """The promise about a unit's periods, once what is asked is checked."""
    for a in query.asks:
        if a.kind not in KINDS or a.weights is not None or a.top:
            raise ValueError(f"a stream must ask for count, units or sum, got {a.name!r}. Ask for it in a release.")
        if a.bounds is not None:
            raise ValueError(f"bounds of {a.column!r} must be given in a stream, which has no data to choose them.")
        if a.contribution == "auto":
            raise ValueError('contribution must be a number in a stream, which has no data to choose it, got "auto".')
    if isinstance(query.groups, PrivateGroups):
        raise ValueError("groups must be public in a stream: they cannot change while it goes on, got PrivateGroups.")
    if query.unit is None:
        if not (at_most in (None, 1) and apart == 1 and each is None):
            raise ValueError("at_most must be 1 where every row is its own unit, which is in one period.")
        return Participation(1)
    if at_most is None and apart == 1 and each is None:
        raise ValueError(
            "at_most (periods in which one unit counts) must be a whole number of at least 1, got at_most=None. Give "
            f"at_most, apart or each; at_most={calendar.periods} counts every period."
        )
    return Participation(at_most, apart, calendar.bucket_lengths(each) if isinstance(each, str) else each)
