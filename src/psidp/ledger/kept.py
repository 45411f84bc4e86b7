"""Kept: a file with everything a verifier knew at some entry, so that the next verification reads only what is new.

It holds the head and, for each budget, its terms and balance at that head. With a key it is signed (HMAC-SHA256), and
whoever lacks the key cannot make one. Without a key it has to lie where those who write the ledger cannot write.

It vouches for what it saw. A verification that begins with it finds every change of newer entries, of the entry at its
head and of the balances from which budgets go on. It does not read older entries again: a full verification does.
"""

import hmac
import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

from psidp.errors import TamperedLedgerError
from psidp.ledger.balance import Balance
from psidp.ledger.budget import Budget
from psidp.ledger.entry import canonical
from psidp.ledger.log import Before, EntryLog
from psidp.ledger.private_file import private
from psidp.ledger.unit_column import Known
from psidp.ledger.verify import Head, Verification

__all__ = ["check_against", "key_in", "read_kept", "write_kept"]

FORM = "psidp-kept-1"
KEY_BYTES = 32


def key_in(path: Path | None) -> bytes | None:
    """The key that a file holds; a new one, which only its owner may read, where there is no file yet."""
    if path is None:
        return None
    if not path.exists():
        with open(path, "x", encoding="ascii", opener=private) as file:
            file.write(f"{os.urandom(KEY_BYTES).hex()}\n")
    text = path.read_bytes().strip()
    if not len(text) >= KEY_BYTES:
        raise ValueError(f"key (file with a secret) must hold at least {KEY_BYTES} letters, got {len(text)} in {path}.")
    return text


def write_kept(path: Path, identity: str, walk: Verification, key: bytes | None) -> None:
    """Write what a verification knows, in one move: a reader finds the old file or the new one."""
    values = {
        "form": FORM,
        "ledger": identity,
        "head": str(walk.head),
        "time": walk.time,
        "signed": key is not None,
        "budgets": {name: [terms.terms(), terms.purpose] for name, terms in walk.budgets.items()},
        "balances": {name: balance.text() for name, balance in walk.standings.items()},
        "partitions": [[*names, balance.text()] for names, balance in walk.partitions.items()],
        "promised": walk.promised,
        "units": {name: list(known) for name, known in walk.units.items()},
        "not_recomputed": walk.not_recomputed,
    }
    new = path.with_name(f"{path.name}.new")
    with open(new, "w", encoding="utf-8", opener=private) as file:
        file.write(canonical(values | {"seal": _seal(values, key)}) + "\n")
    new.replace(path)


def read_kept(path: Path, identity: str, key: bytes | None) -> Verification:
    """The verification that stopped there; refused where the seal is not right, or the ledger is another."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        seal = values.pop("seal")
        known = values["form"] == FORM
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _refused(path, "it is no file that a verification kept") from None
    if not known:
        raise _refused(path, "a newer psidp wrote it")
    if values["signed"] != (key is not None):
        raise _refused(
            path, "it is signed: give its key" if values["signed"] else "a key is given, and it is not signed"
        )
    if not hmac.compare_digest(seal, _seal(values, key)):
        raise _refused(path, "its seal does not match its content" + (" under this key" if key else ""))
    if values["ledger"] != identity:
        raise _refused(path, "it was made for another ledger")
    head = Head.parse(values["head"])
    return Verification(
        previous=head.hash,
        id=head.id,
        time=values["time"],
        budgets={name: Budget.from_event(name, *terms) for name, terms in values["budgets"].items()},
        standings={name: Balance.read(text) for name, text in values["balances"].items()},
        partitions={(name, part): Balance.read(text) for name, part, text in values["partitions"]},
        promised=values["promised"],
        units={name: Known(*known) for name, known in values["units"].items()},
        not_recomputed=values.get("not_recomputed", []),
    )


def check_against(log: EntryLog, walk: Verification) -> None:
    """Refuse a ledger that no longer holds the kept head, or in which a budget goes on from another balance."""
    found = log.entry(walk.id) if walk.id else None
    if walk.id and (found is None or found.hash != walk.previous):
        why = "it ends before" if found is None else "another entry is there"
        raise TamperedLedgerError(f"the ledger does not contain the head that was kept, {walk.head}: {why}.", walk.id)
    for name, balance in walk.standings.items():
        last = log.last_of(name, until=walk.id)
        if last is None or last.standing != balance.text():
            number = walk.id if last is None else last.id
            raise TamperedLedgerError(
                f"entry {number} is not what was written: budget {name!r} stood otherwise when it was kept.",
                number,
            )
    walk.everywhere = Before(log, walk.id + 1).stopped_everywhere()


def _seal(values: dict[str, Any], key: bytes | None) -> str:
    content = canonical(values).encode()
    return sha256(content).hexdigest() if key is None else hmac.new(key, content, sha256).hexdigest()


def _refused(path: Path, why: str) -> TamperedLedgerError:
    return TamperedLedgerError(
        f"{path} cannot be gone on from: {why}. Without it, psidp ledger verify reads every entry; to begin a new one, "
        "remove it."
    )
