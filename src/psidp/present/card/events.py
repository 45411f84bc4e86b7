"""The events that a card accounts for: runs and guarantees as plain values, and what their certified curve says."""

import json
from functools import lru_cache
from typing import Any

from psidp.accounting import DPSGD, account
from psidp.accounting.upper import UpperEnds
from psidp.guarantee import Guarantee
from psidp.maths.sensitivity import Adjacency

__all__ = ["Event", "alone", "covering", "described", "parsed", "read", "upper_ends"]

Event = DPSGD | Guarantee
RUN = ("noise_multiplier", "sampling_rate", "steps", "sampling")
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
    """The run and its own chance to fail outright, where the events are one run and nothing else."""
    run, *others = events or (None,)
    failure = others[0].kappa if others and isinstance(others[0], Guarantee) and others[0].psi == 0.0 else 0.0
    return (run, failure) if isinstance(run, DPSGD) and len(others) == (failure > 0.0) else None


def described(events: tuple[Event, ...]) -> list[dict[str, Any]]:
    """The events as plain values; adjacency and unit are those of the card.

    Examples:
        >>> described((DPSGD(1.0, 0.5, 3), Guarantee(0.1)))[1]
        {'psi': 0.1, 'kappa': 0.0}
    """
    names = [RUN if isinstance(event, DPSGD) else PART for event in events]
    return [{name: getattr(event, name) for name in some} for event, some in zip(events, names, strict=True)]


def read(values: list[dict[str, Any]], adjacency: Adjacency | None, unit: str) -> tuple[Event, ...]:
    """The events that were described; without an adjacency, in that of the first run's sampling."""
    runs = [DPSGD(**value, adjacency=adjacency, unit=unit) for value in values if "steps" in value]
    side = adjacency or (runs[0].adjacency if runs else None) or "add-remove"
    rest = iter(runs)
    return tuple(next(rest) if "steps" in v else Guarantee(**v, adjacency=side, unit=unit) for v in values)


def parsed(text: str, adjacency: Adjacency | None, unit: str) -> tuple[Event, ...]:
    """The events in JSON that somebody typed."""
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    kinds = (set(RUN), set(RUN[:3]), set(PART), set(PART[:1]))
    if not (isinstance(values, list) and values and all(isinstance(v, dict) and set(v) in kinds for v in values)):
        raise ValueError(
            f"--events must be a JSON list of runs and guarantees, got {text[:40]!r}. Such as "
            '[{"noise_multiplier": 1, "sampling_rate": 0.01, "steps": 1000}, {"psi": 0.1}].'
        )
    return read(values, adjacency, unit)
