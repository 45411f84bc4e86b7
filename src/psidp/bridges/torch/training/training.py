"""What a training was: the run that was promised, how far it went, and what it costs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import nn

from psidp.accounting import PrivacyCurve
from psidp.bridges.torch.step.adaptive_clip import AdaptiveClip
from psidp.bridges.torch.step.per_layer_clip import PerLayerClip
from psidp.bridges.torch.training.plan import Run, cost_of, curve_of, grouped, shortened
from psidp.guarantee import Guarantee
from psidp.symbols import whole

__all__ = ["Progress", "Training", "validated"]


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
    clip: float | PerLayerClip | AdaptiveClip
    """As it was asked for."""
    delta: float
    kappa: float
    failure: float
    """Chance that some draw exceeded its places (see PrivateStep), which is part of kappa and of delta."""
    ledger_head: str | None = None
    examples_per_user: int | None = None
    """Where users are the units: examples of one that took part in a step at most."""

    @property
    def finished(self) -> bool:
        """Whether every planned step was started."""
        return self.started >= self.run.steps

    @property
    def clipping(self) -> str:
        """What was done to each gradient, in words."""
        done = f"clipped to norm {self.clip:.6g}" if isinstance(self.clip, float) else self.clip.words
        mean = f"the mean over at most {self.examples_per_user} of its examples, "
        return done if self.examples_per_user is None else mean + done

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

    def group(self, size: int) -> PrivacyCurve:
        """The certified curve for so many units that come or go together: k records, or k users, added or removed.

        Proved for Poisson sampling without bands, docs/design/sampling.md, and for a fixed order, where psi is k times
        as large. Refused with bands, whose k units may be of different classes, and where 1/sampling_rate is less than
        k: the places of a step are planned for one unit more on average.
        """
        return curve_of(grouped(self.run, whole("size", size)), self.failure)


def validated(model: nn.Module, validate: Callable[[nn.Module], float]) -> float:
    """The caller's number, with the model in eval mode and back in the mode that each part had."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return float(validate(model))
    finally:
        for module, mode in modes:
            module.training = mode
