"""Rehearsal: examples that are made up, with which a step learns what it needs to know before anybody's are there."""

import torch

from psidp.bridges.torch.step.examples import Examples, mapped

__all__ = ["halves", "same", "zeros"]


def zeros(examples: Examples) -> Examples:
    """One example of zeros, in the shapes and types of these, of which there may be none."""
    return mapped(lambda tensor: tensor.new_zeros((1, *tensor.shape[1:])), examples)


def halves(examples: Examples) -> Examples:
    """The same with a half in place of every float, which random factors move."""
    return mapped(lambda tensor: tensor + 0.5 if tensor.is_floating_point() else tensor, examples)


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    """Whether two lists of tensors are equal in every number, NaN and infinities aside."""
    return all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(one, other, strict=True))
