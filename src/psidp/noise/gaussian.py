"""The exact Gaussian: x plus noise, rounded once to a power-of-two grid, as if done with real numbers.

Integer totals never pass through a double, whatever their size. A total n in units of 2^unit is split at the grid 2^k.
Where the grid is the finer one, noise is so many steps of it, and n + steps 2^(k - unit) has a whole part and a
fraction, each exact. Where it is the coarser one, n itself is split into whole grid steps and an offset, and the offset
enters the rounding. Either way what comes out is a function of the exact sum alone.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import frexp, ldexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psidp.noise.normal_source import SMALL, NormalSource, borrowed
from psidp.noise.rounding import Exact, rounding
from psidp.noise.stream import BLOCK
from psidp.symbols import symbol

__all__ = ["LARGEST", "RoundedGaussian", "noisy_integer", "noisy_integers", "noisy_total", "noisy_totals"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LARGEST = 2**61
"""Array entries beyond plus or minus this count as this; single integers have no such bound."""

FINEST = 44
"""The grid is at most 2^44 times finer than sigma; beyond, one double could not hold the number of steps."""

DEFAULT = 24
"""Unless told, the grid is 2^24 to 2^25 times finer than sigma."""

SMALLEST = 2.0**-1020
"""The smallest grid: its inverse is a double, so that x/grid is the multiplication it seems to be."""

EXPONENTS = (-990, 990)
"""Where the binary exponent of sigma may lie, so that neither the grid nor the noise leaves the doubles."""


class RoundedGaussian:
    """The law of grid * round(x/grid + (sigma/grid) N), N a true real standard normal.

    Guarantees:
        The result is a function of the real number x + sigma N and of nothing else: the double nearest to
        the nearest multiple of the grid. No step is approximate: what doubles cannot decide is decided by
        pairs of doubles, and what those cannot, by integers (docs/design/noise.md,
        tests/noise/test_exactness.py). What is drawn, skipped or refused never depends on x; in vectors up to 2048
        entries it does not depend on the noise either, except where one double cannot decide.

    Args:
        sigma: standard deviation of the noise, in [2^-990, 2^991).
        grid: a power of two in [sigma 2^-44, sigma]; unless told, 2^24 to 2^25 times below sigma.

    Values beyond `limit` count as plus or minus `limit`, infinities among them, and NaN counts as 0. This is
    part of the query and raises no error: the sensitivity has to hold for the query with it, and does if no
    record can make a NaN.
    """

    __slots__ = ("_far", "_rounding", "grid", "limit", "sigma")

    def __init__(self, sigma: float, grid: float | None = None) -> None:
        _refuse_unless_ieee()
        self.sigma = symbol("sigma").number(sigma)
        exponent = frexp(self.sigma)[1] - 1
        low, high = EXPONENTS
        if not low <= exponent <= high:
            raise ValueError(
                f"sigma (standard deviation of the noise) must be in [2^{low}, 2^{high + 1}) to be drawn "
                f"exactly, got sigma={sigma}. Measure in other units."
            )
        self.grid = ldexp(1.0, exponent - DEFAULT) if grid is None else self._checked(grid)
        self.limit = ldexp(min(1.0, self.grid), 1022)
        self._far = self.limit / self.grid
        self._rounding = rounding(self.sigma / self.grid)

    def __reduce__(self) -> tuple[type["RoundedGaussian"], tuple[float, float]]:
        """Pickled as sigma and grid; no random state is copied."""
        return RoundedGaussian, (self.sigma, self.grid)

    def add(self, x: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """x plus noise, entry by entry, in blocks; `out` may be x itself. float32 and float64."""
        result = np.empty_like(x, subok=False) if out is None else out
        if out is not None and np.may_share_memory(x, out) and not _same(x, out):
            x = x.copy()
        if not (x.flags.c_contiguous and result.flags.c_contiguous):
            if x.flags.f_contiguous and result.flags.f_contiguous:
                self.add(x.T, result.T)
            else:
                result[...] = self.add(np.ascontiguousarray(x))
            return result
        with borrowed() as dice, np.errstate(all="ignore"):
            self._add(dice, x.reshape(-1), result.reshape(-1))
        return result

    def add_one(self, x: float) -> float:
        """x plus noise, for one float."""
        steps = x / self.grid
        steps = min(max(steps, -self._far), self._far) if steps == steps else 0.0
        whole = float(np.rint(steps))
        near = self.one_step(steps - whole, lambda: self._offset(x, whole))
        return (whole + near) * self.grid

    def noise(self, n: int) -> Floats:
        """n independent draws of the noise alone."""
        out = np.empty(n)
        with borrowed() as dice, np.errstate(all="ignore"):
            for part in _parts(dice, n):
                near = self._rounding.many(dice, len(part), n, None, _nothing)
                np.multiply(near, self.grid, out=out[part.start : part.stop])
        return out

    def steps(self, offset: Floats, exact: Exact) -> Floats:
        """Whole numbers round(offset + N sigma/grid); `exact(i)` is offset i as a fraction."""
        out = np.empty(offset.size)
        with borrowed() as dice, np.errstate(all="ignore"):
            for part in _parts(dice, offset.size):
                first, last = part.start, part.stop

                def later(i: int, first: int = first) -> Fraction:
                    return exact(first + i)

                near = self._rounding.many(dice, len(part), offset.size, offset[first:last], later)
                out[first:last] = near
        return out

    def one_step(self, offset: float, exact: Callable[[], Fraction]) -> float:
        """One whole number round(offset + N sigma/grid); `exact()` is the offset as a fraction."""
        with borrowed() as dice:
            return self._rounding.one(dice, offset, exact)

    def _add(self, dice: NormalSource, x: NDArray[Any], out: NDArray[Any]) -> None:
        """Block by block: split x/grid into whole and offset, round offset + noise, put together."""
        inverse = 1.0 / self.grid
        for part in _parts(dice, x.size):
            n, source = len(part), x[part.start : part.stop]
            offset, whole, flag = dice.offset[:n], dice.whole[:n], dice.flag[:n]
            np.multiply(source, inverse, out=offset, dtype=np.float64)
            np.clip(offset, -self._far, self._far, out=offset)
            np.isnan(offset, out=flag)
            np.copyto(offset, 0.0, where=flag)
            np.rint(offset, out=whole)
            np.subtract(offset, whole, out=offset)

            def exact(i: int, source: NDArray[Any] = source, whole: Floats = whole) -> Fraction:
                return self._offset(float(source[i]), float(whole[i]))

            near = self._rounding.many(dice, n, x.size, offset, exact)
            np.add(near, whole, out=near)
            np.add(near, 0.0, out=near)  # -0.0 would reveal that x was negative, which x + sigma N does not
            np.multiply(near, self.grid, out=out[part.start : part.stop], casting="same_kind")

    def _offset(self, x: float, whole: float) -> Fraction:
        """x/grid - whole, exactly."""
        x = min(max(x, -self.limit), self.limit) if x == x else 0.0
        return Fraction(x) / Fraction(self.grid) - Fraction(whole)

    def _checked(self, grid: Any) -> float:
        """The grid as a float, or a refusal."""
        if not (isinstance(grid, float | int) and grid > 0 and frexp(grid)[0] == 0.5):
            raise ValueError(f"grid (step of the released values) must be a power of two, got grid={grid}.")
        if not (self.sigma * 2.0**-FINEST <= grid <= self.sigma and grid >= SMALLEST):
            raise ValueError(
                f"grid (step of the released values) must be in [sigma 2^-{FINEST}, sigma] and at least 2^-1020, "
                f"got grid={grid} with sigma={self.sigma}."
            )
        return float(grid)


def _parts(dice: NormalSource, n: int) -> Iterator[range]:
    """Ranges of a cache-sized block each, under a fresh key if drawn now; wiped at the end."""
    if n > SMALL:
        dice.words.rekey()
    for start in range(0, n, BLOCK):
        yield range(start, min(start + BLOCK, n))
    dice.wipe(min(n, BLOCK))


def _same(x: NDArray[Any], out: NDArray[Any]) -> bool:
    """Whether two arrays are the same memory in the same order."""
    return (x.ctypes.data, x.strides, x.shape, x.dtype) == (
        out.ctypes.data,
        out.strides,
        out.shape,
        out.dtype,
    )


def _nothing(_: int) -> Fraction:
    """The offset of noise alone."""
    return Fraction(0)


def _refuse_unless_ieee() -> None:
    """Refuse to draw where doubles do not round to nearest or lose subnormal numbers."""
    one, tiny = np.float64(1.0), np.float64(2.0**-1074)
    if not (one + 2.0**-53 == 1.0 and one + 3 * 2.0**-54 > 1.0 and -one - 3 * 2.0**-54 < -1.0 and tiny > 0):
        raise ArithmeticError("This process does not compute with IEEE 754 doubles rounded to nearest.")


def noisy_totals(gaussian: RoundedGaussian, totals: Ints, unit: int = 0) -> Floats:
    """totals * 2^unit plus noise, as doubles."""
    finer = _exponent(gaussian) - unit
    if finer <= 0:
        whole, part = _fine(gaussian, totals, finer)
        return np.ldexp(whole.astype(np.float64) + part, unit)
    return np.ldexp(_coarse(gaussian, totals, finer).astype(np.float64), finer + unit)


def noisy_integers(gaussian: RoundedGaussian, totals: Ints) -> Ints:
    """totals plus noise, rounded to whole numbers; int64, saturated."""
    finer = _exponent(gaussian)
    if finer <= 0:
        whole, part = _fine(gaussian, totals, finer)
        return whole + (part >= 0.5)
    rounded = np.ldexp(_coarse(gaussian, totals, finer).astype(np.float64), finer)
    return np.clip(rounded, -(2.0**62), 2.0**62).astype(np.int64)


def noisy_total(gaussian: RoundedGaussian, total: int, unit: int = 0) -> float:
    """total * 2^unit plus noise, as a double; any size of total."""
    steps, exponent = _steps(gaussian, total, unit)
    return ldexp(float(steps), exponent)


def noisy_integer(gaussian: RoundedGaussian, total: int) -> int:
    """total plus noise, rounded to a whole number; any size."""
    steps, exponent = _steps(gaussian, total, 0)
    return steps << exponent if exponent >= 0 else ((steps >> (-exponent - 1)) + 1) >> 1


def _fine(gaussian: RoundedGaussian, totals: Ints, finer: int) -> tuple[Ints, Floats]:
    """Whole part and fraction of totals + steps 2^finer, finer <= 0; both exact."""
    noise = np.ldexp(gaussian.noise(totals.size) / gaussian.grid, finer).reshape(totals.shape)
    below = np.floor(noise)
    return np.clip(totals, -LARGEST, LARGEST) + below.astype(np.int64), noise - below


def _coarse(gaussian: RoundedGaussian, totals: Ints, coarser: int) -> Ints:
    """Grid steps nearest to totals plus noise, where a step is 2^coarser units, coarser > 0."""
    flat = np.clip(totals, -LARGEST, LARGEST).reshape(-1)
    shift = min(coarser, 62)
    whole = (flat + (1 << (shift - 1))) >> shift if coarser < 62 else np.zeros_like(flat)
    rest = flat - (whole << shift) if coarser < 62 else flat
    offset = np.ldexp(rest.astype(np.float64), -coarser)
    steps = gaussian.steps(offset, lambda i: Fraction(int(rest[i]), 2**coarser))
    return (whole + steps.astype(np.int64)).reshape(totals.shape)


def _steps(gaussian: RoundedGaussian, total: int, unit: int) -> tuple[int, int]:
    """Steps and their binary exponent, total * 2^unit plus noise = steps * 2^exponent."""
    exponent = _exponent(gaussian)
    finer = exponent - unit
    most = int(Fraction(gaussian.limit) / Fraction(2) ** unit)
    total = min(max(total, -most), most)
    whole = total << -finer if finer <= 0 else (total + (1 << (finer - 1))) >> finer
    rest = 0 if finer <= 0 else total - (whole << finer)
    offset = Fraction(rest, 2**finer) if rest else Fraction(0)
    return whole + int(gaussian.one_step(float(offset), lambda: offset)), exponent


def _exponent(gaussian: RoundedGaussian) -> int:
    """k of the grid 2^k."""
    return frexp(gaussian.grid)[1] - 1
