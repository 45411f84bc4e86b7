"""The rounding round(offset + scale N) of a true real normal N: doubles first, then pairs, then integers."""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from psidp.noise import doubledouble, table
from psidp.noise.normal_source import SMALL, NormalSource
from psidp.noise.stream import BLOCK

__all__ = ["Exact", "Rounding", "error_bound", "rounding"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Exact = Callable[[int], Fraction]
"""The offset at an index as the fraction it stands for."""

WIDEST = float(np.nanmax(table.REACH))
NEAR = float(table.EDGE[table.RECTANGLES]) / table.UNIT
FARTHEST = table.LIMIT / table.UNIT


def error_bound(scale: float, farthest: float) -> float:
    """Bound on the error of offset + scale X in doubles for |X| <= farthest, the bits not yet drawn included.

    The sum of all roundings, claim 3 of docs/design/noise.md, with a sixteenth on top for their products.
    """
    return scale * 2.0**-53 * 1.0625 * (13 * WIDEST + 3 * farthest) + 2.0**-52


class Rounding:
    """round(offset + scale N) for one scale in [1, 2^44].

    Guarantees:
        Every result is the true rounding for a real normal N of which the word drawn fixes the first bits;
        the deterministic proof by cases is tests/noise/test_exactness.py.
    """

    __slots__ = ("_centre", "_reach", "_sure", "_sure_near", "scale")

    def __init__(self, scale: float) -> None:
        self.scale = scale
        self._sure = 0.5 - error_bound(scale, FARTHEST)
        self._sure_near = 0.5 - error_bound(scale, NEAR)
        self._centre = table.CENTRE * scale
        self._reach = table.REACH * scale * 2.0**-63

    def many(self, dice: NormalSource, n: int, whole: int, offset: Floats | None, exact: Exact) -> Floats:
        """n <= BLOCK results for a vector of `whole` entries in all; a view that the next call overwrites."""
        pooled = whole <= SMALL
        slot, word = dice.ready(n) if pooled else dice.fresh(n)
        near, away, flag = dice.near[:n], dice.away[:n], dice.flag[:n]
        np.take(self._reach, slot, out=away, mode="clip")
        np.multiply(away, word, out=away)
        np.take(self._centre, slot, out=near, mode="clip")
        np.add(away, near, out=away)
        if offset is not None:
            np.add(away, offset, out=away)
        np.rint(away, out=near)
        np.subtract(away, near, out=away)
        np.abs(away, out=away)
        np.less(away, self._sure if pooled else self._sure_near, out=flag)
        np.logical_not(flag, out=flag)  # true also where NaN marks what the rectangles leave over
        doubtful = np.flatnonzero(flag)
        if not pooled:
            dice.replace(slot, word, doubtful[slot[doubtful] >= table.LEFT_OVER])
        if doubtful.size:
            self._settle(dice, doubtful, slot, word, offset, exact, near)
        return near

    def one(self, dice: NormalSource, offset: float, exact: Callable[[], Fraction]) -> float:
        """One result."""
        value, place = dice.one()
        total = value * self.scale + offset
        near = float(round(total)) if total == total else total
        if abs(total - near) < self._sure:
            return near
        return float(dice.lazy(*dice.single(place)).rounded(Fraction(self.scale), exact(), dice.words))

    def _settle(
        self, dice: NormalSource, at: Ints, slot: Ints, word: Ints, offset: Floats | None, exact: Exact, near: Floats
    ) -> None:
        """Decide where one double did not, or where the draw has just been replaced."""
        shift = np.zeros(at.size) if offset is None else offset[at]
        total = self._centre[slot[at]] + self._reach[slot[at]] * word[at] + shift
        near[at] = np.rint(total)
        still = ~(np.abs(total - near[at]) < self._sure)
        if still.any():
            self._decide(dice, at[still], slot, word, shift[still], exact, near)

    def _decide(
        self, dice: NormalSource, at: Ints, slot: Ints, word: Ints, shift: Floats, exact: Exact, near: Floats
    ) -> None:
        """Decide with a word more in pairs of doubles, and what is left in integers."""
        more = np.empty(at.size, np.int64)
        dice.words.fill(more)
        near[at], certain = doubledouble.rounded(slot[at], word[at], more, self.scale, shift)
        for i in np.flatnonzero(~certain).tolist():
            where = int(at[i])
            normal = dice.lazy(int(slot[where]), int(word[where]))
            normal.extend(int(more[i]))
            near[where] = normal.rounded(Fraction(self.scale), exact(where), dice.words)


@lru_cache(maxsize=64)
def rounding(scale: float) -> Rounding:
    """The Rounding of this scale, its table made once."""
    return Rounding(scale)


assert BLOCK >= SMALL
