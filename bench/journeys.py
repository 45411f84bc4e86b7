"""What a call of each kind visits in psidp.

PYTHONPATH=src python bench/journeys.py table     prints, as JSON, the files in the order of the first visit, and how
                                                  many functions were called. Imports do not count.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import psidp

SRC = Path(psidp.__file__).parent
RARE = {"noise/rejection.py", "noise/table.py"}
"""Visited by chance: when a word of entropy does not decide a normal by itself."""


def conversion(_: Path) -> Callable[[], object]:
    """epsilon of a psi at a delta."""
    convert = psidp.epsilon_from_psi
    return lambda: convert(1.0, 1e-5)


def account(_: Path) -> Callable[[], object]:
    """What a DP-SGD run costs, as an interval."""
    price, run = psidp.account, psidp.DPSGD
    return lambda: price(run(1.0, 0.01, 1000)).epsilon(1e-5)


def array(_: Path) -> Callable[[], object]:
    """Five numbers with noise."""
    mechanism = psidp.GaussianMechanism
    return lambda: mechanism(1.0, 2.0).release([0.0] * 5)


def table(folder: Path) -> Callable[[], object]:
    """A count and a mean by group, from a Parquet file."""
    path = _visits(folder)
    return lambda: _released(psidp.Curator(path, "patient"))


def table_with_ledger(folder: Path) -> Callable[[], object]:
    """The same, paid for from a budget that is opened on the way."""
    path, keep, curator = _visits(folder), psidp.Ledger, psidp.Curator

    def run() -> object:
        ledger = keep(folder / "ledger.db")
        ledger.open("survey", psi=2.0, unit="patient", actor="Ann", purpose="the survey")
        return _released(curator(path, "patient", ledger=ledger, budget="survey"))

    return run


def step(_: Path) -> Callable[[], object]:
    """One private step: gradients clipped, added up, noised."""
    import torch
    from torch import nn

    from psidp.bridges.torch import PrivateStep

    model = nn.Linear(3, 1)

    def run() -> object:
        private = PrivateStep(model, nn.functional.mse_loss, clip=1.0, noise_multiplier=1.1, expected_batch=8)
        return private(torch.ones(5, 3), torch.zeros(5, 1))

    return run


JOURNEYS = {j.__name__: j for j in (conversion, account, array, table, table_with_ledger, step)}


def _visits(folder: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {
        "patient": [i % 300 for i in range(1000)],
        "ward": ["a", "b"] * 500,
        "cost": [float(i) for i in range(1000)],
    }
    pq.write_table(pa.table(rows), folder / "visits.parquet")
    psidp.Curator(folder / "visits.parquet", "patient").dispose()  # imports do not count
    return folder / "visits.parquet"


def _released(curator: "psidp.Curator") -> object:
    asks = psidp.ask.count(), psidp.ask.mean("cost", 0, 1000)
    return curator.release(*asks, by="ward", groups=["a", "b"], psi=1.0, contribution=4)


def measure(run: Callable[[], object]) -> tuple[list[str], int]:
    """The files that a call visits, in order, and the number of functions."""
    files: dict[str, None] = {}
    functions = set()

    def watch(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SRC)) and code.co_name != "<module>":
            files[Path(code.co_filename).relative_to(SRC).as_posix()] = None
            functions.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return [file for file in files if file not in RARE and file != "__init__.py"], len(functions)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(JOURNEYS[sys.argv[1]](Path(folder)))))
