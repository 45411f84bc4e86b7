"""Numbers of a stream: what its periods released, decoded, with dates, groups and flags; the table is not needed."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple, Self

from psidp.curator.answer import unpacked
from psidp.curator.calendar import Calendar
from psidp.curator.counted import CAPPED, can_cap
from psidp.curator.cube_record import measure_from
from psidp.curator.groups import Key
from psidp.mechanism.stream_plan import StreamPart, StreamPlan
from psidp.mechanism.stream_series import Point, cell_points, named_question, range_point
from psidp.mechanism.stream_store import LedgerStore
from psidp.strategies import Workload

__all__ = ["Published", "StreamNumbers", "stored_numbers"]


class Published(NamedTuple):
    """One published number: the period (its first day) that it ends in, its group, standard error and interval.

    The flag is "capped" where the stream's cap can leave something out: then the interval is for what counts, and need
    not hold what the table has (`Stream.counted`).
    """

    period: datetime.date
    group: Key
    statistic: str
    value: float
    standard_error: float
    lower: float
    upper: float
    flag: str = ""


@dataclass(frozen=True, slots=True)
class StreamNumbers:
    """How the whole numbers that periods released are read."""

    plan: StreamPlan
    calendar: Calendar
    groups: tuple[Key, ...]
    flags: Mapping[str, str]
    confidence: float

    @classmethod
    def from_event(cls, event: Mapping[str, Any], confidence: float) -> Self:
        """As the entry that opened the stream says."""
        asked = event["asked"]
        calendar = Calendar(asked["every"], datetime.date.fromisoformat(asked["since"]), asked["periods"])
        plan = StreamPlan.from_event(event, Workload.together(calendar.periods, asked["windows"]))
        groups = tuple(tuple(map(unpacked, key)) for key in asked["groups"])
        unit, promise = event.get("table_unit"), plan.choice.participation
        capped = [can_cap(unit, len(groups), promise, calendar, measure_from(values)) for values in asked["asks"]]
        flags = {part.statistic: CAPPED if yes else "" for part, yes in zip(plan.parts, capped, strict=True)}
        return cls(plan, calendar, groups, flags, confidence)

    def answered(self, released: Sequence[Sequence[int]], question: str | int, after: int = 0) -> list[Published]:
        """The answers to a question in all periods that are published, or in those after one."""
        asked = named_question(question, self.calendar.periods)
        rows: list[Published] = []
        for part, found in groupby(self._cells(released), lambda cell: cell[1]):
            keys, cells = zip(*((key, cell) for key, _, cell in found), strict=True)
            answers = cell_points(self.plan, part, cells, asked, self.confidence, after)
            rows += [row for key, of_cell in zip(keys, answers, strict=True) for row in self._shown(key, part, of_cell)]
        return sorted(rows, key=lambda row: row.period)

    def between(self, released: Sequence[Sequence[int]], first: int, last: int) -> list[Published]:
        """The sum of the periods first to last."""
        rows: list[Published] = []
        for key, part, cell in self._cells(released):
            rows += self._shown(key, part, [range_point(self.plan, part, cell, first, last, self.confidence)])
        return rows

    def _cells(self, released: Sequence[Sequence[int]]) -> list[tuple[Key, StreamPart, list[int]]]:
        """Each group and statistic with what its periods released."""
        cells = [(key, part) for part in self.plan.parts for key in self.groups]
        return [(key, part, [row[i] for row in released]) for i, (key, part) in enumerate(cells)]

    def _shown(self, key: Key, part: StreamPart, points: list[Point]) -> list[Published]:
        flag, begin = self.flags[part.statistic], self.calendar.begin
        return [Published(begin(p.period), key, part.statistic, *p[1:], flag) for p in points]


def stored_numbers(ledger: Any, budget: str, name: str, period: int, confidence: float = 0.95) -> list[Published]:
    """The single-period numbers of a published period, from the ledger alone; none where no such stream was opened."""
    store = LedgerStore(ledger, budget, name)
    event = store.stored()
    if event is None or event["kind"] != "strategy":
        return []
    found = [store.released(t) for t in range(1, period + 1)]
    released = [values for values in found if values is not None]
    if len(released) < period:
        return []
    return StreamNumbers.from_event(event, confidence).answered(released, "single period", period - 1)
