"""Rehearsal: examples that are made up, with which a step learns what it needs to know before anybody's are there."""

from collections.abc import Callable, Iterable

import torch

from psidp.bridges.torch.step.examples import Examples, mapped

__all__ = ["PASSES", "REHEARSED", "made_up", "varies", "zeros"]

PASSES = 4
"""Passes of each example that is made up: a coin falls on the same side in all of one once in eight times."""

REHEARSED = 1 + 2 * PASSES + 5
"""All passes of a rehearsal on a CPU: the first, those that vary, those that compare company."""

Passed = Callable[[Examples, Examples], Iterable[torch.Tensor]]
"""Gradients of one example: a tensor for each parameter."""


def zeros(examples: Examples) -> Examples:
    """One example of zeros, in the shapes and types of these, of which there may be none."""
    return mapped(lambda tensor: tensor.new_zeros((1, *tensor.shape[1:])), examples)


def made_up(examples: Examples, many: int) -> Examples:
    """Made-up examples, shaped and typed like these: floats from 0 to 1 that differ between examples, else zeros."""

    def one(tensor: torch.Tensor) -> torch.Tensor:
        made = tensor.new_zeros((many, *tensor.shape[1:]))
        if tensor.is_floating_point():
            made += torch.arange(made.numel(), device=made.device).cos().view(made.shape).to(made.dtype) / 2 + 0.5
        return made

    return mapped(one, examples)


def varies(passed: Passed, inputs: Examples, targets: Examples) -> bool:
    """Whether gradients of one made-up example differ from pass to pass, each of which has fresh seeds.

    So it is found that a model draws random numbers, whatever from, and whether or not it puts back what it moved. The
    example has halves for floats, which random factors move, and for its target zeros first, then halves too: at one of
    them a loss may have no gradient.
    """
    some, nothing = _halves(zeros(inputs)), zeros(targets)
    return not (_same(passed, some, nothing) and _same(passed, some, _halves(nothing)))


def _halves(examples: Examples) -> Examples:
    """The same with a half in place of every float."""
    return mapped(lambda tensor: tensor + 0.5 if tensor.is_floating_point() else tensor, examples)


def _same(passed: Passed, inputs: Examples, targets: Examples) -> bool:
    """Whether gradients are equal in every number, NaN and infinities aside; all but the first go one by one."""
    first = list(passed(inputs, targets))
    pairs = (zip(first, passed(inputs, targets), strict=True) for _ in range(PASSES - 1))
    return all(torch.equal(a.nan_to_num(), b.nan_to_num()) for one in pairs for a, b in one)
