"""Verification: recompute every hash, price and total, entry by entry; stop at the first bad one."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from psidp.errors import PsidpError, TamperedLedgerError
from psidp.guarantee import Guarantee
from psidp.ledger.approvals import Proposed
from psidp.ledger.balance import Balance, step
from psidp.ledger.budget import Budget
from psidp.ledger.cost import ZERO, Cost
from psidp.ledger.entry import Entry, canonical
from psidp.ledger.event import agrees
from psidp.ledger.log import SLACK, moment
from psidp.ledger.unit_column import Known, first_of, said

__all__ = ["Head", "Verification"]


@dataclass(frozen=True, slots=True)
class Head:
    """The last entry's number and hash: whoever keeps it can tell later whether the ledger was cut or rewritten.

    Examples:
        >>> Head.parse("3:" + "ab" * 32).id
        3
    """

    id: int
    hash: str

    def __str__(self) -> str:
        return f"{self.id}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> "Head":
        """The head that str() wrote."""
        number, _, value = text.strip().partition(":")
        if not (number.isdecimal() and len(value) == 64 and set(value) <= set("0123456789abcdef")):
            raise ValueError(f'a head must read number:hash with 64 hexadecimal digits, got "{text}".')
        return cls(int(number), value)


@dataclass(slots=True)
class Verification:
    """What a verifier remembers: the last hash, and for each budget its terms and balance. Memory does not grow with
    the number of spends, and all of it fits a file from which verification goes on later (ledger/kept.py)."""

    previous: str
    id: int = 0
    time: str = ""
    budgets: dict[str, Budget] = field(default_factory=dict)
    standings: dict[str, Balance] = field(default_factory=dict)
    partitions: dict[tuple[str, str], Balance] = field(default_factory=dict)
    promised: dict[str, list[str]] = field(default_factory=dict)
    units: dict[str, Known] = field(default_factory=dict)
    renewed: str = ""
    """The budget that the last entry renewed, if it did."""

    def over(self, entries: Iterable[Entry], kept: Head | None = None) -> Head:
        """The head after all entries, or the refusal that names the first bad one or misses a head that was kept."""
        met = kept is None or kept == self.head
        for entry in entries:
            self.take(entry)
            met = met or self.head == kept
        if not met and kept is not None:
            why = f"it ends at entry {self.id}" if kept.id > self.id else f"entry {kept.id} has another hash"
            raise TamperedLedgerError(f"the ledger does not contain the head that was kept, {kept}: {why}.", kept.id)
        return self.head

    @property
    def head(self) -> Head:
        """Where the walk stands."""
        return Head(self.id, self.previous)

    def take(self, entry: Entry) -> None:
        """One entry further."""
        self._check(entry.id == self.id + 1, f"entry {self.id + 1} is missing", self.id + 1)
        self._check(entry.previous == self.previous, "it does not follow the entry above", entry.id)
        entry.check_hash()
        try:
            event = entry.details()
            self._check(self._in_order(entry), f"its time {entry.time} lies before the entry above", entry.id)
            self._check(entry.event == canonical(event), "its event is not in canonical form", entry.id)
            self._take_price(entry, event)
            self._take_standing(entry, event)
            self._take_unit(entry, event)
        except TamperedLedgerError:
            raise
        except (PsidpError, ValueError, TypeError, LookupError) as trouble:
            raise TamperedLedgerError(f"entry {entry.id} is not what was written: {trouble}", entry.id) from None
        self.id, self.previous, self.time = entry.id, entry.hash, max(self.time, entry.time)
        self.renewed = entry.budget if entry.state == "renewed" else ""

    def _in_order(self, entry: Entry) -> bool:
        """Whether time runs forward; version 0.2 read the clock for a spend a moment before it wrote the renewal."""
        time = moment(entry.time)
        return entry.time >= self.time or (entry.budget == self.renewed and moment(self.time) - time <= SLACK)

    def _take_price(self, entry: Entry, event: dict[str, Any]) -> None:
        """Every spend at the price of its event, everything else for nothing."""
        if entry.state != "spent":
            self._check(entry.psi == 0.0 == entry.kappa, f"an entry that is {entry.state} has no price", entry.id)
            return
        budget = self.budgets[entry.budget]
        guarantee = Guarantee(entry.psi, entry.kappa, budget.adjacency, budget.unit)
        budget.check_spend(guarantee, entry.partition)
        self._check(agrees(event, guarantee), f"its price is psi={entry.psi}, its event's is another", entry.id)

    def _take_unit(self, entry: Entry, event: dict[str, Any]) -> None:
        """Another unit column than the budget's only with words that say why."""
        if entry.state != "spent" or "unit_column" not in event:
            return
        whole = first_of(entry.budget, self.budgets.__getitem__)
        stored = said(self.budgets[entry.budget], self.units.get(whole), event)
        self._check(stored == event, "its unit column is not said as it should be", entry.id)
        self.units.setdefault(whole, Known.of(event, entry.id))

    def _take_standing(self, entry: Entry, event: dict[str, Any]) -> None:
        """The balance, taken again from the one before."""
        name = entry.budget
        if entry.state == "opened":
            self.budgets[name] = Budget.from_event(name, event, entry.purpose)
            if "part_of" in event:
                self._check(self.promised.pop(name, None) == event["cap"], "nobody gave this share", entry.id)
        if entry.refers:
            self._check(entry.refers < entry.id, f"it refers to entry {entry.refers}", entry.id)
        part = (name, entry.partition)
        spent = Cost.of(Guarantee(entry.psi, entry.kappa)) if entry.state == "spent" else ZERO
        proposed = Proposed(
            name, entry.state, event, spent, entry.psi, entry.kappa, entry.partition, entry.purpose, entry.time,
            entry.id, entry.refers,
        )  # fmt: skip
        standing = step(self.standings.get(name), proposed, self.partitions.get(part) if entry.partition else None)
        self._check(entry.standing == standing.text(), "its totals do not follow from the ones before", entry.id)
        self.standings[name] = standing
        if entry.partition:
            self.partitions[part] = standing
        if entry.state == "split":
            self._take_split(entry, event)

    def _take_split(self, entry: Entry, event: dict[str, Any]) -> None:
        """Shares that together are exactly what was taken."""
        parts = [Cost.read(share) for share in event["shares"].values()]
        taken = Cost(sum((p.square for p in parts), ZERO.square), sum((p.kappa for p in parts), ZERO.kappa))
        self._check(taken == Cost.read(event["taken"]), "its shares do not sum to what was taken", entry.id)
        self.promised |= event["shares"]

    def _check(self, right: bool, why: str, entry: int) -> None:
        if not right:
            raise TamperedLedgerError(f"entry {entry} is not what was written: {why}.", entry)
