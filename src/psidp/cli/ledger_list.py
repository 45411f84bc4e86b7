"""psidp ledger list and report: who asked what, when, of which table, at what price, and who allowed it."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from psidp.cli import options
from psidp.cli.balance import plain
from psidp.cli.echo import echo
from psidp.cli.json_output import show_json
from psidp.cli.ledger_options import Where, readable
from psidp.cli.tables import console, table
from psidp.errors import TamperedLedgerError
from psidp.ledger.event_words import asked_in_words
from psidp.ledger.listing import Selection
from psidp.ledger.reading import LedgerReading
from psidp.ledger.statement import Line, Statement
from psidp.present.formatting import up
from psidp.present.ledger_report import FORMATS, written

__all__ = ["list_", "report"]

OfBudget = Annotated[str, typer.Option("--budget", help="only this budget")]
OfActor = Annotated[str, typer.Option("--actor", help="only what this actor did")]
OfTable = Annotated[str, typer.Option("--table", help="only what was read from this table")]
Since = Annotated[str, typer.Option("--since", help="2026, 2026-05, 2026-05-09 or 2026-05-09T12:00, in UTC")]
Until = Annotated[str, typer.Option("--until", help="the same, included: 2026 reaches to the end of the year")]


def list_(
    ledger: Where,
    budget: OfBudget = "",
    actor: OfActor = "",
    of_table: OfTable = "",
    since: Since = "",
    until: Until = "",
    state: Annotated[str, typer.Option("--state", help="spent unless told; all: also what cost nothing")] = "spent",
    waiting: Annotated[bool, typer.Option("--waiting", help="only requests that wait, and unused approvals")] = False,
    size: Annotated[int, typer.Option("--size", help="entries of a page")] = 20,
    before: Annotated[int | None, typer.Option("--before", help="the page before this entry")] = None,
    as_json: options.AsJson = False,
) -> None:
    """List spends, the newest first, a page at a time.

    Where one page holds them all, their total per unit stands below.

    Example: psidp ledger list ledger.db --table visits.csv --since 2026

    Example: psidp ledger list ledger.db --waiting
    """
    book = readable(ledger)
    if waiting:
        return _waiting(book, budget, as_json)
    which = Selection(
        budget=budget, actor=actor, table=of_table, since=since, until=until, state="" if state == "all" else state
    )
    found = book.list(which, size=size, before=before)
    more = len(found) == size and bool(book.list(which, size=1, before=found[-1].id))
    results = book.results(found)
    lines = [Line.of(entry, book.approver(entry), results.get(entry.id, "")) for entry in found]
    if as_json:
        said = [
            {"actor": line.actor, "table": line.table, "approved_by": line.approved_by, "result": line.result}
            for line in lines
        ]
        entries = [entry.to_dict() | more for entry, more in zip(found, said, strict=True)]
        return show_json({"entries": entries, "before": found[-1].id if more else None})
    if not found:
        _check_known(book, which)
        return console.print(plain("Nothing was found" + (f" for {which.in_words()}." if which.in_words() else ".")))
    made = _on_one_line(
        table("", ["entry", "time", "budget", "actor", "table", "what for", "result"], ["psi", "kappa"]), 1
    )
    for entry, line in zip(found, lines, strict=True):
        price = (up(line.psi), up(line.kappa)) if entry.state == "spent" else ("", "")
        who = line.actor or "-"
        purpose = line.purpose if entry.state == "spent" else f"{entry.what()}: {line.purpose}"
        purpose += f" (approved by {line.approved_by})" if line.approved_by else ""
        made.add_row(
            str(line.id),
            _minute(line.time),
            *map(plain, (line.budget, who, line.table or "-", purpose, line.result)),
            *price,
        )
    console.print(made)
    if more:
        console.print(plain(f"Older ones: --before {found[-1].id}. What all cost together: psidp ledger report."))
    elif before is None and state == "spent":
        for (unit, side), total in book.statement(which).units.items():
            console.print(plain(f"Together psi {up(total['psi'])} per {unit} ({side}): squares of psi add up."))
    return None


def report(
    ledger: Where,
    year: Annotated[str, typer.Option("--year", help="a year, or a month (2026-05); everything unless told")] = "",
    budget: OfBudget = "",
    actor: OfActor = "",
    of_table: OfTable = "",
    since: Since = "",
    until: Until = "",
    output: Annotated[str, typer.Option("--output", "-o", help="file: .html, .md or .json; - prints Markdown")] = "-",
    as_json: options.AsJson = False,
) -> None:
    """Write what was spent in a year, as HTML or Markdown.

    A page for others: totals per unit over all budgets, by budget, table and actor; the largest spends and who
    allowed them; what changed; the spending over time. Every entry is verified first; of a ledger that was changed
    there is no report.

    Example: psidp ledger report ledger.db --year 2026 -o 2026.html
    """
    if year and (since or until):
        raise ValueError("year must be given alone, without since and until.")
    which = Selection(budget=budget, actor=actor, table=of_table, since=since or year, until=until or year)
    form = "md" if output == "-" else Path(output).suffix.removeprefix(".")
    if form not in FORMATS:
        raise ValueError(f"output must end in one of {', '.join('.' + name for name in FORMATS)}, got {output!r}.")
    book = readable(ledger)
    found = _verified(book, which)
    if as_json:
        return show_json(found.to_dict())
    _check_known(book, which)
    text = written(found, form)
    if output == "-":
        sys.stdout.write(text)
        return None
    Path(output).write_text(text, encoding="utf-8")
    return echo(f"{output} written", err=True)


def _verified(book: LedgerReading, which: Selection) -> Statement:
    """The statement on a ledger whose every entry was recomputed; of another one there is no report."""
    try:
        return book.verified_statement(which)
    except TamperedLedgerError as found:
        raise TamperedLedgerError(f"no report was written: {found}", found.entry) from None


def _check_known(book: LedgerReading, which: Selection) -> None:
    """Say that a name is in no entry, and end with 1: a name with a slip in it must not look like nothing spent."""
    for name in ("budget", "actor", "table"):
        value = getattr(which, name)
        if value and not book.list(Selection(**{name: value}, state=""), size=1):
            console.print(plain(f"Nothing matches: no entry has the {name} {value!r}. Names are taken to the letter."))
            raise typer.Exit(1)


def _minute(stamp: str) -> str:
    return stamp[:16].replace("T", " ")


def _on_one_line(made: Table, column: int) -> Table:
    """The table with one column, of times, that is never folded."""
    made.columns[column].no_wrap, made.columns[column].min_width = True, len("2026-05-09 12:00")
    return made


def _waiting(book: LedgerReading, budget: str, as_json: bool) -> None:
    """Requests that wait for an answer, and approvals that wait for their spend."""
    found = book.waiting(budget)
    if as_json:
        rows: list[dict[str, Any]] = [
            entry.to_dict() | {"approved": asked.approved, "asked": asked_in_words(entry.details())}
            for entry, asked in found
        ]
        return show_json({"waiting": rows})
    if not found:
        return console.print("No request waits.")
    made = table("", ["request", "budget", "actor", "table", "what for", "state", "until"], ["psi", "kappa"])
    made = _on_one_line(made, 6)
    for entry, asked in found:
        event = entry.details()
        state = f"approved, entry {asked.approved}" if asked.approved else "waits"
        words = (entry.budget, asked.by, event.get("table", "-"), entry.purpose, state)
        made.add_row(str(entry.id), *map(plain, words), _minute(asked.until), up(event["psi"]), up(event["kappa"]))
    console.print(made)
    for entry, _ in found:
        console.print(plain(f"Request {entry.id} asks: {asked_in_words(entry.details())}."))
    return None
