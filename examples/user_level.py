"""People with 1 to 1,000 records each: a model that protects a person, beside one that protects a record alone.

    pip install 'psidp[torch]'
    python examples/user_level.py

The table is made up: phones that tell from 16 numbers which of 6 things their owner is doing. Everybody does each of
them in a way of their own, and some carry their phone much more than others. A promise for a record says little to
whoever has a thousand of them; the promise for users is for all of a person's records at once. Some of the people are
canaries, each put into the table by a fair coin: their records all fall on a weight that nobody else touches, so that
the trained weights tell as much as a model can of who was there, and `audit_one_run` makes a lower bound on psi of it.
"""

import argparse
import time
from dataclasses import dataclass
from secrets import randbits

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import psidp
from psidp.bridges.torch import PrivateTrainer
from psidp.bridges.torch.training.training import Training

NUMBERS, DOINGS = 16, 6
PSI, EACH, STEPS = 2.0, 16, 150
RATES = {"user": 0.1, "record": 0.01}
LEARNING = {"user": 1.0, "record": 1.0}
BRIGHT = 20.0


@dataclass
class People:
    """Records, what was done in each, and whose it is."""

    numbers: torch.Tensor
    doing: torch.Tensor
    owner: np.ndarray

    @property
    def records(self) -> np.ndarray:
        """How many each has."""
        return np.unique(self.owner, return_counts=True)[1]


def people(count: int, seed: int, most: int = 1000) -> People:
    """So many people with 1 to `most` records each, as many with 1 to 10 as with 100 to 1,000."""
    ways = np.random.default_rng(0).normal(size=(DOINGS, NUMBERS))
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(count), np.rint(np.geomspace(1, most, count)).astype(int))
    habits = rng.dirichlet(np.ones(DOINGS), size=count)
    own = 0.7 * rng.normal(size=(count, DOINGS, NUMBERS))
    doing = (rng.random(len(owner))[:, None] > habits.cumsum(1)[owner]).sum(1).clip(max=DOINGS - 1)
    numbers = ways[doing] + own[owner, doing] + 1.5 * rng.normal(size=(len(owner), NUMBERS))
    return People(torch.tensor(numbers, dtype=torch.float32), torch.tensor(doing), owner)


class Reader(nn.Module):
    """Which of the doings it is, and beside it one weight for each canary."""

    def __init__(self, canaries: int) -> None:
        super().__init__()
        self.reading = nn.Sequential(nn.Linear(NUMBERS, 32), nn.Tanh(), nn.Linear(32, DOINGS))
        self.canary = nn.Linear(canaries, 1, bias=False)
        nn.init.zeros_(self.canary.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A score for each doing, and the canaries' own."""
        return torch.cat([self.reading(x[:, :NUMBERS]), self.canary(x[:, NUMBERS:])], dim=1)


def loss(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross entropy; for a canary, target 6, its own score."""
    doing = nn.functional.cross_entropy(scores[:, :DOINGS], target % DOINGS)
    return torch.where(target == DOINGS, -scores[:, DOINGS], doing).sum()


def with_canaries(known: People, included: np.ndarray) -> People:
    """The people, and of the canaries those that are included, with 1 to 50 records each."""
    counts = np.where(included, 1 + np.arange(len(included)) % 50, 0)
    who = np.repeat(np.arange(len(included)), counts)
    wide = torch.cat([known.numbers, torch.zeros(len(known.owner), len(included))], dim=1)
    own = torch.cat([torch.zeros(len(who), NUMBERS), BRIGHT * torch.eye(len(included))[who]], dim=1)
    doing = torch.cat([known.doing, torch.full((len(who),), DOINGS)])
    return People(torch.cat([wide, own]), doing, np.concatenate([known.owner, known.owner.max() + 1 + who]))


def right(model: Reader, known: People) -> float:
    """Share that is read right, every person counting alike."""
    with torch.no_grad():
        hits = (model.reading(known.numbers).argmax(1) == known.doing).double().numpy()
    return float(np.mean(np.bincount(known.owner, hits) / known.records))


def trained(
    unit: str, data: People, psi: float, steps: int, count: int, *, each: int = EACH, canaries: int = 1
) -> tuple[Reader, Training]:
    """A model at this psi for one user, or for one record, and what it costs."""
    model, rate = Reader(canaries), RATES[unit]
    users = {"users": data.owner, "examples_per_user": each, "expected_batch": rate * count} if unit == "user" else {}
    trainer = PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=LEARNING[unit]), loss, (data.numbers, data.doing),
        sampling_rate=rate, clip=1.0, steps=steps, psi=psi, **users,
    )  # fmt: skip
    return model, trainer.fit()


def main(count: int = 1000, psi: float = PSI, steps: int = STEPS, canaries: int = 300) -> dict[str, float]:
    """Train for users, with an audit, and for records; print both and return the accuracies."""
    torch.set_num_threads(1)
    console = Console()
    private, public = people(count, seed=1), people(300, seed=2, most=100)
    console.print(f"{count} people with {private.records.min()} to {private.records.max()} records each.")
    included = np.array([bool(randbits(1)) for _ in range(canaries)])
    table, found = Table("protected", "psi promised", "psi audited, at least", "accuracy"), {}
    for unit in ("user", "record"):
        there = included if unit == "user" else np.zeros(1, bool)
        data = with_canaries(private, there)
        model, training = trained(unit, data, psi, steps, count + canaries, canaries=len(there))
        audited = ""
        if unit == "user":
            scores = model.canary.weight.detach().reshape(-1).numpy()
            audit = psidp.audit_one_run(included, scores, claimed=training.guarantee)
            audited = f"{audit.psi:.3f}"
            console.print(psidp.card(training, title="What phones know", audit=audit).scope.contribution_bound + ".")
            if audit.refuted:
                raise SystemExit(f"the promise psi = {psi} is broken: the audit proves {audit.psi}.")
        found[unit] = right(model, public)
        table.add_row(f"one {unit}", f"{training.psi:.4f}", audited, f"{found[unit]:.1%}")
    console.print(table)
    return found


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="privacy of users beside privacy of records")
    asked.add_argument("--psi", type=float, default=PSI, help="what is promised to one of them")
    main(psi=asked.parse_args().psi)
    print(f"CPU time {time.process_time():.0f} s")
