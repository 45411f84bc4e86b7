"""psidp release table: private statistics of a table, from a file or a database, paid from a ledger."""

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from psidp.cli import options, publishing
from psidp.cli import table_options as given
from psidp.cli.ask_words import (
    bounded,
    distinct,
    edges_of,
    errors_of,
    largest,
    number,
    quantiles,
    ratio,
    shared,
    weighted_sum,
)
from psidp.cli.echo import echo
from psidp.cli.json_output import show_json
from psidp.cli.tables import console, table
from psidp.curator import ask
from psidp.curator.answer import Answer
from psidp.curator.curator import Curator
from psidp.curator.derived_columns import derived_table
from psidp.curator.groups import PrivateGroups, keys_from_text
from psidp.curator.plan import Plan
from psidp.curator.query import CLIPPING_SHARE, need_column
from psidp.escaping import one_line
from psidp.ledger.ledger import Ledger
from psidp.maths.sensitivity import check_adjacency

__all__ = [
    "column_type",
    "contribution_of",
    "groups_of",
    "joined_by",
    "release_table",
    "shown",
    "stray_keys",
    "with_progress",
]

Words = given.Words
PIECE = re.compile(r',( *"(?:[^"]|"")*"|[^,]*)')
"""A key of a list with the blanks before it."""
STOPPED = 130
"""Exit code of a command that Ctrl-C ended."""
Given = TypeVar("Given")


def _many(flag: str, help: str) -> Any:
    return typer.Option(flag, help=help)


@options.with_prices()
def release_table(
    source: given.Source,
    notions: options.Notions,
    error: Annotated[
        Words, _many("--error", "10, count:10 or 'mean of cost:2.5:1000' (in 1,000 rows): instead of a price")
    ] = [],  # noqa: B006
    unit_column: given.UnitColumn = [],  # noqa: B006
    rows_are_units: given.RowsAreUnits = False,
    count: Annotated[bool, typer.Option("--count", help="how many rows")] = False,
    units: Annotated[bool, typer.Option("--units", help="how many different units")] = False,
    sum_of: Annotated[Words, _many("--sum", "column:lower:upper, or column:auto")] = [],  # noqa: B006
    mean_of: Annotated[Words, _many("--mean", "column:lower:upper, or column:auto")] = [],  # noqa: B006
    variance_of: Annotated[Words, _many("--variance", "column:lower:upper, or column:auto")] = [],  # noqa: B006
    deviation_of: Annotated[Words, _many("--deviation", "column:lower:upper, or column:auto")] = [],  # noqa: B006
    histogram_of: Annotated[Words, _many("--histogram", "column:edge,edge,..., or column:auto")] = [],  # noqa: B006
    quantiles_of: Annotated[Words, _many("--quantiles", "column:edge,edge,...:0.25,0.5,0.75, or column:auto:...")] = [],  # noqa: B006
    median_of: Annotated[Words, _many("--median", "column:edge,edge,... or column:auto")] = [],  # noqa: B006
    min_of: Annotated[Words, _many("--min", "the 0.01 quantile: column:edge,... or column:auto")] = [],  # noqa: B006
    max_of: Annotated[Words, _many("--max", "the 0.99 quantile: column:edge,... or column:auto")] = [],  # noqa: B006
    weighted_sum_of: Annotated[
        Words, _many("--weighted-sum", "column:lower:upper:weights:most, weights being a column")
    ] = [],  # noqa: B006
    ratio_of: Annotated[
        Words, _many("--ratio", "above/below, each count or column:lower:upper, such as cost:0:5000/days:0:60")
    ] = [],  # noqa: B006
    distinct_of: Annotated[
        Words, _many("--distinct", "column:at_most, different values of which a unit counts for so many")
    ] = [],  # noqa: B006
    top: Annotated[Words, _many("--top", "k, or k:column:lower:upper for sums: the largest groups")] = [],  # noqa: B006
    by: Annotated[Words, _many("--by", 'column that makes groups, or "month(visited)"; may be repeated')] = [],  # noqa: B006
    groups: Annotated[
        str,
        typer.Option(
            "--groups", help="the groups: a,b,c or 1..12, or a .csv or .parquet file with the columns of --by"
        ),
    ] = "",
    private_groups: Annotated[str, typer.Option("--private-groups", help="choose the groups: kappa:at_most")] = "",
    where: given.Where = [],  # noqa: B006
    weight: given.Weights = [],  # noqa: B006
    contribution: given.Contribution = "1",
    confidence: given.Confidence = 0.95,
    clipping_share: given.ClippingShare = CLIPPING_SHARE,
    ledger: given.LedgerAt = "",
    budget: given.BudgetName = "",
    purpose: given.Purpose = "",
    actor: given.Actor = "",
    retry_key: given.RetryKey = "",
    engine: given.EngineAt = "",
    name: given.TableName = "",
    types: given.Types = [],  # noqa: B006
    missing: given.Missing = [],  # noqa: B006
    joins: given.Joins = [],  # noqa: B006
    adjacency: given.AdjacencyOrBudgets = "",
    protects: given.Protects = "",
    same_unit: given.SameUnit = "",
    output: publishing.Output = "",
    figure: publishing.FigureAt = "",
    rounded: publishing.Rounded = False,
    whole: publishing.Whole = False,
    non_negative: publishing.NonNegative = False,
    suppress_below: publishing.SuppressBelow = 0.0,
    plan: given.PlanOnly = False,
    sql: Annotated[bool, typer.Option("--sql", help="with --plan: show the SQL that would run, too")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Release private statistics of a table.

    The engine clips and counts, exact noise is added, a ledger pays.

    Example: psidp release table visits.parquet --unit-column patient_id --count --by ward --groups wards.csv
    --psi 0.2 --ledger ledger.db --budget survey
    """
    asks = [ask.count()] * count + [ask.units()] * units
    kinds = ((ask.sum, sum_of), (ask.mean, mean_of), (ask.variance, variance_of), (ask.deviation, deviation_of))
    asks += [bounded(make, word) for make, words in kinds for word in words]
    asks += [ask.histogram(*edges_of(word)) for word in histogram_of] + [quantiles(word) for word in quantiles_of]
    named = ((ask.median, median_of), (ask.min, min_of), (ask.max, max_of))
    asks += [make(*edges_of(word)) for make, words in named for word in words]
    asks += [
        *map(weighted_sum, weighted_sum_of),
        *map(ratio, ratio_of),
        *map(distinct, distinct_of),
        *map(largest, top),
    ]
    asks = shared(asks, weight)
    if bool(unit_column) == rows_are_units:
        raise ValueError(given.NO_UNIT)
    if sql and not plan:
        raise ValueError("--sql must come with --plan, which shows what would run.")
    publishing.check_files(output, figure)
    publishing.check_steps(asks, whole, non_negative, suppress_below)
    curator = Curator(
        source, unit_column or None, ledger=Ledger(ledger, actor=actor) if ledger else None, budget=budget or None,
        name=name or None,
        adjacency=check_adjacency(adjacency) if adjacency else None, protects=protects or None, engine=engine or None,
        same_unit=same_unit, types=dict(map(column_type, types)), missing=missing or None,
    )  # fmt: skip
    for word in joins:
        curator = curator.join(*joined_by(word))
    question: dict[str, Any] = {
        **notions, "error": errors_of(error), "by": by, "where": where,
        "groups": groups_of(curator, by, groups, private_groups),
        "confidence": confidence, "contribution": contribution_of(contribution), "clipping_share": clipping_share,
    }  # fmt: skip
    try:
        if plan:
            return _show_plan(curator.plan(*asks, **question, retry_key=retry_key), sql, as_json)
        answer = with_progress(
            curator, lambda: curator.release(*asks, **question, purpose=purpose, retry_key=retry_key)
        )
    finally:
        curator.dispose()
    with publishing.paid_and_stored(answer.retry_key, lambda: publishing.write_answer(answer, sys.stdout)):
        shown = publishing.published(
            answer, whole=whole, non_negative=non_negative, rounded=rounded, below=suppress_below
        )
        show_answer(shown, output, figure, as_json)
    return None


def column_type(word: str) -> tuple[str, str]:
    """column:type; the column itself may contain colons."""
    column, colon, kind = word.rpartition(":")
    if not colon:
        raise ValueError(f"a type must be column:type, such as age:int64, got {word!r}.")
    return column, kind


def joined_by(word: str) -> tuple[str, str]:
    """file:column; the file itself may contain colons."""
    file, colon, column = word.rpartition(":")
    if not colon:
        raise ValueError(f"a public table must be file:column, such as wards.csv:ward, got {word!r}.")
    return file, column


def contribution_of(word: str) -> Any:
    """A number of rows, or "auto"."""
    try:
        return float(word)
    except ValueError:
        return word


def groups_of(curator: Curator, by: Words, groups: str, private: str) -> Any:
    """Public or private groups from the command line."""
    if private and groups:
        raise ValueError("groups must be public or private: give --groups or --private-groups, not both.")
    if private:
        kappa, _, at_most = private.partition(":")
        if not at_most.isdigit():
            raise ValueError(f"--private-groups must be kappa:at_most, such as 1e-9:10, got {private!r}.")
        return PrivateGroups(kappa=number(kappa, private), at_most=int(at_most))
    if not groups:
        return None
    if groups.lower().endswith((".csv", ".parquet")):
        return Path(groups)
    made = derived_table(curator.table, by, (), curator.untyped, curator.public)
    schema, names = made.table.schema(), [name for name in made.by if name not in made.values] or list(made.by)
    for column in names:
        need_column(column, schema, "--by")
    if len(names) != 1:
        raise ValueError(
            "groups in a list need one --by column of the table, besides those whose values are known, such as months; "
            f"for several columns give a .csv file whose first line is {','.join(names)}, and each other line a group."
        )
    if stray := stray_keys(groups):
        echo(f"psidp: {stray}", err=True)
    return keys_from_text(groups, names[0], schema[names[0]])


def stray_keys(words: str) -> str:
    """What to say of keys that seem to be the ends of others, torn at a comma: a blank stands before them alone.

    Examples:
        >>> print(stray_keys("North,West,South, harbour"))
        ' harbour' is a group of its own; a key with a comma stands in quotes, such as "South, harbour".
        >>> stray_keys("North, West, South"), stray_keys('North,"South, harbour"')
        ('', '')
    """
    pieces = PIECE.findall("," + words)
    stray = [at for at in range(1, len(pieces)) if re.match(r" +[^ \"]", pieces[at])]
    if not stray or all(piece[:1] == " " for piece in pieces[1:]):
        return ""
    named, first = ", ".join(repr(pieces[at]) for at in stray[:3]), stray[0]
    verb = "is a group of its own" if len(stray) == 1 else "are groups of their own"
    return f'{named} {verb}; a key with a comma stands in quotes, such as "{pieces[first - 1]},{pieces[first]}".'


def with_progress(curator: Curator, work: Callable[[], Given]) -> Given:
    """The answer, with a bar on standard error while the engine works, if somebody watches."""
    try:
        return _watched(curator, work)
    except KeyboardInterrupt as stop:
        said = str(stop) or "nothing was released"
    echo(f"psidp: stopped; {said}.", err=True)
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


def _show_plan(plan: Plan, sql: bool, as_json: bool) -> None:
    """What it would be worth and cost; what would run, where that is asked for."""
    if as_json:
        return show_json(plan.to_dict())
    echo(plan.summary())
    if not sql:
        return echo("Add --sql to see the SQL that would run.")
    for place, query in enumerate(plan.sql, 1):
        echo(f"\n-- query {place} of {len(plan.sql)}\n{query}")
    return None


def show_answer(answer: Answer, output: str = "", figure: str = "", as_json: bool = False) -> None:
    """The answer as a table, JSON or a file; its words beside it."""
    if output:
        publishing.save_answer(answer, output)
    if as_json:
        show_json(answer.to_dict() | answer.payment())
    else:
        if not sys.stdout.isatty() and not output:
            publishing.write_answer(answer, sys.stdout)
        else:
            console.print(shown(answer))
        echo(answer.summary(), err=True)
    if figure:
        publishing.save_figure(answer, figure)


def shown(answer: Answer) -> Any:
    """The answer as a table for a terminal."""
    made = table("", [*map(one_line, answer.by), "statistic"], ["value", "standard error", "lower", "upper", "flag"])
    for key, e in answer.rows:
        numbers = map(_shown_number, (e.value, e.standard_error, e.lower, e.upper))
        words = ("NULL" if k is None else str(k) for k in key)
        made.add_row(*words, e.statistic, *numbers, e.flag)
    return made


def _shown_number(x: float) -> str:
    """Two places, or four digits of a small number; fewer where it has fewer."""
    if not abs(x) >= 10:
        return f"{x:.4g}"
    return f"{x:,.0f}" if x == round(x, 0) else f"{x:,.1f}" if x == round(x, 1) else f"{x:,.2f}"
