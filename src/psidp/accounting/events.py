"""Events: what was done to the data, in the terms a training run is described in."""

from dataclasses import InitVar, dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

from psidp.accounting.truncation import any_of, overflow
from psidp.maths.sensitivity import Adjacency, check_adjacency
from psidp.symbols import float_above, symbol, whole

__all__ = ["DPSGD", "LARGEST_STEPS", "RandomAllocation", "Sampling", "counted", "planned_rate", "planned_steps"]

Sampling = Literal["poisson", "without-replacement"]
LARGEST_STEPS = 2**53
LARGEST_GROUP = 1000
LARGEST_DATASET = 10**10
"""Up to here the terms of a truncation's chance are so few that their rounding is covered."""


@dataclass(frozen=True, slots=True)
class DPSGD:
    """A run of DP-SGD: `steps` noisy gradients, each from a fresh random batch. All fixed before any output is seen.

    Args:
        noise_multiplier: standard deviation of the noise over the sensitivity of the summed, clipped gradients,
            (0, inf). **The sensitivity is that of the stated adjacency**: the clipping norm C for add-remove, and 2C
            for replace-one, so the same noise has half the noise_multiplier there.
        sampling_rate: chance q of a record to be in a batch, [0, 1]; batch size over n without replacement. Or give
            `batch_size` and `dataset_size`.
        steps: number of noisy steps, a whole number from 1. Or give `epochs`: each has 1/q steps, rounded up.
        sampling: "poisson" (every record tosses its own coin in every step) or "without-replacement" (a batch of
            fixed size drawn anew in every step; replace-one). A shuffled loader is neither.
        adjacency: "add-remove" or "replace-one"; the default is add-remove for Poisson, replace-one otherwise.
        unit: whose data is protected.
        group: how many records one unit has at most; that many are added or removed together (Poisson, add-remove).
        truncated_batch_size: the largest batch, where larger Poisson batches are cut down to a random part of them;
            needs dataset_size. The chance that a batch is cut is failure probability.
        dataset_size: the most records that there can be.
        batch_size, epochs: the other way to say sampling_rate and steps.

    Examples:
        >>> DPSGD(noise_multiplier=1.0, sampling_rate=0.01, steps=1000).adjacency
        'add-remove'
        >>> run = DPSGD(1.0, batch_size=600, dataset_size=60_000, epochs=10)
        >>> run.sampling_rate, run.steps
        (0.01, 1000)
    """

    noise_multiplier: float
    sampling_rate: float = None  # type: ignore[assignment]
    steps: int = None  # type: ignore[assignment]
    sampling: Sampling = "poisson"
    adjacency: Adjacency | None = None
    unit: str = "record"
    group: int = 1
    truncated_batch_size: int | None = None
    dataset_size: int | None = None
    batch_size: InitVar[int | None] = None
    epochs: InitVar[float | None] = None

    def __post_init__(self, batch_size: int | None, epochs: float | None) -> None:
        put = object.__setattr__
        put(self, "noise_multiplier", symbol("noise_multiplier").number(self.noise_multiplier))
        rate = planned_rate(self.sampling_rate, batch_size, self.dataset_size)
        put(self, "steps", planned_steps(self.steps, epochs, rate))
        put(self, "sampling_rate", float_above(rate))
        put(self, "adjacency", _adjacency_of(self.sampling, self.adjacency))
        put(self, "group", whole("group", self.group))
        _check_unit(self.unit)
        self._check_group()
        self._check_truncation(batch_size)

    def _check_group(self) -> None:
        if self.group == 1:
            return
        if not (self.sampling == "poisson" and self.adjacency == "add-remove" and self.truncated_batch_size is None):
            raise ValueError(
                "group (records of one unit) must be 1 unless the sampling is Poisson, add-remove and without "
                f"truncation, got group={self.group}. No tight account of the others is known here."
            )
        if not self.group <= LARGEST_GROUP:
            raise ValueError(f"group (records of one unit) must be at most {LARGEST_GROUP}, got group={self.group}.")
        if self.unit == "record":
            object.__setattr__(self, "unit", f"group of {self.group} records")

    def _check_truncation(self, batch_size: int | None) -> None:
        """The cap and the records it is for, or neither; without a cap only their rate matters."""
        if self.truncated_batch_size is None:
            if self.dataset_size is not None and batch_size is None:
                raise TypeError(
                    "dataset_size (most records there can be) goes with batch_size or truncated_batch_size."
                )
            object.__setattr__(self, "dataset_size", None)
            return
        object.__setattr__(self, "truncated_batch_size", whole("truncated_batch_size", self.truncated_batch_size))
        if self.dataset_size is None:
            raise TypeError("truncated_batch_size (largest batch) needs dataset_size, the most records there can be.")
        object.__setattr__(self, "dataset_size", counted("dataset_size", self.dataset_size, LARGEST_DATASET))
        if self.sampling != "poisson":
            raise ValueError('truncated_batch_size (largest batch) needs sampling="poisson": others have one size.')
        if not self.truncation < 1.0:
            raise ValueError(
                "truncated_batch_size (largest batch) must be so large that batches are seldom truncated, got "
                f"truncated_batch_size={self.truncated_batch_size} for {self.dataset_size * self.sampling_rate:.6g} "
                f"records on average. Some ten times the root of that more will do."
            )

    @property
    def step_truncation(self) -> float:
        """Upper bound of the chance that one step's batch is truncated, whichever the other records are."""
        if self.truncated_batch_size is None or self.dataset_size is None:
            return 0.0
        return overflow(self.dataset_size - 1, self.sampling_rate, self.truncated_batch_size)

    @property
    def truncation(self) -> float:
        """Upper bound of the chance that any step's batch is truncated: the failure probability of the run."""
        return any_of(self.step_truncation, self.steps)


@dataclass(frozen=True, slots=True)
class RandomAllocation:
    """A run in which every record is in one batch per epoch: a random one, chosen anew and by each record for itself.

    A loader that shuffles and cuts into batches of one size is not this: there records do not choose for themselves.

    Args:
        noise_multiplier: standard deviation of the noise over the clipping norm, (0, inf).
        batches: number of batches in an epoch, each of which gets its own noise.
        epochs: number of epochs, a whole number from 1.
        unit: whose data is protected; adjacency is add-remove.

    Examples:
        >>> RandomAllocation(noise_multiplier=1.5, batches=25, epochs=4).steps
        100
    """

    noise_multiplier: float
    batches: int
    epochs: int = 1
    adjacency: Adjacency | None = None
    unit: str = "record"

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise_multiplier", symbol("noise_multiplier").number(self.noise_multiplier))
        object.__setattr__(self, "batches", counted("batches", self.batches, 2**20))
        object.__setattr__(self, "epochs", counted("epochs", self.epochs, 2**40))
        if self.adjacency is not None and check_adjacency(self.adjacency) != "add-remove":
            raise ValueError(
                f'random allocation is accounted for adjacency="add-remove", got adjacency="{self.adjacency}". '
                "No tight account of the other is known here."
            )
        object.__setattr__(self, "adjacency", "add-remove")
        _check_unit(self.unit)

    @property
    def steps(self) -> int:
        """Number of noisy steps: batches times epochs."""
        return self.batches * self.epochs


def planned_rate(sampling_rate: float | None, batch_size: int | None, dataset_size: int | None) -> float | Fraction:
    """The sampling rate as it was given, or batch_size over dataset_size; exactly one of the two.

    Examples:
        >>> planned_rate(None, 256, 1024)
        Fraction(1, 4)
    """
    if batch_size is None:
        if sampling_rate is None:
            raise TypeError("a run needs sampling_rate, or batch_size and dataset_size.")
        return symbol("sampling_rate").number(sampling_rate)
    if sampling_rate is not None:
        raise TypeError(f"give sampling_rate or batch_size, not both, got {sampling_rate} and {batch_size}.")
    if dataset_size is None:
        raise TypeError("batch_size (records in a batch, on average) needs dataset_size.")
    size, records = whole("batch_size", batch_size), whole("dataset_size", dataset_size)
    if not size <= records:
        raise ValueError(f"batch_size (records in a batch) must be at most dataset_size={records}, got {size}.")
    return Fraction(size, records)


def planned_steps(steps: int | None, epochs: float | None, rate: float | Fraction) -> int:
    """The steps as they were given, or those of so many epochs of 1/rate steps each, rounded up; one of the two.

    Examples:
        >>> planned_steps(None, 10, 0.01), planned_steps(None, 2.5, Fraction(3, 10)), planned_steps(None, 1, 1 / 3)
        (1000, 10, 3)
        >>> planned_steps(None, 1, 1.3e-9), 1 / 1.3e-9
        (769230770, 769230769.230...)
    """
    if epochs is None:
        if steps is None:
            raise TypeError("a run needs steps or epochs.")
        return whole_steps(steps)
    if steps is not None:
        raise TypeError(f"give steps or epochs, not both, got steps={steps} and epochs={epochs}.")
    number = symbol("epochs").number(epochs)
    if not rate > 0.0:
        raise ValueError(f"sampling_rate (chance of a record to be in a batch) must be above 0 for epochs, got {rate}.")
    near = round(1 / Fraction(rate))  # 1/3 as a float is a little less than a third, and has 3 steps in an epoch
    each = near if rate in (Fraction(1, near), 1 / near) else ceil(1 / Fraction(rate))
    near = round(Fraction(number) * each)
    return whole_steps(max(1, near if near / each == number else ceil(Fraction(number) * each)))


def whole_steps(steps: object) -> int:
    """`steps` as an int, or the sentence that refuses it."""
    number = symbol("steps").number(steps)
    if not (number == int(number) and number <= LARGEST_STEPS):
        raise ValueError(f"steps (number of noisy steps) must be a whole number of at most 2^53, got steps={steps}.")
    return int(number)


def counted(name: str, value: object, most: int) -> int:
    """`value` as an int from 1 to `most`, for an argument called `name`; a whole float is one too."""
    number = whole(name, int(value) if isinstance(value, float) and value.is_integer() else value)
    if not number <= most:
        raise ValueError(f"{name} must be at most {most:,}, got {name}={value}.")
    return number


def _check_unit(unit: object) -> None:
    if not (isinstance(unit, str) and unit.strip()):
        raise ValueError(f'unit must say whose data is protected, such as "record", got unit={unit!r}.')


def _adjacency_of(sampling: str, adjacency: Adjacency | None) -> Adjacency:
    """The adjacency a run is accounted for, or a refusal."""
    if sampling == "shuffle":
        raise ValueError(
            'sampling must be "poisson" or "without-replacement", got sampling="shuffle". A shuffled loader is '
            "neither: its batches depend on each other, and a Poisson account can understate its loss. What can be "
            "said: every record is in one batch per epoch, so k epochs cost at most sampling_rate=1 with steps=k. "
            "Where every record draws its batch for itself, say RandomAllocation."
        )
    if sampling == "poisson":
        return "add-remove" if adjacency is None else check_adjacency(adjacency)
    if sampling != "without-replacement":
        raise ValueError(f'sampling must be "poisson" or "without-replacement", got sampling={sampling!r}.')
    if adjacency is not None and check_adjacency(adjacency) != "replace-one":
        raise ValueError(
            f'sampling="{sampling}" is accounted for adjacency="replace-one", got adjacency="{adjacency}". '
            f"No tight account of the other pair is known here."
        )
    return "replace-one"
