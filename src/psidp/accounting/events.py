"""Events: what was done to the data, in the terms a DP-SGD run is described in."""

from dataclasses import dataclass
from typing import Literal

from psidp.maths.sensitivity import Adjacency, check_adjacency
from psidp.symbols import symbol

__all__ = ["DPSGD", "Sampling"]

Sampling = Literal["poisson", "without-replacement"]
LARGEST_STEPS = 2**53


@dataclass(frozen=True, slots=True)
class DPSGD:
    """A run of DP-SGD: `steps` noisy gradients, each from a fresh random batch. All fixed before any output is seen.

    Args:
        noise_multiplier: standard deviation of the noise over the sensitivity of the summed, clipped gradients,
            (0, inf). **The sensitivity is that of the stated adjacency**: the clipping norm C for add-remove, and 2C
            for replace-one, so the same noise has half the noise_multiplier there.
        sampling_rate: chance q of a record to be in a batch, [0, 1]; batch size over n without replacement.
        steps: number of noisy steps, a whole number from 1.
        sampling: "poisson" (every record tosses its own coin in every step; add-remove) or "without-replacement"
            (a batch of fixed size drawn anew in every step; replace-one). A shuffled loader is neither.
        adjacency: "add-remove" or "replace-one"; the default is the one that goes with the sampling.
        unit: whose data is protected.

    Examples:
        >>> DPSGD(noise_multiplier=1.0, sampling_rate=0.01, steps=1000).adjacency
        'add-remove'
    """

    noise_multiplier: float
    sampling_rate: float
    steps: int
    sampling: Sampling = "poisson"
    adjacency: Adjacency | None = None
    unit: str = "record"

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_multiplier", symbol("noise_multiplier").at_most(self.noise_multiplier))
        object.__setattr__(self, "sampling_rate", symbol("sampling_rate").at_least(self.sampling_rate))
        object.__setattr__(self, "steps", whole_steps(self.steps))
        expected = _adjacency_of(self.sampling)
        given = expected if self.adjacency is None else check_adjacency(self.adjacency)
        if given != expected:
            raise ValueError(
                f'sampling="{self.sampling}" is accounted for adjacency="{expected}", got adjacency="{given}". '
                f"No tight account of the other pair is known here."
            )
        object.__setattr__(self, "adjacency", given)
        if not (isinstance(self.unit, str) and self.unit.strip()):
            raise ValueError(f'unit must say whose data is protected, such as "record", got unit={self.unit!r}.')


def whole_steps(steps: object) -> int:
    """`steps` as an int, or the sentence that refuses it."""
    number = symbol("steps").number(steps)
    if not (number == int(number) and number <= LARGEST_STEPS):
        raise ValueError(f"steps (number of noisy steps) must be a whole number of at most 2^53, got steps={steps}.")
    return int(number)


def _adjacency_of(sampling: str) -> Adjacency:
    """The adjacency a way of sampling is accounted for, or a refusal."""
    if sampling == "poisson":
        return "add-remove"
    if sampling == "without-replacement":
        return "replace-one"
    if sampling == "shuffle":
        raise ValueError(
            'sampling must be "poisson" or "without-replacement", got sampling="shuffle". A shuffled loader is '
            "neither: its batches depend on each other, and a Poisson account can understate its loss. What can be "
            "said: every record is in one batch per epoch, so k epochs cost at most sampling_rate=1 with steps=k."
        )
    raise ValueError(f'sampling must be "poisson" or "without-replacement", got sampling={sampling!r}.')
