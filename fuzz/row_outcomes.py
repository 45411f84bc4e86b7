"""One odd cell, whatever its type and role, changes no refusal, plan or note, and moves totals by one row at most."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa

__all__ = ["RELAPSES", "explore"]

sys.path.append(str(Path(__file__).parents[1] / "tests"))
rows: Any = import_module("reference.odd_rows")

INSTANT = pd.Timestamp("2023-11-14 12:00:01.5")
ORDINARY = (
    [1, 2, 3, 4], [1.5, 2.0, 3.0], [True, False, True], ["abc", "x", "1", "2021-01-01"], [INSTANT] * 3,
    [INSTANT.tz_localize("UTC")] * 3,
)  # fmt: skip
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {"write_statistics": False}, {"use_dictionary": False}, {"store_schema": False}, {"row_group_size": 5},
    {"use_deprecated_int96_timestamps": True}, {"version": "1.0"},
)  # fmt: skip
TEXTS = [kind for kind in rows.KINDS if "string" in kind or "text" in kind]
INSTANTS = [kind for kind in rows.KINDS if "timestamp[ms" in kind]
ANSWERED = 2
"""Questions that a round has answered, beside a count that does not name the column."""


def explore(random: Random) -> None:
    """A file of Parquet, or a frame, with and without the odd cell, and some questions to both."""
    choice = random.randrange(4)
    if choice == 0:
        _pandas(random)
        return
    kind = random.choice(random.choice((TEXTS, TEXTS, INSTANTS, INSTANTS, list(rows.KINDS))))
    _, odd = rows.KINDS[kind]
    cell = random.choice([odd, odd.slice(random.randrange(len(odd)), 1)])
    options = random.choice(OPTIONS)
    with TemporaryDirectory() as folder:
        tables = [rows.column(kind, more) for more in (None, cell)]
        if choice == 1:
            usual, full = (pa.table(rows.beside(values)) for values in tables)
        else:
            paths = (Path(folder) / "usual.parquet", Path(folder) / "full.parquet")
            usual, full = (rows.file_of(*pair, **options) for pair in zip(tables, paths, strict=True))
        if usual is not None and full is not None:
            said = f"{cell} of {kind} in {'Arrow' if choice == 1 else f'Parquet {options}'}"
            _compare(random, said, usual, full, len(cell))


def _pandas(random: Random) -> None:
    """One cell more in a frame of pandas, whose type it may change."""
    values, cell = random.choice(ORDINARY), random.choice(rows.CELLS)
    usual, full = (pd.DataFrame(rows.beside(cells)) for cells in (values, [*values, cell]))
    _compare(random, f"{cell!r} in pandas", usual, full, 1)


def _compare(random: Random, said: str, usual: Any, full: Any, most: int) -> None:
    """The outcomes of some questions on both."""
    first, second = rows.Asked(usual), rows.Asked(full)
    waiting = ["bystander of a count", *random.sample(list(rows.QUESTIONS), len(rows.QUESTIONS))]
    answered = 0
    while waiting and answered <= ANSWERED:
        question = waiting.pop(0)
        try:
            (words, before), (others, after) = first.outcome(question), second.outcome(question)
        except Exception as error:
            raise AssertionError(f"{said} makes {question!r} fail: {error!r}") from error
        assert words == others, f"{said} changes what comes of {question!r}: {words} became {others}"
        moved = rows.apart(before, after)
        assert moved <= most + 0.001, f"{said} moves {question!r} by {moved} rows: {before} became {after}"
        answered += bool(before)
    first.dispose()
    second.dispose()


RELAPSES: dict[str, Callable[[], AbstractContextManager[object]]] = {}
