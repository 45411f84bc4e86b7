"""One pass over a micro-batch: what each trainable parameter met in it, example by example, and no weight gradient.

The model runs once under `vmap`, which keeps examples apart by construction, with ordinary autograd outside. Every use
of a trainable parameter is seen on the way: a linear layer, a convolution or an embedding leaves its input and its
output's gradient; anything else is given a copy of the parameter for each example, with gradients of their own.
docs/design/step.md, claim 9.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode, _get_current_dispatch_mode_stack

from psidp.bridges.torch.step.contribution import Contribution
from psidp.bridges.torch.step.layers import Conv, Gather, GroupNorm, LayerNorm, Linear
from psidp.bridges.torch.step.lowering import inside, level, lowered
from psidp.bridges.torch.step.substitutes import PRODUCT, SUBSTITUTES, attention_of_all

__all__ = ["Recording", "refuse_modes", "steady"]

ASKED = {
    "size", "dim", "numel", "stride", "is_floating_point", "is_complex", "detach", "data_ptr", "element_size",
    "is_contiguous", "__len__", "type", "get_device", "storage_offset", "ndimension", "nelement", "is_inference",
}  # fmt: skip
"""What is asked of a parameter without a gradient's coming of it."""


HANDLERS = {
    functional.linear: "_linear",
    torch.addmm: "_addmm",
    torch.matmul: "_matmul",
    torch.Tensor.matmul: "_matmul",
    torch.Tensor.__matmul__: "_matmul",
    torch.mm: "_matmul",
    torch.conv1d: "_conv",
    torch.conv2d: "_conv",
    torch.conv3d: "_conv",
    functional.embedding: "_embedding",
    functional.layer_norm: "_layer_norm",
    functional.group_norm: "_group_norm",
}
"""The methods that stand for functions which take a trainable parameter."""

PRODUCTS = re.compile(r"(P|Cump)rodBackward\d")
"""What torch calls their backward passes; a function of somebody's own has no number at its end."""


CUSTOM = "custom_function_call"
"""What torch calls an autograd.Function that is applied under vmap."""

TEXTS = ("__repr__", "__format__")
"""What makes text of a tensor."""

OPERATORS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)
"""What stands for an operator of torch or of another package."""

NAMESPACES = ("aten", "prim", "prims", "torchaudio", "torchvision")
"""Operators whose code keeps nothing."""

LEAF = "torch::autograd::AccumulateGrad"
"""What torch calls the end of a graph, where a tensor gathers its gradient."""


WHOLE = (
    "model and loss must keep the examples of a micro-batch apart, but {what} has code that "
    "sees all of them at once, or as plain tensors: its own vmap rule or kernel. Let torch make the rule of an "
    "autograd.Function (generate_vmap_rule = True), or write an operator with functions of torch."
)
WRITTEN = (
    "model and loss must not print their tensors, nor make text of them: it would hold the values of the whole "
    "micro-batch. Take it out."
)
MODE = (
    "no mode of torch's dispatch or functions must be active in a private step or its model, got {mode}: it would see "
    "the whole micro-batch. Take it out, also around the step."
)


class Lifted(torch.autograd.Function):  # type: ignore[misc]
    """A call that sees all examples at once, inside `vmap`: tensors come with the examples as first dimension."""

    @staticmethod
    def forward(call: Callable[..., torch.Tensor], marker: torch.Tensor, *tensors: torch.Tensor) -> torch.Tensor:
        """Never: the marker has all examples, so that `vmap` below is what runs."""
        raise AssertionError("a recorded layer must run under vmap.")

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Nothing to keep."""

    @staticmethod
    def vmap(info: Any, dims: Any, call: Callable[..., torch.Tensor], marker: torch.Tensor, *tensors: Any) -> Any:
        """The call on tensors of the whole micro-batch; one that is alike for all examples is repeated for each."""
        whole = [
            x if not isinstance(x, torch.Tensor)
            else x.expand(info.batch_size, *x.shape) if dim is None
            else x.movedim(dim, 0)
            for x, dim in zip(tensors, dims[2:], strict=True)
        ]  # fmt: skip
        return call(*whole), 0


class Recording(TorchFunctionMode):  # type: ignore[misc]
    """Sees every use of the trainable parameters; `contributions` has what the examples add to each, in their order.

    With `each` above 1, what users add, who have so many examples each, one after another.
    """

    def __init__(
        self, parameters: dict[str, nn.Parameter], examples: int, *, as_rows: bool = False, each: int = 1
    ) -> None:
        super().__init__()
        how: Any = {"as_rows": as_rows, "each": each}
        self.contributions = {name: Contribution(p, examples // each, **how) for name, p in parameters.items()}
        self._of = {id(p): self.contributions[name] for name, p in parameters.items()}
        first = next(iter(parameters.values()))
        self._anchor = torch.zeros((), device=first.device, requires_grad=True)
        self.marker = torch.zeros(examples, device=first.device)
        self._one: torch.Tensor = self.marker
        self._level = 0

    def under(self, marker: torch.Tensor) -> "Recording":
        """The recording, for one example inside `vmap`, whose number the marker stands for."""
        self._one, self._level = marker, level()
        return self

    def backward(self, losses: torch.Tensor, names: dict[int, str]) -> None:
        """Complete the contributions, or refuse parameters out of sight; `names` has those of the loss."""
        owned = list(self._of.values())
        leaves = [c for c in owned if c.leaf is not None]
        inputs = [self._anchor, *(c.leaf for c in leaves), *(c.parameter for c in owned)]
        if not losses.requires_grad:
            raise ValueError(
                "loss must have a gradient, but no trainable parameter leads to it: it would be pure noise. Take out "
                "what cuts it off, such as detach(), no_grad(), argmax or a constant."
            )
        _refuse_graph(losses.grad_fn, {id(leaf) for leaf in inputs}, names)
        found = torch.autograd.grad(losses.sum(), inputs, allow_unused=True)
        for name, c in self.contributions.items():
            if found[1 + len(leaves) + owned.index(c)] is not None:
                raise ValueError(
                    f"model must use {name} in a way that tells the examples of a batch apart; some code of its own "
                    "passes it by torch's functions. Freeze it, or use torch's functions."
                )
        for c, g in zip(leaves, found[1:], strict=False):
            if g is not None:
                c.add_rows(g)
            c.leaf = None

    def gradients(self) -> Iterator[torch.Tensor]:
        """Gradients of each example, or user: a tensor for each parameter, formed as it is asked for."""
        return (c.gradients() for c in self.contributions.values())

    @property
    def reached(self) -> list[str]:
        """Names of the parameters to which a gradient came."""
        return [name for name, c in self.contributions.items() if c.reached]

    def clear(self) -> None:
        """Let go of everything that was recorded."""
        for c in self.contributions.values():
            c.clear()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Run a function of torch; where it takes a trainable parameter, the recorded version of it."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        _refuse_own(func, name, args)
        _refuse_mode(_get_current_dispatch_mode())
        if name == "requires_grad_" and level() == self._level:
            return args[0]  # what checkpoints ask of inputs; here every output of a recorded layer does
        if name in SUBSTITUTES:
            with self:
                done = SUBSTITUTES[name](*args, **kwargs)
            if done is not NotImplemented:
                return done
        fused = func is functional.scaled_dot_product_attention and args and level() == self._level
        if fused and args[0].ndim == 4 and len(args[0]) == 1:
            return self._attention(*args, **kwargs)
        if not (torch.is_grad_enabled() and (self._has(args) or self._has(kwargs.values()))):
            return (self._frozen if func is functional.linear else func)(*args, **kwargs)
        handler = HANDLERS.get(func)
        if handler is not None:
            done = getattr(self, handler)(*args, **kwargs)
            if done is not NotImplemented:
                return done
        if name in ASKED or name == "__get__":
            result = func(*args, **kwargs)
            if not (isinstance(result, torch.Tensor) and result.requires_grad):
                return result
        return func(*self._spread(args), **self._spread(kwargs))

    def _has(self, values: Iterable[Any]) -> bool:
        """Whether a trainable parameter is among these arguments, nested or not."""
        for value in values:
            if id(value) in self._of:
                return True
            inner = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
            if inner and self._has(inner):
                return True
        return False

    def _spread(self, value: Any) -> Any:
        """The same arguments with a copy for each example in place of every trainable parameter."""
        if isinstance(value, torch.Tensor):
            return self._leaf(self._of[id(value)]) if id(value) in self._of else value
        if isinstance(value, dict):
            return {key: self._spread(item) for key, item in value.items()}
        if isinstance(value, tuple | list):
            return type(value)(map(self._spread, value)) if type(value) in (tuple, list) else value
        return value

    def _leaf(self, c: Contribution) -> torch.Tensor:
        """One copy of a parameter for each example."""

        def copies() -> torch.Tensor:
            if c.leaf is None:
                c.copied = True
                c.leaf = c.parameter.detach().expand(len(self.marker), *c.parameter.shape).requires_grad_()
            return c.leaf

        return self._lifted(copies)

    def _lifted(self, call: Callable[..., torch.Tensor], *tensors: Any) -> torch.Tensor:
        """A call on the whole micro-batch, inside vmap."""
        if level() != self._level:
            raise ValueError(
                "model must not use a trainable parameter inside vmap, grad or another transform of torch.func of its "
                "own: its gradient cannot be told apart there. Write that part without the transform, or freeze it."
            )
        if lowered is None:
            result: torch.Tensor = Lifted.apply(call, self._one, *tensors)
            return result
        return lowered(call, len(self.marker), *tensors)

    def _attention(
        self, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
        **more: Any,
    ) -> torch.Tensor:  # fmt: skip
        """Fused attention over all examples at once."""

        def whole(q: Any, k: Any, v: Any, mask: Any) -> torch.Tensor:
            result: torch.Tensor = attention_of_all(q, k, v, mask, dropout_p, is_causal, **more)
            return result

        return self._lifted(whole, query, key, value, attn_mask)

    def _trained(self, weight: Any, bias: Any) -> bool:
        """Whether a layer with these is one that a recorded layer can stand for."""
        plain = bias is None or id(bias) in self._of or (isinstance(bias, nn.Parameter) and not bias.requires_grad)
        return isinstance(weight, nn.Parameter) and plain

    def _frozen(self, input: Any, weight: Any, bias: Any = None) -> Any:
        """A linear layer that does not train; over all examples at once, which takes less time than under vmap."""
        if not (level() == self._level and all(x is None or isinstance(x, nn.Parameter) for x in (weight, bias))):
            return functional.linear(input, weight, bias)
        return self._lifted(lambda x: functional.linear(x, weight, bias), input)

    def _linear(self, input: Any, weight: Any, bias: Any = None) -> Any:
        if not self._trained(weight, bias):
            return NotImplemented
        return self._product(input, weight, bias, turned=False)

    def _addmm(self, input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        if not (self._trained(mat2, input) and beta == 1 and alpha == 1 and input.ndim == 1):
            return NotImplemented
        return self._product(mat1, mat2, input, turned=True)

    def _matmul(self, input: Any, other: Any) -> Any:
        if not (id(other) in self._of and id(input) not in self._of and other.ndim == 2):
            return NotImplemented
        return self._product(input, other, None, turned=True)

    def _product(self, x: torch.Tensor, weight: nn.Parameter, bias: Any, turned: bool) -> Any:
        """A linear layer."""
        into, shift = self._of.get(id(weight)), self._of.get(id(bias))
        if weight.ndim != 2 or x.ndim == 0:
            return NotImplemented

        def keep(x: torch.Tensor, g: torch.Tensor) -> None:
            x, g = x.reshape(x.shape[0], -1, x.shape[-1]), g.reshape(g.shape[0], -1, g.shape[-1])
            if into is not None:
                into.add_product(*((g, x) if turned else (x, g)))
            if shift is not None:
                shift.add_rows(g.sum(1) if g.shape[1] > 1 else g[:, 0])

        w, b = weight.detach(), None if bias is None else bias.detach()
        return self._lifted(lambda x: Linear.apply(x, self._anchor, w, b, turned, keep), x)

    def _layer_norm(
        self, input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
    ) -> Any:
        """Normalised over the last dimensions, then scaled and shifted."""
        if not (self._trained(weight, bias) and weight.dtype == input.dtype):
            return NotImplemented
        scale, shift = self._of.get(id(weight)), self._of.get(id(bias))

        def keep(normal: torch.Tensor, g: torch.Tensor) -> None:
            normal, g = (x.reshape(len(x), -1, weight.numel()) for x in (normal, g))
            if scale is not None:
                scale.add_rows((normal * g).sum(1))
            if shift is not None:
                shift.add_rows(g.sum(1))

        w, b = weight.detach(), None if bias is None else bias.detach()
        return self._lifted(lambda x: LayerNorm.apply(x, self._anchor, w, b, eps, keep), input)

    def _group_norm(self, input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
        """Normalised over groups of channels, then scaled and shifted."""
        if not (self._trained(weight, bias) and weight.dtype == input.dtype and input.ndim >= 2):
            return NotImplemented
        scale, shift = self._of.get(id(weight)), self._of.get(id(bias))
        w, b = weight.detach(), None if bias is None else bias.detach()

        def whole(x: torch.Tensor) -> torch.Tensor:
            n = len(x)

            def rows(g: torch.Tensor) -> torch.Tensor:
                return g.reshape(n, -1, weight.numel(), prod(x.shape[3:])).sum((1, 3))

            def keep(normal: torch.Tensor, g: torch.Tensor) -> None:
                if scale is not None:
                    scale.add_rows(rows(normal * g))
                if shift is not None:
                    shift.add_rows(rows(g))

            return GroupNorm.apply(x.flatten(0, 1), self._anchor, w, b, num_groups, eps, keep).view(x.shape)

        return self._lifted(whole, input)

    def _conv(
        self, input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Any:  # fmt: skip
        """A convolution."""
        if not self._trained(weight, bias):
            return NotImplemented
        kernel = tuple(weight.shape[2:])
        setting = _setting(kernel, stride, padding, dilation, groups)
        if setting is None or input.ndim not in (len(kernel) + 1, len(kernel) + 2):
            return NotImplemented
        into, shift = self._of.get(id(weight)), self._of.get(id(bias))
        w, b = weight.detach(), None if bias is None else bias.detach()

        def whole(x: torch.Tensor) -> torch.Tensor:
            n, outer = len(x), x.shape[: -len(kernel) - 1]

            def keep(x: torch.Tensor, g: torch.Tensor) -> None:
                if into is not None:
                    into.add_conv(x.unflatten(0, (n, -1)), g.unflatten(0, (n, -1)), kernel, setting)
                if shift is not None:
                    shift.add_rows(g.reshape(n, prod(outer) // n, g.shape[1], -1).sum((1, 3)))

            y = Conv.apply(x.reshape(-1, *x.shape[-len(kernel) - 1 :]), self._anchor, w, b, setting, keep)
            return y.reshape(*outer, *y.shape[1:])

        return self._lifted(whole, input)

    def _embedding(
        self, input: Any, weight: Any, padding_idx: int | None = None, max_norm: Any = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> Any:  # fmt: skip
        """Rows by number; those of padding_idx have no gradient."""
        if max_norm is not None or scale_grad_by_freq or sparse or input.is_floating_point():
            return NotImplemented
        into = self._of[id(weight)]
        skipped = None if padding_idx is None else padding_idx % weight.shape[0]

        def keep(ids: torch.Tensor, g: torch.Tensor) -> None:
            ids, g = ids.reshape(len(ids), -1), g.reshape(len(g), -1, g.shape[-1])
            into.add_gather(ids, g if skipped is None else g.masked_fill((ids == skipped)[..., None], 0))

        return self._lifted(lambda ids: Gather.apply(ids, self._anchor, weight.detach(), keep), input)


def _refuse_own(func: Any, name: str, args: Any) -> None:
    """Refuse functions and operators whose code would see the whole micro-batch, or examples as plain tensors."""
    if name in TEXTS and inside(args[0]):
        raise ValueError(WRITTEN)
    if name == CUSTOM:
        if not (args and getattr(args[0], "generate_vmap_rule", False)):
            raise ValueError(WHOLE.format(what=getattr(args[0], "__name__", "a function") if args else "a function"))
    elif isinstance(func, OPERATORS):
        whole = func._qualified_op_name if isinstance(func, torch._ops.OpOverloadPacket) else func.name()
        if whole.partition("::")[0] not in NAMESPACES:
            raise ValueError(WHOLE.format(what=whole))


def refuse_modes() -> None:
    """Refuse modes around a step that are not torch's own, such as its default device or its counter of operations."""
    for mode in (*_get_current_dispatch_mode_stack(), *_get_current_function_mode_stack()):
        _refuse_mode(mode)


def _refuse_mode(mode: Any) -> None:
    """Refuse a mode that is neither torch's nor ours."""
    if mode is not None and type(mode).__module__.partition(".")[0] not in ("torch", "psidp"):
        raise ValueError(MODE.format(mode=type(mode).__name__))


@contextmanager
def steady() -> Iterator[None]:
    """cuDNN chooses its algorithms by shape alone, deterministic ones, and not by the clock."""
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.deterministic
    cudnn.benchmark, cudnn.deterministic = False, True
    try:
        yield
    finally:
        cudnn.benchmark, cudnn.deterministic = before


def _setting(kernel: tuple[int, ...], stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """Stride, padding, dilation and groups of a convolution as whole numbers; None where the padding is uneven."""

    def each(value: Any) -> list[int]:
        return [int(value)] * len(kernel) if isinstance(value, int) else [int(v) for v in value]

    steps = each(dilation)
    if padding == "valid":
        padding = 0
    if padding == "same":
        needed = [step * (k - 1) for step, k in zip(steps, kernel, strict=True)]
        if any(total % 2 for total in needed):
            return None
        padding = [total // 2 for total in needed]
    strides, pads = each(stride), each(padding)
    full = len(kernel)
    return (strides * full)[:full], (pads * full)[:full], (steps * full)[:full], groups


def _refuse_graph(last: Any, known: set[int], names: dict[int, str]) -> None:
    """Refuse prod and cumprod in a graph, whatever called them, and leaves that no step trains.

    A script passes by the functions that are seen.
    """
    left, seen = [last] if last is not None else [], {last, None}
    while left:
        node = left.pop()
        name = node.name()
        if "rodBackward" in name and PRODUCTS.fullmatch(name):
            raise ValueError(PRODUCT)
        if name == LEAF and id(node.variable) not in known:
            what = names.get(id(node.variable), f"a tensor of shape {tuple(node.variable.shape)}")
            raise ValueError(
                f"{what} must be a parameter of the model to be trained: the step trains no other, and a gradient "
                "comes to it. Make it part of the model, with its loss if need be, or call requires_grad_(False)."
            )
        for before, _ in node.next_functions:
            if before not in seen:
                seen.add(before)
                left.append(before)
