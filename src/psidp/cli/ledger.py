"""psidp ledger: open a budget, spend from it, see what is left, verify that nobody changed the past."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from psidp.cli import options
from psidp.cli.balance import closed_or_left, in_words, plain, show_budgets, show_report
from psidp.cli.echo import echo
from psidp.cli.json_output import show_json
from psidp.cli.ledger_answer import answer
from psidp.cli.ledger_list import list_, report
from psidp.cli.ledger_officer import approve, deny, limit, pause, request, resume, roles
from psidp.cli.ledger_options import Kappa, Name, Part, Table, TableUnit, Where, Who, Why, priced, readable, say
from psidp.cli.tables import console
from psidp.ledger.budget import Partitions
from psidp.ledger.ledger import Ledger
from psidp.ledger.private_file import private
from psidp.ledger.verify import Head
from psidp.maths.notion import NAMES
from psidp.maths.sensitivity import check_adjacency
from psidp.present.formatting import up
from psidp.present.ledger_report import numbered

__all__ = ["app"]

QUESTIONS = """An officer asks: What was spent on this table this year, by whom, for what? `list LEDGER --table
visits.csv --since 2026`. What is left? `show`. Who allowed the largest? `report`. Who waits for my word? `list LEDGER
--waiting`. Stop this person: `pause LEDGER --person bob`. What if the file is lost? `export` it regularly; `import`
brings it back."""

SQLITE = b"SQLite format 3\0"
"""How the files of SQLite begin."""

app = typer.Typer(
    help="A privacy budget that cannot be overspent, lost or forgotten.",
    epilog=QUESTIONS,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("open")
@options.with_notions("psi", "epsilon", "delta", "auc", "advantage", "zcdp")
def open_(
    ledger: Where,
    budget: Name,
    purpose: Why,
    notions: options.Notions,
    kappa: Kappa = 0.0,
    adjacency: options.Adjacent = "add-remove",
    unit: options.Unit = "record",
    actor: Who = "",
    renews: Annotated[str, typer.Option("--renews", help="day, week, month, quarter or year")] = "",
    column: Annotated[str, typer.Option("--partition-column", help="public column of disjoint partitions")] = "",
    partition: Annotated[list[str], typer.Option("--partition", help="a value of that column; once for each")] = [],  # noqa: B006
    declared_by: Annotated[str, typer.Option("--declared-by", help="who says that no unit lies in two of them")] = "",
    approval_above: Annotated[
        float | None,
        typer.Option(
            "--approval-above", help="psi above which a spend needs somebody else's approval, whatever its kappa"
        ),
    ] = None,
    meant_for: Annotated[str, typer.Option("--table", help="the table that it is meant for")] = "",
    exist_ok: Annotated[bool, typer.Option("--exist-ok", help="accept one that has the same terms")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Open a budget, once; the first one makes the ledger.

    Example: psidp ledger open ledger.db survey --psi 1 --unit patient --purpose "the 2026 survey"
    """
    cap = options.chosen(adjacency, unit, notions)
    parts = Partitions(column, tuple(partition), declared_by) if column or partition or declared_by else None
    book = Ledger(ledger)
    entry = book.open(
        budget, cap.psi, kappa, actor=actor, purpose=purpose, unit=unit, adjacency=check_adjacency(adjacency),
        partitions=parts, renews=renews, approval_above=approval_above, table=meant_for,  # type: ignore[arg-type]
        exist_ok=exist_ok,
    )  # fmt: skip
    beside = book.beside(budget)
    more = f" {_beside(beside, unit)}" if beside else ""
    say(entry, f"Budget {budget} is open with psi {up(cap.psi)}, as entry {entry.id}.{more}", as_json, beside=beside)


@app.command()
@options.with_notions(*(name for name in NAMES if name not in {"tpr", "fpr"}))
def spend(
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
    as_json: options.AsJson = False,
) -> None:
    """Write down a release before it is made. Nothing refunds.

    Example: psidp ledger spend ledger.db survey --sensitivity 1 --sigma 4 --purpose "mean age"
    """
    book = Ledger(ledger)
    terms = book.budget(budget).guarantee
    guarantee, event = priced(mechanism, notions, kappa, terms)
    spending = book.spend(
        budget, guarantee, purpose=purpose, event=event, partition=partition, actor=actor, table=table,
        table_unit=table_unit,
    )  # fmt: skip
    with spending as spent:
        left = book.remaining(budget, partition)
    said = f"Entry {spent.id} spends psi {up(guarantee.psi)} of budget {budget}. {in_words(left)}"
    say(spent.entry, said, as_json, remaining={"psi": left.psi, "kappa": left.kappa})


@app.command()
def show(
    ledger: Where,
    budget: Annotated[str, typer.Argument(metavar="[BUDGET]", help="one budget; all of them unless told")] = "",
    as_json: options.AsJson = False,
) -> None:
    """Show how budgets stand: what was spent, what is left.

    Both now and since they were opened.

    Example: psidp ledger show ledger.db survey
    """
    book = readable(ledger)
    if budget:
        found, history = book.report(budget), book.history(budget)
        points = [{"time": time, "psi": psi} for time, psi in history]
        return show_json(found.to_dict() | {"history": points}) if as_json else show_report(found, history)
    reports = [book.report(name) for name in book.budgets()]
    return show_json({"budgets": [r.to_dict() for r in reports]}) if as_json else show_budgets(reports)


@app.command()
def remaining(ledger: Where, budget: Name, partition: Part = "", as_json: options.AsJson = False) -> None:
    """Say how much is left.

    Example: psidp ledger remaining ledger.db survey
    """
    book = Ledger(ledger)
    left = book.remaining(budget, partition)
    if as_json:
        return show_json({"budget": budget, "remaining": left.to_dict()})
    return console.print(plain(closed_or_left(book.report(budget), left)))


@app.command("raise")
def raise_(
    ledger: Where,
    budget: Name,
    psi: Annotated[float, typer.Option("--psi", help="the new cap")],
    purpose: Why,
    kappa: Kappa = 0.0,
    actor: Who = "",
    as_json: options.AsJson = False,
) -> None:
    """Raise a budget's cap; every report will say so."""
    entry = Ledger(ledger).raise_to(budget, psi, kappa, actor=actor, purpose=purpose)
    say(entry, f"Budget {budget} is raised to psi {up(psi)}, as entry {entry.id}.", as_json)


@app.command()
def reset(ledger: Where, budget: Name, purpose: Why, actor: Who = "", as_json: options.AsJson = False) -> None:
    """Begin a budget anew; every report will say so.

    Reports go on showing the total since it was opened.
    """
    entry = Ledger(ledger).reset(budget, actor=actor, purpose=purpose)
    say(entry, f"Budget {budget} begins anew with entry {entry.id}; its lifetime total goes on.", as_json)


@app.command()
def close(ledger: Where, budget: Name, purpose: Why, actor: Who = "", as_json: options.AsJson = False) -> None:
    """Close a budget for good."""
    entry = Ledger(ledger).close(budget, actor=actor, purpose=purpose)
    say(entry, f"Budget {budget} is closed, as entry {entry.id}.", as_json)


@app.command()
def split(
    ledger: Where,
    budget: Name,
    share: Annotated[list[str], typer.Option("--share", help="NAME=WEIGHT, once for each share")],
    purpose: Why,
    actor: Who = "",
    as_json: options.AsJson = False,
) -> None:
    """Give all that is left to shares, which are new budgets.

    Their psi^2 sum to it exactly.

    Example: psidp ledger split ledger.db survey --share team-a=2 --share team-b=1 --purpose "two teams"
    """
    made = Ledger(ledger).split(budget, dict(map(_weight, share)), actor=actor, purpose=purpose)
    names = ", ".join(entry.budget for entry in made[1:])
    say(made[0], f"Budget {budget} is split into {names}.", as_json, shares=[entry.to_dict() for entry in made[1:]])


@app.command()
def verify(
    ledger: Where,
    head: Annotated[str, typer.Option("--head", help="one kept earlier, which must still be in the ledger")] = "",
    kept: Annotated[
        str, typer.Option("--kept", help="file of the last verification: only what is new is read; then written anew")
    ] = "",
    key: Annotated[str, typer.Option("--key", help="file with the secret that signs --kept; made if missing")] = "",
    as_json: options.AsJson = False,
) -> None:
    """Recompute every entry; name the first that is not as written.

    Every hash, price and total.

    Example: psidp ledger verify ledger.db

    Example: psidp ledger verify ledger.db --kept /safe/ledger.kept --key /safe/ledger.key
    """
    begun = kept and Path(kept).exists()
    found = readable(ledger).verify(head or None, kept=kept or None, key=key or None)
    if as_json:
        unknown = list(found.not_recomputed)
        show_json({"verified": not unknown, "entries": found.id, "head": str(found), "not_recomputed": unknown})
    else:
        whole = f"All entries after those that {kept} vouches for" if begun else f"All {found.id} entries"
        echo(f"{whole} are what was written{_but(found)}. The head is\n{found}")
    if found.not_recomputed:
        raise typer.Exit(2)


@app.command()
def head(ledger: Where, as_json: options.AsJson = False) -> None:
    """Print the last entry's number and hash, for others to keep.

    Whoever keeps it can tell later whether the ledger was cut.
    """
    found = readable(ledger).head()
    return show_json({"id": found.id, "hash": found.hash, "head": str(found)}) if as_json else echo(str(found))


@app.command()
def export(
    ledger: Where,
    output: Annotated[str, typer.Option("--output", "-o", help="a new file; - is standard output")] = "-",
) -> None:
    """Write the ledger as lines of JSON, for `import`.

    Anybody can verify them. Keep them elsewhere, with the head. If the file is lost, `import` brings it back as it was
    at the last export; write down by hand, with `spend`, what was released since.

    Example: psidp ledger export ledger.db -o /backup/ledger-2026-05-09.jsonl
    """
    lines = (f"{line}\n" for line in readable(ledger).export())
    if output == "-":
        sys.stdout.writelines(lines)
        return
    with open(output, "x", encoding="utf-8", opener=private) as file:
        file.writelines(lines)


@app.command("import")
def import_(
    ledger: Where,
    source: Annotated[str, typer.Argument(metavar="FILE", help="what export wrote; - is standard input")],
    as_json: options.AsJson = False,
) -> None:
    """Verify an exported ledger and write it to a new database.

    The database is a file or a server. This is how a lost ledger comes back, and how one moves to a server.

    Example: psidp ledger import ledger.db /backup/ledger-2026-05-09.jsonl
    """
    if source == "-":
        made = Ledger.restore(ledger, sys.stdin)
    else:
        _check_export(source)
        with Path(source).open(encoding="utf-8", errors="replace") as file:  # what is no text is not what was written
            made = Ledger.restore(ledger, file)
    found = made.head()
    if as_json:
        return show_json({"entries": found.id, "head": str(found)})
    return echo(f"{found.id} entries were verified and written. The head is\n{found}")


@app.command()
def moved(
    ledger: Where,
    purpose: Why,
    actor: Who = "",
    head: Annotated[str, typer.Option("--head", help="one kept earlier, which must still be in the ledger")] = "",
    as_json: options.AsJson = False,
) -> None:
    """Accept a ledger file at its new place.

    For a file that was moved, copied or restored. It is verified first. Keep no second one: two of them would spend
    the budget twice.

    Example: psidp ledger moved ledger.db --purpose "restored from the backup of Monday"
    """
    found = Ledger(ledger).moved(actor=actor, purpose=purpose, head=head or None)
    if as_json:
        return show_json({"entries": found.id, "head": str(found)})
    return echo(f"{found.id} entries were verified; the ledger goes on from here. The head is\n{found}")


def _but(found: Head) -> str:
    """Which entries were not recomputed, in words; "" where all were."""
    if not found.not_recomputed:
        return ""
    return f", as far as this psidp knows their kind. Not recomputed: {numbered(found.not_recomputed)}"


def _check_export(source: str) -> None:
    """Refuse a ledger where its export should be: the two are easily swapped."""
    with Path(source).open("rb") as file:
        if file.read(len(SQLITE)) == SQLITE:
            raise ValueError(
                f"FILE (what psidp ledger export wrote) must be lines of JSON, got {source!r}, which is a database. "
                "The ledger that is made comes first, then the file: psidp ledger import LEDGER FILE."
            )


def _weight(word: str) -> tuple[str, float]:
    name, _, number = word.rpartition("=")
    try:
        return name, float(number)
    except ValueError:
        raise ValueError(f"a share must read NAME=WEIGHT, got {word!r}.") from None


def _beside(names: list[str], unit: str) -> str:
    """What others protect the same unit, in words."""
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"The same {unit} is protected by {listed}: what they spend adds up, and psidp ledger show tells the total."


for _command, _called in (
    (list_, "list"), (report, "report"), (request, "request"), (approve, "approve"), (deny, "deny"), (limit, "limit"),
    (pause, "pause"), (resume, "resume"), (roles, "roles"), (answer, "answer"),
):  # fmt: skip
    app.command(_called)(_command)
