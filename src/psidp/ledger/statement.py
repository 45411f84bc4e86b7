"""Statement: what was spent in a stretch of time, by unit, budget, table and actor, and who allowed the largest."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from psidp.guarantee import Guarantee
from psidp.ledger.budget import Budget
from psidp.ledger.cost import ZERO, Cost
from psidp.ledger.entry import Entry
from psidp.ledger.listing import Selection, chosen
from psidp.ledger.log import BATCH, EntryLog
from psidp.ledger.report import Report
from psidp.ledger.results import results_of

__all__ = ["Line", "Statement", "statement_of"]

LARGEST = 10
UNSAID = "(not said)"


@dataclass(frozen=True, slots=True)
class Line:
    """One spend as people read it: when, who, of which table, for what, at what price, who allowed it, what became of
    it."""

    id: int
    time: str
    budget: str
    actor: str
    table: str
    table_unit: str
    purpose: str
    psi: float
    kappa: float
    approved_by: str = ""
    result: str = ""

    @classmethod
    def of(cls, entry: Entry, approved_by: str = "", result: str = "") -> "Line":
        """The line of an entry."""
        event = entry.details()
        who = (event.get("by", ""), event.get("table", ""), event.get("table_unit", event.get("unit_column")) or "")
        return cls(entry.id, entry.time, entry.budget, *who, entry.purpose, entry.psi, entry.kappa, approved_by, result)


@dataclass(slots=True)
class _Total:
    """What one table, actor or budget spent: how often, and together."""

    spends: int = 0
    common: Cost = ZERO
    parts: dict[str, Cost] = field(default_factory=lambda: defaultdict(lambda: ZERO))

    def add(self, loss: Cost, partition: str = "") -> None:
        self.spends += 1
        if partition:
            self.parts[partition] += loss
        else:
            self.common += loss

    @property
    def cost(self) -> Cost:
        """Together, with disjoint partitions at what the largest paid."""
        largest = ZERO
        for part in self.parts.values():
            largest |= part
        return self.common + largest

    def to_dict(self) -> dict[str, Any]:
        worth = self.cost.guarantee(Guarantee(0.0))
        return {"spends": self.spends, "psi": worth.psi, "kappa": worth.kappa}


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What an officer tells of a stretch of time. Amounts are rounded up; what is left is rounded down.

    Attributes:
        which: what was chosen. head: the ledger's last entry. made: when.
        units: for each unit and adjacency, over all budgets that protect it: spends, psi, kappa.
        budgets, tables, actors, results: the same for each of them; a spend that says no table is under "(not said)".
        largest: the largest spends, with who allowed them. changes: what changed budgets meanwhile.
        reports: how each budget stands now. days: psi spent on each day, for a picture.
        verified: the entries of the ledger that were verified for it; None where nobody did.
        not_recomputed: those among them that are of kinds that this psidp does not know.
    """

    which: Selection
    made: str
    head: str
    units: dict[tuple[str, str], dict[str, Any]]
    budgets: dict[str, dict[str, Any]]
    tables: dict[str, dict[str, Any]]
    actors: dict[str, dict[str, Any]]
    results: dict[str, dict[str, Any]]
    largest: tuple[Line, ...]
    changes: tuple[Entry, ...]
    reports: tuple[Report, ...]
    days: tuple[tuple[str, float], ...]
    verified: int | None = None
    not_recomputed: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The statement as plain values."""
        units = [{"unit": unit, "adjacency": side} | total for (unit, side), total in self.units.items()]
        return {
            "form": "psidp-statement-1",
            "chosen": {name: value for name in ("budget", "actor", "table", "since", "until")
                       if (value := getattr(self.which, name))},
            "made": self.made,
            "head": self.head,
            "verified": self.verified,
            "not_recomputed": list(self.not_recomputed),
            "units": units,
            "budgets": [{"budget": name} | total for name, total in self.budgets.items()],
            "tables": [{"table": name} | total for name, total in self.tables.items()],
            "actors": [{"actor": name} | total for name, total in self.actors.items()],
            "results": [{"result": name} | total for name, total in self.results.items()],
            "largest": [{name: getattr(line, name) for name in Line.__slots__} for line in self.largest],
            "changes": [
                {"id": e.id, "time": e.time, "budget": e.budget, "state": e.state, "actor": e.details().get("by", ""),
                 "purpose": e.purpose}
                for e in self.changes
            ],
            "standing": [report.to_dict() for report in self.reports],
        }  # fmt: skip


def statement_of(
    log: EntryLog, which: Selection, made: str, budgets: dict[str, Budget], reports: Iterable[Report]
) -> Statement:
    """The statement on the spends that are chosen; memory does not grow with their number."""
    by: dict[str, dict[str, _Total]] = {name: defaultdict(_Total) for name in ("budget", "table", "actor", "result")}
    largest: list[tuple[float, int, Entry]] = []
    days: dict[str, Cost] = defaultdict(lambda: ZERO)
    for entry, result in _with_results(log, which):
        event, loss = entry.details(), Cost.of(Guarantee(entry.psi, entry.kappa))
        by["budget"][entry.budget].add(loss, entry.partition)
        by["table"][event.get("table", UNSAID)].add(loss)
        by["actor"][event.get("by", UNSAID)].add(loss)
        by["result"][result].add(loss)
        days[entry.time[:10]] += loss
        (heapq.heappush if len(largest) < LARGEST else heapq.heappushpop)(largest, (entry.psi, -entry.id, entry))
    units: dict[tuple[str, str], _Total] = defaultdict(_Total)
    for name, total in by["budget"].items():
        one = units[budgets[name].unit, budgets[name].adjacency]
        one.spends, one.common = one.spends + total.spends, one.common + total.cost
    last = log.last()
    return Statement(
        which=which,
        made=made,
        head="" if last is None else f"{last.id}:{last.hash}",
        units=_told(units),
        budgets=_told(by["budget"]),
        tables=_told(by["table"]),
        actors=_told(by["actor"]),
        results=_told(by["result"]),
        largest=tuple(
            Line.of(entry, log.approver(entry), results_of(log, [entry]).get(entry.id, ""))
            for _, _, entry in sorted(largest, reverse=True)
        ),
        changes=tuple(_changes(log, which)),
        reports=tuple(r for r in reports if not which.budget or r.budget.name == which.budget),
        days=tuple((day, cost.psi) for day, cost in sorted(days.items())),
    )


def _with_results(log: EntryLog, which: Selection) -> Iterator[tuple[Entry, str]]:
    """The entries that are chosen, each with what became of it."""
    entries = chosen(log, which)
    while batch := list(islice(entries, BATCH)):
        results = results_of(log, batch)
        for entry in batch:
            yield entry, results.get(entry.id, "")


def _changes(log: EntryLog, which: Selection) -> Iterable[Entry]:
    """What changed a budget in that time, requests and their answers among it."""
    first, last = which.times
    return [
        entry
        for entry in log.changes(which.budget or None)
        if (not first or first <= entry.time) and (not last or entry.time < last)
    ]


def _told(totals: dict[Any, _Total]) -> dict[Any, dict[str, Any]]:
    """The largest first."""
    return {name: totals[name].to_dict() for name in sorted(totals, key=lambda n: totals[n].cost.square, reverse=True)}
