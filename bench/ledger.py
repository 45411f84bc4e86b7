"""The ledger beside a bare durable SQLite insert of the same row, and how it does with a million entries."""

import os
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median

from sqlalchemy import Connection

from bench.timing import Report
from psidp import Guarantee, Ledger
from psidp.ledger import schema
from psidp.ledger.balance import Balance
from psidp.ledger.cost import Cost
from psidp.ledger.entry import ENTRIES, INSERT, Entry, canonical, genesis
from psidp.ledger.listing import Selection

PRICE = Guarantee(0.001)
Ready = Callable[[int], Callable[[], None]]
"""What makes ready to write, in a process of that number, and gives what writes."""


def run(full: bool, seed: int) -> list[Report]:
    """Spends a second, one process and eight; `remaining` and memory on a long ledger."""
    with tempfile.TemporaryDirectory() as folder:
        return [_spends(Path(folder), 15 if full else 7), _long(Path(folder), 1_000_000 if full else 100_000)]


def _spends(folder: Path, rounds: int) -> Report:
    """Both in turns, in the same folder, wall-clock since the disk does most of the work."""
    ours, bare = folder / "ours.db", folder / "bare.db"
    for path in (ours, bare):
        ledger = Ledger(path)
        ledger.open("survey", psi=1e3, actor="bench", purpose="to be timed")
        with ledger.spend("survey", PRICE, purpose="a row to copy") as entry:
            row = list(entry.entry.row())
        ledger.dispose()
    report = Report("Durable spends on SQLite, wall-clock, median of rounds in turns")
    report.add("first spend of a process, which looks at the whole ledger's place and terms", _first(ours), "ms")
    for processes, each in ((1, 200), (8, 25)):
        rates: dict[str, list[float]] = {"bare": [], "ours": []}
        for turn in range(rounds):
            rates["bare"].append(_rate(processes, each, partial(_bare, bare, row)))
            rates["ours"].append(_rate(processes, each, partial(_ours, ours)))
            if turn == 0:
                rates = {"bare": [], "ours": []}
        who = "one process" if processes == 1 else f"{processes} processes"
        report.add(f"bare insert of the same row, {who}", median(rates["bare"]), "/s")
        report.add(f"ledger.spend, {who}", median(rates["ours"]), "/s")
        ratios = [b / o for b, o in zip(rates["bare"], rates["ours"], strict=True)]
        spread = f"rounds {min(ratios):.2f} to {max(ratios):.2f}"
        report.add(f"bare over ours, {who}", median(ratios), "x", at_most=2.5, note=spread)
    return report


def _rate(processes: int, each: int, ready: Ready) -> float:
    """Transactions a second of so many processes that begin together, after one of each; the slowest one counts."""
    start_reader, start_writer = os.pipe()
    ready_reader, ready_writer = os.pipe()
    readers = []
    for number in range(processes):
        reader, writer = os.pipe()
        if os.fork() == 0:
            try:
                os.close(start_writer)
                write = ready(number)
                write()
                os.write(ready_writer, b".")
                os.read(start_reader, 1)
                begin = time.perf_counter()
                for _ in range(each):
                    write()
                os.write(writer, repr(time.perf_counter() - begin).encode())
            finally:
                os._exit(0)
        os.close(writer)
        readers.append(reader)
    for _ in readers:
        os.read(ready_reader, 1)
    for end in (start_reader, start_writer, ready_reader, ready_writer):
        os.close(end)
    slowest = max(float(os.read(reader, 100)) for reader in readers)
    for reader in readers:
        os.close(reader)
        os.wait()
    return processes * each / slowest


def _ours(path: Path, _: int) -> Callable[[], None]:
    return partial(_spend, Ledger(path))


def _spend(ledger: Ledger) -> None:
    with ledger.spend("survey", PRICE, purpose="a row to copy"):
        pass


def _first(path: Path) -> float:
    """Milliseconds that the first spend of a process takes, median of nine."""
    times = []
    for _ in range(9):
        with Ledger(path) as ledger:
            ledger.remaining("survey")
            times += _seconds(lambda book=ledger: _spend(book), 1)
    return 1e3 * median(times)


def _bare(path: Path, row: list[object], number: int) -> Callable[[], None]:
    """The same row with the same indexes, and nothing else: no check, no chain."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=60.0)
    connection.execute("PRAGMA synchronous = FULL")

    def insert() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(INSERT["sqlite"], [time.time_ns() // 1000 * 8 + number, *row[1:]])
        connection.execute("COMMIT")

    return insert


def _long(folder: Path, entries: int) -> Report:
    """A ledger with so many spends, made in one transaction."""
    short, long = folder / "short.db", folder / "long.db"
    for path, size in ((short, 1_000), (long, entries)):
        ledger = Ledger(path, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
        ledger.open("survey", psi=1e3, actor="bench", purpose="to be timed")
        ledger._store.write(lambda connection, size=size: _fill(connection, size))
        ledger.dispose()
    ledger = Ledger(long)
    report = Report(f"A ledger of {entries:,} entries ({long.stat().st_size / 1e6:.0f} MB)")
    ledger.remaining("survey")
    found = _seconds(lambda: ledger.remaining("survey"))
    report.add("remaining, median of 200", 1e3 * median(found), "ms", at_most=5.0)
    report.add("remaining, slowest of 200", 1e3 * max(found), "ms")
    report.add("report, median of 200", 1e3 * median(_seconds(lambda: ledger.report("survey"))), "ms")
    report.add("history for the chart, once", 1e3 * _seconds(lambda: ledger.history("survey"), 1)[0], "ms")
    ledger.dispose()
    _pages(report, short, long)
    _kept(report, folder, long)
    for what, use in (("remaining", _remaining), ("verify", _verify)):
        small, (seconds, large) = _memory(use, short)[1], _memory(use, long)
        note = f"{small:.1f} MB with 1,000 entries; {seconds:.1f} s in all"
        report.add(f"memory of {what}, above an idle process", large, "MB", at_most=small + 8.0, note=note)
    return report


def _pages(report: Report, short: Path, long: Path) -> None:
    """A page of `list`, by each filter, on the long ledger and on one of a thousand entries, in turns."""
    for words, which in (
        ("newest", Selection()),
        ("of one actor in a thousand", Selection(actor="actor 7")),
        ("of one table", Selection(table="table 3")),
        ("of one day", Selection(since="2026-01-01", until="2026-01-01")),
    ):
        times: dict[Path, list[float]] = {short: [], long: []}
        for path in (short, long):
            with Ledger(path) as ledger:
                ledger.list(which)
                times[path] = _seconds(lambda book=ledger, asked=which: book.list(asked))
        slower = median(times[long]) / median(times[short])
        note = f"{1e3 * median(times[short]):.2f} and {1e3 * median(times[long]):.2f} ms"
        report.add(f"page of list, {words}: over that of 1,000 entries", slower, "x", at_most=3.0, note=note)


def _kept(report: Report, folder: Path, long: Path) -> None:
    """A verification that goes on from a kept file, beside the one that wrote it."""
    kept, key = folder / "kept", folder / "key"
    with Ledger(long) as ledger:
        whole = _seconds(lambda: ledger.verify(kept=kept, key=key), 1)[0]
        for _ in range(100):
            with ledger.spend("survey", PRICE, purpose="new"):
                pass
        again = _seconds(lambda: ledger.verify(kept=kept, key=key), 1)[0]
    report.add("verify, everything", whole, "s")
    report.add("verify from a kept file, 100 new entries", 1e3 * again, "ms", at_most=1000.0)


def _time(number: int) -> str:
    """Fifteen entries a minute, from the first of January on."""
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=4 * number)
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"


def _event(number: int) -> str:
    return canonical({"kind": "guarantee", "by": f"actor {number % 1000}", "table": f"table {number % 10}"})


def _fill(connection: Connection, size: int) -> None:
    """Spends written as fast as the database takes them, each a true link of the chain."""
    loss = Cost.of(PRICE)
    row = connection.execute(ENTRIES.select().order_by(ENTRIES.c.id.desc()).limit(1)).one()
    last = Entry.from_row(row)
    assert last.previous == genesis(schema.identity_of(connection))
    standing, rows = Balance.read(last.standing), []
    for number in range(2, size + 1):
        standing = standing.after_spend(loss)
        last = Entry.sealed(
            id=number, time=_time(number), budget="survey", state="spent", event=_event(number), psi=PRICE.psi,
            purpose="one of many", standing=standing.text(), previous=last.hash,
        )  # fmt: skip
        rows.append(last.row())
        if len(rows) == 5000 or number == size:
            connection.exec_driver_sql(INSERT["sqlite"], rows)
            rows = []


def _seconds(call: Callable[[], object], times: int = 200) -> list[float]:
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    return found


def _remaining(path: Path) -> None:
    ledger = Ledger(path)
    for _ in range(500):
        ledger.remaining("survey")


def _verify(path: Path) -> None:
    Ledger(path).verify()


def _memory(use: Callable[[Path], None], path: Path) -> tuple[float, float]:
    """Seconds, and megabytes by which a fresh process grew at most."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            before, begin = _peak(), time.perf_counter()
            use(path)
            os.write(writer, f"{time.perf_counter() - begin} {_peak() - before}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    seconds, grown = map(float, os.read(reader, 200).split())
    os.close(reader)
    os.wait()
    return seconds, grown


def _peak() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)
