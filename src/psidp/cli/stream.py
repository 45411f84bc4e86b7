"""psidp stream: numbers of a table that are published again every week, at one price; made for cron."""

import csv
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

from psidp.cli import options
from psidp.cli import table_options as given
from psidp.cli.ask_words import bounds, shared
from psidp.cli.echo import echo
from psidp.cli.json_output import show_json
from psidp.cli.release_table import column_type, groups_of
from psidp.cli.table_options import NO_UNIT
from psidp.cli.tables import console, table
from psidp.curator import ask
from psidp.curator.answer import packed
from psidp.curator.curator import Curator
from psidp.curator.stream import Stream
from psidp.curator.stream_numbers import Published
from psidp.ledger.ledger import Ledger

__all__ = ["app", "published_rows", "show_published"]

app = typer.Typer(
    help="Publish numbers of a table again every week, at one price.\n\nplan, open, publish and show take the same "
    "options: what is asked, how often, and who pays. psi, or "
    "another notion such as --epsilon and --delta, is what all periods cost together; it is paid once.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Words = list[str]


def _option(flag: str, help: str) -> Any:
    return typer.Option(flag, help=help)


@options.with_prices()
def _stream(
    source: Annotated[str, typer.Argument(help="a .parquet, .csv or .duckdb file; with --engine a table's name")],
    name: Annotated[str, _option("--name", "what the stream is called in the ledger")],
    every: Annotated[str, _option("--every", "day, week, month, quarter or year")],
    since: Annotated[str, _option("--since", "first day of the first period, such as 2026-01-05")],
    periods: Annotated[int, _option("--periods", "how many there will be at most")],
    ledger: Annotated[str, _option("--ledger", "where spending is written down: a file or postgresql://")],
    budget: Annotated[str, _option("--budget", "the budget that pays")],
    notions: options.Notions,
    arrived: Annotated[str, _option("--arrived", "the column that says when a row came into the table")] = "",
    seal: Annotated[str, _option("--seal", "or a secret file of yours that keeps closed periods; with --dated")] = "",
    dated: Annotated[str, _option("--dated", "with --seal: the column of the day that a row is about")] = "",
    wait_hours: Annotated[float, _option("--wait-hours", "hours after its end that a period is published")] = 1.0,
    unit_column: given.UnitColumn = [],  # noqa: B006
    rows_are_units: Annotated[bool, _option("--rows-are-units", "every row is its own unit")] = False,
    count: Annotated[bool, _option("--count", "how many rows")] = False,
    units: Annotated[bool, _option("--units", "how many different units")] = False,
    sum_of: Annotated[Words, _option("--sum", "column:lower:upper")] = [],  # noqa: B006
    weight: given.Weights = [],  # noqa: B006
    at_most: Annotated[int | None, _option("--at-most", "in so many periods a unit counts, its first ones")] = None,
    apart: Annotated[int, _option("--apart", "a unit counts where it has no row so many periods before, less 1")] = 1,
    each: Annotated[str, _option("--each", "a unit counts once in each month, quarter, year or so many periods")] = "",
    by: Annotated[Words, _option("--by", "column that makes groups; may be repeated")] = [],  # noqa: B006
    groups: Annotated[
        str, _option("--groups", "the groups: a,b,c, or a .csv or .parquet file with the columns of --by")
    ] = "",
    where: Annotated[Words, _option("--where", '"age >= 18"; may be repeated')] = [],  # noqa: B006
    contribution: Annotated[float, _option("--contribution", "rows' worth a unit may add to a period")] = 1.0,
    windows: Annotated[list[int], _option("--window", "a window that matters; may be repeated")] = [],  # noqa: B006
    confidence: Annotated[float, _option("--confidence", "chance that an interval covers, (0,1)")] = 0.95,
    engine: Annotated[str, _option("--engine", "postgresql://... or spark://...; DuckDB unless told")] = "",
    table_name: Annotated[str, _option("--table", "which table of a .duckdb file")] = "",
    types: Annotated[Words, _option("--type", "column:type of a .csv file, such as age:int64")] = [],  # noqa: B006
    missing: given.Missing = [],  # noqa: B006
    same_unit: Annotated[str, _option("--same-unit", "why another unit column names the budget's units")] = "",
    actor: given.Actor = "",
) -> tuple[Curator, Stream]:
    """The stream that the options speak of; nothing is read."""
    if bool(unit_column) == rows_are_units:
        raise ValueError(NO_UNIT)
    curator = Curator(
        source, unit_column or None, ledger=Ledger(ledger, actor=actor), budget=budget, engine=engine or None,
        name=table_name or None, types=dict(map(column_type, types)), same_unit=same_unit,
        missing=missing or None,
    )  # fmt: skip
    asks = shared([ask.count()] * count + [ask.units()] * units + [ask.sum(*bounds(word)) for word in sum_of], weight)
    bucket: Any = int(each) if each.isdecimal() else each or None
    kind: Any = every
    made = curator.stream(
        name, *asks, **notions, every=kind, since=since, periods=periods, arrived=arrived or None,
        totals="sealed" if seal or dated else None, dated=dated or None, seal=seal or None, at_most=at_most,
        apart=apart, each=bucket, by=by, groups=groups_of(curator, by, groups, ""), where=where,
        contribution=contribution, windows=windows, confidence=confidence, wait=_hours(wait_hours),
    )  # fmt: skip
    return curator, made


def _hours(number: float) -> timedelta:
    """So many hours."""
    if not 0.0 <= number <= 1e6:
        raise ValueError(f"--wait-hours must be in [0, 1000000], got {number}.")
    return timedelta(hours=number)


def _with_stream(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose first parameter is the stream; it gets the options of all streams and its own."""
    shared = signature(_stream, eval_str=True).parameters
    own = list(signature(command, eval_str=True).parameters.values())[1:]

    @wraps(command)
    def called(**values: Any) -> None:
        curator, made = _stream(**{name: values.pop(name) for name in shared})
        try:
            command(made, **values)
        finally:
            curator.dispose()
            curator.ledger.dispose()

    parameters = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in (*shared.values(), *own)]
    called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


@app.command("plan")
@_with_stream
def plan(stream: Stream, as_json: options.AsJson = False) -> None:
    """Say what a stream would cost and how large its errors will be; nothing is read or spent."""
    made = stream.plan()
    if as_json:
        return show_json(
            {
                "psi": made.guarantee.psi,
                "counted": stream.counted,
                "expected": [row._asdict() for row in made.expected()],
            }
        )
    return echo(str(made))


@app.command("open")
@_with_stream
def open_stream(stream: Stream, purpose: Annotated[str, _option("--purpose", "why, for the ledger")] = "") -> None:
    """Pay for a stream, once; opening it again costs nothing."""
    made = stream.open(purpose).plan()
    echo(
        f"Stream {stream.name} is open: psi {made.guarantee.psi:.6g} pays for {made.periods} periods, every "
        f"{stream.calendar.every} since {stream.calendar.since}. {stream.counted}"
    )


@app.command("publish")
@_with_stream
def publish(stream: Stream, as_json: options.AsJson = False) -> None:
    """Publish every period that is over and was not published; twice in a minute publishes once."""
    _show(stream, stream.publish(), as_json)
    echo(f"Stream {stream.name} has {stream.published} periods published.", err=True)


@app.command("show")
@_with_stream
def show(
    stream: Stream,
    question: Annotated[str, _option("--question", "single period or total to date")] = "total to date",
    last: Annotated[int | None, _option("--last", "the sum of the last so many periods instead")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what a stream has published: totals to date, single periods or windows, with intervals."""
    _show(stream, stream.series(question) if last is None else stream.window(last), as_json)


def _show(stream: Stream, rows: list[Published], as_json: bool) -> None:
    """A table for a terminal, else CSV or JSON; what counts in it, where that is not everything."""
    if rows and stream.capped and not as_json:
        echo(stream.counted, err=True)
    if as_json:
        return show_json({"counted": stream.counted, "published": published_rows(rows)})
    return show_published(rows)


def published_rows(rows: list[Published]) -> list[dict[str, Any]]:
    """Published numbers as plain values."""
    return [row._asdict() | {"period": row.period.isoformat(), "group": list(map(packed, row.group))} for row in rows]


def show_published(rows: list[Published]) -> None:
    """A table for a terminal, else CSV."""
    if sys.stdout.isatty():
        made = table("", ["period", "group", "statistic"], ["value", "standard error", "lower", "upper", "flag"])
        for row in rows:
            made.add_row(
                str(row.period),
                ", ".join(map(str, row.group)),
                row.statistic,
                *(f"{x:,.1f}" for x in row[3:7]),
                row.flag,
            )
        return console.print(made)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(Published._fields)
    return writer.writerows([row.period, "; ".join(map(str, row.group)), *row[2:]] for row in rows)
