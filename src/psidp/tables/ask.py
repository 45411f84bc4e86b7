"""What can be asked of a table: counts, sums, means, quantiles, ratios and more, each as a value."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from psidp.symbols import whole
from psidp.tables.measures.binned import check_edges
from psidp.tables.measures.count import Count
from psidp.tables.measures.distinct import Distinct
from psidp.tables.measures.geometric_mean import GeometricMean
from psidp.tables.measures.histogram import Histogram
from psidp.tables.measures.mean import Mean
from psidp.tables.measures.measure import Auto, Measure, check_weight, is_real, measure_from
from psidp.tables.measures.quantiles import MAX, MIN, Quantiles, extreme
from psidp.tables.measures.ratio import Ratio
from psidp.tables.measures.share import Share
from psidp.tables.measures.sum import Sum
from psidp.tables.measures.top import Top
from psidp.tables.measures.units import Units
from psidp.tables.measures.variance import Deviation, Variance
from psidp.tables.measures.weighted_sum import WeightedSum

__all__ = [
    "MOST_ROWS", "Ask", "Bins", "Cap", "Contribution", "UpTo", "bins", "cap", "check_contribution", "count",
    "deviation", "distinct", "geometric_mean", "histogram", "max", "mean", "median", "min", "ordered", "quantiles",
    "ratio", "share", "sum", "top", "units", "up_to", "variance", "weighted_sum",
]  # fmt: skip

Contribution = float | Literal["auto"] | None

MOST_ROWS = 2.0**20
UNNAMED = "a cube's column"
"""Of which edges are checked before the column is known."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A measure with its share of psi^2 and how much one unit may add to it.

    Args:
        measure: what is asked. weight: its share of psi^2, relative to the release's others. contribution: how much
        one unit may add, in rows' worth: the bound on its L2 norm. "auto" chooses it privately; None takes the
        release's.
    """

    measure: Measure
    weight: float = 1.0
    contribution: Contribution = None

    def __post_init__(self) -> None:
        check_weight(self.weight)
        if self.contribution is None:
            object.__setattr__(self, "contribution", self.measure.at_most)
        if self.contribution is not None:
            check_contribution(self.contribution)
        object.__setattr__(self, "weight", float(self.weight))
        if self.contribution is not None and self.contribution != "auto":
            object.__setattr__(self, "contribution", float(self.contribution))  # NumPy's are no numbers in JSON

    @property
    def name(self) -> str:
        """The question in words."""
        return self.measure.name

    @property
    def worth(self) -> float:
        """How much one unit may add, in rows' worth; 1 while that is to be chosen."""
        return self.contribution if isinstance(self.contribution, float) else 1.0

    def words(self) -> str:
        """The question with all that bounds it, for an approval."""
        c = self.contribution
        return self.measure.words("" if c is None else c if isinstance(c, str) else f"{c:g}")

    def to_dict(self) -> dict[str, Any]:
        """The question as plain values."""
        fields = self.measure.to_dict()
        return {"kind": fields.pop("kind"), "weight": self.weight, "contribution": self.contribution, **fields}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The question that to_dict wrote; that of version 0.2 for counts, units, sums and means, too."""
        fields = {name: value for name, value in values.items() if name not in ("weight", "contribution")}
        return cls(measure_from(fields), values.get("weight", 1.0), values.get("contribution"))


def check_contribution(value: Any) -> None:
    """Refuse a contribution that is neither "auto" nor a number of rows' worth."""
    if not (value == "auto" if isinstance(value, str) else is_real(value) and 1.0 <= value <= MOST_ROWS):
        raise ValueError(
            f'contribution (rows\' worth one unit may add) must be in [1, 2^20] or "auto", got contribution={value!r}.'
        )


def _checked(kind: Callable[..., Measure], *parameters: Any) -> Measure:
    """A measure of parameters that it checks itself."""
    return kind(*parameters)


def count(*, weight: float = 1.0, contribution: Contribution = None) -> Ask:
    """How many rows.

    Examples:
        >>> count().name
        'count'
    """
    return Ask(Count(), weight, contribution)


def units(*, weight: float = 1.0, contribution: Contribution = None) -> Ask:
    """How many different units of privacy: patients, say."""
    return Ask(Units(), weight, contribution)


def sum(
    column: str, lower: float | None = None, upper: float | None = None, *, bounds: Auto | None = None,
    weight: float = 1.0, contribution: Contribution = None,
) -> Ask:  # fmt: skip
    """Sum of a column's values, clipped to [lower, upper]; missing values and NaN add nothing.

    Where nobody knows the bounds, bounds="auto" chooses them privately, with 15 % of the measure's psi^2.

    Examples:
        >>> sum("cost", 0, 5000).measure.vector.reach
        5000.0
        >>> sum("cost", bounds="auto").measure.bounds
        'auto'
        >>> sum("cost", 5000, 0)
        Traceback (most recent call last):
        ...
        ValueError: bounds of 'cost' must be finite numbers with lower < upper, got lower=5000, upper=0.
    """
    return Ask(_checked(Sum, column, lower, upper, bounds), weight, contribution)


def mean(
    column: str, lower: float | None = None, upper: float | None = None, *, bounds: Auto | None = None,
    weight: float = 1.0, contribution: Contribution = None,
) -> Ask:  # fmt: skip
    """Mean of a column's values, clipped to [lower, upper]; rows whose value is missing or NaN do not count."""
    return Ask(_checked(Mean, column, lower, upper, bounds), weight, contribution)


def variance(
    column: str, lower: float | None = None, upper: float | None = None, *, bounds: Auto | None = None,
    weight: float = 1.0, contribution: Contribution = None,
) -> Ask:  # fmt: skip
    """Variance of a column's values, clipped to [lower, upper], over the number of rows."""
    return Ask(_checked(Variance, column, lower, upper, bounds), weight, contribution)


def deviation(
    column: str, lower: float | None = None, upper: float | None = None, *, bounds: Auto | None = None,
    weight: float = 1.0, contribution: Contribution = None,
) -> Ask:  # fmt: skip
    """Standard deviation of a column's values: the square root of `variance`."""
    return Ask(_checked(Deviation, column, lower, upper, bounds), weight, contribution)


def histogram(
    column: str, edges: Iterable[float] | Auto, *, weight: float = 1.0, contribution: Contribution = None
) -> Ask:
    """How many values lie between public edges, [e0, e1), [e1, e2), ..., the last bin closed.

    Values outside are clipped, and so count in the first and the last bin; missing values and NaN in none. "auto"
    chooses 10 to 25 bins of equal width privately, with 15 % of the measure's psi^2.
    """
    return Ask(_checked(Histogram, column, edges), weight, contribution)


def quantiles(
    column: str, edges: Iterable[float] | Auto, at: float | Iterable[float] = (0.25, 0.5, 0.75), *,
    weight: float = 1.0, contribution: Contribution = None,
) -> Ask:  # fmt: skip
    """Quantiles read from a noisy cumulative histogram on public edges, straight lines between them.

    "auto" chooses the edges privately, close where many values are, with 15 % of the measure's psi^2.
    """
    return Ask(_checked(Quantiles, column, edges, at), weight, contribution)


def median(
    column: str, edges: Iterable[float] | Auto, *, weight: float = 1.0, contribution: Contribution = None
) -> Ask:
    """The median, read from a noisy cumulative histogram on public edges, or on edges that are chosen ("auto")."""
    return Ask(_checked(Quantiles, column, edges, 0.5, "median"), weight, contribution)


def min(
    column: str, edges: Iterable[float] | Auto, at: float = MIN, *, weight: float = 1.0,
    contribution: Contribution = None,
) -> Ask:  # fmt: skip
    """About the smallest value: the quantile at 0.01 by default, which the answer names.

    The smallest value itself is one row's, and no private answer can give it.

    Examples:
        >>> min("age", range(0, 111, 5)).name
        'min (quantile 0.01) of age'
    """
    return Ask(_checked(Quantiles, column, edges, at, extreme("min", at)), weight, contribution)


def max(
    column: str, edges: Iterable[float] | Auto, at: float = MAX, *, weight: float = 1.0,
    contribution: Contribution = None,
) -> Ask:  # fmt: skip
    """About the largest value: the quantile at 0.99 by default, which the answer names; see `min`."""
    return Ask(_checked(Quantiles, column, edges, at, extreme("max", at)), weight, contribution)


def weighted_sum(
    column: str, lower: float, upper: float, *, weights: str, most: float, weight: float = 1.0,
    contribution: Contribution = None,
) -> Ask:  # fmt: skip
    """Sum of values clipped to [lower, upper], each times its weight, a column's value clipped to [0, most].

    A row whose value or weight is missing or NaN adds nothing; what is smaller than 2^-400 counts as 0. `weight` is, as
    everywhere, the share of psi^2.

    Examples:
        >>> weighted_sum("cost", 0, 5000, weights="w", most=10).name
        'sum of cost weighted by w'
    """
    return Ask(_checked(WeightedSum, column, lower, upper, weights, most), weight, contribution)


def ratio(above: Ask, below: Ask, *, weight: float = 1.0, contribution: Contribution = None) -> Ask:
    """One total over another, each a count or a sum, with Fieller's interval; a unit's part in both is scaled alike.

    Examples:
        >>> ratio(sum("cost", 0, 5000), sum("days", 0, 60)).name
        'ratio of sum of cost to sum of days'
    """
    one, two = (term.measure if isinstance(term, Ask) else term for term in (above, below))
    made = Ask(Ratio((one, two)), weight, contribution)
    if any(isinstance(term, Ask) and (term.weight, term.contribution) != (1.0, None) for term in (above, below)):
        raise ValueError("weight and contribution must be given to the ratio itself, not to its terms.")
    return made


def share(condition: str, *, weight: float = 1.0, contribution: Contribution = None) -> Ask:
    """The share of rows for which a condition holds, such as "delay > 15"; rows where it is NULL are left out.

    Examples:
        >>> share("delay > 15").name
        'share of delay > 15'
    """
    return Ask(Share(condition), weight, contribution)


def geometric_mean(
    column: str, lower: float, upper: float, *, weight: float = 1.0, contribution: Contribution = None
) -> Ask:
    """Geometric mean of a column's values, clipped to [lower, upper] above 0: the mean of their logarithms.

    Examples:
        >>> geometric_mean("cost", 0, 5000)
        Traceback (most recent call last):
        ...
        ValueError: bounds of 'cost' must be given and above 0 for a geometric mean, got lower=0.
    """
    return Ask(GeometricMean(column, lower, upper), weight, contribution)


def distinct(column: str, at_most: float, *, weight: float = 1.0) -> Ask:
    """How many different values a column has, where one unit counts for at most `at_most` of them.

    A unit with m values, over all groups, counts min(1, at_most/m) for each, and a value counts for what its units have
    together, at most 1. NULL is no value.

    Examples:
        >>> distinct("diagnosis", at_most=10).contribution
        10.0
    """
    return Ask(Distinct(column, at_most), weight)


def top(k: int, of: Ask | None = None) -> Ask:
    """The k groups in which a count, a number of units or values, or a sum is largest; of rows by default.

    The noise is that of all groups, and intervals hold for all groups at once, since the largest are picked after it.

    Examples:
        >>> top(3, sum("cost", 0, 5000)).name
        'top 3 by sum of cost'
    """
    compared = count() if of is None else of
    if not isinstance(compared, Ask):
        raise ValueError(f"top must be by a count, units, distinct values or a sum, got {of!r}.")
    return replace(compared, measure=Top(k, compared.measure))


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
class Cap:
    """In which periods of a stream a unit counts.

    Args:
        at_most: the number of periods, its first ones. apart: only periods before which it has no row in apart - 1
        periods. each: once in each "month", "quarter" or "year", or in each
        bucket of this number of periods, or of these numbers.
    """

    at_most: int | None = None
    apart: int = 1
    each: int | str | tuple[int, ...] | None = None


def cap(at_most: int | None = None, *, apart: int = 1, each: int | str | tuple[int, ...] | None = None) -> Cap:
    """In which periods of a stream a unit counts: its first ones, those far enough apart, or one in each bucket.

    Examples:
        >>> cap(3)
        Cap(at_most=3, apart=1, each=None)
    """
    return Cap(at_most, apart, each)


@dataclass(frozen=True, slots=True)
class UpTo:
    """All tables of 1 to `order` columns."""

    order: int


def up_to(order: int) -> UpTo:
    """All tables of 1, 2, ... columns, up to a number.

    Examples:
        >>> up_to(3)
        UpTo(order=3)
    """
    return UpTo(whole("order", order))
