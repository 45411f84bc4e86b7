"""Query: what is asked of a table, checked against its schema and never against its rows."""

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from math import inf, sqrt
from typing import Any

from psidp.curator.answer import packed
from psidp.curator.ask import Aggregate, Contribution, check_contribution
from psidp.curator.bounds import BOUNDS_SHARE, SHARES
from psidp.curator.column_types import check_kind, key_types, with_keys, with_types
from psidp.curator.contribution import grid_of
from psidp.curator.contribution_sql import Totals
from psidp.curator.distinct_sql import DistinctTotals
from psidp.curator.engine import location
from psidp.curator.filters import condition, in_words
from psidp.curator.groups import Key, PrivateGroups, key_filter, key_tuples, public_groups, refuse_own_groups
from psidp.curator.readings import Reading
from psidp.curator.unit import Unit, columns_of, pinned, unit_words
from psidp.guarantee import Guarantee
from psidp.maths.sensitivity import Adjacency, clipped_vector
from psidp.strategies.marginals import Marginals
from psidp.strategies.ordered import ordered
from psidp.strategies.residual_plan import ResidualPlan, least_total
from psidp.symbols import symbol

__all__ = [
    "AUTO_SHARE", "CLIPPING_SHARE", "Query", "can_clip", "check_asks", "check_clipping_share", "check_unit", "meant",
    "need_column", "question", "rows_in_words",
]  # fmt: skip

AUTO_SHARE = 0.1
"""Part of an aggregate's psi^2 that contribution="auto" spends on the choice, and on saying what clipping took."""

CLIPPING_SHARE = 0.02
"""Part of an aggregate's psi^2 that goes into saying what clipping took, unless told; noise grows by a hundredth."""

UNITS = ("integer", "string", "decimal", "date", "timestamp", "time", "boolean", "uuid", "binary", "inet", "macaddr")
"""Types of a unit column. Others, JSON among them, are stored in another form than they are compared in."""

FEWEST_BINS, MOST_BINS = 3, 1_024
"""Bins of quantiles between which noise is made for cumulative counts; beyond, making it takes too long."""

MOST_NAMED = 40
"""Columns that a refusal names."""

SAFETY = 1.0 - 2.0**-50
"""Shares are rounded down, so that together they stay below psi."""


@dataclass(frozen=True, slots=True)
class Query:
    """Aggregates of the rows that satisfy a condition, by group, at a price.

    Args:
        table: the Ibis table. unit: column or columns that name the units of privacy, or None where each row is one.
        asks: the aggregates, each with its contribution. by: the columns that make groups. groups: the groups, or how
        to choose them. where: the condition, or None. guarantee: the price of all of it. some: the condition in words.
        clipping_share: part of psi^2 that goes into measuring what clipping takes. reads: the types in which untyped
        columns are read. price: how the price came about, in words, where it was not said as psi. readings: how where
        and by read columns without a type.
    """

    table: Any
    unit: Unit
    asks: tuple[Aggregate, ...]
    by: tuple[str, ...]
    groups: tuple[Key, ...] | PrivateGroups
    where: Any
    guarantee: Guarantee
    confidence: float
    some: str = ""
    clipping_share: float = CLIPPING_SHARE
    reads: Mapping[str, str] = field(default_factory=dict)
    price: str = ""
    readings: tuple[Reading, ...] = ()

    @property
    def adjacency(self) -> Adjacency:
        """Which neighbours the guarantee speaks of."""
        return self.guarantee.adjacency

    @property
    def private(self) -> PrivateGroups | None:
        """How groups are chosen, where they are."""
        return self.groups if isinstance(self.groups, PrivateGroups) else None

    @property
    def rows(self) -> Any:
        """The table after the condition, groups as Python has them."""
        rows = self.table if self.where is None else self.table.filter(self.where)
        return with_keys(with_types(rows, self.reads), self.by)

    def share(self, weight: float) -> float:
        """psi of one part of the release: psi sqrt(weight / all weights), rounded down."""
        weights = [a.weight for a in self.asks] + ([self.private.weight] if self.private else [])
        return self.guarantee.psi * sqrt(weight / sum(weights)) * SAFETY

    def norms_share(self, aggregate: Aggregate) -> float:
        """Part of an aggregate's psi^2 that goes into counting units by the size of their norm."""
        if aggregate.contribution == "auto":
            return AUTO_SHARE
        if aggregate.kind == "distinct":
            return 0.0
        return self.clipping_share if self.can_clip(aggregate) else 0.0

    def psi_of(self, aggregate: Aggregate) -> float:
        """psi of an aggregate's own noise."""
        apart = self.norms_share(aggregate) + (0.0 if aggregate.bounds is None else BOUNDS_SHARE)
        return self.share(aggregate.weight) * sqrt(1.0 - apart) * SAFETY

    def psi_of_bounds(self, aggregate: Aggregate, stage: int) -> float:
        """psi of one of the three histograms from which bounds are chosen."""
        return self.share(aggregate.weight) * sqrt(SHARES[stage]) * SAFETY

    def psi_of_norms(self, aggregate: Aggregate) -> float:
        """psi of counting units by the size of their norm."""
        return self.share(aggregate.weight) * sqrt(self.norms_share(aggregate)) * SAFETY

    def can_clip(self, aggregate: Aggregate) -> bool:
        """Whether a unit can have more than the contribution."""
        return can_clip(self.unit, None if isinstance(self.groups, PrivateGroups) else len(self.groups), aggregate)

    def one_entry(self, aggregate: Aggregate) -> bool:
        """Whether a unit is a row that counts in one group and bin: another in its place moves it elsewhere."""
        return self.unit is None and aggregate.kind in ("count", "units", "histogram", "quantiles")

    def sensitivity(self, aggregate: Aggregate, contribution: float) -> float:
        """How far one unit can move the aggregate's totals, all groups together."""
        return clipped_vector(contribution * aggregate.reach, self.adjacency, one_entry=self.one_entry(aggregate))

    def quantile_plan(self, aggregate: Aggregate) -> ResidualPlan | None:
        """Noise made for cumulative counts, where rows are units: a row is in one bin, whatever the noise is made for.

        Under the bound on the L2 norm of units with many rows no such noise is better than that of each bin alone
        (docs/design/cubes.md).
        """
        if not (self.unit is None and aggregate.kind == "quantiles" and FEWEST_BINS <= aggregate.bins <= MOST_BINS):
            return None
        times = 1.0 if self.adjacency == "add-remove" else 2.0
        return least_total(Marginals((ordered(aggregate.bins),), ((0,),)), self.psi_of(aggregate) / times)

    def sigma(self, aggregate: Aggregate, contribution: float) -> float:
        """Standard deviation of the noise on each total."""
        return Guarantee(self.psi_of(aggregate)).sigma(self.sensitivity(aggregate, contribution))

    def totals(
        self, contributions: Sequence[float], groups: Sequence[Key], narrow: bool
    ) -> list[Totals | DistinctTotals]:
        """The queries: one for all aggregates without bins, one for each with and for each of different values. Where
        what clipping takes is measured, they count units by the size of their norm as well."""
        measured = [a for a in self.asks if a.contribution != "auto" and self.norms_share(a) > 0.0]
        plain = [(a, c) for a, c in zip(self.asks, contributions, strict=True) if a.kind != "distinct"]
        made = self._queries([a for a, _ in plain], [c for _, c in plain], groups, narrow, measured)
        rows = self._rows_of(groups)
        values = [DistinctTotals(rows, self.unit, self.by, a) for a in self.asks if a.kind == "distinct"]
        return [*made, *values]

    def choices(self, groups: Sequence[Key], narrow: bool) -> list[Totals]:
        """The queries whose `sizes` count units by the size of their norm, for aggregates whose contribution is to be
        chosen."""
        asks = tuple(a for a in self.asks if a.contribution == "auto")
        return self._queries(asks, [1.0] * len(asks), groups, narrow, asks)

    def _queries(
        self,
        asks: Sequence[Aggregate],
        contributions: Sequence[float],
        groups: Sequence[Key],
        narrow: bool,
        measured: Sequence[Aggregate],
    ) -> list[Totals]:
        parts = [(a, grid_of(a, c, len(groups))) for a, c in zip(asks, contributions, strict=True)]
        together = tuple(part for part in parts if not part[0].edges)
        apart = [(part,) for part in parts if part[0].edges]
        rows = self._rows_of(groups)
        return [
            Totals(rows, self.unit, self.by, group, narrow, tuple(j for j, (a, _) in enumerate(group) if a in measured))
            for group in ([together] if together else []) + apart
        ]

    def _rows_of(self, groups: Sequence[Key]) -> Any:
        """The rows of these groups; all rows where each is its own unit, since none takes anything from others."""
        narrowed = self.by and self.unit is not None
        return self.rows.filter(key_filter(self.rows, self.by, groups)) if narrowed else self.rows

    def bins_query(self, aggregate: Aggregate, groups: Sequence[Key], narrow: bool) -> Totals:
        """The query for one histogram over all groups together, under the bound that the aggregate has."""
        rows = self.rows.filter(key_filter(self.rows, self.by, groups)) if self.by else self.rows
        grid = grid_of(aggregate, float(aggregate.contribution or 1.0), 1)
        return Totals(rows, self.unit, (), ((aggregate, grid),), narrow)

    def fixed(self) -> list[float]:
        """Contributions, 1 where one is to be chosen."""
        return [1.0 if a.contribution == "auto" else float(a.contribution or 1.0) for a in self.asks]

    def to_dict(self) -> dict[str, Any]:
        """What makes two queries the same, as plain values, under the names that ledgers already hold."""
        groups = (
            self.groups.to_dict()
            if isinstance(self.groups, PrivateGroups)
            else [list(map(packed, k)) for k in self.groups]
        )
        return {
            "asks": [a.to_dict() for a in self.asks],
            "by": list(self.by),
            "keys": groups,
            "rows": rows_in_words(self.table, self.where),
            **({"location": found} if (found := location(self.table.get_backend())) else {}),
            "schema": {name: str(kind) for name, kind in self.table.schema().items()},
            "unit": pinned(self.unit),
            "guarantee": self.guarantee.to_dict(),
            "level": self.confidence,
            "clipping_share": self.clipping_share,
        }


def rows_in_words(table: Any, where: Any) -> str:
    """The SQL of the rows; frames have names of chance there, and are told apart by their columns alone."""
    import ibis.expr.operations as ops  # type: ignore[import-untyped,unused-ignore]

    rows = table if where is None else table.filter(where)
    frames = rows.op().find(ops.InMemoryTable)
    named = rows.op().replace({f: ops.UnboundTable(name="frame", schema=f.schema) for f in frames}).to_expr()
    return str(table.get_backend().compile(named))


def question(
    table: Any,
    unit: Unit,
    asks: Sequence[Aggregate],
    *,
    by: str | Sequence[str],
    groups: Any,
    where: Any,
    psi: float,
    contribution: Contribution,
    adjacency: Adjacency,
    protects: str,
    confidence: float,
    clipping_share: float,
    source: Any,
    untyped: frozenset[str] = frozenset(),
    readings: Iterable[Reading] = (),
) -> Query:
    """The question, or a refusal that looked at schema and parameters alone."""
    columns = (by,) if isinstance(by, str) else tuple(by or ())
    refuse_own_groups(groups, columns, table, source)
    reads = _reads(asks, unit, columns, untyped)
    if untyped.intersection(columns) and groups is not None and not isinstance(groups, PrivateGroups):
        groups = key_tuples(groups, columns, table.schema())
        reads |= key_types(groups, columns, untyped.intersection(columns))
    schema = with_types(table, reads).schema()
    check_asks(asks, schema)
    for name in columns:
        need_column(name, schema, "by")
    if not columns and any(a.top for a in asks):
        raise ValueError("by must name the columns whose groups are compared where the top ones are asked for.")
    if len(set(columns)) < len(columns):
        raise ValueError(f"by must name different columns, got {', '.join(columns)}.")
    if unit is not None and set(columns_of(unit)) <= set(columns):
        raise ValueError(
            f"by must not name the unit's own column, got {unit_words(unit)!r}: every group would be one unit."
        )
    if not symbol("psi").number(psi) > 0.0:
        raise ValueError(f"psi ({symbol('psi').meaning}) must be above 0 for a release, got psi={psi}.")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence (chance that an interval covers) must be in (0, 1), got confidence={confidence}.")
    check_clipping_share(clipping_share)
    check_contribution(contribution)
    groups = _groups(groups, columns, schema)
    most = inf if isinstance(groups, PrivateGroups) else sqrt(len(groups))
    chosen = tuple(_settled(a, contribution, unit, most) for a in asks)
    kappa = groups.kappa if isinstance(groups, PrivateGroups) else 0.0
    guarantee = Guarantee(psi, kappa, adjacency, protects)
    seen = dict.fromkeys((*readings, *((name, reads.get(name, "string")) for name in columns if name in untyped)))
    rule = None if where is None else condition(table, where, untyped, seen)
    some = "" if rule is None else in_words(table, where)
    return Query(
        table, unit, chosen, columns, groups, rule, guarantee, confidence, some, clipping_share, reads,
        readings=tuple(seen),
    )  # fmt: skip


def can_clip(unit: Unit, groups: int | None, aggregate: Aggregate) -> bool:
    """Whether a unit can have more than the contribution; in so many public groups, or in private ones (None)."""
    if unit is None or aggregate.kind != "units" or groups is None:
        return unit is not None
    most = sqrt(groups)  # a unit counts once in each group
    chosen = aggregate.contribution == "auto"
    return most > 1.0 if chosen else not float(aggregate.contribution or 1.0) >= most


def check_clipping_share(clipping_share: float) -> None:
    """Refuse a share that is no part of psi^2."""
    if not 0.0 <= clipping_share <= 0.5:
        raise ValueError(
            "clipping_share (part of psi^2 that goes into measuring what clipping takes) must be in [0, 0.5], "
            f"got clipping_share={clipping_share}."
        )


def check_unit(unit: Unit, schema: Any) -> None:
    """Refuse unit columns that are missing or of fractions."""
    for column in columns_of(unit):
        _check_unit_column(column, schema)


def _check_unit_column(unit: str, schema: Any) -> None:
    need_column(unit, schema, "unit")
    if schema[unit].is_floating():
        raise TypeError(
            f"unit must be a column of whole numbers, text or the like, got {unit!r} of {schema[unit]}. Give a view in "
            "which it is one of these."
        )
    kind = schema[unit]
    if not any(getattr(kind, f"is_{name}")() for name in UNITS):
        raise TypeError(
            "unit must be a column of whole numbers, text, decimals, dates, times, truth values, UUIDs, bytes or "
            f"addresses, got {unit!r} of {kind}: other types are not told apart in one way only."
        )


def check_asks(asks: Sequence[Aggregate], schema: Any) -> None:
    """Refuse what is no aggregate, is asked twice, or asks a column for numbers that it does not hold."""
    if not asks:
        raise TypeError("ask for at least one aggregate, such as psidp.ask.count(), or --count on the command line.")
    for a in asks:
        if not isinstance(a, Aggregate):
            raise TypeError(f"each aggregate must come from a call such as psidp.ask.count(), got {reprlib.repr(a)}.")
    names = [a.name for a in asks]
    if len(set(names)) < len(names):
        raise ValueError(f"ask for different things: {', '.join(names)} has one twice.")
    for a in asks:
        if a.kind == "distinct":
            need_column(a.column, schema, "column")
            check_kind(str(a.column), schema[a.column])
        for name in a.columns:
            need_column(name, schema, "column")
            kind = schema[name]
            if not (kind.is_numeric() or kind.is_boolean()):
                raise TypeError(f"column {name!r} must hold numbers to have a {a.kind}, got {kind}.")


def _reads(asks: Sequence[Aggregate], unit: Unit, by: Sequence[str], untyped: frozenset[str]) -> dict[str, str]:
    """The types in which untyped columns are read: numbers where an aggregate asks for their values."""
    asked = (name for a in asks if isinstance(a, Aggregate) for name in a.columns)
    numbers = {name: "float64" for name in asked if name in untyped}
    for name in (*columns_of(unit), *by):
        if name in numbers:
            raise ValueError(
                f"column {name!r} has no type, and is asked for its numbers and for its units or groups at once. "
                f'Declare what it holds: types={{{name!r}: "int64"}}, or --type {name}:int64.'
            )
    return numbers


def _settled(aggregate: Aggregate, contribution: Contribution, unit: Unit, most: float) -> Aggregate:
    """The aggregate with its contribution; no more than a unit can add, once in each group, to a count of units."""
    asked = contribution if aggregate.contribution is None else aggregate.contribution
    if aggregate.kind == "distinct":
        return aggregate if unit is not None else replace(aggregate, contribution=1.0)
    if unit is None and asked not in (1, None):
        raise ValueError(f"contribution must be 1 where every row is its own unit, got contribution={asked!r}.")
    if asked == "auto" or asked is None:
        return replace(aggregate, contribution=1.0 if aggregate.kind == "units" and most == 1.0 else asked or 1.0)
    return replace(aggregate, contribution=min(float(asked), most) if aggregate.kind == "units" else float(asked))


def _groups(groups: Any, by: Sequence[str], schema: Any) -> tuple[Key, ...] | PrivateGroups:
    if not by:
        if groups is not None:
            raise ValueError("groups must be left out where by names no column.")
        return ((),)
    for name in by:
        check_kind(name, schema[name])
    if groups is None:
        raise ValueError(
            f"groups must be given for by={', '.join(by)}: a list of groups that does not depend on the data, or "
            "psidp.PrivateGroups(kappa=..., at_most=...) to choose them privately. On the command line: --groups A,B,C "
            "or --groups groups.csv, or --private-groups kappa:at_most."
        )
    return groups if isinstance(groups, PrivateGroups) else public_groups(groups, by, schema)


def need_column(name: Any, schema: Any, role: str) -> None:
    """Refuse a column that the table has not."""
    if not isinstance(name, str) or name not in schema:
        raise ValueError(
            f"{role} must be a column of the table ({some_names(schema)}), got {name!r}.{meant(name, schema)}"
        )


def meant(name: Any, names: Iterable[str]) -> str:
    """The question whether another name was meant, where one is near.

    Examples:
        >>> meant("carier", ["carrier", "origin"])
        " Did you mean 'carrier'?"
    """
    near = get_close_matches(name, list(names), 1) if isinstance(name, str) else []
    return f" Did you mean {near[0]!r}?" if near else ""


def some_names(schema: Iterable[str]) -> str:
    """Names of columns for a refusal; not all, where there are many."""
    names = list(schema)
    shown = ", ".join(name if len(name) <= 60 else f"{name[:60]}..." for name in names[:MOST_NAMED])
    return shown if len(names) <= MOST_NAMED else f"{shown}, and {len(names) - MOST_NAMED} more"
