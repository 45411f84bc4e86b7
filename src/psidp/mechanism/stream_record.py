"""StreamRecord: a stream's plan and all it has released, read from its store and extended by one period at a time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from psidp.errors import KeyConflictError
from psidp.mechanism.stream_plan import StreamPlan
from psidp.mechanism.stream_store import Draw, StreamStore
from psidp.strategies import Workload

__all__ = ["StreamRecord"]


@dataclass(slots=True)
class StreamRecord:
    """The public part of a stream: its plan and what it released.

    Args:
        store: where it is kept. asked: what makes two streams the same, as plain values. workload: the questions.
        make: the plan, where none is stored; optimised here, and stored by `open`. parts: each statistic, the norm of
        what a unit adds to a period, and its step.
    """

    store: StreamStore
    asked: Mapping[str, Any]
    workload: Workload
    make: Callable[[], StreamPlan]
    parts: Callable[[], list[tuple[str, int, int]]]
    _plan: StreamPlan | None = None
    _open: bool = False
    _released: list[list[int]] = field(default_factory=list)

    def plan(self) -> StreamPlan:
        """The plan: the stored one, once there is one."""
        if self._plan is None:
            stored = self.store.opening(self.asked)
            self._plan = self.make() if stored is None else self._read(stored)
        return self._plan

    def open(self, purpose: str, more: Mapping[str, Any] | None = None) -> None:
        """Pay for the stream once; afterwards the plan is the one that is stored. `more` is said in the entry too."""
        stored = self.store.opening(self.asked)
        if stored is None:
            plan = self.plan()
            stored = self.store.open(plan.guarantee, plan.event(self.asked) | dict(more or {}), purpose)
        self._plan, self._open = self._read(stored), True

    @property
    def periods(self) -> int:
        """How many there will be at most."""
        return self.workload.periods

    @property
    def identity(self) -> str:
        """A text that no other stream has, also none of the same name; only of a stream that is open."""
        self.refuse_unless_open()
        return self.store.identity

    def released(self) -> list[list[int]]:
        """What every period so far has released, by any process."""
        for period in range(len(self._released) + 1, self.periods + 1):
            if self.known(period) is None:
                break
        return self._released

    def known(self, period: int) -> list[int] | None:
        """What a period released, where all before it are known."""
        self.refuse_unless_open()
        if period == len(self._released) + 1 and (found := self.store.released(period)) is not None:
            self._released.append(found)
        return self._released[period - 1] if period <= len(self._released) else None

    def release(self, period: int, draw: Draw) -> bool:
        """Release a period, after all earlier ones; True if another process had released it already."""
        if self.known(period) is not None:
            return True
        values, stored = self.store.release(period, draw)
        self._released[period - 1 :] = [values]
        return stored

    def refuse_unless_open(self) -> None:
        """Refuse to read or release anything before the stream is paid for; any process may have paid."""
        if self._open:
            return
        stored = self.store.opening(self.asked)
        if stored is None:
            raise ValueError(
                "the stream must be open before it publishes or reads anything. Open it first: open(), or psidp stream "
                "open on the command line."
            )
        self._plan, self._open = self._read(stored), True

    def _read(self, event: Mapping[str, Any]) -> StreamPlan:
        """The plan of an opening; refused where it says less of what a unit adds than what is asked for."""
        plan = StreamPlan.from_event(event, self.workload)
        promise = plan.choice.participation.to_dict()
        asked = {name: self.asked[name] for name in ("at_most", "apart", "each") if name in self.asked}
        if (promise, [(part.statistic, part.norm, part.step) for part in plan.parts]) != (asked, self.parts()):
            raise KeyConflictError(
                "the stream was opened with a noise for units that add less than those that are asked for; nothing was "
                "released. Use a new name, and ask who wrote the entry that opened it."
            )
        return plan
