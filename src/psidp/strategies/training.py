"""Strategies for training: which correlated noise leaves the least error in a model after so many steps.

A strategy of b bands remembers a step for b - 1 steps more. Its noise has a standard deviation of `noise_multiplier`
times |c| times the clip; what of it stays in the model is smaller than independent noise would leave
(docs/design/correlated.md).
"""

from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any, Literal, Self, final, get_args

import numpy as np
from numpy.typing import NDArray

from psidp.maths.descent import lowest
from psidp.maths.series import correlation, product, reciprocal
from psidp.strategies.optimise import banded
from psidp.strategies.participation import Participation
from psidp.strategies.toeplitz import TRAINING_BITS, Toeplitz
from psidp.symbols import finite, whole

__all__ = ["Kind", "ModelError"]

Floats = NDArray[np.float64]
Kind = Literal["prefix", "last"]

SHORTEST = 4096
"""Steps of the inverse that are looked at first."""


@final
@dataclass(frozen=True, slots=True)
class ModelError:
    """What of the noise counts: how it adds up in the model's parameters, at a learning rate of 1.

    Args:
        kind: "prefix": the mean over all steps of the squared error of the sum of gradients so far, what plain SGD adds
            up. "last": the squared error of the last step's parameters, with the optimizer's momentum and weight decay.
        momentum: of SGD, [0, 1); for "last" alone.
        decay: learning rate times weight decay, [0, 1); for "last" alone.

    Examples:
        >>> error = ModelError("prefix")
        >>> round(error.of(Toeplitz.independent(2000)), 2), round(error.of(error.strategy(2000, 8)), 2)
        (31.63, 11.58)
    """

    kind: Kind = "prefix"
    momentum: float = 0.0
    decay: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f'workload must be "prefix" or "last", got workload={self.kind!r}.')
        for name in ("momentum", "decay"):
            value = finite(name, getattr(self, name))
            if not 0.0 <= value < 1.0:
                raise ValueError(f"{name} must be in [0, 1), got {name}={value}.")
            if value and self.kind == "prefix":
                raise ValueError(f'{name} belongs to workload="last", got {name}={value} with workload="prefix".')
            object.__setattr__(self, name, value)

    def strategy(self, steps: int, bands: int, bits: int = TRAINING_BITS) -> Toeplitz:
        """The strategy of so many bands with the least error, for a record in one step at a time; in whole numbers."""
        n, b = whole("steps", steps), whole("bands", bands)
        if not b <= n:
            raise ValueError(f"bands must be at most the number of steps, {n}, got bands={b}.")
        if self.kind == "prefix" or b == 1:
            return banded(n, b, bits)
        shown = min(n, max(SHORTEST, 24 * b))
        point = np.sqrt(np.maximum(-np.diff(_fading(b, self.decay), append=0.0), 1e-9))
        while True:
            point = lowest(partial(self._log_error, n=n, shown=shown), point)
            near, full = self._log_error(point, n, shown)[0], self._log_error(point, n, n)[0]
            if shown == n or abs(near - full) < 1e-4:
                return Toeplitz.floor(n, _falling(point), bits)
            shown = min(4 * shown, n)

    def of(self, strategy: Toeplitz) -> float:
        """Root mean squared error in the model at noise_multiplier = 1 and a clip of 1: it grows with both.

        noise_multiplier is relative to |c| times the clip, so strategies compare at equal noise_multiplier.
        """
        n = strategy.periods
        response = product(strategy.inverse(), self._response(n), n)
        if self.kind == "last":
            squares = float(response @ response)
        else:
            squares = float(np.arange(n, 0, -1.0) @ (response * response)) / n
        return sqrt(strategy.squared(Participation(at_most=1)) * squares)

    def _response(self, length: int) -> Floats:
        """What a gradient has added after 1, 2, ... steps: the series 1/((1 - momentum z)(1 - (1 - decay) z))."""
        kept = 1.0 - self.decay
        age = np.arange(length, dtype=np.float64)
        if not self.momentum:
            return np.asarray(kept**age)
        if kept == self.momentum:
            return np.asarray((age + 1.0) * kept**age)
        return (kept ** (age + 1.0) - self.momentum ** (age + 1.0)) / (kept - self.momentum)

    def _log_error(self, point: Floats, n: int, shown: int) -> tuple[float, Floats]:
        """log of |c|^2 times the last error, and its slope; what comes after `shown` steps fades as decay says."""
        c, response = _falling(point), self._response(shown)
        inverse = reciprocal(c, shown)
        left = product(inverse, response, shown)
        counts = np.ones(shown)
        fade = (1.0 - self.decay) ** 2
        counts[-1] += (n - shown) if fade == 1.0 else fade * (1.0 - fade ** (n - shown)) / (1.0 - fade)
        error = float(counts @ (left * left))
        by_inverse = correlation(2.0 * counts * left, response)
        by_c = -correlation(by_inverse, product(inverse, inverse, shown))[: c.size]
        distance = float(c @ c)
        slope = np.cumsum(2.0 * c / distance + by_c / error)
        return float(np.log(distance) + np.log(error)), 2.0 * point * slope

    def to_dict(self) -> dict[str, Any]:
        """The workload as plain values."""
        return {"workload": self.kind, "momentum": self.momentum, "decay": self.decay}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """What to_dict wrote."""
        return cls(values["workload"], values["momentum"], values["decay"])


def _falling(point: Floats) -> Floats:
    """c_j = sum of point_i^2 over i >= j: any falling series."""
    return np.cumsum((point * point)[::-1])[::-1]


def _fading(bands: int, decay: float) -> Floats:
    """Where the search begins: the square root of the matrix of totals, faded."""
    j = np.arange(1.0, bands)
    root = np.concatenate(([1.0], np.cumprod((2.0 * j - 1.0) / (2.0 * j))))
    return np.asarray(root * (1.0 - decay) ** np.arange(bands))
