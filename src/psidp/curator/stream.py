"""Stream: statistics of a table that are published again in every period, at one price paid once."""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

from psidp.curator.answer import packed
from psidp.curator.calendar import Calendar, as_date
from psidp.curator.counted import CAPPED, can_cap, counted_words
from psidp.curator.engine import Engine
from psidp.curator.groups import Key
from psidp.curator.query import Query
from psidp.curator.readings import readings_words
from psidp.curator.seal import Seal
from psidp.curator.stream_numbers import Published, StreamNumbers
from psidp.curator.stream_question import Place
from psidp.curator.stream_totals import ArrivedTotals, PeriodTotals, SealedTotals, StreamRows
from psidp.curator.unit import pinned, unit_words
from psidp.ledger.actor import CLIPPED
from psidp.mechanism.stream_plan import StreamPlan
from psidp.mechanism.stream_record import StreamRecord
from psidp.mechanism.stream_series import drawn
from psidp.mechanism.stream_store import TABLE, LedgerStore
from psidp.strategies import Participation, Workload
from psidp.symbols import whole

__all__ = ["WAIT", "Stream"]

WAIT = datetime.timedelta(hours=1)
"""How long after its end a period is published, so that what arrived in it is there."""


class Stream:
    """Statistics that go on: planned without reading a row, paid for once, published period by period.

    `psidp.Curator.stream` makes one; what its arguments mean is said there.

    Guarantees:
        All numbers of all periods together have psi for one unit's whole data (docs/design/streams.md): if rows only
        ever arrive, the column `arrived` says when, and what arrived in a period that is over does not change; or if
        totals are sealed, whatever happens to the table, while the seal is kept. Which of a unit's periods count is
        decided from what is known in them and before.
    """

    def __init__(
        self,
        name: str,
        query: Query,
        engine: Engine,
        calendar: Calendar,
        participation: Participation,
        place: Place,
        *,
        untyped: bool,
        windows: Iterable[int],
        wait: datetime.timedelta,
        ledger: Any,
        budget: str,
        same_unit: str,
        table: str = "",
    ) -> None:
        self.name, self.calendar, self.participation, self.place = name, calendar, participation, place
        self._query, self._engine, self._wait, self._ledger = query, engine, wait, ledger
        rows = StreamRows(query, engine, calendar, participation, place.column, untyped)
        self._totals: PeriodTotals = ArrivedTotals(rows) if place.seal is None else SealedTotals(rows, Seal(place.seal))
        self.confidence = query.confidence
        self._saying: dict[str, Any] = {"unit_column": pinned(query.unit), "same_unit": same_unit, CLIPPED: True}
        self._saying |= {"table": table} if table else {}
        self._saying |= {"table_unit": unit_words(query.unit)} if query.unit else {}
        self._windows = sorted({whole("windows", length) for length in windows})
        workload = Workload.together(calendar.periods, self._windows)
        store = LedgerStore(ledger, budget, name)
        self._record = StreamRecord(store, self._asked(), workload, lambda: self._made(workload), self._parts)

    def __repr__(self) -> str:
        terms = f"every {self.calendar.every} since {self.calendar.since}, {self.participation}"
        return f"Stream({self.name!r}, {terms})"

    def plan(self) -> StreamPlan:
        """Cost, strategy and errors of every question, from the first period to the last; reads no row, spends nothing.

        Once the stream is open, the plan that was stored.
        """
        return replace(self._record.plan(), counted=self.counted)

    @property
    def counted(self) -> str:
        """What the numbers count and what they leave out, in words."""
        said = counted_words(self._query, self.participation, self.calendar, sealed=self.place.seal is not None)
        return " ".join(filter(None, (self._query.price, said, readings_words(self._query.readings))))

    @property
    def capped(self) -> bool:
        """Whether the cap can leave out something, so that numbers are not those of all rows."""
        return any(self.flags().values())

    @property
    def sql(self) -> str:
        """The text that the last period would run."""
        return self._engine.sql(self._totals.expression)

    def open(self, purpose: str = "") -> Self:
        """The stream, paid for. Opening again, after a restart or from another process, costs nothing."""
        self._engine.check_keys(self._query.rows, self._query.by)  # or no period could be published
        self._record.open(purpose, self._saying)
        return self

    def publish(self) -> list[Published]:
        """Single-period numbers of all periods that are over and were not published, and are now; none if all were.

        Each is stored before it is shown, and drawn once, however often, from however many processes this is called.
        """
        before = len(self._record.released())
        last = self.calendar.over(self._ledger.now() - self._wait)
        if last > before:
            rows = self._totals.until(last, self._record)
            for period in range(before + 1, last + 1):
                if self._record.release(period, lambda t=period: self._drawn(rows, t)):  # type: ignore[misc]
                    self._totals.check(self._record)
        return self._answered("single period", before)

    @property
    def published(self) -> int:
        """How many periods are published, by any process."""
        return len(self._record.released())

    def series(self, question: str = "total to date", *group: Any) -> list[Published]:
        """The "single period" or "total to date" of every period so far, of all groups or of one."""
        return self._of_group(self._answered(question), group)

    def window(self, length: int, *group: Any) -> list[Published]:
        """The sum of the last `length` periods, in every period that has so many."""
        return self._of_group(self._answered(whole("length", length)), group)

    def value(self, date: datetime.date | str, *group: Any, question: str = "single period") -> list[Published]:
        """The numbers of the period that a date lies in, one for each group and statistic."""
        begin = self.calendar.begin(self.calendar.period(as_date("date", date)))
        rows = [row for row in self._of_group(self._answered(question), group) if row.period == begin]
        if not rows:
            raise ValueError(f"date must lie in a published period, {self.published} so far, got date={date}.")
        return rows

    def between(self, first: datetime.date | str, last: datetime.date | str, *group: Any) -> list[Published]:
        """The sum of the periods in which two dates lie and of all between."""
        ends = [self.calendar.period(as_date(name, day)) for name, day in (("first", first), ("last", last))]
        released = self._record.released()
        if not ends[0] <= ends[1] <= len(released):
            over = f", {self.calendar.since} to {self._last_day(len(released))}" if released else "; there is none yet"
            raise ValueError(
                f"first and last must lie in published periods{over}, the first no later than the last, got "
                f"first={first} and last={last}."
            )
        return self._of_group(self._numbers().between(released, *ends), group)

    def _last_day(self, period: int) -> datetime.date:
        return self.calendar.begin(period + 1) - datetime.timedelta(days=1)

    def _answered(self, question: str | int, after: int = 0) -> list[Published]:
        """The answers to a question in all periods that are published, or in those after one."""
        return self._numbers().answered(self._record.released(), question, after)

    def _numbers(self) -> StreamNumbers:
        return StreamNumbers(self.plan(), self.calendar, self._groups, self.flags(), self._query.confidence)

    def flags(self) -> dict[str, str]:
        """The flag of each statistic."""
        unit, told = self._query.unit, (len(self._groups), self.participation, self.calendar)
        return {a.name: CAPPED if can_cap(unit, *told, a) else "" for a in self._query.asks}

    def _of_group(self, rows: list[Published], group: tuple[Any, ...]) -> list[Published]:
        if not group:
            return rows
        key = group[0] if isinstance(group[0], tuple) else group
        if key not in self._groups:
            some = "; ".join(", ".join(map(repr, known)) for known in self._groups[:6])
            more = f" and {len(self._groups) - 6} more" if len(self._groups) > 6 else ""
            raise KeyError(f"no group {', '.join(map(repr, key))} in this stream, which has {some}{more}.")
        return [row for row in rows if row.group == key]

    @property
    def _groups(self) -> tuple[Key, ...]:
        return self._totals.rows.groups

    def _parts(self) -> list[tuple[str, int, int]]:
        """Each statistic, the norm of what a unit adds to a period, and its step."""
        grids = self._totals.rows.grids
        return [(a.name, grid.bound, grid.unit) for a, grid in zip(self._query.asks, grids, strict=True)]

    def _made(self, workload: Workload) -> StreamPlan:
        asks, terms = self._query.asks, self._query.guarantee
        parts = [(*part[:2], a.weight, part[2]) for a, part in zip(asks, self._parts(), strict=True)]
        return StreamPlan.made(parts, workload, self.participation, terms.psi, terms.adjacency, terms.unit)

    def _drawn(self, rows: Sequence[Sequence[int]], last: int) -> list[int]:
        """What a period releases: one whole number for each statistic and group; and the marks of a seal."""
        plan, groups = self.plan(), len(self._groups)
        parts = [part for part in plan.parts for _ in range(groups)]
        numbers = [drawn(plan, part, [row[i] for row in rows[:last]]) for i, part in enumerate(parts)]
        return numbers + self._totals.marks(last)

    def _asked(self) -> dict[str, Any]:
        """What makes two streams the same, as plain values. The table's other columns may change over the years."""
        query = self._query
        return {
            "asks": [a.to_dict() for a in query.asks],
            "by": list(query.by),
            "groups": [list(map(packed, key)) for key in self._groups],
            "where": query.some,
            "psi": query.guarantee.psi,
            ("arrived" if self.place.seal is None else "sealed"): self.place.column,
            "every": self.calendar.every,
            "since": self.calendar.since.isoformat(),
            "periods": self.calendar.periods,
            "windows": self._windows,
            **({TABLE: self.place.table} if self.place.seal is None else {}),
        } | self.participation.to_dict()
