"""Exact totals of a stream's periods, as the engine counts them: all of them again, or each once and then sealed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from psidp.curator.calendar import Calendar
from psidp.curator.column_types import with_types
from psidp.curator.contribution import grid_of
from psidp.curator.contribution_sql import Totals
from psidp.curator.engine import Engine
from psidp.curator.groups import Key, key_filter, plain_key
from psidp.curator.period_cap import PeriodCap
from psidp.curator.query import Query
from psidp.curator.row_sql import ibis_library
from psidp.curator.seal import Bar, Seal, Sealed
from psidp.mechanism.clipping import IntegerGrid
from psidp.mechanism.stream_record import StreamRecord
from psidp.strategies import Participation

__all__ = ["ArrivedTotals", "PeriodTotals", "SealedTotals", "StreamRows"]

NUMBER, NAMED = "psidp_period", "psidp_unit"
Row = Sequence[int]


@dataclass(frozen=True, slots=True)
class StreamRows:
    """The rows of a question by period, and the query that adds them up.

    Args:
        query: what is asked. engine: where. calendar: the periods. participation: in how many of them a unit counts.
        column: the column that says in which period a row counts. untyped: it is text that reads as instants.
    """

    query: Query
    engine: Engine
    calendar: Calendar
    participation: Participation
    column: str
    untyped: bool

    @property
    def groups(self) -> tuple[Key, ...]:
        """The groups, in their order."""
        return tuple(self.query.groups)  # type: ignore[arg-type]

    @property
    def grids(self) -> list[IntegerGrid]:
        """The whole numbers in which each aggregate is counted."""
        fixed = zip(self.query.asks, self.query.fixed(), strict=True)
        return [grid_of(a, contribution, len(self.groups)) for a, contribution in fixed]

    def cap(self) -> PeriodCap | None:
        """The rule that makes the promise about a unit's periods true; none where it promises nothing."""
        promise, periods = self.participation, self.calendar.periods
        buckets = None
        if promise.each is not None:
            buckets = tuple(start + 1 for start in Participation(each=promise.each).starts(periods))
        cap = PeriodCap(promise.at_most, min(promise.apart, periods), buckets)
        return None if self.query.unit is None or cap == PeriodCap(periods) else cap

    def numbered(self, first: int, last: int) -> Any:
        """Rows of the groups asked for in periods first to last, with the number of their period."""
        query, rows = self.query, self.query.rows
        if query.by and query.unit is not None:
            rows = rows.filter(key_filter(rows, query.by, self.groups))
        rows = with_types(rows, {self.column: "timestamp"}) if self.untyped else rows
        return self.calendar.numbered(rows, self.column, first, last, NUMBER)

    def totals(self, rows: Any, cap: PeriodCap | None) -> Totals:
        """The query for the exact totals of numbered rows."""
        query = self.query
        parts = tuple(zip(query.asks, self.grids, strict=True))
        return Totals(rows, query.unit, query.by, parts, self.engine.narrow, (), NUMBER, cap)

    def exact(self, totals: Totals) -> dict[tuple[Key, int], list[int]]:
        """Exact totals by group and period, one for each aggregate, in steps."""
        self.engine.check_keys(self.query.rows, self.query.by)
        width, found = len(totals.groups), {}
        coordinates = [c for (c,) in totals.coordinates]
        for row in self.engine.rows(totals.expression()):
            key = tuple(plain_key(value) for value in row[: width - 1])
            steps = [int(value or 0) for value in row[width:]]
            if totals.unit is None:
                steps = [c.in_steps(n) for c, n in zip(coordinates, steps, strict=True)]
            found[key, int(row[width - 1])] = steps
        return found

    def cells(self, found: dict[tuple[Key, int], list[int]], period: int) -> list[int]:
        """The totals of a period, one number for each statistic and group."""
        nothing = [0] * len(self.query.asks)
        return [found.get((key, period), nothing)[j] for j in range(len(nothing)) for key in self.groups]


class PeriodTotals(Protocol):
    """Where a stream has its exact totals from."""

    rows: StreamRows

    def until(self, last: int, record: StreamRecord) -> list[Row]:
        """The totals of periods 1 to last, one number for each statistic and group, in the order of the cells."""

    def check(self, record: StreamRecord) -> None:
        """Refuse to go on where what was published was made from something else."""

    def marks(self, period: int) -> list[int]:
        """What is stored beside the numbers that a period releases."""

    @property
    def expression(self) -> Any:
        """What the last period would run."""


@dataclass(slots=True)
class ArrivedTotals:
    """All periods computed again in one query: rows only ever arrive, and the column says when."""

    rows: StreamRows

    @property
    def expression(self) -> Any:
        """What the last period would run."""
        return self._query(self.rows.calendar.periods).expression()

    def until(self, last: int, record: StreamRecord) -> list[Row]:
        """The totals of periods 1 to last."""
        found = self.rows.exact(self._query(last))
        return [self.rows.cells(found, period) for period in range(1, last + 1)]

    def check(self, record: StreamRecord) -> None:
        """Nothing to check: what arrived does not change."""

    def marks(self, period: int) -> list[int]:
        """Nothing."""
        return []

    def _query(self, last: int) -> Totals:
        return self.rows.totals(self.rows.numbered(1, last), self.rows.cap())


@dataclass(slots=True)
class SealedTotals:
    """Each period computed once, from the table as it is then, and sealed; what is sealed is never read again.

    The units that count in a period are named first, without those that counted too often before; then the rows of
    those named are added up, and totals and names are sealed together. Whatever changes between the two queries, only
    units that were named are in the totals.
    """

    rows: StreamRows
    seal: Seal
    stream: str = ""
    _sealed: list[Sealed] | None = None

    @property
    def expression(self) -> Any:
        """What the last period would run, for all units."""
        last = self.rows.calendar.periods
        return self.rows.totals(self.rows.numbered(last, last), None).expression()

    def until(self, last: int, record: StreamRecord) -> list[Row]:
        """The totals of periods 1 to last: those that are sealed, and the others sealed now."""
        self.stream = record.identity
        for period in range(len(self._agreed(record)) + 1, last + 1):
            self._count(period)
        self._sealed = self.seal.periods(self.stream)
        return [sealed.totals for sealed in self._agreed(record)[:last]]

    def check(self, record: StreamRecord) -> None:
        """Refuse to go on where somebody published from another seal."""
        self._agreed(record)

    def marks(self, period: int) -> list[int]:
        """The mark of a sealed period."""
        assert self._sealed is not None
        return [self._sealed[period - 1].mark]

    def _agreed(self, record: StreamRecord) -> list[Sealed]:
        """What is sealed; refused where it is not what the published numbers were made of."""
        self._sealed = self.seal.periods(self.stream)
        published = [row[-1] for row in record.released()]
        if [sealed.mark for sealed in self._sealed[: len(published)]] != published:
            raise ValueError(
                f"seal (file that keeps the totals of closed periods) must be the one that the {len(published)} "
                f"published periods were made from, got seal={str(self.seal.path)!r}. Bring that file back. A stream "
                "whose seal is lost has come to its end: what it published stays, and a new stream has a price of its "
                "own."
            )
        return self._sealed

    def _count(self, period: int) -> None:
        """Seal a period."""
        here = self.rows.numbered(period, period)
        units = self._named(here, period) if self.rows.cap() else []
        if self.rows.cap() is None:
            found = self.rows.exact(self.rows.totals(here, None))
        elif units:
            found = self.rows.exact(self.rows.totals(self._of(here, units), None))
        else:
            found = {}
        self.seal.keep(self.stream, period, self.rows.cells(found, period), units)

    def _named(self, here: Any, period: int) -> list[str]:
        """The units that have rows in a period and may count in it."""
        self.rows.engine.check_keys(self.rows.query.rows, [str(self.rows.query.unit)])
        unit = here[self.rows.query.unit]
        named = here.filter(unit.notnull()).select(**{NAMED: unit.cast("string")}).distinct()
        barred = self.seal.barred(self.stream, self._bar(period))
        return [name for (name,) in self.rows.engine.rows(named) if name not in barred]

    def _bar(self, period: int) -> Bar:
        """Who counted too often, too lately, or in this bucket."""
        cap = self.rows.cap() or PeriodCap()
        starts = [start for start in cap.buckets or (period,) if start <= period]
        most = self.rows.calendar.periods if cap.at_most is None else cap.at_most
        return Bar(period, most, cap.apart, starts[-1])

    def _of(self, here: Any, units: list[str]) -> Any:
        """The rows of these units."""
        import pyarrow as pa

        chosen = ibis_library().memtable(pa.table({NAMED: pa.array(units, pa.string())}))
        named = here.mutate(**{NAMED: here[self.rows.query.unit].cast("string")})
        return named.semi_join(chosen, NAMED).drop(NAMED)
