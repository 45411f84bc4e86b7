"""What others do about totals to date, by formula: errors of all totals at psi = 1 for a unit in at most k periods.

Each function gives the standard deviation of the total in every period. Trees are computed from their published
definitions; jax-privacy's strategies by its own functions, where it is installed.
"""

from functools import cache
from math import ceil, log, log2

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "b_ary_tree",
    "branching",
    "each_period",
    "each_total",
    "honaker_tree",
    "jax_banded",
    "jax_buffered",
    "jax_errors",
    "jax_squared",
]

Floats = NDArray[np.float64]

FACTORS = {12: 12, 52: 52, 365: 31, 3650: 23}
"""choose_branching_factor of OpenDP 0.16.0, for where it is not installed."""


def each_period(n: int, k: int) -> Floats:
    """Independent noise on each period, added up by the reader."""
    return np.sqrt(k * np.arange(1.0, n + 1))


def each_total(n: int, k: int) -> Floats:
    """Independent noise on each total to date; the worst unit is there in the first k periods."""
    return np.full(n, np.sqrt(np.sum(np.minimum(np.arange(1.0, n + 1), k) ** 2)))


def honaker_tree(n: int, k: int) -> Floats:
    """A binary tree, each node improved by those below it (Honaker 2015); nodes that end after n are never released."""
    heights = int(log2(n)) + 1
    variance = [1.0]
    while len(variance) < heights:
        variance.append(1.0 / (1.0 + 1.0 / (2.0 * variance[-1])))
    digits = (np.arange(1, n + 1)[:, None] >> np.arange(heights)) & 1
    return np.sqrt(digits @ np.array(variance) * _first(k, n, [2**h for h in range(heights)]))


def b_ary_tree(n: int, k: int, b: int) -> Floats:
    """A b-ary tree over all n periods made consistent by least squares (Hay et al. 2010): it reads later periods too.

    Priced at its true L2 sensitivity, sqrt(layers) for k = 1; OpenDP's own map says layers.
    """
    sizes = [b**h for h in range(ceil(log(n, b) - 1e-12) + 1)]
    place = np.arange(n)
    gram = sum((place[:, None] // size == place // size).astype(np.float64) for size in sizes)
    covariance = np.linalg.inv(gram)
    totals = np.cumsum(np.cumsum(covariance, axis=0), axis=1)
    return np.sqrt(np.diag(totals) * _first(k, n, sizes))


def branching(n: int) -> tuple[int, str]:
    """OpenDP's branching factor for so many leaves, and where it comes from."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return FACTORS[n], "OpenDP 0.16.0's factor, stored; not installed here"
    dp.enable_features("contrib")
    return int(dp.t.choose_branching_factor(n)), "OpenDP's factor"


@cache
def jax_banded(n: int) -> Floats:
    """jax-privacy's Toeplitz strategy of n bands, optimised for the mean squared error of a unit in one period."""
    toeplitz = _jax()
    return np.asarray(toeplitz.optimize_banded_toeplitz(n, n))


def jax_buffered(n: int, k: int) -> Floats:
    """jax-privacy's buffered Toeplitz strategy, optimised for the mean squared error of a unit in k periods."""
    _jax()
    from jax_privacy.matrix_factorization import buffered_toeplitz

    found = buffered_toeplitz.optimize(n=n, min_sep=1, max_participations=k, error="mean")
    return np.asarray(found.toeplitz_coefs(n))


def jax_errors(c: Floats, n: int, k: int) -> Floats:
    """Errors of a Toeplitz strategy by jax-privacy's own sensitivity and error."""
    toeplitz = _jax()
    error = np.asarray(toeplitz.per_query_error(strategy_coef=c, n=n))
    return np.sqrt(error * jax_squared(c, n, k, 1))


def jax_squared(c: Floats, n: int, k: int, apart: int) -> float:
    """jax-privacy's squared sensitivity."""
    return float(_jax().minsep_sensitivity_squared(c, min_sep=apart, max_participations=k, n=n))


def _jax():  # type: ignore[no-untyped-def]
    """jax-privacy's Toeplitz matrices, in double precision."""
    import jax
    from jax_privacy.matrix_factorization import toeplitz

    jax.config.update("jax_enable_x64", True)
    return toeplitz


def _first(k: int, n: int, sizes: list[int]) -> float:
    """Squared sensitivity of a tree whose nodes have these sizes, for a unit in the first k leaves."""
    leaves = np.arange(min(k, n))
    return float(sum(np.sum(np.bincount(leaves // size) ** 2) for size in sizes))
