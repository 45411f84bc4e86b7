"""Usage: how many steps of a run were taken, as a note on the spend that paid for all of them. Nothing refunds."""

from psidp.ledger.entry import Entry
from psidp.ledger.log import EntryLog
from psidp.ledger.spend import noted_by

__all__ = ["noted"]


def noted(chain: EntryLog, spend: Entry, steps: int) -> Entry:
    """The entry that says so; refused where `spend` is no spend of this ledger on a run, or paid for fewer steps."""
    paid = chain.spend(spend.id)
    if paid.hash != spend.hash:
        raise ValueError(f"entry {spend.id} of this ledger must be the spend on a DP-SGD run that is spoken of.")
    event = noted_by(paid.details(), {"kind": "used", "steps": steps})
    return chain.append(paid.budget, "answered", event, refers=paid.id)
