"""Processes that spend from one budget through several names of its file, and processes that die. Run as a script."""

import json
import os
import signal
import sys

from psidp import Guarantee, Ledger
from psidp.errors import BudgetExceededError, LedgerUnavailableError, NotALedgerError


def attempts(_, budget, asks):
    """What became of each ask, through the name that stands first."""
    name, *asks = asks
    outcome = []
    for psi in asks:
        try:
            with Ledger(name, patience=120.0).spend(budget, Guarantee(psi), purpose=f"through {name}"):
                outcome.append(("accepted", psi))
        except BudgetExceededError:
            outcome.append(("refused", psi))
        except (LedgerUnavailableError, NotALedgerError):
            outcome.append(("unavailable", psi))
    return outcome


def spend_and_die(name, spends):
    """So many spends, then no farewell: what was committed is in the log only."""
    ledger = Ledger(name)
    for number in range(spends):
        with ledger.spend("survey", Guarantee(0.1), purpose=f"before death, {number}"):
            pass
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "die":
        spend_and_die(rest[0], int(rest[1]))
    else:
        from race import race  # beside this file

        print(json.dumps(race("", "survey", [[name, 0.1, 0.1] for name in rest] * 4, attempts)))
