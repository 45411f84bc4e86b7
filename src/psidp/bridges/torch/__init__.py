"""PyTorch: exact noise on tensors. This package alone knows torch and triton; it computes on their devices."""

from importlib.util import find_spec

from psidp.errors import MissingExtraError

if find_spec("torch") is None:
    raise MissingExtraError("torch", "torch")

from psidp.bridges.torch.noise import add_noise_, release

__all__ = ["add_noise_", "release"]
