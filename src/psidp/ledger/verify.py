"""Verification: recompute every hash, price, total and claim, entry by entry; stop at the first bad one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from psidp.errors import PsidpError, TamperedLedgerError
from psidp.guarantee import Guarantee
from psidp.ledger.approvals import Proposed
from psidp.ledger.balance import Balance, step
from psidp.ledger.budget import Budget
from psidp.ledger.entry import Entry, canonical, moment
from psidp.ledger.event import agrees
from psidp.ledger.log import Before, EntryLog
from psidp.ledger.rules import SLACK, check, is_known, stopped_everywhere
from psidp.ledger.unit_column import Known, first_of, said

__all__ = ["Head", "Verification"]


@dataclass(frozen=True, slots=True)
class Head:
    """The last entry's number and hash: whoever keeps it can tell later whether the ledger was cut or rewritten.

    A verification also says which entries it did not recompute, since they are of kinds that this psidp does not know.

    Examples:
        >>> Head.parse("3:" + "ab" * 32).id
        3
    """

    id: int
    hash: str
    not_recomputed: tuple[int, ...] = field(default=(), compare=False)

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
    everywhere: list[str] = field(default_factory=list)
    not_recomputed: list[int] = field(default_factory=list)
    renewal: str = ""
    kept: Head | None = None
    met: bool = False

    @property
    def head(self) -> Head:
        """Where the walk stands, and which entries it could not recompute."""
        return Head(self.id, self.previous, tuple(self.not_recomputed))

    def over(self, entries: Sequence[Entry], log: EntryLog) -> bool:
        """Whether there were entries to walk over; refused at the first bad one. `log` holds them all."""
        self.met = self.met or self.kept == self.head
        for entry in entries:
            self.take(entry, log)
            self.met = self.met or self.kept == self.head
        return bool(entries)

    def end(self) -> Head:
        """The head, where nothing is left open and the head that was kept was met."""
        self._check(not self.promised, f"its shares {', '.join(self.promised)} were not opened", self.id)
        if self.kept is not None and not self.met:
            why = f"it ends at entry {self.id}" if self.kept.id > self.id else f"entry {self.kept.id} has another hash"
            raise TamperedLedgerError(
                f"the ledger does not contain the head that was kept, {self.kept}: {why}.", self.kept.id
            )
        return self.head

    def take(self, entry: Entry, log: EntryLog) -> None:
        """One entry further; a refusal leaves the walk where it was."""
        self._check(entry.id == self.id + 1, f"entry {self.id + 1} is missing", self.id + 1)
        self._check(entry.previous == self.previous, "it does not follow the entry above", entry.id)
        entry.check_hash()
        try:
            event = entry.details()
            self._check(entry.event == canonical(event), "its event is not in canonical form", entry.id)
            self._check_time(entry)
            self._check_price(entry, event)
            unit = self._unit(entry, event)
            terms = Budget.from_event(entry.budget, event, entry.purpose) if entry.state == "opened" else None
            standing = self._standing(entry, event, log)
        except TamperedLedgerError:
            raise
        except (PsidpError, ValueError, TypeError, LookupError, AttributeError) as trouble:
            raise TamperedLedgerError(f"entry {entry.id} is not what was written: {trouble}", entry.id) from None
        self._taken(entry, event, standing, terms, unit)

    def _check_time(self, entry: Entry) -> None:
        """Time runs forward. Up to 0.2 a spend that began a period was written with a time just before its renewal."""
        time = moment(entry.time)
        late = entry.time >= self.time or (
            entry.state == "spent" and entry.budget == self.renewal and moment(self.time) - time <= SLACK
        )
        self._check(late, f"its time {entry.time} lies before the entry above", entry.id)

    def _check_price(self, entry: Entry, event: dict[str, Any]) -> None:
        """Every spend at the price of its event."""
        if entry.state != "spent":
            return
        budget = self.budgets[entry.budget]
        guarantee = Guarantee(entry.psi, entry.kappa, budget.adjacency, budget.unit)
        budget.check_spend(guarantee, entry.partition)
        right = not is_known(entry, event) or agrees(event, guarantee)
        self._check(right, f"its price is psi={entry.psi}, its event's is another", entry.id)

    def _unit(self, entry: Entry, event: dict[str, Any]) -> tuple[str, Known] | None:
        """A budget's unit column, as an entry says it; another one than the budget's only with words that say why."""
        if entry.state != "spent" or "unit_column" not in event:
            return None
        whole = first_of(entry.budget, self.budgets.__getitem__)
        stored = said(self.budgets[entry.budget], self.units.get(whole), event)
        self._check(stored == event, "its unit column is not said as it should be", entry.id)
        return whole, Known.of(event, entry.id)

    def _standing(self, entry: Entry, event: dict[str, Any], log: EntryLog) -> Balance:
        """The balance, taken again from the one before by the rules that wrote it; as it says, where none is known."""
        name = entry.budget
        if self.promised or "part_of" in event:
            given = self.promised.get(name) if entry.state == "opened" else None
            self._check(
                given is not None and event["cap"] == given, "the shares of the split above come first", entry.id
            )
        if entry.state != "spent" and not is_known(entry, event):
            return Balance.read(entry.standing)
        proposed, before = Proposed.again(entry), self.standings.get(name)
        check(proposed, before, _Walked(self, log, entry.id))
        standing = step(before, proposed, self.partitions.get((name, entry.partition)) if entry.partition else None)
        self._check(entry.standing == standing.text(), "its totals do not follow from the ones before", entry.id)
        return standing

    def _taken(
        self, entry: Entry, event: dict[str, Any], standing: Balance, terms: Budget | None,
        unit: tuple[str, Known] | None,
    ) -> None:  # fmt: skip
        """Remember an entry that was checked."""
        name = entry.budget
        if terms is not None:
            self.budgets[name] = terms
            self.promised.pop(name, None)
        if unit is not None:
            self.units.setdefault(*unit)
        if entry.partition:
            self.partitions[name, entry.partition] = standing
        if not is_known(entry, event):
            self.not_recomputed.append(entry.id)
        elif entry.state == "split":
            self.promised |= event["shares"]
        self.standings[name] = standing
        self.everywhere = stopped_everywhere(self.everywhere, entry.state, event)
        self.id, self.previous, self.time = entry.id, entry.hash, max(self.time, entry.time)
        self.renewal = name if entry.state == "renewed" else ""

    def _check(self, right: bool, why: str, entry: int) -> None:
        if not right:
            raise TamperedLedgerError(f"entry {entry} is not what was written: {why}.", entry)


class _Walked(Before):
    """The entries before one, with what the walk over them remembers."""

    def __init__(self, walk: Verification, log: EntryLog, number: int) -> None:
        super().__init__(log, number)
        self._walk = walk

    def budget(self, name: str) -> Budget:
        """The terms of a budget."""
        return self._walk.budgets[name]

    def balance(self, budget: str) -> Balance | None:
        """How a budget stood after its last entry; None where it was never opened."""
        return self._walk.standings.get(budget)

    def stopped_everywhere(self) -> list[str]:
        """Who was paused in all budgets, and not resumed in all of them since."""
        return self._walk.everywhere
