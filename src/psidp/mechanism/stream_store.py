"""StreamStore: where a stream's plan and the numbers it released are kept, each exactly once.

In a ledger, under idempotency keys: `stream NAME: opened` is the spend that paid for all periods, and holds the
strategy's whole numbers; `stream NAME: period 7` holds what period 7 released, at no further cost.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from psidp.errors import KeyConflictError
from psidp.forms import check_form
from psidp.guarantee import Guarantee
from psidp.ledger.entry import Entry
from psidp.ledger.event import agrees
from psidp.ledger.json_value import from_json
from psidp.ledger.ledger import Ledger
from psidp.ledger.spend import request_digest
from psidp.mechanism.stream_plan import FORM
from psidp.symbols import check_text

__all__ = ["TABLE", "LedgerStore", "MemoryStore", "StreamStore", "period_under"]

Draw = Callable[[], list[int]]
LONGEST = 200
PERIOD = re.compile(r"stream (.+): period ([0-9]+)", re.DOTALL)
TABLE = "table"
"""Which table a stream was opened for, among what makes two streams the same."""
NOTHING_PRICED: Mapping[str, Any] = {"kind": "guarantee"}


class StreamStore(Protocol):
    """What a stream needs of its store."""

    def opening(self, asked: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The event that opened the stream, if it was opened; refused where it was opened for something else."""

    def open(self, guarantee: Guarantee, event: Mapping[str, Any], purpose: str) -> Mapping[str, Any]:
        """The event that opened the stream: this one, or the first, where somebody was faster."""

    @property
    def identity(self) -> str:
        """A text that no other stream has; only of a stream that is open."""

    def released(self, period: int) -> list[int] | None:
        """What a period released, if it did."""

    def release(self, period: int, draw: Draw) -> tuple[list[int], bool]:
        """What `draw` returns, stored before it is given back; or what was stored already, and True."""


class MemoryStore:
    """A store in memory, which ends with the process and charges no budget."""

    def __init__(self) -> None:
        self._event: Mapping[str, Any] | None = None
        self._released: dict[int, list[int]] = {}

    def opening(self, asked: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The event that opened the stream, if it was opened."""
        return self._event

    def open(self, guarantee: Guarantee, event: Mapping[str, Any], purpose: str) -> Mapping[str, Any]:
        """The event that opened the stream."""
        self._event = self._event or event
        return self._event

    @property
    def identity(self) -> str:
        """Empty: a store in memory has one stream."""
        return ""

    def released(self, period: int) -> list[int] | None:
        """What a period released, if it did."""
        return self._released.get(period)

    def release(self, period: int, draw: Draw) -> tuple[list[int], bool]:
        """What `draw` returns, or what was stored already."""
        if period in self._released:
            return self._released[period], True
        return self._released.setdefault(period, draw()), False


class LedgerStore:
    """A stream of this name in a budget.

    Guarantees:
        The stream is paid for once, however often it is opened. A number is returned only after it is durable, and what
        is durable is never drawn again: a process may be killed at any line, and two may publish at once.
    """

    def __init__(self, ledger: Ledger, budget: str, name: str) -> None:
        self._ledger, self._budget = ledger, budget
        self._name = check_text("name", name, LONGEST)
        terms = ledger.budget(budget)
        if terms.renews:
            raise ValueError(
                f"budget {budget!r} renews every {terms.renews}, and a stream is paid for once, for all its periods: "
                "what it releases after a renewal would be paid by nobody. Open a budget that does not renew."
            )
        self._nothing = Guarantee(0.0, 0.0, terms.adjacency, terms.unit)
        self._opened: Entry | None = None

    def opening(self, asked: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The event that opened the stream, if it was opened; refused where it was opened for something else."""
        event = self.stored()
        if event is None:
            return None
        before = event.get("asked")
        if isinstance(before, dict) and TABLE not in before:  # opened by version 0.2
            asked = {name: value for name, value in asked.items() if name != TABLE}
        if before != asked:
            raise KeyConflictError(
                f"stream {self._name!r} of budget {self._budget!r} was opened for something else, in entry "
                f"{self._paid.id}{_difference(before, asked)}; nothing was spent and nothing released. "
                "Use a new name for a new stream."
            )
        self._check_paid(self._paid, event)
        return event

    def stored(self) -> Mapping[str, Any] | None:
        """The event that opened the stream, for whatever it was; None where it was not opened."""
        under = self._ledger.under_key(self._budget, self._key)
        self._opened = next((entry for entry in under if entry.state == "spent"), None)
        if self._opened is None:
            return None
        event = self._opened.details()
        check_form(event.get("form"), FORM, f"stream {self._name!r}")
        return event

    def _check_paid(self, spend: Entry, event: Mapping[str, Any]) -> None:
        """Refuse an opening that did not pay for the noise that it says: all periods rely on it."""
        price = Guarantee(spend.psi, spend.kappa, self._nothing.adjacency, self._nothing.unit)
        if event.get("kind") != "strategy" or not agrees(event, price):
            raise KeyConflictError(
                f"stream {self._name!r} of budget {self._budget!r} was not paid for by entry {spend.id}, which has its "
                "key; nothing was spent and nothing released. Use a new name, and ask who wrote the entry."
            )

    def open(self, guarantee: Guarantee, event: Mapping[str, Any], purpose: str) -> Mapping[str, Any]:
        """The event that opened the stream: this one, or the first, where somebody was faster."""
        self._opened = self._ledger.spend(
            self._budget,
            guarantee,
            purpose=purpose or f"stream {self._name}, all periods",
            event=event,
            retry_key=self._key,
            request=event["asked"],
        ).once()
        return self._opened.details()

    @property
    def identity(self) -> str:
        """The hash of the entry that opened the stream."""
        return self._paid.hash

    def released(self, period: int) -> list[int] | None:
        """What a period released, if it did; answers to other requests under the same key are ignored."""
        under = self._ledger.under_key(self._budget, self._period_key(period))
        asked = request_digest(self._request(period), self._nothing, NOTHING_PRICED, "")
        found = (entry for entry in under if entry.state == "answered" and entry.request == asked)
        return next((from_json(entry.answer) for entry in found), None)

    def release(self, period: int, draw: Draw) -> tuple[list[int], bool]:
        """What `draw` returns, durable before it is given back; or what was stored already, and True."""
        spend = self._ledger.spend(
            self._budget,
            self._nothing,
            purpose=f"stream {self._name}, period {period}; entry {self._paid.id} paid for it",
            retry_key=self._period_key(period),
            request=self._request(period),
            event=NOTHING_PRICED,
        )
        with spend as entry:
            return entry.answer(draw), entry.stored

    @property
    def _paid(self) -> Entry:
        if self._opened is None:
            raise ValueError(f"stream {self._name!r} must be open before it releases anything. Open it first: open().")
        return self._opened

    def _request(self, period: int) -> dict[str, Any]:
        return {"stream": self._name, "period": period, "opened": self._paid.hash}

    @property
    def _key(self) -> str:
        return f"stream {self._name}: opened"

    def _period_key(self, period: int) -> str:
        return f"stream {self._name}: period {period}"


def period_under(key: str) -> tuple[str, int] | None:
    """The stream's name and the period whose numbers are stored under a key; None of another key.

    Examples:
        >>> period_under("stream visits: period 7"), period_under("visits")
        (('visits', 7), None)
    """
    found = PERIOD.fullmatch(key)
    return None if found is None else (found[1], int(found[2]))


def _difference(before: Any, now: Mapping[str, Any]) -> str:
    """The first term that differs, in words."""
    before = before if isinstance(before, dict) else {}
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            return f": {name} was {before.get(name)!r}, got {name}={now.get(name)!r}"
    return ""
