"""psidp stream: numbers of a table that are published again every week, at one price; made for cron."""

import csv
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from inspect import Parameter, signature
from typing import Annotated, Any, Self

import typer

from psidp.cli import options
from psidp.cli.echo import echo
from psidp.cli.from_values import OptionGroup, from_values
from psidp.cli.json_output import show_json
from psidp.cli.release_table import shown_number
from psidp.cli.table_options import Groups, Measures, Pays, Price, TableAt, Which
from psidp.cli.tables import console, table
from psidp.tables import ask
from psidp.tables.answer import packed
from psidp.tables.series import Published
from psidp.tables.stream import Stream

__all__ = ["app", "published_rows", "show_published"]

app = typer.Typer(
    help="Publish numbers of a table again every week, at one price.\n\nplan, open, publish and show take the same "
    "options: what is asked, how often, and who pays. psi, or "
    "another notion such as --epsilon and --delta, is what all periods cost together; it is paid once.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@dataclass(frozen=True, slots=True)
class Periods(OptionGroup):
    """The stream's name, its periods, and in which of them a unit counts."""

    name_of: Annotated[str, typer.Option("--name", help="what the stream is called in the ledger")]
    every: Annotated[str, typer.Option("--every", help="day, week, month, quarter or year")]
    since: Annotated[str, typer.Option("--since", help="first day of the first period, such as 2026-01-05")]
    periods: Annotated[int, typer.Option("--periods", help="how many there will be at most")]
    arrived: Annotated[str, typer.Option("--arrived", help="the column that says when a row came into the table")]
    at_most: Annotated[
        int | None, typer.Option("--at-most", help="the number of periods in which a unit counts, its first ones")
    ] = None
    apart: Annotated[
        int, typer.Option("--apart", help="a unit counts where it has no row in the apart - 1 periods before")
    ] = 1
    each: Annotated[
        str, typer.Option("--each", help="a unit counts once in each month, quarter, year or number of periods")
    ] = ""
    windows: Annotated[list[int], typer.Option("--window", help="a window that matters; may be repeated")] = field(
        default_factory=list
    )
    wait_hours: Annotated[
        float, typer.Option("--wait-hours", help="hours after its end that a period is published")
    ] = 1.0

    @property
    def terms(self) -> dict[str, Any]:
        """What a stream is told."""
        if not 0.0 <= self.wait_hours <= 1e6:
            raise ValueError(f"--wait-hours must be in [0, 1000000], got {self.wait_hours}.")
        each = int(self.each) if self.each.isdecimal() else self.each or None
        return {
            "every": self.every, "since": self.since, "periods": self.periods, "arrived": self.arrived,
            "cap": ask.cap(self.at_most, apart=self.apart, each=each), "windows": self.windows,
            "wait": timedelta(hours=self.wait_hours),
        }  # fmt: skip


@from_values
def _stream(
    table: TableAt, periods: Periods, price: Price, measures: Measures, groups: Groups, which: Which, pays: Pays
) -> Stream:
    """The stream that the options speak of; nothing is read."""
    if not (pays.ledger and pays.budget):
        raise ValueError("a stream must have --ledger and --budget, which keep its strategy and what it published.")
    if pays.retry_key:
        raise ValueError("--retry-key must be left out: a stream has its name, and opening it again costs nothing.")
    curator, terms = table.opened(pays), which.terms
    del terms["clipping_share"]
    question = curator.stream(periods.name_of, *measures.asks, **periods.terms, **groups.terms(curator), **terms)
    return question.priced(**price.notions)


@dataclass(frozen=True, slots=True)
class StreamOptions(OptionGroup):
    """The options of every command about a stream."""

    values: dict[str, Any]

    @classmethod
    def parameters(cls) -> list[Parameter]:
        """Those of its table, periods, measures and so on."""
        return list(signature(_stream).parameters.values())

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Self:
        """As they were given."""
        return cls(dict(values))

    @contextmanager
    def opened(self) -> Iterator[Stream]:
        """The stream; its table and its ledger are closed in the end."""
        stream = _stream(**self.values)
        try:
            yield stream
        finally:
            stream.question.curator.dispose()
            stream.question.curator.ledger.dispose()


@app.command("plan")
@from_values
def plan(asked: StreamOptions, as_json: options.AsJson = False) -> None:
    """Say what a stream would cost and how large its errors will be; nothing is read or spent."""
    with asked.opened() as stream:
        made = stream.plan()
    if as_json:
        expected = [row._asdict() for row in made.expected()]
        return show_json({"psi": made.guarantee.psi, "counted": made.counted, "expected": expected})
    return echo(str(made))


@app.command("open")
@from_values
def open_stream(asked: StreamOptions) -> None:
    """Pay for a stream, once; opening it again costs nothing."""
    with asked.opened() as stream:
        made = stream.open(asked.values["purpose"]).plan()
    echo(
        f"Stream {stream.name} is open: psi {made.guarantee.psi:.6g} pays for {made.periods} periods, every "
        f"{stream.calendar.every} since {stream.calendar.since}. {stream.counted}"
    )


@app.command("publish")
@from_values
def publish(asked: StreamOptions, as_json: options.AsJson = False) -> None:
    """Publish every period that is over and was not published; twice in a minute publishes once."""
    with asked.opened() as stream:
        _show(stream, stream.publish(), as_json)
        echo(f"Stream {stream.name} has {stream.published} periods published.", err=True)


@app.command("show")
@from_values
def show(
    asked: StreamOptions,
    question: Annotated[str, typer.Option("--question", help="single period or total to date")] = "total to date",
    last: Annotated[
        int | None, typer.Option("--last", help="instead, the sum of this number of periods up to each")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what a stream has published: totals to date, single periods or windows, with intervals."""
    with asked.opened() as stream:
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
            group = ", ".join(map(str, row.group))
            made.add_row(str(row.period), group, row.statistic, *map(shown_number, row[3:7]), row.flag)
        return console.print(made)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(Published._fields)
    return writer.writerows([row.period, "; ".join(map(str, row.group)), *row[2:]] for row in rows)
