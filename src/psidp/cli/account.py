"""psidp account: what DP-SGD runs cost, with proof, one run or a sweep."""

import csv
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.progress import track

from psidp.accounting import DPSGD, BandMF, FixedOrder, account, calibrate
from psidp.accounting.calibration import described_run
from psidp.accounting.comparison import compare
from psidp.cli import options, run_options
from psidp.cli.json_output import show_json
from psidp.cli.tables import console, table
from psidp.present.formatting import down, up
from psidp.symbols import ADJACENCIES

__all__ = ["account_command", "calibrate_run"]

LONG = 40
"""Runs from which on a sweep shows its progress."""
Noises = Annotated[list[float], typer.Option("--noise-multiplier", help="noise over sensitivity, (0,inf); may repeat")]
Deltas = Annotated[list[float], typer.Option("--delta", help="probability slack, (0,1); may repeat")]
Kappa = Annotated[float | None, typer.Option("--kappa", help="also the one psi that covers everything but this")]
Compare = Annotated[bool, typer.Option("--compare", help="put CLT and RDP beside the certified interval")]
Certify = Annotated[
    bool, typer.Option("--certify", help="prove the answers once more in ball arithmetic; takes seconds")
]
Csv = Annotated[str, typer.Option("--csv", help="write the sweep to this file; - is standard output")]
BOUNDS = ("delta", "epsilon_lower", "epsilon_upper", "method")
SHORT = {"noise_multiplier": "noise", "sampling_rate": "rate"}


def account_command(
    noise_multiplier: Noises,
    sampling_rate: run_options.Rates = [],  # noqa: B006
    steps: run_options.Steps = [],  # noqa: B006
    batch_size: run_options.Sizes = [],  # noqa: B006
    dataset_size: run_options.Records = None,
    epochs: run_options.Epochs = [],  # noqa: B006
    delta: Deltas = [1e-5],  # noqa: B006
    sampling: run_options.Way = "poisson",
    adjacency: run_options.Side = None,
    group: run_options.Group = 1,
    truncated_batch_size: run_options.Largest = None,
    batches: run_options.Batches = [],  # noqa: B006
    bands: run_options.Bands = [],  # noqa: B006
    order: run_options.Order = None,
    kappa: Kappa = None,
    unit: options.Unit = "record",
    compared: Compare = False,
    certify: Certify = False,
    csv_path: Csv = "",
    as_json: options.AsJson = False,
) -> None:
    """Say what a training run costs, with both sides proved.

    The answer is an interval for epsilon. Repeat an option to sweep over its values. Everything must be fixed before
    any output is seen.

    Example: psidp account --noise-multiplier 1 --sampling-rate 0.01 --steps 1000 --compare

    Example: psidp account --noise-multiplier 1 --batch-size 256 --dataset-size 60000 --epochs 10

    Example: psidp account --noise-multiplier 1.5 --batches 25 --epochs 4

    Example: psidp account --noise-multiplier 1 --sampling-rate 0.01 --steps 2000 --bands 8

    Example: psidp account --noise-multiplier 4 --order fixed --epochs 4
    """
    made = run_options.runs(
        noise_multiplier,
        sampling_rates=sampling_rate,
        steps=steps,
        batch_sizes=batch_size,
        epochs=epochs,
        batches=batches,
        bands=bands,
        order=order,
        sampling=sampling,
        adjacency=adjacency,
        unit=unit,
        group=group,
        truncated_batch_size=truncated_batch_size,
        dataset_size=dataset_size,
    )
    if csv_path:
        rows = _rows(made, delta, kappa, certify, quiet=csv_path == "-")
        return _write(csv_path, _columns(made[0], kappa), rows)
    if as_json:
        return show_json({"runs": [_described(run, delta, kappa, compared, certify) for run in made]})
    if len(made) * len(delta) > 1:
        return _sweep(run_options.columns(made[0]), list(_rows(made, delta, kappa, certify, quiet=False)), kappa)
    return _one(made[0], delta[0], kappa, compared, certify)


def calibrate_run(described: dict[str, Any], as_json: bool, targets: dict[str, float | None]) -> None:
    """The noise_multiplier for a run and a target, on the terminal."""
    given: dict[str, Any] = {name: value for name, value in targets.items() if value is not None}
    run = described_run(**described)
    noise = calibrate(**{name: value for name, value in described.items() if name != "unit"}, **given)
    if as_json:
        return show_json({"noise_multiplier": noise} | _rest(run) | given)
    console.print(f"noise_multiplier = {noise!r}")
    shown = ", ".join(f"{name} {value:g}" for name, value in given.items())
    console.print(
        f"The least noise, relative to the {run.adjacency} sensitivity, that meets {shown} per {run.unit} with proof."
    )
    return None


def _rest(run: run_options.Run) -> dict[str, Any]:
    """What a run is said to be, but for its noise; sampling is left out where it is the usual one."""
    values = run_options.said(run)
    return {n: v for n, v in values.items() if n != "noise_multiplier" and (n, v) != ("sampling", "poisson")}


def _columns(run: run_options.Run, kappa: float | None) -> list[str]:
    """The columns of a sweep: psi is among them where kappa was given."""
    return [*run_options.columns(run), *BOUNDS] if kappa is None else [*run_options.columns(run), *BOUNDS, "psi"]


def _rows(
    made: list[run_options.Run], deltas: list[float], kappa: float | None, certify: bool, quiet: bool
) -> Iterator[dict[str, Any]]:
    """One row for each run and delta, with a progress bar while a long sweep goes on."""
    long = certify or len(made) >= LONG
    watched = track(made, "accounting", console=console, transient=True) if long and not quiet else made
    for run in watched:
        curve = account(run, certify=certify)
        number = () if kappa is None else (curve.guarantee(kappa).psi,)
        for delta in deltas:
            interval = curve.epsilon(delta)
            values = tuple(getattr(run, name) for name in run_options.columns(run))
            bounds = (delta, interval.lower, interval.upper, interval.method)
            yield dict(zip(_columns(run, kappa), (*values, *bounds, *number), strict=True))


def _write(path: str, columns: list[str], rows: Iterator[dict[str, Any]]) -> None:
    if path == "-":
        return _write_to(sys.stdout, columns, rows)
    with Path(path).open("w", newline="") as file:
        return _write_to(file, columns, rows)


def _write_to(file: TextIO, columns: list[str], rows: Iterator[dict[str, Any]]) -> None:
    writer = csv.DictWriter(file, columns)
    writer.writeheader()
    writer.writerows(rows)


def _sweep(names: tuple[str, ...], rows: list[dict[str, Any]], kappa: float | None) -> None:
    number = [] if kappa is None else [f"psi, but for\n{kappa:g}"]
    heads = [SHORT.get(name, name) for name in names]
    shown = table("epsilon, certified", [], [*heads, "delta", "from", "to", *number])
    for row in rows:
        low, high = down(row["epsilon_lower"], 7), up(row["epsilon_upper"], 7)
        values = [f"{row[name]:,}" if isinstance(row[name], int) else f"{row[name]:g}" for name in names]
        psi = [up(row["psi"], 7)] if "psi" in row else []
        shown.add_row(*values, f"{row['delta']:g}", low, high, *psi)
    console.print(shown)


def _one(run: run_options.Run, delta: float, kappa: float | None, compared: bool, certify: bool) -> None:
    curve = account(run, certify=certify)
    psi = None if kappa is None else curve.guarantee(kappa).psi
    with console.status("proving in ball arithmetic") if certify else nullcontext():
        interval, advantage, auc = curve.epsilon(delta), curve.advantage, curve.auc
    how = _sampled(run)
    console.print(f"epsilon at delta = {delta:g} is between {interval.lower!r} and {interval.upper!r}.")
    console.print(
        f"Both ends are proved ({interval.method}); {how}, {curve.adjacency}, per {curve.unit}. "
        f"The best attack has an advantage of at most {up(advantage.upper)} and an AUC of at most "
        f"{up(auc.upper)}."
    )
    if curve.adjacency == "replace-one":
        console.print("noise_multiplier is relative to the replace-one sensitivity: twice the clipping norm.")
    if curve.adjacency == "zero-out":
        console.print(f"zero-out: {ADJACENCIES['zero-out'][0]}.")
    if curve.kappa:
        console.print(
            f"Some batch is truncated with a probability of at most {up(curve.kappa)}, which counts as failure."
        )
    if psi is not None:
        console.print(f"One number for all of it, except with probability {kappa:g}: psi = {up(psi, 7)}.")
    if compared:
        _compared(run, delta)


def _sampled(run: run_options.Run) -> str:
    """How the records come into batches."""
    if isinstance(run, BandMF):
        same = f"DP-SGD at rate {run.class_rate:g} for {run.dpsgd.steps:,} steps"
        return f"correlated noise of {run.bands} bands and cyclic poisson sampling, at the price of {same}"
    if isinstance(run, FixedOrder):
        return f"a fixed order without sampling, psi = {up(run.psi, 7)} exactly"
    return f"{run.sampling} sampling" if isinstance(run, DPSGD) else "random allocation"


def _compared(run: run_options.Run, delta: float) -> None:
    shown = table(f"epsilon at delta = {delta:g}", ["method", "what it is", "here"], ["epsilon"])
    rows = compare(run, delta)
    for row in rows:
        shown.add_row(row.method, row.kind, row.verdict, up(row.epsilon, 6))
    console.print(shown)
    wrong = [row.method for row in rows if row.verdict == "understates the loss here"]
    if wrong:
        console.print(f"Understating the loss here: {'; '.join(wrong)}.")


def _described(
    run: run_options.Run, deltas: list[float], kappa: float | None, compared: bool, certify: bool
) -> dict[str, Any]:
    curve = account(run, certify=certify)
    advantage, auc = curve.advantage, curve.auc
    described: dict[str, Any] = run_options.said(run) | {
        "adjacency": curve.adjacency,
        "unit": curve.unit,
        "epsilon": [
            {"delta": d, "lower": i.lower, "upper": i.upper, "method": i.method}
            for d, i in ((d, curve.epsilon(d)) for d in deltas)
        ],
        "advantage": {"lower": advantage.lower, "upper": advantage.upper},
        "auc": {"lower": auc.lower, "upper": auc.upper},
    }
    if kappa is not None:
        described["guarantee"] = curve.guarantee(kappa).to_dict()
    if compared:
        described["comparison"] = [
            {"method": r.method, "kind": r.kind, "epsilon": r.epsilon, "verdict": r.verdict}
            for r in compare(run, deltas[0])
        ]
    return described
