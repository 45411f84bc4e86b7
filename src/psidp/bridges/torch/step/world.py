"""One model on one device for each process: wrappers are refused by name, and company that has not been introduced."""

import os

import torch
from torch import nn

__all__ = ["WRAPPERS", "refuse_world", "refuse_wrapper"]

WRAPPERS = {
    "DataParallel": "module",
    "DistributedDataParallel": "module",
    "DifferentiallyPrivateDistributedDataParallel": "module",
    "FullyShardedDataParallel": "module",
    "DeepSpeedEngine": "module",
    "FSDPModule": "",
}
"""Modules that spread a model over devices or processes, by name, and where they keep the model itself."""


def refuse_wrapper(model: nn.Module) -> None:
    """Refuse a model that is, or that holds, one of the wrappers: looked for by name, so that none need be imported."""
    for name, module in model.named_modules():
        found = next((base.__name__ for base in type(module).__mro__ if base.__name__ in WRAPPERS), None)
        if found is not None:
            inside = WRAPPERS[found]
            todo = f"Give the model inside, .{inside}" if inside else "Give a model that is not sharded"
            raise ValueError(
                f"{name or 'model'} ({found}) spreads a model over devices or processes, where each part would be "
                f"clipped and noised by itself. {todo}: in several processes PrivateTrainer spreads its steps itself."
            )
    for name, parameter in model.named_parameters():
        if any(base.__name__ == "DTensor" for base in type(parameter).__mro__):
            raise ValueError(
                f"{name} (DTensor) is a part of a tensor that other processes share. Give a model that is not sharded: "
                "every process holds all parameters."
            )


def refuse_world() -> None:
    """Refuse a process that is one of several: each would train a model of its own, and none would pay for the others'.

    Told by torch.distributed, or by WORLD_SIZE, which torchrun sets before anybody has said so.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        size, source = torch.distributed.get_world_size(), "torch.distributed"
    else:
        said = os.environ.get("WORLD_SIZE", "")
        size, source = int(said) if said.isdecimal() else 1, "the environment's WORLD_SIZE"
    if not size <= 1:
        raise RuntimeError(
            f"world size (processes that train together) must be 1, got {size} from {source}. Each process would train "
            "a model of its own, each with the whole privacy loss. Train by PrivateTrainer, which shares its steps "
            "among them. Run one process; or, if each is to train and to pay for a run of its own, start them without "
            "torch.distributed and without WORLD_SIZE."
        )
