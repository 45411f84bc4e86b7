"""Toeplitz: the strategy of streams and trainings, sum_j c_j x_(t-j) with whole numbers c_0 >= c_1 >= ... >= 0."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import index, mul
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psidp.maths.series import correlation, reciprocal
from psidp.strategies.participation import Participation
from psidp.strategies.strategy import Strategy
from psidp.symbols import symbol, whole

__all__ = ["STREAM_BITS", "TRAINING_BITS", "Toeplitz"]

Floats = NDArray[np.float64]

STREAM_BITS = 16
"""c_0 = 2^16 in a stream: cutting to whole numbers costs less than 1e-5 of the error."""

TRAINING_BITS = 12
"""c_0 = 2^12 in a training, where totals times coefficients have to fit into 64 bits."""


@final
@dataclass(frozen=True, slots=True)
class Toeplitz(Strategy):
    """Row t of the matrix is (c_t, ..., c_1, c_0, 0, ..., 0): period t's release uses no later period.

    Args:
        periods: rows and columns.
        coefficients: c_0, c_1, ...; those not given are 0, and zeros at the end are dropped.

    Refused: coefficients that are not whole, that rise or that are negative: the sensitivity would not be what
    `squared` says.

    Examples:
        >>> strategy = Toeplitz(4, (2, 1, 1))
        >>> strategy.encode([10, 0, 0, 5])
        [20, 10, 10, 10]
        >>> strategy.decode([20, 10, 10, 10]).tolist()
        [10.0, 0.0, 0.0, 5.0]
        >>> strategy.squared(Participation(at_most=1)), strategy.squared(Participation(at_most=2))
        (6, 18)
    """

    periods: int
    coefficients: tuple[int, ...]

    def __post_init__(self) -> None:
        periods = whole("periods", self.periods)
        coefficients = _checked(self.coefficients, periods)
        object.__setattr__(self, "periods", periods)
        object.__setattr__(self, "coefficients", coefficients)

    @classmethod
    def independent(cls, periods: int) -> Self:
        """Every period alone, with noise of its own: the identity matrix."""
        return cls(periods, (1,))

    @classmethod
    def square_root(cls, periods: int, bits: int = STREAM_BITS) -> Self:
        """c_j = binom(2 j, j)/4^j, cut to whole numbers: the square root of the matrix of totals to date.

        Nothing is optimised. It is made for the largest error of a total to date, for a unit in one period.

        Examples:
            >>> Toeplitz.square_root(4).coefficients
            (65536, 32768, 24576, 20480)
        """
        scaled, guard = [1 << (bits + 64)], 64
        for j in range(1, whole("periods", periods)):
            scaled.append(scaled[-1] * (2 * j - 1) // (2 * j))
        return cls(periods, tuple(c >> guard for c in scaled))

    @classmethod
    def floor(cls, periods: int, real: ArrayLike, bits: int = STREAM_BITS) -> Self:
        """A real strategy cut to whole numbers, floor(2^bits c_j/c_0): it stays monotone, so the proof holds."""
        c = np.asarray(real, np.float64)
        if not (c.ndim == 1 and c.size and np.isfinite(c).all() and c[0] > 0.0):
            raise ValueError("real (the strategy before it is cut) must be one row of finite numbers with c_0 above 0.")
        return cls(periods, tuple(int(n) for n in np.floor(np.ldexp(c / c[0], bits))))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, both the number of periods."""
        return self.periods, self.periods

    @property
    def bands(self) -> int:
        """How many coefficients are not 0: how long a period is remembered."""
        return len(self.coefficients)

    def squared(self, participation: Participation) -> int:
        """The largest squared distance, exact for at_most and apart, an upper bound for buckets (`each`).

        For at_most and apart the worst unit takes part as early and as densely as it may. For buckets every pair of its
        periods is priced at the earliest and closest places that it can have.
        """
        starts, gaps = participation.starts(self.periods), participation.gaps(self.periods)
        if participation.each is None:
            return sum(v * v for v in self._image(starts))
        return self._bound(starts, gaps)

    def _image(self, places: list[int]) -> list[int]:
        """C v for a unit that adds 1 in each of these evenly spaced places, the first of which is 0."""
        apart = places[1] if len(places) > 1 else self.periods
        image = [*self.coefficients, *(0,) * (self.periods - self.bands)]
        for first in range(min(apart, self.periods)):
            sums = [0] * len(places) + list(accumulate(image[first::apart]))
            image[first::apart] = map(int.__sub__, sums[len(places) :], sums)
        return image

    def _bound(self, starts: list[int], gaps: list[int]) -> int:
        """Sum over all pairs i <= j of a unit's periods of the largest inner product of their columns."""
        fits = len(starts) * sum(n * n for n in self.coefficients) < 2**63
        c = np.array(self.coefficients, np.int64 if fits else object)
        seen = np.searchsorted(starts, self.periods - np.arange(self.bands)).astype(c.dtype)  # columns that have a c_r
        pairs = [_pairs(c, np.maximum(seen - d, 0), gap) for d, gap in enumerate(gaps)]
        return 2 * sum(pairs) - pairs[0]

    def newest(self, totals: Sequence[int]) -> int:
        """The encoding of the newest of the totals so far, one a period: row t of the matrix times all of them."""
        self._fits(len(totals))
        return sum(map(mul, self.coefficients, map(index, totals[: -self.bands - 1 : -1])))

    def encode(self, totals: Sequence[int]) -> list[int]:
        """C x for the totals so far, one a period; totals still to come do not change it."""
        self._fits(len(totals))
        return [self.newest(totals[: t + 1]) for t in range(len(totals))]

    def decode(self, released: ArrayLike) -> Floats:
        """The totals so far, one a period (and column), from what was released so far, in doubles.

        What is decoded for a period never changes, to the last bit, when later periods are released.
        """
        rest = np.array(released, np.float64)
        self._fits(len(rest))
        c = np.asarray(self.coefficients, np.float64).reshape(-1, *(1,) * (rest.ndim - 1))
        for t in range(len(rest)):
            rest[t] /= c[0]
            end = min(t + self.bands, len(rest))
            rest[t + 1 : end] -= c[1 : end - t] * rest[t]
        return rest

    def weights(self, questions: ArrayLike) -> Floats:
        """u with u C = w for each question w about the periods so far: one number a period."""
        w = np.asarray(questions, np.float64)
        self._fits(w.shape[-1])
        inverse = self.inverse(w.shape[-1])
        return np.stack([correlation(row, inverse) for row in w.reshape(-1, w.shape[-1])]).reshape(w.shape)

    def inverse(self, periods: int | None = None) -> Floats:
        """The first column of the inverse matrix, which is Toeplitz as well."""
        return reciprocal(np.asarray(self.coefficients, np.float64), self.periods if periods is None else periods)

    def window_deviations(self, lengths: ArrayLike, sigma: float = 1.0) -> Floats:
        """Standard deviation, in each period, of the sum of the last so many periods; nan where 0 are asked for.

        Examples:
            >>> Toeplitz.independent(4).window_deviations([1, 2, 2, 0]).round(4).tolist()
            [1.0, 1.4142, 1.4142, nan]
        """
        h = np.asarray(lengths)
        time = np.arange(h.size)
        sums = np.cumsum(self.inverse(h.size))
        variance = np.where(h > time, np.cumsum(sums * sums), np.nan)
        for length in np.unique(h[(h > 0) & (h <= time)]):
            parts = sums.copy()
            parts[length:] -= sums[:-length]
            variance = np.where((h == length) & (h <= time), np.cumsum(parts * parts), variance)
        return symbol("sigma").number(sigma) * np.sqrt(variance)

    def to_dict(self) -> dict[str, Any]:
        """Kind, periods and whole numbers."""
        return {"kind": "toeplitz", "periods": self.periods, "coefficients": list(self.coefficients)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The strategy that to_dict wrote, to the last digit."""
        if set(values) != {"kind", "periods", "coefficients"} or values["kind"] != "toeplitz":
            raise ValueError(
                f'a Toeplitz strategy has kind "toeplitz", periods and coefficients, got {sorted(values)}.'
            )
        return cls(values["periods"], tuple(values["coefficients"]))

    def _fits(self, number: int) -> None:
        if not 1 <= number <= self.periods:
            raise ValueError(
                f"the periods so far must be 1 to {self.periods}, which this strategy was made for, got {number}."
            )


def _pairs(c: NDArray[Any], times: NDArray[Any], gap: int) -> int:
    """sum_r times_r c_r c_(r + gap)."""
    size = max(c.size - gap, 0)
    return int(np.dot(times[:size] * c[:size], c[gap:]))


def _checked(coefficients: Sequence[int], periods: int) -> tuple[int, ...]:
    """The coefficients without zeros at the end, if they are whole, at most one a period, and never rise."""
    c = tuple(coefficients)
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in c):
        raise TypeError("coefficients must be whole numbers, since their sensitivity has to be exact.")
    if not (0 < len(c) <= periods and c[0] >= 1 and c[-1] >= 0 and all(a >= b for a, b in pairwise(c))):
        rise = next((j for j, (a, b) in enumerate(pairwise(c), 1) if not a >= b), None)
        raise ValueError(
            f"coefficients must be 1 to {periods} whole numbers c_0 >= c_1 >= ... >= 0 with c_0 above 0, got {len(c)}"
            + (f" with c_{rise} = {c[rise]} above c_{rise - 1} = {c[rise - 1]}." if rise else ".")
        )
    return c[: max(j for j, n in enumerate(c, 1) if n)]
