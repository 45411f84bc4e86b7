"""The same pieces of work by calls of this version. It changes with the interface; work_0_2.py does not."""

from itertools import count as counter
from pathlib import Path
from typing import Any

import psidp
from bench.since_0_2 import work_0_2
from bench.since_0_2.work_0_2 import Clock, Work, _large, _ledger
from psidp import ask

__all__ = ["WORK"]


def _table(curator: psidp.Curator, **more: Any) -> object:
    question = curator.ask(ask.count(), ask.mean("cost", 0, 1000), by="ward", groups=["a", "b"], contribution=4)
    return question.release(psi=0.01, **more)


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


def large_table(folder: Path) -> Work:
    """A count and a sum by 1,000 groups, a million rows of 100,000 units."""
    curator, asks = _large(folder), (ask.count(), ask.sum("v", 0, 100))
    return lambda: curator.ask(*asks, by="g", groups=range(1000), contribution=3).release(psi=0.5)


def large_quantiles(folder: Path) -> Work:
    """Quantiles by group, a million rows."""
    curator, asked = _large(folder), ask.quantiles("v", range(0, 121, 5))
    return lambda: curator.ask(asked, by="h", groups=range(20), contribution=3).release(psi=0.5)


def large_where(folder: Path) -> Work:
    """A mean under a condition, contribution "auto", a million rows."""
    curator, asked = _large(folder), ask.mean("v", 0, 100)
    return lambda: curator.ask(asked, by="h", groups=range(20), contribution="auto", where="v > 10").release(psi=0.5)


def private_groups(folder: Path) -> Work:
    """A count by groups that noise chooses, a million rows."""
    curator, groups = _large(folder), psidp.PrivateGroups(1e-6, 20)
    return lambda: curator.ask(ask.count(), by="g", groups=groups, contribution=3).release(psi=0.5)


def cube(folder: Path) -> Work:
    """A cube of two columns, and one of its tables, from a Parquet file of 1,000 rows, opened anew."""

    def run() -> None:
        with psidp.Curator(folder / "visits.parquet", "patient") as curator:
            question = curator.cube({"ward": ["a", "b"], "month": range(1, 13)}, ask.up_to(2), contribution=4)
            question.release(psi=0.5).table("ward", "month")

    return run


def large_cube(folder: Path) -> Work:
    """All tables of up to three columns, a million rows."""
    curator, columns = _large(folder), {"h": range(20), "a": range(7), "b": range(5)}
    return lambda: curator.cube(columns, ask.up_to(3), contribution=8).release(psi=0.5)


def _stream(path: Path, unit: str, column: str, groups: Any) -> Work:
    clock = Clock()
    curator = psidp.Curator(path, unit, ledger=_ledger(path.parent, unit, clock=clock), budget="survey")
    terms = {"every": "day", "since": "2026-01-05", "periods": 1000, "arrived": "day", "cap": ask.cap(4)}
    stream = curator.stream("visits", ask.count(), by=column, groups=groups, **terms).open(psi=0.5)

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


WORK = {
    **work_0_2.WORK,
    **{
        work.__name__: work
        for work in (
            table, table_with_ledger, large_table, large_quantiles, large_where, private_groups, cube, large_cube,
            stream_period, large_stream_period,
        )
    },
}  # fmt: skip
