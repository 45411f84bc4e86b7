"""What the commands of `psidp ledger` share: arguments, the price of what is named, and how an entry is shown."""

from typing import Annotated, Any

import typer

from psidp.cli import options
from psidp.cli.balance import plain
from psidp.cli.echo import echo
from psidp.cli.json_output import show_json
from psidp.cli.tables import console
from psidp.guarantee import Guarantee
from psidp.ledger.copies import copy_at
from psidp.ledger.entry import Entry
from psidp.ledger.event import price
from psidp.ledger.ledger import Ledger
from psidp.ledger.reading import LedgerReading

__all__ = ["Kappa", "Name", "Part", "Table", "TableUnit", "Where", "Who", "Why", "priced", "readable", "say"]

Where = Annotated[
    str, typer.Argument(metavar="LEDGER", help="a path (SQLite file), or postgresql://user@host/database")
]
Name = Annotated[str, typer.Argument(metavar="BUDGET", help="the budget's name")]
Why = Annotated[str, typer.Option("--purpose", help="why, in words")]
Who = options.Actor
Kappa = Annotated[float, typer.Option("--kappa", help="probability of outright failure, [0, 1)")]
Part = Annotated[str, typer.Option("--partition", help="the part of the data that is read")]
Table = Annotated[str, typer.Option("--table", help="the table that is read")]
TableUnit = Annotated[str, typer.Option("--table-unit", help="the column of it that names units")]


def readable(ledger: str) -> LedgerReading:
    """The ledger, to be read; or the copy that lies there, with a line that says what it is."""
    copy = copy_at(ledger)
    if copy is None:
        return Ledger(ledger)
    said = f"{ledger} was used as {copy.original} before, so it is read as a copy: nothing can be spent from it"
    echo(f"psidp: {said}, and what was spent since is not in it.", err=True)
    return copy


def priced(mechanism: str, given: dict[str, float], kappa: float, terms: Guarantee) -> tuple[Guarantee, dict[str, Any]]:
    """What a mechanism with these properties costs: the Gaussian reading for a Gaussian one only."""
    context: Any = {"adjacency": terms.adjacency, "unit": terms.unit}
    if set(given) == {"psi"}:
        return Guarantee(given["psi"], kappa, **context), {"kind": "guarantee", "mechanism": mechanism}
    if mechanism != "gaussian":
        event = {"kind": "claim", "mechanism": mechanism} | given | ({"kappa": kappa} if kappa else {})
        worth = price(event, **context)
        return worth or terms, event
    if kappa:
        raise ValueError(f"kappa must be 0 for a Gaussian mechanism, got kappa={kappa}.")
    guarantee = options.chosen(terms.adjacency, terms.unit, given)
    if set(given) == {"sensitivity", "sigma"}:
        return guarantee, {"kind": "gaussian"} | given
    return guarantee, {"kind": "guarantee", "mechanism": mechanism} | given


def say(entry: Entry, sentence: str, as_json: bool, **more: Any) -> None:
    """The entry as JSON, or a sentence about it."""
    if as_json:
        return show_json({"entry": entry.to_dict()} | more)
    return console.print(plain(sentence))
