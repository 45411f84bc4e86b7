"""Card: everything the privacy card says, as plain values; the page, the Markdown and the JSON are made from it."""

import json
from dataclasses import asdict, dataclass, field
from datetime import date as calendar_date
from importlib.metadata import version
from typing import Any, Protocol, Self, runtime_checkable

from psidp.accounting import DPSGD, PrivacyCurve, account
from psidp.guarantee import Guarantee
from psidp.maths.normal import UNIT
from psidp.present.card.reproduce import command_of
from psidp.present.card.schema import validate
from psidp.present.finite import finite
from psidp.present.words import DELTAS, EPSILONS, sentences
from psidp.symbols import symbol, whole

__all__ = ["Audited", "Card", "Mechanism", "Scope", "card"]

FORM = "psidp.card/1"
KAPPA = 1e-10
"""Failure probability with which a curve becomes one psi, unless told."""
FPRS = (0.01, 0.001)
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
    """One release's promise with everything that makes it one. Made by card(), written by to_html and its sisters."""

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
        made = self.mechanism
        if made.noise_multiplier is None and made.sensitivity is not None and made.sigma is not None:
            least = made.sensitivity / made.sigma
            if not least <= self.guarantee.psi * (1.0 + 8.0 * UNIT):
                raise ValueError(
                    f"the card contradicts itself: noise of sigma={made.sigma} on sensitivity={made.sensitivity} has "
                    f"psi={least}, more than the promised psi={self.guarantee.psi}. Leave out what does not belong."
                )

    @property
    def derived(self) -> dict[str, Any]:
        """What follows from psi and kappa alone, each value rounded to the private side."""
        g, fpr = self.guarantee, FPRS[0]
        hit = self.prior * float(g.roc(fpr))
        ppv = min(1.0, hit / (hit + (1.0 - self.prior) * fpr) * (1.0 + 8.0 * UNIT))
        return {
            "epsilon_at_delta": [{"delta": d, "epsilon": float(g.epsilon(d))} for d in DELTAS],
            "delta_at_epsilon": [{"epsilon": e, "delta": float(g.delta(e))} for e in EPSILONS],
            "advantage": g.advantage,
            "auc": g.auc,
            "tpr_at_fpr": [{"fpr": x, "tpr": float(g.roc(x))} for x in FPRS],
            "ppv": {"prior": self.prior, "fpr": fpr, "ppv": ppv},
            "reconstruction": {"prior": self.prior, "bound": float(g.roc(self.prior))},
        }

    @property
    def sentences(self) -> list[str]:
        """The promise in plain words, with natural frequencies."""
        return sentences(self.guarantee, gaussian=self.guarantee.kappa == 0.0 and self.regret == 0.0)

    def to_dict(self) -> dict[str, Any]:
        """The card as plain values that the published schema describes; infinity is "inf"."""
        values = {
            "card": FORM,
            "title": self.title,
            "made": {"software": self.software, "date": self.date, "command": command_of(self)},
            "guarantee": self.guarantee.to_dict(),
            "regret": self.regret,
            "prior": self.prior,
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
        """The card that to_json wrote; what follows from psi is computed afresh and must agree."""
        values = json.loads(text)
        validate(values)
        scope = values["scope"]
        made = cls(
            guarantee=Guarantee.from_dict(values["guarantee"]),
            title=values["title"],
            regret=values["regret"],
            prior=values["prior"],
            mechanism=Mechanism(**values["mechanism"]),
            scope=Scope(**scope | {name: tuple(scope[name]) for name in ("covered", "not_covered")}),
            ledger_head=None if values["ledger"] is None else values["ledger"]["head"],
            audit=None if values["audit"] is None else Audited(**values["audit"]),
            date=values["made"]["date"],
            software=values["made"]["software"],
        )
        wrong = [name for name in ("derived", "sentences") if made.to_dict()[name] != values[name]]
        if wrong:
            raise ValueError(f"the card contradicts itself: its {wrong[0]} do not follow from its psi and kappa.")
        return made


@runtime_checkable
class Trained(Protocol):
    """A training that knows its run: what PrivateTrainer.fit gives back."""

    run: DPSGD
    curve: PrivacyCurve
    clip: float
    kappa: float
    ledger_head: str | None


def card(
    promise: Guarantee | PrivacyCurve | DPSGD | Trained,
    *,
    kappa: float | None = None,
    date: str | None = None,
    **said: Any,
) -> Card:
    """The card of a guarantee; or of a curve, a run or a training, and then of the psi that covers it with kappa.

    `date` is today unless given; every other keyword is a field of Card, where `audit` may be what an audit gave. A run
    fills in its mechanism, a training its ledger too.

    Examples:
        >>> made = card(Guarantee(1.0), title="Mean age", date="2026-01-31")
        >>> made.derived["auc"]
        0.76024...
        >>> Card.from_json(made.to_json()) == made
        True
        >>> card(DPSGD(1.0, 0.01, 1000)).mechanism.steps
        1000
    """
    if isinstance(promise, Trained):
        said = {"ledger_head": promise.ledger_head, "mechanism": _of_run(promise.run, promise.clip)} | said
        kappa = promise.kappa if kappa is None else kappa
        promise = promise.curve
    if isinstance(promise, DPSGD):
        said = {"mechanism": _of_run(promise)} | said
        promise = account(promise)
    if isinstance(promise, PrivacyCurve):
        kappa = KAPPA if kappa is None else kappa
        said = {"regret": float(promise.regret(kappa).upper)} | said
        promise = promise.guarantee(kappa)
    if hasattr(said.get("audit"), "psi"):
        said["audit"] = _of_audit(said["audit"])
    day = calendar_date.today().isoformat() if date is None else date
    return Card(promise, date=day, software=f"psidp {version('psidp')}", **said)


def _of_run(run: DPSGD, clip: float | None = None) -> Mechanism:
    """How a run's noise was made."""
    return Mechanism(
        name="DP-SGD",
        sensitivity=clip,
        noise_multiplier=run.noise_multiplier,
        sampling_rate=run.sampling_rate,
        steps=run.steps,
        sampling=run.sampling,
    )


def _of_audit(found: Any) -> Audited:
    """What an audit's result says, for the card."""
    counts = {name: getattr(found, name, None) for name in ("n_in", "n_out", "canaries")}
    return Audited(psi_lower=found.psi, confidence=found.confidence, method=found.method, **counts)
