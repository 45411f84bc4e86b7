"""Streams: measures that are published again in every period, at one price paid once."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, Unpack

import numpy as np

from psidp.errors import KeyConflictError
from psidp.maths.notion import Notions, spelled_out
from psidp.mechanism.stream_plan import StreamPlan
from psidp.mechanism.stream_record import StreamRecord
from psidp.mechanism.stream_series import drawn
from psidp.mechanism.stream_store import TABLE, LedgerStore
from psidp.strategies import Participation
from psidp.symbols import whole
from psidp.tables.ask import Ask, Cap
from psidp.tables.calendar import Calendar, as_date
from psidp.tables.choices.private_groups import PrivateGroups
from psidp.tables.conditions import Condition, readings_words
from psidp.tables.counted import clipped_asks, counted_words, flags_of
from psidp.tables.question import Priced, Question
from psidp.tables.series import Published, Series
from psidp.tables.sources.source import Source
from psidp.tables.strategies.toeplitz import Toeplitz
from psidp.tables.table import TableQuestion
from psidp.tables.words import read_as_numbers

__all__ = ["WAIT", "Stream", "StreamQuestion", "lasting_groups", "stream_question"]

WAIT = datetime.timedelta(hours=1)
"""How long after its end a period is published, so that what arrived in it is there."""


@dataclass(frozen=True, slots=True)
class StreamQuestion(Question):
    """What a stream publishes in every period: `Curator.stream` makes one; `plan` says what it would cost and be worth,
    `open` pays for all periods.

    Args:
        name: of the stream in the ledger. wait: how long after its end a period is published.
    """

    name: str = ""
    wait: datetime.timedelta = WAIT

    @spelled_out
    def plan(self, psi: float | None = None, **notions: Unpack[Notions]) -> StreamPlan:
        """Cost, strategy and errors from the first period to the last; once the stream is open, the plan that was
        stored. Reads no row and spends nothing."""
        return self.priced(psi, **notions).plan()

    @spelled_out
    def open(self, psi: float | None = None, *, purpose: str = "", **notions: Unpack[Notions]) -> "Stream":
        """The stream, paid for. Opening again, after a restart or from another process, costs nothing.

        psi: what all periods cost together; or a notion, such as epsilon=1, delta=1e-6.
        """
        return self.priced(psi, **notions).open(purpose)

    @spelled_out
    def priced(self, psi: float | None = None, **notions: Unpack[Notions]) -> "Stream":
        """The stream at its price, which is not paid here: to publish and read where another process opened it."""
        return Stream(self.at_notion(psi, notions))

    def to_dict(self) -> dict[str, Any]:
        """The question as plain values."""
        return {**Question.to_dict(self), "name": self.name, "wait": self.wait.total_seconds()}


@dataclass(eq=False)
class Stream:
    """Statistics that go on: planned without reading a row, paid for once, published period by period.

    Guarantees:
        All numbers of all periods together have psi for one unit's whole data (docs/design/streams.md), if rows only
        ever arrive, the column `arrived` says when, and what arrived in a period that is over does not change. Which of
        a unit's periods count is decided from what is known in them and before.
    """

    priced: Priced
    _record: StreamRecord = field(init=False, repr=False)

    def __post_init__(self) -> None:
        payment = self.question.curator.payment
        store = LedgerStore(payment.ledger, payment.budget, self.name)
        asked, layout, priced = self._asked(store), self.layout, self.priced
        self._record = StreamRecord(
            store, asked, layout.workload, lambda: layout.plan(priced), lambda: layout.parts(priced)
        )

    @property
    def question(self) -> StreamQuestion:
        """What is asked."""
        question: StreamQuestion = self.priced.question  # type: ignore[assignment]
        return question

    @property
    def layout(self) -> Toeplitz:
        """Groups and periods."""
        layout: Toeplitz = self.priced.layout
        return layout

    @property
    def name(self) -> str:
        """What it is called in the ledger."""
        return self.question.name

    @property
    def calendar(self) -> Calendar:
        """The periods."""
        return self.layout.calendar

    def __repr__(self) -> str:
        terms = f"every {self.calendar.every} since {self.calendar.since}, {self.layout.promise}"
        return f"Stream({self.name!r}, {terms})"

    def plan(self) -> StreamPlan:
        """Cost, strategy and errors; once the stream is open, as they were stored."""
        plan, adjacency = self._record.plan(), self.priced.adjacency
        if plan.adjacency != adjacency:
            raise KeyConflictError(
                f"adjacency must be {plan.adjacency!r}, for which stream {self.name!r} was opened, got {adjacency!r}."
            )
        return replace(plan, counted=self.counted)

    @property
    def counted(self) -> str:
        """What the numbers count and what they leave out, in words."""
        priced, layout = self.priced, self.layout
        clipped = clipped_asks(priced.asks, layout.cells)
        words = counted_words(priced.guarantee.unit, priced.unit, clipped, layout.promise, layout.calendar)
        numbers = (note.text for note in read_as_numbers(priced))
        return " ".join(filter(None, (priced.note, words, readings_words(self.question.readings), *numbers)))

    @property
    def flags(self) -> dict[str, str]:
        """The flag of each measure."""
        layout, priced = self.layout, self.priced
        return flags_of(priced.asks, layout.cells, layout.promise, layout.calendar.periods, alone=priced.alone)

    @property
    def capped(self) -> bool:
        """Whether the cap can leave out something, so that numbers are not those of all rows."""
        return any(self.flags.values())

    @property
    def sql(self) -> list[str]:
        """The texts that the last period would run."""
        return self.priced.totals.sql(self.priced.source, self.priced.dialect)

    def open(self, purpose: str = "") -> Self:
        """The stream, paid for. Opening again, after a restart or from another process, costs nothing."""
        priced, payment = self.priced, self.question.curator.payment
        priced.source.exact_text(self.layout.by)  # or no period could be published
        self.plan()  # refuses another adjacency than that of a stream that is open
        more = payment.event | {name: value for name, value in payment.named.items() if value}
        self._record.open(purpose, more)
        return self

    def publish(self) -> list[Published]:
        """Single-period numbers of all periods that are over and were not published, and are now; none if all were.

        Each is stored before it is shown, and drawn once, however often, from however many processes this is called.
        """
        before = len(self._record.released())
        last = self.calendar.over(self.question.curator.ledger.now() - self.question.wait)
        if last > before:
            totals = self._totals(last)
            for period in range(before + 1, last + 1):
                self._record.release(period, self._draw(totals, period))
        return self._answered("single period", before)

    @property
    def published(self) -> int:
        """How many periods are published, by any process."""
        return len(self._record.released())

    def series(self, question: str = "total to date", *group: Any) -> list[Published]:
        """The "single period" or "total to date" of every period so far, of all groups or of one."""
        return self._of_group(self._answered(question), group)

    def window(self, length: int, *group: Any) -> list[Published]:
        """The sum of the last `length` periods, in every period that has that many."""
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
            end = self.calendar.begin(len(released) + 1) - datetime.timedelta(days=1)
            over = f", {self.calendar.since} to {end}" if released else "; there is none yet"
            raise ValueError(
                f"first and last must lie in published periods{over}, the first no later than the last, got "
                f"first={first} and last={last}."
            )
        return self._of_group(self._series.between(released, *ends), group)

    def _totals(self, last: int) -> np.ndarray:
        """Exact totals of periods 1 to `last`: a row for each period, and in it every cell of every measure."""
        priced = self.priced.asking(layout=replace(self.layout, last=last))
        exact = priced.totals.exact(priced.source, priced.dialect)
        parts = []
        for tables in exact.cells:
            (cells,) = tables.values()
            cells = cells if self.layout.by else cells[None]  # groups, periods, bins, coordinates
            parts.append(np.moveaxis(cells, 1, 0).reshape(last, -1).astype(object))
        return np.concatenate(parts, axis=1)

    def _draw(self, totals: np.ndarray, period: int) -> Callable[[], list[int]]:
        """What a period releases: one whole number for each cell."""

        def draw() -> list[int]:
            plan, vectors = self.plan(), self.priced.vectors
            sizes = [self.layout.cells * vector.bins * vector.parts for vector in vectors]
            parts = [part for part, size in zip(plan.parts, sizes, strict=True) for _ in range(size)]
            past = totals[:period]
            return [drawn(plan, part, [int(x) for x in past[:, i]]) for i, part in enumerate(parts)]

        return draw

    @property
    def _series(self) -> Series:
        return Series(
            self.plan(), self.calendar, self.layout.groups, self.priced.asks, self.flags, self.question.confidence
        )

    def _answered(self, question: str | int, after: int = 0) -> list[Published]:
        """The answers to a question in all periods that are published, or in those after one."""
        released = self._record.released()
        return self._series.answered(released, question, after) if len(released) > after else []

    def _of_group(self, rows: list[Published], group: tuple[Any, ...]) -> list[Published]:
        if not group:
            return rows
        groups = self.layout.groups
        key = group[0] if isinstance(group[0], tuple) else group
        if key not in groups:
            some = "; ".join(", ".join(map(repr, known)) for known in groups[:6])
            more = f" and {len(groups) - 6} more" if len(groups) > 6 else ""
            raise KeyError(f"no group {', '.join(map(repr, key))} in this stream, which has {some}{more}.")
        return [row for row in rows if row.group == key]

    def _asked(self, store: LedgerStore) -> dict[str, Any]:
        """What makes two streams the same, as plain values. The table's other columns may change over the years."""
        question, layout = self.question, self.layout
        asked = {
            **layout.to_dict(),
            "asks": [ask.to_dict() for ask in question.asks],
            "where": question.where.text if question.where else "",
            "psi": self.priced.guarantee.psi,
            TABLE: question.curator.home,
        }
        del asked["kind"]
        before = (store.stored() or {}).get("asked")
        if isinstance(before, Mapping) and TABLE not in before:  # opened by version 0.2, in fewer words and others
            return asked | ({"where": before["where"]} if self._same_condition(str(before.get("where", ""))) else {})
        readings: dict[str, Any] = question.curator.readings
        return asked | readings | ({"derived": dict(question.derived)} if question.derived else {})

    def _same_condition(self, text: str) -> bool:
        """Whether a condition as version 0.2 stored it is this stream's."""
        source, where = self.question.curator.source, self.question.where
        if not (text and where):
            return False
        try:
            return Condition.parse(text, source.schema, source.untyped).text == where.text
        except (TypeError, ValueError):
            return False


def stream_question(
    table: TableQuestion,
    name: str,
    calendar: Calendar,
    arrived: str,
    cap: Cap | None,
    windows: Sequence[int],
    wait: datetime.timedelta,
) -> StreamQuestion:
    """The table's question asked again in every period, or a refusal that looked at schema and parameters alone."""
    curator = table.curator
    if curator.ledger is None:
        raise ValueError("a stream needs a ledger and a budget, which keep its strategy and what it published.")
    if not wait >= datetime.timedelta(0):
        raise ValueError(f"wait (from the end of a period until it is published) must not be negative, got {wait}.")
    for ask in table.asks:
        _check(ask)
    has_unit = bool(curator.unit_columns)
    promise = _promise(cap, calendar, has_unit)
    column = _arrived(arrived, curator)
    lengths = tuple(sorted({whole("windows", length) for length in windows}))
    layout = Toeplitz(calendar, column, promise, table.layout.by, table.layout.groups, lengths, capped=has_unit)
    return StreamQuestion(
        table.asks, layout, table.where, table.confidence, 0.0, _read_arrived(table, column), curator,
        table.readings, table.derived, name=name, wait=wait,
    )  # fmt: skip


def lasting_groups(by: str | Sequence[str], groups: Any) -> Any:
    """The groups, or a refusal of those that could change while a stream goes on."""
    if by and groups is None:
        columns = by if isinstance(by, str) else ", ".join(map(str, by))
        raise ValueError(
            f"groups must be given for by={columns}: a list that does not depend on the data and stays for all "
            "periods. On the command line: --groups A,B,C or --groups groups.csv."
        )
    if isinstance(groups, PrivateGroups):
        raise ValueError("groups must be public in a stream: they cannot change while it goes on, got PrivateGroups.")
    return groups


def _check(ask: Ask) -> None:
    """Refuse what a stream cannot publish: it has no data to choose from, and its numbers add up over periods."""
    measure = ask.measure
    if measure.chooses_bounds:
        raise ValueError(f"bounds of {ask.name!r} must be given in a stream, which has no data to choose them.")
    if ask.contribution == "auto":
        raise ValueError('contribution must be a number in a stream, which has no data to choose it, got "auto".')
    if measure.simultaneous or measure.vector.within is not None:
        raise ValueError(
            "a stream must ask for measures that add up over periods, such as counts, sums and means, got "
            f"{ask.name!r}. Ask for it in a release."
        )


def _promise(cap: Cap | None, calendar: Calendar, has_unit: bool) -> Participation:
    """In how many periods a unit counts."""
    if not has_unit:
        if cap not in (None, Cap(), Cap(1)):
            raise ValueError("at_most must be 1 where every row is its own unit, which is in one period.")
        return Participation(1)
    if cap is None or cap == Cap():
        raise ValueError(
            "at_most (periods in which one unit counts) must be a whole number of at least 1, got at_most=None. Give "
            f"at_most, apart or each; at_most={calendar.periods} counts every period."
        )
    each: Any = cap.each
    each = calendar.bucket_lengths(each) if isinstance(each, str) else each  # type: ignore[arg-type]
    return Participation(cap.at_most, cap.apart, each)


def _read_arrived(table: TableQuestion, column: str) -> Source:
    """The table with the column of arrivals as instants. Refused where a measure or groups read it as something else:
    once the stream is paid for, no period could be published."""
    source = table.source
    if source.schema[column].temporal:
        return source
    if column not in source.untyped or column in table.layout.by:
        raise ValueError(
            f"column {column!r} has no type, and is asked for its instants and for its numbers or groups at once. "
            f'Declare what it holds: types={{{column!r}: "date"}}, or --type {column}:date.'
        )
    return source.reading({column: "timestamp"})


def _arrived(arrived: Any, curator: Any) -> str:
    """The column that says when a row came into the table."""
    source = curator.source
    if arrived not in source.schema:
        raise ValueError(f"arrived (when a row came into the table) must be a column of it, got arrived={arrived!r}.")
    if not (source.schema[arrived].temporal or arrived in source.untyped):
        raise TypeError(
            "arrived (when a row came into the table) must be a column of dates or instants, got "
            f"{arrived!r} of {source.schema[arrived]}."
        )
    return str(arrived)
