"""A private sum and count by group beside the engine's own queries, and OpenDP's Polars path in its own environment."""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import duckdb

from bench.timing import Report, interleave
from psidp import Curator, ask

ROWS, UNITS, GROUPS = 10_000_000, 1_000_000, 1_000
MAKE = """
COPY (SELECT (hash({seed} + 3 * i) % {units})::BIGINT AS u, (hash({seed} + 3 * i + 1) % {groups})::INTEGER AS g,
             (hash({seed} + 3 * i + 2) % 120000) / 1000.0::DOUBLE AS v FROM range({rows}) t(i)) TO '{path}'
"""
PEER_QUESTIONS: dict[str, tuple[str, float | None]] = {
    "truncated": ("OpenDP, one random row of a unit in a group counts, its default", 1 / 15),
    "summed": ("OpenDP, all rows of a unit in a group count, as ours", None),
}
PEERS = Path(__file__).parents[1] / ".venv-peers" / "bin" / "python"


def run(full: bool, seed: int) -> list[Report]:
    """Ten million rows, a million units, a thousand groups; then how time grows with rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = _made(Path(folder), ROWS, seed)
        return [_against_the_engine(path, 5 if full else 3), _beside_opendp(path), _growth(Path(folder), full, seed)]


def _made(folder: Path, rows: int, seed: int) -> Path:
    """A Parquet file with so many rows, ten for each unit."""
    path = folder / f"visits_{rows}.parquet"
    with duckdb.connect() as database:
        database.execute(MAKE.format(seed=seed * 10**10, units=max(1, rows // 10), groups=GROUPS, rows=rows, path=path))
    return path


def _loaded(path: Path) -> duckdb.DuckDBPyConnection:
    """The file as the table "visits" of a DuckDB in memory."""
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE visits AS FROM '{path}'")
    return connection


def _against_the_engine(path: Path, rounds: int) -> Report:
    """CPU seconds of all threads, in turns."""
    table = _loaded(path)
    execute = table.execute
    cells = "SELECT u, g, sum(v) AS s, count(*) AS n FROM visits GROUP BY u, g"
    best = interleave(
        {
            "plain": lambda: execute("SELECT g, sum(v), count(*) FROM visits GROUP BY g").fetchall(),
            "cells": lambda: execute(f"SELECT sum(s), sum(n), count(*) FROM ({cells})").fetchall(),
            "ours": lambda: _released(table, "u", 3.0),
            "wide": lambda: _released(table, "u", 16.0),
            "tight": lambda: _released(table, "u", 1.0),
            "rows": lambda: _released(table, None, 1.0),
        },
        rounds,
        seconds=120.0,
    )
    report = Report(f"private sum and count by group, DuckDB, {ROWS:,} rows, {UNITS:,} units, {GROUPS:,} groups")
    report.add("plain GROUP BY group", best["plain"], "s CPU")
    report.add("plain GROUP BY unit, group", best["cells"], "s CPU")
    report.add("psidp, contribution 3", best["ours"], "s CPU", note="half of the units are shrunk")
    report.add("over GROUP BY unit, group", best["ours"] / best["cells"], "x", at_most=2.3)
    report.add("over plain GROUP BY group", best["ours"] / best["plain"], "x", at_most=60.0)
    report.add("contribution 16, nobody is shrunk", best["wide"] / best["cells"], "x", note="over GROUP BY unit, group")
    report.add("contribution 1, everybody is shrunk", best["tight"] / best["cells"], "x", note="likewise")
    report.add("every row its own unit, over plain", best["rows"] / best["plain"], "x", at_most=3.0)
    return report


def _released(
    table: duckdb.DuckDBPyConnection | Path, unit: str | None, contribution: float, memory: str = ""
) -> object:
    """One release, from question to answer, with DuckDB held to this memory."""
    curator = Curator(table, unit, name=None if isinstance(table, Path) else "visits")
    if memory:
        curator.source.engine.connection.execute(f"SET memory_limit = '{memory}'")
    asks = (ask.count(), ask.sum("v", 0, 100))
    return curator.ask(*asks, by="g", groups=range(GROUPS), contribution=contribution).release(psi=0.5)


def _beside_opendp(path: Path) -> Report:
    """The same question to OpenDP on Polars, in the peers' environment; CPU time of both, from file to answer."""
    report = Report("beside OpenDP on Polars, from Parquet to answer")
    ours, wall = _times(lambda: _released(path, "u", 3.0), 5)
    report.add("psidp on DuckDB", ours, "s CPU", note=f"{wall:.1f} s on the clock")
    python = PEERS if PEERS.exists() else Path(sys.executable)
    script = Path(__file__).with_name("curator_peers.py")
    done = subprocess.run([str(python), str(script), str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        report.say("OpenDP on Polars", f"did not run: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
        return report
    theirs = json.loads(done.stdout.splitlines()[-1])
    report.say("OpenDP on Polars", f"version {theirs['version']}; no L2 bound over groups, eight groups a unit instead")
    for name, (words, target) in PEER_QUESTIONS.items():
        found = theirs[name]
        report.add(words, found["seconds"], "s CPU", note=f"{found['wall']:.1f} s on the clock")
        report.add("psidp over this, clock", wall / found["wall"], "x", at_most=target)
        report.add("psidp over this, CPU", ours / found["seconds"], "x")
    return report


def _times(run: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Best CPU seconds and best seconds on the clock."""
    seen = []
    for _ in range(rounds):
        start, began = perf_counter(), process_time()
        run()
        seen.append((process_time() - began, perf_counter() - start))
    return min(cpu for cpu, _ in seen), min(wall for _, wall in seen)


def _growth(folder: Path, full: bool, seed: int) -> Report:
    """Seconds a million rows from Parquet on disk, with DuckDB held to 4 GB."""
    report = Report("growth with the number of rows, Parquet on disk, DuckDB held to 4 GB")
    first = 0.0
    for rows in (10**6, 10**7) + ((10**8,) if full else ()):
        path = _made(folder, rows, seed)
        best = interleave({"ours": lambda path=path: _released(path, "u", 3.0, "4GB")}, 2, seconds=600.0)["ours"]
        first = first or best / rows
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        report.add(f"{rows:,} rows", best / rows * 1e6, "s CPU a million", note=f"peak memory of the run {peak:.1f} GB")
        report.add("against a million rows", best / rows / first, "x a row", at_most=2.0)
    return report
