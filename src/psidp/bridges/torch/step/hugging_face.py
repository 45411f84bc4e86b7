"""Hugging Face models inside `vmap`: attention masks without a look at their values, layers without checkpoints.

transformers leaves a mask out where no example of the batch has padding: one example would decide for the others which
kernel computes them. It has a switch for graphs whose values nobody can read, and that is what a pass of ours is.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

__all__ = ["split"]


@contextmanager
def split(modules: list[nn.Module]) -> Iterator[None]:
    """Inside, masks are always made, and layers that would be run again in the backward pass are not."""
    masks: Any = sys.modules.get("transformers.masking_utils")
    asked = getattr(masks, "is_tracing", None)
    again = [module for module in modules if vars(module).get("gradient_checkpointing") is True]
    if asked is not None:
        masks.is_tracing = lambda *_, **__: True
    for module in again:
        module.gradient_checkpointing = False
    try:
        yield
    finally:
        if asked is not None:
            masks.is_tracing = asked
        for module in again:
            module.gradient_checkpointing = True
