"""psidp release: numbers in, noisy numbers out, and what that cost."""

import sys
from typing import Annotated, Any

import numpy as np
import typer

from psidp.cli import options, plain_values
from psidp.cli.balance import in_words, plain
from psidp.cli.echo import echo
from psidp.cli.json_output import show_json
from psidp.cli.number_files import check_target, read_column, write_column
from psidp.cli.publishing import paid_and_stored
from psidp.cli.release_cube import release_cube
from psidp.cli.release_run import release_run
from psidp.cli.release_table import release_table
from psidp.ledger.ledger import Ledger
from psidp.maths.sensitivity import check_adjacency
from psidp.mechanism.gaussian import GaussianMechanism
from psidp.mechanism.release import Release
from psidp.present.formatting import up

__all__ = ["app"]

app = typer.Typer(
    help="Publish numbers with exact Gaussian noise.\n\n"
    "Answers go to standard output, what they cost to standard error.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command(name="table")(release_table)
app.command(name="cube")(release_cube)
app.command(name="run")(release_run)

Grid = Annotated[float | None, typer.Option("--grid", help="step of the released values, a power of two")]
Integers = Annotated[bool, typer.Option("--integers", help="whole numbers in, whole numbers out")]
Needed = Annotated[
    float, typer.Option("--sensitivity", help="how far one unit can move the answer, all numbers together, in L2 norm")
]
Book = Annotated[str, typer.Option("--ledger", help="pay from this ledger first: a path, or postgresql://...")]
Name = Annotated[str, typer.Option("--budget", help="the budget in that ledger")]
Why = Annotated[str, typer.Option("--purpose", help="why, in words, for the ledger")]
TARGETS = ("sigma", "psi", "epsilon", "delta", "auc", "advantage", "zcdp")
RetryKey = Annotated[
    str, typer.Option("--retry-key", help="idempotency key: a retry prints the same answer and spends nothing")
]


@app.command(context_settings={"ignore_unknown_options": True})
@options.with_notions(*TARGETS)
def value(
    numbers: Annotated[
        list[str], typer.Argument(help="the true answer, one number or several; - reads standard input")
    ],
    sensitivity: Needed,
    notions: options.Notions,
    grid: Grid = None,
    integers: Integers = False,
    adjacency: options.Adjacent = "add-remove",
    unit: options.Unit = "record",
    ledger: Book = "",
    budget: Name = "",
    purpose: Why = "",
    retry_key: RetryKey = "",
    as_json: options.AsJson = False,
) -> None:
    """Release one number, or several as one vector.

    Example: psidp release value 123.4 --sensitivity 1 --epsilon 1 --delta 1e-6
    """
    mechanism = _mechanism(sensitivity, notions, grid, adjacency, unit, ledger, budget)
    words = sys.stdin.read().split() if numbers == ["-"] else numbers
    parsed = [_parsed(word, integers) for word in words]
    if not parsed:
        raise ValueError("the value to release must be at least one number, got none.")
    x = parsed[0] if len(parsed) == 1 else parsed
    release = mechanism.release(x, integers=integers, **_payment(mechanism, purpose, retry_key, "value"))
    if as_json:
        return show_json(_described(release))
    for number in np.atleast_1d(release.value).tolist():
        echo(repr(number))
    return _say_cost(release, notions.get("delta"), mechanism)


@app.command()
@options.with_notions(*TARGETS)
def column(
    source: Annotated[
        str, typer.Argument(help="a file that ends in .csv, .npy or .parquet; - reads CSV from standard input")
    ],
    sensitivity: Needed,
    notions: options.Notions,
    column: Annotated[str | None, typer.Option("--column", help="name of the column; its number in an array")] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="a .csv or .npy file; - is standard output")] = "-",
    grid: Grid = None,
    adjacency: options.Adjacent = "add-remove",
    unit: options.Unit = "record",
    ledger: Book = "",
    budget: Name = "",
    purpose: Why = "",
    retry_key: RetryKey = "",
    as_json: options.AsJson = False,
) -> None:
    """Release a column of numbers as one vector. No other column is written. Cells without a number count as 0.

    Example: psidp release column counts.csv --column visits --sensitivity 1 --psi 0.5
    """
    mechanism = _mechanism(sensitivity, notions, grid, adjacency, unit, ledger, budget)
    numbers = read_column(source, column)
    check_target(output, numbers.ndim)
    release = mechanism.release(numbers, **_payment(mechanism, purpose, retry_key, f"column {column}"))
    if as_json:
        return show_json(_described(release))
    values = np.asarray(release.value)
    with paid_and_stored(retry_key, lambda: write_column("-", column, values.reshape(-1))):
        write_column(output, column, values)
    return _say_cost(release, notions.get("delta"), mechanism)


def _mechanism(
    sensitivity: float,
    notions: options.Notions,
    grid: float | None,
    adjacency: str,
    unit: str,
    ledger: str,
    budget: str,
) -> GaussianMechanism:
    """The mechanism with a given sigma, or the one that meets a target."""
    paid: Any = {"ledger": Ledger(ledger) if ledger else None, "budget": budget}
    target: Any = {name: value for name, value in notions.items() if name != "sigma"}
    sigma = notions.get("sigma")
    if sigma is None:
        side = check_adjacency(adjacency)
        return GaussianMechanism.calibrate(sensitivity, adjacency=side, unit=unit, grid=grid, **paid, **target)
    if target:
        raise ValueError(f"sigma must be given alone or left out: {', '.join(target)} chooses sigma as well.")
    return GaussianMechanism(sensitivity, sigma, check_adjacency(adjacency), unit, grid, **paid)


def _payment(mechanism: GaussianMechanism, purpose: str, retry_key: str, request: str) -> dict[str, Any]:
    """What the ledger wants to know; nothing where there is none."""
    if mechanism.ledger is None and not (purpose or retry_key):
        return {}
    return {"purpose": purpose, "retry_key": retry_key, "request": request}


def _parsed(word: str, integers: bool) -> Any:
    """A number from the command line."""
    try:
        return int(word) if integers else plain_values.number(word)
    except ValueError:
        wanted = "a whole number" if integers else "a number"
        raise ValueError(f"the value to release must be {wanted}, got {word!r}.") from None


def _described(release: Release) -> dict[str, Any]:
    """The release and its error as plain values."""
    low, high = release.confidence_interval(0.95)
    interval = {"level": 0.95, "lower": np.asarray(low).tolist(), "upper": np.asarray(high).tolist()}
    return release.to_dict() | {"confidence_interval": interval, "mean_squared_error": release.mean_squared_error}


def _say_cost(release: Release, delta: float | None, mechanism: GaussianMechanism) -> None:
    """What was spent and how good the answer is, beside the answer and not in it."""
    g, at = release.guarantee, 1e-5 if delta is None else delta
    low, high = (np.atleast_1d(end) for end in release.confidence_interval(0.95))
    room = float(np.max(high - low, initial=0.0)) / 2.0
    spent = f"Spent psi = {up(g.psi)}"
    paid = "No ledger was asked, so nothing was written down."
    if release.stored:
        spent = (
            "This is the stored answer, drawn from what was given when the key was used first. That one spent "
            f"psi = {up(g.psi)}"
        )
    if mechanism.ledger is not None:
        left = mechanism.ledger.remaining(mechanism.budget)
        paid = f"Paid from budget {plain(mechanism.budget)}. {in_words(left)}"
    echo(
        f"{spent} ({g.adjacency}, per {g.unit}): epsilon {up(float(g.epsilon(at)))} at delta = {at:g}. "
        f"Noise of standard deviation {up(release.sigma)}; each true number lies within {up(room)} of the one "
        f"released with probability 0.95. {paid}",
        err=True,
    )
