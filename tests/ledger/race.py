"""Many processes that spend from one budget at the same moment. Run as a script; the outcome is one line of JSON."""

import json
import os
import random
import sys

from psidp import Guarantee, Ledger
from psidp.errors import BudgetExceededError, LedgerBusyError


def attempts(url, budget, asks):
    """What became of each ask, in order: accepted, refused or busy."""
    ledger = Ledger(url, patience=120.0)
    outcome = []
    for psi in map(float, asks):
        try:
            with ledger.spend(budget, Guarantee(psi), purpose=f"process {os.getpid()}"):
                outcome.append(("accepted", psi))
        except BudgetExceededError:
            outcome.append(("refused", psi))
        except LedgerBusyError:
            outcome.append(("busy", psi))
    return outcome


def openings(url, budget, _):
    """Whether this process opened the budget, in a ledger that was not there."""
    try:
        Ledger(url, patience=120.0).open(budget, psi=1.0, actor="Ann", purpose="a race")
        return [("accepted", 1.0)]
    except ValueError:
        return [("refused", 1.0)]


def race(url, budget, asks_of_each, attempts=attempts):
    """All processes wait for one signal, then spend; their outcomes together."""
    start_reader, start_writer = os.pipe()
    readers = []
    for asks in asks_of_each:
        reader, writer = os.pipe()
        if os.fork() == 0:
            try:
                os.close(start_writer)
                os.read(start_reader, 1)
                os.write(writer, json.dumps(attempts(url, budget, asks)).encode())
            finally:
                os._exit(0)
        os.close(writer)
        readers.append(reader)
    os.close(start_reader)
    os.close(start_writer)
    outcomes = []
    for reader in readers:
        with os.fdopen(reader) as results:
            outcomes += json.loads(results.read())
    for _ in readers:
        os.wait()
    return outcomes


if __name__ == "__main__":
    where, name, processes, each = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    dice = random.Random(7)
    several, how = each == "random", openings if each == "open" else attempts
    asks = [[dice.uniform(0.01, 0.2) for _ in range(4)] if several else [each] for _ in range(processes)]
    print(json.dumps(race(where, name, asks, how)))
