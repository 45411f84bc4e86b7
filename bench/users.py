"""Training that protects users: accuracy beside record level at equal psi, times of a step, and reading Parquet.

The people are those of examples/user_level.py, 1 to 1,000 records each. Learning rates are chosen for each way by
itself on other people; accuracy is that on a third set of people, every person counting alike.
"""

import importlib.util
from functools import cache
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

import psidp
from bench.timing import Report, interleave
from psidp.bridges.torch import Columns, ParquetRecords, PrivateStep, PrivateTrainer
from psidp.bridges.torch.step.user_places import lot
from psidp.bridges.torch.training.records import Records

USERS, STEPS, KAPPA = 1000, 150, 1e-10
LEARNING = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
SHARED = 16
"""Examples of a user that group privacy is asked for."""


def run(full: bool, seed: int) -> list[Report]:
    """Accuracy, at one psi or with --full at three; then times."""
    torch.set_num_threads(1)
    example = _example("user_level")
    levels = (0.1, 0.3, 1.0) if full else (1.0,)
    return [*(accuracy(example, psi, 5 if full else 2, seed) for psi in levels), times(example), reading()]


def accuracy(example: ModuleType, psi: float, runs: int, seed: int) -> Report:
    """Share that is read right by each way at the same psi."""
    private, other, public = (example.people(n, seed=seed + k, most=most) for k, n, most in PEOPLE)
    report = Report(f"{USERS} people with 1 to 1,000 records, psi {psi:g}, {STEPS} steps: accuracy")
    ways: dict[str, Any] = {"a record": lambda rate: _records(example, private, psi, rate)}
    for each in (1, 4, 16):
        ways[f"a user, {each} examples"] = lambda rate, each=each: _users(example, private, psi, rate, each)
    ways[f"a user, as a group of {SHARED} records"] = lambda rate: _groups(example, private, psi, rate)
    ways["nobody"] = lambda rate: _nobody(example, private, rate)
    for name, train in ways.items():
        best = max(LEARNING, key=lambda rate, train=train: example.right(train(rate), other))
        found = [100.0 * example.right(train(best), public) for _ in range(runs)]
        note = f"learning rate {best:g}; " + ", ".join(f"{value:.1f}" for value in found)
        report.add(f"protected: {name}", mean(found), f"%, standard deviation {stdev(found):.1f}", note=note)
    return report


PEOPLE = ((0, USERS, 1000), (1000, 300, 100), (2000, 300, 100))
"""Seed, number and most records: to train on, to choose learning rates with, to measure."""


def _fitted(example: ModuleType, data: Any, rate: float, **asked: Any) -> Any:
    model = example.Reader(1)
    wide = torch.cat([data.numbers, torch.zeros(len(data.numbers), 1)], 1)
    trainer = PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=rate), example.loss, (wide, data.doing), clip=1.0, steps=STEPS,
        **asked,
    )  # fmt: skip
    return model, trainer.fit()


def _records(example: ModuleType, data: Any, psi: float, rate: float) -> nn.Module:
    return _fitted(example, data, rate, sampling_rate=example.RATES["record"], psi=psi)[0]


def _users(example: ModuleType, data: Any, psi: float, rate: float, each: int) -> nn.Module:
    whose = {"users": data.owner, "examples_per_user": each}
    return _fitted(example, data, rate, sampling_rate=example.RATES["user"], psi=psi, **whose)[0]


def _groups(example: ModuleType, data: Any, psi: float, rate: float) -> nn.Module:
    """At most so many records of a user, chosen beforehand; the price of a group of so many is the promise."""
    q = 0.05
    kept = [np.flatnonzero(data.owner == user) for user in np.unique(data.owner)]
    at = np.concatenate([own[lot(len(own), SHARED)] for own in kept])
    noise = _group_noise(psi, q)
    fewer = example.People(data.numbers[at], data.doing[at], data.owner[at])
    model, training = _fitted(example, fewer, rate, sampling_rate=q, noise_multiplier=noise)
    assert training.group(SHARED).guarantee(KAPPA).psi <= psi
    return model


@cache
def _group_noise(psi: float, rate: float) -> float:
    """Noise with which a group has this psi; a little less, for draws that exceed their places."""
    return float(psidp.calibrate(psi=psi * 0.9999, kappa=KAPPA, sampling_rate=rate, steps=STEPS, group=SHARED))


def _nobody(example: ModuleType, data: Any, rate: float) -> nn.Module:
    """Users in batches as when they are protected, without noise."""
    model = example.Reader(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    rng, owned = np.random.default_rng(), [np.flatnonzero(data.owner == user) for user in np.unique(data.owner)]
    for _ in range(STEPS):
        drawn = [own[lot(len(own), 16)] for own in owned if rng.random() < example.RATES["user"]]
        at = np.concatenate(drawn)
        weights = torch.tensor(np.concatenate([np.full(len(own), 1 / len(own)) for own in drawn])).float()
        losses = nn.functional.cross_entropy(model.reading(data.numbers[at]), data.doing[at], reduction="none")
        optimizer.zero_grad()
        (losses @ weights / len(drawn)).backward()
        optimizer.step()
    return model


def times(example: ModuleType) -> Report:
    """A step for 64 users of 8 examples beside one of 512 examples, and beside a loop; what filling up costs."""
    torch.manual_seed(1)
    report = Report("CPU milliseconds of a step: 64 users with 8 examples each, MLP of 64-256-10, as drawn")
    model, loss = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 10)), nn.functional.cross_entropy
    inputs, targets, users = torch.randn(512, 64), torch.randint(0, 10, (512,)), np.arange(512) % 64
    how: dict[str, Any] = {"clip": 1.0, "noise_multiplier": 1.0, "slots": 0}
    alone = PrivateStep(model, loss, expected_batch=512, micro_batch=256, **how)
    together = PrivateStep(model, loss, expected_batch=64, micro_batch=32, examples_per_user=8, **how)

    def loop() -> None:
        for user in range(64):
            at = np.flatnonzero(users == user)
            torch.autograd.grad(loss(model(inputs[at]), targets[at]), list(model.parameters()))

    found = interleave({
        "examples, 512": lambda: alone(inputs, targets),
        "users, 64 of 8": lambda: together(inputs, targets, users),
        "users with 3 examples, 64 of 8 places": lambda: together(inputs[:192], targets[:192], users[:192]),
        "a loop over users, without clipping and noise": loop,
    })  # fmt: skip
    for name, seconds in found.items():
        report.add(name, 1e3 * seconds, "ms")
    counts = example.people(USERS, seed=1).records
    for each in (1, 4, 16, 64):
        taken = np.minimum(counts, each).sum()
        report.add(f"places over examples taken, people above, {each} examples", each * USERS / taken, "times")
    return report


def reading() -> Report:
    """A draw of 256 from 100,000 records of 64 floats, by the size of row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    report = Report("CPU milliseconds to read a draw of 256 from 100,000 records of 64 floats (26 MB)")
    rng = np.random.default_rng(1)
    values = rng.random((100_000, 64), dtype=np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), 64)
    table = pa.table({"x": column, "y": values[:, 0]})
    draws = iter([np.flatnonzero(rng.random(100_000) < 0.00256) for _ in range(1000)])
    with TemporaryDirectory() as folder:
        contenders = {}
        for size in (100, 1000, 10_000, 100_000):
            path = Path(folder) / f"{size}.parquet"
            pq.write_table(table, path, row_group_size=size)
            records = Records(ParquetRecords(path, cached=1), torch.device("cpu"), Columns(["x"], "y", size=64))
            contenders[f"row groups of {size:,}"] = lambda records=records: records.batch(next(draws))
        whole = Records((torch.from_numpy(values), torch.from_numpy(values[:, 0].copy())), torch.device("cpu"))
        contenders["tensors in memory"] = lambda: whole.batch(next(draws))
        for name, seconds in interleave(contenders, rounds=8).items():
            report.add(name, 1e3 * seconds, "ms")
    return report


def _example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent.parent / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
