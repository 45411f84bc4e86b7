"""PyTorch: exact noise on tensors, the private step, and the trainer. This package alone knows torch and triton.

It computes on their devices.
"""

from importlib.util import find_spec

from psidp.errors import MissingExtraError

if find_spec("torch") is None:
    raise MissingExtraError("torch", "torch")

from psidp.bridges.torch.noise.tensors import add_noise_, release
from psidp.bridges.torch.step.adaptive_clip import AdaptiveClip
from psidp.bridges.torch.step.per_layer_clip import PerLayerClip
from psidp.bridges.torch.step.private_step import PrivateStep
from psidp.bridges.torch.training.columns import Columns
from psidp.bridges.torch.training.parquet_records import ParquetRecords
from psidp.bridges.torch.training.tokens import PadTo, next_token_loss
from psidp.bridges.torch.training.trainer import PrivateTrainer

__all__ = [
    "AdaptiveClip",
    "Columns",
    "PadTo",
    "ParquetRecords",
    "PerLayerClip",
    "PrivateStep",
    "PrivateTrainer",
    "add_noise_",
    "next_token_loss",
    "release",
]
