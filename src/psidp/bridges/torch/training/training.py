"""What a training was: the run that was promised, how far it went, and what it costs."""

from dataclasses import dataclass
from functools import cached_property

from psidp.accounting import PrivacyCurve
from psidp.bridges.torch.training.plan import Run, cost_of, curve_of, shortened
from psidp.guarantee import Guarantee

__all__ = ["Progress", "Training"]


FEW = 4
"""Fewer steps are slow to account for; they are told as so many."""


@dataclass(frozen=True)
class Progress:
    """How far a training is. Nothing in it depends on the data but `score`, which the caller's function computed.

    epsilon (at delta) and psi (at kappa) are certified upper ends for the steps started so far: 0 before the first,
    and after one to three those of four. They are computed when somebody asks, which takes some hundredths of a second.
    """

    run: Run
    """As it was planned and paid for."""
    started: int
    epoch: int
    epochs: int
    ended: bool
    """Whether an epoch, or the training, ended with this step."""
    delta: float
    kappa: float
    failure: float
    score: float | None = None

    @property
    def steps(self) -> int:
        """Planned."""
        return self.run.steps

    @property
    def epsilon(self) -> float:
        """Certified epsilon at delta, of the steps started so far."""
        return self._cost[0]

    @property
    def psi(self) -> float:
        """Certified psi at kappa, of the steps started so far."""
        return self._cost[1]

    @cached_property
    def _cost(self) -> tuple[float, float]:
        if not self.started:
            return 0.0, 0.0
        so_far = shortened(self.run, max(self.started, FEW))
        return cost_of(curve_of(so_far, self.failure), self.delta, self.kappa)


@dataclass(frozen=True)
class Training:
    """What comes back from fit. `psidp.card(training)` makes its privacy card.

    The promise is the price of the whole planned run, also if fewer steps were started: when to stop may have been
    read off the results, and then only what was fixed beforehand has a proof.
    """

    run: Run
    """As it was planned and paid for."""
    started: int
    """Steps ever started, those of killed processes included; at most run.steps."""
    applied: int
    """Steps that the model has in it."""
    clip: float
    delta: float
    kappa: float
    failure: float
    """Chance that some draw exceeded its places (see PrivateStep), which is part of kappa and of delta."""
    ledger_head: str | None = None

    @property
    def finished(self) -> bool:
        """Whether every planned step was started."""
        return self.started >= self.run.steps

    @cached_property
    def curve(self) -> PrivacyCurve:
        """The certified privacy curve of the planned run."""
        return curve_of(self.run, self.failure)

    @cached_property
    def epsilon(self) -> float:
        """Certified epsilon at delta."""
        return float(self.curve.epsilon(self.delta).upper)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The covering Guarantee at kappa."""
        return self.curve.guarantee(self.kappa)

    @property
    def psi(self) -> float:
        """Certified psi at kappa."""
        return self.guarantee.psi
