"""Options of every command that reads a table: where it is, who its units are, who pays. Declared once."""

from typing import Annotated

import typer

from psidp.cli import options

__all__ = [
    "NO_UNIT",
    "Actor",
    "AdjacencyOrBudgets",
    "BudgetName",
    "ClippingShare",
    "Confidence",
    "Contribution",
    "EngineAt",
    "Joins",
    "LedgerAt",
    "Missing",
    "PlanOnly",
    "Protects",
    "Purpose",
    "RetryKey",
    "RowsAreUnits",
    "SameUnit",
    "Source",
    "TableName",
    "Types",
    "UnitColumn",
    "Weights",
    "Where",
    "Words",
]

Words = list[str]

Source = Annotated[
    str, typer.Argument(help="a .parquet, .csv or .duckdb file, or a folder; with --engine a table's name")
]
UnitColumn = Annotated[
    Words, typer.Option("--unit-column", help="names units of privacy, such as patient_id; several do so together")
]
RowsAreUnits = Annotated[bool, typer.Option("--rows-are-units", help="every row is its own unit")]
Where = Annotated[Words, typer.Option("--where", help="\"age >= 18 and ward in ('A', 'B')\"; may be repeated")]
Weights = Annotated[
    Words, typer.Option("--weight", help="share of psi^2: 'mean of cost:2' has twice the others'; may be repeated")
]
Contribution = Annotated[str, typer.Option("--contribution", help="rows' worth a unit may add, or auto")]
Confidence = Annotated[float, typer.Option("--confidence", help="chance that an interval covers, (0,1)")]
ClippingShare = Annotated[
    float, typer.Option("--clipping-share", help="part of psi^2 for measuring what clipping takes, [0,0.5]")
]
LedgerAt = Annotated[str, typer.Option("--ledger", help="where spending is written down: a file or postgresql://")]
BudgetName = Annotated[str, typer.Option("--budget", help="the budget that pays")]
Purpose = Annotated[str, typer.Option("--purpose", help="why, for the ledger")]
Actor = options.Actor
RetryKey = Annotated[
    str, typer.Option("--retry-key", help="idempotency key: asked again, the stored answer comes back")
]
EngineAt = Annotated[str, typer.Option("--engine", help="postgresql://... or spark://...; DuckDB unless told")]
TableName = Annotated[str, typer.Option("--table", help="which table of a .duckdb file")]
Types = Annotated[Words, typer.Option("--type", help="column:type of a .csv file, such as age:int64; may be repeated")]
Missing = Annotated[Words, typer.Option("--missing", help="text of a .csv file that stands for nothing, such as NA")]
Joins = Annotated[Words, typer.Option("--join", help="a public table and its key, such as wards.csv:ward; repeatable")]
AdjacencyOrBudgets = Annotated[
    str, typer.Option("--adjacency", help="add-remove or replace-one; the budget's unless told")
]
Protects = Annotated[str, typer.Option("--protects", help="whose data is protected, in words")]
SameUnit = Annotated[
    str, typer.Option("--same-unit", help="why another unit column names the budget's units, in words")
]
NO_UNIT = (
    "units must be named by --unit-column COLUMN, the column that says whose data a row is, or else --rows-are-units, "
    "where every row is somebody of its own."
)
"""The refusal of a table without a unit of privacy."""
PlanOnly = Annotated[bool, typer.Option("--plan", help="show what would run, cost and be worth; spend nothing")]
