"""psidp release run: a stored question, asked of a table."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from psidp.cli import release_cube, release_table
from psidp.cli.from_values import from_values
from psidp.cli.publishing import Output
from psidp.cli.release_table import Shows
from psidp.cli.table_options import Pays, Price, TableAt
from psidp.tables.cube import CubeQuestion
from psidp.tables.table import TableQuestion

__all__ = ["release_run"]


@from_values
def release_run(
    question: Annotated[Path, typer.Argument(help="a .json file with a question: what Question.to_json wrote")],
    table: TableAt,
    price: Price,
    pays: Pays,
    output: Output,
    shows: Shows,
) -> None:
    """Release the answer to a stored question, of a table or a cube.

    Example: psidp release run question.json visits.parquet --unit-column patient_id --epsilon 1 --delta 1e-6
    """
    try:
        values = json.loads(question.read_text(encoding="utf-8"))
    except ValueError:
        raise ValueError(
            f"the question must be a JSON file that Question.to_json wrote, got {str(question)!r}."
        ) from None
    curator = table.opened(pays)
    try:
        asked = curator.question(values)
        if isinstance(asked, TableQuestion):
            output.check(asked.asks)
            return release_table.release_question(curator, asked, price.notions, pays, output, shows)
        if isinstance(asked, CubeQuestion):
            read = release_cube.Read(output=output.output, plan=shows.plan, as_json=shows.as_json)
            if shows.sql or replace(output, output="") != Output():
                raise ValueError(
                    "a cube must have no option of a table's answer: of these it has -o, --plan and --json."
                )
            read.check()
            return release_cube.release_question(curator, asked, price.notions, pays, read)
        raise ValueError("a stream is opened and published with psidp stream, not released at once.")
    finally:
        curator.dispose()
