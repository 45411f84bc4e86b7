"""psidp release table: private statistics of a table, from a file or a database, paid from a ledger."""

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from psidp.cli import options, publishing
from psidp.cli.echo import echo
from psidp.cli.from_values import OptionGroup, from_values
from psidp.cli.json_output import show_json
from psidp.cli.table_options import Groups, Measures, Pays, PlanOnly, Price, TableAt, Which, Words
from psidp.cli.tables import console, table
from psidp.escaping import one_line
from psidp.tables.answer import Answer
from psidp.tables.curator import Curator
from psidp.tables.plan import Plan
from psidp.tables.table import TableQuestion

__all__ = ["Shows", "release_question", "release_table", "shown", "shown_number", "with_progress"]

STOPPED = 130
"""Exit code of a command that Ctrl-C ended."""
Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class WantedErrors(OptionGroup):
    """Standard errors that are wanted instead of a price."""

    error: Annotated[
        Words,
        typer.Option("--error", help="10, count:10 or 'mean of cost:2.5:1000' (in 1,000 rows): instead of a price"),
    ] = field(default_factory=list)

    @property
    def value(self) -> Any:
        """error, error:rows, name:error or name:error:rows; several by name; None where there is none."""
        found = dict(map(_error, self.error))
        if len(found) < len(self.error):
            raise ValueError(f"--error must name every statistic once, got {', '.join(map(repr, self.error))}.")
        return found.get("", found) if found else None


@dataclass(frozen=True, slots=True)
class Shows(OptionGroup):
    """What is done with a plan or an answer."""

    plan: PlanOnly = False
    sql: Annotated[bool, typer.Option("--sql", help="with --plan: show the SQL that would run, too")] = False
    as_json: options.AsJson = False


@from_values
def release_table(
    table: TableAt,
    price: Price,
    errors: WantedErrors,
    measures: Measures,
    groups: Groups,
    which: Which,
    pays: Pays,
    output: publishing.Output,
    shows: Shows,
) -> None:
    """Release private statistics of a table.

    The engine clips and counts, exact noise is added, a ledger pays.

    Example: psidp release table visits.parquet --unit-column patient_id --count --by ward --groups wards.csv
    --psi 0.2 --ledger ledger.db --budget survey
    """
    error = errors.value
    output.check(measures.asks)
    curator = table.opened(pays)
    try:
        question = curator.ask(*measures.asks, **groups.terms(curator), **which.terms)
        release_question(curator, question, {**price.notions, "error": error}, pays, output, shows)
    finally:
        curator.dispose()


def release_question(
    curator: Curator,
    question: TableQuestion,
    price: dict[str, Any],
    pays: Pays,
    output: publishing.Output,
    shows: Shows,
) -> None:
    """The plan of a question, or its answer."""
    if shows.sql and not shows.plan:
        raise ValueError("--sql must come with --plan, which shows what would run.")
    if shows.plan:
        return _show_plan(question.plan(**price, retry_key=pays.retry_key), shows)
    answer = with_progress(curator, lambda: question.release(**price, **pays.terms))
    with publishing.paid_and_stored(answer.retry_key, lambda: publishing.write_answer(answer, sys.stdout)):
        show_answer(output.steps(answer), output, as_json=shows.as_json)
    return None


def _error(word: str) -> tuple[str, float | tuple[float, float]]:
    """The name, and a number or two."""
    parts = word.split(":")
    numbers: list[float] = []
    while parts and len(numbers) < 2:
        try:
            numbers.insert(0, float(parts[-1]))
        except ValueError:
            break
        parts.pop()
    if not numbers:
        raise ValueError(f"--error must be a number, name:number or name:number:rows, such as count:10, got {word!r}.")
    return ":".join(parts), numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def with_progress(curator: Curator, work: Callable[[], Given]) -> Given:
    """The answer, with a bar on standard error while the engine works, if somebody watches."""
    try:
        return _watched(curator, work)
    except KeyboardInterrupt as stop:
        words = str(stop) or "nothing was released"
    echo(f"psidp: stopped; {words}.", err=True)
    raise typer.Exit(STOPPED)


def _watched(curator: Curator, work: Callable[[], Given]) -> Given:
    """The answer, with a bar that knows the time left where the engine tells how far it is."""
    screen = Console(stderr=True)
    if not screen.is_terminal:
        return work()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    done = Event()
    with Progress(*columns, console=screen, transient=True) as progress:
        task = progress.add_task("the engine counts", total=None)

        def watch() -> None:
            while not done.wait(0.2):
                with suppress(Exception):
                    if (percent := curator.progress()) is not None:
                        progress.update(task, total=100.0, completed=percent)

        watcher = Thread(target=watch, daemon=True)
        watcher.start()
        try:
            return work()
        finally:
            done.set()
            watcher.join()


def _show_plan(plan: Plan, shows: Shows) -> None:
    """What it would be worth and cost; what would run, where that is asked for."""
    if shows.as_json:
        return show_json(plan.to_dict())
    echo(plan.summary())
    if not shows.sql:
        return echo("Add --sql to see the SQL that would run.")
    for place, query in enumerate(plan.sql, 1):
        echo(f"\n-- query {place} of {len(plan.sql)}\n{query}")
    return None


def show_answer(answer: Answer, output: publishing.Output, as_json: bool = False) -> None:
    """The answer as a table, JSON or a file; its words beside it."""
    if output.output:
        publishing.save_answer(answer, output.output)
    if as_json:
        show_json(answer.to_dict() | answer.payment())
    else:
        if not sys.stdout.isatty() and not output.output:
            publishing.write_answer(answer, sys.stdout)
        else:
            console.print(shown(answer))
        echo(answer.summary(), err=True)
    if output.figure:
        publishing.save_figure(answer, output.figure)


def shown(answer: Answer) -> Any:
    """The answer as a table for a terminal."""
    rows = table("", [*map(one_line, answer.by), "statistic"], ["value", "standard error", "lower", "upper", "flag"])
    for key, e in answer.rows:
        numbers = map(shown_number, (e.value, e.standard_error, e.lower, e.upper))
        words = ("NULL" if k is None else str(k) for k in key)
        rows.add_row(*words, e.statistic, *numbers, e.flag)
    return rows


def shown_number(x: float) -> str:
    """Two places, or four digits of a small number; fewer where it has fewer."""
    if not abs(x) >= 10:
        return f"{x:.4g}"
    return f"{x:,.0f}" if x == round(x, 0) else f"{x:,.1f}" if x == round(x, 1) else f"{x:,.2f}"
