"""psidp release cube: many tables of the same columns for one psi, as CSV files or on a terminal."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from psidp.cli import options
from psidp.cli.echo import echo
from psidp.cli.from_values import OptionGroup, from_values
from psidp.cli.json_output import show_json
from psidp.cli.number_files import check_writable
from psidp.cli.publishing import paid_and_stored, write_answer
from psidp.cli.release_table import shown, with_progress
from psidp.cli.table_options import Pays, PlanOnly, Price, SummedMeasures, TableAt, Which, Words, number, stray_keys
from psidp.cli.tables import console
from psidp.escaping import json_text
from psidp.tables import ask
from psidp.tables.answer import Answer
from psidp.tables.ask import Ask
from psidp.tables.columns import need_column
from psidp.tables.cube import CubeQuestion
from psidp.tables.cube_answer import Cube
from psidp.tables.curator import Curator
from psidp.tables.measures.binned import check_edges
from psidp.tables.measures.quantiles import PERCENT
from psidp.tables.sources.public_groups import keys_from_text

__all__ = ["Read", "release_cube", "release_question", "show_cube"]

MOST_SHOWN = 400
"""Cells up to which a table is shown in a terminal."""


@dataclass(frozen=True, slots=True)
class Columns(OptionGroup):
    """The columns of a cube, and which tables of them are wanted."""

    column: Annotated[Words, typer.Option("--column", help="column:value,value,... or column:1..12, public")] = field(
        default_factory=list
    )
    bins: Annotated[Words, typer.Option("--bins", help="column:edge,edge,... whose bins are asked for")] = field(
        default_factory=list
    )
    ordered: Annotated[
        Words, typer.Option("--ordered", help="column:edge,edge,... of which quantiles and shares below are asked")
    ] = field(default_factory=list)
    up_to: Annotated[int, typer.Option("--up-to", help="all tables of up to this number of columns")] = 2
    tables: Annotated[Words, typer.Option("--tables", help="column,column instead of --up-to; may be repeated")] = (
        field(default_factory=list)
    )
    no_count: Annotated[
        bool, typer.Option("--no-count", help="leave out the number of rows, which a cube has by default")
    ] = False
    balance: Annotated[str, typer.Option("--balance", help="which error is least: worst or total")] = "worst"
    bound: Annotated[str, typer.Option("--bound", help="how a unit's rows are measured: rows or image")] = "rows"

    @property
    def terms(self) -> dict[str, Any]:
        """What a cube is told."""
        return {"balance": self.balance, "bound": self.bound}

    @property
    def wanted(self) -> Any:
        """The tables."""
        return [tuple(word.split(",")) for word in self.tables] or ask.up_to(self.up_to)

    def counted(self, asks: tuple[Ask, ...]) -> tuple[Ask, ...]:
        """The measures, the number of rows among them."""
        count = ask.count()
        return asks if self.no_count or count.name in {a.name for a in asks} else (count, *asks)

    def values(self, curator: Curator) -> dict[str, Any]:
        """Each column with its public values."""
        found: dict[str, Any] = {}
        cut = [(word, ask.bins) for word in self.bins] + [(word, ask.ordered) for word in self.ordered]
        for name, values in [*(_listed(curator, word) for word in self.column), *(_cut(*pair) for pair in cut)]:
            if name in found:
                raise ValueError(f"a cube must name different columns, got {name!r} twice.")
            found[name] = values
        return found


@dataclass(frozen=True, slots=True)
class Read(OptionGroup):
    """What is read from a cube, and where it goes."""

    quantiles_of: Annotated[
        Words,
        typer.Option("--quantiles", help="column:0.5,0.9 or column:0.5,0.9:by of an --ordered or --bins column"),
    ] = field(default_factory=list)
    output: Annotated[
        str, typer.Option("--output", "-o", help="a folder for one .csv file for each table and the whole cube.json")
    ] = ""
    plan: PlanOnly = False
    as_json: options.AsJson = False

    def check(self) -> None:
        """Refuse a folder that could not be written, before anything is paid for."""
        if self.output and not _free(Path(self.output)):
            raise ValueError(f"the output must be an empty folder, or one that can be made, got {self.output!r}.")


@dataclass(frozen=True, slots=True)
class WantedErrors(OptionGroup):
    """Standard errors that are wanted instead of a price."""

    error: Annotated[
        Words,
        typer.Option("--error", help="2:5 or column,column:5: wanted standard errors of counts, instead of --psi"),
    ] = field(default_factory=list)


@from_values
def release_cube(
    table: TableAt,
    price: Price,
    errors: WantedErrors,
    columns: Columns,
    measures: SummedMeasures,
    which: Which,
    pays: Pays,
    read: Read,
) -> None:
    """Release many tables of the same columns at once, for one psi.

    Their cells add up to each other, and each has the least error that this psi allows.

    Example: psidp release cube visits.parquet --unit-column patient_id --count --column ward:A,B,C
    --bins age:0,18,65,120 --up-to 2 --psi 0.5 --ledger ledger.db --budget survey -o tables
    """
    read.check()
    curator = table.opened(pays)
    try:
        question = curator.cube(
            columns.values(curator), columns.wanted, measures=columns.counted(measures.asks), **columns.terms,
            **which.terms,
        )  # fmt: skip
        wanted = dict(map(_error, errors.error)) or None
        release_question(curator, question, {**price.notions, "errors": wanted}, pays, read)
    finally:
        curator.dispose()


def release_question(curator: Curator, question: CubeQuestion, price: dict[str, Any], pays: Pays, read: Read) -> None:
    """The plan of a cube, or the cube."""
    for word in read.quantiles_of:
        _check_quantile(word, question)
    if read.plan:
        plan = question.plan(**price, retry_key=pays.retry_key)
        return show_json(plan.to_dict()) if read.as_json else echo(plan.summary())
    cube = with_progress(curator, lambda: question.release(**price, **pays.terms))
    with paid_and_stored(cube.retry_key, lambda: echo(json_text(cube.to_json()))):
        show_cube(cube, read.quantiles_of, read.output, read.as_json)
    return None


def _free(folder: Path) -> bool:
    """Whether a folder is empty or can be made, and files in it: what is released is never written over."""
    if folder.is_dir():
        check_writable(folder / "cube.json")
        return not any(folder.iterdir())
    if folder.exists() or not folder.parent.is_dir():
        return False
    folder.mkdir()
    folder.rmdir()
    return True


def _listed(curator: Curator, word: str) -> tuple[str, list[Any]]:
    """column:a,b,c or column:1..12, in the column's own type."""
    name, colon, values = word.partition(":")
    schema = curator.source.schema
    if not colon:
        raise ValueError(f"--column must be column:value,value,..., such as ward:A,B or month:1..12, got {word!r}.")
    need_column(name, schema, "--column")
    if stray := stray_keys(values):
        echo(f"psidp: {stray}", err=True)
    return name, keys_from_text(values, name, schema[name])


def _cut(word: str, make: Any) -> tuple[str, Any]:
    """column:edge,edge,... as bins."""
    name, colon, edges = word.rpartition(":")
    if not colon:
        raise ValueError(f"bins must be column:edge,edge,..., such as age:0,18,65,100, got {word!r}.")
    return name, make(check_edges(name, [number(edge, word) for edge in edges.split(",")]))


def _error(word: str) -> tuple[Any, float]:
    """2:5 for all tables of two columns, or ward,age:5 for one."""
    table, colon, error = word.rpartition(":")
    if not colon:
        raise ValueError(f"--error must be columns:error, such as 2:5 or ward,age:5, got {word!r}.")
    try:
        return (int(table) if table.isdecimal() else tuple(table.split(","))), float(error)
    except ValueError:
        raise ValueError(f"{error!r} in {word!r} must be a number.") from None


def show_cube(cube: Cube, quantiles: Words = [], output: str = "", as_json: bool = False) -> None:  # noqa: B006
    """The tables in a folder, as JSON, as CSV one below the other, or in a terminal."""
    if output:
        _save(cube, quantiles, Path(output))
    if as_json:
        return show_json(cube.to_dict() | cube.payment())
    for answer in _answers(cube, quantiles).values():
        if sys.stdout.isatty():
            if len(answer.rows) <= MOST_SHOWN:
                console.print(shown(answer))
        elif not output:
            write_answer(answer, sys.stdout)
            echo("")
    return echo(cube.summary(), err=True)


def _answers(cube: Cube, quantiles: Words) -> dict[str, Answer]:
    """All tables, and the quantiles that are wanted, by the names of their files."""
    found = {_file(number, names): cube.table(*names) for number, names in enumerate(cube.tables, 1)}
    for word in quantiles:
        column, at, by = _quantile(word)
        found[_file(len(found) + 1, ("quantiles", column, *by))] = cube.quantile(column, at, by=by)
    return found


def _check_quantile(word: str, question: CubeQuestion) -> None:
    """Refuse quantiles that the cube would not hold, before it is paid for."""
    column, at, by = _quantile(word)
    if not all(0.0 < q < 1.0 for q in at):
        raise ValueError(f"--quantiles must be numbers in (0, 1), got {word!r}. {PERCENT}")
    question.check_quantile(column, by)


def _quantile(word: str) -> tuple[str, list[float], tuple[str, ...]]:
    """column:0.5,0.9 or column:0.5,0.9:column,column."""
    column, _, rest = word.partition(":")
    at, _, by = rest.partition(":")
    try:
        return column, [float(q) for q in at.split(",")], tuple(by.split(",")) if by else ()
    except ValueError:
        raise ValueError(f"--quantiles must be column:0.5,0.9 or column:0.5,0.9:by, got {word!r}.") from None


def _file(number: int, names: tuple[str, ...]) -> str:
    """01-ward-age.csv: letters and digits of the columns' names alone, so that no name leads out of the folder."""
    words = ("".join(letter if letter.isalnum() else "_" for letter in name) for name in names)
    short = "-".join(words).encode()[:150].decode(errors="ignore")  # a name has at most 255 bytes
    return f"{number:02d}-{short or 'total'}.csv"


def _save(cube: Cube, quantiles: Words, folder: Path) -> None:
    """One .csv file a table, and the cube itself."""
    folder.mkdir(exist_ok=True)
    (folder / "cube.json").write_text(json.dumps(cube.to_dict(), ensure_ascii=False), encoding="utf-8")
    for name, answer in _answers(cube, quantiles).items():
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            write_answer(answer, file)
