"""What psidp enforced in what a ledger paid for, and how far off the numbers are.

A curator's spend says that psidp clipped what each unit adds. Where its answer is stored under a retry key, the answer
says to how much, and its errors. Of a spend that somebody entered by hand nobody knows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from psidp.ledger.actor import CLIPPED
from psidp.ledger.entry import Entry
from psidp.ledger.json_value import from_json
from psidp.present.card.parts import ErrorRange, Mechanism, Scope
from psidp.present.card.release_words import MOST, release_words
from psidp.present.card.report_words import UNTOLD
from psidp.tables.answer import Answer
from psidp.tables.cube_answer import Cube

if TYPE_CHECKING:
    from psidp.ledger.ledger import Ledger

__all__ = ["clipped", "enforced"]


class Found(NamedTuple):
    """A spend, whether psidp clipped what units add to it, and what its stored answer says of itself."""

    spend: Entry
    clipped: bool
    words: dict[str, Any]

    @property
    def bound(self) -> str:
        """The limits of its aggregates, with which release it is."""
        limits = self.words["bound"] if self.words else "the ledger holds no answer that says how far"
        return f"entry {self.spend.id} ({self.spend.purpose}), {limits}"


def enforced(ledger: "Ledger", spends: Sequence[Entry], scope: Scope, unit: str) -> dict[str, Any]:
    """The fields of a card that these spends fill in: the limit that psidp enforced, where the card states none."""
    if scope.contribution_bound not in ("", UNTOLD):
        return {}
    scope, found = replace(scope, contribution_bound=""), [_found(ledger, spend) for spend in spends]
    if not any(one.clipped for one in found):
        return {"scope": scope}
    scope = replace(scope, contribution_bound=_bound(found, unit))
    if len(found) > 1 or not (words := found[0].words):
        return {"scope": scope, "errors": _errors(found)}
    scope = replace(scope, not_covered=scope.not_covered or words["not_covered"])
    return {"scope": scope, "errors": words["errors"], "mechanism": Mechanism(words["mechanism"])}


def clipped(event: Mapping[str, Any]) -> bool:
    """Whether a spend's event says that psidp clipped what units add; entries before that was said name the column."""
    return event.get(CLIPPED) is True or "unit_column" in event or "question" in event


def _found(ledger: "Ledger", spend: Entry) -> Found:
    event = spend.details()
    answer = _answer(ledger, spend) if spend.key else None
    return Found(spend, answer is not None or clipped(event), {} if answer is None else release_words(answer))


def _answer(ledger: "Ledger", spend: Entry) -> Answer | Cube | None:
    """A curator's answer that is stored for a spend; None where there is none, or it is something else."""
    for entry in ledger.under_key(spend.budget, spend.key):
        if entry.state == "answered" and entry.refers == spend.id:
            try:
                values = from_json(entry.answer)
                made = Cube.from_dict(values) if values.get("kind") == "cube" else Answer.from_dict(values)
            except (AttributeError, KeyError, TypeError, ValueError):
                return None
            return made if made.guarantee.psi == spend.psi else None
    return None


def _bound(found: Sequence[Found], unit: str) -> str:
    """How much one unit may add, as far as psidp enforced it."""
    bounded = [one for one in found if one.clipped]
    if len(found) == 1:
        unsaid = "psidp clipped it before noise was drawn; the ledger holds no answer that says how far"
        return str(found[0].words.get("bound", unsaid))
    largest = sorted(bounded, key=lambda one: -one.spend.psi)[:MOST]
    listed = "; ".join(one.bound for one in largest)
    listed += f"; and {len(bounded) - MOST} more" if len(bounded) > MOST else ""
    if len(bounded) == len(found):
        return f"psidp clipped it in every release: {listed}"
    return (
        f"psidp clipped it in {len(bounded)} of {len(found)} releases: {listed}. In the others none was enforced here, "
        f"and the promise holds only where no {unit} moves their numbers further than was assumed"
    )


def _errors(found: Sequence[Found]) -> tuple[ErrorRange, ...]:
    """The errors of stored answers, those of the largest spends first; with the release's purpose, where there are
    several."""
    errors = []
    for one in sorted(found, key=lambda one: -one.spend.psi):
        of = f" ({one.spend.purpose})" if len(found) > 1 else ""
        errors += [replace(error, statistic=error.statistic + of) for error in one.words.get("errors", ())]
    return tuple(errors[:MOST])
