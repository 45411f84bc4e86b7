"""One line of a CSV file or one row of a frame moves the totals by its own row at most, and makes nothing fail."""

import random as dice
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from psidp import Curator, ask
from psidp.tables.engines.duckdb import DuckDB
from psidp.tables.sources import Source, files, opening

__all__ = ["RELAPSES", "explore"]

NO_NOISE = 1e9
OPEN = '"'
CELLS = [
    "n/a", "", "-7", "1e400", "nan", "true", "2026-01-01", "0x10", "7,5", '"', '"7', '"n/a', '7"', '""', "7\0", " 7 ",
    '7,"', "A" * 3000,
]  # fmt: skip
OBJECTS = ["unknown", "7", None, float("nan"), True, [7], {}, b"\xff", "\ud800", 10**400, 1j, object(), pd.NaT, -7.5]
QUESTIONS: list[dict[str, Any]] = [
    {"by": "ward", "groups": ["A", "B", None]},
    {"by": "ward", "groups": ["A", "B"], "where": "cost >= 10"},
    {"where": "cost < 40.5 and ward != 'B'"},
    {},
]


def explore(random: dice.Random) -> None:
    """Two neighbouring files and two neighbouring frames, and one question to both of each."""
    rows = [(random.randint(-20, 60), random.choice("AB")) for _ in range(random.randrange(1, 40))]
    question, at = random.choice(QUESTIONS), random.randrange(len(rows) + 1)
    lines, line = [f"{cost},{ward}".encode() for cost, ward in rows], _line(random)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "visits.csv"
        tables = (_file(path, more) for more in (lines, [*lines[:at], line, *lines[at:]]))
        _compare([_totals(table, question, line) for table in tables], question, line)
    odd = random.choice(OBJECTS)
    tables = (_frame(more) for more in (rows, [*rows[:at], (odd, "A"), *rows[at:]]))
    _compare([_totals(table, question, odd) for table in tables], question, odd)


def _compare(totals: list[list[float]], question: dict[str, Any], said: Any) -> None:
    """One row's worth apart at most."""
    moved = sqrt(sum((a - b) ** 2 for a, b in zip(*totals, strict=True)))
    assert moved <= 1.001, f"{said!r} moves the answers to {question} by {moved} rows: {totals[0]} became {totals[1]}"


def _totals(table: Any, question: dict[str, Any], said: Any) -> list[float]:
    """Counts and sums in rows' worth, without noise to speak of; each of the two has half of the room."""
    try:
        curator = Curator(table, None)
        answer = curator.ask(ask.count(), ask.sum("cost", -20, 60), **question).release(psi=NO_NOISE)
    except Exception as error:
        raise AssertionError(f"{said!r} makes {question} fail: {error!r}") from error
    curator.dispose()
    return [e.value / (1.0 if e.statistic == "count" else 60.0) / sqrt(2.0) for _, e in answer.rows]


def _line(random: dice.Random) -> bytes:
    """An odd cell in an ordinary line, with or without an open quote, or any bytes that are no line end."""
    if random.random() < 0.75:
        return f"{random.choice(('', OPEN))}{random.choice(CELLS)},A".encode()
    return random.randbytes(random.randrange(60)).replace(b"\n", b"")


def _file(path: Path, lines: list[bytes]) -> Path:
    path.write_bytes(b"\n".join([b"cost,ward", *lines, b""]))
    return path


def _frame(rows: list[tuple[Any, str]]) -> pd.DataFrame:
    """The rows as pandas takes them: whole numbers, or objects where one is something else."""
    costs = np.empty(len(rows), object)
    for i, (cost, _) in enumerate(rows):
        costs[i] = cost
    whole = all(type(cost) is int and abs(cost) < 2**63 for cost in costs)
    return pd.DataFrame({"cost": costs.astype(np.int64) if whole else costs, "ward": [ward for _, ward in rows]})


@contextmanager
def _sniffed(options: str = "") -> Iterator[None]:
    """DuckDB's own reader of CSV, as once used: as text with these options, else in the types that it guesses."""

    register = DuckDB.register

    def read(engine: DuckDB, title: str, rows: Any) -> Any:
        if not isinstance(rows, tuple):
            return register(engine, title, rows)
        return engine.view(title, f"SELECT * FROM read_csv('{rows[0]}', ignore_errors = true{options})")

    def source(engine: Any, text: str, schema: Any, untyped: frozenset[str], *words: str) -> Source:
        return Source(engine, text, schema, untyped if options else frozenset(), *words)

    csv = patch.object(files, "CsvFile", lambda *paths: paths)
    with csv, patch.object(DuckDB, "register", read), patch.object(files, "Source", source):
        yield


RELAPSES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "types are guessed from the lines": _sniffed,
    "quotes reach over line ends": lambda: _sniffed(
        ", all_varchar = true, header = true, delim = ',', quote = '\"', null_padding = true"
    ),
    "types are guessed from a frame's objects": lambda: patch.object(
        opening, "arrow_frame", lambda frame, _: (frame, frozenset())
    ),
}
