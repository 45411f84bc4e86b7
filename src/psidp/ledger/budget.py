"""Budget: the terms under which a budget was opened, once and for all."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any, Literal, Self, get_args

from psidp.errors import MismatchError
from psidp.guarantee import Guarantee
from psidp.ledger.names import check_name
from psidp.maths.sensitivity import Adjacency
from psidp.symbols import LONGEST, check_text, float_below

__all__ = ["Budget", "Partitions", "Renewal", "check_limit", "period_of", "shorten"]

Renewal = Literal["", "day", "week", "month", "quarter", "year"]

OTHER = {
    "adjacency": "Promises for different neighbours do not add up: open a budget for this one. (A training with bands "
    "is for a record more or less where its records have ids=.)",
    "unit": "Promises for different units do not add up: open a budget for this one (unit=, --unit).",
}
"""What to do about a guarantee of another kind."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """Disjoint parts of the data: the values of a public column, and who declared that every unit lies in one only.

    Args:
        column: the public column.
        values: its values, listed beforehand; the list must not depend on the data.
        declared_by: who declared that no unit has data in two of them.
    """

    column: str
    values: tuple[str, ...]
    declared_by: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        for name, value in self.texts:
            check_text(name, value, None)
        if not 0 < len(self.values) == len(set(self.values)):
            raise ValueError(f"partitions must be one or more different values, got {list(self.values)!r}.")

    @property
    def texts(self) -> list[tuple[str, str]]:
        """What is said in words, and what it is called."""
        named = [("column", self.column), ("declared_by", self.declared_by)]
        return named + [("partition", value) for value in self.values]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Name, size, unit of privacy, adjacency, who opened it and why.

    `approval_above` is the psi above which a spend needs somebody else's approval, as the budget was opened; None: no
    spend does. `table` is the table that it is meant for, where that was said.

    Examples:
        >>> Budget(name="survey", guarantee=Guarantee(1.0, unit="patient"), actor="Ann", purpose="2026 survey").name
        'survey'
    """

    name: str
    guarantee: Guarantee
    actor: str
    purpose: str
    partitions: Partitions | None = None
    renews: Renewal = ""
    part_of: str = ""
    approval_above: float | None = None
    table: str = ""

    def __post_init__(self) -> None:
        for name, value in self.texts:
            check_text(name, value, None)
        check_limit(self.approval_above)
        if self.renews not in get_args(Renewal):
            raise ValueError(f"renews must be one of day, week, month, quarter, year, got renews={self.renews!r}.")
        if self.partitions and self.guarantee.adjacency != "add-remove":
            raise MismatchError(
                'adjacency must be "add-remove" for a budget in partitions, got '
                f'"{self.guarantee.adjacency}": someone replaced may move from one partition to another, and then both '
                "pay; and the number of units in each would be public."
            )

    @property
    def texts(self) -> list[tuple[str, str]]:
        """What is said in words, and what it is called."""
        named = [("budget", self.name), ("actor", self.actor), ("purpose", self.purpose)]
        return named + ([("table", self.table)] if self.table else [])

    @property
    def unit(self) -> str:
        """Whose data the budget protects."""
        return self.guarantee.unit

    @property
    def adjacency(self) -> Adjacency:
        """Which neighbours the budget speaks of."""
        return self.guarantee.adjacency

    def check_spend(self, guarantee: Guarantee, partition: str) -> None:
        """Refuse what speaks of other neighbours, another unit or an undeclared part of the data."""
        for name in ("adjacency", "unit"):
            mine, theirs = getattr(self, name), getattr(guarantee, name)
            if mine != theirs:
                raise MismatchError(
                    f"budget {self.name!r} has {name} {mine!r}, got a guarantee with {theirs!r}. {OTHER[name]}"
                )
        if partition and (self.partitions is None or partition not in self.partitions.values):
            known = "none" if self.partitions is None else ", ".join(map(repr, self.partitions.values[:8]))
            raise ValueError(
                f"partition of budget {self.name!r} must be one of those declared: {known}; got {partition!r}."
            )

    def event(self) -> dict[str, Any]:
        """The terms as the opening event. Only here length and name are checked: older ledgers have any."""
        check_name("actor", self.actor)
        for name, value in [*self.texts, ("unit", self.unit), *(self.partitions.texts if self.partitions else ())]:
            check_text(name, value)
        return self.terms()

    def terms(self) -> dict[str, Any]:
        """The terms as plain values."""
        terms: dict[str, Any] = {"kind": "opened", "by": self.actor} | self.guarantee.to_dict()
        if self.partitions:
            parts = self.partitions
            terms["partitions"] = {
                "column": parts.column,
                "values": list(parts.values),
                "declared_by": parts.declared_by,
            }
        more = {"renews": self.renews, "part_of": self.part_of, "table": self.table}
        limit = {} if self.approval_above is None else {"above": float(self.approval_above)}
        return terms | {name: value for name, value in more.items() if value} | limit

    def same_terms(self, other: "Budget") -> None:
        """Refuse terms that differ from those under which the budget was opened."""
        for name in ("guarantee", "partitions", "renews", "approval_above", "table"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise ValueError(
                    f"budget {self.name!r} was opened with {name}={mine!r}; exist_ok=True must come with the same "
                    f"terms, got {name}={theirs!r}."
                )

    @classmethod
    def from_event(cls, name: str, event: Mapping[str, Any], purpose: str) -> Self:
        """The terms that event() wrote."""
        guarantee = Guarantee(event["psi"], event["kappa"], event["adjacency"], event["unit"])
        parts = event.get("partitions")
        return cls(
            name=name,
            guarantee=guarantee,
            actor=event["by"],
            purpose=purpose,
            partitions=Partitions(**parts) if parts else None,
            renews=event.get("renews", ""),
            part_of=event.get("part_of", ""),
            approval_above=event.get("above"),
            table=event.get("table", ""),
        )


def check_limit(above: float | None) -> float | None:
    """The psi above which a spend needs an approval, if it is one."""
    if above is not None and not (isinstance(above, int | float) and 0.0 <= above < inf):
        raise ValueError(f"approval_above (psi that needs no approval) must be in [0, inf), got {above!r}.")
    return None if above is None else float_below(above)


def shorten(text: str) -> str:
    """The text, or its beginning where it is too long to be stored."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def period_of(renews: str, moment: datetime) -> str:
    """The name of the period that a moment lies in; names of one kind sort as time runs.

    Examples:
        >>> [period_of(kind, datetime(2026, 5, 9)) for kind in ("day", "week", "month", "quarter", "year")]
        ['2026-05-09', '2026-W19', '2026-05', '2026-Q2', '2026']
    """
    year, week, _ = moment.isocalendar()
    names = {
        "": "",
        "day": f"{moment:%Y-%m-%d}",
        "week": f"{year}-W{week:02}",
        "month": f"{moment:%Y-%m}",
        "quarter": f"{moment.year}-Q{(moment.month + 2) // 3}",
        "year": f"{moment.year}",
    }
    return names[renews]
