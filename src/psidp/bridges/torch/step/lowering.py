"""A call on all examples at once from inside `vmap`, without the detour that torch takes for functions of its users.

What `torch.autograd.Function` with a `vmap` method does, in less
time; where torch has no such inner functions, `lowered` is
None and that way is taken.
"""

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["inside", "level", "lowered"]

try:
    from torch._C._functorch import (
        _add_batch_dim,
        get_unwrapped,
        is_batchedtensor,
        is_functorch_wrapped_tensor,
        maybe_get_bdim,
        maybe_get_level,
        peek_interpreter_stack,
        pop_dynamic_layer_stack,
        push_dynamic_layer_stack,
    )
except ImportError:  # pragma: no cover
    lowered: Callable[..., torch.Tensor] | None = None

    def level() -> int:
        """How many transforms of torch.func surround the caller, as far as anybody can tell."""
        return 0

    def inside(tensor: torch.Tensor) -> bool:
        """Whether a tensor is one that `vmap` shows to its function, as far as anybody can tell."""
        return False
else:

    def level() -> int:
        """How many transforms of torch.func surround the caller."""
        layer = peek_interpreter_stack()
        return 0 if layer is None else int(layer.level())

    def inside(tensor: torch.Tensor) -> bool:
        """Whether a tensor is one that a transform of torch.func shows to its function."""
        return bool(is_functorch_wrapped_tensor(tensor))

    def _whole(x: Any, level: int, examples: int) -> Any:
        """A tensor with the examples as first dimension; one that is alike for all is repeated for each."""
        if not isinstance(x, torch.Tensor):
            return x
        if is_batchedtensor(x) and maybe_get_level(x) == level:
            return get_unwrapped(x).movedim(maybe_get_bdim(x), 0)
        return x.expand(examples, *x.shape)

    def lowered(call: Callable[..., torch.Tensor], examples: int, *tensors: Any) -> torch.Tensor:
        """The call on tensors of the whole micro-batch."""
        level = peek_interpreter_stack().level()
        layer = pop_dynamic_layer_stack()
        try:
            result = call(*(_whole(x, level, examples) for x in tensors))
        finally:
            push_dynamic_layer_stack(layer)
        wrapped: torch.Tensor = _add_batch_dim(result, 0, level)
        return wrapped
