"""Aggregate: one question about every group, as a value, and the functions that make the plain ones.

An aggregate turns a row into a short vector of L2 norm at most `reach`; a unit of privacy adds up the vectors of its
rows, group by group, and the whole is clipped to `contribution` times `reach`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from numbers import Real
from typing import Any, Literal

__all__ = [
    "MOST_ROWS", "PERCENT", "Aggregate", "Auto", "Contribution", "Kind", "bounded", "check_contribution", "check_edges",
    "count", "deviation", "histogram", "is_real", "mean", "named", "quantiles", "sum", "units", "variance",
]  # fmt: skip

Kind = Literal["count", "units", "sum", "mean", "variance", "deviation", "histogram", "quantiles", "ratio", "distinct"]
Contribution = float | Literal["auto"] | None
Auto = Literal["auto"]

LARGEST = 2.0**1023
MOST_ROWS = 2.0**20
MOST_EDGES = 10_000
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


def count(*, weight: float = 1.0, contribution: Contribution = None) -> Aggregate:
    """How many rows.

    Examples:
        >>> count().name
        'count'
    """
    return Aggregate("count", weight=weight, contribution=contribution)


def units(*, weight: float = 1.0, contribution: Contribution = None) -> Aggregate:
    """How many different units of privacy: patients, say."""
    return Aggregate("units", weight=weight, contribution=contribution)


def sum(
    column: str,
    lower: float | None = None,
    upper: float | None = None,
    *,
    bounds: Auto | None = None,
    weight: float = 1.0,
    contribution: Contribution = None,
) -> Aggregate:
    """Sum of a column's values, clipped to [lower, upper]; missing values and NaN add nothing.

    Where nobody knows the bounds, bounds="auto" chooses them privately, with 15 % of the aggregate's psi^2.

    Examples:
        >>> sum("cost", 0, 5000).reach
        5000.0
        >>> sum("cost", bounds="auto").bounds
        'auto'
        >>> sum("cost", 5000, 0)
        Traceback (most recent call last):
        ...
        ValueError: bounds of 'cost' must be finite numbers with lower < upper, got lower=5000, upper=0.
    """
    return bounded("sum", column, lower, upper, bounds, weight, contribution)


def mean(
    column: str,
    lower: float | None = None,
    upper: float | None = None,
    *,
    bounds: Auto | None = None,
    weight: float = 1.0,
    contribution: Contribution = None,
) -> Aggregate:
    """Mean of a column's values, clipped to [lower, upper]; rows whose value is missing or NaN do not count."""
    return bounded("mean", column, lower, upper, bounds, weight, contribution)


def variance(
    column: str,
    lower: float | None = None,
    upper: float | None = None,
    *,
    bounds: Auto | None = None,
    weight: float = 1.0,
    contribution: Contribution = None,
) -> Aggregate:
    """Variance of a column's values, clipped to [lower, upper], over the number of rows."""
    return bounded("variance", column, lower, upper, bounds, weight, contribution)


def deviation(
    column: str,
    lower: float | None = None,
    upper: float | None = None,
    *,
    bounds: Auto | None = None,
    weight: float = 1.0,
    contribution: Contribution = None,
) -> Aggregate:
    """Standard deviation of a column's values: the square root of `variance`."""
    return bounded("deviation", column, lower, upper, bounds, weight, contribution)


def histogram(
    column: str, edges: Iterable[float] | Auto, *, weight: float = 1.0, contribution: Contribution = None
) -> Aggregate:
    """How many values lie between public edges, [e0, e1), [e1, e2), ..., the last bin closed.

    Values outside are clipped, and so count in the first and the last bin; missing values and NaN in none. "auto"
    chooses 10 to 25 bins of equal width privately, with 15 % of the aggregate's psi^2.
    """
    return _binned("histogram", column, edges, (), weight, contribution)


PERCENT = "Write 0.9 for the 90th percentile."
"""What helps where a quantile is none."""


def quantiles(
    column: str,
    edges: Iterable[float] | Auto,
    at: float | Iterable[float] = (0.25, 0.5, 0.75),
    *,
    weight: float = 1.0,
    contribution: Contribution = None,
) -> Aggregate:
    """Quantiles read from a noisy cumulative histogram on public edges, straight lines between them.

    "auto" chooses the edges privately, close where many values are, with 15 % of the aggregate's psi^2.
    """
    given = list(at) if isinstance(at, Iterable) else [at]
    if not (given and all(is_real(q) and 0.0 < q < 1.0 for q in given)):
        raise ValueError(f"at (which quantiles) must be numbers in (0, 1), got at={given}. {PERCENT}")
    wanted = tuple(float(q) for q in given)
    return _binned("quantiles", column, edges, wanted, weight, contribution)


def check_contribution(value: Any) -> None:
    """Refuse a contribution that is neither "auto" nor a number of rows' worth."""
    if not (value == "auto" if isinstance(value, str) else is_real(value) and 1.0 <= value <= MOST_ROWS):
        raise ValueError(
            f'contribution (rows\' worth one unit may add) must be in [1, 2^20] or "auto", got contribution={value!r}.'
        )


def is_real(value: Any) -> bool:
    """Whether it is a real number, Python's or NumPy's, and no truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)


def bounded(
    kind: Kind,
    column: str,
    lower: float | None,
    upper: float | None,
    bounds: Auto | None,
    weight: float,
    contribution: Contribution,
) -> Aggregate:
    """An aggregate of clipped values; bounds that are to be chosen stand as -1 and 1."""
    if bounds is not None:
        _check_auto(column, bounds, given=lower is not None or upper is not None)
        return Aggregate(kind, named(column), -1.0, 1.0, weight=weight, contribution=contribution, bounds="auto")
    if lower is None or upper is None:
        raise ValueError(f'bounds of {column!r} must be given as lower and upper, or be chosen: bounds="auto".')
    if not (is_real(lower) and is_real(upper) and -inf < lower < upper < inf):
        raise ValueError(
            f"bounds of {column!r} must be finite numbers with lower < upper, got lower={lower!r}, upper={upper!r}."
        )
    if not (max(abs(lower), abs(upper)) <= 2.0**850 and float(upper) - float(lower) >= 2.0**-850):
        raise ValueError(f"bounds of {column!r} must lie in 2^-850 to 2^850, got lower={lower}, upper={upper}.")
    return Aggregate(kind, named(column), float(lower), float(upper), weight=weight, contribution=contribution)


def _binned(
    kind: Kind,
    column: str,
    edges: Iterable[float] | Auto,
    at: tuple[float, ...],
    weight: float,
    contribution: Contribution,
) -> Aggregate:
    """An aggregate of bins; edges that are to be chosen are none."""
    auto = isinstance(edges, str) and edges == "auto"
    return Aggregate(
        kind, named(column), edges=() if auto else check_edges(column, edges), at=at, weight=weight,
        contribution=contribution, bounds="auto" if auto else None,
    )  # fmt: skip


def _check_auto(column: str, bounds: Any, *, given: bool) -> None:
    """Refuse bounds in words other than "auto", and bounds that are given and chosen at once."""
    if bounds != "auto" or given:
        raise ValueError(
            f'bounds of {column!r} must be given as lower and upper, or be "auto", not both, got bounds={bounds!r}.'
        )


def check_edges(column: str, edges: Any) -> tuple[float, ...]:
    """Public edges, finite and increasing."""
    given = list(edges) if isinstance(edges, Iterable) else [edges]
    numbers = tuple(float(e) for e in given if is_real(e) and abs(e) <= LARGEST)
    rising = len(numbers) == len(given) and all(a < b for a, b in pairwise(numbers))
    if not (2 <= len(given) <= MOST_EDGES and rising):
        raise ValueError(
            f"edges of {column!r} must be 2 to {MOST_EDGES:,} finite numbers in increasing order, got {len(given)}."
        )
    return numbers


def named(column: Any) -> str:
    """The name of a column, or the refusal of what is none."""
    if not isinstance(column, str):
        raise TypeError(f"column must be the name of a column, got {type(column).__name__}.")
    return column
