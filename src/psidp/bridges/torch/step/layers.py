"""Layers whose weight gradient is a product of two matrices: their passes without it.

Each is given the whole micro-batch, first dimension the examples, and hands its input and its output's gradient on.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch.nn import functional

__all__ = ["Conv", "Gather", "GroupNorm", "LayerNorm", "Linear", "unfolded"]

Keep = Callable[[torch.Tensor, torch.Tensor], None]
"""Called in the backward pass with the layer's input and its output's gradient."""


class Linear(torch.autograd.Function):  # type: ignore[misc]
    """x @ weight.T + bias, or x @ weight + bias where `turned`, with a gradient for x alone.

    The anchor is a tensor that requires grad, so that there is a backward pass where x needs none.
    """

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, anchor: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, turned: bool,
        keep: Keep,
    ) -> torch.Tensor:  # fmt: skip
        """The product, in the type that autocast or x gives it."""
        ctx.save_for_backward(x)
        ctx.weight, ctx.turned, ctx.keep = weight, turned, keep
        return functional.linear(x, weight.t() if turned else weight, bias)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The gradient of x; x and g are kept."""
        (x,) = ctx.saved_tensors
        ctx.keep(x.detach(), g.detach())
        if not ctx.needs_input_grad[0]:
            return (None,) * 6
        weight = ctx.weight.to(g.dtype)
        return (g @ (weight.t() if ctx.turned else weight)).to(x.dtype), *(None,) * 5


class Conv(torch.autograd.Function):  # type: ignore[misc]
    """A convolution with a gradient for x alone; setting is (stride, padding, dilation, groups)."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, anchor: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, setting: Any,
        keep: Keep,
    ) -> torch.Tensor:  # fmt: skip
        """The convolution, in the type that autocast or x gives it."""
        ctx.save_for_backward(x)
        ctx.weight, ctx.setting, ctx.keep = weight, setting, keep
        stride, padding, dilation, groups = setting
        return torch.convolution(x, weight, bias, stride, padding, dilation, False, [0] * len(stride), groups)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The gradient of x; x and g are kept."""
        (x,) = ctx.saved_tensors
        ctx.keep(x.detach(), g.detach())
        if not ctx.needs_input_grad[0]:
            return (None,) * 6
        stride, padding, dilation, groups = ctx.setting
        back = torch.ops.aten.convolution_backward(
            g, x.to(g.dtype), ctx.weight.to(g.dtype), None,
            stride, padding, dilation, False, [0] * len(stride), groups, [True, False, False],
        )  # fmt: skip
        return back[0].to(x.dtype), *(None,) * 5


class LayerNorm(torch.autograd.Function):  # type: ignore[misc]
    """Numbers normalised over the last dimensions, scaled and shifted, with a gradient for x alone."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, anchor: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, eps: float,
        keep: Keep,
    ) -> torch.Tensor:  # fmt: skip
        """The layer's output."""
        y, mean, scale = torch.native_layer_norm(x, weight.shape, weight, bias, eps)
        ctx.save_for_backward(x, mean, scale)
        ctx.weight, ctx.keep = weight, keep
        return y

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The gradient of x; the normalised numbers and g are kept."""
        x, mean, scale = ctx.saved_tensors
        ctx.keep(((x - mean) * scale).detach(), g.detach())
        if not ctx.needs_input_grad[0]:
            return (None,) * 6
        back = torch.ops.aten.native_layer_norm_backward(
            g.contiguous(), x, ctx.weight.shape, mean, scale, ctx.weight, None, [True, False, False]
        )
        return back[0], *(None,) * 5


class GroupNorm(torch.autograd.Function):  # type: ignore[misc]
    """Images normalised over groups of their channels, scaled and shifted, with a gradient for x alone."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, anchor: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, groups: int,
        eps: float, keep: Keep,
    ) -> torch.Tensor:  # fmt: skip
        """The layer's output."""
        x = x.contiguous()
        images, channels = x.shape[:2]
        ctx.sizes = images, channels, prod(x.shape[2:]), groups
        y, mean, scale = torch.native_group_norm(x, weight, bias, *ctx.sizes, eps)
        ctx.save_for_backward(x, mean, scale)
        ctx.weight, ctx.keep = weight, keep
        return y

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The gradient of x; the normalised numbers and g are kept."""
        x, mean, scale = ctx.saved_tensors
        g = g.contiguous()
        images, _, _, groups = ctx.sizes
        normal = (x.view(images, groups, -1) - mean[..., None]) * scale[..., None]
        ctx.keep(normal.view(x.shape).detach(), g.detach())
        if not ctx.needs_input_grad[0]:
            return (None,) * 7
        wanted = [True, False, False]
        back = torch.ops.aten.native_group_norm_backward(g, x, mean, scale, ctx.weight, *ctx.sizes, wanted)
        return back[0], *(None,) * 6


class Gather(torch.autograd.Function):  # type: ignore[misc]
    """Rows of a weight by their numbers."""

    @staticmethod
    def forward(ctx: Any, ids: torch.Tensor, anchor: torch.Tensor, weight: torch.Tensor, keep: Keep) -> torch.Tensor:
        """weight[ids]."""
        ctx.save_for_backward(ids)
        ctx.keep = keep
        return functional.embedding(ids, weight)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[None, ...]:
        """Nothing to give; numbers and g are kept."""
        ctx.keep(ctx.saved_tensors[0], g.detach())
        return None, None, None, None


def unfolded(x: torch.Tensor, kernel: tuple[int, ...], setting: Any) -> torch.Tensor:
    """The patches that a kernel of this size meets: (examples, places, channels times kernel)."""
    stride, padding, dilation, _ = setting
    if len(kernel) == 2 and x.device.type == "cpu":
        return functional.unfold(x, kernel, dilation, padding, stride).transpose(1, 2)  # elsewhere an image at a time
    around = [side for p in reversed(padding) for side in (p, p)]
    x = (functional.pad(x, around) if any(around) else x).contiguous()
    sizes = zip(x.shape[2:], kernel, stride, dilation, strict=True)
    out = [(size - step * (k - 1) - 1) // s + 1 for size, k, s, step in sizes]
    strides = x.stride()
    outer = [s * t for s, t in zip(strides[2:], stride, strict=True)]
    inner = [s * t for s, t in zip(strides[2:], dilation, strict=True)]
    patches = x.as_strided((*x.shape[:2], *kernel, *out), (*strides[:2], *inner, *outer))
    return patches.reshape(x.shape[0], x.shape[1] * prod(kernel), prod(out)).transpose(1, 2)
