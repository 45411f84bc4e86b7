"""The runs that a command line describes: every value of each option with every value of the others."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Annotated, Any

import typer

from psidp.accounting import DPSGD, BandMF, FixedOrder, RandomAllocation
from psidp.accounting.calibration import described_run
from psidp.maths.sensitivity import check_adjacency

__all__ = ["Run", "columns", "runs", "said"]

Run = DPSGD | BandMF | FixedOrder | RandomAllocation
Rates = Annotated[list[float], typer.Option("--sampling-rate", help="chance to be in a batch, [0,1]; may repeat")]
Steps = Annotated[list[int], typer.Option("--steps", help="number of noisy steps; may repeat")]
Sizes = Annotated[
    list[int], typer.Option("--batch-size", help="with --dataset-size, in place of --sampling-rate; may repeat")
]
Epochs = Annotated[list[float], typer.Option("--epochs", help="in place of --steps; may repeat")]
Records = Annotated[int | None, typer.Option("--dataset-size", help="the most records that there can be")]
Largest = Annotated[
    int | None, typer.Option("--truncated-batch-size", help="larger Poisson batches are cut to this; --dataset-size")
]
Group = Annotated[int, typer.Option("--group", help="records that one unit has at most")]
Batches = Annotated[
    list[int], typer.Option("--batches", help="random allocation: batches of an epoch, with --epochs; may repeat")
]
Bands = Annotated[
    list[int], typer.Option("--bands", help="correlated noise: over so many steps, with cyclic sampling; may repeat")
]
Order = Annotated[str | None, typer.Option("--order", help="fixed: no sampling, one order in all --epochs")]
Way = Annotated[str, typer.Option("--sampling", help="poisson or without-replacement")]
Side = Annotated[
    str | None, typer.Option("--adjacency", help="add-remove, replace-one or zero-out; the sampling says it otherwise")
]
PLAIN = ("noise_multiplier", "sampling_rate", "steps")
SHAPES: dict[type, tuple[str, ...]] = {
    DPSGD: PLAIN,
    BandMF: (*PLAIN, "bands"),
    FixedOrder: ("noise_multiplier", "epochs", "steps"),
    RandomAllocation: ("noise_multiplier", "batches", "epochs"),
}
"""The names of what tells runs of one kind from each other."""
MORE = ("group", "truncated_batch_size", "dataset_size")


def runs(
    noise_multipliers: Sequence[float],
    *,
    sampling_rates: Sequence[float] = (),
    steps: Sequence[int] = (),
    batch_sizes: Sequence[int] = (),
    epochs: Sequence[float] = (),
    batches: Sequence[int] = (),
    bands: Sequence[int] = (),
    order: str | None = None,
    sampling: str = "poisson",
    adjacency: str | None = None,
    unit: str = "record",
    **more: Any,
) -> list[Run]:
    """Every run that the options describe; what they leave open or say twice is refused by the run itself.

    Examples:
        >>> [run.steps for run in runs([1.0], batch_sizes=[10, 20], epochs=[3], dataset_size=100)]
        [30, 15]
    """
    side = None if adjacency is None else check_adjacency(adjacency)
    rates = [{"sampling_rate": q} for q in sampling_rates] + [{"batch_size": size} for size in batch_sizes]
    lengths = [{"steps": count} for count in steps] + [{"epochs": k} for k in epochs]
    if sampling_rates and batch_sizes:
        raise TypeError("give --sampling-rate or --batch-size, not both.")
    if steps and epochs:
        raise TypeError("give --steps or --epochs, not both.")
    kinds: list[dict[str, Any]] = [{"batches": count} for count in batches] + [{"bands": count} for count in bands]
    told = {"sampling": sampling, "adjacency": side, "unit": unit, "order": order} | more
    if batches and bands:
        raise TypeError("give --batches or --bands, not both.")
    return [
        replace(described_run(**rate, **length, **kind, **told), noise_multiplier=noise)
        for noise, rate, length, kind in product(noise_multipliers, rates or [{}], lengths or [{}], kinds or [{}])
    ]


def columns(run: Run) -> tuple[str, ...]:
    """The names of what tells runs of one command from each other."""
    return SHAPES[type(run)]


def said(run: Run) -> dict[str, Any]:
    """A run as plain values; what is as usual is left out.

    Examples:
        >>> said(RandomAllocation(1.5, 25, 4))
        {'noise_multiplier': 1.5, 'batches': 25, 'epochs': 4}
    """
    values = {name: getattr(run, name) for name in columns(run)}
    if not isinstance(run, DPSGD):
        return values | ({"order": "fixed"} if isinstance(run, FixedOrder) else {})
    more = {name: getattr(run, name) for name in MORE if getattr(run, name) not in (None, 1)}
    return values | {"sampling": run.sampling} | more
