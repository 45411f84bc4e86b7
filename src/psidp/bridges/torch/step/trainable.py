"""The trainable parameters of a model, or a refusal: what makes one example's gradient depend on others is named."""

from itertools import pairwise

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.nn.parameter import is_lazy

from psidp.bridges.torch.step.clipping import MOST
from psidp.bridges.torch.step.world import refuse_world, refuse_wrapper

__all__ = ["Unchanged", "bytes_of_one", "trainable"]

TYPES = (torch.float32, torch.bfloat16, torch.float64)
DEVICES = ("cpu", "cuda")


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


class Unchanged:
    """Parameters and buffers of a model's modules as they are now, to refuse one that changes them as it runs.

    They would count the micro-batches, and with micro_batch=1 the examples of a draw, without noise.
    """

    def __init__(self, modules: list[nn.Module]) -> None:
        self._before = [
            (module, held, name, value, _version(value))
            for module in modules
            for held in (module._parameters, module._buffers)
            for name, value in held.items()
            if value is not None
        ]

    def check(self) -> None:
        """Refuse a model that wrote to one of them, or put another in its place."""
        for module, held, name, value, version in self._before:
            if not (held.get(name) is value and _version(value) == version):
                raise ValueError(
                    f"model must not change parameters and buffers as it runs, as {type(module).__name__} did with "
                    f"{name}: they would tell how many examples were drawn. Put that part into eval mode, if it has "
                    "one, or leave it out."
                )


def _version(value: torch.Tensor) -> int | None:
    """How often a tensor was written to, which those of inference mode do not count."""
    return None if value.is_inference() else value._version


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
