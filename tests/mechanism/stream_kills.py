"""Processes that open a counter and publish two periods, killed at lines. Run as a script: URL, stride, first line.

A process of its own, so that forking is safe; each victim is a fork that ends at one line, without a word.
"""

import json
import os
import sys

from psidp import Counter, Ledger
from psidp.mechanism import stream_plan
from psidp.strategies import Participation, Workload

LINES = ("mechanism/counter.py", "mechanism/stream_record.py", "mechanism/stream_store.py", "ledger/spend.py")
TOTALS = (7, 11)


def published(url, name, leave=lambda number: None):
    """Open, publish twice; each number leaves as soon as it is there."""
    ledger = Ledger(url)
    counter = Counter(psi=0.01, periods=3, at_most=1, ledger=ledger, budget="survey", name=name).open()
    values = []
    for period, total in enumerate(TOTALS, 1):
        values.append(counter.publish(period, total).value)
        leave(values[-1])
    ledger.dispose()
    return values


def victim(url, name, line, pipe):
    """End at the first run of the line of this number, in the order in which lines first run."""
    seen = set()

    def trace(frame, event, _):
        if not any(part in frame.f_code.co_filename for part in LINES):
            return None
        seen.update([(frame.f_code.co_filename, frame.f_lineno)] if event == "line" else [])
        if len(seen) == line:
            os._exit(9)
        return trace

    sys.settrace(trace)
    published(url, name, lambda number: os.write(pipe, f"{number!r}\n".encode()))
    os._exit(0)


def killed(url, name, line):
    """What left a process that was killed at a line, and whether it was."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        victim(url, name, line, writer)
    os.close(writer)
    with os.fdopen(reader) as lines:
        left = [float(text) for text in lines]
    return left, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def main(url, stride, first):
    planned = stream_plan.chosen(Workload.together(3), Participation(1))
    stream_plan.chosen = lambda *_: planned  # once for all victims, to save time
    with Ledger(url) as ledger:
        ledger.open("survey", psi=1.0, actor="Ann", purpose="a test")
    line, kills, changed = first, 0, 0
    while True:
        name = f"s{line}"
        left, was_killed = killed(url, name, line)
        first = published(url, name)
        changed += left != first[: len(left)]
        if not was_killed:
            break
        kills, line = kills + 1, line + stride
    with Ledger(url) as ledger:
        paid = [e.key for e in ledger.entries() if e.state == "spent" and e.psi > 0.0]
        answers = [e.key for e in ledger.entries() if e.state == "answered"]
        ledger.verify()
    twice = len(paid) - len(set(paid)) + len(answers) - len(set(answers))
    print(json.dumps({"kills": kills, "changed": changed, "twice": twice, "streams": len(paid)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
