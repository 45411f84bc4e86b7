"""./dev bench --against 0.2: speeds of this version beside those of 0.2, in turns, as ratios.

Each version has a process of its own, and they never work at the same time. What counts is CPU time of all threads and
of processes that were started. A row is worked on in turns until it had its seconds; its ratio is the median of the
ratios of neighbouring turns, so that a machine that gets slower meanwhile hurts both alike.
"""

import sys
import tempfile
from contextlib import ExitStack
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from statistics import median

import duckdb
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bench.since_0_2 import environment
from bench.since_0_2.process import Process

__all__ = ["ROWS", "files", "libraries", "run"]

ROWS = {
    "accounting": ("epsilon", "account", "calibrate", "guarantee", "schedule"),
    "conversions": ("one_epsilon", "one_psi", "one_guarantee", "many_epsilons"),
    "noise": ("floats", "whole_numbers", "one_number", "five_numbers"),
    "curator": ("table", "table_with_ledger", "command_line", "large_table", "group_by", "large_quantiles",
                "large_where", "private_groups"),
    "cube": ("cube", "large_cube"),
    "streams": ("stream_period", "large_stream_period"),
    "ledger": ("spend",),
    "training": ("mlp_steps", "cnn_steps", "training"),
}  # fmt: skip
LEAST_TURN = 0.03
"""Seconds that one turn takes at least."""

TURNS = (5, 60)

SMALL = """
COPY (SELECT i % 300 AS patient, CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END AS ward, i::DOUBLE AS cost,
             i % 12 + 1 AS month, TIMESTAMP '2026-01-05' + INTERVAL (i) HOUR AS day FROM range(1000) t(i)) TO '{path}'
"""
LARGE = """
COPY (SELECT (hash(5 * i) % 100000)::BIGINT AS u, (hash(5 * i + 1) % 1000)::INTEGER AS g,
             (hash(5 * i + 2) % 120000) / 1000.0::DOUBLE AS v, (hash(5 * i + 1) % 20)::INTEGER AS h,
             (hash(5 * i + 3) % 7)::INTEGER AS a, (hash(5 * i + 4) % 5)::INTEGER AS b,
             TIMESTAMP '2026-01-05' + INTERVAL (hash(5 * i + 3) % 525600) MINUTE AS day
      FROM range(1000000) t(i)) TO '{path}'
"""


def run(names: list[str], seconds: float) -> None:
    """Print a table of the rows of these benchmarks, or of all."""
    unknown = set(names) - set(ROWS)
    if unknown:
        sys.exit(f"--against has rows of {', '.join(ROWS)}, got {', '.join(sorted(unknown))}.")
    environment.install()
    console = Console(highlight=False)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="psidp-speed-"))
        files(Path(folder))
        old, new = (stack.enter_context(started(libraries())) for started in (Process.of_0_2, Process.now))
        for name in names or ROWS:
            table = Table(title=f"{name}, CPU time", box=SIMPLE_HEAD, title_justify="left")
            for heading in ("what", "0.2", "now", "now / 0.2", "of the best", "turns"):
                table.add_column(heading, justify="left" if heading == "what" else "right")
            found = {}
            for row in ROWS[name]:
                found[row] = _turns(old, new, row, folder, seconds)
                table.add_row(*_shown(row, found[row]))
            if "group_by" in found:
                table.add_row(*_over("large_table", "group_by", found))
            console.print(table)


def files(folder: Path) -> None:
    """The tables that are worked on."""
    for name, made in (("visits", SMALL), ("million", LARGE)):
        duckdb.execute(made.format(path=folder / f"{name}.parquet"))


def libraries() -> list[str]:
    """Where torch is, which the environment of 0.2 takes from here rather than download it again."""
    found = find_spec("torch")
    return [] if found is None else [str(Path(str(found.origin)).parents[1])]


def _turns(old: Process, new: Process, row: str, folder: str, seconds: float) -> list[tuple[float, float]] | str:
    """Seconds of one call, version by version, turn by turn; or why there are none."""
    asked = {"do": "time", "row": row, "folder": folder, "times": 1}
    first = [version.ask(asked) for version in (old, new)]
    if errors := [answer["error"] for answer in first if "error" in answer]:
        return errors[0]
    least = max(min(answer["seconds"] for answer in first), 1e-7)
    asked["times"] = times = ceil(LEAST_TURN / least)
    turns = min(max(ceil(seconds / (2.0 * times * least)), TURNS[0]), TURNS[1])
    found = []
    for turn in range(turns):
        order = (old, new) if turn % 2 == 0 else (new, old)
        spent = {version: version.ask(asked)["seconds"] / times for version in order}
        found.append((spent[old], spent[new]))
    return found


def _shown(row: str, turns: list[tuple[float, float]] | str) -> list[str]:
    """A line of the table."""
    what = row.replace("_", " ")
    if isinstance(turns, str):
        return [what, "", "", "", "", turns]
    best = [min(spent) for spent in zip(*turns, strict=True)]
    ratios = [now / before for before, now in turns]
    return [what, *map(_time, best), f"{median(ratios):.3f}", f"{best[1] / best[0]:.3f}", str(len(turns))]


def _over(row: str, plain: str, found: dict[str, list[tuple[float, float]] | str]) -> list[str]:
    """How many times as long as another row one takes, in both versions."""
    above, below = found[row], found[plain]
    if isinstance(above, str) or isinstance(below, str):
        return []
    times = [min(spent) for spent in zip(*above, strict=True)]
    least = min(min(spent) for spent in below)
    return [
        f"{row.replace('_', ' ')} over {plain.replace('_', ' ')}",
        *(f"{t / least:.2f} x" for t in times),
        "",
        "",
        "",
    ]


def _time(seconds: float) -> str:
    """Seconds, milliseconds or microseconds."""
    return (
        f"{seconds:.3g} s"
        if seconds >= 1
        else f"{1e3 * seconds:.3g} ms"
        if seconds >= 1e-3
        else f"{1e6 * seconds:.3g} us"
    )
