"""Tail and quantile of the standard normal, each with a bound on its error."""

from typing import cast, overload

import numpy as np

from psidp.maths.elementwise import Array, Entries, Reals, select
from psidp.maths.mills import mills

__all__ = ["SQRT_2PI", "TINY", "UNIT", "log_tail", "quantile", "quantile_error", "tail", "tail_error", "two_sided"]

SQRT_2PI = 2.5066282746310002
UNIT = 2.0**-53
"""Half the spacing of the floats just above one: the largest relative error of one rounding."""
TINY = 5e-324


def tail(x: Entries) -> Array:
    """Phi(-x), the mass above x, to a relative tail_error(x)."""
    magnitude = np.minimum(np.abs(x), 1e3)  # where the mass has long been 0, and squares do not overflow
    small = np.exp(-0.5 * magnitude * magnitude) / SQRT_2PI * mills(magnitude)
    return select(x >= 0.0, small, 1.0 - small)


def tail_error(x: Entries) -> Array:
    """Relative error granted to tail(x), not counting that of x itself; tests/maths/test_normal.py measures less."""
    return UNIT * (10.0 + 2.0 * select(x > 0.0, x * x, 0.0))


@overload
def quantile(p: float) -> float: ...
@overload
def quantile(p: Reals) -> Array: ...
def quantile(p: Reals) -> float | Array:
    """Phi^-1(p), to an absolute quantile_error."""
    from scipy.special import ndtri  # loading it takes longer than most answers do, and many need none

    return cast("Array", ndtri(p))


def two_sided(missed: float) -> float:
    """How many standard deviations to either side miss a normal number with this chance, to a quantile_error.

    Examples:
        >>> round(two_sided(0.05), 4)
        1.96
    """
    return float(-quantile(0.5 * missed))


def quantile_error(z: Reals) -> Array:
    """Absolute error granted to z = quantile(p): four times the 9.5 roundings of max(1, |z|) ever measured."""
    return 38.0 * UNIT * np.maximum(1.0, np.abs(z))


def log_tail(x: float) -> tuple[float, float]:
    """log Phi(-x) for x >= 0, and the hazard rate phi(x)/Phi(-x), minus its derivative."""
    ratio = float(mills(np.float64(x)))
    return -0.5 * x * x - float(np.log(SQRT_2PI / ratio)), 1.0 / ratio
