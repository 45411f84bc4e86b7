"""A step of Opacus on one draw, in micro-batches: hooks that keep gradients of single examples, or ghost clipping."""

import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["opacus_step"]


def opacus_step(
    kind: str, model: Any, micro: int, draw: int, clip: float, noise: float, distributed: bool = False
) -> Callable[[Any, Any], None]:
    """Clipped, added up and noised by Opacus' own modules and optimizers; cross entropy, a mean over tokens.

    Ghost clipping's own loss class wants one number for each example: the mean over its tokens. `distributed` wraps the
    model in DPDDP and takes whole steps, sums over all processes included.
    """
    import torch
    from opacus import GradSampleModule
    from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
    from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import GradSampleModuleFastGradientClipping
    from opacus.optimizers import (
        DistributedDPOptimizer,
        DistributedDPOptimizerFastGradientClipping,
        DPOptimizer,
        DPOptimizerFastGradientClipping,
    )
    from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping

    warnings.simplefilter("ignore")
    setting = {"noise_multiplier": noise, "max_grad_norm": clip, "expected_batch_size": draw}
    inner = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.0)
    if distributed:
        model = DifferentiallyPrivateDistributedDataParallel(model)
    if kind == "hooks":
        wrapped = GradSampleModule(model)
        optimizer = (DistributedDPOptimizer if distributed else DPOptimizer)(inner, **setting)
    else:
        wrapped = GradSampleModuleFastGradientClipping(model, max_grad_norm=clip, use_ghost_clipping=True)
        ghost = DistributedDPOptimizerFastGradientClipping if distributed else DPOptimizerFastGradientClipping
        optimizer = ghost(inner, **setting)

    def call(inputs: Any, targets: Any) -> None:
        for start in range(0, len(inputs), micro):
            some, wanted = inputs[start : start + micro], targets[start : start + micro]
            losses = torch.nn.functional.cross_entropy(wrapped(some), wanted, reduction="none")
            losses = losses.view(len(some), -1).mean(1)
            optimizer.signal_skip_step(do_skip=start + micro < len(inputs))
            if kind == "hooks":
                losses.mean().backward()
            else:
                DPTensorFastGradientClipping(wrapped, optimizer, losses[:, None], "mean").backward()
            (optimizer.step if distributed else optimizer.pre_step)()
            optimizer.zero_grad(set_to_none=True)

    return call
