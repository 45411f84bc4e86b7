"""The update: the user's optimizer and schedule, which turn a noisy gradient into new parameters."""

import inspect
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from psidp.bridges.torch.training import checkpoint

__all__ = ["Update"]


class Update:
    """Any torch optimizer that works from gradients alone, and a schedule that needs no loss."""

    def __init__(self, optimizer: torch.optim.Optimizer, schedule: LRScheduler | None) -> None:
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(f"optimizer must be a torch.optim.Optimizer, got {type(optimizer).__name__}.")
        closure = inspect.signature(optimizer.step).parameters.get("closure")
        if closure is not None and closure.default is inspect.Parameter.empty:
            raise TypeError(
                f"optimizer must work from gradients alone, got {type(optimizer).__name__}, which asks for the loss "
                "again and again: each time would cost privacy."
            )
        self.optimizer, self.schedule = optimizer, schedule
        self._refuse_schedule()

    def check_holds(self, model: nn.Module, trained: dict[str, nn.Parameter]) -> None:
        """Refuse unless the optimizer holds every trainable parameter of the model, and nobody else's."""
        held = {id(p) for p in self._parameters()}
        missing = [name for name, p in trained.items() if id(p) not in held]
        if missing:
            raise ValueError(
                f"optimizer must hold the model's trainable parameters; {missing[0]} is not among them. "
                "Freeze it with requires_grad_(False), or make the optimizer from model.parameters()."
            )
        if not held <= {id(p) for p in model.parameters()}:
            raise ValueError("optimizer must hold parameters of the model only: the others would get no noise.")

    def clear(self) -> None:
        """Forget gradients that somebody left: none may be applied without noise."""
        self.optimizer.zero_grad(set_to_none=True)

    def apply(self) -> None:
        """One update from the gradients at hand."""
        self.optimizer.step()
        if self.schedule is not None:
            self.schedule.step()

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        schedule = None if self.schedule is None else self.schedule.state_dict()
        return {"optimizer": self.optimizer.state_dict(), "schedule": schedule}

    def load(self, state: dict[str, Any]) -> None:
        """Take over what `state` gave."""
        self.optimizer.load_state_dict(state["optimizer"])
        if self.schedule is not None:
            self.schedule.load_state_dict(state["schedule"])

    @property
    def name(self) -> str:
        """Which optimizer and schedule, for the journal."""
        return " and ".join(type(part).__name__ for part in (self.optimizer, self.schedule) if part is not None)

    def _parameters(self) -> list[torch.Tensor]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def _refuse_schedule(self) -> None:
        if self.schedule is None:
            return
        if isinstance(self.schedule, ReduceLROnPlateau) or not isinstance(self.schedule, LRScheduler):
            raise TypeError(
                "schedule must be a torch LRScheduler that needs no metric: the loss on the data is private, "
                f"got {type(self.schedule).__name__}."
            )
        if not checkpoint.loads_again(self.schedule.state_dict()):
            raise TypeError(f"schedule must have a state of plain values, got {type(self.schedule).__name__}.")
