"""Cells: what the rows of one unit in one group add up to, as exact integers. Ibis expressions only.

Spelled with CASE, since engines clip NaN and NULL differently, round casts differently and disagree on literals. No
arithmetic touches a value before comparisons have clipped it: PostgreSQL raises on overflow and underflow, and an error
would say something about the data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, ldexp, trunc
from typing import Any

from psidp.curator.ask import Aggregate
from psidp.errors import MissingExtraError
from psidp.mechanism.clipping import IntegerGrid

__all__ = [
    "Coordinate",
    "amount_steps",
    "boundless",
    "centred_steps",
    "coordinates",
    "fine_enough",
    "ibis_library",
    "number",
    "real",
    "scaled_steps",
    "stairs",
    "usable",
    "whole",
]

FINE = 1000
"""Steps of the integer grid that a row must be."""


def ibis_library() -> Any:
    """The Ibis module, or the line that installs it."""
    try:
        import ibis
    except ImportError:
        raise MissingExtraError("Ibis", "db") from None
    return ibis


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One coordinate of an aggregate's vector: `weight` for each row that counts, or an integer made of its value."""

    aggregate: Aggregate
    lattice: IntegerGrid
    power: int
    """0: the number of rows; 1: the values; 2: their squares."""
    term: Aggregate | None = None
    """The count or sum that this coordinate of a ratio is."""

    @property
    def weight(self) -> int:
        """What a row adds to a number of rows."""
        a = self.aggregate
        return self.lattice.part(a.parts) if a.parts > 1 else self.lattice.truncated(1.0)

    @property
    def signed(self) -> bool:
        """Whether it can be negative."""
        of = self.term or self.aggregate
        return self.power > 0 and (of.kind != "sum" or of.lower < 0.0)

    @property
    def counts_all(self) -> bool:
        """Whether every row counts, so that the engine need not look at a value."""
        return self.power == 0 and (self.term is not None or self.aggregate.parts == 1)

    def row(self, table: Any) -> Any:
        """What is summed over the rows: 1 for a row that counts, an integer for its value."""
        ibis, a = ibis_library(), self.aggregate
        if self.power:
            return self._value(table)
        if a.kind in ("count", "units", "ratio") or a.edges:
            return ibis.literal(1, "int64")
        return ibis.cases((usable(table[a.column]), ibis.literal(1, "int64")), else_=ibis.literal(0, "int64"))

    def of_unit(self, total: Any) -> Any:
        """The sum over one unit's rows in one group, in lattice steps: exact, cut where it is 2^30 bounds; 64 bits."""
        ibis, most = ibis_library(), self.lattice.most
        if self.aggregate.kind == "units":
            return whole(min(self.weight, self.lattice.bound)).cast("!int64")  # else 32 bits on DuckDB
        if self.power:
            below = [(total <= whole(-most), whole(-most))] if self.signed else []
            return ibis.cases((total >= whole(most), whole(most)), *below, else_=total.cast("!int64"))
        full = -(-most // self.weight)
        return ibis.cases((total >= whole(full), whole(most)), else_=total.cast("!int64") * whole(self.weight))

    def in_steps(self, total: int) -> int:
        """A sum over rows that are units of their own, in lattice steps."""
        return total if self.power else total * self.weight

    def _value(self, table: Any) -> Any:
        """The clipped value of a row, truncated toward zero to whole steps."""
        a = self.aggregate
        if self.term is not None:
            return scaled_steps(_amount(table, self.term), *self.term.range, self.term.reach, self.weight)
        if a.kind == "sum":
            return amount_steps(_amount(table, a), *a.range, self.lattice)
        return centred_steps(table[a.column], a.lower, a.upper, self.weight, self.power)


def coordinates(aggregate: Aggregate, lattice: IntegerGrid) -> tuple[Coordinate, ...]:
    """The vector of one row, coordinate by coordinate."""
    if not fine_enough(aggregate, lattice):
        raise ValueError(
            f"contribution of {aggregate.name!r} is too large for so many groups: a row would be less than {FINE:,} "
            "steps of the integer grid. Ask for fewer groups or a smaller contribution."
        )
    if aggregate.terms:
        return tuple(Coordinate(aggregate, lattice, int(term.kind == "sum"), term) for term in aggregate.terms)
    powers = (1,) if aggregate.kind == "sum" else range(aggregate.parts)
    return tuple(Coordinate(aggregate, lattice, power) for power in powers)


def fine_enough(aggregate: Aggregate, lattice: IntegerGrid) -> bool:
    """Whether a row is so many steps that cutting it to whole ones does not matter."""
    return aggregate.kind == "sum" or Coordinate(aggregate, lattice, 0).weight >= FINE


def _amount(table: Any, a: Aggregate) -> Any:
    """The column of a sum; where it is weighted, clipped value times clipped weight, NULL where either is missing."""
    if a.weights is None:
        return table[a.column]
    name, most = a.weights
    product = _clipped(table[a.column], a.lower, a.upper) * _clipped(table[name], 0.0, most)
    return ibis_library().cases((usable(table[a.column]) & usable(table[name]), product))


def _clipped(column: Any, lower: float, upper: float) -> Any:
    """A usable value inside its bounds; 0 where it is so small that a product could underflow."""
    value, small = number(column), 2.0**-400
    return ibis_library().cases(
        (value <= real(lower), real(lower)),
        (value >= real(upper), real(upper)),
        ((value < real(small)) & (value > real(-small)), real(0.0)),
        else_=value,
    )


def scaled_steps(column: Any, lower: float, upper: float, reach: float, part: int) -> Any:
    """trunc(part clip(v)/reach); 0 for a missing value."""
    ibis, value = ibis_library(), number(column)
    small = reach * ldexp(1.0, -40)
    scaled = value / real(reach) * real(float(part))
    return ibis.cases(
        (~usable(column), whole(0)),
        (value <= real(lower), whole(trunc(lower / reach * part))),
        (value >= real(upper), whole(trunc(upper / reach * part))),
        ((value < real(small)) & (value > real(-small)), whole(0)),
        (scaled < real(0.0), scaled.ceil().cast("int64")),
        else_=scaled.floor().cast("int64"),
    )


def amount_steps(column: Any, lower: float, upper: float, lattice: IntegerGrid) -> Any:
    """trunc(clip(v) 2^-unit); 0 for a missing value."""
    ibis, value = ibis_library(), number(column)
    scaled = value * real(lattice.scale)
    cases = [
        (~usable(column), whole(0)),
        (value <= real(lower), whole(lattice.truncated(lower))),
        (value >= real(upper), whole(lattice.truncated(upper))),
    ]
    if lattice.unit > 0:  # v 2^-unit could underflow
        cases.append(((value < real(lattice.step)) & (value > real(-lattice.step)), whole(0)))
    if lower < 0.0:
        cases.append((value < real(0.0), scaled.ceil().cast("int64")))
    return ibis.cases(*cases, else_=scaled.floor().cast("int64"))


def centred_steps(column: Any, lower: float, upper: float, part: int, power: int = 1) -> Any:
    """trunc(part t) or trunc(part (2 t^2 - 1)), where t = (v - middle)/half lies in [-1, 1]; 0 for a missing value."""
    ibis, value = ibis_library(), number(column)
    middle, half = (lower + upper) / 2.0, (upper - lower) / 2.0
    ends = (part, part) if power == 2 else (-part, part)
    apart = value - real(middle)
    small = (apart < real(half * ldexp(1.0, -40))) & (apart > real(-half * ldexp(1.0, -40)))
    t = apart / real(half)
    if power == 2:
        t = t * t * real(2.0) - real(1.0)
    scaled = t * real(float(part))
    return ibis.cases(
        (~usable(column), whole(0)),
        (value <= real(lower), whole(ends[0])),
        (value >= real(upper), whole(ends[1])),
        (small, whole(-part if power == 2 else 0)),
        (scaled >= real(float(part)), whole(part)),
        (scaled <= real(-float(part)), whole(-part)),
        (scaled < real(0.0), scaled.ceil().cast("int64")),
        else_=scaled.floor().cast("int64"),
    )


def middle_and_half(aggregate: Aggregate) -> tuple[float, float]:
    """Centre and half width of the bounds."""
    return (aggregate.lower + aggregate.upper) / 2.0, (aggregate.upper - aggregate.lower) / 2.0


def number(column: Any) -> Any:
    """A column as doubles."""
    kind = column.type()
    if kind.is_boolean():
        return ibis_library().cases((column, real(1.0)), else_=real(0.0))
    if boundless(kind):
        return _within_doubles(column)
    return column if kind.is_float64() else column.cast("float64")


def usable(column: Any) -> Any:
    """Whether a cell holds a number: neither NULL nor NaN, which PostgreSQL's decimals have too."""
    kind = column.type()
    if boundless(kind):
        return column.notnull() & (column != _decimal("NaN"))
    fraction = kind.is_floating() or kind.is_decimal()
    return column.notnull() & ~number(column).isnan() if fraction else column.notnull()


def boundless(kind: Any) -> bool:
    """Whether it is a decimal with more digits than doubles reach, or NaN: PostgreSQL's numeric."""
    return bool(kind.is_decimal()) and not (0 <= (kind.scale or 0) <= (kind.precision or inf) <= 300)


def _within_doubles(column: Any) -> Any:
    """A boundless decimal as doubles: PostgreSQL raises where it is too large for one, and where it is too small."""
    large, small = (_decimal(text) for text in ("1e300", "1e-300"))
    return ibis_library().cases(
        (column >= large, real(inf)),
        (column <= -large, real(-inf)),
        ((column < small) & (column > -small), real(0.0)),
        else_=column.cast("float64"),
    )


def _decimal(text: str) -> Any:
    """A number of PostgreSQL's numeric, of as many digits as it has."""
    return ibis_library().literal(text).cast("decimal")


def stairs(value: Any, edges: Sequence[Any], steps: Sequence[int]) -> Any:
    """steps[i] for the number i of edges at or below `value`: a balanced tree of CASE."""
    ibis = ibis_library()
    if not edges:
        return whole(steps[0])
    middle = len(edges) // 2
    low = stairs(value, edges[:middle], steps[: middle + 1])
    high = stairs(value, edges[middle + 1 :], steps[middle + 1 :])
    return ibis.cases((value < edges[middle], low), else_=high)


def real(value: float) -> Any:
    """A double in SQL, through text: a literal with a point is a decimal on some engines, and is rounded twice."""
    return ibis_library().literal(repr(value)).cast("float64")


def whole(value: int) -> Any:
    """A 64-bit integer in SQL."""
    return ibis_library().literal(value, "int64")
