"""Ratios of whole numbers plus exact noise: c 2^shift / multiple + sigma N, rounded once to a grid.

A ratio is split into whole steps of the grid and a rest. The rest is exact in integers, and its quotient enters the
rounding as a double that is off by 2^-53 at most, or as a fraction where doubles cannot decide.
"""

from fractions import Fraction
from math import frexp, ldexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psidp.noise.gaussian import DEFAULT, FINEST, RoundedGaussian

__all__ = ["noisy_ratios", "ratio_gaussian"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FAR = 2**60
"""Ratios beyond so many steps of the grid count as that."""

ROOM = 31
"""multiple 2^ROOM is below 2^63."""


def ratio_gaussian(sigma: float, shift: Ints) -> RoundedGaussian:
    """The noise for ratios with these shifts: the grid is fine enough for their denominators to fit into 63 bits."""
    exponent = frexp(sigma)[1] - 1
    grid = min(exponent - DEFAULT, int(np.min(shift, initial=ROOM)) + ROOM)
    if not sigma <= ldexp(1.0, grid + FINEST):
        raise ValueError(
            f"sigma (standard deviation of the noise) must be at most 2^{grid + FINEST} for coefficients of "
            f"this size, got sigma={sigma}. Take columns with fewer values, or with numbers that halve evenly."
        )
    return RoundedGaussian(sigma, ldexp(1.0, grid))


def noisy_ratios(gaussian: RoundedGaussian, numbers: NDArray[Any], multiple: Ints, shift: Ints) -> Floats:
    """numbers 2^shift / multiple plus noise, rounded to the grid, entry by entry; multiples are positive, below 2^32.

    Guarantees:
        Each result is a function of the real number c 2^shift / multiple + sigma N alone (docs/design/noise.md, claim
        13). Ratios beyond 2^60 steps of the grid count as that.
    """
    flat = numbers.reshape(-1)
    powers = shift.reshape(-1) - (frexp(gaussian.grid)[1] - 1)
    multiples = multiple.reshape(-1)
    split = _split_large if flat.dtype == object else _split
    whole, rest, below = split(flat, multiples, powers)
    steps = gaussian.steps(rest / below, lambda i: Fraction(int(rest[i]), int(below[i])))
    found = (whole + steps.astype(np.int64)).astype(np.float64) * gaussian.grid
    return np.asarray(found.reshape(numbers.shape))


def _split(numbers: Ints, multiple: Ints, power: Ints) -> tuple[Ints, Ints, Ints]:
    """Whole steps, rest and denominator of numbers 2^power / multiple; |rest| is at most half of the denominator.

    Doubles propose the whole steps. The rest is then exact although its terms wrap around 2^64, since it is small.
    """
    up, down = np.maximum(power, 0), np.maximum(-power, 0)
    below = multiple << down
    with np.errstate(over="ignore"):  # what is far beyond doubles is beyond FAR
        size = np.ldexp(numbers.astype(np.float64), power) / multiple
    known = np.abs(size) < 2.0 * FAR  # beyond, it is clamped below
    whole = np.rint(np.where(known, size, 0.0)).astype(np.int64)
    raised = np.where(up < 64, numbers << np.minimum(up, 63), 0)
    rest = np.where(known, raised - whole * below, 0)
    more = np.rint(rest / below).astype(np.int64)
    whole, rest = whole + more, rest - more * below
    whole = np.where(known, whole, np.where(size > 0.0, 2 * FAR, -2 * FAR))
    return *_clamped(whole, rest), below


def _clamped(whole: Ints, rest: Ints) -> tuple[Ints, Ints]:
    """The same number if it lies within +-FAR, else that: no two numbers get further apart."""
    over, under = (whole > FAR) | ((whole == FAR) & (rest > 0)), (whole < -FAR) | ((whole == -FAR) & (rest < 0))
    return np.clip(whole, -FAR, FAR), np.where(over | under, 0, rest)


def _split_large(numbers: NDArray[Any], multiple: Ints, power: Ints) -> tuple[Ints, Ints, Ints]:
    """The same for Python's own integers, of any size."""
    below = multiple << np.maximum(-power, 0)
    whole, rest = np.zeros(numbers.size, np.int64), np.zeros(numbers.size, np.int64)
    for i, number in enumerate(numbers):
        under = int(below[i])
        raised = int(number) << max(int(power[i]), 0)
        steps = (2 * raised + under) // (2 * under)
        known = abs(steps) < 2 * FAR
        whole[i] = steps if known else (2 * FAR if steps > 0 else -2 * FAR)
        rest[i] = raised - steps * under if known else 0
    return *_clamped(whole, rest), below
