"""Processes that publish two weeks of a table's stream, killed at lines.

Run as a script: URL, stride, first line. A process of its own that holds no connection, so that forking is
safe. Victims and those who go on are forks; a victim
ends at one line, without a word, the first time it comes there.
"""

import datetime
import json
import os
import sys

import duckdb
import pyarrow as pa

from psidp import Curator, Ledger, ask
from psidp.mechanism import stream_plan
from psidp.strategies import Participation, Workload

LINES = (
    "tables/stream.py", "tables/series.py", "mechanism/stream_record.py", "mechanism/stream_store.py",
    "mechanism/stream_series.py", "ledger/spend.py",
)  # fmt: skip
START = datetime.date(2026, 1, 5)
TABLE = pa.table({"u": [1, 2, 3], "a": [START + datetime.timedelta(days=7 * i) for i in range(3)]})


def clock():
    return datetime.datetime(2026, 1, 20, tzinfo=datetime.UTC)


def opened(url, name):
    """The stream, open; a new table is read by whoever goes on."""
    curator = Curator(TABLE, unit="u", ledger=Ledger(url, clock=clock), budget="survey")
    terms = {"every": "week", "since": START, "periods": 3, "arrived": "a", "cap": ask.cap(1)}
    return curator.stream(name, ask.count(), **terms).open(psi=0.01)


def forked(work):
    """What a fork wrote before it ended, and how it ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        work(writer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as lines:
        said = lines.read()
    return said, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def victim(url, name, line):
    """Publish, and end at the line of this number, in the order in which lines first run."""
    made, seen = opened(url, name), set()

    def trace(frame, event, _):
        if not frame.f_code.co_filename.endswith(LINES):
            return None
        seen.update([(frame.f_code.co_filename, frame.f_lineno)] if event == "line" else [])
        if len(seen) == line:
            os._exit(9)
        return trace

    sys.settrace(trace)
    made.publish()


def goes_on(url, name, pipe):
    """Publish what is missing, and write all numbers, and what is stored now that was not before."""
    made = opened(url, name)
    before = made._record.store.released(1), made._record.store.released(2)
    made.publish()
    after = made._record.released()
    kept = all(old is None or old == new for old, new in zip(before, after, strict=True))
    os.write(pipe, json.dumps([kept, len(after)]).encode())


def main(url, stride, first):
    assert duckdb  # imported once for all forks, to save time; nothing is connected
    planned = stream_plan.chosen(Workload.together(3), Participation(1))
    stream_plan.chosen = lambda *_: planned  # likewise
    forked(lambda _: Ledger(url, clock=clock).open("survey", psi=1.0, unit="patient", actor="Ann", purpose="a test"))
    line, kills, changed = first, 0, 0
    while True:
        name = f"s{line}"
        _, code = forked(lambda _, name=name, line=line: victim(url, name, line))
        said, _ = forked(lambda pipe, name=name: goes_on(url, name, pipe))
        changed += json.loads(said or "null") != [True, 2]
        if code != 9:
            break
        kills, line = kills + 1, line + stride
    with Ledger(url, clock=clock) as ledger:
        entries = list(ledger.entries())
        ledger.verify()
    paid = [e.key for e in entries if e.state == "spent" and e.psi > 0.0]
    answers = [e.key for e in entries if e.state == "answered"]
    twice = len(paid) - len(set(paid)) + len(answers) - len(set(answers))
    found = {"kills": kills, "changed": changed, "twice": twice, "streams": len(paid), "answers": len(answers)}
    print(json.dumps(found | {"last": code}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
