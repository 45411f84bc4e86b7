"""Report: how a budget stands, its lifetime beside the present, and every change it has seen."""

from dataclasses import dataclass
from typing import Any

from psidp.errors import UnknownBudgetError
from psidp.guarantee import Guarantee
from psidp.ledger.actor import UNITS
from psidp.ledger.approvals import Asked
from psidp.ledger.balance import Balance
from psidp.ledger.budget import Budget, period_of
from psidp.ledger.cost import ZERO, Cost
from psidp.ledger.entry import Entry
from psidp.ledger.log import EntryLog
from psidp.ledger.results import unreleased

__all__ = ["Report", "history_of", "report_of", "standing_of"]

ASKING = ("requested", "approved", "denied")
"""States of entries that change no terms, and ask for a spend or answer that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One budget: what it may spend, has spent and has left, now and since it was opened.

    Attributes:
        budget: the terms it was opened under.
        cap: what it may spend, in each period if it renews.
        spent: since the last reset or renewal; rounded up.
        remaining: rounded down, so that spending it fits.
        lifetime: since it was opened, across resets and renewals; rounded up.
        unit_total: everything ever spent on this unit and adjacency, over all budgets of the ledger; rounded up.
        allotted: given to shares, which are budgets of their own.
        changes: opening, raises, resets, renewals, splits and closing, in order.
        asked: requests, approvals and denials, in order.
        units: the spends that say which column names the units, in order; the first one's is the budget's.
        above: the psi above which a spend needs an approval, now; None: no spend does.
        paused: who may not spend; "" among them stands for everybody.
        waiting: requests that were not answered, and approvals that were not used.
        unreleased: how many spends failed or were interrupted since it was opened, and what they cost; rounded up.
    """

    budget: Budget
    cap: Guarantee
    spent: Guarantee
    remaining: Guarantee
    lifetime: Guarantee
    unit_total: Guarantee
    allotted: Guarantee
    era: int
    period: str
    closed: bool
    changes: tuple[Entry, ...]
    units: tuple[Entry, ...] = ()
    above: float | None = None
    paused: tuple[str, ...] = ()
    waiting: tuple[Asked, ...] = ()
    asked: tuple[Entry, ...] = ()
    unreleased: tuple[int, Guarantee] = (0, Guarantee(0.0))

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        b = self.budget
        parts = b.partitions and {"column": b.partitions.column, "values": list(b.partitions.values)}
        terms: dict[str, Any] = {
            "budget": b.name,
            "unit": b.unit,
            "adjacency": b.adjacency,
            "actor": b.actor,
            "purpose": b.purpose,
        }
        terms |= {"partitions": parts | {"declared_by": b.partitions.declared_by}} if b.partitions and parts else {}
        terms |= {"renews": b.renews, "period": self.period} if b.renews else {}
        terms |= {"part_of": b.part_of} if b.part_of else {}
        amounts: dict[str, dict[str, float]] = {
            name: {"psi": amount.psi, "kappa": amount.kappa}
            for name in ("cap", "spent", "remaining", "lifetime", "unit_total", "allotted")
            if isinstance(amount := getattr(self, name), Guarantee)
        }
        count, lost = self.unreleased
        amounts["unreleased"] = {"spends": count, "psi": lost.psi, "kappa": lost.kappa}
        changes = [
            {"id": e.id, "time": e.time, "state": e.state, "purpose": e.purpose, "event": e.details()}
            for e in self.changes
        ]
        units = [{"id": e.id} | {n: v for n, v in e.details().items() if n in UNITS} for e in self.units]
        terms |= {"table": b.table} if b.table else {}
        now = {"era": self.era, "closed": self.closed, "paused": list(self.paused), "approval_above": self.above}
        waiting = [asked._asdict() for asked in self.waiting]
        return terms | amounts | now | {"waiting": waiting, "changes": changes, "units": units}


def standing_of(chain: EntryLog, budget: Budget, partition: str = "") -> Balance:
    """How a budget stands now: in the period that the clock says, if it renews."""
    last = chain.last_of(budget.name)
    if last is None:
        raise UnknownBudgetError(f"no budget {budget.name!r} was opened in this ledger. psidp ledger show lists them.")
    standing = Balance.read(last.standing)
    if budget.renews:
        period = period_of(budget.renews, chain.now(last))
        standing = standing.renewed(period) if period > standing.period else standing
    part = chain.last_of(budget.name, partition) if partition else None
    return standing.at_partition(None if part is None else Balance.read(part.standing))


def report_of(chain: EntryLog, budget: Budget, units: tuple[Entry, ...] = ()) -> Report:
    """The report on one budget."""
    now, like, changes = standing_of(chain, budget), budget.guarantee, chain.changes(budget.name)
    count, lost = unreleased(chain, budget.name)
    return Report(
        budget=budget,
        cap=now.cap.guarantee_below(like),
        spent=now.spent.total.guarantee(like),
        remaining=(ZERO if now.closed else now.left()).guarantee_below(like),
        lifetime=now.lifetime.total.guarantee(like),
        unit_total=_unit_total(chain, budget).guarantee(like),
        allotted=now.allotted.guarantee(like),
        era=now.era,
        period=now.period,
        closed=now.closed,
        changes=tuple(e for e in changes if e.state not in ASKING),
        asked=tuple(e for e in changes if e.state in ASKING),
        units=units,
        above=now.above,
        paused=now.paused,
        waiting=now.waiting,
        unreleased=(count, lost.guarantee(like)),
    )


def _unit_total(chain: EntryLog, budget: Budget) -> Cost:
    """Everything ever spent on the budget's unit under its adjacency, over all budgets."""
    total = ZERO
    for entry in chain.changes():
        if entry.state == "opened":
            terms = entry.details()
            if (terms["unit"], terms["adjacency"]) == (budget.unit, budget.adjacency):
                last = chain.last_of(entry.budget)
                total += ZERO if last is None else Balance.read(last.standing).lifetime.total
    return total


def history_of(chain: EntryLog, budget: Budget, points: int) -> list[tuple[str, float]]:
    """Time and lifetime psi at so many entries of a budget, evenly spread; however long the ledger, a few look-ups."""
    first, last = chain.opening_of(budget.name), chain.last_of(budget.name)
    if last is None:
        return []
    ids = {first.id + (last.id - first.id) * k // max(points - 1, 1) for k in range(points)}
    found = (chain.last_of(budget.name, until=i) for i in sorted(ids))
    return [(e.time, Balance.read(e.standing).lifetime.total.psi) for e in found if e is not None]
