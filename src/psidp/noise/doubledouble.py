"""Rounding in pairs of doubles, where one cannot decide: error-free sums and products, 64 more random bits each."""

import numpy as np
from numpy.typing import NDArray

from psidp.noise import table

__all__ = ["DOUBT", "rounded"]

DOUBT = 2.0**-50
"""Bound on the error of offset + scale X here, for scale up to 2^44; see claim 4 of docs/design/noise.md."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def rounded(slots: Ints, words: Ints, more: Ints, scale: float, offset: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Nearest integers to offset + scale X, and where they are certain; `more` extends `words` by 64 bits."""
    centre, reach = table.CENTRE[slots], table.REACH[slots]
    # X = centre + reach u and u = (known + theta) 2^-50: all products below are exact but the two in `small`
    known: Floats = (words >> 13).astype(np.float64) * 2.0**-50
    theta = more.view(np.uint64) * 2.0**-64
    middle, middle_rest = _product(np.full_like(centre, scale), centre)
    place, place_rest = _product(reach, known)
    part, part_rest = _product(np.full_like(centre, scale), place)
    small = middle_rest + part_rest + scale * place_rest + scale * reach * 2.0**-50 * theta
    total, total_rest = _sum(middle, part)
    total, offset_rest = _sum(total, offset)
    nearest = np.rint(total)
    away = (total - nearest) + ((total_rest + offset_rest) + small)
    step = np.rint(away)
    return nearest + step, np.abs(away - step) < 0.5 - DOUBT


def _sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """a + b as a double and the exact rest (Knuth)."""
    total = a + b
    from_b = total - a
    return total, (a - (total - from_b)) + (b - from_b)


def _product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """a b as a double and the exact rest (Dekker)."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: Floats) -> tuple[Floats, Floats]:
    """a as two doubles of 26 bits (Veltkamp)."""
    shifted = a * 134217729.0
    high = shifted - (shifted - a)
    return high, a - high
