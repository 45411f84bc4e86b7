"""Usage: how many steps of a run were taken, as a note on the spend that paid for all of them. Nothing refunds."""

from psidp.ledger.entry import Entry
from psidp.ledger.event import RUNS
from psidp.ledger.log import EntryLog

__all__ = ["noted"]


def noted(chain: EntryLog, spend: Entry, steps: int) -> Entry:
    """The entry that says so; refused where `spend` is no spend of this ledger on a run, or paid for fewer steps."""
    paid = chain.spend(spend.id)
    run = paid.details()
    if not (paid.hash == spend.hash and run["kind"] in RUNS and "steps" in run):
        raise ValueError(f"entry {spend.id} of this ledger must be the spend on a DP-SGD run that is spoken of.")
    if isinstance(steps, bool) or not (isinstance(steps, int) and 0 <= steps <= run["steps"]):
        raise ValueError(
            f"steps must be a whole number of at most {run['steps']}, which entry {paid.id} paid for, "
            f"got steps={steps}."
        )
    return chain.append(paid.budget, "answered", {"kind": "used", "steps": steps}, refers=paid.id)
