"""Small models and losses, some of which carry one example's values to another: what a private step must refuse."""

from collections.abc import Callable
from random import Random
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

__all__ = ["HAZARDS", "Loss", "Model", "made"]

Change = Callable[[Any, torch.Tensor], torch.Tensor]
"""What a model does with its hidden numbers, or a loss with its value; first comes the module itself."""


class Model(nn.Module):
    """Two layers, and something done between them."""

    def __init__(self, random: Random, change: Change) -> None:
        super().__init__()
        width = random.randint(2, 6)
        norm = nn.LayerNorm(width) if random.random() < 0.3 else nn.Identity()
        self.first, self.last = nn.Sequential(nn.Linear(3, width), norm), nn.Linear(width, 2)
        self.act, self.change = random.choice([torch.tanh, torch.relu, torch.sigmoid]), change
        self.kept: Any = None
        self.calls, self.history = 0, []  # type: ignore[var-annotated]
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        return self.last(self.change(self, self.act(self.first(x))))


class Loss(nn.Module):
    """A squared error, and something done with it."""

    def __init__(self, change: Change) -> None:
        super().__init__()
        self.change, self.kept, self.calls = change, None, 0
        self.history: list[Any] = []
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """One number."""
        return self.change(self, nn.functional.mse_loss(output, target))


def nothing(_: Any, y: torch.Tensor) -> torch.Tensor:
    """Harmless."""
    return y


def compressed(_: Any, y: torch.Tensor) -> torch.Tensor:
    """Activations kept in four bits, with one scale for the whole micro-batch."""

    def packed(x: torch.Tensor) -> torch.Tensor:
        scale = x.abs().max() / 7 + 1e-12
        return (x / scale).round() * scale

    with saved_tensors_hooks(packed, lambda x: x):
        return y.tanh() * y


def averaged(_: Any, y: torch.Tensor) -> torch.Tensor:
    """Activations of which only the mean is kept."""
    with saved_tensors_hooks(lambda x: x.mean(0, keepdim=True).expand_as(x), lambda x: x):
        return y * y


def last_value(self: Any, y: torch.Tensor) -> torch.Tensor:
    """What the last pass had at this place."""
    before, self.kept = self.kept, y.detach()
    return y if before is None else y * (1 - 20 * before)


def buffered(self: Any, y: torch.Tensor) -> torch.Tensor:
    """A running mean in a buffer."""
    self.seen = 0.9 * self.seen + 0.1 * y.detach().mean()
    return y * (1 - 20 * self.seen)


def listed(self: Any, y: torch.Tensor) -> torch.Tensor:
    """All values so far in a list."""
    self.history.append(y.detach())
    return y * (1 - 20 * sum(self.history[:-1]))


def counted(self: Any, y: torch.Tensor) -> torch.Tensor:
    """A sign that changes with every pass."""
    self.calls += 1
    return y * (-1.0) ** self.calls


def closed_over() -> Change:
    """A value in a closure."""
    kept: torch.Tensor | None = None

    def change(_: Any, y: torch.Tensor) -> torch.Tensor:
        nonlocal kept
        before, kept = kept, y.detach()
        return y if before is None else y * (1 - 20 * before)

    return change


def defaulted() -> Change:
    """A value in a default argument."""

    def change(_: Any, y: torch.Tensor, kept: dict[str, torch.Tensor] = {}) -> torch.Tensor:  # noqa: B006
        before = kept.get("last", torch.zeros_like(y))
        kept["last"] = y.detach()
        return y * (1 - 20 * before)

    return change


class OfAll(torch.autograd.Function):  # type: ignore[misc]
    """The same numbers, with a gradient that goes by the largest of the whole micro-batch."""

    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        """The same."""
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the input."""
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        """The gradient of all."""
        return g * ctx.saved_tensors[0].abs().max()

    @staticmethod
    def vmap(info: Any, dims: Any, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        """On all examples at once."""
        return OfAll.apply(x.movedim(dims[0], 0)), 0


def mixed(_: Any, y: torch.Tensor) -> torch.Tensor:
    """A function with a vmap rule that mixes examples."""
    return OfAll.apply(y)


HAZARDS: dict[str, list[Callable[[], Change]]] = {
    "none": [lambda: nothing],
    "saved tensors": [lambda: compressed, lambda: averaged],
    "state": [lambda: last_value, lambda: buffered, lambda: listed, lambda: counted, closed_over, defaulted],
    "vmap rule": [lambda: mixed],
}


def made(random: Random) -> tuple[str, Callable[[], tuple[nn.Module, nn.Module]]]:
    """A name, and what makes a model and a loss with that hazard: the same each time, each with state of its own."""
    kind = random.choice(list(HAZARDS))
    change, in_loss, seed = random.choice(HAZARDS[kind]), random.random() < 0.5, random.randrange(2**32)

    def make() -> tuple[nn.Module, nn.Module]:
        torch.manual_seed(seed)
        model, loss = (nothing, change()) if in_loss else (change(), nothing)
        return Model(Random(seed), model).double(), Loss(loss).double()

    return f"{kind} ({change().__name__} in the {'loss' if in_loss else 'model'})", make
