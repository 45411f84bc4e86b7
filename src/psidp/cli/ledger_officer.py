"""psidp ledger for an officer: ask, approve, deny, limit, pause and resume; roles of a PostgreSQL server."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any
from warnings import catch_warnings, simplefilter

import typer

from psidp.cli import options
from psidp.cli.echo import echo
from psidp.cli.json_output import show_json
from psidp.cli.ledger_options import Kappa, Name, Part, Table, TableUnit, Where, Who, Why, priced, say
from psidp.ledger import schema
from psidp.ledger.entry import Entry
from psidp.ledger.event_words import asked_in_words
from psidp.ledger.ledger import Ledger
from psidp.ledger.listing import Selection
from psidp.maths.notion import NAMES
from psidp.present.formatting import up

__all__ = ["approve", "deny", "limit", "pause", "request", "resume", "roles"]

Number = Annotated[int, typer.Argument(metavar="REQUEST", help="the number of the request's entry")]
Whose = Annotated[str, typer.Option("--person", help="only spends of this actor; without BUDGET in every budget")]
Which = Annotated[str, typer.Argument(metavar="[BUDGET]", help="the budget's name; all of them with --person alone")]


@options.with_notions(*(name for name in NAMES if name not in {"tpr", "fpr"}))
def request(
    ledger: Where,
    budget: Name,
    purpose: Why,
    notions: options.Notions,
    mechanism: Annotated[str, typer.Option("--mechanism", help="what releases; gaussian unless told")] = "gaussian",
    kappa: Kappa = 0.0,
    partition: Part = "",
    actor: Who = "",
    table: Table = "",
    table_unit: TableUnit = "",
    event: Annotated[str, typer.Option("--event", help="what is released, as a refused spend prints it")] = "",
    what: Annotated[str, typer.Option("--what", help="only a digest of it, where it is too long to print")] = "",
    days: Annotated[float, typer.Option("--days", help="how long it waits for an answer")] = 30.0,
    as_json: options.AsJson = False,
) -> None:
    """Ask for a spend that is above the budget's limit.

    The spend that follows must have exactly these terms. A refused spend prints the command that asks for it, with
    what it would release: whoever approves it reads that.

    Example: psidp ledger request ledger.db survey --sensitivity 1 --sigma 2 --purpose "mean age"
    """
    book = Ledger(ledger)
    guarantee, released = priced(mechanism, notions, kappa, book.budget(budget).guarantee)
    with _warned() as warned:
        entry = book.request(
            budget, guarantee, purpose=purpose, event=_event(event) if event else released, partition=partition,
            actor=actor, table=table, table_unit=table_unit, what=what, days=days,
        )  # fmt: skip
    until = entry.details()["until"][:16]
    said = (
        f"Request {entry.id} asks for psi {up(guarantee.psi)} of budget {budget}, until {until}. Somebody else answers:"
    )
    say(entry, f"{said} psidp ledger approve {ledger} {entry.id} --purpose ...", as_json, warnings=warned)
    _show(warned, as_json)


def approve(
    ledger: Where,
    number: Number,
    purpose: Why,
    days: Annotated[float, typer.Option("--days", help="how long the approval may be used")] = 7.0,
    actor: Who = "",
    as_json: options.AsJson = False,
) -> None:
    """Approve a request that somebody else made.

    It allows one spend of exactly the request's terms. The budget is checked again when it is spent.

    Example: psidp ledger approve ledger.db 7 --purpose "as agreed on Monday"
    """
    book = Ledger(ledger)
    with _warned() as warned:
        entry = book.approve(number, purpose=purpose, days=days, actor=actor)
    request = next(found.details() for found, _ in book.waiting(entry.budget) if found.id == number)
    asked, until = asked_in_words(request), entry.details()["until"][:16]
    said = f"Request {number} of budget {entry.budget} is approved until {until}, as entry {entry.id}."
    say(entry, f"{said} It asks for psi {up(request['psi'])}: {asked}.", as_json, asked=asked, warnings=warned)
    _show(warned, as_json)


def deny(ledger: Where, number: Number, purpose: Why, actor: Who = "", as_json: options.AsJson = False) -> None:
    """Deny a request, or take back an approval that was not used.

    Example: psidp ledger deny ledger.db 7 --purpose "ask for less"
    """
    entry = Ledger(ledger).deny(number, purpose=purpose, actor=actor)
    say(entry, f"Request {number} of budget {entry.budget} is denied, as entry {entry.id}.", as_json)


def limit(
    ledger: Where,
    budget: Name,
    purpose: Why,
    above: Annotated[float | None, typer.Option("--approval-above", help="psi above which a spend needs one")] = None,
    none: Annotated[bool, typer.Option("--none", help="from now on no spend needs one")] = False,
    actor: Who = "",
    as_json: options.AsJson = False,
) -> None:
    """Say from which psi on a spend needs somebody else's approval.

    Example: psidp ledger limit ledger.db survey --approval-above 0.3 --purpose "large ones are looked at"
    """
    if (above is None) != none:
        raise ValueError("give --approval-above PSI, or --none where no spend is to need an approval any more.")
    entry = Ledger(ledger).limit(budget, above, purpose=purpose, actor=actor)
    said = "No spend" if above is None else f"A spend of more than psi {above:g}"
    say(entry, f"{said} of budget {budget} needs an approval, from entry {entry.id} on.", as_json)


def pause(
    ledger: Where,
    purpose: Why,
    budget: Which = "",
    person: Whose = "",
    actor: Who = "",
    as_json: options.AsJson = False,
) -> None:
    """Stop spending, for a while: of a budget, or of a person.

    Answers that are stored come back all the same, since they cost nothing. `resume` ends it; `close` is for good.

    Example: psidp ledger pause ledger.db survey --purpose "until the audit is over"

    Example: psidp ledger pause ledger.db --person bob --purpose "has left"
    """
    book = Ledger(ledger)
    made = book.pause(budget, purpose=purpose, person=person, actor=actor)
    _stopped(made, "paused", person, as_json)
    if person and not book.list(Selection(actor=person), size=1):
        echo(
            f"Nobody has spent here under the name {person!r}. Case and blanks tell no names apart: psidp ledger list "
            f"{ledger} shows who did.",
            err=True,
        )


def resume(
    ledger: Where,
    purpose: Why,
    budget: Which = "",
    person: Whose = "",
    actor: Who = "",
    as_json: options.AsJson = False,
) -> None:
    """Let spending go on that was paused.

    Nobody ends the pause of his own name that somebody else set; the pause of a budget ends by whoever says so.

    Example: psidp ledger resume ledger.db survey --purpose "the audit is over"
    """
    made = Ledger(ledger).resume(budget, purpose=purpose, person=person, actor=actor)
    _stopped(made, "resumed", person, as_json)


def roles() -> None:
    """Print the SQL that gives a PostgreSQL ledger roles.

    Its owner runs it once. Then names are logins, only officers approve, and nobody approves a request of their own.

    Example: psidp ledger roles | psql privacy
    """
    typer.echo(schema.roles(), nl=False)


@contextmanager
def _warned() -> Iterator[list[str]]:
    """What the ledger warns of within, in words, instead of Python's own lines about it."""
    said: list[str] = []
    with catch_warnings(record=True) as seen:
        simplefilter("always")
        yield said
    said += [str(one.message) for one in seen]


def _show(warned: list[str], as_json: bool) -> None:
    """Warnings on standard error; in JSON they stand beside the entry."""
    for sentence in () if as_json else warned:
        echo(f"psidp: {sentence}", err=True)


def _event(text: str) -> dict[str, Any]:
    """What is released, from the JSON that a refused spend printed."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not (isinstance(found, dict) and isinstance(found.get("kind"), str)):
        raise ValueError(f'event (what is released) must be JSON with a "kind", got {text[:40]!r}.')
    return found


def _stopped(made: list[Entry], state: str, person: str, as_json: bool) -> None:
    whom = f" for {person}" if person else ""
    names = ", ".join(entry.budget for entry in made)
    if as_json:
        return show_json({"entries": [entry.to_dict() for entry in made]})
    return say(made[0], f"Spending is {state}{whom} in {names}.", as_json)
