"""The rectangles in steps of one grid, where a device can read them."""

from dataclasses import dataclass
from functools import lru_cache
from math import factorial

import numpy as np
import torch

from psidp.noise import table
from psidp.noise.gaussian import RoundedGaussian
from psidp.noise.rounding import FARTHEST, NEAR, error_bound

__all__ = ["NARROWEST", "SHORTEST", "Tables", "narrow_fits", "short_fits", "tables"]

NARROWEST = 2.0**21
"""Words of 32 bits serve grids up to so many times finer than sigma."""

SHORTEST = 2.0**8
"""Words of 21 bits serve grids up to so many times finer than sigma."""

CELLS = 4096


@dataclass(frozen=True, slots=True)
class Tables:
    """What the kernels look up: for floats the steps of a cell or a slot, for doubles centre and reach of a slot."""

    steps: torch.Tensor
    centre: torch.Tensor
    reach: torch.Tensor
    numbers: torch.Tensor
    weights: torch.Tensor
    guide: torch.Tensor
    cells: torch.Tensor


def narrow_fits(sigma: float, grid: float) -> bool:
    """Whether floats and words of 32 bits serve this grid."""
    return sigma / grid < NARROWEST and 2.0**-60 <= sigma <= 2.0**60


def short_fits(sigma: float, grid: float) -> bool:
    """Whether words of 21 bits serve this grid."""
    return sigma / grid < SHORTEST and narrow_fits(sigma, grid)


@lru_cache(maxsize=16)
def tables(sigma: float, grid: float, device: torch.device) -> Tables:
    """The tables of one sigma and grid on one device, made once."""
    noise, scale = RoundedGaussian(sigma, grid), sigma / grid
    numbers = [
        1.0 / grid,
        grid,
        noise.limit / grid,
        scale,
        0.5 - error_bound(scale, NEAR),
        0.5 - error_bound(scale, FARTHEST),
    ]
    parts = [
        _short_steps(scale) if short_fits(sigma, grid) else _steps(scale),
        table.CENTRE * scale,
        table.REACH * scale * 2.0**-63,
        np.array(numbers),
        table.CHOICE.astype(np.int64),
        np.searchsorted(table.CHOICE, np.arange(4097, dtype=np.uint64) << np.uint64(51), side="right").astype(np.int32),
        _cells(),
    ]
    return Tables(*(torch.from_numpy(part).to(device) for part in parts))


def _steps(scale: float) -> np.ndarray:
    """Four floats for each cell: A and b with A + b = scale C - (1 - 2^-19) E/16, E = 16 scale H, and room for doubt.

    A is whole, and b at most a half; NaN in the cells that stand for what the rectangles leave over. Two floats at a
    time make a word of 64 bits. The room is how far a rounding may have gone for it to be certain.
    """
    rows = np.full((CELLS, 4), np.nan, np.float32)
    reach = (16.0 * scale * table.REACH[: table.LEFT_OVER : 2]).astype(np.float32)
    low = scale * table.CENTRE[: table.LEFT_OVER : 2] - (1.0 - 2.0**-19) * (reach.astype(np.float64) / 16.0)
    rows[: table.RECTANGLES, 0] = np.rint(low)
    rows[: table.RECTANGLES, 1] = low - np.rint(low)
    rows[: table.RECTANGLES, 2] = reach
    room = (0.5 - 2.0**-22) - 1.1875 * 2.0**-23 * reach.astype(np.float64)
    rows[: table.RECTANGLES, 3] = np.nextafter(room.astype(np.float32), np.float32(-np.inf))
    return rows.view(np.int64).reshape(-1)


def _short_steps(scale: float) -> np.ndarray:
    """Two floats for each slot, a word of 64 bits: A = scale C - (1 - 2^-8) E/32 and E = 32 scale H; NaN as above."""
    rows = np.full((table.SLOTS, 2), np.nan, np.float32)
    rows[: table.LEFT_OVER, 1] = 32.0 * scale * table.REACH[: table.LEFT_OVER]
    reach = rows[: table.LEFT_OVER, 1].astype(np.float64) / 32.0
    rows[: table.LEFT_OVER, 0] = scale * table.CENTRE[: table.LEFT_OVER] - (1.0 - 2.0**-8) * reach
    return rows.view(np.int64).reshape(-1)


def _cells() -> np.ndarray:
    """Edge, width, height and floor of each cell, and behind them the coefficients of exp(-t), highest first."""
    rows = np.stack([table.EDGE / table.UNIT, table.WIDTH / table.UNIT, table.HEIGHT, table.FLOOR], axis=1)
    series = [(-1.0) ** k / factorial(k) for k in reversed(range(16))]
    return np.concatenate([rows.reshape(-1), series])
