"""psidp release cube: many private tables of the same columns, which agree with each other, for one price."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from psidp.cli import options
from psidp.cli import table_options as given
from psidp.cli.ask_words import bounds, edges_of
from psidp.cli.echo import echo
from psidp.cli.json_output import show_json
from psidp.cli.publishing import paid_and_stored, write_answer
from psidp.cli.release_table import column_type, contribution_of, shown, stray_keys, with_progress
from psidp.cli.tables import console
from psidp.curator import ask
from psidp.curator.aggregate import PERCENT, check_edges
from psidp.curator.answer import Answer
from psidp.curator.cube import Cube
from psidp.curator.curator import Curator
from psidp.curator.file_columns import check_writable
from psidp.curator.groups import keys_from_text
from psidp.curator.query import CLIPPING_SHARE, need_column
from psidp.escaping import json_text
from psidp.ledger.ledger import Ledger
from psidp.maths.sensitivity import check_adjacency

__all__ = ["release_cube"]

Words = given.Words
MOST_SHOWN = 400
"""Cells up to which a table is shown in a terminal."""


def _many(flag: str, help: str) -> Any:
    return typer.Option(flag, help=help)


@options.with_prices()
def release_cube(
    source: given.Source,
    notions: options.Notions,
    unit_column: given.UnitColumn = [],  # noqa: B006
    rows_are_units: given.RowsAreUnits = False,
    column: Annotated[Words, _many("--column", "column:value,value,... or column:1..12, public")] = [],  # noqa: B006
    bins: Annotated[Words, _many("--bins", "column:edge,edge,... whose bins are asked for")] = [],  # noqa: B006
    ordered: Annotated[
        Words, _many("--ordered", "column:edge,edge,... of which quantiles and shares below are asked")
    ] = [],  # noqa: B006
    up_to: Annotated[int, typer.Option("--up-to", help="all tables of up to so many columns")] = 2,
    tables: Annotated[Words, _many("--tables", "column,column instead of --up-to; may be repeated")] = [],  # noqa: B006
    count: Annotated[bool, typer.Option("--count/--no-count", help="how many rows")] = True,
    sum_of: Annotated[Words, _many("--sum", "column:lower:upper")] = [],  # noqa: B006
    mean_of: Annotated[Words, _many("--mean", "column:lower:upper")] = [],  # noqa: B006
    quantiles: Annotated[
        Words, _many("--quantiles", "column:0.5,0.9 or column:0.5,0.9:by of an --ordered or --bins column")
    ] = [],  # noqa: B006
    errors: Annotated[
        Words, _many("--error", "2:5 or column,column:5: wanted standard errors of counts, instead of --psi")
    ] = [],  # noqa: B006
    balance: Annotated[str, typer.Option("--balance", help="which error is least: worst or total")] = "worst",
    where: given.Where = [],  # noqa: B006
    contribution: given.Contribution = "1",
    bound: Annotated[str, typer.Option("--bound", help="how a unit's rows are measured: rows or image")] = "rows",
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
    adjacency: given.AdjacencyOrBudgets = "",
    protects: given.Protects = "",
    same_unit: given.SameUnit = "",
    output: Annotated[
        str, typer.Option("--output", "-o", help="a folder for one .csv file a table and the whole cube.json")
    ] = "",
    plan: given.PlanOnly = False,
    as_json: options.AsJson = False,
) -> None:
    """Release many tables of the same columns at once, for one psi.

    Their cells add up to each other, and each has the least error that this psi allows.

    Example: psidp release cube visits.parquet --unit-column patient_id --column ward:A,B,C --bins age:0,18,65,120
    --up-to 2 --psi 0.5 --ledger ledger.db --budget survey -o tables
    """
    if bool(unit_column) == rows_are_units:
        raise ValueError(given.NO_UNIT)
    if output and not _free(Path(output)):
        raise ValueError(f"the output must be an empty folder, or one that can be made, got {output!r}.")
    curator = Curator(
        source, unit_column or None, ledger=Ledger(ledger, actor=actor) if ledger else None, budget=budget or None,
        name=name or None,
        adjacency=check_adjacency(adjacency) if adjacency else None, protects=protects or None, engine=engine or None,
        same_unit=same_unit, types=dict(map(column_type, types)), missing=missing or None,
    )  # fmt: skip
    asks = [ask.count()] * count + [ask.sum(*bounds(word)) for word in sum_of]
    asks += [ask.mean(*bounds(word)) for word in mean_of]
    columns: dict[str, Any] = {}
    for part in [_listed(curator, word) for word in column] + [_cut(word, ask.bins) for word in bins]:
        _add(columns, *part)
    for word in ordered:
        _add(columns, *_cut(word, ask.ordered))
    question: dict[str, Any] = {
        "measures": asks, **notions, "errors": dict(map(_error, errors)) or None, "balance": balance, "where": where,
        "confidence": confidence, "contribution": contribution_of(contribution), "bound": bound,
        "clipping_share": clipping_share,
    }  # fmt: skip
    wanted: Any = [tuple(word.split(",")) for word in tables] or ask.up_to(up_to)
    if quantiles and not count:
        raise ValueError("--quantiles must be asked of a cube that counts rows: leave out --no-count.")
    for word in quantiles:
        _check_quantile(word, columns, wanted)
    try:
        if plan:
            return _show_plan(curator.plan_cube(columns, wanted, **question), as_json)
        cube = with_progress(
            curator, lambda: curator.cube(columns, wanted, **question, purpose=purpose, retry_key=retry_key)
        )
    finally:
        curator.dispose()
    with paid_and_stored(cube.retry_key, lambda: echo(json_text(cube.to_json()))):
        show_cube(cube, quantiles, output, as_json)
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
    schema = curator.table.schema()
    if not colon:
        raise ValueError(f"--column must be column:value,value,..., such as ward:A,B or month:1..12, got {word!r}.")
    need_column(name, schema, "--column")
    if stray := stray_keys(values):
        echo(f"psidp: {stray}", err=True)
    return name, keys_from_text(values, name, schema[name])


def _cut(word: str, make: Any) -> tuple[str, Any]:
    name, edges = edges_of(word)
    return name, make(check_edges(name, edges))


def _add(columns: dict[str, Any], name: str, values: Any) -> None:
    if name in columns:
        raise ValueError(f"a cube must name different columns, got {name!r} twice.")
    columns[name] = values


def _error(word: str) -> tuple[Any, float]:
    """2:5 for all tables of two columns, or ward,age:5 for one."""
    table, colon, error = word.rpartition(":")
    if not colon:
        raise ValueError(f"--error must be columns:error, such as 2:5 or ward,age:5, got {word!r}.")
    try:
        return (int(table) if table.isdecimal() else tuple(table.split(","))), float(error)
    except ValueError:
        raise ValueError(f"{error!r} in {word!r} must be a number.") from None


def _show_plan(plan: Any, as_json: bool) -> None:
    if as_json:
        return show_json(plan.to_dict())
    return echo(plan.summary())


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


def _check_quantile(word: str, columns: dict[str, Any], wanted: Any) -> None:
    """Refuse quantiles that the cube would not hold, before it is paid for."""
    column, at, by = _quantile(word)
    if not isinstance(columns.get(column), ask.Bins):
        raise ValueError(f"--quantiles must name an --ordered or --bins column, got {column!r}.")
    if not all(0.0 < q < 1.0 for q in at):
        raise ValueError(f"--quantiles must be numbers in (0, 1), got {word!r}. {PERCENT}")
    names = {column, *by}
    few = names <= set(columns) and len(names) == 1 + len(by)
    held = len(names) <= wanted.order if isinstance(wanted, ask.UpTo) else any(names <= set(t) for t in wanted)
    if not (few and held):
        raise ValueError(f"--quantiles must ask for columns that one of the cube's tables has together, got {word!r}.")


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
