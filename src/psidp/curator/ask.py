"""What can be asked of a table: counts, sums, means, quantiles, ratios and more, each as a value."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from psidp.curator.aggregate import (
    Aggregate,
    Auto,
    Contribution,
    bounded,
    check_contribution,
    check_edges,
    count,
    deviation,
    histogram,
    is_real,
    mean,
    named,
    quantiles,
    sum,
    units,
    variance,
)
from psidp.symbols import whole

__all__ = [
    "Aggregate",
    "Bins",
    "Contribution",
    "UpTo",
    "bins",
    "check_contribution",
    "count",
    "deviation",
    "distinct",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "ordered",
    "quantiles",
    "ratio",
    "sum",
    "top",
    "units",
    "up_to",
    "variance",
    "weighted_sum",
]

UNNAMED = "a cube's column"


def median(
    column: str, edges: Iterable[float] | Auto, *, weight: float = 1.0, contribution: Contribution = None
) -> Aggregate:
    """The median, read from a noisy cumulative histogram on public edges, or on edges that are chosen ("auto")."""
    return _named_quantile("median", column, edges, 0.5, weight, contribution)


def min(
    column: str,
    edges: Iterable[float] | Auto,
    at: float = 0.01,
    *,
    weight: float = 1.0,
    contribution: Contribution = None,
) -> Aggregate:
    """About the smallest value: the quantile at 0.01 unless told, and named so in the answer.

    The smallest value itself is one row's, and no private answer can give it.

    Examples:
        >>> min("age", range(0, 111, 5)).name
        'min (quantile 0.01) of age'
    """
    return _named_quantile(f"min (quantile {at})", column, edges, at, weight, contribution)


def max(
    column: str,
    edges: Iterable[float] | Auto,
    at: float = 0.99,
    *,
    weight: float = 1.0,
    contribution: Contribution = None,
) -> Aggregate:
    """About the largest value: the quantile at 0.99 unless told, and named so in the answer; see `min`."""
    return _named_quantile(f"max (quantile {at})", column, edges, at, weight, contribution)


def weighted_sum(
    column: str,
    lower: float,
    upper: float,
    *,
    weights: str,
    most: float,
    weight: float = 1.0,
    contribution: Contribution = None,
) -> Aggregate:
    """Sum of values clipped to [lower, upper], each times its weight, a column's value clipped to [0, most].

    A row whose value or weight is missing or NaN adds nothing; what is smaller than 2^-400 counts as 0. `weight` is, as
    everywhere, the share of psi^2.

    Examples:
        >>> weighted_sum("cost", 0, 5000, weights="w", most=10).name
        'sum of cost weighted by w'
    """
    made = bounded("sum", column, lower, upper, None, weight, contribution)
    if not (is_real(most) and 2.0**-400 <= most <= 2.0**400 and made.reach <= 2.0**400):
        raise ValueError(f"most (largest weight) must be in [2^-400, 2^400], as must the bounds, got most={most!r}.")
    return replace(made, weights=(named(weights), float(most)))


def ratio(above: Aggregate, below: Aggregate, *, weight: float = 1.0, contribution: Contribution = None) -> Aggregate:
    """One total over another, each a count or a sum, with Fieller's interval; a unit's part in both is scaled alike.

    Examples:
        >>> ratio(sum("cost", 0, 5000), sum("days", 0, 60)).name
        'ratio of sum of cost to sum of days'
    """
    for term in (above, below):
        if not (isinstance(term, Aggregate) and term.kind in ("count", "sum") and term.bounds is None and not term.top):
            raise ValueError(f"a ratio must be of ask.count() or sums with given bounds, got {term!r}.")
        if not (term.weight == 1.0 and term.contribution is None):
            raise ValueError("weight and contribution must be given to the ratio itself, not to its terms.")
    if above.name == below.name:
        raise ValueError(f"a ratio must be of two different things, got {above.name!r} twice.")
    return Aggregate("ratio", terms=(above, below), weight=weight, contribution=contribution)


def distinct(column: str, at_most: float, *, weight: float = 1.0) -> Aggregate:
    """How many different values a column has, where one unit counts for at most `at_most` of them.

    A unit with m values, over all groups, counts min(1, at_most/m) for each, and a value counts for what its units have
    together, at most 1. NULL is no value.

    Examples:
        >>> distinct("diagnosis", at_most=10).contribution
        10.0
    """
    if not (is_real(at_most) and 1 <= at_most <= 2**20):
        raise ValueError(f"at_most (values that one unit may count for) must be in [1, 2^20], got at_most={at_most!r}.")
    return Aggregate("distinct", named(column), weight=weight, contribution=float(at_most))


def top(k: int, of: Aggregate | None = None) -> Aggregate:
    """The k groups in which a count, a number of units or values, or a sum is largest; of rows unless told.

    The noise is that of all groups, and intervals hold for all groups at once, since the largest are picked after it.

    Examples:
        >>> top(3, sum("cost", 0, 5000)).name
        'top 3 by sum of cost'
    """
    asked = count() if of is None else of
    if not (isinstance(asked, Aggregate) and asked.kind in ("count", "units", "sum", "distinct") and not asked.top):
        raise ValueError(f"top must be by a count, units, distinct values or a sum, got {asked!r}.")
    return replace(asked, top=whole("k", k))


@dataclass(frozen=True, slots=True)
class Bins:
    """A column of a cube, cut at public edges. ordered: whether cumulative sums are what is asked of it."""

    edges: tuple[float, ...]
    ordered: bool = False


def bins(edges: Iterable[float]) -> Bins:
    """A cube's column of numbers, cut into bins whose counts are asked for, each by itself.

    Examples:
        >>> bins([0, 18, 65]).edges
        (0.0, 18.0, 65.0)
    """
    return Bins(check_edges(UNNAMED, edges))


def ordered(edges: Iterable[float]) -> Bins:
    """A cube's column of numbers, cut into bins of which cumulative sums are asked for: quantiles, shares below.

    Their noise is made for that: with 100 bins a cumulative sum has a third of the error that adding up `bins` has.
    """
    return Bins(check_edges(UNNAMED, edges), ordered=True)


@dataclass(frozen=True, slots=True)
class UpTo:
    """All tables of 1 to `order` columns."""

    order: int


def up_to(order: int) -> UpTo:
    """All tables of 1, 2, ... columns, up to so many.

    Examples:
        >>> up_to(3)
        UpTo(order=3)
    """
    return UpTo(whole("order", order))


def _named_quantile(
    label: str,
    column: str,
    edges: Iterable[float] | Auto,
    at: float,
    weight: float,
    contribution: Contribution,
) -> Aggregate:
    """One quantile under a name of its own."""
    return replace(quantiles(column, edges, at, weight=weight, contribution=contribution), label=label)
