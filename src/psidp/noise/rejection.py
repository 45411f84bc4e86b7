"""What the rectangles leave over: wedges, tail and far tail, drawn by rejection with exact acceptance.

A proposal takes three words: which cell (63 bits) and which sign, where in the cell, and a uniform V. It is
accepted if V < ENVELOPE (width phi(x) - mass of the rectangle) / weight. In doubles that is V < HEIGHT
exp(-t) - FLOOR with t = (x^2 - edge^2)/2, summed by Taylor's series with IEEE + and * only; within BAND *
HEIGHT of equality the decision is taken in integers, with as many more bits of x and of V as it needs.
"""

from fractions import Fraction
from math import factorial

import numpy as np
from numpy.typing import NDArray

from psidp.noise import table
from psidp.noise.density import density_bounds
from psidp.noise.normal import LazyNormal, next_word
from psidp.noise.stream import Words

__all__ = ["BAND", "RARE", "acceptance", "accepts", "beyond", "drawn"]

BAND = 2.0**-44
"""Relative half-width of the band in which doubles do not decide; see claim 5 of docs/design/noise.md."""

RARE = table.LEFT_OVER
"""The slot of a normal that only a LazyNormal holds; its word is the place in the list beside it."""

_CELLS = table.WIDTH.size
_EDGE = table.EDGE / table.UNIT
_WIDTH = table.WIDTH / table.UNIT
_SERIES = [1.0 / factorial(k) * (-1) ** k for k in range(16)]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def drawn(words: Words, proposals: int) -> tuple[Ints, Ints, list[LazyNormal]]:
    """The accepted of so many proposals, in their order: slots, words, and the rare ones as lazy normals."""
    choice, place, level = _three(words, proposals)
    cell = np.searchsorted(table.CHOICE, choice.view(np.uint64) >> np.uint64(1), side="right")
    negative = choice & 1
    inside = cell < _CELLS
    cells = np.where(inside, cell, 0)
    slots = table.slot_of(cells, negative)
    reached = acceptance(cells, negative, place)
    gap = level.view(np.uint64) * 2.0**-64 - reached
    band = BAND * table.HEIGHT[cells]
    taken = inside & (gap < -band)
    rare: list[LazyNormal] = []
    place = place.copy()
    for at in np.flatnonzero((inside & (np.abs(gap) <= band)) | (cell == _CELLS)).tolist():
        if inside[at]:
            normal, q, width, mass = _in_cell(int(cells[at]), int(slots[at]), int(place[at]))
        else:
            normal, q, width, mass = beyond(words, int(negative[at]), int(place[at]))
        taken[at] = accepts(normal, q, width, mass, int(level.view(np.uint64)[at]), words)
        if taken[at]:
            slots[at], place[at] = RARE, len(rare)
            rare.append(normal)
    return slots[taken], place[taken], rare


def acceptance(cells: Ints, negative: Ints, place: Ints) -> Floats:
    """Chance of acceptance in doubles, right to within BAND * HEIGHT."""
    u = place * 2.0**-63
    step = _WIDTH[cells] * ((1.0 + np.where(negative == 1, -u, u)) * 0.5)
    t = step * (_EDGE[cells] + 0.5 * step)
    exponential = np.full_like(t, _SERIES[-1])
    for coefficient in reversed(_SERIES[:-1]):
        exponential = exponential * t + coefficient
    return np.asarray(table.HEIGHT[cells] * exponential - table.FLOOR[cells])


def accepts(normal: LazyNormal, weight: int, width: Fraction, mass: Fraction, level: int, words: Words) -> bool:
    """Whether V weight < ENVELOPE (width phi(x) - mass), exactly; V and x are extended as far as it takes."""
    bits, precision = 64, 96
    while True:
        low, high, shift = normal.bounds()
        low, high = (low, high) if low >= 0 else (-high, -low)
        least, most = density_bounds(low, high, shift, precision)
        if Fraction(level + 1, 1 << bits) * weight <= table.ENVELOPE * (width * least / 2**precision - mass):
            return True
        if Fraction(level, 1 << bits) * weight >= table.ENVELOPE * (width * most / 2**precision - mass):
            return False
        normal.extend(next_word(words))
        level, bits, precision = (level << 64) | next_word(words), bits + 64, precision + 64


def beyond(words: Words, negative: int, place: int) -> tuple[LazyNormal, int, Fraction, Fraction]:
    """A proposal beyond the last cell: cell k of width 1/8 with chance 2^-(k+1), for every k there is."""
    k = 0
    while not (coins := next_word(words)):
        k += 64
    k += (coins & -coins).bit_length() - 1
    centre = 2 * table.LIMIT + (2 * k + 1) * 2**37
    normal = LazyNormal(-centre if negative else centre, 2**37, place)
    return normal, table.BEYOND, Fraction(2**k, 4), Fraction(0)


def _in_cell(cell: int, slot: int, place: int) -> tuple[LazyNormal, int, Fraction, Fraction]:
    """A proposal inside a cell, with the numbers that decide on it."""
    mass = Fraction(1, 2**13) if cell < table.RECTANGLES else Fraction(0)
    width = Fraction(int(table.WIDTH[cell]), table.UNIT)
    return LazyNormal.in_slot(slot, place), int(table.WEIGHT[cell]), width, mass


def _three(words: Words, n: int) -> tuple[Ints, Ints, Ints]:
    """Three words for each of n proposals."""
    triple = np.empty((3, n), np.int64)
    words.fill(triple.reshape(-1))
    return triple[0], triple[1], triple[2]
