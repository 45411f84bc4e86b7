"""Balance: how a budget stands after an entry. Spending and verifying apply the same steps."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from shlex import quote
from typing import Any, Self

from psidp.errors import BudgetPausedError
from psidp.guarantee import Guarantee
from psidp.ledger.approvals import Asked, Proposed, asked_after
from psidp.ledger.budget import check_limit
from psidp.ledger.budget_refusal import closed, exceeded
from psidp.ledger.cost import ZERO, Cost
from psidp.ledger.entry import NOTES, canonical
from psidp.ledger.names import same_person

__all__ = ["EVERYBODY", "Balance", "Spent", "cap_of", "step"]

EVERYBODY = ""
"""Stands among those who are paused for all of them."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent on all the data, on the partition at hand, and on the partition that paid most."""

    common: Cost = ZERO
    partition: Cost = ZERO
    largest: Cost = ZERO

    @property
    def total(self) -> Cost:
        """What it cost a unit at most: parallel composition, the largest partition's."""
        return self.common + self.largest

    def at(self, partition: Cost) -> "Spent":
        """The same with another partition at hand."""
        return replace(self, partition=partition)

    def plus(self, loss: Cost, on_partition: bool) -> "Spent":
        """After one more spend, on the partition at hand or on all the data."""
        if not on_partition:
            return Spent(self.common + loss, self.partition, self.largest)
        partition = self.partition + loss
        return Spent(self.common, partition, self.largest | partition)


NOTHING = Spent()


@dataclass(frozen=True, slots=True)
class Balance:
    """The cap, the exact running totals of this era and of the budget's whole life, and what holds spends back.

    An era ends with a reset or a renewal; `lifetime` never does. `allotted` was given to shares, which are budgets of
    their own: it is gone from here, but it was not released here. A spend of more than psi `above` needs an approval;
    `waiting` are the requests and the approvals that were not used. `paused` are those who may not spend.
    """

    cap: Cost
    era: int = 1
    period: str = ""
    closed: bool = False
    spent: Spent = NOTHING
    lifetime: Spent = NOTHING
    allotted: Cost = ZERO
    above: float | None = None
    paused: tuple[str, ...] = ()
    waiting: tuple[Asked, ...] = ()

    def used(self, on_partition: bool = False) -> Cost:
        """What counts against the cap: for one partition its own spending, for all the data the largest."""
        spent = self.spent
        return spent.common + (spent.partition if on_partition else spent.largest) + self.allotted

    def after_spend(self, loss: Cost, on_partition: bool = False) -> Self:
        """After a spend; the caller checks first that it fits."""
        spent = self.spent.plus(loss, on_partition)
        lifetime = spent if self.spent is self.lifetime else self.lifetime.plus(loss, on_partition)
        return type(self)(
            self.cap, self.era, self.period, self.closed, spent, lifetime, self.allotted, self.above, self.paused,
            self.waiting,
        )  # fmt: skip

    def fits(self, loss: Cost, on_partition: bool = False) -> bool:
        """Whether both caps hold after one more loss."""
        return (self.used(on_partition) + loss).fits(self.cap)

    def left(self, on_partition: bool = False) -> Cost:
        """The largest loss that still fits."""
        return self.used(on_partition).left(self.cap)

    def needs_approval(self, loss: Cost) -> bool:
        """Whether a spend of this size waits for somebody else."""
        return self.above is not None and loss.square > Fraction(self.above) ** 2

    def renewed(self, period: str = "") -> Self:
        """At the beginning of a new era; the lifetime goes on."""
        return replace(self, era=self.era + 1, period=period or self.period, spent=Spent())

    def at_partition(self, last: "Balance | None") -> Self:
        """With the totals of one partition at hand, as its own last entry left them."""
        if last is None:
            if self.spent.partition is ZERO is self.lifetime.partition:
                return self
            return replace(self, spent=self.spent.at(ZERO), lifetime=self.lifetime.at(ZERO))
        current = last.spent.partition if last.era == self.era else ZERO
        return replace(self, spent=self.spent.at(current), lifetime=self.lifetime.at(last.lifetime.partition))

    def text(self) -> str:
        """As one line of canonical JSON; what is zero is left out."""
        values: dict[str, Any] = {"cap": self.cap.text(), "era": self.era}
        values |= {"period": self.period} if self.period else {}
        values |= {"closed": True} if self.closed else {}
        for name, spent in (("spent", self.spent), ("lifetime", self.lifetime)):
            values[name] = {part: loss.text() for part in PARTS if (loss := getattr(spent, part))}
        values |= {"allotted": self.allotted.text()} if self.allotted else {}
        values |= {} if self.above is None else {"above": self.above}
        values |= {"paused": list(self.paused)} if self.paused else {}
        values |= {"waiting": [list(asked) for asked in self.waiting]} if self.waiting else {}
        return canonical(values)

    @classmethod
    def read(cls, text: str) -> Self:
        """The balance that text() wrote."""
        values = json.loads(text)
        spent, lifetime = (
            Spent(**{part: Cost.read(loss) for part, loss in values[name].items()}) for name in ("spent", "lifetime")
        )
        lifetime = spent if spent == lifetime else lifetime
        return cls(
            Cost.read(values["cap"]),
            values["era"],
            values.get("period", ""),
            values.get("closed", False),
            spent,
            lifetime,
            Cost.read(values["allotted"]) if "allotted" in values else ZERO,
            values.get("above"),
            tuple(values.get("paused", ())),
            tuple(Asked(*asked) for asked in values.get("waiting", ())),
        )


PARTS = ("common", "partition", "largest")


def step(before: Balance | None, entry: Proposed, partition_before: Balance | None = None) -> Balance:
    """The balance after an entry, or the refusal of an entry that must not be."""
    budget, state, event = entry.budget, entry.state, entry.event
    if state == "opened":
        if before is not None and before.closed:
            raise closed(budget)
        if before is not None:
            raise ValueError(
                f"budget {budget!r} is open already: a budget is opened once. It can be raised or reset. A script that "
                "runs again with the same terms says so: exist_ok=True (--exist-ok)."
            )
        paused = tuple(event.get("paused", ()))
        return Balance(cap_of(event), period=event.get("period", ""), above=event.get("above"), paused=paused)
    if before is None:
        raise ValueError(f"budget {budget!r} was never opened.")
    now = before.at_partition(partition_before)
    if state in NOTES:
        return now
    if before.closed:
        raise closed(budget)
    if state == "spent":
        return _spent(now, entry)
    if state in ("requested", "approved", "denied"):
        return replace(now, waiting=asked_after(now.waiting, entry))
    return _change(now, state, event, budget)


def _spent(now: Balance, entry: Proposed) -> Balance:
    """The balance after a spend: nobody is paused, it fits, and it is approved where it has to be."""
    who, on_partition = entry.event.get("by", ""), bool(entry.partition)
    if now.paused and (EVERYBODY in now.paused or any(same_person(name, who) for name in now.paused)):
        raise paused(entry.budget, "" if EVERYBODY in now.paused else who)
    after = now.after_spend(entry.price, on_partition)
    simple = now.allotted is ZERO and now.spent.largest is ZERO and not on_partition  # the new total is what counts
    if not (after.spent.common.fits(now.cap) if simple else now.fits(entry.price, on_partition)):
        raise exceeded(entry.budget, entry.price, now.left(on_partition), entry.event)
    if now.needs_approval(entry.price):
        return replace(after, waiting=asked_after(now.waiting, entry))
    if entry.refers:
        raise ValueError(f"psi {entry.psi} of budget {entry.budget!r} needs no approval.")
    return after


def paused(budget: str, who: str, ledger: str = "LEDGER") -> BudgetPausedError:
    """The refusal of a spend that is paused, for a person or, with "", for everybody; `ledger` is its address."""
    whom = f" for {who!r}" if who else ""
    return BudgetPausedError(
        f"Budget {budget!r} is paused{whom}; nothing was spent and nothing released. psidp ledger show {ledger} "
        f"{quote(budget)} says who paused it and why, psidp ledger resume ends it.",
        budget,
        who,
    )


def _change(now: Balance, state: str, event: Mapping[str, Any], budget: str) -> Balance:
    """The balance after a change of the budget itself."""
    if state == "raised":
        cap = Cost.of(Guarantee(event["psi"], event["kappa"]))
        if not now.cap.fits(cap) or cap == now.cap:
            raise ValueError(
                f"budget {budget!r} can only be raised, from psi={now.cap.psi} and kappa={float(now.cap.kappa)}; got "
                f"psi={event['psi']} and kappa={event['kappa']}."
            )
        return replace(now, cap=cap)
    if state == "renewed":
        if not event["period"] > now.period > "":
            raise ValueError(f"budget {budget!r} cannot be renewed from {now.period!r} to {event['period']!r}.")
        return now.renewed(event["period"])
    if state == "reset":
        return now.renewed()
    if state == "closed":
        return replace(now, closed=True, waiting=())
    if state == "split":
        if Cost.read(event["taken"]) != now.left():
            raise ValueError(f"a split of budget {budget!r} must take exactly what is left.")
        return replace(now, allotted=now.allotted + now.left())
    if state == "limited":
        return replace(now, above=check_limit(event["above"]))
    if state in ("paused", "resumed"):
        return replace(now, paused=_paused(now.paused, state, event.get("person", EVERYBODY), budget))
    raise ValueError(f"{state!r} is no state of an entry that this psidp knows.")


def _paused(before: tuple[str, ...], state: str, person: str, budget: str) -> tuple[str, ...]:
    """Who is paused after somebody is paused or may go on."""
    whom = f" for {person!r}" if person else ""
    if (person in before) == (state == "paused"):
        raise ValueError(f"budget {budget!r} is {'paused already' if state == 'paused' else 'not paused'}{whom}.")
    return (*before, person) if state == "paused" else tuple(name for name in before if name != person)


def cap_of(event: Mapping[str, Any]) -> Cost:
    """The cap that an opening sets: a share's to the last bit, else that of psi and kappa."""
    return Cost.read(event["cap"]) if "cap" in event else Cost.of(Guarantee(event["psi"], event["kappa"]))
