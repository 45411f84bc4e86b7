"""What `psidp card` also writes: the registry's entry and the page for an evaluation."""

from pathlib import Path
from typing import Annotated

import typer

from psidp.cli.echo import echo
from psidp.ledger.ledger import Ledger
from psidp.ledger.report import Report
from psidp.present import evaluation, registry
from psidp.present.card.record import Card

__all__ = [
    "Answer",
    "AnswersFile",
    "Budget",
    "EntryNumber",
    "EvaluationFile",
    "LedgerPlace",
    "RegistryFile",
    "budget_of",
    "from_file",
    "parsed_answers",
    "publish",
    "reported",
]

RegistryFile = Annotated[
    str | None, typer.Option("--registry", help="also write an entry for the registry of DP deployments, .yaml")
]
EvaluationFile = Annotated[
    str | None, typer.Option("--evaluation", help="also write what an evaluation asks (NIST SP 800-226), .html or .md")
]
Answer = Annotated[list[str], typer.Option("--answer", help="NAME=VALUE: what the card cannot know; repeat")]
AnswersFile = Annotated[
    str | None,
    typer.Option("--answers", help="a file of such lines; a form to fill in is written where there is none"),
]
LedgerPlace = Annotated[
    str | None, typer.Option("--ledger", help="the ledger that paid: verified for the card; goes with --budget")
]
Budget = Annotated[str | None, typer.Option("--budget", help="the budget in it that paid; its running total is told")]

EntryNumber = Annotated[int | None, typer.Option("--entry", help="the spend in the ledger that the card is of")]


def budget_of(ledger: str | None, budget: str | None, entry: int | None) -> str | None:
    """The budget that paid: as it is told, or that of an entry."""
    if entry is None:
        return budget
    if ledger is None:
        raise ValueError(f"--entry goes with --ledger, which holds it, got entry={entry} alone.")
    return budget or Ledger(ledger).spent(entry).budget


def reported(ledger: str | None, budget: str | None) -> tuple[Report | None, str | None]:
    """The budget's report and the ledger's head, where a ledger is named."""
    if (ledger is None) != (budget is None):
        raise ValueError("ledger and budget must be given together, or neither.")
    if ledger is None or budget is None:
        return None, None
    book = Ledger(ledger)
    return book.report(budget), str(book.head())


def parsed_answers(words: list[str]) -> dict[str, list[str]]:
    """Answers by their names; a name that is given twice has several values."""
    found: dict[str, list[str]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise ValueError(f"an answer must read NAME=VALUE, got {word!r}.")
        found.setdefault(name.strip(), []).append(value.strip())
    unknown = [name for name in found if name not in registry.QUESTIONS and name not in evaluation.POINTS]
    if unknown:
        known = ", ".join({**registry.QUESTIONS, **evaluation.POINTS})
        raise ValueError(f"an answer must be to one of {known}, got {unknown[0]!r}.")
    return found


def from_file(name: str | None) -> list[str]:
    """The answers in a file, line by line, blank ones and those without a value left out; a new form where there is
    none."""
    if name is None:
        return []
    file = Path(name)
    if not file.exists():
        file.write_text(_form(), encoding="utf-8")
        raise ValueError(f"{name} is a form now: fill in what you know, and run this again. Nothing else was written.")
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#") and line.partition("=")[1:] != ("=", "")]


def _form() -> str:
    """Every question with what it means, the required ones first."""
    optional = [name for name, question in registry.QUESTIONS.items() if not question.required]
    asked = [name for name in registry.QUESTIONS if name not in optional]
    lines = ["# Answers for psidp card --registry and --evaluation. A name may be repeated where several values fit."]
    for title, names in (("The registry asks for", asked), ("It takes besides", optional)):
        lines += ["", f"# {title}:"]
        for name in names:
            lines += ["", f"# {registry.described(name)}", f"{name} ="]
    lines += ["", "# An evaluation asks for:"]
    for name in [name for name in evaluation.POINTS if name not in registry.QUESTIONS]:
        lines += ["", f"# {evaluation.POINTS[name]}", f"{name} ="]
    return "\n".join([*lines, ""])


def publish(
    card: Card, registry_file: str | None, evaluation_file: str | None, answers: list[str], report: Report | None
) -> None:
    """Write the files that were asked for; everything is checked before the first is written."""
    given = parsed_answers(answers)
    texts: dict[str, str] = {}
    if registry_file is not None:
        if Path(registry_file).suffix not in (".yaml", ".yml"):
            raise ValueError(f"registry must be a .yaml file, got {registry_file!r}.")
        known = {name: value for name, value in given.items() if name in registry.QUESTIONS}
        texts[registry_file] = registry.to_yaml(registry.deployment(card, known, report))
    if evaluation_file is not None:
        write = {".html": evaluation.to_html, ".md": evaluation.to_markdown}.get(Path(evaluation_file).suffix)
        if write is None:
            raise ValueError(f"evaluation must be a .html or .md file, got {evaluation_file!r}.")
        texts[evaluation_file] = write(card, evaluation.evaluation(card, report, given))
    for name, text in texts.items():
        Path(name).write_text(text, encoding="utf-8")
        echo(f"{name} written", err=True)
