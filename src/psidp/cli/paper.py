"""psidp paper: the paper's experiment, beside its own numbers."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from psidp.cli import options
from psidp.cli.json_output import show_json
from psidp.cli.tables import show_paper
from psidp.present import paper_experiment

__all__ = ["paper"]


def paper(
    figure: Annotated[int, typer.Option("--figure", help="6 (data at alpha = 1.9) or 7 (alpha = 6)")] = 7,
    csv: Annotated[str, typer.Option("--csv", help="write all columns to this file; - is standard output")] = "",
    as_json: options.AsJson = False,
) -> None:
    """Reproduce the paper's experiment, beside its own numbers.

    Three roads lead from psi to epsilon at delta = 1e-5: the profile and two conversions of Renyi DP.
    """
    table = paper_experiment.experiment(figure)
    if csv == "-":
        return paper_experiment.write_csv(table, sys.stdout)
    if csv:
        with Path(csv).open("w", newline="") as file:
            paper_experiment.write_csv(table, file)
    if as_json:
        columns = {name: column.tolist() for name, column in table.items()}
        return show_json(
            {"figure": figure, "alpha": paper_experiment.FIGURES[figure], "delta": 1e-5, "columns": columns}
        )
    return show_paper(figure, table)
