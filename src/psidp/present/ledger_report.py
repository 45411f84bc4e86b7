"""What was spent in a stretch of time, as a page of HTML or Markdown that an officer can hand on."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from psidp.escaping import json_text, markdown
from psidp.ledger.statement import Statement
from psidp.present.finite import finite
from psidp.present.formatting import down, up
from psidp.present.markup import Element, element
from psidp.present.palette import LIGHT
from psidp.present.spending_bars import bars

__all__ = ["FORMATS", "numbered", "page", "sections", "to_html", "to_markdown", "written"]

FORMATS = ("html", "md", "json")
Section = tuple[str, list[str], list[list[str]]]
STYLE = (
    f"body{{font:15px/1.5 system-ui,sans-serif;color:{LIGHT['ink']};max-width:60rem;margin:2rem auto;padding:0 1rem}}"
    f"table{{border-collapse:collapse;margin:.5rem 0 1.5rem;width:100%}}"
    f"th,td{{text-align:left;padding:.25rem .6rem;border-bottom:1px solid {LIGHT['line']};vertical-align:top}}"
    "td,th{overflow-wrap:anywhere}svg{max-width:100%;height:auto}h1{font-size:1.5rem}h2{font-size:1.1rem}"
    "@media print{body{margin:0}}"
)


def written(statement: Statement, form: str) -> str:
    """The statement in one of the formats."""
    made: dict[str, Callable[[Statement], str]] = {"html": to_html, "md": to_markdown, "json": _to_json}
    if form not in made:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got format={form!r}.")
    return made[form](statement)


def title(statement: Statement) -> str:
    """What the page is about."""
    chosen = statement.which.in_words()
    return f"Privacy spent{': ' + chosen if chosen else ''}"


def summary(statement: Statement) -> list[str]:
    """The totals in sentences."""
    said = [
        f"Per {unit} ({side}), over all budgets that protect it: psi {up(total['psi'])}"
        + (f" and kappa {up(total['kappa'])}" if total["kappa"] else "")
        + f", in {_times(total['spends'])}."
        for (unit, side), total in statement.units.items()
    ] or ["Nothing was spent."]
    made = f"Made on {statement.made[:16]} UTC from the ledger whose head is {statement.head or 'none'}."
    return [*said, f"{made} {_checked(statement)}"]


def sections(statement: Statement) -> list[Section]:
    """Each table of the page: its heading, its columns, its rows."""
    amounts = ["spends", "psi", "kappa"]
    totals = {
        "table": statement.tables, "actor": statement.actors, "budget": statement.budgets, "result": statement.results,
    }  # fmt: skip
    made: list[Section] = [
        (f"By {name}", [name, *amounts], [[one, *_amounts(total)] for one, total in found.items()])
        for name, found in totals.items()
    ]
    columns = ["entry", "time", "actor", "table", "budget", "what for", "result", "psi", "allowed by"]
    made.append(("The largest", columns, [
        [str(line.id), line.time[:16], line.actor or "-", line.table or "-", line.budget, line.purpose, line.result,
         up(line.psi), line.approved_by or "nobody had to"]
        for line in statement.largest
    ]))  # fmt: skip
    made.append(("What is left now", ["budget", "per", "psi", "spent", "left", "state"], [
        [r.budget.name, f"{r.budget.unit}, {r.budget.adjacency}", down(r.cap.psi), up(r.spent.psi),
         down(r.remaining.psi), _state(r)]
        for r in statement.reports
    ]))  # fmt: skip
    made.append(("What changed", ["entry", "time", "budget", "what", "who", "why"], [
        [str(e.id), e.time[:16], e.budget, e.what(), e.details().get("by", "the calendar"), e.purpose]
        for e in statement.changes
    ]))  # fmt: skip
    return [section for section in made if section[2]]


def to_html(statement: Statement) -> str:
    """One file that needs nothing else."""
    parts: list[str] = [element("h1", title(statement)), *(element("p", line) for line in summary(statement))]
    if statement.days:
        parts.append(element("h2", "Over time"))
        parts.append(bars([(day, psi) for day, psi in statement.days]))
    for heading, columns, rows in sections(statement):
        parts.append(element("h2", heading))
        head = element("thead", element("tr", *(element("th", name, scope="col") for name in columns)))
        body = element("tbody", *(element("tr", *(element("td", cell) for cell in row)) for row in rows))
        parts.append(element("table", head, body))
    return page(title(statement), parts)


def page(heading: str, parts: Sequence[str]) -> str:
    """Elements as one HTML file that needs nothing else."""
    head = element(
        "head", Element('<meta charset="utf-8">'), element("title", heading), Element(f"<style>{STYLE}</style>")
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *parts), lang='en')}\n"


def to_markdown(statement: Statement) -> str:
    """The same as GitHub-flavoured Markdown."""
    lines = [f"# {markdown(title(statement))}", ""]
    for sentence in summary(statement):
        lines += [markdown(sentence), ""]
    for heading, columns, rows in sections(statement):
        lines += [f"## {heading}", "", _row(columns), _row(["---"] * len(columns))]
        lines += [*(_row([markdown(cell) for cell in row]) for row in rows), ""]
    return "\n".join(lines)


def _to_json(statement: Statement) -> str:
    return json_text(json.dumps(finite(statement.to_dict()), indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def _amounts(total: dict[str, Any]) -> list[str]:
    return [f"{total['spends']:,}", up(total["psi"]), up(total["kappa"]) if total["kappa"] else "0"]


def _state(report: Any) -> str:
    if report.closed:
        return "closed"
    paused = "paused" if "" in report.paused else f"paused for {', '.join(report.paused)}" if report.paused else "open"
    return paused + (f", approval above psi {report.above:g}" if report.above is not None else "")


def _checked(statement: Statement) -> str:
    """Whether the page speaks of what was written."""
    verified = statement.verified
    if verified is None:
        return "Its entries were not verified."
    if statement.not_recomputed:
        return (
            f"Of its {verified:,} entries all were verified but {numbered(statement.not_recomputed)}, which this psidp "
            "cannot recompute, since it does not know their kind."
        )
    return f"{'Its one entry was' if verified == 1 else f'All {verified:,} entries were'} verified."


def numbered(entries: Sequence[int]) -> str:
    """Entries by their numbers, the first of them where they are many."""
    listed = ", ".join(map(str, entries[:8])) + (f" and {len(entries) - 8} more" if len(entries) > 8 else "")
    return f"{'entry' if len(entries) == 1 else 'entries'} {listed}"


def _times(spends: int) -> str:
    return "1 spend" if spends == 1 else f"{spends:,} spends"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
