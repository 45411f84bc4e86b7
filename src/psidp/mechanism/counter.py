"""Counter: a number that is published period after period, at one price paid once. Without a table, for telemetry."""

from collections.abc import Iterable
from operator import index
from typing import Self

from psidp.ledger.ledger import Ledger
from psidp.maths.sensitivity import Adjacency, check_adjacency
from psidp.mechanism.stream_plan import StreamPlan, participation
from psidp.mechanism.stream_record import StreamRecord
from psidp.mechanism.stream_series import Point, drawn, named_question, points, range_point
from psidp.mechanism.stream_store import LedgerStore, MemoryStore, StreamStore
from psidp.strategies import Workload
from psidp.symbols import symbol, whole

__all__ = ["Counter"]


class Counter:
    """Totals given period after period, and what may be published about them: single periods, windows, totals to date.

    Args:
        psi: what all periods cost together, (0, inf), paid once.
        periods: how many there will be at most; a generous number costs little.
        at_most: the number of periods that one unit can add to. apart: any two of them are at least so far apart.
        each: at most one period in each bucket of so many periods.
        bound: what a unit adds to a period at most, a whole number.
        windows: lengths of windows that matter, beside single periods and totals to date.
        ledger: a psidp.Ledger. budget: the budget in it that pays. name: what the stream is called there.
        adjacency: "add-remove" or "replace-one". unit: whose data is protected. Both are the budget's by default.
        confidence: chance that an interval covers.

    Guarantees:
        All published numbers together have psi, however the totals of later periods were chosen, **if the caller's
        promise holds**: in all totals that are ever given, one unit adds at most `bound` to a period, and to no more
        periods than at_most, apart and each say (docs/design/streams.md). With a ledger psi is paid once, the
        strategy's whole numbers are stored with the payment, and every number is stored before it is given back.
        Totals stay in memory, and are given again after a restart.

    Examples:
        >>> counter = Counter(psi=0.5, periods=52, at_most=1).open()
        >>> week = counter.publish(1, 1203)
        >>> again = counter.publish(1, 1203)  # the same number: it was drawn once
        >>> week == again, week.standard_error < 4
        (True, True)
        >>> _ = counter.publish(2, 988)
        >>> [point.period for point in counter.series("total to date")]
        [1, 2]
    """

    def __init__(
        self,
        *,
        psi: float,
        periods: int,
        at_most: int | None = None,
        apart: int = 1,
        each: int | Iterable[int] | None = None,
        bound: int = 1,
        windows: Iterable[int] = (),
        ledger: Ledger | None = None,
        budget: str = "",
        name: str = "",
        adjacency: Adjacency | None = None,
        unit: str | None = None,
        confidence: float = 0.95,
    ) -> None:
        if not (bool(ledger is None) == bool(not budget) == bool(not name)):
            raise TypeError("ledger, budget and name must be given together, or none of them.")
        terms = None if ledger is None else ledger.budget(budget)
        if not 0.0 < confidence < 1.0:
            raise ValueError(
                f"confidence (chance that an interval covers) must be in (0, 1), got confidence={confidence}."
            )
        self.psi, self.confidence, self.name = symbol("psi").at_most(psi), confidence, name
        self.bound = whole("bound", bound)
        self.participation = participation(at_most, apart, each, periods=whole("periods", periods))
        workload = Workload.together(int(periods), lengths := sorted({whole("windows", length) for length in windows}))
        self.adjacency = check_adjacency(adjacency or (terms.adjacency if terms else "add-remove"))
        self.unit = unit or (terms.unit if terms else "record")
        store: StreamStore = MemoryStore() if ledger is None else LedgerStore(ledger, budget, name)
        promise = self.participation.to_dict()
        asked = {"psi": self.psi, "periods": workload.periods, "bound": self.bound, "windows": lengths} | promise
        self._record = StreamRecord(
            store, asked, workload, lambda: self._made(workload), lambda: [("total", self.bound, 0)]
        )
        self._totals: list[int] = []

    def __repr__(self) -> str:
        named = f"{self.name!r}, " if self.name else ""
        return f"Counter({named}psi={self.psi}, periods={self._record.periods}, {self.participation})"

    def plan(self) -> StreamPlan:
        """What it would cost and how large the errors will be, from the first period to the last; spends nothing.

        Once the stream is open, the plan that was stored.
        """
        return self._record.plan()

    def open(self, purpose: str = "") -> Self:
        """The counter, paid for. Opening again, after a restart or from another process, costs nothing.

        Refused, with the ledger as it was: what the budget does not cover, a name that was opened with other terms.
        """
        self._record.open(purpose)
        return self

    def publish(self, period: int, total: int) -> Point:
        """The published number of a period (counted from 1), whose exact total is given.

        In a period that is published already the stored number comes back, whatever the total is now. After a restart
        earlier totals are given again in this way, since later numbers need them; nothing else keeps them.

        Refused: a period whose predecessors were not given.
        """
        self._record.refuse_unless_open()
        period, count = whole("period", period), len(self._totals)
        if isinstance(total, bool):
            raise TypeError("total (exact total of a period) must be a whole number, got a truth value.")
        exact, most = index(total), min(count + 1, self._record.periods)
        if not period <= most:
            raise ValueError(
                f"period must be at most {most}, got period={period}. Totals are given in order, {count} so far of "
                f"{self._record.periods}; after a restart earlier ones are given again."
            )
        if self._record.known(period) is None:
            totals = [*self._totals, exact]
            self._record.release(period, lambda: self._drawn(totals))
        if period > count:
            self._totals.append(exact)
        return self._answered("single period")[period - 1]

    @property
    def published(self) -> int:
        """How many periods are published, by any process."""
        return len(self._record.released())

    def series(self, question: str = "total to date") -> list[Point]:
        """The "single period" or "total to date" of every period so far."""
        return self._answered(question)

    def window(self, length: int) -> list[Point]:
        """The sum of the last `length` periods, in every period that has so many."""
        return self._answered(whole("length", length))

    def value(self, period: int, question: str = "single period") -> Point:
        """The number of one period."""
        found = {point.period: point for point in self._answered(question)}
        if period not in found:
            raise ValueError(f"period must be a published one, 1 to {len(found)}, got period={period}.")
        return found[period]

    def between(self, first: int, last: int) -> Point:
        """The sum of the periods first to last."""
        plan = self.plan()
        return range_point(plan, plan.parts[0], self._released(), first, last, self.confidence)

    def _answered(self, question: str | int) -> list[Point]:
        asked, plan = named_question(question, self._record.periods), self.plan()
        return points(plan, plan.parts[0], self._released(), asked, self.confidence)

    def _released(self) -> list[int]:
        return [value for (value,) in self._record.released()]

    def _drawn(self, totals: list[int]) -> list[int]:
        plan = self.plan()
        return [drawn(plan, plan.parts[0], totals)]

    def _made(self, workload: Workload) -> StreamPlan:
        parts = [("total", self.bound, 1.0, 0)]
        return StreamPlan.made(parts, workload, self.participation, self.psi, self.adjacency, self.unit)
