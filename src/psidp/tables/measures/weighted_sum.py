"""Sum of values times weights, each clipped to public bounds."""

from dataclasses import dataclass
from math import inf
from typing import Self

from psidp.tables.estimate import Cells, Estimate, Spread, totals
from psidp.tables.measures.bounded import bounds_in_words, check_bounds
from psidp.tables.measures.measure import OfColumn, Option, is_real, number, register
from psidp.tables.vector import Amount, Vector

__all__ = ["WeightedSum"]

LARGEST = 2.0**400
"""Of weights and of products; their inverse is the smallest."""


@register
@dataclass(frozen=True, slots=True)
class WeightedSum(OfColumn):
    """Sum of values clipped to [lower, upper], each times its weight, a column's value clipped to [0, most]."""

    lower: float
    upper: float
    weights: str
    most: float

    kind = "weighted_sum"
    shows_noise = False

    def __post_init__(self) -> None:
        OfColumn.__post_init__(self)
        if not isinstance(self.weights, str):
            raise TypeError(f"weights must be the name of a column, got {type(self.weights).__name__}.")
        lower, upper = check_bounds(self.column, self.lower, self.upper, None)
        most = self.most
        reach = max(abs(lower), abs(upper)) * most if is_real(most) else LARGEST
        if not (is_real(most) and 1.0 / LARGEST <= most <= LARGEST and reach <= LARGEST):
            raise ValueError(
                f"most (largest weight) must be in [2^-400, 2^400], as must the bounds, got most={most!r}."
            )
        for name, value in (("lower", lower), ("upper", upper), ("most", float(most))):
            object.__setattr__(self, name, value)

    @property
    def name(self) -> str:
        return f"sum of {self.column} weighted by {self.weights}"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column, self.weights)

    @property
    def uses(self) -> tuple[str, ...]:
        return self.columns

    @property
    def vector(self) -> Vector:
        return Vector((Amount(self.column, self.lower, self.upper, (self.weights, self.most)),))

    @property
    def spread(self) -> Spread:
        low, high = -inf if self.lower < 0.0 else 0.0, inf if self.upper > 0.0 else 0.0
        return Spread(ratio=False, low=low, high=high, reach=self.vector.reach)

    def estimates(self, cells: Cells) -> list[list[Estimate]]:
        return [[e] for e in totals(self.name, *cells.coordinate(0), cells.z, flags=False)]

    def details(self) -> list[str]:
        return [f"lower {self.lower:g}", f"upper {self.upper:g}", f"weights of at most {self.most:g}"]

    def clipped_words(self) -> str:
        values, weights = bounds_in_words(self.lower, self.upper), bounds_in_words(0.0, self.most)
        return f"{self.column!r} {values}; {self.weights!r} {weights}"

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        return (Option("weighted-sum", "column:lower:upper:weights:most, weights being a column", cls.parse),)

    @classmethod
    def parse(cls, text: str) -> Self:
        """column:lower:upper:weights:most."""
        parts = text.rsplit(":", 4)
        if len(parts) != 5:
            raise ValueError(
                f"a weighted sum must be column:lower:upper:weights:most, such as cost:0:5000:w:10, got {text!r}."
            )
        column, lower, upper, weights, most = parts
        return cls(column, number(lower, text), number(upper, text), weights, number(most, text))
