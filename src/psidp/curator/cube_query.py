"""CubeQuery: which tables of which columns are wanted, checked against the schema, with its noise."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import comb, sqrt
from typing import Any, Literal

from psidp.curator.aggregate import MOST_ROWS
from psidp.curator.ask import Aggregate, Bins, Contribution, UpTo, check_contribution
from psidp.curator.column_types import check_kind, key_types, with_types
from psidp.curator.cube_columns import CubeColumn
from psidp.curator.cube_price import LEAST_PSI, MOST_PSI, SAFETY, Errors, gram, layers_of, priced, wanted_errors
from psidp.curator.cube_record import columns_to
from psidp.curator.cube_sql import CubeTotals, Layer
from psidp.curator.cube_weights import MOST_COLUMNS, ImageBound, RowBound
from psidp.curator.filters import condition, in_words
from psidp.curator.groups import PrivateGroups, key_tuples, public_groups, refuse_own_groups
from psidp.curator.query import AUTO_SHARE, check_asks, check_clipping_share, need_column, rows_in_words
from psidp.curator.readings import Reading
from psidp.curator.unit import Unit, columns_of, pinned, unit_words
from psidp.guarantee import Guarantee
from psidp.maths.sensitivity import Adjacency
from psidp.mechanism.residual_release import check_noise
from psidp.strategies.basis import Basis
from psidp.strategies.haar import Haar
from psidp.strategies.marginals import Marginals, Table
from psidp.strategies.ordered import ordered
from psidp.strategies.residual_plan import Balance, ResidualPlan
from psidp.symbols import symbol

__all__ = ["Bound", "CubeQuery", "cube_question"]

Bound = Literal["rows", "image"]

MOST_CELLS = 50_000_000
MOST_TABLES = 200_000
MEASURES = ("count", "sum", "mean")


@dataclass(frozen=True, slots=True)
class CubeQuery:
    """Tables over columns with public values, what is measured in their cells, and the noise that this gets.

    Args:
        table: the Ibis table. unit: column or columns that name the units of privacy, or None where each row is one.
        columns: the cube's columns. plans: the noise of each layer, in rows. measures: what is asked of every cell.
        where, some: the condition, and in words. guarantee: the price of all of it. contribution: rows' worth that a
        unit may add; 1 where it is to be chosen (auto). bound: how a unit's rows are measured. clipping_share: part of
        psi^2 that goes into counting units by their size. wanted: the wanted error of each table, where errors are
        wanted. reads: the types in which untyped columns are read. readings: how where and the columns read those
        without a type.
    """

    table: Any
    unit: Unit
    columns: tuple[CubeColumn, ...]
    plans: tuple[ResidualPlan, ...]
    measures: tuple[Aggregate, ...]
    where: Any
    some: str
    guarantee: Guarantee
    contribution: float
    bound: Bound
    confidence: float
    balance: str
    auto: bool = False
    clipping_share: float = 0.0
    wanted: tuple[float, ...] = ()
    reads: Mapping[str, str] = field(default_factory=dict)
    price: str = ""
    readings: tuple[Reading, ...] = ()

    @property
    def marginals(self) -> Marginals:
        """The tables and their residuals."""
        return self.plans[0].marginals

    @property
    def layers(self) -> tuple[Layer, ...]:
        """What a row adds to each cell, one number for each layer."""
        return tuple(layer for a in self.measures for layer in layers_of(a))

    @property
    def psi_of_norms(self) -> float:
        """psi of counting units by their size."""
        return self.guarantee.psi * sqrt(self.clipping_share) * SAFETY

    def chosen(self, contribution: float) -> "CubeQuery":
        """The query with this contribution instead of 1: noise is larger by as much, and all else the same."""
        plans = tuple(plan.scaled(contribution) for plan in self.plans)
        return replace(self, contribution=contribution, plans=plans)

    @property
    def totals(self) -> CubeTotals:
        """The query for the exact totals of the maximal tables."""
        rows = self.table if self.where is None else self.table.filter(self.where)
        bound: RowBound | ImageBound | None = None
        if self.unit is not None:
            rows_bound = RowBound(self.contribution)
            bound = rows_bound if self.bound == "rows" else ImageBound(self.contribution, gram(self.plans, self.layers))
        return CubeTotals(
            with_types(rows, self.reads), self.unit, self.columns, self.marginals.maximal, self.layers, bound,
            measured=self.clipping_share > 0.0,
        )  # fmt: skip

    @property
    def adjacency_doubles(self) -> bool:
        """Whether a unit that is replaced moves further than one that joins."""
        return self.guarantee.adjacency == "replace-one"

    def names(self, table: Table) -> tuple[str, ...]:
        """The columns of a table by name."""
        return tuple(self.columns[i].name for i in table)

    def to_dict(self) -> dict[str, Any]:
        """What makes two cubes the same, as plain values; not the noise, which follows from them."""
        return {
            "kind": "cube",
            "columns": columns_to(self.columns),
            "tables": [list(table) for table in self.marginals.tables],
            "measures": [a.to_dict() for a in self.measures],
            "rows": rows_in_words(self.table, self.where),
            "schema": {name: str(kind) for name, kind in self.table.schema().items()},
            "unit": pinned(self.unit),
            "guarantee": self.guarantee.to_dict(),
            "contribution": "auto" if self.auto else self.contribution,
            "clipping_share": self.clipping_share,
            "bound": self.bound,
            "balance": self.balance,
            "errors": list(self.wanted),
            "confidence": self.confidence,
        }


def cube_question(
    table: Any,
    unit: Unit,
    *,
    columns: Mapping[str, Any],
    tables: UpTo | Iterable[str | Sequence[str]],
    measures: Sequence[Aggregate],
    psi: float | None,
    errors: Errors | None,
    balance: Balance,
    contribution: Contribution,
    clipping_share: float,
    bound: Bound,
    where: Any,
    adjacency: Adjacency,
    protects: str,
    confidence: float,
    source: Any,
    untyped: frozenset[str],
    readings: Iterable[Reading] = (),
) -> CubeQuery:
    """The question, or a refusal that looked at schema and parameters alone."""
    _check_choices(psi, errors, balance, contribution, bound, confidence, unit)
    check_clipping_share(clipping_share)
    auto = contribution == "auto"
    share = 0.0 if unit is None else AUTO_SHARE if auto else float(clipping_share)
    worth = 1.0 if auto else float(contribution or 1.0)
    reads, cube = _columns(columns, table, unit, source, untyped)
    reads |= {a.column: "float64" for a in measures if isinstance(a, Aggregate) and a.column in untyped}
    _check_reads(cube, measures, untyped)
    schema = with_types(table, reads).schema()
    asked = _measures(measures, schema)
    marginals = Marginals(tuple(map(_basis, cube)), _tables(tables, [c.name for c in cube]))
    _check_size(marginals, cube, bound)
    plans, cost = priced(
        marginals, [c.name for c in cube], asked, errors=errors, balance=balance, contribution=worth, unit=unit,
        psi=None if psi is None else psi * sqrt(1.0 - share) * (SAFETY if share else 1.0), adjacency=adjacency,
    )  # fmt: skip
    cost = float(psi) if psi is not None else cost / (sqrt(1.0 - share) * SAFETY) if share else cost
    for scaled, layer in zip(plans, (layer for a in asked for layer in layers_of(a)), strict=True):
        check_noise(scaled.scaled(MOST_ROWS) if auto else scaled, layer.steps * (1 if unit is None else 2**20))
    seen = dict.fromkeys((*readings, *((name, reads.get(name, "string")) for name in columns if name in untyped)))
    rule = None if where is None else condition(table, where, untyped, seen)
    some = "" if rule is None else in_words(table, where)
    guarantee = Guarantee(cost, 0.0, adjacency, protects)
    return CubeQuery(
        table, unit, cube, plans, asked, rule, some, guarantee, worth, bound, confidence,
        "errors" if errors is not None else balance, auto, share,
        () if errors is None else tuple(wanted_errors(marginals, errors, [c.name for c in cube]).values()), reads,
        readings=tuple(seen),
    )  # fmt: skip


def _check_choices(
    psi: Any, errors: Any, balance: Any, contribution: Any, bound: Any, confidence: Any, unit: Unit
) -> None:
    if (psi is None) == (errors is None):
        raise ValueError(
            "a cube must have psi (what it costs) or errors (standard errors that are wanted), one of them."
        )
    if psi is not None and not LEAST_PSI <= symbol("psi").number(psi) <= MOST_PSI:
        raise ValueError(f"psi ({symbol('psi').meaning}) must be in [2^-30, 2^10] for a cube, got psi={psi}.")
    if balance not in ("worst", "total"):
        raise ValueError(f'balance (which error is least) must be "worst" or "total", got balance={balance!r}.')
    if bound not in ("rows", "image"):
        raise ValueError(f'bound (how a unit\'s rows are measured) must be "rows" or "image", got bound={bound!r}.')
    check_contribution(contribution)
    if contribution == "auto" and errors is not None:
        raise ValueError(
            'contribution must be a number where errors are wanted: how large they get hangs on it, got "auto".'
        )
    if unit is None and not (contribution == 1 and bound == "rows"):
        raise ValueError(
            'contribution must be 1 and bound "rows" where every row is its own unit, '
            f"got contribution={contribution!r}, bound={bound!r}."
        )
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence (chance that an interval covers) must be in (0, 1), got confidence={confidence}.")


def _columns(
    columns: Mapping[str, Any], table: Any, unit: Unit, source: Any, untyped: frozenset[str]
) -> tuple[dict[str, str], tuple[CubeColumn, ...]]:
    """The columns with their public values, and the types in which untyped ones are read."""
    if not (isinstance(columns, Mapping) and columns):
        raise TypeError(
            'columns must map names to public values, such as {"ward": ["A", "B"], "age": ask.bins([0, 18])}.'
        )
    if unit is not None and set(columns_of(unit)) <= set(columns):
        raise ValueError(
            f"columns must not name the unit's own column, got {unit_words(unit)!r}: every cell would be one unit."
        )
    reads: dict[str, str] = {}
    found = []
    for name, values in columns.items():
        need_column(name, table.schema(), "columns")
        if isinstance(values, PrivateGroups):
            raise ValueError(
                f"values of {name!r} must be public in a cube: its noise is planned before any row is read."
            )
        if isinstance(values, Bins):
            reads |= {name: "float64"} if name in untyped else {}
            found.append(CubeColumn(name, edges=values.edges, ordered=values.ordered))
            continue
        _refuse_own(values, name, table, source)
        given = key_tuples(values, (name,), table.schema())
        reads |= key_types(given, (name,), untyped & {name})
        schema = with_types(table, {k: v for k, v in reads.items() if k == name}).schema()
        if schema[name].is_floating() or (name in untyped and any(isinstance(value, float) for (value,) in given)):
            raise TypeError(
                f"column {name!r} of fractions must be cut into bins in a cube: ask.bins(edges) or ask.ordered(edges), "
                "--bins or --ordered on the command line."
            )
        check_kind(name, schema[name])
        found.append(CubeColumn(name, keys=tuple(key for (key,) in public_groups(given, (name,), schema))))
    return reads, tuple(found)


def _refuse_own(values: Any, name: str, table: Any, source: Any) -> None:
    """Refuse values that come from the table itself."""
    try:
        refuse_own_groups(values, (name,), table, source)
    except ValueError:
        raise ValueError(
            f"values of {name!r} must not come from the table itself: each would be shown merely because somebody has "
            "it. Give those that are known without it."
        ) from None


def _check_reads(cube: Sequence[CubeColumn], measures: Sequence[Any], untyped: frozenset[str]) -> None:
    """Refuse a column without a type that is asked for its numbers and for its values at once."""
    measured = {a.column for a in measures if isinstance(a, Aggregate)}
    for column in cube:
        if column.keys and column.name in untyped and column.name in measured:
            raise ValueError(
                f"column {column.name!r} has no type, and is asked for its numbers and for its values at once. "
                f'Declare what it holds: types={{{column.name!r}: "int64"}}.'
            )


def _measures(measures: Sequence[Any], schema: Any) -> tuple[Aggregate, ...]:
    """The measures, each of a kind that a cube has."""
    check_asks(measures, schema)
    for a in measures:
        if a.kind not in MEASURES:
            raise ValueError(f"a cube must measure {', '.join(MEASURES)}, got {a.name!r}. Ask for it in a release.")
        if a.weights is not None or a.top:
            raise ValueError(f"a cube must measure {', '.join(MEASURES)}, got {a.name!r}. Ask for it in a release.")
        if a.bounds is not None:
            raise ValueError(f"bounds of {a.column!r} must be given in a cube, whose noise is planned before any row.")
        if a.contribution is not None:
            raise ValueError("contribution must be the same for all measures of a cube: give it to the cube itself.")
    return tuple(replace(a, contribution=None) for a in measures)


def _basis(column: CubeColumn) -> Basis:
    return ordered(column.size) if column.ordered else Haar(column.size)


def _tables(tables: Any, names: Sequence[str]) -> tuple[Table, ...]:
    """The wanted tables as ascending numbers of columns."""
    if isinstance(tables, UpTo):
        order = min(tables.order, len(names))
        if not sum(comb(len(names), k) for k in range(1, order + 1)) <= MOST_TABLES:
            raise ValueError(
                f"tables must be at most {MOST_TABLES:,}, got all of up to {order} of {len(names)} columns."
            )
        return tuple(t for k in range(1, order + 1) for t in combinations(range(len(names)), k))
    if isinstance(tables, str) or not isinstance(tables, Iterable):
        raise TypeError(f'tables must be psidp.ask.up_to(2) or a list such as [("ward", "age")], got {tables!r}.')
    found = []
    for given in tables:
        table = (given,) if isinstance(given, str) else tuple(given)
        strange = [name for name in table if name not in names]
        if strange:
            raise ValueError(f"a table must be made of the cube's columns ({', '.join(names)}), got {strange[0]!r}.")
        if len(set(table)) < len(table):
            raise ValueError(f"a table must name different columns, got {', '.join(table)}.")
        found.append(tuple(sorted(names.index(name) for name in table)))
    if not 0 < len(found) <= MOST_TABLES:
        raise ValueError(f"tables must be 1 to {MOST_TABLES:,}, got {len(found)}.")
    return tuple(dict.fromkeys(found))


def _check_size(marginals: Marginals, cube: Sequence[CubeColumn], bound: Bound) -> None:
    cells = sum(marginals.cells(table) for table in marginals.tables)
    if not cells <= MOST_CELLS:
        raise ValueError(
            f"tables must have at most {MOST_CELLS:,} cells together, got {cells:,}. Ask for fewer columns together, "
            "or for coarser ones."
        )
    if bound == "image" and any(column.ordered for column in cube):
        raise ValueError(
            'bound must be "rows" where a column is ordered: for the image norm that is not proved. Or cut the column '
            "by ask.bins instead of ask.ordered (--bins, not --ordered)."
        )
    if bound == "image" and not len(cube) <= MOST_COLUMNS:
        raise ValueError(f'bound must be "rows" for a cube of more than {MOST_COLUMNS} columns, got {len(cube)}.')
