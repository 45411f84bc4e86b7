"""The parts of a card: how the noise was made, whom it protects, what was checked, how far off the numbers are."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from psidp.symbols import symbol, whole

__all__ = ["Audited", "ErrorRange", "LedgerCheck", "Mechanism", "Scope", "Total"]

LedgerCheck = Literal["", "passed", "failed"]
"""Whether every entry of the ledger was recomputed for this card, and agreed."""
ALWAYS = ("psi_lower", "psi_upper", "confidence", "method")
"""What a card says of every audit."""
CENTRAL = "central: the curator sees the data, everybody else sees only what is released"
"""The trust model of everything that psidp itself releases."""
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

    trust_model: str = CENTRAL
    adversary: str = ADVERSARY
    contribution_bound: str = ""
    """Said only where something enforced it, or with whose promise it is."""
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
class Total:
    """The running total of the budget that a release was paid from: what it has spent so far, and may spend in all."""

    budget: str
    psi: float
    kappa: float = 0.0
    cap: float | None = None

    def __post_init__(self) -> None:
        symbol("psi").number(self.psi)
        symbol("kappa").number(self.kappa)
        if self.cap is not None:
            symbol("psi").number(self.cap)


@dataclass(frozen=True, slots=True)
class ErrorRange:
    """How far the intervals of a statistic reach below and above its numbers, from the narrowest to the widest.

    Args:
        statistic: what the numbers are. below, above: smallest and largest distance to an interval's end, in the unit
        of the statistic; inf where there is no end. confidence: chance that an interval holds the truth. numbers:
        how many there are. clipped: how many clipping may have moved further than their intervals say.
    """

    statistic: str
    below: tuple[float, float]
    above: tuple[float, float]
    confidence: float = 0.95
    numbers: int = 1
    clipped: int = 0

    def __post_init__(self) -> None:
        for name in ("below", "above"):
            ends = tuple(float(end) for end in getattr(self, name))
            object.__setattr__(self, name, ends)
            if not (len(ends) == 2 and 0.0 <= ends[0] <= ends[1]):
                raise ValueError(
                    f"{name} (smallest and largest distance to the end of an interval) must be two numbers in "
                    f"[0, inf], in order, got {name}={list(ends)} for {self.statistic!r}."
                )
        if not 0.0 < self.confidence < 1.0:
            raise ValueError(f"confidence must be in (0, 1), got confidence={self.confidence}.")
        if not 0 <= self.clipped <= whole("numbers", self.numbers):
            raise ValueError(f"clipped must be in [0, numbers={self.numbers}], got clipped={self.clipped}.")
