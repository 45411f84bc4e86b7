"""Spend: one release paid for before it is drawn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from shlex import quote
from types import TracebackType
from typing import Any, Self

from psidp.errors import ApprovalNeededError, BudgetPausedError, KeyConflictError, LedgerError
from psidp.guarantee import Guarantee
from psidp.ledger.access import Access
from psidp.ledger.actor import priced
from psidp.ledger.approvals import Proposed
from psidp.ledger.balance import paused
from psidp.ledger.cost import Cost
from psidp.ledger.entry import Entry, digest
from psidp.ledger.json_value import from_json, to_json
from psidp.ledger.log import EntryLog
from psidp.ledger.requests import denial
from psidp.ledger.rules import same_price
from psidp.ledger.unit_column import said

__all__ = ["Spend", "noted_by", "request_digest"]


@dataclass(slots=True, kw_only=True)
class Spend:
    """A spend that becomes durable when its block is entered; the block may then release something.

    `entry` is the spend as the ledger holds it. If the block raises, the spend stays, and a further entry says that
    nothing was released. Nothing refunds.

    With an idempotency key, what is released goes through `answer`, which stores it first. A retry under the same key
    gets that very answer and spends nothing; `stored` then says that it was not drawn by this one.
    """

    access: Access
    budget: str
    guarantee: Guarantee
    purpose: str
    event: Mapping[str, Any]
    partition: str = ""
    retry_key: str = ""
    request: str = ""
    entry: Entry = field(init=False)
    answered: bool = field(init=False, default=False)
    stored: bool = field(init=False, default=False)
    _answer: Any = field(init=False, default=None)
    _drawn: bool = field(init=False, default=False)

    def __enter__(self) -> Self:
        self.entry = self._write(self._recorded)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None or self.answered:
            return
        error.add_note(f"Entry {self.entry.id} of budget {self.budget!r} stays spent, and no answer is stored.")
        try:
            self._write(lambda log: self._failed(log, error))
        except LedgerError as trouble:
            error.add_note(f"The ledger could not note why: {trouble}")

    @property
    def id(self) -> int:
        """The number of the spend's entry."""
        return self.entry.id

    def once(self) -> Entry:
        """The durable spend, made once under its key, for what is released later in parts at no further cost.

        A second call, after a crash or from somebody else at the same time, gets the same entry and spends nothing. It
        takes the place of the block: what this spend pays for has to be stored under a key of its own before it leaves.
        """
        return self._write(self._made_once)

    def answer(self, draw: Callable[[], Any]) -> Any:
        """What `draw` draws, stored before it is returned where there is a key; or the answer that is stored already.

        Under a key the answer has to be made of numbers (infinities and NaN among them), text, lists, mappings and
        NumPy arrays. It comes back with the same values, NumPy's as Python's numbers and lists.
        """
        if self.answered:
            return self._answer
        self._drawn = True
        drawn = draw()
        if not self.retry_key:
            return drawn
        text = to_json(drawn)
        kept = self._write(lambda log: self._stored(log, text))
        self._keep(kept)
        self.stored = kept.refers != self.id
        return self._answer

    def _write(self, work: Callable[[EntryLog], Entry]) -> Entry:
        """The entry that `work` writes; a refusal that tells what to do names this ledger."""
        try:
            return self.access.write(work)
        except BudgetPausedError as refusal:
            raise paused(refusal.budget, refusal.person, quote(self.access.shown)) from None
        except ApprovalNeededError as refusal:
            denied = "" if refusal.request else self.access.read(lambda log: denial(log, self._proposed()))
            words = refusal.needed.sentence(quote(self.access.shown), denied)
            raise ApprovalNeededError(words, refusal.request, refusal.event, refusal.needed) from None

    def _proposed(self) -> Proposed:
        price = self.guarantee
        return Proposed(
            self.budget, "spent", self.event, Cost.of(price), price.psi, price.kappa, self.partition, self.purpose
        )

    def _recorded(self, log: EntryLog) -> Entry:
        """The durable spend; or, under a key that was answered, that answer."""
        budget = self.access.budget(log, self.budget)
        budget.check_spend(self.guarantee, self.partition)
        event = self.event
        if "unit_column" in event:
            event = said(budget, self.access.unit_column(log, self.budget), event)
        answer = self._asked_before(log) if self.retry_key else None
        if answer is not None:
            self._keep(answer)
            self.stored = True
            return answer
        return log.append(
            budget, "spent", event, self.guarantee, partition=self.partition, purpose=self.purpose, key=self.retry_key,
            request=self.request,
        )  # fmt: skip

    def _made_once(self, log: EntryLog) -> Entry:
        """The spend that is under the key already, or a new one."""
        self._asked_before(log)
        earlier = [e for e in log.under_key(self.budget, self.retry_key) if e.state == "spent"]
        return earlier[0] if earlier else self._recorded(log)

    def _asked_before(self, log: EntryLog) -> Entry | None:
        """The answer under the same key, if there is one; a different request is refused."""
        answer = None
        for entry in log.under_key(self.budget, self.retry_key):
            if entry.request != self.request or not self._paid_alike(entry):
                raise KeyConflictError(
                    f"retry_key {self.retry_key!r} of budget {entry.budget!r} was used for another request, in entry "
                    f"{entry.id}; nothing was spent and nothing released. Use a new key for a new request. Where an "
                    f"answer is stored, it can be read: psidp ledger answer {quote(self.access.shown)} "
                    f"{quote(self.retry_key)} --budget {quote(entry.budget)}."
                )
            answer = answer or (entry if entry.state == "answered" else None)
        return answer

    def _paid_alike(self, entry: Entry) -> bool:
        """Whether an entry under the key is no spend, or one of this price: `request` is what its writer claims."""
        return entry.state != "spent" or same_price(Proposed.again(entry), self._proposed())

    def _stored(self, log: EntryLog, text: str) -> Entry:
        """The answer that is stored: this one, or the first, where two asked at once."""
        earlier = self._asked_before(log)
        return earlier or log.append(
            self.entry.budget, "answered", noted_by(self.event, {"kind": "answered"}), refers=self.id,
            key=self.retry_key, request=self.request, answer=text,
        )  # fmt: skip

    def _failed(self, log: EntryLog, error: BaseException) -> Entry:
        """The note that a block raised: the type of the error only, since its words may speak of the data."""
        state = "interrupted" if self._drawn else "withheld"
        event = noted_by(self.event, {"kind": state, "error": type(error).__name__})
        return log.append(self.entry.budget, state, event, refers=self.id, key=self.retry_key, request=self.request)

    def _keep(self, entry: Entry) -> None:
        self.answered, self._answer = True, from_json(entry.answer)


def noted_by(spend: Mapping[str, Any], note: dict[str, Any]) -> dict[str, Any]:
    """What became of a spend, said by who spent; spends of the first ledgers do not say who."""
    return note | ({"by": spend["by"]} if "by" in spend else {})


def request_digest(request: Any, guarantee: Guarantee, event: Mapping[str, Any], partition: str) -> str:
    """What makes two requests the same: what was asked, at which price, of which part of the data."""
    asked = {"request": request, "event": priced(event), "partition": partition} | guarantee.to_dict()
    return digest(asked)
