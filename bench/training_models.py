"""The eight models of the training benchmark, small versions of what people train, with a batch of random examples."""

from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional

__all__ = ["MODELS", "made"]


class Block(nn.Module):
    """A transformer block with separate projections; causal or not, with low-rank adapters or not."""

    def __init__(self, width: int, inner: int, heads: int, causal: bool, rank: int = 0) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.q, self.k, self.v, self.out = (Adapted(width, width, rank) for _ in range(4))
        self.up, self.down = Adapted(width, inner, rank), Adapted(inner, width, rank)
        self.heads, self.causal = heads, causal

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        y = self.norms[0](x)
        q, k, v = (f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if self.causal:
            later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


class Adapted(nn.Module):
    """A linear layer, or a frozen one with an adapter of low rank beside it."""

    def __init__(self, before: int, after: int, rank: int) -> None:
        super().__init__()
        self.base, self.rank = nn.Linear(before, after), rank
        if rank:
            self.base.requires_grad_(False)
            self.down, self.up = nn.Linear(before, rank, bias=False), nn.Linear(rank, after, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The layer's output."""
        return self.base(x) + self.up(self.down(x)) if self.rank else self.base(x)


class Sentences(nn.Module):
    """Words and places, blocks, and a head for one answer or for the next word."""

    def __init__(
        self, words: int, length: int, width: int, inner: int, depth: int, answers: int, causal: bool, rank: int = 0
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.randn(length, width) / 10)
        self.blocks = nn.Sequential(*[Block(width, inner, 4, causal, rank) for _ in range(depth)])
        self.norm, self.head, self.causal = nn.LayerNorm(width), nn.Linear(width, answers), causal
        if rank:
            for part in (self.words, self.norm, self.head, *[b.norms for b in self.blocks]):
                part.requires_grad_(False)
        self.places.requires_grad_(False)  # Opacus has no rule for a bare parameter

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        y = self.norm(self.blocks(self.words(x) + self.places))
        return self.head(y).transpose(1, 2) if self.causal else self.head(y.mean(1))


class Residual(nn.Module):
    """Two convolutions with GroupNorm and a shortcut."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(before, after, 3, stride, 1), nn.Conv2d(after, after, 3, 1, 1)
        self.norms = nn.ModuleList([nn.GroupNorm(4, after) for _ in range(2)])
        self.skip = nn.Conv2d(before, after, 1, stride) if before != after else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        return torch.relu(self.norms[1](self.two(torch.relu(self.norms[0](self.one(x))))) + self.skip(x))


class Bag(nn.Module):
    """The mean of word vectors, and two layers."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(words, width), nn.Sequential(nn.Linear(width, 64), nn.ReLU())
        self.last = nn.Linear(64, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        return self.last(self.head(self.words(x).mean(1)))


def _mlp(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _cnn() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, 2, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 9, 56), nn.ReLU(), nn.Linear(56, 10),
    )  # fmt: skip


def _resnet() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1), nn.GroupNorm(4, 16), nn.ReLU(), Residual(16, 16, 1), Residual(16, 32, 2),
        Residual(32, 44, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(44, 10),
    )  # fmt: skip


MODELS: dict[str, tuple[Any, tuple[int, ...], int, int]] = {
    "MLP, 19k": (lambda: _mlp(64, 128, 80, 10), (64,), 0, 256),
    "CNN, 21k": (_cnn, (1, 28, 28), 0, 256),
    "transformer, 115k": (lambda: Sentences(500, 32, 64, 192, 2, 4, False), (32,), 500, 256),
    "MLP, 1.9 M": (lambda: _mlp(784, 1024, 1024, 10), (784,), 0, 64),
    "embedding, 1.6 M": (lambda: Bag(25_000, 64), (64,), 25_000, 64),
    "small GPT-2": (lambda: Sentences(2000, 64, 128, 512, 3, 2000, True), (64,), 2000, 64),
    "LoRA, 45k": (lambda: Sentences(2000, 64, 128, 512, 3, 4, False, rank=8), (64,), 2000, 64),
    "GroupNorm ResNet, 57k": (_resnet, (3, 32, 32), 0, 64),
}
"""How a model is made, the shape of an example, the number of words (0 for floats), and the batch."""


def made(name: str) -> tuple[nn.Module, Any, torch.Tensor, torch.Tensor]:
    """Model, loss, inputs and targets."""
    make, shape, words, batch = MODELS[name]
    model = make()
    inputs = torch.randint(0, words, (batch, *shape)) if words else torch.randn(batch, *shape)
    answers = model(inputs[:1])
    targets = torch.randint(0, answers.shape[1], (batch, *answers.shape[2:]))
    return model, functional.cross_entropy, inputs, targets
