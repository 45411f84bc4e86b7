"""What an event releases, in words, for whoever is to approve it."""

from collections.abc import Mapping
from typing import Any

from psidp.ledger.actor import UNASKED
from psidp.ledger.approvals import what_of
from psidp.ledger.entry import canonical

__all__ = ["asked_in_words", "event_in_words"]

LONGEST = 2_000
"""Letters that are shown."""

UNSAID = "not said: psi alone was declared, and what is released is whatever the request's purpose says"


def asked_in_words(request: Mapping[str, Any]) -> str:
    """What a request's entry asks to release; or that it holds a digest alone, as older ones do."""
    event = request.get("event")
    if event is None or what_of(event) != request["what"]:
        return f"not said: the request holds a digest alone, {request['what']}"
    return event_in_words(event)


def event_in_words(event: Mapping[str, Any]) -> str:
    """What an event releases.

    Examples:
        >>> event_in_words({"kind": "gaussian", "sensitivity": 1.0, "sigma": 2.0})
        'gaussian, sensitivity 1.0, sigma 2.0'
        >>> event_in_words({"kind": "guarantee", "question": "count; of /data/visits.csv"})
        'count; of /data/visits.csv'
    """
    if isinstance(event.get("question"), str):
        return _short(event["question"])
    said = {name: value for name, value in event.items() if name not in (*UNASKED, "kind")}
    if event.get("kind") == "guarantee" and said in ({}, {"mechanism": "gaussian"}):
        return UNSAID
    parts = (
        f"{name} {value if isinstance(value, int | float | str) else canonical(value)}" for name, value in said.items()
    )
    return _short(", ".join([str(event.get("kind")), *parts]))


def _short(words: str) -> str:
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}... (cut: it has {len(words):,} letters)"
