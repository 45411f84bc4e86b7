"""Export: a ledger as lines of JSON, which can be kept elsewhere, checked by others, or restored to a new database."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from psidp.errors import LedgerError, TamperedLedgerError
from psidp.ledger.entry import INSERT, Entry, canonical, genesis
from psidp.ledger.log import EntryLog
from psidp.ledger.schema import VERSION
from psidp.ledger.verify import Head, Verification

__all__ = ["lines_of", "read_header", "restore_entries"]


def lines_of(identity: str, entries: Iterable[Entry]) -> Iterator[str]:
    """A header, one line of JSON per entry, and the head, so that a file cut short is noticed."""
    yield canonical({"psidp_ledger": VERSION, "identity": identity})
    head = Head(0, genesis(identity))
    for entry in entries:
        yield canonical(entry.to_dict())
        head = Head(entry.id, entry.hash)
    yield canonical({"head": str(head)})


def read_header(lines: Iterator[str]) -> str:
    """The identity of the ledger that was exported."""
    values = _values(next(lines, ""), 1)
    if not isinstance(values.get("identity"), str) or not isinstance(values.get("psidp_ledger"), int):
        raise LedgerError("this is not an exported ledger: its first line does not say so.")
    if values["psidp_ledger"] > VERSION:
        raise LedgerError(
            f"this export has version {values['psidp_ledger']}; this psidp knows versions up to {VERSION}. "
            "Install a newer psidp."
        )
    return str(values["identity"])


def restore_entries(log: EntryLog, identity: str, lines: Iterator[str]) -> Head:
    """All entries written as they were, each verified on the way; the caller's transaction holds all or none."""
    walk = Verification(genesis(identity))
    heads: list[str] = []
    for batch in _batches(_entries(lines, heads), 500):
        log.connection.exec_driver_sql(INSERT[log.connection.dialect.name], [entry.row() for entry in batch])
        walk.over(batch, log)
    walk.end()
    if heads != [str(walk.head)]:
        raise TamperedLedgerError(f"the export is cut short: it ends after entry {walk.id}.", walk.id + 1)
    return walk.head


def _entries(lines: Iterator[str], heads: list[str]) -> Iterator[Entry]:
    """The entries on the lines; the last line's head is put into `heads`."""
    for number, line in enumerate(lines, start=2):
        values = _values(line, number)
        if "head" in values:
            heads.append(values["head"])
        else:
            yield Entry.from_row([values.get(name) for name in Entry.__dataclass_fields__])


def _batches(entries: Iterator[Entry], size: int) -> Iterator[list[Entry]]:
    while batch := list(islice(entries, size)):
        yield batch


def _values(line: str, number: int) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise LedgerError(f"line {number} of the export is not what was written.")
    return values
