"""Builds src/psidp/noise/rectangles.npy: run `python tests/reference/rectangles.py` (needs python-flint).

On x > 0 the first 4091 cells carry rectangles of mass exactly 2^-13 under the normal density phi, each cell
as narrow as a boundary on multiples of 2^-40 allows; 192 cells of width 1/32 follow. For each cell the file
holds

    width    in units of 2^-40
    weight   smallest integer at least ENVELOPE * (width * phi(left end) - mass of the rectangle):
             how often the cell is proposed when what the rectangles leave over is drawn
    height   ENVELOPE * width * phi(left end) / weight, to the nearest double
"""

from math import ceil, exp, pi, sqrt
from pathlib import Path

import numpy as np
from flint import arb, ctx

TARGET = Path(__file__).parents[2] / "src" / "psidp" / "noise" / "rectangles.npy"
UNIT = 2**40
MASS = arb(2) ** -13
TAIL_CELLS = 192
TAIL_WIDTH = UNIT // 32


def phi(x):
    """The normal density as a ball."""
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def fits(edge, width):
    """Whether a rectangle of mass 2^-13 on this cell certainly stays under the density."""
    return arb(width) / UNIT * phi(arb(edge + width) / UNIT) >= MASS


def narrowest(edge):
    """Width of the narrowest cell at `edge` that holds its rectangle, or None where none does."""
    x = edge / UNIT
    widest = (sqrt(x * x + 4) - x) / 2
    if not fits(edge, ceil(widest * UNIT)):
        return None
    width = 2.0**-13 * sqrt(2 * pi) * exp(x * x / 2)
    for _ in range(60):
        density = exp(-((x + width) ** 2) / 2) / sqrt(2 * pi)
        width -= (width * density - 2.0**-13) / (density * (1 - width * (x + width)))
    steps = ceil(width * UNIT)
    while fits(edge, steps - 1):
        steps -= 1
    while not fits(edge, steps):
        steps += 1
    return steps


def upward(ball):
    """Smallest integer at least as large as the number the ball holds."""
    whole = ball.ceil().unique_fmpz()
    assert whole is not None
    return int(whole)


def build():
    """The table and the constant ENVELOPE."""
    ctx.prec = 256
    widths, edge = [], 0
    while (width := narrowest(edge)) is not None:
        widths.append(width)
        edge += width
    rectangles = len(widths)
    widths += [TAIL_WIDTH] * TAIL_CELLS
    edges = np.concatenate([[0], np.cumsum(widths)]).tolist()
    tops = [arb(w) / UNIT * phi(arb(a) / UNIT) for w, a in zip(widths, edges, strict=False)]
    excess = [top - MASS if i < rectangles else top for i, top in enumerate(tops)]
    beyond = phi(arb(edges[-1]) / UNIT) / 4
    envelope = (int((arb(2) ** 63 / (sum(excess) + beyond)).floor().unique_fmpz()) // 2**60 - 1) * 2**60
    weights = [upward(envelope * e) for e in excess]
    assert sum(weights) + upward(envelope * beyond) <= 2**63
    table = np.zeros(len(widths), [("width", "<u8"), ("weight", "<u8"), ("height", "<f8")])
    table["width"], table["weight"] = widths, weights
    table["height"] = [float((envelope * t / q).mid()) for t, q in zip(tops, weights, strict=True)]
    return table, envelope, rectangles, upward(envelope * beyond)


if __name__ == "__main__":
    table, envelope, rectangles, beyond = build()
    np.save(TARGET, table)
    print(f"{rectangles} rectangles, ENVELOPE = {envelope // 2**60} * 2**60, BEYOND = {beyond}")
