"""Results: what became of a spend, as far as the ledger knows. A spend is paid for before anything is released."""

from collections.abc import Sequence
from typing import Literal

from sqlalchemy import bindparam, text

from psidp.guarantee import Guarantee
from psidp.ledger.cost import ZERO, Cost
from psidp.ledger.entry import ENTRIES, Entry
from psidp.ledger.event import RUNS
from psidp.ledger.log import NOTE, EntryLog

__all__ = ["Result", "results_of", "unreleased"]

Result = Literal["answer stored", "in parts", "not kept", "no answer stored", "interrupted", "failed"]
"""answer stored: under its retry key. in parts: a stream, whose periods are separate entries, or a training run.
not kept: released without a retry key, unless its process ended first. no answer stored: under its retry key, since it
is in progress or its process ended. interrupted: it failed while the answer was drawn, and none was stored. failed:
before anything was drawn, so that nothing was released."""

_NOTED: dict[str, Result] = {"answered": "answer stored", "interrupted": "interrupted", "withheld": "failed"}
_NOTES = (
    ENTRIES.select()
    .with_only_columns(ENTRIES.c.refers, ENTRIES.c.state)
    .where(
        NOTE,
        ENTRIES.c.budget.in_(bindparam("budgets", expanding=True)),
        ENTRIES.c.refers.in_(bindparam("spends", expanding=True)),
    )
)
_UNRELEASED = text(
    "SELECT s.psi, s.kappa FROM psidp_entries n JOIN psidp_entries s ON s.id = n.refers WHERE n.budget = :budget "
    "AND n.state IN ('withheld', 'interrupted') AND n.state IN ('answered', 'withheld', 'interrupted') "
    "AND NOT EXISTS (SELECT 1 FROM psidp_entries a WHERE a.budget = n.budget AND a.refers = n.refers "
    "AND a.state = 'answered' AND a.state IN ('answered', 'withheld', 'interrupted'))"
)


def results_of(log: EntryLog, entries: Sequence[Entry]) -> dict[int, Result]:
    """What became of each spend among some entries, by its number; an answer outweighs what was noted beside it."""
    spends = [entry for entry in entries if entry.state == "spent"]
    values = {"budgets": sorted({spend.budget for spend in spends}), "spends": [spend.id for spend in spends]}
    rows = log.connection.execute(_NOTES, values).all() if spends else []
    noted = {number: state for number, state in rows if state != "answered"} | {
        n: s for n, s in rows if s == "answered"
    }
    return {spend.id: _result(spend, noted.get(spend.id)) for spend in spends}


def unreleased(log: EntryLog, budget: str) -> tuple[int, Cost]:
    """How many spends of a budget failed or were interrupted, and what they cost together."""
    rows = log.connection.execute(_UNRELEASED, {"budget": budget}).all()
    return len(rows), sum((Cost.of(Guarantee(psi, kappa)) for psi, kappa in rows), ZERO)


def _result(spend: Entry, note: str | None) -> Result:
    kind = spend.details().get("kind")
    if (kind == "strategy" or kind in RUNS) and note in (None, "answered"):  # a run's note says how many steps it took
        return "in parts"
    return _NOTED[note] if note else "no answer stored" if spend.key else "not kept"
