"""Payment: a release is prepared, paid for through the ledger, drawn and stored, in this order."""

import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from psidp.curator.cube_query import CubeQuery
from psidp.curator.query import Query
from psidp.curator.question_text import question_text
from psidp.curator.unit import Unit, pinned, unit_words
from psidp.errors import LedgerError
from psidp.guarantee import Guarantee
from psidp.ledger.actor import CLIPPED
from psidp.ledger.balance import EVERYBODY
from psidp.ledger.budget import shorten
from psidp.ledger.names import same_person
from psidp.ledger.spend import request_digest
from psidp.maths.rounding import digits_down

__all__ = ["Given", "Paid", "Payer", "held_back", "standing", "stopping", "table_name"]


class Paid(Protocol):
    """What a release gives back."""

    def to_dict(self) -> dict[str, Any]:
        """It as plain values."""

    def settled(self, left: str, stored: bool, retry_key: str = "") -> Self:
        """It with what the budget holds, whether it was answered before, and its key in the ledger."""


Given = TypeVar("Given", bound=Paid)
MADE = "release-"
"""How keys begin that are made for releases without one."""


@dataclass(frozen=True, slots=True)
class Payer:
    """The ledger and budget that pay, what names the units, and the table's name, where it has one."""

    ledger: Any
    budget: str
    unit: Unit
    same_unit: str
    table: str = ""

    def release(
        self,
        asked: Query | CubeQuery,
        prepare: Callable[[], Callable[[], Given]],
        read: Callable[[dict[str, Any]], Given],
        words: str,
        purpose: str,
        retry_key: str,
    ) -> Given:
        """What `prepare` makes ready to be drawn, drawn once its price is durable; or the stored answer.

        Args:
            asked: the question. prepare: everything that can fail without a cost; what it returns draws. read: the
            answer from plain values. words: the question in short, where no purpose is given. purpose, retry_key: for
            the ledger; a key is made where none is given, so that every answer is stored before it is shown.
        """
        retry_key = retry_key or f"{MADE}{secrets.token_hex(8)}"
        guarantee = asked.guarantee
        event = {"kind": "guarantee", "unit_column": pinned(self.unit), "same_unit": self.same_unit, CLIPPED: True}
        if self.ledger.needs_approval(self.budget, guarantee):
            event["question"] = question_text(asked)  # an approval is for this question and no other
        spend = self.ledger.spend(
            self.budget,
            guarantee,
            purpose=purpose or shorten(words),
            retry_key=retry_key,
            request=asked.to_dict(),
            event=event,
            table=self.table,
            table_unit=unit_words(self.unit),
        )
        with stopping("nothing was spent"):
            draw = None if self._settled(guarantee, retry_key) else prepare()
        kept = f"the spend stays, and the answer is stored under retry_key {retry_key!r}: ask again for it"
        with held_back(kept), spend as entry:
            values = entry.answer(lambda: (draw or prepare())().to_dict())
        return read(values).settled(self._left(guarantee), entry.stored, retry_key)

    def _left(self, guarantee: Guarantee) -> str:
        """What the budget holds, in words; "" where the ledger cannot be read, since the answer is paid for."""
        try:
            left = self.ledger.remaining(self.budget)
        except LedgerError:
            return ""
        kappa = f" and kappa = {left.kappa:.3g}" if guarantee.kappa else ""
        return f"Budget {self.budget!r} has psi = {digits_down(left.psi, 6):f}{kappa} left."

    def _settled(self, guarantee: Guarantee, retry_key: str) -> bool:
        """Whether the ledger will answer or refuse by itself, so that the engine need not work."""
        if self.ledger.answered(self.budget, retry_key):
            return True
        left = self.ledger.remaining(self.budget)
        return not (guarantee.psi <= left.psi and guarantee.kappa <= left.kappa)


def table_name(source: Any, name: str | None = None, engine: str | None = None) -> str:
    """What a table is called in the ledger: a file's own name, whatever links lead to it; a database's table; "" for a
    frame, which has none.

    Examples:
        >>> table_name("data/visits.csv"), table_name("clinic.duckdb", "visits"), table_name([1, 2])
        ('visits.csv', 'clinic.duckdb: visits', '')
    """
    if isinstance(source, str | Path):
        place = Path(str(source).partition("?")[0])
        place = place.resolve() if engine is None else place
        return shorten(place.name + (f": {name}" if name else ""))
    if hasattr(source, "op") and hasattr(source, "schema"):
        found = str(getattr(source.op(), "name", ""))  # an Ibis table that was filtered or joined has none
        return "" if found.startswith("ibis_") else shorten(found)  # a table in memory has one of chance
    return ""


def standing(ledger: Any, budget: str, asked: Query | CubeQuery, retry_key: str = "") -> str:
    """Whether a budget has enough for a release, and what else stands in its way, in words; nothing is spent.

    Of a retry key that was used: that its answer comes again at no cost, or that it was another question's.
    """
    guarantee = asked.guarantee
    if retry_key and (known := _under_key(ledger, budget, asked, retry_key)):
        return known
    left = ledger.remaining(budget)
    enough = guarantee.psi <= left.psi and guarantee.kappa <= left.kappa
    kappa = f" and kappa = {left.kappa:.3g}" if guarantee.kappa else ""
    said = "enough for this release" if enough else "less than this release needs: it would be refused"
    left_now = f"Budget {budget!r} has psi = {digits_down(left.psi, 6):f}{kappa} left, {said}."
    return left_now + _in_the_way(ledger, budget, guarantee)


def _under_key(ledger: Any, budget: str, asked: Query | CubeQuery, retry_key: str) -> str:
    """What a key that was used means for this question; "" where it was not, or nothing was answered under it."""
    question = request_digest(asked.to_dict(), asked.guarantee, {"kind": "guarantee"}, "")
    for entry in ledger.under_key(budget, retry_key):
        if entry.request != question:
            return (
                f"retry_key {retry_key!r} of budget {budget!r} was used for another question, in entry {entry.id}: the "
                "release would be refused. Use a new key for a new question."
            )
        if entry.state == "answered":
            return (
                f"Under retry_key {retry_key!r} the answer to this very question is stored, in entry {entry.id}: it "
                "comes again and costs nothing. Another question under this key is refused; without the key this one "
                "would be asked anew, at its price."
            )
    return ""


def _in_the_way(ledger: Any, budget: str, guarantee: Guarantee) -> str:
    """What else has to happen before a release: a pause that ends, an approval."""
    report, said = ledger.report(budget), ""
    if EVERYBODY in report.paused:
        said += " Spending from it is paused: the release would be refused."
    elif any(same_person(name, ledger.actor) for name in report.paused):
        said += f" Spending from it is paused for {ledger.actor!r}: the release would be refused."
    if not report.closed and ledger.needs_approval(budget, guarantee):
        said += (
            f" A release above psi {report.above:g} needs somebody else's approval first; where there is none, its "
            "refusal says how to ask."
        )
    return said


@contextmanager
def stopping(words: str) -> Iterator[None]:
    """Within it, Ctrl-C stops at once, and says what that means for the budget."""
    try:
        yield
        return
    except KeyboardInterrupt as stop:
        said = str(stop) or words
    raise KeyboardInterrupt(said)


@contextmanager
def held_back(words: str) -> Iterator[None]:
    """Within it, a first Ctrl-C waits until the end and is raised there; a second one stops at once.

    Only the main thread is told of Ctrl-C, and only a handler of Python's can be put back.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return
    seen: list[int] = []

    def wait(number: int, _: object) -> None:
        if seen:
            raise KeyboardInterrupt(
                "the spend stays, and nothing was released: the same retry_key asks again, and pays"
            )
        seen.append(number)

    signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if seen:
        raise KeyboardInterrupt(words)
