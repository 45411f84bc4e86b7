"""Publishing one more period of a stream of a table, beside the engine's own GROUP BY unit, period, group."""

import datetime
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb

from bench.timing import Report, interleave
from psidp import Curator, Guarantee, Ledger, ask, audit
from psidp.mechanism.stream_plan import StreamPlan
from psidp.mechanism.stream_series import drawn
from psidp.strategies import Participation, Workload
from psidp.tables.stream import Stream

ROWS, UNITS, PERIODS, GROUPS = 10_000_000, 1_000_000, 365, 100
STREAMS, AUDITED = 10_000, 8
SINCE = datetime.date(2026, 1, 1)
MAKE = """
CREATE TABLE visits AS
SELECT (hash({seed} + 4 * i) % {units})::BIGINT AS u, (hash({seed} + 4 * i + 1) % {groups})::INTEGER AS g,
       (hash({seed} + 4 * i + 2) % 120000) / 1000.0::DOUBLE AS v,
       TIMESTAMP '2026-01-01' + INTERVAL (hash({seed} + 4 * i + 3) % {minutes}) MINUTE AS a
FROM range({rows}) t(i)
"""
CELLS = """
SELECT count(*), sum(n) FROM (SELECT u, date_diff('day', DATE '2026-01-01', a) AS p, g, count(*) AS n FROM visits
                              GROUP BY u, p, g)
"""
SUMS = CELLS.replace("count(*) AS n", "count(*) AS n, sum(v) AS s").replace("sum(n)", "sum(n), sum(s)")
CAPS = {
    "at most 4 days": {"at_most": 4},
    "every day counts": {"at_most": PERIODS},
    "one day of each month": {"each": "month"},
    "three days apart": {"apart": 3},
}
MEMORY = "4GB"


class Clock:
    """Whatever day it is asked to be."""

    day = SINCE

    def __call__(self) -> datetime.datetime:
        return datetime.datetime.combine(self.day, datetime.time(2), datetime.UTC)


def run(full: bool, seed: int) -> list[Report]:
    """Ten million rows, a million units, a year of days, a hundred groups."""
    with tempfile.TemporaryDirectory() as folder:
        return [_audited(), _published(Path(folder), 4 if full else 3, seed), _memory(folder, seed)]


def _audited() -> Report:
    """10,000 streams with exact noise on each of two neighbours, told apart by the best attack there is."""
    report = Report(f"{STREAMS:,} streams on two neighbours through psidp.audit, psi = 1, {AUDITED} periods")
    promised = StreamPlan.made([("total", 1, 1.0, 0)], Workload.together(AUDITED), Participation(2), 1.0)
    for noise in (1.0, 0.9):
        found = [_scores(promised, noise, unit) for unit in (1, 0)]
        result = audit(*found, claimed=Guarantee(1.0), method="ranks")
        report.say(f"sigma x {noise:g}", f"psi at least {result.psi:.3f}, p-value of psi = 1: {result.p_value:.3g}")
    return report


def _scores(promised: StreamPlan, noise: float, unit: int) -> list[float]:
    """Likelihood ratios of streams in which the unit is, or is not, in its two worst periods."""
    (part,) = promised.parts
    drawn_with = part._replace(sigma=noise * part.sigma)
    totals = [50 + t + (unit if t < 2 else 0) for t in range(AUDITED)]
    moved = [promised.strategy.newest([int(t < 2) for t in range(s)]) for s in range(1, AUDITED + 1)]
    return [
        sum(d * drawn(promised, drawn_with, totals[:s]) for s, d in enumerate(moved, 1)) / part.sigma**2
        for _ in range(STREAMS)
    ]


def made(folder: str, rows: int, seed: int) -> duckdb.DuckDBPyConnection:
    """So many rows of a year, ten for each unit, in DuckDB held to 4 GB."""
    connection = duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": folder})
    sizes = {"units": max(1, rows // 10), "groups": GROUPS, "minutes": PERIODS * 24 * 60, "rows": rows}
    connection.execute(MAKE.format(seed=seed * 10**10, **sizes))
    return connection


def opened(
    table: duckdb.DuckDBPyConnection, folder: Path, clock: Clock, name: str, *asks: ask.Ask, **cap: Any
) -> Stream:
    """A stream of its own ledger, opened."""
    clock.day = SINCE
    ledger = Ledger(folder / f"{name}.db", clock=clock)
    ledger.open("survey", psi=1.0, unit="patient", actor="Ann", purpose="a bench")
    curator = Curator(table, unit="u", ledger=ledger, budget="survey", name="visits")
    question = curator.stream(
        name, *(asks or (ask.count(),)), every="day", since=SINCE, periods=PERIODS, arrived="a", by="g",
        groups=range(GROUPS), cap=ask.cap(**cap),
    )  # fmt: skip
    return question.open(psi=0.5)


def _published(folder: Path, rounds: int, seed: int) -> Report:
    """CPU seconds of publishing one day near the end of the year, in turns with the engine's own query."""
    table, clock = made(str(folder), ROWS, seed), Clock()
    execute = table.execute
    streams = {words: opened(table, folder, clock, words, **cap) for words, cap in CAPS.items()}
    asks = (ask.count(), ask.sum("v", 0, 100))
    streams["count and sum, at most 4 days"] = opened(table, folder, clock, "sum", *asks, at_most=4)
    for stream in streams.values():
        _went_on(stream, PERIODS - rounds - 1)
    days = iter(range(PERIODS - rounds, PERIODS + 1))
    work = {"cells": lambda: execute(CELLS).fetchall(), "sums": lambda: execute(SUMS).fetchall()}
    work |= {"next day": lambda: _later(clock, next(days))}
    best = interleave(work | {words: s.publish for words, s in streams.items()}, rounds, seconds=1200.0)
    report = Report(
        f"one more day of a stream, DuckDB, {ROWS:,} rows, {UNITS:,} units, {PERIODS} days, {GROUPS} groups"
    )
    report.add("plain GROUP BY unit, period, group, count", best["cells"], "s CPU")
    report.add("the same with a sum", best["sums"], "s CPU")
    for words in streams:
        plain = best["sums" if "sum" in words else "cells"]
        report.add(f"publish, {words}", best[words], "s CPU")
        report.add("over GROUP BY unit, period, group", best[words] / plain, "x", at_most=3.0)
    return report


def _went_on(stream: Stream, days: int) -> None:
    """As if so many days were published, with nothing in them: what is measured is the next one."""
    nothing = [0] * (GROUPS * len(stream.plan().parts))
    stream._record._released.extend([nothing] * days)


def _later(clock: Clock, days: int) -> None:
    clock.day = SINCE + datetime.timedelta(days=days)


def _memory(folder: str, seed: int) -> Report:
    """Peak memory of a process that makes the table and publishes, beside one that makes it and groups it."""
    report = Report(f"peak memory, DuckDB held to {MEMORY}, the table ({ROWS:,} rows) included")
    for what in ("group", "publish"):
        code = f"import bench.streams as b; b.alone({folder!r}, {what!r}, {seed})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        limit = 5.0 if what == "publish" else None
        report.add(what, float(done.stdout.split()[-1]), "GB", at_most=limit, note="whole process")
    return report


def alone(folder: str, what: str, seed: int) -> None:
    """Print the peak memory of one piece of work, in GB."""
    table, clock = made(folder, ROWS, seed), Clock()
    if what == "group":
        table.execute(CELLS).fetchall()
    else:
        stream = opened(table, Path(folder), clock, "alone", at_most=4)
        _went_on(stream, PERIODS - 1)
        _later(clock, PERIODS)
        stream.publish()
    (peak,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    sys.stdout.write(f"{int(peak.split()[1]) / 2**20}\n")  # rusage would tell the parent's


__all__ = ["alone", "made", "opened", "run"]
