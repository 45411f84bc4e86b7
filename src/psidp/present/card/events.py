"""The events that a card accounts for: runs and guarantees as plain values, and what their certified curve says."""

import json
from functools import lru_cache
from typing import Any, cast

from psidp.accounting import DPSGD, BandMF, FixedOrder, RandomAllocation, account
from psidp.accounting.correlated import Event
from psidp.accounting.upper import UpperEnds
from psidp.guarantee import Guarantee
from psidp.maths.sensitivity import Adjacency
from psidp.present.formatting import up

__all__ = ["Event", "alone", "covering", "described", "in_words", "parsed", "read", "upper_ends"]

RUN = ("noise_multiplier", "sampling_rate", "steps", "sampling")
MORE = ("group", "truncated_batch_size", "dataset_size")
"""What only some runs have."""
OTHERWISE = ("batch_size", "epochs")
"""The other way to say sampling_rate and steps."""
SHAPES: dict[type, tuple[str, ...]] = {
    RandomAllocation: ("noise_multiplier", "batches", "epochs"),
    BandMF: ("noise_multiplier", "sampling_rate", "steps", "bands"),
    FixedOrder: ("noise_multiplier", "epochs", "steps", "order"),
}
"""What other runs have; a fixed order says so."""
PART = ("psi", "kappa")


@lru_cache(maxsize=64)
def upper_ends(events: tuple[Event, ...]) -> UpperEnds:
    """What the account of the events proves; computed once for all formats of a card."""
    return UpperEnds(account(events))


@lru_cache(maxsize=64)
def covering(events: tuple[Event, ...], kappa: float) -> tuple[Guarantee, float]:
    """The one psi that, with kappa, covers the account of the events, and how far it overstates the loss."""
    curve = account(events)
    return curve.guarantee(kappa), float(curve.regret(kappa).upper)


def alone(events: tuple[Event, ...]) -> tuple[DPSGD, float] | None:
    """The run and its own chance to fail outright, where the events are one plain run and nothing else."""
    run, *others = events or (None,)
    failure = others[0].kappa if others and isinstance(others[0], Guarantee) and others[0].psi == 0.0 else 0.0
    plain = isinstance(run, DPSGD) and run.group == 1 and run.truncated_batch_size is None
    return (run, failure) if isinstance(run, DPSGD) and plain and len(others) == (failure > 0.0) else None


def described(events: tuple[Event, ...]) -> list[dict[str, Any]]:
    """The events as plain values; adjacency and unit are those of the card.

    Examples:
        >>> described((DPSGD(1.0, 0.5, 3), Guarantee(0.1)))[1]
        {'psi': 0.1, 'kappa': 0.0}
    """
    return [_values(event) for event in events]


def _values(event: Event) -> dict[str, Any]:
    if isinstance(event, Guarantee):
        return {name: getattr(event, name) for name in PART}
    if not isinstance(event, DPSGD):
        return {name: "fixed" if name == "order" else getattr(event, name) for name in SHAPES[type(event)]}
    more = [name for name in MORE if getattr(event, name) not in (None, 1)]
    return {name: getattr(event, name) for name in (*RUN, *more)}


def in_words(event: Event) -> str:
    """An event as people say it.

    Examples:
        >>> in_words(RandomAllocation(1.5, 25, 4))
        'DP-SGD with random allocation: 4 epochs of 25 batches, noise multiplier 1.5'
        >>> in_words(DPSGD(1.0, 0.5, 3, group=2, unit="user"))
        'DP-SGD with poisson sampling: 3 steps at rate 0.5, noise multiplier 1, at most 2 records per user'
    """
    if isinstance(event, Guarantee):
        return f"a release with psi {up(event.psi, 6)}" + (f" and kappa {up(event.kappa)}" if event.kappa else "")
    noise = f"noise multiplier {event.noise_multiplier:.6g}"
    if isinstance(event, FixedOrder):
        epochs = "1 epoch" if event.epochs == 1 else f"{event.epochs:,} epochs"
        return f"correlated noise in a fixed order: {epochs}, {event.steps:,} steps, {noise}"
    if isinstance(event, BandMF):
        rate = f"{event.steps:,} steps at rate {event.sampling_rate:.6g}"
        return f"DP-SGD with correlated noise, cyclic poisson sampling: {event.bands} bands, {rate}, {noise}"
    if isinstance(event, RandomAllocation):
        epochs = "1 epoch" if event.epochs == 1 else f"{event.epochs:,} epochs"
        return f"DP-SGD with random allocation: {epochs} of {event.batches:,} batches, {noise}"
    shown = f"DP-SGD with {event.sampling} sampling: {event.steps:,} steps at rate {event.sampling_rate:.6g}, {noise}"
    if event.group > 1:
        own = event.unit == f"group of {event.group} records"  # the name that such a run gives itself
        shown += f", at most {event.group} records {'together' if own else f'per {event.unit}'}"
    if event.truncated_batch_size is not None:
        shown += f", batches of at most {event.truncated_batch_size:,} out of {event.dataset_size:,} records"
    return shown


def read(values: list[dict[str, Any]], adjacency: Adjacency | None, unit: str) -> tuple[Event, ...]:
    """The events that were described; without an adjacency, in that of the first run's sampling."""
    kinds = [_kind(set(v)) for v in values]
    pairs = [(kind, {n: w for n, w in v.items() if n != "order"}) for kind, v in zip(kinds, values, strict=True)]
    runs: list[Any] = [
        cast(Any, kind)(**v, adjacency=adjacency, unit=unit) for kind, v in pairs if kind is not Guarantee
    ]
    side = cast(Adjacency, adjacency or (runs[0].adjacency if runs else "add-remove"))
    unit = runs[0].unit if runs else unit
    rest = iter(runs)
    return tuple(Guarantee(**v, adjacency=side, unit=unit) if kind is Guarantee else next(rest) for kind, v in pairs)


def parsed(text: str, adjacency: Adjacency | None, unit: str) -> tuple[Event, ...]:
    """The events in JSON that somebody typed."""
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not (isinstance(values, list) and values and all(isinstance(v, dict) and _known(set(v)) for v in values)):
        raise ValueError(
            f"--events must be a JSON list of runs and guarantees, got {text[:40]!r}. Such as "
            '[{"noise_multiplier": 1, "sampling_rate": 0.01, "steps": 1000}, {"psi": 0.1}].'
        )
    return read(values, adjacency, unit)


def _kind(names: set[str]) -> type:
    """What an event with these names is."""
    if "noise_multiplier" not in names:
        return Guarantee
    marks = {"batches": RandomAllocation, "bands": BandMF, "order": FixedOrder}
    return next((kind for mark, kind in marks.items() if mark in names), DPSGD)


def _known(names: set[str]) -> bool:
    """Whether an event can have these names; a run says for itself what it lacks."""
    kind = _kind(names)
    if kind is RandomAllocation or kind is FixedOrder:
        return names <= set(SHAPES[kind])
    if kind is Guarantee:
        return {"psi"} <= names <= set(PART)
    rate, length = names & {"sampling_rate", "batch_size"}, names & {"steps", "epochs"}
    other = {*SHAPES[BandMF], "dataset_size"} if kind is BandMF else {*RUN, *MORE}
    return bool(rate and length and names <= {*other, *OTHERWISE})
