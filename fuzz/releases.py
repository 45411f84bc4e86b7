"""No value has a release refused: it is on its grid, in the array's shape, and can be written down."""

import json
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from fuzz.campaign import Relapse
from psidp import GaussianMechanism
from psidp.noise.gaussian import RoundedGaussian

__all__ = ["RELAPSES", "explore"]

SHAPES = ((), (0,), (1,), (3,), (2, 3), (2049,))
NASTY = (0.0, -0.0, 1.0, 0.5, 5e-324, -1e-30, 2.0**53, 1e15, 3e38, 1.7e308, float("inf"), float("nan"))


def explore(random: Random) -> None:
    """Forty arrays of ordinary and nasty values, under mechanisms of any scale."""
    for _ in range(40):
        sigma = 2.0 ** random.uniform(-30, 30)
        mechanism = GaussianMechanism(sensitivity=sigma * random.uniform(0.01, 2), sigma=sigma)
        _release(mechanism, _array(random, sigma))


def _array(random: Random, sigma: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Ordinary values of the noise's size, or nasty ones."""
    shape = random.choice(SHAPES)
    nasty = random.random() < 0.5
    values = [random.choice(NASTY) if nasty else sigma * random.gauss(0, 100) for _ in range(int(np.prod(shape)))]
    return np.array(values, np.float64).reshape(shape)


def _release(mechanism: GaussianMechanism, x: np.ndarray[Any, np.dtype[np.float64]]) -> None:
    told = f"{mechanism!r}.release(np.array({x.ravel()[:20].tolist()}...).reshape({x.shape}))"
    try:
        released = mechanism.release(x)
    except Exception as error:
        raise AssertionError(f"{told} fails, which tells about x: {error!r}") from error
    value = np.asarray(released.value)
    assert value.shape == x.shape, f"{told} has shape {value.shape}"
    assert (value % released.grid == 0.0).all(), f"{told} is off the grid {released.grid}"
    again = json.loads(json.dumps(released.to_dict(), allow_nan=False))
    assert again["guarantee"] == mechanism.guarantee.to_dict(), f"{told} is written with another guarantee"


def _checked(self: RoundedGaussian, x: Any, out: Any = None) -> Any:
    """Infinite values are refused."""
    if not np.isfinite(x).all():
        raise ValueError("x must be finite")
    return ADD(self, x, out)


def _in_doubles(self: RoundedGaussian, x: Any, out: Any = None) -> Any:
    """Noise drawn and added in doubles, whose last bits tell x."""
    noisy = x + np.random.default_rng(0).normal(0.0, self.sigma, x.shape)
    return np.add(noisy, 0.0, out=out)


ADD = RoundedGaussian.add
RELAPSES: dict[str, Relapse] = {
    "an infinite value is refused": lambda: patch.object(RoundedGaussian, "add", _checked),
    "noise is added in doubles": lambda: patch.object(RoundedGaussian, "add", _in_doubles),
}
