"""Campaign: one property, round after round, each from a seed of its own; and several in turns until time is over."""

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random
from time import monotonic
from types import ModuleType

__all__ = ["NAMES", "SEEDS", "Campaign", "Finding", "Relapse", "turns"]

Relapse = Callable[[], AbstractContextManager[object]]
OTHERS = {"__init__", "__main__", "campaign"} | (set() if find_spec("torch") else {"models"})
"""Files here that are no campaign, or one of PyTorch where that is not installed."""
NAMES = sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem not in OTHERS)
SEEDS = 2**32
"""Seeds are below this, so that a person can type one."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A round whose property failed."""

    name: str
    seed: int
    error: Exception

    @property
    def command(self) -> str:
        """What repeats the round, and nothing else."""
        return f"./dev fuzz --only {self.name} --seed {self.seed}"

    def __str__(self) -> str:
        kind = "" if isinstance(self.error, AssertionError) else f"{type(self.error).__name__}: "
        last = traceback.extract_tb(self.error.__traceback__)[-1]
        where = f"{last.filename}:{last.lineno}"
        return f"{self.name} found, with seed {self.seed}: {kind}{self.error}\n  at {where}\n  again: {self.command}"


@dataclass(slots=True)
class Campaign:
    """Rounds of one property so far. Round i has seed `seed + i`; the first finding ends the campaign."""

    name: str
    about: str
    explore: Callable[[Random], None]
    seed: int
    relapses: Mapping[str, Relapse] = field(default_factory=dict)
    rounds: int = 0
    seconds: float = 0.0
    finding: Finding | None = None

    @classmethod
    def of(cls, module: ModuleType, seed: int) -> "Campaign":
        """The campaign that a module describes."""
        name = module.__name__.rpartition(".")[2]
        return cls(name, (module.__doc__ or "").split("\n")[0], module.explore, seed, module.RELAPSES)

    @classmethod
    def named(cls, name: str, seed: int) -> "Campaign":
        """The campaign in fuzz/NAME.py."""
        return cls.of(import_module(f"fuzz.{name}"), seed)

    def round(self) -> Finding | None:
        """One round more; what it finds."""
        seed, begun = (self.seed + self.rounds) % SEEDS, monotonic()
        try:
            self.explore(Random(seed))
        except Exception as error:
            self.finding = Finding(self.name, seed, error)
        self.rounds += 1
        self.seconds += monotonic() - begun
        return self.finding


def turns(campaigns: Iterable[Campaign], until: Callable[[], bool]) -> Iterator[Campaign]:
    """Campaigns, each before and after a round of it, the one that had the least time first, until time is over."""
    active = list(campaigns)
    while active and not until():
        campaign = min(active, key=lambda c: (c.seconds, c.rounds))
        yield campaign
        if campaign.round() is not None:
            active.remove(campaign)
        yield campaign
