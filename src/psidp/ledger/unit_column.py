"""Unit column: which column of a table names a budget's units. A curator's first release says it in its entry.

    {"kind": "guarantee", "unit_column": "tailnum"}         the budget's units are the values of this column; null:
                                                            every row is one
    {"kind": "guarantee", "unit_column": "plane", "budget_unit_column": "tailnum",
     "same_unit": "both hold the registration"}             another column, and why its units are the same

An entry that says nothing has the budget's column, or was not a curator's. A budget and all its shares have one column.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

from sqlalchemy import bindparam, select

from psidp.errors import MismatchError
from psidp.ledger.actor import UNITS
from psidp.ledger.budget import Budget
from psidp.ledger.entry import ENTRIES, Entry
from psidp.ledger.log import EntryLog
from psidp.symbols import check_text

__all__ = ["Known", "Units", "first_of", "said"]

ROWS = ("record", "row")
"""Units that a row is, by their very name."""

Event = dict[str, Any]

_SAYING = (
    select(ENTRIES)
    .where(
        ENTRIES.c.budget.in_(bindparam("budgets", expanding=True)),
        ENTRIES.c.id > bindparam("after"),
        ENTRIES.c.state == "spent",
        ENTRIES.c.event.contains('"unit_column":', autoescape=True),
    )
    .order_by(ENTRIES.c.id)
)


class Known(NamedTuple):
    """A budget's unit column, and the entry that says it."""

    column: str | None
    entry: int

    @classmethod
    def of(cls, event: Mapping[str, Any], entry: int) -> Self:
        """What an entry says that the budget's column is; its own may be another."""
        return cls(event["budget_unit_column"] if "budget_unit_column" in event else event["unit_column"], entry)


def first_of(name: str, terms: Callable[[str], Budget]) -> str:
    """The budget that this one is a share of, or a share of a share; itself where it is none."""
    above = terms(name).part_of
    return first_of(above, terms) if above else name


def said(budget: Budget, known: Known | None, event: Mapping[str, Any]) -> Event:
    """The event as it is stored; refused where another column, or every row, would be a unit and nobody says why."""
    column, words = event["unit_column"], event.get("same_unit", "")
    rest = {name: value for name, value in event.items() if name not in UNITS}
    if words:
        check_text("same_unit", words)
    if known is not None and column == known.column:
        return rest
    if not words and known is not None:
        raise MismatchError(
            f"unit (column that names units of privacy) must be {known.column!r} for budget {budget.name!r}, as entry "
            f"{known.entry} says, got unit={column!r}. {_otherwise(budget)}"
        )
    if not words and column is None and budget.unit not in ROWS:
        raise MismatchError(
            f"unit (column that names units of privacy) must be a column for budget {budget.name!r}, which is per "
            f"{budget.unit}, got unit=None: every row would count as one {budget.unit}. {_otherwise(budget)}"
        )
    before = {} if known is None else {"budget_unit_column": known.column}
    return rest | {"unit_column": column} | before | ({"same_unit": words} if words else {})


def _otherwise(budget: Budget) -> str:
    return (
        f'If it is the same {budget.unit} all the same, say why in words: Curator(..., same_unit="...") '
        "(--same-unit). The words "
        "will be in the entry."
    )


class Units:
    """What the entries of a ledger say about units. They never change, so each is read once."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}
        self._read: dict[str, tuple[int, tuple[Entry, ...]]] = {}

    def known(self, chain: EntryLog, name: str, terms: Callable[[str], Budget]) -> Known | None:
        """The unit column of a budget and of all that are shares of one with it."""
        whole = first_of(name, terms)
        if whole not in self._known:
            opened = [entry.budget for entry in chain.changes() if entry.state == "opened"]
            family = [share for share in opened if first_of(share, terms) == whole]
            row = chain.connection.execute(_SAYING.limit(1), {"budgets": family, "after": 0}).first()
            if row is None:
                return None
            entry = Entry.from_row(row)
            entry.check_hash()
            self._known[whole] = Known.of(entry.details(), entry.id)
        return self._known[whole]

    def saying(self, chain: EntryLog, name: str) -> tuple[Entry, ...]:
        """The entries of a budget that say something about its units."""
        last = chain.last_of(name)
        until, before = self._read.get(name, (0, ()))
        if last is not None and last.id > until:
            rows = chain.connection.execute(_SAYING, {"budgets": [name], "after": until})
            self._read[name] = (last.id, before + tuple(Entry.from_row(row) for row in rows))
        return self._read.get(name, (0, ()))[1]
