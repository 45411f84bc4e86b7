"""psidp account: what DP-SGD runs cost, with proof, one run or a sweep."""

import csv
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.progress import track

from psidp.accounting import DPSGD, account, calibrate
from psidp.accounting.comparison import compare
from psidp.maths.sensitivity import Adjacency
from psidp.present import notion
from psidp.present.digits import down, up
from psidp.present.tables import console, show_json, table

__all__ = ["account_command", "calibrate_run"]

LONG = 40
"""Runs from which on a sweep shows its progress."""
Noises = Annotated[list[float], typer.Option("--noise-multiplier", help="noise over sensitivity, (0,inf); may repeat")]
Rates = Annotated[list[float], typer.Option("--sampling-rate", help="chance to be in a batch, [0,1]; may repeat")]
Steps = Annotated[list[int], typer.Option("--steps", help="number of noisy steps; may repeat")]
Deltas = Annotated[list[float], typer.Option("--delta", help="probability slack, (0,1); may repeat")]
Way = Annotated[str, typer.Option("--sampling", help="poisson or without-replacement")]
Kappa = Annotated[float | None, typer.Option("--kappa", help="also the one psi that covers everything but this")]
Compare = Annotated[bool, typer.Option("--compare", help="put CLT and RDP beside the certified interval")]
Csv = Annotated[str, typer.Option("--csv", help="write the sweep to this file; - is standard output")]
COLUMNS = ["noise_multiplier", "sampling_rate", "steps", "delta", "epsilon_lower", "epsilon_upper", "road"]


def account_command(
    noise_multiplier: Noises,
    sampling_rate: Rates,
    steps: Steps,
    delta: Deltas = [1e-5],  # noqa: B006
    sampling: Way = "poisson",
    kappa: Kappa = None,
    unit: notion.Unit = "record",
    compared: Compare = False,
    csv_path: Csv = "",
    as_json: notion.AsJson = False,
) -> None:
    """Say what a DP-SGD run costs, with both sides proved.

    The answer is an interval for epsilon. Repeat an option to sweep over its values. Everything must be fixed before
    any output is seen.

    Example: psidp account --noise-multiplier 1 --sampling-rate 0.01 --steps 1000 --compare
    """
    runs = [
        DPSGD(*values, sampling=sampling, unit=unit)  # type: ignore[arg-type]
        for values in product(noise_multiplier, sampling_rate, steps)
    ]
    if csv_path:
        return _write(csv_path, _columns(kappa), _rows(runs, delta, kappa, quiet=csv_path == "-"))
    if as_json:
        return show_json({"runs": [_described(run, delta, kappa, compared) for run in runs]})
    if len(runs) * len(delta) > 1:
        return _sweep(list(_rows(runs, delta, kappa, quiet=False)), kappa)
    return _one(runs[0], delta[0], kappa, compared)


def calibrate_run(
    sampling_rate: float,
    steps: int,
    sampling: str,
    adjacency: Adjacency,
    unit: str,
    as_json: bool,
    targets: dict[str, float | None],
) -> None:
    """The noise_multiplier for a run and a target, on the terminal."""
    given = {name: value for name, value in targets.items() if value is not None}
    asked = None if adjacency == "add-remove" else adjacency  # which nobody may have said: the sampling says it
    run = DPSGD(1.0, sampling_rate, steps, sampling, asked, unit)  # type: ignore[arg-type]
    noise = calibrate(sampling_rate=sampling_rate, steps=steps, sampling=run.sampling, **given)
    if as_json:
        return show_json({"noise_multiplier": noise, "sampling_rate": sampling_rate, "steps": steps} | given)
    console.print(f"noise_multiplier = {noise!r}")
    shown = ", ".join(f"{name} {value:g}" for name, value in given.items())
    console.print(
        f"The least noise, relative to the {run.adjacency} sensitivity, that meets {shown} per {run.unit} with proof."
    )
    return None


def _columns(kappa: float | None) -> list[str]:
    """The columns of a sweep: psi is among them where kappa was given."""
    return COLUMNS if kappa is None else [*COLUMNS, "psi"]


def _rows(runs: list[DPSGD], deltas: list[float], kappa: float | None, quiet: bool) -> Iterator[dict[str, Any]]:
    """One row for each run and delta, with a progress bar while a long sweep goes on."""
    watched = runs if quiet or len(runs) < LONG else track(runs, "accounting", console=console, transient=True)
    for run in watched:
        curve = account(run)
        number = () if kappa is None else (curve.guarantee(kappa).psi,)
        for delta in deltas:
            interval = curve.epsilon(delta)
            values = (run.noise_multiplier, run.sampling_rate, run.steps, delta)
            bounds = (interval.lower, interval.upper, interval.road)
            yield dict(zip(_columns(kappa), (*values, *bounds, *number), strict=True))


def _write(path: str, columns: list[str], rows: Iterator[dict[str, Any]]) -> None:
    if path == "-":
        return _write_to(sys.stdout, columns, rows)
    with Path(path).open("w", newline="") as file:
        return _write_to(file, columns, rows)


def _write_to(file: TextIO, columns: list[str], rows: Iterator[dict[str, Any]]) -> None:
    writer = csv.DictWriter(file, columns)
    writer.writeheader()
    writer.writerows(rows)


def _sweep(rows: list[dict[str, Any]], kappa: float | None) -> None:
    number = [] if kappa is None else [f"psi, but for\n{kappa:g}"]
    shown = table("epsilon, certified", [], ["noise", "rate", "steps", "delta", "from", "to", *number])
    for row in rows:
        low, high = down(row["epsilon_lower"], 7), up(row["epsilon_upper"], 7)
        values = [f"{row[name]:g}" for name in COLUMNS[:2]]
        psi = [up(row["psi"], 7)] if "psi" in row else []
        shown.add_row(*values, f"{row['steps']:,}", f"{row['delta']:g}", low, high, *psi)
    console.print(shown)


def _one(run: DPSGD, delta: float, kappa: float | None, compared: bool) -> None:
    curve = account(run)
    interval = curve.epsilon(delta)
    psi = None if kappa is None else curve.guarantee(kappa).psi
    console.print(f"epsilon at delta = {delta:g} is between {interval.lower!r} and {interval.upper!r}.")
    console.print(
        f"Both ends are proved ({interval.road}); {run.sampling} sampling, {curve.adjacency}, per {curve.unit}. "
        f"The best attack has an advantage of at most {up(curve.advantage.upper)} and an AUC of at most "
        f"{up(curve.auc.upper)}."
    )
    if psi is not None:
        console.print(f"One number for all of it, except with probability {kappa:g}: psi = {up(psi, 7)}.")
    if compared:
        _compared(run, delta)


def _compared(run: DPSGD, delta: float) -> None:
    shown = table(f"epsilon at delta = {delta:g}", ["road", "what it is", "here"], ["epsilon"])
    rows = compare(run, delta)
    for row in rows:
        shown.add_row(row.road, row.kind, row.verdict, up(row.epsilon, 6))
    console.print(shown)
    wrong = [row.road for row in rows if row.verdict == "understates the loss here"]
    if wrong:
        console.print(f"Understating the loss here: {'; '.join(wrong)}.")


def _described(run: DPSGD, deltas: list[float], kappa: float | None, compared: bool) -> dict[str, Any]:
    curve = account(run)
    described: dict[str, Any] = {
        "noise_multiplier": run.noise_multiplier,
        "sampling_rate": run.sampling_rate,
        "steps": run.steps,
        "sampling": run.sampling,
        "adjacency": curve.adjacency,
        "unit": curve.unit,
        "epsilon": [
            {"delta": d, "lower": i.lower, "upper": i.upper, "road": i.road}
            for d, i in ((d, curve.epsilon(d)) for d in deltas)
        ],
        "advantage": {"lower": curve.advantage.lower, "upper": curve.advantage.upper},
        "auc": {"lower": curve.auc.lower, "upper": curve.auc.upper},
    }
    if kappa is not None:
        described["guarantee"] = curve.guarantee(kappa).to_dict()
    if compared:
        described["comparison"] = [
            {"road": r.road, "kind": r.kind, "epsilon": r.epsilon, "verdict": r.verdict}
            for r in compare(run, deltas[0])
        ]
    return described
