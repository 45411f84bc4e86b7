"""Card: everything the privacy card says, as plain values; the page, the Markdown and the JSON are made from it."""

import json
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from datetime import date as calendar_date
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Self

from psidp.accounting import DPSGD, BandMF, FixedOrder, PrivacyCurve, RandomAllocation, account
from psidp.accounting.upper import UpperEnds
from psidp.escaping import json_text
from psidp.forms import check_form
from psidp.guarantee import Guarantee
from psidp.ledger.entry import Entry
from psidp.ledger.report import Report
from psidp.maths.normal import UNIT
from psidp.mechanism.release import Release
from psidp.present.card.derived import derived_numbers, derived_sentences, same
from psidp.present.card.enforced import enforced
from psidp.present.card.events import Event, covering, described, read, upper_ends
from psidp.present.card.fill import Trained, filled, from_ledger, mechanism_of, of_audit
from psidp.present.card.paid import check_paid, spend_words, with_unpublished
from psidp.present.card.parts import Audited, ErrorRange, LedgerCheck, Mechanism, Scope, Total
from psidp.present.card.reproduce import command_of
from psidp.present.card.schema import validate
from psidp.present.card.stream_words import Streaming
from psidp.present.finite import finite
from psidp.symbols import symbol
from psidp.tables.answer import Answer
from psidp.tables.cube_answer import Cube

if TYPE_CHECKING:
    from psidp.ledger.ledger import Ledger

__all__ = ["UNTITLED", "Audited", "Card", "ErrorRange", "Mechanism", "Scope", "Total", "card", "mechanism_of"]

Run = DPSGD | BandMF | FixedOrder | RandomAllocation
FORM = "psidp.card/3"
"""The form that is written, and the only one that is read."""
UNTITLED = "Privacy card"
"""The title of a card that was told none."""
KAPPA = 1e-10
"""Failure probability with which a curve becomes one psi, unless told."""
SAME = 1e-6
"""Relative room for the last digits of an account, which is a numerical search."""


@dataclass(frozen=True, slots=True)
class Card:
    """One release's promise with everything that makes it one. Made by card(), written by to_html and its sisters.

    Without events the promise is the guarantee. With events, runs among them, it is their certified account: all
    numbers are its upper ends, and the guarantee is the psi that covers it, with regret.
    """

    guarantee: Guarantee
    title: str = UNTITLED
    regret: float = 0.0
    prior: float = 0.1
    mechanism: Mechanism = field(default_factory=Mechanism)
    scope: Scope = field(default_factory=Scope)
    ledger_head: str | None = None
    audit: Audited | None = None
    date: str = ""
    software: str = ""
    delta: float = 1e-5
    """The delta at which epsilon is promised, beside the usual ones."""
    events: tuple[Event, ...] = ()
    publisher: str = ""
    ledger_check: LedgerCheck = ""
    total: Total | None = None
    """Of the budget that paid, this release included."""
    errors: tuple[ErrorRange, ...] = ()

    def __post_init__(self) -> None:
        for name, kind in (("guarantee", Guarantee), ("mechanism", Mechanism), ("scope", Scope)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"a card's {name} must be a {kind.__name__}, got {getattr(self, name)!r}.")
        if not isinstance(self.audit, Audited | None):
            raise TypeError(f"a card's audit must be what an audit gave back, got {self.audit!r}.")
        if self.ledger_check not in ("", "passed", "failed"):
            raise ValueError(f"ledger_check must be passed, failed or empty, got ledger_check={self.ledger_check!r}.")
        if self.ledger_check and self.ledger_head is None:
            raise ValueError("ledger_check goes with ledger_head: what was verified has a head.")
        symbol("prior").number(self.prior)
        if not 0.0 <= self.regret <= 1.0:
            raise ValueError(f"regret (how far psi overstates the loss) must be in [0, 1], got regret={self.regret}.")
        try:
            calendar_date.fromisoformat(self.date)
        except ValueError:
            raise ValueError(f"date must be a day as YYYY-MM-DD, such as 2026-01-31, got date={self.date!r}.") from None
        if not 0.0 < symbol("delta").number(self.delta) < 1.0:
            raise ValueError(f"delta ({symbol('delta').meaning}) must be in (0, 1), got delta={self.delta}.")
        if self.events:
            self._check_events()
        made = self.mechanism
        if (
            not self.events
            and made.noise_multiplier is None
            and made.sensitivity is not None
            and made.sigma is not None
        ):
            least = made.sensitivity / made.sigma
            if not least <= self.guarantee.psi * (1.0 + 8.0 * UNIT):
                raise ValueError(
                    f"the card contradicts itself: noise of sigma={made.sigma} on sensitivity={made.sensitivity} has "
                    f"psi={least}, more than the promised psi={self.guarantee.psi}. Leave out what does not belong."
                )

    def _check_events(self) -> None:
        """Refuse a psi that does not cover the events, or one for other people."""
        g, needed = self.guarantee, covering(self.events, self.guarantee.kappa)[0]
        if not (g.psi * (1.0 + SAME) >= needed.psi and (g.adjacency, g.unit) == (needed.adjacency, needed.unit)):
            raise ValueError(f"the card contradicts itself: its events need {needed!r}, it promises {g!r}.")

    @property
    def promise(self) -> Guarantee | UpperEnds:
        """What the numbers are read from: the certified account of the events, or else the guarantee."""
        return upper_ends(self.events) if self.events else self.guarantee

    @property
    def epsilon(self) -> float:
        """Promised at delta."""
        return float(next(r["epsilon"] for r in self.derived["epsilon_at_delta"] if r["delta"] == self.delta))

    @property
    def derived(self) -> dict[str, Any]:
        """What follows from the promise, each value rounded to the private side."""
        return deepcopy(derived_numbers(self.promise, self.delta, self.prior))

    @property
    def sentences(self) -> list[str]:
        """The promise in plain words, with natural frequencies."""
        gaussian = not self.events and self.guarantee.kappa == 0.0 and self.regret == 0.0
        return list(derived_sentences(self.promise, gaussian))

    def to_dict(self) -> dict[str, Any]:
        """The card as plain values that the published schema describes; infinity is "inf"."""
        values = {
            "card": FORM,
            "title": self.title,
            "publisher": self.publisher,
            "made": {"software": self.software, "date": self.date, "command": command_of(self)},
            "guarantee": self.guarantee.to_dict(),
            "regret": self.regret,
            "prior": self.prior,
            "delta": self.delta,
            "events": described(self.events),
            "mechanism": asdict(self.mechanism),
            "scope": asdict(self.scope) | {"covered": list(self.scope.covered)}
            | {"not_covered": list(self.scope.not_covered)},
            "derived": self.derived,
            "sentences": self.sentences,
            "ledger": None if self.ledger_head is None else {"head": self.ledger_head, "check": self.ledger_check},
            "total": None if self.total is None else asdict(self.total),
            "errors": [asdict(error) for error in self.errors],
            "audit": None if self.audit is None else self.audit.to_dict(),
        }  # fmt: skip
        plain: dict[str, Any] = finite(values)
        return plain

    def to_json(self) -> str:
        """The card as JSON, valid under the published schema."""
        return json_text(json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The card that to_json wrote; what follows from the promise is computed afresh and must agree."""
        values = json.loads(text)
        if isinstance(values, dict):
            check_form(values.get("card"), FORM, "the card")
        validate(values)
        scope, guarantee = values["scope"], Guarantee.from_dict(values["guarantee"])
        made = cls(
            guarantee=guarantee,
            title=values["title"],
            regret=values["regret"],
            prior=values["prior"],
            mechanism=Mechanism(**values["mechanism"]),
            scope=Scope(**scope | {name: tuple(scope[name]) for name in ("covered", "not_covered")}),
            ledger_head=None if values["ledger"] is None else values["ledger"]["head"],
            audit=None if values["audit"] is None else Audited(**values["audit"]),
            date=values["made"]["date"],
            software=values["made"]["software"],
            delta=values.get("delta", 1e-5),
            events=read(values.get("events", []), guarantee.adjacency, guarantee.unit),
            publisher=values.get("publisher", ""),
            ledger_check=(values["ledger"] or {}).get("check", ""),
            total=Total(**values["total"]) if values.get("total") else None,
            errors=tuple(ErrorRange(**error) for error in values.get("errors", [])),
        )
        again, room = made.to_dict(), SAME if made.events else 0.0
        wrong = [name for name in ("derived", "sentences") if not same(again[name], values[name], room)]
        if wrong:
            source = "the account of its events" if made.events else "its psi and kappa"
            raise ValueError(f"the card contradicts itself: its {wrong[0]} do not follow from {source}.")
        return made


Promise = Guarantee | PrivacyCurve | Run | Trained | Streaming | Cube | Answer | Release | Report | Entry
"""What a card can be made of."""


def card(
    promise: Guarantee | PrivacyCurve | Run | Trained | Streaming | Cube | Answer | Release | Report | Entry,
    *,
    kappa: float | None = None,
    date: str | None = None,
    title: str | None = None,
    delta: float | None = None,
    prior: float | None = None,
    regret: float | None = None,
    mechanism: Mechanism | None = None,
    scope: Scope | None = None,
    audit: object = None,
    ledger_head: str | None = None,
    events: tuple[Event, ...] | None = None,
    publisher: str | None = None,
    ledger_check: LedgerCheck | None = None,
    total: Total | None = None,
    errors: tuple[ErrorRange, ...] | None = None,
    ledger: "Ledger | None" = None,
    budget: str | None = None,
) -> Card:
    """The card of a guarantee, answer, release, report, stream or cube; a curve, a run, a training; a ledger's spend.

    `date` is today unless given; every other keyword is a field of Card, where `audit` may be what an audit gave. What
    the card is made of fills in what it knows: a run its mechanism, a training its delta and ledger, an answer its
    typical errors. With `ledger` and `budget` the ledger is verified, and its head, the running total and what
    psidp enforced in a curator's release are filled in; a card of what the budget did not pay for is refused.
    `ledger.spent(number)` gives a spend. `publisher` is told or left out. `kappa` is where the psi stands that covers
    a run.

    Examples:
        >>> made = card(Guarantee(1.0), title="Mean age", date="2026-01-31")
        >>> made.derived["auc"]
        0.76024...
        >>> Card.from_json(made.to_json()) == made
        True
        >>> run = card(DPSGD(1.0, 0.01, 1000))
        >>> round(run.epsilon, 4), round(run.guarantee.epsilon(1e-5), 4)
        (1.8282, 2.0634)
    """
    fields = {
        "title": title, "delta": delta, "prior": prior, "regret": regret, "mechanism": mechanism, "scope": scope,
        "audit": audit, "ledger_head": ledger_head, "events": events, "publisher": publisher,
        "ledger_check": ledger_check, "total": total, "errors": errors,
    }  # fmt: skip
    given: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    if (ledger is None) is not (budget is None):
        raise ValueError("ledger and budget go together: the ledger is verified, and the budget's total is told.")
    said, behind = spend_words(promise, ledger) if isinstance(promise, Entry) else filled(promise)
    if isinstance(promise, Trained):
        kappa = promise.kappa if kappa is None else kappa
    if ledger is not None and budget is not None:
        said |= from_ledger(ledger, budget)
    if isinstance(behind, Run):
        behind = account(behind)
    if isinstance(behind, PrivacyCurve):
        runs = behind.events
        behind, overstated = covering(runs, KAPPA if kappa is None else kappa)
        said = {"events": runs, "regret": overstated, "mechanism": mechanism_of(runs)} | said
    said |= given
    if ledger is not None and budget is not None:
        paying = check_paid(ledger, budget, promise, behind, said.get("events", ()))
        known = enforced(ledger, paying, said.get("scope", Scope()), behind.unit)
        said |= known | {name: value for name, value in given.items() if name != "scope"}
        if isinstance(promise, Report):
            said["scope"] = with_unpublished(ledger, budget, said.get("scope", Scope()))
    if hasattr(said.get("audit"), "psi"):
        said["audit"] = of_audit(said["audit"])
    day = calendar_date.today().isoformat() if date is None else date
    return Card(behind, date=day, software=f"psidp {version('psidp')}", **said)
