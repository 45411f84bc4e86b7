"""How an example's gradient depends on its place in the micro-batch, and on its company there: measured, not assumed.

Which it does in the last bits is up to the kernels of torch; docs/design/step.md, claims 5 to 7, says what follows.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from math import nan

import torch

from psidp.bridges.torch.step.examples import Examples, count, mapped
from psidp.bridges.torch.step.private_step import PrivateStep

__all__ = ["Dependence", "dependence"]


@dataclass(frozen=True, slots=True)
class Dependence:
    """How many gradients had another bit in other company, or in another place, of how many; and how far they went.

    `farthest` is the largest change of a gradient over its norm.
    """

    compared: int
    by_company: int
    by_place: int
    farthest: float


def dependence(step: PrivateStep, inputs: Examples, targets: Examples) -> Dependence:
    """Gradients of one micro-batch beside those of the same examples in other company and in other places.

    Company: the others are replaced by zeros or by NaN, or change places among themselves. Place: all move by one, or
    are turned round; what the model draws by chance stays at its place. Use made-up examples or public ones: the answer
    is not private.

    Examples:
        >>> step = PrivateStep(
        ...     torch.nn.Linear(3, 1), torch.nn.functional.mse_loss,
        ...     clip=1.0, noise_multiplier=1.0, expected_batch=8, micro_batch=4,
        ... )
        >>> dependence(step, torch.randn(4, 3), torch.randn(4, 1)).by_company
        0
    """
    if count(inputs, targets) != step.micro_batch:
        raise ValueError(f"dependence needs a full micro-batch of {step.micro_batch}, got {count(inputs, targets)}.")
    seed = os.urandom(24)
    here = step.gradients(inputs, targets, seed=seed)
    norm = sum(_squares(g) for g in here).sqrt()
    compared, moved, farthest = 0, [0, 0], 0.0
    for place, kept, watched, fill in _arrangements(step.micro_batch, norm.device):
        there = step.gradients(_arranged(inputs, place, kept, fill), _arranged(targets, place, kept, fill), seed=seed)
        pairs = [(a[place], b) for a, b in zip(here, there, strict=True)]
        different = sum((_bits(a) != _bits(b)).sum(1) for a, b in pairs) > 0
        gap = sum(_squares(a.double() - b.double()) for a, b in pairs).sqrt() / norm[place]
        compared += int(watched.sum())
        there_too = place == torch.arange(step.micro_batch, device=place.device)
        moved[0] += int((different & watched & there_too).sum())
        moved[1] += int((different & watched & ~there_too).sum())
        farthest = max(farthest, float(torch.where(watched, gap, 0.0).nan_to_num(0.0).max()))
    return Dependence(compared, moved[0], moved[1], farthest)


def _arrangements(n: int, device: torch.device) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor, float]]:
    """Which example comes to each place, which are kept, which of them are compared, and what the others become."""
    place = torch.arange(n, device=device)
    everyone = torch.ones_like(place, dtype=torch.bool)
    for kept in (place % 2 == 0, place % 2 == 1, place == 0, place == n - 1, place < n // 2):
        yield place, kept, kept, 0.0
        yield place, kept, kept, nan
    for fixed in (place % 2 == 0, place % 2 == 1):  # the others change places among themselves
        others = place.clone()
        others[~fixed] = others[~fixed].roll(1)
        yield others, everyone, fixed, 0.0
    for other in (place.roll(1), place.flip(0)):
        yield other, everyone, everyone, 0.0


def _arranged(examples: Examples, place: torch.Tensor, kept: torch.Tensor, fill: float) -> Examples:
    """The examples in other places, those not kept filled with zeros or, if they are floats, with NaN."""

    def one(tensor: torch.Tensor) -> torch.Tensor:
        moved = tensor[place]
        filled = torch.full_like(moved, fill if moved.is_floating_point() else 0)
        return torch.where(kept.view(-1, *[1] * (moved.ndim - 1)), moved, filled)

    return mapped(one, examples)


def _squares(g: torch.Tensor) -> torch.Tensor:
    """Sum of squares for each row."""
    return torch.linalg.vector_norm(g.reshape(g.shape[0], -1), dim=1, dtype=torch.float64) ** 2


def _bits(g: torch.Tensor) -> torch.Tensor:
    """A row of bits for each example, as integers, so that NaN equals itself and the two zeros differ."""
    return (
        g.reshape(g.shape[0], -1).contiguous().view({2: torch.int16, 4: torch.int32, 8: torch.int64}[g.element_size()])
    )
