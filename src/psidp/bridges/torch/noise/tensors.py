"""Exact noise on tensors: in place, on the device they live on, or refused before anything is drawn."""

import re
from functools import lru_cache
from math import frexp, ldexp
from types import ModuleType
from typing import Any, cast

import torch

from psidp.bridges.torch.noise.chacha import ROUNDS, Key
from psidp.errors import MissingExtraError
from psidp.mechanism.gaussian import GaussianMechanism
from psidp.mechanism.release import Release
from psidp.noise.gaussian import RoundedGaussian
from psidp.symbols import symbol

__all__ = ["add_noise_", "release"]

COARSENESS = {torch.float32: 16, torch.bfloat16: 7, torch.float64: 20}
"""Unless told, the grid of a tensor of this type is so many powers of two finer than sigma, up to one more."""

FINEST = 2.0**30
"""On a GPU the grid is at most so many times finer than sigma."""

OLDEST = (3, 3)
"""The first Triton that compiles the kernels."""


def add_noise_(tensor: torch.Tensor, sigma: float, *, grid: float | None = None) -> torch.Tensor:
    """`tensor` itself, with Gaussian noise of standard deviation sigma added in place, rounded once to a grid.

    Guarantees:
        Every entry becomes a function of the real number x + sigma N, N a true normal, and of nothing else: the
        nearest multiple of the grid, then the nearest number of the tensor's own type. So a query of sensitivity
        Delta released in this way costs psi = Delta/sigma, with no slop and no attack on floating point. On a GPU
        and on the CPU alike; the words come from a cipher keyed by the operating system for this call alone
        (docs/design/torch.md), and cannot be seeded.

    Args:
        tensor: float32, bfloat16 or float64, of any shape and layout in memory, on any device.
        sigma: standard deviation of the noise, a number.
        grid: a power of two in [sigma 2^-44, sigma], on a GPU in [sigma 2^-30, sigma]; unless told, 2^16 to 2^17 times
            below sigma, 2^20 to 2^21 times for float64, and 2^7 to 2^8 times for bfloat16, which holds no more digits
            of the noise. Rounding to it adds at most 2^-35 of the noise's variance, 2^-17 for bfloat16.

    NaN counts as 0, and what is beyond the grid's reach, infinities among it, as the end of that reach (2^1022 steps or
    units, which float32 calls inf), without a word. Refused before anything is drawn: integers, tensors that require
    grad, tensors that share memory with themselves, a call inside the capture of a CUDA graph.

    Examples:
        >>> noisy = add_noise_(torch.zeros(3, 4), sigma=2.0)
        >>> noisy.shape, noisy.dtype
        (torch.Size([3, 4]), torch.float32)
    """
    return cast(torch.Tensor, _eagerly(tensor, sigma, grid))


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _eagerly(tensor: torch.Tensor, sigma: float, grid: float | None) -> torch.Tensor:
    """Never compiled: a graph would keep the noise of its first run."""
    _refuse_unless_fit(tensor)
    noise = _rounded(tensor, sigma, grid)
    if tensor.numel() == 0:
        return tensor
    launch = _kernels(tensor, noise)
    flat = tensor.reshape(-1).contiguous()  # a view with steps between its entries keeps them in reshape
    if launch is None:
        _on_the_host(flat, noise)
    else:
        _on_the_gpu(launch, flat, noise)
    if flat.data_ptr() != tensor.data_ptr():
        tensor.copy_(flat.view(tensor.shape))
    elif not tensor.is_inference():
        torch.autograd.graph.increment_version(tensor)
    return tensor


def release(mechanism: GaussianMechanism, tensor: torch.Tensor) -> Release:
    """`tensor` released by a Gaussian mechanism, as a Release whose value is a tensor of its own on the same device.

    Unless the mechanism was given a grid, it has the one of `GaussianMechanism`, 2^24 times finer than sigma. With
    one of 2^20 times or less, a GPU is faster.

    Examples:
        >>> mechanism = GaussianMechanism(sensitivity=1.0, sigma=2.0, grid=2.0**-19)
        >>> released = release(mechanism, torch.ones(3))
        >>> released.value.shape, released.guarantee
        (torch.Size([3]), Guarantee(psi=0.5))
    """
    if not isinstance(mechanism, GaussianMechanism):
        raise TypeError(f"mechanism must be a GaussianMechanism, got {type(mechanism).__name__}.")
    grid = mechanism.grid
    _refuse_unless_fit(tensor)
    value = add_noise_(tensor.detach().clone(), mechanism.sigma, grid=grid)
    return Release(value, mechanism.sigma, float(grid or 0.0), 0.5 * float(grid or 0.0), mechanism.guarantee)


def _refuse_unless_fit(tensor: Any) -> None:
    """Refuse what cannot take noise in place; looks at no entry."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"tensor must be a torch.Tensor, got {type(tensor).__name__}.")
    dense = tensor.layout == torch.strided and not tensor.is_nested and not tensor.is_neg()
    if tensor.dtype not in COARSENESS or not dense or tensor.device.type == "meta":
        raise TypeError(
            "tensor must be a dense tensor of float32, bfloat16 or float64, "
            f"got {tensor.dtype}, {tensor.layout} on {tensor.device}. Pass tensor.float(), or make it dense."
        )
    if tensor.requires_grad:
        raise ValueError("tensor must not require grad: noise is not differentiable. Pass tensor.detach().")
    span = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride < span:
            raise ValueError(
                "tensor must not share memory with itself: an entry would have two noises. Pass a clone()."
            )
        span += stride * (size - 1)


def _rounded(tensor: torch.Tensor, sigma: Any, grid: float | None) -> RoundedGaussian:
    """The law of the noise, or a refusal."""
    if isinstance(sigma, torch.Tensor):
        raise TypeError("sigma (standard deviation of the noise) must be a number, got a tensor. Pass float(sigma).")
    return _law(tensor.dtype, sigma if type(sigma) is float else symbol("sigma").number(sigma), grid)


@lru_cache(maxsize=64)
def _law(dtype: torch.dtype, sigma: float, grid: float | None) -> RoundedGaussian:
    """Checked once for many calls."""
    sigma = symbol("sigma").number(sigma)
    if grid is None:
        grid = ldexp(1.0, max(frexp(sigma)[1] - 1 - COARSENESS[dtype], -1020))
    return RoundedGaussian(sigma, grid)


def _kernels(tensor: torch.Tensor, noise: RoundedGaussian) -> ModuleType | None:
    """The module that launches the kernels, for a tensor on an NVIDIA GPU, or None, or a refusal."""
    if tensor.device.type != "cuda" or torch.version.cuda is None:
        return None
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError(
            "noise must be drawn outside the capture of a CUDA graph: each replay would draw the same noise again."
        )
    if not noise.sigma / noise.grid <= FINEST:
        raise ValueError(
            "grid (step of the released values) must be in [sigma 2^-30, sigma] on a GPU, "
            f"got grid={noise.grid} with sigma={noise.sigma}. Move the tensor to the CPU for a finer one."
        )
    refuse_old_triton()
    from psidp.bridges.torch.noise import launch

    return launch


def refuse_old_triton() -> None:
    """Refuse to launch kernels that this Triton does not compile."""
    try:
        import triton
    except ImportError as error:
        raise MissingExtraError("triton", "torch") from error
    if not _release(triton.__version__) >= OLDEST:
        raise RuntimeError(
            f"noise on a GPU needs triton {OLDEST[0]}.{OLDEST[1]} or newer, got {triton.__version__}. "
            "Install a newer torch, which brings it, or move the tensor to the CPU."
        )


@lru_cache(maxsize=1)
def _release(version: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _on_the_host(flat: torch.Tensor, noise: RoundedGaussian) -> None:
    """The NumPy path, in place; devices without kernels of ours go there and back."""
    if flat.device.type == "cpu" and flat.dtype != torch.bfloat16:
        array = flat.numpy()
        noise.add(array, out=array)
        return
    wanted = torch.float32 if flat.dtype == torch.bfloat16 else flat.dtype
    here = flat.to("cpu", wanted, copy=True)
    noise.add(here.numpy(), out=here.numpy())
    flat.copy_(here.to(flat.dtype))


def _on_the_gpu(launch: ModuleType, flat: torch.Tensor, noise: RoundedGaussian) -> None:
    """The kernels, a key for each launch."""
    shape = launch.Shape()
    layout = launch.layout_of(noise, flat, shape, ROUNDS)
    with torch.cuda.device(flat.device):
        parts = (flat,) if flat.numel() <= launch.LONGEST else flat.split(launch.LONGEST)
        for finish in [launch.started(part, noise, Key(), layout, shape) for part in parts]:
            finish()
