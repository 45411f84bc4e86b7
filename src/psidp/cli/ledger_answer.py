"""psidp ledger answer: what is stored under a retry key, read from the ledger alone, at no cost."""

import json
from typing import Annotated, Any

import numpy as np
import typer

from psidp.cli import options
from psidp.cli.echo import echo
from psidp.cli.json_output import show_json
from psidp.cli.ledger_options import Where, readable
from psidp.cli.publishing import Output
from psidp.cli.release_cube import show_cube
from psidp.cli.release_table import show_answer
from psidp.cli.stream import published_rows, show_published
from psidp.forms import check_form
from psidp.ledger.entry import Entry
from psidp.ledger.reading import LedgerReading
from psidp.mechanism.gaussian import FORM as RELEASE
from psidp.mechanism.stream_store import period_under
from psidp.present.formatting import up
from psidp.tables.answer import Answer
from psidp.tables.cube_answer import Cube
from psidp.tables.series import stored_numbers

__all__ = ["answer"]


def answer(
    ledger: Where,
    key: Annotated[str, typer.Argument(metavar="KEY", help="the retry key of the release")],
    budget: Annotated[str, typer.Option("--budget", help="whose key it is, where several budgets have it")] = "",
    as_json: options.AsJson = False,
) -> None:
    """Print the answer that is stored under a retry key. It costs nothing.

    Of a stream, "stream NAME: period 7" is the key of the seventh period.

    Example: psidp ledger answer ledger.db wards-2026
    """
    book = readable(ledger)
    entry = book.answer_entry(key, budget)
    spend = book.spent(entry.refers)
    numbers = _period(book, entry)
    if as_json:
        values = {"retry_key": key, "budget": entry.budget, "entry": entry.id, "spend": spend.id, "time": spend.time}
        values |= {"purpose": spend.purpose, "psi": spend.psi, "kappa": spend.kappa, "answer": json.loads(entry.answer)}
        return show_json(values | ({"published": published_rows(numbers)} if numbers else {}))
    _show(json.loads(entry.answer), numbers)
    said = f"Stored in entry {entry.id} of budget {entry.budget}; entry {spend.id} spent psi {up(spend.psi)}"
    return echo(f"{said}, {spend.time[:10]}: {spend.purpose}", err=True)


def _period(book: LedgerReading, entry: Entry) -> list[Any]:
    """The numbers of a stream's period; none where the answer is of something else."""
    found = period_under(entry.key)
    return [] if found is None else stored_numbers(book, entry.budget, *found)


def _show(value: Any, numbers: list[Any]) -> None:
    """The numbers as the release itself shows them; any other value as JSON."""
    if numbers:
        return show_published(numbers)
    names = set(value) if isinstance(value, dict) else set()
    if names >= {"columns", "marginals", "layers"}:
        return show_cube(Cube.from_dict(value).settled("", True))
    if names >= {"by", "rows", "guarantee"}:
        return show_answer(Answer.from_dict(value).settled("", True), Output())
    if {"value"} <= names <= {"form", "dtype", "value"}:
        check_form(value.get("form"), RELEASE, "the stored release")
        for number in np.atleast_1d(value["value"]).ravel().tolist():
            echo(repr(number))
        return None
    return show_json(value)
