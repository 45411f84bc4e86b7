"""Weights of units in a cube: one whole number for all rows of a unit, so that its image stays within a bound.

Doubles propose a quotient or a root, integers decide: the weight is the same on every engine.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

from psidp.curator.period_cap import UNIT
from psidp.curator.row_sql import ibis_library, real, whole

__all__ = ["FULL", "RowBound", "quotient"]

FULL = 2**20
"""The weight of a unit within the bound."""

MOST_ROWS = 2.0**20


@dataclass(frozen=True, slots=True)
class RowBound:
    """A bound on a unit's rows: w = min(2^20, floor(contribution 2^20 / rows)).

    Guarantees:
        w rows <= contribution 2^20, in integers.
    """

    contribution: float

    def __post_init__(self) -> None:
        check_rows(self.contribution)

    @property
    def most(self) -> int:
        """contribution 2^20, rounded down."""
        return int(Fraction(self.contribution) * FULL)

    def weights(self, rows: Any) -> Any:
        """One row a unit, its weight beside it."""
        units = rows.group_by(UNIT).aggregate(size=rows.count())
        return weighed(units, self.most)


def check_rows(contribution: float) -> None:
    """Refuse a contribution that is no number of rows."""
    if not 1.0 <= contribution <= MOST_ROWS < inf:
        raise ValueError(
            f"contribution (rows' worth one unit may add) must be in [1, 2^20], got contribution={contribution}."
        )


def weighed(units: Any, most: int) -> Any:
    """Units with w = min(2^20, floor(most / size))."""
    tried = units.mutate(tried=quotient(units.size, most))
    fits = tried.tried * tried.size <= whole(most)
    weight = ibis_library().cases(
        (tried.size <= whole(most // FULL), whole(FULL)), (fits, tried.tried), else_=tried.tried - whole(1)
    )
    return tried.select(owner=tried[UNIT], weight=weight.cast("int32"))


def quotient(size: Any, most: int) -> Any:
    """floor(most / size) or one more, for size > most/2^20: in doubles, off by less than 2^-19."""
    small = most // FULL
    divisor = ibis_library().cases((size <= whole(small), real(float(most))), else_=size.cast("float64"))
    return (real(float(most)) / divisor - real(2.0**-10)).floor().cast("int64") + whole(1)
