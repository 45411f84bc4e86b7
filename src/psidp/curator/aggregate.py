"""Aggregate: one question about every group, as a value. `ask` has the functions that make them."""

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal

__all__ = ["MOST_ROWS", "Aggregate", "Auto", "Contribution", "Kind", "check_contribution", "is_real"]

Kind = Literal["count", "units", "sum", "mean", "variance", "deviation", "histogram", "quantiles", "ratio", "distinct"]
Contribution = float | Literal["auto"] | None
Auto = Literal["auto"]

MOST_ROWS = 2.0**20
PARTS = {"mean": 2, "variance": 3, "deviation": 3, "ratio": 2}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One question about every group.

    Args:
        kind: what is asked. column: of which column, none for counts. lower, upper: public bounds to which values
        are clipped. edges: public edges of the bins. at: which quantiles. weight: share of psi^2 relative to the
        release's other aggregates. contribution: how much one unit may add, in rows' worth: the bound on its L2 norm
        is contribution times `reach`; "auto" chooses it privately; None takes the release's. bounds: "auto" where
        bounds or edges are to be chosen privately, "chosen" once they are; None where they are given. label: another
        name for quantiles. weights: the column by which a sum is weighted, and the largest weight. terms: the two
        aggregates of a ratio. top: so many groups with the largest values are wanted, all where it is 0.
    """

    kind: Kind
    column: str | None = None
    lower: float = 0.0
    upper: float = 0.0
    edges: tuple[float, ...] = ()
    at: tuple[float, ...] = ()
    weight: float = 1.0
    contribution: Contribution = None
    bounds: Literal["auto", "chosen"] | None = None
    label: str = ""
    weights: tuple[str, float] | None = None
    terms: tuple["Aggregate", ...] = ()
    top: int = 0

    def __post_init__(self) -> None:
        if not (is_real(self.weight) and 0.0 < self.weight < float("inf")):
            raise ValueError(f"weight (share of psi^2, relative) must be in (0, inf), got weight={self.weight!r}.")
        if self.contribution is not None:
            check_contribution(self.contribution)

    @property
    def name(self) -> str:
        """The question in words."""
        if self.top:
            return f"top {self.top} by {replace(self, top=0).name}"
        if self.terms:
            return f"ratio of {self.terms[0].name} to {self.terms[1].name}"
        plain = self.kind if self.column is None else f"{self.label or self.kind} of {self.column}"
        return plain if self.weights is None else f"{plain} weighted by {self.weights[0]}"

    @property
    def reach(self) -> float:
        """Largest norm of one row's vector."""
        if self.kind != "sum":
            return 1.0
        return max(abs(self.lower), abs(self.upper)) * (1.0 if self.weights is None else self.weights[1])

    @property
    def range(self) -> tuple[float, float]:
        """Ends of what one row adds to a sum."""
        if self.weights is None:
            return self.lower, self.upper
        return min(0.0, self.lower) * self.weights[1], max(0.0, self.upper) * self.weights[1]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose numbers are read."""
        own = () if self.column is None or self.kind == "distinct" else (self.column,)
        weights = () if self.weights is None else (self.weights[0],)
        return (*own, *weights, *(name for term in self.terms for name in term.columns))

    @property
    def parts(self) -> int:
        """Coordinates of a row's vector."""
        return PARTS.get(self.kind, 1)

    @property
    def bins(self) -> int:
        """Bins of a histogram, else 1."""
        return max(1, len(self.edges) - 1)

    def to_dict(self) -> dict[str, Any]:
        """The question as plain values, without what does not matter."""
        values: dict[str, Any] = {"kind": self.kind, "weight": float(self.weight), "contribution": self.contribution}
        values |= {"column": self.column} if self.column is not None else {}
        values |= {"edges": list(self.edges)} if self.edges else {}
        values |= {"at": list(self.at)} if self.at else {}
        values |= {"label": self.label} if self.label else {}
        values |= {"weights": list(self.weights)} if self.weights is not None else {}
        values |= {"terms": [term.to_dict() for term in self.terms]} if self.terms else {}
        values |= {"top": self.top} if self.top else {}
        bounded = self.column is not None and self.kind != "distinct" and not self.edges and self.bounds is None
        values |= {"lower": self.lower, "upper": self.upper} if bounded else {}
        values |= {"bounds": self.bounds} if self.bounds is not None else {}
        return values


def check_contribution(value: Any) -> None:
    """Refuse a contribution that is neither "auto" nor a number of rows' worth."""
    if not (value == "auto" if isinstance(value, str) else is_real(value) and 1.0 <= value <= MOST_ROWS):
        raise ValueError(
            f'contribution (rows\' worth one unit may add) must be in [1, 2^20] or "auto", got contribution={value!r}.'
        )


def is_real(value: Any) -> bool:
    """Whether it is a real number, Python's or NumPy's, and no truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)
