"""psidp calibrate: sigma for a query, or noise_multiplier for a run."""

from typing import Annotated

import typer

from psidp.cli import options, run_options
from psidp.cli.account import calibrate_run
from psidp.cli.json_output import show_json
from psidp.cli.tables import console
from psidp.maths.notion import NAMES
from psidp.maths.sensitivity import check_adjacency
from psidp.present.formatting import up

__all__ = ["calibrate"]


@options.with_notions(*(name for name in NAMES if name not in {"sensitivity", "sigma"}))
def calibrate(
    notions: options.Notions,
    sensitivity: Annotated[
        float | None, typer.Option("--sensitivity", help="L2 sensitivity of the query, [0, inf)")
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="for a DP-SGD run: number of noisy steps")] = None,
    sampling_rate: Annotated[
        float | None, typer.Option("--sampling-rate", help="for a DP-SGD run: chance of a record to be in a batch")
    ] = None,
    epochs: Annotated[float | None, typer.Option("--epochs", help="for a run: in place of --steps")] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", help="for a run: with --dataset-size, in place of --sampling-rate")
    ] = None,
    dataset_size: run_options.Records = None,
    truncated_batch_size: run_options.Largest = None,
    group: run_options.Group = 1,
    batches: Annotated[
        int | None, typer.Option("--batches", help="for random allocation: batches of an epoch, with --epochs")
    ] = None,
    bands: Annotated[int | None, typer.Option("--bands", help="for correlated noise: over so many steps")] = None,
    order: run_options.Order = None,
    sampling: run_options.Way = "poisson",
    kappa: Annotated[float | None, typer.Option("--kappa", help="for a DP-SGD run and --psi: what it may miss")] = None,
    adjacency: options.Adjacent = "add-remove",
    unit: options.Unit = "record",
    as_json: options.AsJson = False,
) -> None:
    """Choose sigma for a query, or noise_multiplier for a run.

    A query has a sensitivity. A DP-SGD run has steps or epochs, and a sampling rate or a batch size with the size of
    the data; correlated noise has bands as well; random allocation has batches and epochs, a fixed order has epochs.
    All have a target.

    Example: psidp calibrate --sensitivity 1 --epsilon 1 --delta 1e-5

    Example: psidp calibrate --steps 1000 --sampling-rate 0.01 --epsilon 2 --delta 1e-5

    Example: psidp calibrate --epochs 10 --batch-size 256 --dataset-size 60000 --epsilon 2 --delta 1e-5
    """
    described = {
        "sampling_rate": sampling_rate, "steps": steps, "epochs": epochs, "batch_size": batch_size,
        "dataset_size": dataset_size, "truncated_batch_size": truncated_batch_size, "batches": batches,
        "bands": bands, "order": order,
    }  # fmt: skip
    told = group != 1 or any(value is not None for value in described.values())
    if told and sensitivity is None:
        other = next((name for name in notions if name not in {"epsilon", "delta", "psi", "advantage"}), None)
        if other:
            raise ValueError(f"a run is calibrated to epsilon and delta, psi and kappa, or advantage, got {other}.")
        targets: dict[str, float | None] = {**notions, "kappa": kappa}
        side = check_adjacency(adjacency)
        more = {"sampling": sampling, "unit": unit, "group": group}
        more["adjacency"] = None if side == "add-remove" else side  # which nobody may have said: the sampling says it
        return calibrate_run(described | more, as_json, targets)
    if sensitivity is None or told:
        raise TypeError("calibrate needs --sensitivity for a query, or --steps and --sampling-rate for a DP-SGD run.")
    if kappa is not None:
        raise ValueError("kappa (probability of outright failure) belongs to a run, which has --steps.")
    guarantee = options.chosen(adjacency, unit, notions)
    sigma = guarantee.sigma(sensitivity)
    if as_json:
        return show_json({"sigma": sigma, "sensitivity": sensitivity, "guarantee": guarantee.to_dict()})
    console.print(f"sigma = {sigma!r}")
    console.print(
        f"Noise with this standard deviation, on a query of sensitivity {sensitivity:g} ({guarantee.adjacency}, per "
        f"{guarantee.unit}), has psi = {up(guarantee.psi, 6)}: epsilon {up(float(guarantee.epsilon(1e-5)))} at "
        f"delta = 1e-5, AUC {up(guarantee.auc)}."
    )
    return None
