"""Adaptive clipping: the clip follows a quantile of the gradients' norms, which a private count tells it.

A step releases two things at once, the sum of clipped gradients and how many of them were within the clip. Together
they are one Gaussian mechanism, whose noise multiplier is that of the account: docs/design/step.md, claim 12.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import exp, inf, ldexp, nextafter, sqrt
from typing import Any, final

import torch

from psidp.bridges.torch.noise.tensors import add_noise_
from psidp.bridges.torch.step.clipping import bound_of
from psidp.bridges.torch.step.ranks import ALONE, Ranks
from psidp.symbols import Symbol

__all__ = ["AdaptiveClip", "TrackedClip", "shared"]

SETTINGS = {
    "quantile": Symbol("quantile", "", "share of examples that the clip is to leave as they are", "[0,1]", "0.5"),
    "initial": Symbol("initial", "", "clip of the first step", "(0,inf)", "0.1 to 10"),
    "rate": Symbol("rate", "", "how fast the clip moves, on a logarithmic scale", "(0,inf)", "0.2"),
    "share": Symbol("share", "", "part of a step's psi^2 that the count of examples takes", "(0,1)", "0.02"),
}

AROUND = 2.0**40
"""The clip stays within this factor of the first."""

AT_ONCE = 0.7
"""One step moves the clip's logarithm by so much at most."""


@final
@dataclass(frozen=True, slots=True)
class AdaptiveClip:
    r"""A clip that follows a quantile of the norms of gradients (Andrew, Thakkar, McMahan, Ramaswamy 2021).

    .. math:: C_{t+1} = C_t \exp\bigl(-\texttt{rate}\, (\tilde b_t - \texttt{quantile})\bigr)

    b is the share of a draw that was within the clip, with noise. Count and gradients are one joint Gaussian release:
    the price of a run stays as it is, and the gradients have 1/sqrt(1 - share) times the noise. They are multiplied by
    initial/C_t, a public number, so that `p.grad` has the same noise in all steps, and a learning rate that suits
    clip=initial suits this too: a clip that grew with its noise, or shrank, would change the size of the steps.

    Args:
        quantile: share of examples that the clip is to leave as they are.
        initial: clip of the first step. Several steps are needed for each factor of e: start near the truth.
        rate: how fast the clip moves.
        share: part of a step's psi^2 that the count takes. The share within the clip is then known to
            noise_multiplier / (2 expected_batch sqrt(share)).

    Examples:
        >>> AdaptiveClip(quantile=0.5, initial=0.1)
        AdaptiveClip(quantile=0.5, initial=0.1, rate=0.2, share=0.02)
    """

    quantile: float = 0.5
    initial: float = 1.0
    rate: float = 0.2
    share: float = 0.02

    def __post_init__(self) -> None:
        for name, setting in SETTINGS.items():
            object.__setattr__(self, name, setting.number(getattr(self, name)))
        bound_of(self.initial)

    @property
    def words(self) -> str:
        """What is done to a gradient."""
        return (
            f"clipped to a norm that follows their {self.quantile:.6g}-quantile, from {self.initial:.6g} on; the count "
            f"that it follows takes {self.share:.2g} of each step's psi^2"
        )

    @property
    def terms(self) -> dict[str, Any]:
        """The same as plain values."""
        return {"adaptive": asdict(self)}


class TrackedClip:
    """The clip of a run as it moves; `now` is public, a function of noisy counts alone.

    Args:
        asked: what to follow, and how.
        noise_multiplier: that of the joint release.
        expected_batch: public size of a draw.
    """

    def __init__(self, asked: AdaptiveClip, noise_multiplier: float, expected_batch: float) -> None:
        self.asked, self.now = asked, asked.initial
        self.gradient_multiplier, self.count_sigma = shared(noise_multiplier, asked.share)
        self._expected = expected_batch

    def move(self, factors: Sequence[torch.Tensor], unit: int, ranks: Ranks = ALONE) -> None:
        """After a step: what its examples were multiplied with, zero for none, and the unit's exponent.

        The count is that of all ranks; rank 0 adds the noise, and the others are told what came out.
        """
        total = torch.tensor([float(ranks.added(_balance(factors, unit)))], dtype=torch.float64)
        kept = ranks.told(add_noise_(total, self.count_sigma) if ranks.first else None)
        within = 0.5 + float(kept) / (2.0 * self._expected)
        by = -self.asked.rate * (within - self.asked.quantile)
        self.put(self.now * exp(max(-AT_ONCE, min(AT_ONCE, by))))

    def put(self, clip: float) -> None:
        """Set the clip, as near as its range allows."""
        around = (self.asked.initial / AROUND, self.asked.initial * AROUND)
        self.now = max(2.0**-100, around[0], min(2.0**100, around[1], clip))


def shared(noise_multiplier: float, share: float) -> tuple[float, float]:
    r"""The noise multipliers of gradients and of the count, whose joint release has that of the account.

    .. math:: z_g^{-2} + z_c^{-2} \le z^{-2} \text{ in true numbers}, \qquad z_c \approx z/\sqrt{\texttt{share}}

    Examples:
        >>> shared(1.0, 0.02)
        (1.0101525445522108, 7.0710678118654755)
    """
    count = noise_multiplier / sqrt(share)
    gradients = noise_multiplier / sqrt(1.0 - share)
    joint = Fraction(noise_multiplier) ** -2 - Fraction(count) ** -2
    while not Fraction(gradients) ** -2 <= joint:
        gradients = nextafter(gradients, inf)
    return gradients, count


def _balance(factors: Sequence[torch.Tensor], unit: int) -> int:
    """Examples that kept their gradient less those that were clipped: each adds 1, -1 or, where undefined, 0."""
    whole = ldexp(1.0, -unit)
    return int(sum((factor >= whole).sum() - ((factor > 0) & (factor < whole)).sum() for factor in factors))
