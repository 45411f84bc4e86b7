"""Pieces of work by calls of version 0.2, for speeds and journeys. Frozen.

Each is a function of a folder, which has the files of `files`, and gives what does the work once: everything that is
done before (imports, opening a ledger) does not count.
"""

import contextlib
import datetime
import io
import sys
import tempfile
from collections.abc import Callable
from itertools import count as counter
from pathlib import Path
from typing import Any

import numpy as np

import psidp
from psidp import ask

__all__ = ["WORK"]

Work = Callable[[], object]
SETTING = (1.1, 256 / 60000, 14062)
"""Noise multiplier, sampling rate and steps."""


# accounting


def epsilon(_: Path) -> Work:
    """epsilon of a DP-SGD run, both directions, its curve once."""
    curve = psidp.account(psidp.DPSGD(*SETTING))
    return lambda: curve.epsilon(1e-5)


def account(_: Path) -> Work:
    """epsilon of a DP-SGD run from the beginning."""
    return lambda: psidp.account(psidp.DPSGD(*SETTING)).epsilon(1e-5)


def calibrate(_: Path) -> Work:
    """Noise of a DP-SGD run for (epsilon, delta)."""
    return lambda: psidp.calibrate(epsilon=2.0, delta=1e-5, sampling_rate=SETTING[1], steps=SETTING[2])


def guarantee(_: Path) -> Work:
    """psi of a DP-SGD run except for kappa."""
    curve = psidp.account(psidp.DPSGD(*SETTING))
    return lambda: curve.guarantee(1e-10)


def schedule(_: Path) -> Work:
    """epsilon of fifty different runs together."""
    curve = psidp.account([psidp.DPSGD(1.0 + 0.02 * i, 0.01, 20) for i in range(50)])
    return lambda: curve.epsilon(1e-5)


# conversions


def one_epsilon(_: Path) -> Work:
    """epsilon from psi, one number."""
    convert = psidp.epsilon_from_psi
    return lambda: convert(1.0, 1e-5)


def one_psi(_: Path) -> Work:
    """psi from (epsilon, delta), one number."""
    convert = psidp.psi_from_epsilon_delta
    return lambda: convert(1.0, 1e-5)


def one_guarantee(_: Path) -> Work:
    """A guarantee from (epsilon, delta)."""
    return lambda: psidp.Guarantee.gaussian(epsilon=1.0, delta=1e-6)


def many_epsilons(_: Path) -> Work:
    """epsilon from psi, 20,000 numbers."""
    convert, psi = psidp.epsilon_from_psi, np.linspace(0.01, 5.0, 20_000)
    return lambda: convert(psi, 1e-5)


# noise


def floats(_: Path) -> Work:
    """A release of a million floats."""
    x = np.linspace(-1e3, 1e3, 1_000_000)
    return lambda: psidp.GaussianMechanism(1.0, 1.3).release(x)


def whole_numbers(_: Path) -> Work:
    """A release of a million integers as integers."""
    x = np.arange(1_000_000)
    return lambda: psidp.GaussianMechanism(1.0, 1.3).release(x, integers=True)


def one_number(_: Path) -> Work:
    """A release of one float."""
    mechanism = psidp.GaussianMechanism(1.0, 1.3)
    return lambda: mechanism.release(12.5)


def five_numbers(_: Path) -> Work:
    """A release of five floats, the mechanism included."""
    return lambda: psidp.GaussianMechanism(1.0, 2.0).release([0.0] * 5)


# tables: count and mean by ward of a small file, sums of a large one


def _table(curator: Any, **more: Any) -> object:
    asks = ask.count(), ask.mean("cost", 0, 1000)
    return curator.release(*asks, by="ward", groups=["a", "b"], psi=0.01, contribution=4, **more)


def table(folder: Path) -> Work:
    """A count and a mean by ward, from a Parquet file of 1,000 rows, opened anew."""

    def run() -> None:
        with psidp.Curator(folder / "visits.parquet", "patient") as curator:
            _table(curator)

    return run


def table_with_ledger(folder: Path) -> Work:
    """The same, paid from a budget."""
    ledger, number = _ledger(folder, "patient"), counter()

    def run() -> None:
        with psidp.Curator(folder / "visits.parquet", "patient", ledger=ledger, budget="survey") as curator:
            _table(curator, retry_key=str(next(number)))

    return run


def command_line(folder: Path) -> Work:
    """The same for epsilon and delta, paid from a budget, by the command line, in this process."""
    from psidp.cli import main

    ledger, number = _budget(folder, "patient"), counter()
    words = f"psidp release table {folder / 'visits.parquet'} --unit-column patient --count --mean cost:0:1000 "
    words += f"--by ward --groups a,b --contribution 4 --epsilon 0.1 --delta 1e-6 --ledger {ledger} --budget survey"

    def run() -> None:
        sys.argv = [*words.split(), "--retry-key", str(next(number))]
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), contextlib.suppress(SystemExit):
            main.main()
        if "It cost" not in said.getvalue():
            raise RuntimeError(said.getvalue())

    return run


def _large(folder: Path) -> Any:
    return psidp.Curator(folder / "million.parquet", "u")


def large_table(folder: Path) -> Work:
    """A count and a sum by 1,000 groups, a million rows of 100,000 units."""
    curator, asks = _large(folder), (ask.count(), ask.sum("v", 0, 100))
    return lambda: curator.release(*asks, by="g", groups=range(1000), psi=0.5, contribution=3)


def group_by(folder: Path) -> Work:
    """DuckDB's own sum and count over GROUP BY unit, group, of the same file."""
    import duckdb

    database = duckdb.connect()
    cells = f"SELECT u, g, sum(v) AS s, count(*) AS n FROM '{folder / 'million.parquet'}' GROUP BY u, g"
    return lambda: database.execute(f"SELECT sum(s), sum(n), count(*) FROM ({cells})").fetchall()


def large_quantiles(folder: Path) -> Work:
    """Quantiles by group, a million rows."""
    curator, asked = _large(folder), ask.quantiles("v", range(0, 121, 5))
    return lambda: curator.release(asked, by="h", groups=range(20), psi=0.5, contribution=3)


def large_where(folder: Path) -> Work:
    """A mean under a condition, contribution "auto", a million rows."""
    curator, asked = _large(folder), ask.mean("v", 0, 100)
    return lambda: curator.release(asked, by="h", groups=range(20), psi=0.5, contribution="auto", where="v > 10")


def private_groups(folder: Path) -> Work:
    """A count by groups that noise chooses, a million rows."""
    curator, groups = _large(folder), psidp.PrivateGroups(1e-6, 20)
    return lambda: curator.release(ask.count(), by="g", groups=groups, psi=0.5, contribution=3)


# cubes and streams


def cube(folder: Path) -> Work:
    """A cube of two columns, and one of its tables, from a Parquet file of 1,000 rows, opened anew."""

    def run() -> None:
        with psidp.Curator(folder / "visits.parquet", "patient") as curator:
            made = curator.cube({"ward": ["a", "b"], "month": range(1, 13)}, ask.up_to(2), psi=0.5, contribution=4)
            made.table("ward", "month")

    return run


def large_cube(folder: Path) -> Work:
    """All tables of up to three columns, a million rows."""
    curator, columns = _large(folder), {"h": range(20), "a": range(7), "b": range(5)}
    return lambda: curator.cube(columns, ask.up_to(3), psi=0.5, contribution=8)


class Clock:
    """A day later each time that it is told."""

    def __init__(self) -> None:
        self.now = datetime.datetime(2026, 1, 5, 3, tzinfo=datetime.UTC)

    def __call__(self) -> datetime.datetime:
        return self.now

    def later(self) -> None:
        """The next day."""
        self.now += datetime.timedelta(days=1)


def _stream(path: Path, unit: str, column: str, groups: Any) -> Work:
    clock = Clock()
    curator = psidp.Curator(path, unit, ledger=_ledger(path.parent, unit, clock=clock), budget="survey")
    terms = {"every": "day", "since": "2026-01-05", "periods": 1000, "psi": 0.5, "arrived": "day", "at_most": 4}
    stream = curator.stream("visits", ask.count(), by=column, groups=groups, **terms).open()

    def run() -> None:
        clock.later()
        assert len(stream.publish()) == len(groups)

    return run


def stream_period(folder: Path) -> Work:
    """The next day of a stream by ward, 1,000 rows."""
    return _stream(folder / "visits.parquet", "patient", "ward", ["a", "b"])


def large_stream_period(folder: Path) -> Work:
    """The next day of a stream by 20 groups, a million rows."""
    return _stream(folder / "million.parquet", "u", "h", range(20))


# ledger


def _budget(folder: Path, unit: str, **terms: Any) -> Path:
    """A ledger's file with a budget in it."""
    path = Path(tempfile.mkdtemp(dir=folder)) / "ledger.db"
    with psidp.Ledger(path, **terms) as ledger:
        ledger.open("survey", psi=1000.0, unit=unit, actor="Ann", purpose="what is timed")
    return path


def _ledger(folder: Path, unit: str, **terms: Any) -> psidp.Ledger:
    return psidp.Ledger(_budget(folder, unit, **terms), **terms)


def spend(folder: Path) -> Work:
    """A durable spend on SQLite."""
    ledger, price = _ledger(folder, "record"), psidp.Guarantee(0.001)

    def run() -> None:
        with ledger.spend("survey", price, purpose="a spend"):
            pass

    return run


# training


def _model(kind: str) -> tuple[Any, Any, Any]:
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(1)
    labels = torch.randint(0, 10, (256,))
    if kind == "MLP":
        layers = [nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 80), nn.ReLU(), nn.Linear(80, 10)]
        return nn.Sequential(*layers), torch.randn(256, 64), labels
    layers = [nn.Conv2d(1, 16, 5, 2, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, 1, 1), nn.ReLU()]
    layers += [nn.MaxPool2d(2), nn.Flatten(), nn.Linear(288, 56), nn.ReLU(), nn.Linear(56, 10)]
    return nn.Sequential(*layers), torch.randn(256, 1, 28, 28), labels


def _steps(kind: str) -> Work:
    import torch
    from torch.nn.functional import cross_entropy

    from psidp.bridges.torch import PrivateStep

    model, inputs, labels = _model(kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = PrivateStep(model, cross_entropy, clip=1.0, noise_multiplier=1.0, expected_batch=256)

    def run() -> None:
        for _ in range(10):
            step(inputs, labels)
            optimizer.step()

    return run


def mlp_steps(_: Path) -> Work:
    """Ten private steps of an MLP, 256 examples."""
    return _steps("MLP")


def cnn_steps(_: Path) -> Work:
    """Ten private steps of a CNN, 256 examples."""
    return _steps("CNN")


def training(_: Path) -> Work:
    """A trainer of an MLP, made and run for ten steps of 64 examples of 256."""
    import torch
    from torch.nn.functional import cross_entropy

    from psidp.bridges.torch import PrivateTrainer

    model, inputs, labels = _model("MLP")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    terms = {"sampling_rate": 0.25, "clip": 1.0, "noise_multiplier": 1.0, "steps": 10}
    return lambda: PrivateTrainer(model, optimizer, cross_entropy, (inputs, labels), **terms).fit()


WORK = {
    work.__name__: work
    for work in (
        epsilon, account, calibrate, guarantee, schedule, one_epsilon, one_psi, one_guarantee, many_epsilons, floats,
        whole_numbers, one_number, five_numbers, table, table_with_ledger, command_line, large_table, group_by,
        large_quantiles, large_where, private_groups, cube, large_cube, stream_period, large_stream_period, spend,
        mlp_steps, cnn_steps, training,
    )
}  # fmt: skip
