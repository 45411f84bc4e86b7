"""KnownHead: the last entry that this process saw, and the balances at that moment.

While the database still ends with that very row, nothing was written since, so that a spend reads one row. Where it
does not, the new head is checked against the entries above it (EntryLog.head).
"""

from typing import Any

from psidp.errors import TamperedLedgerError
from psidp.ledger.balance import Balance
from psidp.ledger.entry import Entry

__all__ = ["KnownHead", "not_as_written"]

MOST = 256
"""Budgets whose balance is remembered."""


class KnownHead:
    """What a process remembers from one transaction to the next.

    `row` and `balances` may speak of an entry that was never committed: they count only while the database ends with
    that row. `committed` was in the database for certain.
    """

    def __init__(self) -> None:
        self.row: tuple[Any, ...] | None = None
        self.entry: Entry | None = None
        self.balances: dict[str, Balance] = {}
        self.committed: Entry | None = None

    def saw(self, row: tuple[Any, ...], entry: Entry, balance: Balance) -> None:
        """Others wrote: all that was known of balances is too old."""
        self.row, self.entry, self.balances, self.committed = row, entry, {entry.budget: balance}, entry

    def wrote(self, row: tuple[Any, ...], entry: Entry, balance: Balance) -> None:
        """This process is about to commit one more entry."""
        kept = self.balances if len(self.balances) < MOST else {}
        self.row, self.entry, self.balances = row, entry, kept | {entry.budget: balance}

    def commit(self, entry: Entry) -> None:
        """An entry is durable."""
        if self.committed is None or entry.id > self.committed.id:
            self.committed = entry


def not_as_written(entry: int, why: str) -> TamperedLedgerError:
    """The refusal of an entry that is not the one that was written.

    Examples:
        >>> print(not_as_written(3, "it does not follow the entry above"))
        entry 3 is not what was written: it does not follow the entry above.
    """
    return TamperedLedgerError(f"entry {entry} is not what was written: {why}.", entry)
