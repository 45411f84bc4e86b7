"""L2 sensitivity: how far one person can move a query's answer, for the queries people ask.

Adjacency is always said: "add-remove" (one person joins or leaves), "replace-one" (one person's data change, the number
of people stays) or "zero-out" (one person's data are blanked and add nothing, the number of people stays). With
`contributions` = 1 each person has exactly one record; with k > 1, at most k.
Every function rounds up.
"""

from fractions import Fraction
from math import inf
from typing import Literal

from psidp.maths.rounding import integer_root
from psidp.symbols import ADJACENCIES, exact, finite, float_above, whole

__all__ = [
    "Adjacency",
    "check_adjacency",
    "clipped_sum",
    "clipped_vector",
    "count",
    "histogram",
    "mean_of_known_size",
]

Adjacency = Literal["add-remove", "replace-one", "zero-out"]


def check_adjacency(adjacency: str) -> Adjacency:
    """`adjacency` itself; refused where it is not one of the three."""
    if isinstance(adjacency, str) and adjacency in ADJACENCIES:
        return adjacency  # type: ignore[return-value]
    raise ValueError(f'adjacency must be "add-remove", "replace-one" or "zero-out", got adjacency={adjacency!r}.')


def count(adjacency: Adjacency, contributions: int = 1) -> float:
    """Sensitivity of a count of records: k, the number of records a person may have.

    Examples:
        >>> count("add-remove"), count("replace-one", contributions=3)
        (1.0, 3.0)
    """
    check_adjacency(adjacency)
    return _up(Fraction(whole("contributions", contributions)))


def clipped_sum(lower: float, upper: float, adjacency: Adjacency, contributions: int = 1) -> float:
    """Sensitivity of a sum of values clipped to [lower, upper].

    k max(|lower|, |upper|) under add-remove and zero-out. Under replace-one upper - lower for one record each, and for
    at most k records the distance from the smallest to the largest total they can have.

    Examples:
        >>> clipped_sum(-1.0, 5.0, "add-remove"), clipped_sum(-1.0, 5.0, "replace-one")
        (5.0, 6.0)
        >>> clipped_sum(0.0, 5.0, "replace-one", contributions=2)
        10.0
    """
    low, high = _bounds(lower, upper)
    k = whole("contributions", contributions)
    if check_adjacency(adjacency) != "replace-one":
        return _up(k * max(abs(low), abs(high)))
    return _up(high - low if k == 1 else max(k * high, Fraction(0)) - min(k * low, Fraction(0)))


def mean_of_known_size(lower: float, upper: float, size: int, adjacency: Adjacency = "replace-one") -> float:
    """Sensitivity of the mean of `size` values clipped to [lower, upper]: (upper - lower)/size, replace-one only.

    Examples:
        >>> mean_of_known_size(0.0, 100.0, 50)
        2.0
    """
    if check_adjacency(adjacency) != "replace-one":
        raise ValueError(
            'adjacency must be "replace-one" for a mean of known size: adding or removing a person changes the size. '
            "Release a noisy sum and a noisy count instead."
        )
    low, high = _bounds(lower, upper)
    return _up((high - low) / whole("size", size))


def histogram(adjacency: Adjacency, contributions: int = 1, one_per_bin: bool = False) -> float:
    """Sensitivity of a vector of counts over disjoint bins.

    1 under add-remove and zero-out, sqrt 2 under replace-one; k times that for at most k records; sqrt k times that if
    a person counts at most once in a bin.

    Examples:
        >>> histogram("add-remove"), round(histogram("replace-one"), 4)
        (1.0, 1.4142)
        >>> histogram("add-remove", contributions=4), histogram("add-remove", contributions=4, one_per_bin=True)
        (4.0, 2.0)
    """
    k = whole("contributions", contributions)
    square = (k if one_per_bin else k * k) * (2 if check_adjacency(adjacency) == "replace-one" else 1)
    return _up(integer_root(square))


def clipped_vector(norm: float, adjacency: Adjacency, contributions: int = 1, one_entry: bool = False) -> float:
    """Sensitivity of a sum of vectors clipped to an L2 norm (gradients, say): k norm, or 2 k norm for replace-one.

    Where each record adds to one entry alone, and takes nothing away, sqrt 2 stands for 2: it leaves one entry and
    comes into another.

    Examples:
        >>> clipped_vector(1.5, "add-remove"), clipped_vector(1.5, "replace-one")
        (1.5, 3.0)
        >>> round(clipped_vector(1.5, "replace-one", one_entry=True), 4)
        2.1213
    """
    return vector_of(exact_norm(norm) * whole("contributions", contributions), adjacency, one_entry)


def vector_of(radius: Fraction, adjacency: Adjacency, one_entry: bool = False) -> float:
    """Sensitivity of a sum to which a unit adds a vector of norm `radius` at most, an exact number."""
    if check_adjacency(adjacency) != "replace-one":
        return _up(radius)
    return _up(radius * (integer_root(2) if one_entry else 2))


def exact_norm(norm: float) -> Fraction:
    """The clipping bound as it is, if it is one."""
    radius = _exact("norm", norm)
    if not radius >= 0:
        raise ValueError(f"norm (the clipping bound) must be in [0, inf), got norm={norm}.")
    return radius


def _up(value: Fraction) -> float:
    """The smallest float at or above the value, or a refusal."""
    above = float_above(value)
    if not above < inf:
        raise ValueError("the sensitivity is too large for a float: choose smaller bounds.")
    return above


def _bounds(lower: float, upper: float) -> tuple[Fraction, Fraction]:
    low, high = _exact("lower", lower), _exact("upper", upper)
    if not low <= high:
        raise ValueError(f"bounds must have lower <= upper, got lower={lower}, upper={upper}.")
    return low, high


def _exact(name: str, value: float) -> Fraction:
    """The finite number as it is, an integer of any size too."""
    return exact(value, finite(name, value))
