"""Runs whose noise is correlated over the steps: BandMF with cyclic Poisson sampling, and a fixed order of the records.

What they cost is the price of a DPSGD, proved in docs/design/correlated.md; the strategy itself does not enter, since
noise_multiplier is relative to the sensitivity of what is encoded.
"""

from dataclasses import InitVar, dataclass, replace
from fractions import Fraction
from typing import overload

from psidp.accounting.events import (
    DPSGD,
    LARGEST_STEPS,
    RandomAllocation,
    counted,
    planned_rate,
    planned_steps,
)
from psidp.guarantee import Guarantee
from psidp.maths.sensitivity import Adjacency, check_adjacency
from psidp.symbols import float_above, symbol, whole

__all__ = ["BandMF", "Event", "FixedOrder", "Plain", "priced"]

Plain = DPSGD | RandomAllocation | Guarantee
CLOSE = Fraction(1, 10**9)
"""How far bands times sampling_rate may be above 1 where it is meant to be 1."""


@dataclass(frozen=True, slots=True)
class BandMF:
    """DP-SGD with noise correlated over `bands` steps, and cyclic Poisson sampling. All is fixed beforehand.

    Every record belongs to one of `bands` classes for good. Step t draws from class t mod bands alone, each record by a
    coin of its own with chance bands * sampling_rate: so a record is in a batch with chance sampling_rate on average.

    Guarantees:
        The run costs at most what DPSGD(noise_multiplier, bands * sampling_rate, ceil(steps/bands)) costs, in both
        directions, and exactly that where bands divides steps (docs/design/correlated.md).

    Args:
        noise_multiplier: standard deviation of the noise over |c| times the clipping norm, where |c| is the norm of the
            strategy's coefficients, (0, inf).
        sampling_rate: chance q of a record to be in a batch, averaged over the steps; bands * q is at most 1. Or give
            `batch_size` and `dataset_size`.
        steps: number of noisy steps. Or give `epochs`: each has 1/q steps, rounded up.
        bands: for how many steps the noise remembers, and number of classes; 1 is DP-SGD.
        adjacency: "add-remove" where a record's class is its own, from its id; "zero-out" where it goes by position.
        unit: whose data is protected.

    Examples:
        >>> run = BandMF(noise_multiplier=1.0, sampling_rate=0.01, steps=2000, bands=8)
        >>> run.dpsgd
        DPSGD(noise_multiplier=1.0, sampling_rate=0.08, steps=250, sampling='poisson', adjacency='add-remove', ...)
    """

    noise_multiplier: float
    sampling_rate: float = None  # type: ignore[assignment]
    steps: int = None  # type: ignore[assignment]
    bands: int = 1
    adjacency: Adjacency | None = None
    unit: str = "record"
    batch_size: InitVar[int | None] = None
    dataset_size: InitVar[int | None] = None
    epochs: InitVar[float | None] = None

    def __post_init__(self, batch_size: int | None, dataset_size: int | None, epochs: float | None) -> None:
        put = object.__setattr__
        put(self, "noise_multiplier", symbol("noise_multiplier").number(self.noise_multiplier))
        rate = planned_rate(self.sampling_rate, batch_size, dataset_size)
        put(self, "steps", planned_steps(self.steps, epochs, rate))
        put(self, "sampling_rate", float_above(rate))
        put(self, "bands", whole("bands", self.bands))
        if not self.bands * Fraction(self.sampling_rate) <= 1 + CLOSE:
            raise ValueError(
                "bands (steps over which noise is correlated) must be at most 1/sampling_rate, since a record is in "
                f"its class's batch with chance bands * sampling_rate, got bands={self.bands} and "
                f"sampling_rate={self.sampling_rate}."
            )
        side = "add-remove" if self.adjacency is None else check_adjacency(self.adjacency)
        if side == "replace-one":
            raise ValueError(
                'adjacency must be "add-remove" or "zero-out" with bands, got adjacency="replace-one". No tight '
                "account of cyclic sampling under replace-one is known here."
            )
        put(self, "adjacency", side)
        _ = self.dpsgd  # which checks the unit

    @property
    def class_rate(self) -> float:
        """Chance of a record to be in a batch of its own class: bands * sampling_rate."""
        return float_above(min(self.bands * Fraction(self.sampling_rate), Fraction(1)))

    @property
    def dpsgd(self) -> DPSGD:
        """The run of DP-SGD that costs no less."""
        return self._blocks(-(-self.steps // self.bands))

    @property
    def attained(self) -> DPSGD:
        """A run of DP-SGD that costs no more: the blocks that are whole."""
        whole_blocks = self.steps // self.bands
        return self._blocks(whole_blocks) if whole_blocks else replace(self._blocks(1), sampling_rate=0.0)

    def _blocks(self, number: int) -> DPSGD:
        return DPSGD(self.noise_multiplier, self.class_rate, number, adjacency=self.adjacency, unit=self.unit)


@dataclass(frozen=True, slots=True)
class FixedOrder:
    """A run without any sampling: the records in one order, the same in every epoch. Its price is one exact psi.

    psi = sqrt(epochs)/noise_multiplier. Nothing about the batches is secret, and an ordinary loader without shuffling
    makes them. An order that is drawn anew in each epoch is not this: a record may then come last and first, in two
    steps that follow each other.

    Args:
        noise_multiplier: standard deviation of the noise over Delta/sqrt(epochs), (0, inf), where Delta is how far one
            record can move all that is encoded. Where the noise remembers no longer than an epoch that is |c| times the
            clipping norm, and twice that under replace-one.
        epochs: number of epochs, a whole number from 1.
        steps: number of noisy steps in all, of which each epoch has as many; told, not priced.
        adjacency: "zero-out" (a record's gradients become zero, the number of records is public) or "replace-one".
            Not add-remove: who leaves a fixed order moves all later records to other batches.
        unit: whose data is protected.

    Examples:
        >>> FixedOrder(noise_multiplier=2.0, epochs=4).psi
        1.0
    """

    noise_multiplier: float
    epochs: int = 1
    steps: int = None  # type: ignore[assignment]
    adjacency: Adjacency | None = None
    unit: str = "record"

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "noise_multiplier", symbol("noise_multiplier").number(self.noise_multiplier))
        put(self, "epochs", counted("epochs", self.epochs, LARGEST_STEPS))
        put(self, "steps", self.epochs if self.steps is None else whole("steps", self.steps))
        side = "zero-out" if self.adjacency is None else check_adjacency(self.adjacency)
        if side == "add-remove":
            raise ValueError(
                'adjacency must be "zero-out" or "replace-one" in a fixed order, got adjacency="add-remove": one '
                "record more or less moves all later ones to other batches, and nothing bounds what that does."
            )
        put(self, "adjacency", side)
        _ = self.dpsgd  # which checks the unit

    @property
    def dpsgd(self) -> DPSGD:
        """The same price as a run of DP-SGD whose batches are all the data."""
        return DPSGD(self.noise_multiplier, 1.0, self.epochs, adjacency=self.adjacency, unit=self.unit)

    @property
    def psi(self) -> float:
        """sqrt(epochs)/noise_multiplier, rounded up."""
        from psidp.accounting.exact_sums import Squares

        return Squares.of([(1 / Fraction(self.noise_multiplier) ** 2, self.epochs)]).psi[1]


Event = Plain | BandMF | FixedOrder


@overload
def priced(event: BandMF | FixedOrder | DPSGD) -> DPSGD: ...
@overload
def priced(event: Event, attained: bool = ...) -> Plain: ...
def priced(event: Event, attained: bool = False) -> Plain:
    """The plain event whose price is at least this one's, or, attained, at most."""
    if isinstance(event, BandMF):
        return event.attained if attained else event.dpsgd
    return event.dpsgd if isinstance(event, FixedOrder) else event
