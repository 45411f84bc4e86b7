"""The table of dyadic rectangles: where the fast path lands, and what is left over for the slow one.

A 64-bit word falls into one of 8192 equally likely slots. Slots 0 to 8181 are rectangles of mass 2^-13
under the normal density, cell by cell, positive (even) and negative (odd); the last ten stand for what the
rectangles leave over. Slots from 8192 on are never hit by a word: they are the cells beyond the rectangles,
out to `LIMIT`. A normal in slot k is CENTRE[k] + REACH[k] u with u uniform in [-1, 1).

The numbers are certified, cell by cell, in tests/noise/test_table.py; tests/reference/rectangles.py builds
them.
"""

from importlib.resources import files
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BEYOND",
    "CENTRE",
    "CHOICE",
    "EDGE",
    "ENVELOPE",
    "FLOOR",
    "HEIGHT",
    "LEFT_OVER",
    "LIMIT",
    "REACH",
    "RECTANGLES",
    "SLOTS",
    "UNIT",
    "WEIGHT",
    "WIDTH",
    "cell_of",
    "slot_of",
]

UNIT = 2**40
"""Cells begin and end on multiples of 1/UNIT."""

SLOTS = 8192
"""Values of the low 13 bits of a word."""

RECTANGLES = 4091
"""Cells per side that carry a rectangle."""

LEFT_OVER = 2 * RECTANGLES
"""First of the slots that stand for what the rectangles leave over; nothing is stored there but NaN."""

ENVELOPE = 7803 * 2**60
"""Proposals per unit of mass, out of 2^63, when what the rectangles leave over is drawn."""

BEYOND = 20
"""Proposals, out of 2^63, for the tail beyond `LIMIT`."""

_rows = np.load(BytesIO(files("psidp.noise").joinpath("rectangles.npy").read_bytes()), allow_pickle=False)

WIDTH: NDArray[np.int64] = _rows["width"].astype(np.int64)
"""Width of each cell, in units of 2^-40."""

EDGE: NDArray[np.int64] = np.cumsum(WIDTH) - WIDTH
"""Left end of each cell, in units of 2^-40."""

LIMIT = int(EDGE[-1] + WIDTH[-1])
"""Right end of the last cell, in units of 2^-40: 9.514 standard deviations."""

WEIGHT: NDArray[np.uint64] = _rows["weight"]
"""Proposals of each cell, out of 2^63."""

CHOICE: NDArray[np.uint64] = np.cumsum(np.append(WEIGHT, np.uint64(BEYOND)))
"""Running total of the proposals; the last entry closes the tail beyond `LIMIT`."""

HEIGHT: NDArray[np.float64] = _rows["height"]
"""Acceptance at the left end of a cell, were there no rectangle."""

FLOOR: NDArray[np.float64] = np.where(
    np.arange(WIDTH.size) < RECTANGLES, float(ENVELOPE) * 2.0**-13 / WEIGHT.astype(np.float64), 0.0
)
"""What the rectangle of a cell takes off its acceptance."""


def slot_of(cell: NDArray[np.int64], negative: NDArray[np.int64]) -> NDArray[np.int64]:
    """The slot of a cell and a sign: 0 for positive, 1 for negative."""
    return 2 * cell + negative + np.where(cell < RECTANGLES, 0, SLOTS - LEFT_OVER)


def cell_of(slot: int) -> int:
    """The cell a slot lies in."""
    return slot // 2 if slot < LEFT_OVER else (slot - SLOTS) // 2 + RECTANGLES


def _by_slot(cell_values: NDArray[np.float64], negated: bool) -> NDArray[np.float64]:
    """One value per slot from one per cell; NaN in the slots that stand for what is left over."""
    by_slot = np.full(SLOTS + 2 * (WIDTH.size - RECTANGLES), np.nan)
    cells = np.arange(WIDTH.size)
    by_slot[slot_of(cells, np.zeros_like(cells))] = cell_values
    by_slot[slot_of(cells, np.ones_like(cells))] = -cell_values if negated else cell_values
    return by_slot


CENTRE = _by_slot((2 * EDGE + WIDTH) / (2.0 * UNIT), negated=True)
"""Middle of each slot; exact, a multiple of 2^-41 below 16."""

REACH = _by_slot(WIDTH / (2.0 * UNIT), negated=False)
"""Half the width of each slot; exact, a multiple of 2^-41 below 1/8."""
