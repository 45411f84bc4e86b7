"""Series: what the periods of a stream released, read as measures. Known from the ledger alone; no table is needed."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from psidp.maths.normal import quantile_error, two_sided
from psidp.mechanism.stream_plan import StreamPart, StreamPlan
from psidp.mechanism.stream_series import named_question
from psidp.mechanism.stream_store import LedgerStore
from psidp.noise.gaussian import RoundedGaussian
from psidp.strategies import Workload
from psidp.tables.answer import unpacked
from psidp.tables.ask import Ask
from psidp.tables.calendar import Calendar
from psidp.tables.counted import flags_of
from psidp.tables.estimate import Cells
from psidp.tables.unit_bounds import NormBound

__all__ = ["Published", "Series", "stored_numbers"]

Key = tuple[Any, ...]
Floats = NDArray[np.float64]


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
class Series:
    """How the whole numbers that periods released are read: for each measure, groups by bins by coordinates.

    Args:
        plan: the noise. calendar: the periods. groups: the groups. asks: the measures. flags: the flag of all numbers
        of a measure, by its name. confidence: chance that an interval covers.
    """

    plan: StreamPlan
    calendar: Calendar
    groups: tuple[Key, ...]
    asks: tuple[Ask, ...]
    flags: Mapping[str, str]
    confidence: float

    @classmethod
    def from_event(cls, event: Mapping[str, Any], confidence: float) -> Self:
        """As the entry that opened the stream says."""
        asked = event["asked"]
        calendar = Calendar(asked["every"], datetime.date.fromisoformat(asked["since"]), asked["periods"])
        plan = StreamPlan.from_event(event, Workload.together(calendar.periods, asked["windows"]))
        groups = tuple(tuple(map(unpacked, key)) for key in asked["groups"])
        asks = tuple(map(Ask.from_dict, asked["asks"]))
        alone = not event.get("table_unit")
        flags = flags_of(asks, len(groups), plan.choice.participation, calendar.periods, alone=alone)
        return cls(plan, calendar, groups, asks, flags, confidence)

    def answered(self, released: Sequence[Sequence[int]], question: str | int, after: int = 0) -> list[Published]:
        """The answers to a question in all periods that are published, or in those after one."""
        asked = named_question(question, self.calendar.periods)
        spans = [(t, length) for t, length in enumerate(asked.lengths[: len(released)], 1) if length and t > after]
        errors = [self.plan.deviations(asked, part) for part in self.plan.parts]
        rows = []
        for t, length in spans:
            rows += self._read(released, t - length, t, [float(found[t - 1]) for found in errors])
        return rows

    def between(self, released: Sequence[Sequence[int]], first: int, last: int) -> list[Published]:
        """The sum of the periods first to last."""
        weights = np.zeros(last)
        weights[first - 1 :] = 1.0
        strategy = self.plan.strategy
        errors = [float(strategy.deviation(weights, part.sigma)) * part.scale for part in self.plan.parts]
        return self._read(released[:last], first - 1, last, errors)

    def _read(self, released: Sequence[Sequence[int]], before: int, last: int, errors: list[float]) -> list[Published]:
        """What the measures say of the periods after `before`, up to `last`, group by group."""
        rows, start = [], 0
        decoded = self.plan.strategy.decode(np.array([[float(y) for y in row] for row in released[:last]]))
        sums = decoded[before:].sum(axis=0)
        for ask, part, error in zip(self.asks, self.plan.parts, errors, strict=True):
            vector = ask.measure.vector
            shape = (len(self.groups), vector.bins, vector.parts)
            stop = start + int(np.prod(shape))
            cells = self._cells(ask, part, sums[start:stop].reshape(shape) * part.scale, error, last)
            for key, estimates in zip(self.groups, ask.measure.estimates(cells), strict=True):
                for e in estimates:
                    flag = ", ".join(filter(None, (self.flags[ask.name], e.flag if ask.measure.spread.ratio else "")))
                    numbers = (e.value, e.standard_error, e.lower, e.upper)
                    rows.append(Published(self.calendar.begin(last), key, e.statistic, *numbers, flag))
            start = stop
        return rows

    def _cells(self, ask: Ask, part: StreamPart, totals: Floats, error: float, last: int) -> Cells:
        """Totals in rows' worth, or in the column's own unit, as measures read them.

        Every number released was rounded by at most half a grid step plus 1/2; |u|_1 <= sqrt(t) |u|_2 for the weights
        u that decode it, and |u|_2 = error/sigma.
        """
        vector = ask.measure.vector
        bound = NormBound.of(vector, ask.worth, len(self.groups))
        ones = np.array([c.one(bound.steps(vector, c)) * bound.grid.step for c in vector.coordinates])
        z = two_sided(1.0 - self.confidence)
        rounding = 0.5 * (1.0 + RoundedGaussian(part.sigma).grid) * last**0.5 / part.sigma
        wide = (z + float(quantile_error(z)) + rounding) * (1.0 + 1e-9)
        bins = totals[..., 0] / ones[0] if vector.edges else None
        return Cells(totals[:, 0] / ones, error / ones, wide - z, self.confidence, bins, slack=0.0)


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
    return Series.from_event(event, confidence).answered(released, "single period", period - 1)
