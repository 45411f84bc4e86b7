"""Private names of torch that a private step reads: a release of torch that changes one fails here, by its name.

torch has no public way to ask which modes are active, which hooks all modules have, or which tensors `vmap` shows.
"""

import pytest
import torch
from torch import nn
from torch.nn.modules.module import (
    _global_backward_hooks,
    _global_backward_pre_hooks,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode,
    _get_current_dispatch_mode_stack,
)

from psidp.bridges.torch.step.lowering import inside, level, lowered


class Heard(TorchFunctionMode):
    """Names and first arguments of the functions of torch that are called."""

    def __init__(self):
        super().__init__()
        self.names, self.called = {}, []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names[getattr(func, "__name__", "")] = args[0] if args else None
        self.called.append(func)
        return func(*args, **(kwargs or {}))


class Dispatched(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Twice(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return 2 * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return 2 * g


# Code of a mode sees whole micro-batches: `refuse_modes` must see every mode that is active.
def test_the_active_modes_are_listed_outermost_first():
    assert _get_current_dispatch_mode() is None
    with Dispatched() as outer, Dispatched() as inner, Heard() as heard:
        assert list(_get_current_dispatch_mode_stack()) == [outer, inner]
        assert _get_current_dispatch_mode() is inner
        assert list(_get_current_function_mode_stack()) == [heard]
    assert not _get_current_dispatch_mode_stack()
    assert not _get_current_function_mode_stack()


# A step never calls backward hooks: those of all modules are refused where these dictionaries have any.
@pytest.mark.parametrize(
    ("register", "hooks"),
    [
        (register_module_full_backward_hook, _global_backward_hooks),
        (register_module_full_backward_pre_hook, _global_backward_pre_hooks),
    ],
)
def test_hooks_of_all_modules_are_where_they_are_looked_for(register, hooks):
    handle = register(lambda *_: None)
    try:
        assert len(hooks) == 1
    finally:
        handle.remove()
    assert not hooks


# A function with a vmap rule of its own sees whole micro-batches: its class comes first, under this name.
def test_a_function_under_vmap_comes_to_a_mode_with_its_class():
    def double(x):
        with heard:
            return Twice.apply(x)

    heard = Heard()
    torch.vmap(double)(torch.ones(3))
    assert heard.names["custom_function_call"] is Twice


# So does an operator of another package, which is told by its name.
def test_operators_come_to_a_mode_and_have_names_with_their_package():
    with Heard() as heard:
        torch.ops.aten.relu(torch.ones(3))
        torch.ops.aten.relu.default(torch.ones(3))
    packet, overload = (f for f in heard.called if getattr(f, "__module__", "").startswith("torch._ops"))
    assert isinstance(packet, torch._ops.OpOverloadPacket)
    assert packet._qualified_op_name == "aten::relu"
    assert isinstance(overload, torch._ops.OpOverload)
    assert overload.name() == "aten::relu"


# Text has the values of a whole micro-batch, and comes to a mode under these names.
def test_text_of_a_tensor_comes_to_a_mode():
    with Heard() as heard:
        tensor = torch.ones(3)
        repr(tensor), f"{tensor}"
    assert {"__repr__", "__format__"} <= heard.names.keys()


# A tensor that escapes is told from others as one that `vmap` shows; without these names nothing would be found.
def test_tensors_inside_vmap_are_told_from_others():
    seen = []
    torch.vmap(lambda x: seen.append((inside(x), inside(torch.ones(2)), level())) or x)(torch.ones(3))
    assert lowered is not None
    assert seen == [(True, False, 1)]
    assert not inside(torch.ones(3))
    assert not inside(nn.Parameter(torch.ones(3)))
    assert level() == 0
