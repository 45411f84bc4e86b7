"""How a budget stands, on a terminal: a table, the spending over time, and what is left in words."""

from datetime import datetime
from typing import Any

from rich.text import Text

from psidp.cli.chart import draw
from psidp.cli.tables import console, table
from psidp.escaping import visible
from psidp.guarantee import Guarantee
from psidp.ledger.budget_refusal import CLOSED
from psidp.ledger.report import Report
from psidp.present.formatting import down, up

__all__ = ["closed_or_left", "in_words", "plain", "show_budgets", "show_report"]


def plain(text: str) -> Text:
    """Text as it is, except that control characters other than line breaks are made visible."""
    return Text(visible(text))


def in_words(left: Guarantee) -> str:
    """What is left, in a sentence."""
    if not left.psi > 0.0:
        return "Nothing is left: no release fits, however much noise it has."
    delta = max(1e-5, 2.0 * left.kappa)
    sentence = (
        f"psi {down(left.psi)} is left: a Gaussian release fits if its sigma is at least {up(left.sigma(1.0))} times "
        f"its sensitivity. Spent at once, that is epsilon {down(float(left.epsilon(delta)))} at delta = {up(delta)}."
    )
    return sentence + (f" kappa {down(left.kappa)} is left." if left.kappa else "")


def closed_or_left(report: Report, left: Guarantee) -> str:
    """What is left, in words; of a closed budget, what to do; of a paused one, that it is."""
    if report.closed:
        return f"Budget {report.budget.name} takes no more releases. {CLOSED}"
    paused = f" Spending is paused for {_names(report.paused)}." if report.paused else ""
    return in_words(left) + paused


def _names(paused: tuple[str, ...]) -> str:
    return "everybody" if "" in paused else ", ".join(paused)


def _paused(paused: tuple[str, ...]) -> str:
    """Behind a budget's name: whether nobody may spend, or who may not."""
    return " (paused)" if "" in paused else f" (paused for {_names(paused)})" if paused else ""


def show_report(report: Report, history: list[tuple[str, float]]) -> None:
    """One budget: terms, amounts, chart, changes."""
    b = report.budget
    console.print(plain(f"{b.name}: {b.purpose}"), style="bold")
    console.print(plain(f"per {b.unit}, {b.adjacency}; opened by {b.actor}{_special(report)}"))
    rows = table("", ["amount"], ["psi", "kappa"])
    current = f"spent in {report.period}" if report.period else "spent since the last reset"
    for words, amount, digits in (
        ("may be spent" + (f" each {b.renews}" if b.renews else ""), report.cap, down),
        (current if report.era > 1 or report.period else "spent", report.spent, up),
        ("given to shares", report.allotted, up),
        ("left", report.remaining, down),
        ("spent since it was opened", report.lifetime, up),
        (f"spent per {b.unit} in all budgets", report.unit_total, up),
    ):
        if amount.psi or amount.kappa or amount is not report.allotted:
            rows.add_row(plain(words), digits(amount.psi), digits(amount.kappa))
    count, lost = report.unreleased
    if count:
        words = f"of which failed or interrupted, {count:,} {'spend' if count == 1 else 'spends'}"
        rows.add_row(plain(words), up(lost.psi), up(lost.kappa))
    console.print(rows)
    console.print("psi spent since it was opened")
    for line in draw([(datetime.fromisoformat(time), psi) for time, psi in history], width=60):
        console.print(Text(line), no_wrap=True)
    console.print()
    for change in report.changes:
        who = change.details().get("by", "the calendar")
        console.print(plain(f"{change.time[:16]}  entry {change.id}  {change.what()} by {who}: {change.purpose}"))
    for entry in report.units:
        console.print(plain(f"{entry.time[:16]}  entry {entry.id}  {_unit_in_words(entry.details(), b.unit)}"))
    console.print()
    for asked in report.waiting:
        state = f"approved in entry {asked.approved}" if asked.approved else "waits for an answer"
        console.print(plain(f"Request {asked.id} of {asked.by} {state}, until {asked.until[:16]}."))
    console.print(plain(closed_or_left(report, report.remaining)))


def _unit_in_words(event: dict[str, Any], unit: str) -> str:
    """Which column names the units, and why another one does as well."""
    column = event["unit_column"]
    named = f"every row is one {unit}" if column is None else f"{_columns_in_words(column)} each {unit}"
    if "budget_unit_column" in event:
        first = event["budget_unit_column"]
        named += f", the same as {'a row' if first is None else _columns_in_words(first)}"
    return named + (f": {event['same_unit']}" if "same_unit" in event else "")


def _columns_in_words(columns: str | list[str]) -> str:
    return f"column {columns} names" if isinstance(columns, str) else f"columns {' and '.join(columns)} name"


def show_budgets(reports: list[Report]) -> None:
    """All budgets, one line each."""
    rows = table("Budgets", ["budget", "unit", "adjacency"], ["psi", "spent", "left", "since opened"])
    for r in reports:
        name = plain(r.budget.name + (" (closed)" if r.closed else _paused(r.paused)))
        amounts = (down(r.cap.psi), up(r.spent.psi), down(r.remaining.psi), up(r.lifetime.psi))
        rows.add_row(name, plain(r.budget.unit), r.budget.adjacency, *amounts)
    console.print(rows)
    for total in {(r.budget.unit, r.budget.adjacency): r.unit_total for r in reports}.values():
        console.print(plain(f"psi {up(total.psi)} was spent per {total.unit} ({total.adjacency}) over all budgets."))


def _special(report: Report) -> str:
    b = report.budget
    said = f"; renews each {b.renews}" if b.renews else ""
    said += f"; spends above psi {report.above:g} need an approval" if report.above is not None else ""
    said += f"; for the table {b.table}" if b.table else ""
    said += f"; a share of {b.part_of}" if b.part_of else ""
    if b.partitions:
        parts = b.partitions
        said += f"; in {len(parts.values)} partitions by {parts.column}, declared disjoint by {parts.declared_by}"
    return said
