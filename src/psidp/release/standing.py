"""Standing: how a budget stands after an entry. Pure steps, taken once when spending and once more when verifying."""

import json
from dataclasses import dataclass, replace
from typing import Any, Self

from psidp.release.entry import canonical
from psidp.release.loss import ZERO, Loss

__all__ = ["Spent", "Standing"]


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent on all the data, on the partition at hand, and on the partition that paid most."""

    common: Loss = ZERO
    partition: Loss = ZERO
    largest: Loss = ZERO

    @property
    def total(self) -> Loss:
        """What it cost a unit at most: parallel composition, the largest partition's."""
        return self.common + self.largest

    def at(self, partition: Loss) -> "Spent":
        """The same with another partition at hand."""
        return replace(self, partition=partition)

    def plus(self, loss: Loss, on_partition: bool) -> "Spent":
        """After one more spend, on the partition at hand or on all the data."""
        if not on_partition:
            return replace(self, common=self.common + loss)
        partition = self.partition + loss
        return Spent(self.common, partition, self.largest | partition)


@dataclass(frozen=True, slots=True)
class Standing:
    """The cap, the exact running totals of this era and of the budget's whole life, and whether it is closed.

    An era ends with a reset or a renewal; `lifetime` never does. `allotted` was given to shares, which are budgets of
    their own: it is gone from here, but it was not released here.
    """

    cap: Loss
    era: int = 1
    period: str = ""
    closed: bool = False
    spent: Spent = Spent()
    lifetime: Spent = Spent()
    allotted: Loss = ZERO

    @classmethod
    def opened(cls, cap: Loss, period: str) -> Self:
        """A budget at its beginning."""
        return cls(cap, period=period)

    def used(self, on_partition: bool = False) -> Loss:
        """What counts against the cap: for one partition its own spending, for all the data the largest."""
        spent = self.spent
        return spent.common + (spent.partition if on_partition else spent.largest) + self.allotted

    def after_spend(self, loss: Loss, on_partition: bool = False) -> Self:
        """After a spend; the caller checks first that it fits."""
        spent, lifetime = self.spent.plus(loss, on_partition), self.lifetime.plus(loss, on_partition)
        return replace(self, spent=spent, lifetime=lifetime)

    def fits(self, loss: Loss, on_partition: bool = False) -> bool:
        """Whether both caps hold after one more loss."""
        return (self.used(on_partition) + loss).fits(self.cap)

    def left(self, on_partition: bool = False) -> Loss:
        """The largest loss that still fits."""
        return self.used(on_partition).left(self.cap)

    def raised(self, cap: Loss) -> Self:
        """With a larger cap."""
        return replace(self, cap=cap)

    def renewed(self, period: str = "") -> Self:
        """At the beginning of a new era; the lifetime goes on."""
        return replace(self, era=self.era + 1, period=period or self.period, spent=Spent())

    def ended(self) -> Self:
        """Closed for good."""
        return replace(self, closed=True)

    def split(self, taken: Loss) -> Self:
        """After giving an amount to shares."""
        return replace(self, allotted=self.allotted + taken)

    def at_partition(self, last: "Standing | None") -> Self:
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
            Spent(**{part: Loss.read(loss) for part, loss in values[name].items()}) for name in ("spent", "lifetime")
        )
        return cls(
            Loss.read(values["cap"]),
            values["era"],
            values.get("period", ""),
            values.get("closed", False),
            spent,
            lifetime,
            Loss.read(values["allotted"]) if "allotted" in values else ZERO,
        )


PARTS = ("common", "partition", "largest")
