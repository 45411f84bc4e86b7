"""The interval: what is known of a number when only its two sides are proved."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from psidp.errors import ContradictionError
from psidp.maths.normal import TINY

__all__ = ["ROUNDING", "Interval", "agreed", "between"]

ROUNDING = 2.0**-50
"""What a handful of operations can lose, relative to the largest term."""


@np.errstate(under="ignore")
def between(log_low: Any, log_high: Any) -> tuple[Any, Any]:
    """e^low rounded down and e^high rounded up: what is too small for a float is 0 below and 5e-324 above."""
    lower = np.maximum(np.exp(log_low) * (1.0 - ROUNDING) - TINY, 0.0)
    return lower, np.where(log_high > -np.inf, np.exp(log_high) * (1.0 + ROUNDING) + TINY, 0.0)


def agreed(question: str, low: Any, high: Any) -> None:
    """Raise unless every proved lower bound is at most the upper bound beside it: proofs that differ hide a defect."""
    fine = np.asarray(low) <= np.asarray(high)
    if not fine.all():
        where = int(np.argmin(fine))
        raise ContradictionError(question, float(np.ravel(low)[where]), float(np.ravel(high)[where]))


@dataclass(frozen=True, slots=True)
class Interval:
    """A number known to lie in [lower, upper]; both sides are proved, and the safe one is `upper`.

    `lower` and `upper` are floats, or arrays of one shape where the question was an array.

    >>> Interval(1.0, 1.5).width
    0.5
    >>> 1.2 in Interval(1.0, 1.5)
    True
    """

    lower: Any
    upper: Any
    method: str = ""

    def __post_init__(self) -> None:
        if not np.all(np.asarray(self.lower) <= np.asarray(self.upper)):
            raise ValueError(f"lower must be <= upper, got lower={self.lower}, upper={self.upper}.")

    def __contains__(self, value: object) -> bool:
        number = np.asarray(value)
        return bool(np.all((self.lower <= number) & (number <= self.upper)))

    def __iter__(self) -> Any:
        """So that `low, high = interval` reads well."""
        return iter((self.lower, self.upper))

    @property
    def width(self) -> Any:
        """upper - lower; 0 where both are infinite."""
        with np.errstate(invalid="ignore"):
            gap = np.asarray(self.upper) - np.asarray(self.lower)
        gap = np.where(np.isnan(gap), 0.0, gap)
        return float(gap) if gap.ndim == 0 else gap
