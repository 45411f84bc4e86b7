"""Card: everything the privacy card says, as plain values; the page, the Markdown and the JSON are made from it."""

import json
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from datetime import date as calendar_date
from functools import lru_cache
from importlib.metadata import version
from typing import Any, Protocol, Self, runtime_checkable

from psidp.accounting import DPSGD, BandMF, FixedOrder, PrivacyCurve, RandomAllocation, account
from psidp.accounting.upper import UpperEnds
from psidp.curator.answer import Answer
from psidp.curator.cube import Cube
from psidp.guarantee import Guarantee
from psidp.maths.normal import UNIT
from psidp.present.card.events import Event, alone, covering, described, in_words, read, upper_ends
from psidp.present.card.release_words import release_words
from psidp.present.card.reproduce import command_of
from psidp.present.card.schema import validate
from psidp.present.card.stream_words import Streaming, stream_words
from psidp.present.finite import finite
from psidp.present.words import DELTAS, EPSILONS, sentences
from psidp.symbols import symbol, whole

__all__ = ["Audited", "Card", "Mechanism", "Scope", "card", "mechanism_of"]

Run = DPSGD | BandMF | FixedOrder | RandomAllocation
FORM = "psidp.card/1"
KAPPA = 1e-10
"""Failure probability with which a curve becomes one psi, unless told."""
FPRS = (0.01, 0.001)
SAME = 1e-6
"""Relative room for the last digits of an account, which is a numerical search."""
ALWAYS = ("psi_lower", "psi_upper", "confidence", "method")
"""What a card says of every audit."""
ADVERSARY = (
    "Knows everything but whether this one is in the data: all other records, the query and the noise's distribution."
)


@dataclass(frozen=True, slots=True)
class Mechanism:
    """How the noise was made; None where it does not apply."""

    name: str = "Gaussian mechanism"
    sensitivity: float | None = None
    sigma: float | None = None
    noise_multiplier: float | None = None
    sampling_rate: float | None = None
    steps: int | None = None
    sampling: str | None = None

    def __post_init__(self) -> None:
        for name in ("sensitivity", "sigma", "noise_multiplier", "sampling_rate", "steps"):
            value = getattr(self, name)
            if value is not None:
                symbol(name).number(value)


@dataclass(frozen=True, slots=True)
class Scope:
    """Whom the promise protects, from whom, and what it covers."""

    trust_model: str = "central: the curator sees the data, everybody else sees only what is released"
    adversary: str = ADVERSARY
    contribution_bound: str = "one record each"
    covered: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Audited:
    """What an audit found: psi lies in [lower, upper] with this confidence; from how much, and where to read it."""

    psi_lower: float
    psi_upper: float | None = None
    confidence: float = 0.95
    method: str = ""
    n_in: int | None = None
    n_out: int | None = None
    canaries: int | None = None
    link: str | None = None

    def __post_init__(self) -> None:
        symbol("psi").number(self.psi_lower)
        if self.psi_upper is not None and not self.psi_upper >= self.psi_lower:
            raise ValueError(f"psi_upper must be at least psi_lower={self.psi_lower}, got psi_upper={self.psi_upper}.")
        if not 0.0 < self.confidence < 1.0:
            raise ValueError(f"confidence must be in (0, 1), got confidence={self.confidence}.")
        for name in ("n_in", "n_out", "canaries"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name))

    def to_dict(self) -> dict[str, Any]:
        """As plain values; what an audit did not say of its scores is left out."""
        said = asdict(self)
        return {name: value for name, value in said.items() if name in ALWAYS or value is not None}


@dataclass(frozen=True, slots=True)
class Card:
    """One release's promise with everything that makes it one. Made by card(), written by to_html and its sisters.

    Without events the promise is the guarantee. With events, runs among them, it is their certified account: all
    numbers are its upper ends, and the guarantee is the psi that covers it, with regret.
    """

    guarantee: Guarantee
    title: str = "Privacy card"
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

    def __post_init__(self) -> None:
        for name, kind in (("guarantee", Guarantee), ("mechanism", Mechanism), ("scope", Scope)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"a card's {name} must be a {kind.__name__}, got {getattr(self, name)!r}.")
        if not isinstance(self.audit, Audited | None):
            raise TypeError(f"a card's audit must be what an audit gave back, got {self.audit!r}.")
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
        return deepcopy(_derived(self.promise, self.delta, self.prior))

    @property
    def sentences(self) -> list[str]:
        """The promise in plain words, with natural frequencies."""
        gaussian = not self.events and self.guarantee.kappa == 0.0 and self.regret == 0.0
        return list(_sentences(self.promise, gaussian))

    def to_dict(self) -> dict[str, Any]:
        """The card as plain values that the published schema describes; infinity is "inf"."""
        values = {
            "card": FORM,
            "title": self.title,
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
            "ledger": None if self.ledger_head is None else {"head": self.ledger_head},
            "audit": None if self.audit is None else self.audit.to_dict(),
        }  # fmt: skip
        plain: dict[str, Any] = finite(values)
        return plain

    def to_json(self) -> str:
        """The card as JSON, valid under the published schema."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The card that to_json wrote; what follows from the promise is computed afresh and must agree."""
        values = json.loads(text)
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
        )
        again, room = made.to_dict(), SAME if made.events else 0.0
        wrong = [name for name in ("derived", "sentences") if not _same(again[name], values[name], room)]
        if wrong:
            source = "the account of its events" if made.events else "its psi and kappa"
            raise ValueError(f"the card contradicts itself: its {wrong[0]} do not follow from {source}.")
        return made


@runtime_checkable
class Trained(Protocol):
    """A training that knows its run: what PrivateTrainer.fit gives back."""

    run: DPSGD | BandMF | FixedOrder
    curve: PrivacyCurve
    clip: float
    delta: float
    kappa: float
    ledger_head: str | None


def card(
    promise: Guarantee | PrivacyCurve | Run | Trained | Streaming | Cube | Answer,
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
) -> Card:
    """The card of a guarantee, stream, cube or answer; or of a curve, a run or a training, with its certified numbers.

    `date` is today unless given; every other keyword is a field of Card, where `audit` may be what an audit gave. A run
    fills in its mechanism, a training its delta and its ledger too; a stream says what it publishes and how a unit
    counts. `kappa` is where the psi stands that covers a run.

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
        "audit": audit, "ledger_head": ledger_head, "events": events,
    }  # fmt: skip
    said: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    if isinstance(promise, Streaming | Cube | Answer):
        if isinstance(promise, Streaming):
            words, promise = stream_words(promise), promise.plan().guarantee
        else:
            words, promise = release_words(promise), promise.guarantee
        whom = Scope(contribution_bound=words["bound"], covered=words["covered"], not_covered=words["not_covered"])
        said = {"title": words["title"], "mechanism": Mechanism(words["mechanism"]), "scope": whom} | said
    if isinstance(promise, Trained):
        told = {"ledger_head": promise.ledger_head, "delta": promise.delta}
        said = told | {"mechanism": mechanism_of(promise.curve.events, promise.clip)} | said
        kappa = promise.kappa if kappa is None else kappa
        promise = promise.curve
    if isinstance(promise, Run):
        promise = account(promise)
    if isinstance(promise, PrivacyCurve):
        events = promise.events
        promise, regret = covering(events, KAPPA if kappa is None else kappa)
        said = {"events": events, "regret": regret, "mechanism": mechanism_of(events)} | said
    if hasattr(said.get("audit"), "psi"):
        said["audit"] = _of_audit(said["audit"])
    day = calendar_date.today().isoformat() if date is None else date
    return Card(promise, date=day, software=f"psidp {version('psidp')}", **said)


def mechanism_of(events: tuple[Event, ...], clip: float | None = None) -> Mechanism:
    """How the noise of a run was made, or that there were several events."""
    one = alone(events)
    events = tuple(event for event in events if not (isinstance(event, Guarantee) and event.psi == 0.0)) or events
    if one is None:
        several = f"{len(events)} events together"
        return Mechanism(name=several if len(events) > 1 else in_words(events[0]) if events else Mechanism().name)
    run = one[0]
    return Mechanism(
        name="DP-SGD",
        sensitivity=clip,
        noise_multiplier=run.noise_multiplier,
        sampling_rate=run.sampling_rate,
        steps=run.steps,
        sampling=run.sampling,
    )


@lru_cache(maxsize=256)
def _derived(promise: Guarantee | UpperEnds, delta: float, prior: float) -> dict[str, Any]:
    """The numbers of a card, which each of its formats asks for."""
    p, fpr = promise, FPRS[0]
    deltas = sorted({*DELTAS, delta}, reverse=True)
    rates = [float(rate) for rate in p.roc([*FPRS, prior])]
    hit = prior * rates[0]
    ppv = min(1.0, hit / (hit + (1.0 - prior) * fpr) * (1.0 + 8.0 * UNIT))
    return {
        "epsilon_at_delta": [{"delta": d, "epsilon": float(p.epsilon(d))} for d in deltas],
        "delta_at_epsilon": [{"epsilon": e, "delta": float(p.delta(e))} for e in EPSILONS],
        "advantage": p.advantage,
        "auc": p.auc,
        "tpr_at_fpr": [{"fpr": x, "tpr": tpr} for x, tpr in zip(FPRS, rates, strict=False)],
        "ppv": {"prior": prior, "fpr": fpr, "ppv": ppv},
        "reconstruction": {"prior": prior, "bound": rates[-1]},
    }


@lru_cache(maxsize=256)
def _sentences(promise: Guarantee | UpperEnds, gaussian: bool) -> tuple[str, ...]:
    """The words of a card, which each of its formats asks for."""
    return tuple(sentences(promise, gaussian))


def _same(one: Any, other: Any, room: float) -> bool:
    """Whether plain values are equal, numbers to a relative `room`: last digits differ from machine to machine."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name], room) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(a, b, room) for a, b in zip(one, other, strict=True))
    if isinstance(one, float | int) and isinstance(other, float | int):
        return abs(one - other) <= room * abs(one)
    return bool(one == other)


def _of_audit(found: Any) -> Audited:
    """What an audit's result says, for the card."""
    counts = {name: getattr(found, name, None) for name in ("n_in", "n_out", "canaries")}
    return Audited(psi_lower=found.psi, confidence=found.confidence, method=found.method, **counts)
