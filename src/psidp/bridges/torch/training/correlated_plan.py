"""The plan of a run with correlated noise: how many bands, which whole numbers, for which neighbours."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final

import torch

from psidp.accounting import DPSGD, BandMF, FixedOrder, calibrate
from psidp.bridges.torch.training.journal import Terms, read
from psidp.bridges.torch.training.plan import Run, epoch_of, length_of, planned, rounded_up
from psidp.maths.sensitivity import Adjacency, check_adjacency
from psidp.strategies import BandChoice, ModelError, Toeplitz, best_bands
from psidp.symbols import symbol, whole

__all__ = ["Correlation", "Order", "multiplier_of", "planned_run"]

Order = Literal["sampled", "fixed"]
ROOM, LONGEST = 2**26, 1024
"""Numbers that bands="auto" may keep in a fixed order, and bands at most: there more of them cost no privacy."""


@final
@dataclass(frozen=True, slots=True)
class Correlation:
    """What was asked about the noise and the order of the records.

    `kept` are the terms of the run that goes on, where there is one: its strategy is taken and never computed again.
    """

    bands: int | Literal["auto"]
    workload: ModelError
    order: Order
    adjacency: Adjacency | None
    named: bool
    """Whether records have ids."""
    size: int
    """Parameters of the model."""
    kept: Terms | None = None

    @classmethod
    def asked(
        cls,
        bands: Any,
        workload: str,
        order: str,
        adjacency: str | None,
        named: bool,
        model: Any,
        optimizer: torch.optim.Optimizer,
        checkpoint: Path | None,
    ) -> "Correlation":
        """What the trainer was told, or a refusal."""
        if order not in ("sampled", "fixed"):
            raise ValueError(f'order (of the records) must be "sampled" or "fixed", got order={order!r}.')
        if bands != "auto" and (isinstance(bands, str) or not whole("bands", bands)):
            raise ValueError(f'bands must be a whole number of at least 1 or "auto", got bands={bands!r}.')
        side = None if adjacency is None else check_adjacency(adjacency)
        size = sum(p.numel() for p in model.parameters()) if isinstance(model, torch.nn.Module) else 1
        error, kept = _workload(workload, optimizer), _kept(checkpoint)
        return cls(bands, error, order, side, named, size, kept)  # type: ignore[arg-type]

    def strategy(self, steps: int, bands: int) -> Toeplitz:
        """The whole numbers: those of the run that goes on, or the best ones."""
        kept = self.kept or {}
        if "coefficients" in kept and (kept.get("bands"), kept.get("steps")) == (bands, steps):
            return Toeplitz(steps, tuple(kept["coefficients"]))
        return self.workload.strategy(steps, bands)


def planned_run(said: Correlation, **asked: Any) -> tuple[Run, Toeplitz | None, BandChoice | None]:
    """The run that meets what was asked, its strategy (None: independent noise), and what "auto" compared."""
    if said.order == "fixed":
        run, bands = _fixed(said, **asked)
        return run, said.strategy(run.steps, bands), None
    choice = None
    if said.bands == "auto":
        choice = _compared(said, **asked)
        bands = choice.best.bands if said.kept is None else int(said.kept.get("bands", 1))
    else:
        bands = said.bands
    made = _banded(said, bands, **asked)
    if isinstance(made, DPSGD):
        return made, None, choice
    return made, said.strategy(made.steps, made.bands), choice


def _banded(said: Correlation, bands: int, *, sampling_rate: float, **asked: Any) -> DPSGD | BandMF:
    """A run of so many bands: that of its blocks, which are the steps of one class."""
    if said.adjacency == "replace-one":
        raise ValueError('adjacency must be "add-remove" or "zero-out" with sampling, got adjacency="replace-one".')
    if bands == 1:
        plain = planned(sampling_rate=sampling_rate, **asked)
        given = said.adjacency or "add-remove"
        return plain if given == "add-remove" else DPSGD(*_numbers(plain), adjacency=given, unit=plain.unit)
    side = said.adjacency or ("add-remove" if said.named else "zero-out")
    if side == "add-remove" and not said.named:
        raise ValueError(
            'adjacency must be "zero-out" with bands where records have no ids, got adjacency="add-remove": classes '
            "then go by position, and a record more or less moves others to other classes. Give ids, one a record."
        )
    rate = symbol("sampling_rate").number(sampling_rate)
    trial = BandMF(1.0, rate, 1, bands, side)  # refuses bands times rate above 1
    length = length_of(rate, asked.pop("steps"), asked.pop("epochs"))
    if length is not None and not bands <= length:
        raise ValueError(f"bands must be at most the number of steps, {length}, got bands={bands}.")
    blocks = None if length is None else -(-length // bands)
    found = planned(sampling_rate=trial.class_rate, steps=blocks, epochs=None, **asked)
    steps = found.steps * bands if length is None else min(length, found.steps * bands)
    return BandMF(found.noise_multiplier, rate, steps, bands, side, found.unit)


def _compared(said: Correlation, **asked: Any) -> BandChoice:
    """Errors of all numbers of bands at the target."""
    rate = symbol("sampling_rate").number(asked["sampling_rate"])
    length = length_of(rate, asked["steps"], asked["epochs"])
    target = asked["epsilon"] is not None or asked["psi"] is not None
    if length is None or not target or asked["noise_multiplier"] is not None:
        raise TypeError(
            'bands="auto" needs a length, steps or epochs, and a target, epsilon or psi, and chooses the noise: leave '
            "noise_multiplier out, or say bands."
        )
    rest = {name: value for name, value in asked.items() if name not in ("sampling_rate", "steps", "epochs")}

    def noise(class_rate: float, blocks: int) -> float:
        return planned(sampling_rate=min(class_rate, 1.0), steps=blocks, epochs=None, **rest).noise_multiplier

    return best_bands(sampling_rate=rate, steps=length, workload=said.workload, noise=noise)


def _fixed(said: Correlation, *, sampling_rate: float, **asked: Any) -> tuple[FixedOrder, int]:
    """A run in a fixed order: whole epochs, one exact psi."""
    rate, k = symbol("sampling_rate").number(sampling_rate), asked["epochs"]
    if not rate > 0.0:
        raise ValueError(f"sampling_rate (part of the records in a batch) must be in (0, 1], got {rate}.")
    if k is None or not (isinstance(k, int) and k >= 1) or asked["steps"] is not None:
        raise TypeError(
            f'order="fixed" needs epochs, a whole number, and no steps, got epochs={k}, steps={asked["steps"]}.'
        )
    epoch = epoch_of(rate)
    bands = min(epoch, LONGEST, max(1, ROOM // said.size)) if said.bands == "auto" else said.bands
    if not bands <= epoch:
        raise ValueError(
            f"bands must be at most the {epoch} steps of an epoch in a fixed order, got bands={bands}: otherwise noise "
            "of one epoch would still be owed when a record comes again."
        )
    targets = {"epsilon": asked["epsilon"], "psi": asked["psi"]}
    given = {name: value for name, value in targets.items() if value is not None}
    if len(given) + (asked["noise_multiplier"] is not None) != 1:
        raise TypeError('order="fixed" needs exactly one of noise_multiplier, epsilon and psi.')
    noise = asked["noise_multiplier"]
    if noise is None:
        slack = {"delta": asked["delta"]} if "epsilon" in given else {"kappa": 0.0}
        noise = rounded_up(calibrate(epochs=k, order="fixed", **given, **slack))
    return FixedOrder(noise, k, k * epoch, said.adjacency, asked["unit"]), bands


def multiplier_of(run: Run) -> float:
    """noise_multiplier relative to the clip: under replace-one a run's own is relative to twice that."""
    return run.noise_multiplier * (2.0 if run.adjacency == "replace-one" else 1.0)


def _numbers(run: DPSGD) -> tuple[float, float, int]:
    return run.noise_multiplier, run.sampling_rate, run.steps


def _workload(kind: str, optimizer: torch.optim.Optimizer) -> ModelError:
    """The error that counts, with the optimizer's momentum and weight decay where it is that of the last step."""
    if kind != "last":
        return ModelError(kind)  # type: ignore[arg-type]
    if not isinstance(optimizer, torch.optim.SGD):
        raise ValueError(
            f'workload="last" must be asked of torch.optim.SGD, whose momentum and weight decay it reads, got '
            f'{type(optimizer).__name__}. Take workload="prefix".'
        )
    groups = {(float(g["momentum"]), float(g["lr"]) * float(g["weight_decay"])) for g in optimizer.param_groups}
    if len(groups) != 1:
        raise ValueError('workload="last" must have one momentum and one weight decay for all parameters.')
    return ModelError("last", *groups.pop())


def _kept(checkpoint: Path | None) -> Terms | None:
    """The terms of the run that is kept at a checkpoint, if there is one."""
    if checkpoint is None or not checkpoint.name:
        return None
    found = read(checkpoint.with_name(checkpoint.name + ".steps"))
    return None if found is None else found[0]
