"""What a call of each kind visits in psidp: files, functions, crossings between files, modules loaded.

.venv/bin/python -m bench.journeys [NAME ...] [--against 0.2] [--json]

Each journey is done in a process of its own: twice, of which the second time counts, so that imports do not. It
reports, and no test asserts these numbers. Leaves with bench/since_0_2 in the release after 0.3.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bench.since_0_2 import environment, speed
from bench.since_0_2.process import Process

JOURNEYS = {
    "table, command line": "command_line",
    "table, Python": "table",
    "table with a ledger": "table_with_ledger",
    "cube": "cube",
    "stream period": "stream_period",
    "spend": "spend",
    "ten training steps": "training",
    "array of five": "five_numbers",
    "account": "account",
    "conversion": "one_epsilon",
}
"""What each is called here, and the piece of work of bench/since_0_2/work_now.py that it is."""

COUNTS = ("files", "functions", "calls", "crossings", "modules", "all modules")


def main() -> None:
    """Print a table, or JSON with the names of the files."""
    parser = argparse.ArgumentParser(prog="python -m bench.journeys", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(map(repr, JOURNEYS))}; or all")
    parser.add_argument("--against", choices=["0.2"], help="the same journeys in version 0.2 beside it")
    parser.add_argument("--json", action="store_true", help="everything, with the names of the files")
    given = parser.parse_args()
    if unknown := set(given.names) - set(JOURNEYS):
        parser.error(f"no journey is called {', '.join(sorted(unknown))}; there are {', '.join(JOURNEYS)}")
    versions = {"0.2": Process.of_0_2} if given.against else {}
    if given.against:
        environment.install()
    versions["now"] = Process.now
    found = {name: {v: _visits(name, start) for v, start in versions.items()} for name in given.names or JOURNEYS}
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        Console(highlight=False, width=max(100, Console().width)).print(_table(found))


def _visits(name: str, start: Any) -> dict[str, Any]:
    """What a journey visits in one version."""
    with tempfile.TemporaryDirectory(prefix="psidp-journeys-") as folder, start(speed.libraries()) as process:
        speed.files(Path(folder))
        return process.ask({"do": "visit", "row": JOURNEYS[name], "folder": folder})


def _table(found: dict[str, dict[str, dict[str, Any]]]) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for heading in ("journey", "version", *COUNTS):
        table.add_column(heading, justify="left" if heading in ("journey", "version") else "right")
    for name, versions in found.items():
        for version, seen in versions.items():
            counts = [len(seen[c]) if c == "files" else seen[c] for c in COUNTS] if "error" not in seen else []
            table.add_row(name, version, *(f"{n:,}" for n in counts) if counts else [seen["error"]])
    return table


if __name__ == "__main__":
    main()
