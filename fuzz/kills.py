"""A process killed at any line, statement or moment loses no spend, pays nothing twice and leaves no secret behind.

A round kills one scene at lines a fixed distance apart, from a random first line; the suite kills at a fixed sample.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from fuzz.campaign import Relapse
from postgres import Server, why_no_server
from scripts import script

__all__ = ["RELAPSES", "explore"]

RELAPSES: dict[str, Relapse] = {}
"""None: the scenes run in processes of their own, where nothing is patched."""


def explore(random: Random) -> None:
    """One scene, on SQLite, or on PostgreSQL where it can be started."""
    scene = random.choice(SCENES)
    if random.random() < 0.25 and not why_no_server():
        with Server() as server:
            scene(random, lambda name: server.place(name))
    else:
        with TemporaryDirectory() as folder:
            scene(random, lambda name: f"{folder}/{name}.db")


def _spends(random: Random, place: Callable[[str], str]) -> None:
    """Spends killed at random moments."""
    outcome = script("ledger/crash.py", "random", place("spends"), 40, random.randrange(2**32))
    assert outcome["spent"] >= outcome["noises"], f"numbers left that nobody paid for: {outcome}"


def _statements(random: Random, place: Callable[[str], str]) -> None:
    """A ledger made, opened and spent from, killed between statements; the script checks what is left."""
    with TemporaryDirectory() as folder:
        script("ledger/crash.py", "every", f"{folder}/NUMBER.db", 10, random.randrange(10))


def _approvals(random: Random, place: Callable[[str], str]) -> None:
    """A request, its approval and its spend, killed between statements; the script checks what is left."""
    with TemporaryDirectory() as folder:
        script("ledger/approvals.py", "every", f"{folder}/NUMBER.db", 10, random.randrange(10))


def _counter(random: Random, place: Callable[[str], str]) -> None:
    """A counter's two periods."""
    _published(script("mechanism/stream_kills.py", place("counter"), 30, random.randrange(1, 31)))


def _stream(random: Random, place: Callable[[str], str]) -> None:
    """Two periods of a table's stream."""
    _published(script("tables/stream_kills.py", place("stream"), 25, random.randrange(1, 26)))


def _published(outcome: dict[str, Any]) -> None:
    assert (outcome["changed"], outcome["twice"]) == (0, 0), f"published or paid for twice: {outcome}"


def _training(random: Random, place: Callable[[str], str]) -> None:
    """A step of a training with correlated noise."""
    with TemporaryDirectory() as folder:
        order = random.choice(("sampled", "fixed"))
        outcome = script("bridges/training_kills.py", Path(folder), order, 400, random.randrange(1, 401))
    assert (outcome["leaks"], outcome["unpaid"]) == (0, 0), f"a secret in a file, or steps without a price: {outcome}"
    assert outcome["lost"] <= outcome["kills"], f"a kill lost more than one step: {outcome}"
    assert outcome["most"] <= 1.0, f"neighbours are further apart than the bound: {outcome}"


SCENES = (_spends, _statements, _approvals, _counter, _stream, _training)
