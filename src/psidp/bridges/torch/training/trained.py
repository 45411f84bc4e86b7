"""What is trained: model, optimizer, schedule and clip, as checkpoints keep them and other ranks take them over."""

from typing import Any

from torch import nn

from psidp.bridges.torch.step.adaptive_clip import AdaptiveClip
from psidp.bridges.torch.step.private_step import PrivateStep
from psidp.bridges.torch.training.update import Update

__all__ = ["Trained"]


class Trained:
    """The state of a training, all of which is public; `applied` counts the steps that the model has in it."""

    def __init__(self, model: nn.Module, update: Update, step: PrivateStep) -> None:
        self.model, self._update, self._step = model, update, step
        self.applied = 0

    def state(self) -> dict[str, Any]:
        """Tensors and plain values."""
        made = {"applied": self.applied, "model": self.model.state_dict()} | self._update.state()
        return made | ({"clip": self._step.clip} if isinstance(self._step.clipping, AdaptiveClip) else {})

    def load(self, state: dict[str, Any]) -> None:
        """Take over what `state` gave."""
        self._update.load(state)
        self.model.load_state_dict(state["model"])
        self.applied = state["applied"]
        if isinstance(self._step.clipping, AdaptiveClip):
            self._step.clip = state["clip"]
