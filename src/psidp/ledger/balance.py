"""Balance: how a budget stands after an entry. Spending and verifying apply the same steps."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from psidp.errors import BudgetClosedError
from psidp.guarantee import Guarantee
from psidp.ledger.budget_refusal import exceeded
from psidp.ledger.cost import ZERO, Cost
from psidp.ledger.entry import canonical

__all__ = ["Balance", "Spent", "cap_of", "step"]


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
            return replace(self, common=self.common + loss)
        partition = self.partition + loss
        return Spent(self.common, partition, self.largest | partition)


@dataclass(frozen=True, slots=True)
class Balance:
    """The cap, the exact running totals of this era and of the budget's whole life, and whether it is closed.

    An era ends with a reset or a renewal; `lifetime` never does. `allotted` was given to shares, which are budgets of
    their own: it is gone from here, but it was not released here.
    """

    cap: Cost
    era: int = 1
    period: str = ""
    closed: bool = False
    spent: Spent = Spent()
    lifetime: Spent = Spent()
    allotted: Cost = ZERO

    @classmethod
    def opened(cls, cap: Cost, period: str) -> Self:
        """A budget at its beginning."""
        return cls(cap, period=period)

    def used(self, on_partition: bool = False) -> Cost:
        """What counts against the cap: for one partition its own spending, for all the data the largest."""
        spent = self.spent
        return spent.common + (spent.partition if on_partition else spent.largest) + self.allotted

    def after_spend(self, loss: Cost, on_partition: bool = False) -> Self:
        """After a spend; the caller checks first that it fits."""
        spent, lifetime = self.spent.plus(loss, on_partition), self.lifetime.plus(loss, on_partition)
        return replace(self, spent=spent, lifetime=lifetime)

    def fits(self, loss: Cost, on_partition: bool = False) -> bool:
        """Whether both caps hold after one more loss."""
        return (self.used(on_partition) + loss).fits(self.cap)

    def left(self, on_partition: bool = False) -> Cost:
        """The largest loss that still fits."""
        return self.used(on_partition).left(self.cap)

    def raised(self, cap: Cost) -> Self:
        """With a larger cap."""
        return replace(self, cap=cap)

    def renewed(self, period: str = "") -> Self:
        """At the beginning of a new era; the lifetime goes on."""
        return replace(self, era=self.era + 1, period=period or self.period, spent=Spent())

    def ended(self) -> Self:
        """Closed for good."""
        return replace(self, closed=True)

    def split(self, taken: Cost) -> Self:
        """After giving an amount to shares."""
        return replace(self, allotted=self.allotted + taken)

    def at_partition(self, last: "Balance | None") -> Self:
        """With the totals of one partition at hand, as its own last entry left them."""
        if last is None:
            return replace(self, spent=self.spent.at(ZERO), lifetime=self.lifetime.at(ZERO))
        current = last.spent.partition if last.era == self.era else ZERO
        return replace(self, spent=self.spent.at(current), lifetime=self.lifetime.at(last.lifetime.partition))

    def text(self) -> str:
        """As one line of canonical JSON; what is zero is left out."""
        values: dict[str, Any] = {"cap": self.cap.text(), "era": self.era}
        values |= {"period": self.period} if self.period else {}
        values |= {"closed": True} if self.closed else {}
        for name, spent in (("spent", self.spent), ("lifetime", self.lifetime)):
            values[name] = {part: loss.text() for part in PARTS if (loss := getattr(spent, part)) != ZERO}
        return canonical(values | ({"allotted": self.allotted.text()} if self.allotted != ZERO else {}))

    @classmethod
    def read(cls, text: str) -> Self:
        """The standing that text() wrote."""
        values = json.loads(text)
        spent, lifetime = (
            Spent(**{part: Cost.read(loss) for part, loss in values[name].items()}) for name in ("spent", "lifetime")
        )
        return cls(
            Cost.read(values["cap"]),
            values["era"],
            values.get("period", ""),
            values.get("closed", False),
            spent,
            lifetime,
            Cost.read(values["allotted"]) if "allotted" in values else ZERO,
        )


PARTS = ("common", "partition", "largest")


def step(
    before: Balance | None,
    state: str,
    event: Mapping[str, Any],
    *,
    budget: str,
    price: Cost,
    partition: str = "",
    partition_before: Balance | None = None,
) -> Balance:
    """The standing after an entry, or the refusal of an entry that must not be."""
    if state == "opened":
        if before is not None:
            raise ValueError(f"budget {budget!r} is open already: a budget is opened once. It can be raised or reset.")
        return Balance.opened(cap_of(event), event.get("period", ""))
    if before is None:
        raise ValueError(f"budget {budget!r} was never opened.")
    now = before.at_partition(partition_before)
    if state in ("answered", "withheld", "interrupted"):
        return now
    if before.closed:
        raise BudgetClosedError(f"Budget {budget!r} is closed; nothing was spent and nothing released. Open another.")
    if state == "spent":
        if not now.fits(price, bool(partition)):
            raise exceeded(budget, price, now.left(bool(partition)), event)
        return now.after_spend(price, bool(partition))
    return _change(now, state, event, budget)


def _change(now: Balance, state: str, event: Mapping[str, Any], budget: str) -> Balance:
    """The standing after a change of the budget itself."""
    if state == "raised":
        cap = cap_of(event)
        if not now.cap.fits(cap) or cap == now.cap:
            raise ValueError(
                f"budget {budget!r} can only be raised, from psi={now.cap.psi} and kappa={float(now.cap.kappa)}; got "
                f"psi={event['psi']} and kappa={event['kappa']}."
            )
        return now.raised(cap)
    if state == "renewed":
        if not event["period"] > now.period > "":
            raise ValueError(f"budget {budget!r} cannot be renewed from {now.period!r} to {event['period']!r}.")
        return now.renewed(event["period"])
    if state == "reset":
        return now.renewed()
    if state == "closed":
        return now.ended()
    if state == "split":
        taken = Cost.read(event["taken"])
        if not now.fits(taken):
            raise exceeded(budget, taken, now.left(), event)
        return now.split(taken)
    raise ValueError(f"{state!r} is no state of an entry that this psidp knows.")


def cap_of(event: Mapping[str, Any]) -> Cost:
    """The cap that an opening or a raising sets: a share's to the last bit, else that of psi and kappa."""
    return Cost.read(event["cap"]) if "cap" in event else Cost.of(Guarantee(event["psi"], event["kappa"]))
