"""dp_accounting: its DpEvents as psidp's events, and back."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from psidp.accounting import DPSGD, BandMF, FixedOrder
from psidp.errors import MissingExtraError
from psidp.guarantee import Guarantee

__all__ = ["from_dp_event", "to_dp_event"]


def from_dp_event(event: Any) -> list[DPSGD | Guarantee]:
    """The events psidp can account for, for add-remove neighbours; anything else is refused by its name.

    Known: GaussianDpEvent, PoissonSampledDpEvent of one, SelfComposedDpEvent, ComposedDpEvent, NoOpDpEvent.
    """
    return [made for inner, rate, count in _flat(event, 1) for made in _made(inner, rate, count)]


Run = DPSGD | BandMF | FixedOrder


def to_dp_event(events: Run | Guarantee | Iterable[Run | Guarantee]) -> Any:
    """A DpEvent for Poisson-sampled runs, runs with correlated noise and Guarantees with kappa = 0.

    A DpEvent has no adjacency of its own: where a run's is "zero-out", NeighboringRelation.REPLACE_SPECIAL is meant.
    """
    given = [events] if isinstance(events, Run | Guarantee) else list(events)
    series = [_as_add_remove(event) for event in given]
    for event in series:
        _refuse_what_has_none(event)
    library = _library()
    made = []
    for event in series:
        if isinstance(event, Guarantee):
            made.append(library.GaussianDpEvent(1.0 / event.psi))
        else:
            step = library.PoissonSampledDpEvent(event.sampling_rate, library.GaussianDpEvent(event.noise_multiplier))
            made.append(library.SelfComposedDpEvent(step, event.steps))
    return made[0] if len(made) == 1 else library.ComposedDpEvent(made)


def _as_add_remove(event: Any) -> Any:
    """A run with correlated noise as the DPSGD whose price it has; zero-out, which costs the same, as add-remove."""
    if isinstance(event, FixedOrder):
        return Guarantee(event.psi) if event.adjacency == "zero-out" else event
    run = event.dpsgd if isinstance(event, BandMF) else event
    return replace(run, adjacency="add-remove") if isinstance(run, DPSGD) and run.adjacency == "zero-out" else run


def _refuse_what_has_none(event: object) -> None:
    """Refuse events that dp_accounting has not, or accounts for in another way."""
    if isinstance(event, Guarantee):
        if not (event.kappa == 0.0 and event.psi > 0.0):
            raise ValueError(f"only a Guarantee with psi > 0 and kappa = 0 is a DpEvent, got {event!r}.")
    elif not _plain(event):
        raise ValueError(
            'only sampling="poisson", add-remove, of single records and whole batches, has a DpEvent of the same '
            "meaning: dp_accounting states the noise of a batch drawn without replacement relative to another "
            "sensitivity, and has no event for the others, or one with another account."
        )


def _plain(run: object) -> bool:
    """Whether a run is Poisson-sampled, add-remove, of single records and whole batches."""
    if not (isinstance(run, DPSGD) and run.sampling == "poisson" and run.adjacency == "add-remove"):
        return False
    return run.group == 1 and run.truncated_batch_size is None


def _library() -> Any:
    try:
        import dp_accounting
    except ImportError as missing:
        raise MissingExtraError("dp-accounting", "dp-accounting") from missing
    return dp_accounting


def _flat(event: Any, count: int) -> list[tuple[Any, float | None, int]]:
    """(Gaussian event, sampling rate or None, how often), in order."""
    library = _library()
    if isinstance(event, library.NoOpDpEvent):
        return []
    if isinstance(event, library.ComposedDpEvent):
        return [row for part in event.events for row in _flat(part, count)]
    if isinstance(event, library.SelfComposedDpEvent):
        return _flat(event.event, count * event.count) if event.count else []
    if isinstance(event, library.GaussianDpEvent):
        return [(event, None, count)]
    if isinstance(event, library.PoissonSampledDpEvent):
        inner = _flat(event.event, 1)
        if len(inner) == 1 and inner[0][1] is None and inner[0][2] == 1:
            return [(inner[0][0], event.sampling_probability, count)]
        raise ValueError("PoissonSampledDpEvent must hold one GaussianDpEvent: a sampled series has no known account.")
    raise ValueError(f"{type(event).__name__} has no account in psidp.")


def _made(event: Any, rate: float | None, count: int) -> list[DPSGD | Guarantee]:
    """One Gaussian event as psidp's: unsampled ones as a run of rate 1, so that their number costs nothing."""
    return [DPSGD(event.noise_multiplier, 1.0 if rate is None else rate, count)]
