"""The demonstration: a clinic's table, a budget, releases, a refusal, a weekly series, tables that agree."""

import os
import sys
from pathlib import Path
from shutil import which
from typing import Annotated

import typer

from psidp.cli.demo_data import DIAGNOSES, FIRST_WEEK, WARDS, WEEKS, write_visits
from psidp.cli.release_table import shown
from psidp.cli.tables import console, table
from psidp.errors import BudgetExceededError, MissingExtraError
from psidp.ledger.ledger import Ledger
from psidp.present.figures import heat_map, save, series
from psidp.present.formatting import up
from psidp.present.words import sentences
from psidp.tables import ask
from psidp.tables.answer import Answer
from psidp.tables.choices.private_groups import PrivateGroups
from psidp.tables.curator import Curator

__all__ = ["demo"]

BUDGET, PSI, KAPPA = "survey-2026", 1.0, 1e-6


def demo(
    folder: Annotated[Path, typer.Option("--folder", help="where its files go")] = Path("psidp-demo"),
) -> None:
    """Show in a minute what psidp does and what it means.

    A clinic's table, a budget, three releases, a refusal.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("ledger.db*"):
        stale.unlink()
    console.rule("1. A table and a budget")
    path, rows = write_visits(folder)
    ledger = Ledger(folder / "ledger.db")
    ledger.open(BUDGET, PSI, KAPPA, unit="patient", actor="the clinic", purpose="what the 2026 survey may reveal")
    curator = Curator(path, unit="patient_id", ledger=ledger, budget=BUDGET)
    console.print(
        f"A made-up clinic has {rows:,} visits in {path}. It allows psi = {PSI:g} for each patient over everything it "
        f"will ever publish of them, and opens the budget {BUDGET!r} in {folder / 'ledger.db'}.\n",
    )
    _releases(curator, folder)
    _refusal(curator)
    _weekly(curator, folder)
    _tables(curator, folder)
    console.rule("8. What it means")
    spent = ledger.report(BUDGET).spent
    console.print(f"Spent so far: psi = {up(spent.psi)}, kappa = {up(spent.kappa, 2)}, per patient.\n")
    for sentence in sentences(spent):
        console.print(f"{sentence}\n")
    command = "psidp" if which("psidp") else os.path.relpath(sys.argv[0])  # ./dev demo installs into .venv
    console.print(
        f"To look at: visits.csv, wards.csv, wards_answer.csv, plan.sql, weekly.svg, tables.svg and ledger.db in "
        f"{folder}. Next: {command} ledger show {folder / 'ledger.db'}, {command} release table --help, {command} "
        "explain --psi 1.",
    )
    ledger.dispose()


def _releases(curator: Curator, folder: Path) -> None:
    """Three questions that fit."""
    console.rule("2. First the plan, then the first release")
    wards = folder / "wards.csv"
    question = curator.ask(ask.count(), ask.sum("cost", 0, 5000), by="ward", groups=wards, contribution=4)
    plan = question.plan(psi=0.55)
    (folder / "plan.sql").write_text(";\n\n".join(plan.sql) + ";\n", encoding="utf-8")
    console.print(f"{plan.summary()}\n")
    answer = question.release(psi=0.55, retry_key="wards")
    (folder / "wards_answer.csv").write_text(answer.frame().to_csv(index=False), encoding="utf-8")
    _show(answer)
    console.print("No ward is called quarantine in the table: a public key that is absent has noise alone.\n")
    console.rule("3. Asked again")
    again = question.release(psi=0.55, retry_key="wards")
    same = list(again) == list(answer)
    console.print(
        f"The same question under the same key gives {'the very same' if same else 'other'} numbers, from the ledger. "
        f"{again.left}\n",
    )
    console.rule("4. Two more releases")
    measures = (ask.mean("cost", 0, 5000), ask.quantiles("age", range(18, 103, 4)))
    _show(curator.ask(*measures, where="age >= 18", contribution=2).release(psi=0.5))
    groups = PrivateGroups(kappa=1e-9, at_most=6)
    _show(curator.ask(ask.units(), by="diagnosis", groups=groups, contribution="auto").release(psi=0.5))
    console.print(
        "Here nobody named the diagnoses beforehand. Those that a crowd has came through the threshold; a patient with "
        "a syndrome of his own does not make it appear.\n"
    )


def _refusal(curator: Curator) -> None:
    """The question that does not fit."""
    console.rule("5. A fourth that does not fit")
    try:
        curator.ask(ask.histogram("age", range(0, 111, 10))).release(psi=0.5)
    except BudgetExceededError as refusal:
        console.print(f"{refusal}\n")


def _weekly(curator: Curator, folder: Path) -> None:
    """A number for every week of a year, at one price."""
    console.rule("6. A number that goes on")
    question = curator.stream(
        "new patients", ask.units(), every="week", since=FIRST_WEEK, periods=WEEKS, cap=ask.cap(at_most=1),
        arrived="loaded_at", windows=[4],
    )  # fmt: skip
    console.print(f"{question.plan(psi=0.3)}\n")
    stream = question.open(psi=0.3, purpose="new patients by week")
    console.print(
        f"Opened, psi = 0.3 is paid for all {WEEKS} weeks. A patient counts in the first week with a visit. Published "
        f"now, late, as the year is over: {len(stream.publish())} weeks; published again: {len(stream.publish())}.\n",
    )
    rows = stream.series("total to date")
    made = table("New patients to date", ["week"], ["value", "standard error", "lower", "upper"])
    for row in rows[3::8]:
        made.add_row(str(row.period), *(f"{number:,.1f}" for number in row[3:7]))
    console.print(made)
    try:
        picture = save(series(rows, "New patients to date", stream.question.confidence), folder / "weekly.svg")
        console.print(f"The picture of it is {picture}.\n")
    except MissingExtraError as missing:
        console.print(f"{missing}\n")


def _tables(curator: Curator, folder: Path) -> None:
    """All tables of three columns, for what is left of the budget."""
    console.rule("7. Tables that agree with each other")
    columns = {"ward": WARDS, "diagnosis": DIAGNOSES, "age": ask.bins([0, 18, 40, 65, 120])}
    question = curator.cube(columns, ask.up_to(2), contribution=4)
    console.print(f"{question.plan(psi=0.25).summary()}\n")
    cube = question.release(psi=0.25, retry_key="cross-tables")
    for names in (("ward",), ("age",)):
        console.print(shown(cube.table(*names)))
    old = cube.query({"ward": "geriatrics", "age": [65.0]})
    total, added = cube.query().value, sum(row["value"] for row in cube.table("ward", "diagnosis"))
    console.print(
        f"A drill-down that costs nothing more: {old.value:,.0f} visits to geriatrics at 65 and above, from "
        f"{old.lower:,.0f} to {old.upper:,.0f}. All tables agree: the {len(WARDS) * len(DIAGNOSES)} cells of ward by "
        f"diagnosis add up to {added:,.2f}, and the total is {total:,.2f}.\n",
    )
    try:
        picture = save(heat_map(cube.table("ward", "age")), folder / "tables.svg")
        console.print(f"A picture of one of them is {picture}. {cube.left}\n")
    except MissingExtraError as missing:
        console.print(f"{missing}\n")


def _show(answer: Answer) -> None:
    console.print(shown(answer))
    console.print(f"{answer.summary()}\n")
