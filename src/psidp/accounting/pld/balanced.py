"""Balanced outcomes: a law moved to a grid from below, without moving its mean.

Outcomes between two points of the grid are shared out between them. Whatever the shares, that is a random map followed
by merging, so the new pair tells no more than the old one. The shares are such that what a point takes from above and
from below balance: its mean of e^-loss is that of the point itself, and nothing is lost by moving it there.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from psidp.accounting.composition import Array
from psidp.accounting.contours.error_bounds import NotCertified
from psidp.accounting.contours.mgf_table import ULP
from psidp.accounting.pld.step_law import Masses, lowest

__all__ = ["balanced"]

TURNS = 4
"""How often the grid is moved so that its heaviest point nearly balances too."""
NUDGE, UNDER = 1e-9, 4e-9
"""Outcomes so little under a point count as at it; and the grid lies so much lower than where it balances, so that
neither they nor rounding cost a whole step. Both are shares of a step."""
SAFE = 1e-12
GOOD = 1e-7
"""What may be lost by moving outcomes down to the grid, in steps, before another place of it is tried."""
FEW, MOST = 1 << 12, 1 << 26
PLACES = np.arange(1, 16) / 16.0
"""Other places of the grid, in steps, that are tried for up to so many outcomes."""


def balanced(mass: Array, losses: Array, eta: float, off: float) -> Masses:
    """Outcomes, in the order of their losses, on a grid with a point near the heaviest of them.

    Places of the grid are tried until next to nothing is lost: at that outcome, beside it, and, where outcomes are few,
    hardly more than one in each cell, all over the step. The best of them is taken.
    """
    some = mass > 0.0
    mass, losses = mass[some], losses[some]
    heaviest = int(np.argmax(mass))
    at, beside = float(losses[heaviest]), float(losses[min(heaviest + 1, losses.size - 1)])
    best, least = None, np.inf
    for base in _places(mass, losses, eta, (at, 0.5 * (at + beside))):
        moved, cost = _moved(base, eta, off)
        if best is None or cost < least:
            best, least = moved, cost
        if least <= GOOD * eta * float(mass.sum()):
            break
    assert best is not None
    return best


def _places(mass: Array, losses: Array, eta: float, starts: tuple[float, ...]) -> Iterator["_Cells"]:
    """Grids whose heaviest point comes closer and closer to a balance; then others, for few outcomes."""
    for start in starts:
        cells, far, left = _Cells(mass, losses, eta, start), start, 0.0
        for _ in range(TURNS):
            yield cells
            ahead = cells.base + cells.left
            if left * cells.left < 0.0:  # there and back again: in between
                ahead = cells.base + (far - cells.base) * cells.left / (cells.left - left)
            far, left = cells.base, cells.left
            cells = _Cells(mass, losses, eta, ahead)
        yield cells
    for way in PLACES if losses.size <= FEW else ():
        yield _Cells(mass, losses, eta, starts[0] + way * eta)


def _moved(cells: "_Cells", eta: float, off: float) -> tuple[Masses, float]:
    """Outcomes shared out between the points of a grid and moved down to them, and by how much all together."""
    mass, lower, place = cells.mass, cells.settled(), cells.place
    above, below = mass * lower, mass * (1.0 - lower)
    index = np.concatenate((place, place + 1)) - cells.first
    weight = np.bincount(index, np.concatenate((above, below)))
    gain = np.bincount(index, np.concatenate((-above * cells.excess, below * cells.deficit)))
    at = np.flatnonzero(weight > 0.0)
    summed = np.bincount(index)[at] + 16.0
    wrong = 32.0 * ULP * (np.abs(at + cells.first) * eta + abs(cells.base)) + 4.0 * ULP * summed * np.expm1(eta)
    apart = -np.log1p(gain[at] / weight[at]) - wrong
    under = lowest(apart, weight[at], eta)
    steps = np.floor((apart - under) / eta + UNDER)
    _refuse_unless_few(steps)
    index = at + cells.first + steps.astype(np.int64)
    low = int(index.min())
    total = np.bincount(index - low, weight[at]) * (1.0 - SAFE)
    cost = float(weight[at] @ (apart - under - steps * eta))
    return Masses(low, total, cells.base + under - UNDER * eta, off), cost


def _refuse_unless_few(places: Array) -> None:
    """No grid where it would have more points than memory."""
    if places.size and not float(np.ptp(places)) <= MOST:
        raise NotCertified("a grid for these losses has too many points")


class _Cells:
    """Outcomes by the cell of the grid they are in, and the share of each cell that goes to the point below it."""

    def __init__(self, mass: Array, losses: Array, eta: float, base: float) -> None:
        self.mass, self.base = mass, base
        place = np.floor((losses - base) / eta + NUDGE)
        _refuse_unless_few(place)
        self.place = place.astype(np.int64)
        way = losses - base - self.place * eta
        self.excess, self.deficit = -np.expm1(-way), np.expm1(eta - way)
        self.first = int(self.place.min())
        cell = self.place - self.first
        self.share, self.up, self.down = _shares(
            np.bincount(cell, mass * self.excess).tolist(), np.bincount(cell, mass * self.deficit).tolist(), -self.first
        )
        self.lower = self.share[cell]

    @cached_property
    def left(self) -> float:
        """How far the mean at the base is from it."""
        here, under = self.place == 0, self.place == -1
        total = float((self.mass * self.lower)[here].sum() + (self.mass * (1.0 - self.lower))[under].sum())
        gain = self.down - float((self.mass * self.lower * self.excess)[here].sum())
        return -float(np.log1p(gain / max(total, 1e-300)))

    def settled(self) -> Array:
        """The shares, with those of the cell above the base changed so that the base balances too.

        The point above it is given as much as before, but by other outcomes: the highest of the cell, or the lowest.
        """
        here = np.flatnonzero(self.place == 0)
        mass, excess, deficit = self.mass[here], self.excess[here], self.deficit[here]
        even = self.lower[here]
        has = float((mass * even * excess).sum())
        order = np.arange(here.size)[:: -1 if has > self.down else 1]
        given = np.cumsum((mass * deficit)[order])
        still = self.up - np.append(0.0, given[:-1])
        part = np.clip(still / np.maximum(np.diff(given, prepend=0.0), 1e-300), 0.0, 1.0)
        other = np.empty(here.size)
        other[order] = 1.0 - part
        change = float((mass * (other - even) * excess).sum())
        theta = min(max((self.down - has) / change, 0.0), 1.0) if change else 0.0
        lower = self.lower.copy()
        lower[here] = even + theta * (other - even)
        return np.clip(lower, 0.0, 1.0)


def _shares(excess: list[float], deficit: list[float], middle: int) -> tuple[Array, float, float]:
    """Shares of the cells that go down; what the point above the middle takes from it, and what comes from under it."""
    share = [0.0] * len(excess)
    up = down = taken = 0.0
    for k in range(len(excess) - 1, middle - 1, -1):  # what comes from above decides what goes up
        most = deficit[k]
        share[k] = 1.0 if not most > 0.0 else (1.0 - taken / most if taken < most else 0.0)
        up = taken if taken < most else most
        taken = share[k] * excess[k]
    for k in range(min(middle, len(excess))):  # what comes from below decides what goes down
        most = excess[k]
        share[k] = 0.0 if not most > 0.0 else (down / most if down < most else 1.0)
        down = (1.0 - share[k]) * deficit[k]
    return np.array(share), up, down
