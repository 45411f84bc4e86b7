"""The trainable parameters of a model, or a refusal: what makes one example's gradient depend on others is named."""

from itertools import pairwise

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.nn.modules.module import _global_backward_hooks, _global_backward_pre_hooks
from torch.nn.parameter import is_lazy

from psidp.bridges.torch.step.clipping import MOST
from psidp.bridges.torch.step.examples import own_code
from psidp.bridges.torch.step.world import refuse_world, refuse_wrapper

__all__ = ["bytes_of_one", "refuse_classes", "refuse_hooks", "trainable"]

TYPES = (torch.float32, torch.bfloat16, torch.float64)
DEVICES = ("cpu", "cuda")
UNCALLED = (
    "a private step does not call it, since it would see gradients without noise. Remove it, and change p.grad between "
    "the step and optimizer.step()."
)


def trainable(model: nn.Module, ranks: int = 1) -> dict[str, nn.Parameter]:
    """The parameters that require grad, by name; a shared one once. Looks at no value.

    So many ranks share a step; where there is one, a process that is one of several is refused.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}.")
    if ranks == 1:
        refuse_world()
    refuse_wrapper(model)
    _refuse_modules(model)
    refuse_hooks(list(model.modules()))
    refuse_classes(list(model.modules()))
    found = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not found:
        raise ValueError("model has no parameter that requires grad, so there is nothing to train.")
    for name, parameter in found.items():
        _refuse_parameter(name, parameter)
    devices = sorted({str(p.device) for p in model.parameters()})
    if len(devices) > 1:
        raise ValueError(f"model must be on one device, got {', '.join(devices)}. Move it with model.to(device).")
    _refuse_overlap(found)
    size = sum(p.numel() for p in found.values())
    if not 1 <= size <= MOST:
        raise ValueError(f"model must have between 1 and 2^40 trainable numbers, got {size}.")
    return found


def bytes_of_one(parameters: dict[str, nn.Parameter]) -> int:
    """The bytes that the gradient of one example takes."""
    return sum(p.numel() * p.element_size() for p in parameters.values())


def _refuse_modules(model: nn.Module) -> None:
    """Refuse what mixes the examples of a batch, and what keeps something of them."""
    for name, module in model.named_modules():
        what = f"{name or 'model'} ({type(module).__name__})"
        if isinstance(module, _BatchNorm):
            raise ValueError(
                f"{what} mixes the examples of a batch, so that no example has a gradient of its own. "
                "Use GroupNorm or LayerNorm."
            )
        if isinstance(module, _NormBase) and module.track_running_stats:
            raise ValueError(f"{what} keeps statistics of the data without noise. Use track_running_stats=False.")
        if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.max_norm is not None:
            raise ValueError(f"{what} shrinks the rows that the data asks for, without noise. Use max_norm=None.")
        if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.sparse:
            raise ValueError(f"{what} gives sparse gradients, and noise is never sparse. Use sparse=False.")
        if isinstance(module, nn.RReLU) and module.training:
            raise ValueError(f"{what} draws random numbers where the data asks for them. Use nn.LeakyReLU.")


def refuse_hooks(modules: list[nn.Module]) -> None:
    """Refuse hooks of the backward pass, which a step never calls: no batch has the gradient that they would see."""
    if _global_backward_hooks or _global_backward_pre_hooks:
        raise ValueError(f"torch must have no backward hook for all modules: {UNCALLED}")
    for module in modules:
        if module._backward_hooks or module._backward_pre_hooks:
            raise ValueError(f"{type(module).__name__} must have no backward hook: {UNCALLED}")
        for name, p in module._parameters.items():
            if p is not None and (p._backward_hooks or p._post_accumulate_grad_hooks):
                raise ValueError(f"{name} of {type(module).__name__} must have no hook on its gradient: {UNCALLED}")


def refuse_classes(modules: list[nn.Module]) -> None:
    """Refuse parameters and buffers of a class with code of its own, which would see the whole micro-batch."""
    for module in modules:
        for name, tensor in (*module._parameters.items(), *module._buffers.items()):
            if tensor is not None and own_code(tensor):
                raise TypeError(
                    f"{name} of {type(module).__name__} must be a plain tensor or Parameter, got "
                    f"{type(tensor).__name__}, whose own code would see the whole micro-batch. Convert it first."
                )


def _refuse_parameter(name: str, parameter: nn.Parameter) -> None:
    """Refuse parameters without a dense value of a type whose gradients are worth summing."""
    if is_lazy(parameter):
        raise ValueError(f"{name} has no shape yet. Run the model once on an example of public shape.")
    if parameter.dtype not in TYPES or parameter.layout != torch.strided or parameter.device.type not in DEVICES:
        raise TypeError(
            f"{name} must be a dense tensor of float32, bfloat16 or float64 on the CPU or a GPU, "
            f"got {parameter.dtype}, {parameter.layout} on {parameter.device}. Use model.float() or model.bfloat16(), "
            "model.to(device), or freeze it."
        )


def _refuse_overlap(parameters: dict[str, nn.Parameter]) -> None:
    """Refuse parameters that are different views of the same memory: torch.func gives each a gradient of its own."""
    spans = []
    for name, p in parameters.items():
        last = sum((size - 1) * stride for size, stride in zip(p.shape, p.stride(), strict=True))
        if p.numel():
            spans.append((p.data_ptr(), p.data_ptr() + (last + 1) * p.element_size(), name))
    for (_, end, one), (start, _, other) in pairwise(sorted(spans)):
        if not start >= end:
            raise ValueError(
                f"{one} and {other} share memory without being the same parameter. "
                "Assign one Parameter to both places, or keep them apart."
            )
