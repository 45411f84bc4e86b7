"""StreamPlan: the cost of a stream and the errors of its numbers, from the first period to the last. Reads no data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ldexp
from typing import Any, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from psidp.guarantee import Guarantee, compose
from psidp.maths.sensitivity import Adjacency
from psidp.strategies import Choice, Participation, Question, Toeplitz, Workload, chosen
from psidp.symbols import symbol

__all__ = ["FORM", "Expectation", "StreamPart", "StreamPlan", "participation"]

Floats = NDArray[np.float64]

FORM = "psidp-stream-1"
FINE = 1 << 16
"""c_0 of independent noise: so large that rounding a release to whole numbers costs next to nothing."""

SAFETY = 1.0 - 2.0**-50
"""Shares of psi are rounded down, so that together they stay below it."""


class StreamPart(NamedTuple):
    """One statistic of a stream: what a unit adds to a period at most, in steps of 2^step, and the noise."""

    statistic: str
    norm: int
    sigma: float
    step: int = 0

    @property
    def scale(self) -> float:
        """2^step."""
        return ldexp(1.0, self.step)


class Expectation(NamedTuple):
    """Standard deviations of one kind of question: root mean square over the periods, the first and the last."""

    statistic: str
    question: str
    rmse: float
    first: float
    last: float
    independent: float
    """Root mean square under independent noise at the same psi."""


@final
@dataclass(frozen=True, slots=True)
class StreamPlan:
    """A strategy, the noise of every statistic, and the standard deviation of every question in every period.

    Examples:
        >>> plan = StreamPlan.made([("total", 1, 1.0, 0)], Workload.together(52), Participation(4), psi=0.5)
        >>> plan.guarantee.psi <= 0.5, [round(row.last, 1) for row in plan.expected()]
        (True, [4.3, 20.4])
    """

    choice: Choice
    parts: tuple[StreamPart, ...]
    adjacency: Adjacency = "add-remove"
    unit: str = "record"
    counted: str = ""
    """What counts and what does not, in words, where the stream caps units itself; no part of what is stored."""

    @classmethod
    def made(
        cls,
        parts: Sequence[tuple[str, int, float, int]],
        workload: Workload,
        participation: Participation,
        psi: float,
        adjacency: Adjacency = "add-remove",
        unit: str = "record",
    ) -> Self:
        """The plan that shares psi^2 between statistics, each given as name, norm, weight and step."""
        if not symbol("psi").number(psi) > 0.0:
            raise ValueError(f"psi ({symbol('psi').meaning}) must be above 0 for a stream, got psi={psi}.")
        choice = _whole(chosen(workload, participation))
        weights, safety = sum(weight for _, _, weight, _ in parts), SAFETY if len(parts) > 1 else 1.0
        made = []
        for name, norm, weight, step in parts:
            share = Guarantee(psi * (weight / weights) ** 0.5 * safety)
            made.append(
                StreamPart(name, norm, share.sigma(choice.strategy.sensitivity(participation, norm, adjacency)), step)
            )
        return cls(choice, tuple(made), adjacency, unit)

    @property
    def periods(self) -> int:
        """How many there will be at most."""
        return self.choice.strategy.periods

    @property
    def strategy(self) -> Toeplitz:
        """The strategy, in whole numbers."""
        return self.choice.strategy

    @property
    def guarantee(self) -> Guarantee:
        """What all periods and statistics cost together; at or below the psi that was asked for."""
        return compose(
            Guarantee.gaussian(
                sensitivity=self.strategy.sensitivity(self.choice.participation, part.norm, self.adjacency),
                sigma=part.sigma,
                adjacency=self.adjacency,
                unit=self.unit,
            )
            for part in self.parts
        )

    def deviations(self, question: Question, part: StreamPart) -> Floats:
        """Standard deviation of a question in each period; nan where it is not asked."""
        return self.strategy.window_deviations(question.lengths, part.sigma) * part.scale

    def expected(self) -> list[Expectation]:
        """The standard deviations of every question, over all periods."""
        return [self._expected(question, part) for part in self.parts for question in self.choice.workload.questions]

    def _expected(self, question: Question, part: StreamPart) -> Expectation:
        found = self.deviations(question, part)
        asked = found[np.isfinite(found)]
        ours = self.strategy.sensitivity(self.choice.participation, part.norm, self.adjacency)
        single = Toeplitz.independent(self.periods).sensitivity(self.choice.participation, part.norm, self.adjacency)
        alone = part.sigma * part.scale * (single / ours) * question.independent**0.5
        rmse, first, last = np.sqrt(np.mean(asked * asked)), asked[0], asked[-1]
        return Expectation(part.statistic, question.name, float(rmse), float(first), float(last), alone)

    def __str__(self) -> str:
        lines = [
            f"{self.periods} periods, psi = {self.guarantee.psi:.6g} paid once; "
            f"a unit is in {self.choice.participation}.",
            *([self.counted] if self.counted else []),
            self.choice.reason,
            f"{'standard deviation of':34} {'first':>10} {'last':>10} {'typical':>10} {'independent':>12}",
        ]
        for row in self.expected():
            named = f"{row.statistic}, {row.question}"
            lines.append(f"{named:34} {row.first:10.3g} {row.last:10.3g} {row.rmse:10.3g} {row.independent:12.3g}")
        return "\n".join(lines)

    def event(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What the ledger stores: the whole numbers, the promise, the noise, why, and what was asked."""
        return {
            "kind": "strategy",
            "form": FORM,
            "strategy": self.strategy.to_dict(),
            "participation": self.choice.participation.to_dict(),
            "parts": [part._asdict() for part in self.parts],
            "reason": self.choice.reason,
            "adjacency": self.adjacency,
            "unit": self.unit,
            "asked": dict(asked),
        }

    @classmethod
    def from_event(cls, event: Mapping[str, Any], workload: Workload) -> Self:
        """The plan that was stored; nothing is optimised again."""
        strategy, promise = Toeplitz.from_dict(event["strategy"]), Participation.from_dict(event["participation"])
        parts = tuple(StreamPart(**part) for part in event["parts"])
        return cls(Choice(strategy, promise, workload, event["reason"]), parts, event["adjacency"], event["unit"])


def participation(
    at_most: int | None, apart: int = 1, each: int | Iterable[int] | None = None, *, periods: int
) -> Participation:
    """The promise about a unit's periods; refused where nothing at all is promised."""
    if at_most is None and apart == 1 and each is None:
        raise ValueError(
            "at_most (periods that one unit can be in) must be a whole number of at least 1, got at_most=None. Give "
            f"at_most, apart or each; at_most={periods} for a unit that may be in every period."
        )
    return Participation(at_most, apart, each if each is None or isinstance(each, int) else tuple(each))


def _whole(choice: Choice) -> Choice:
    """The choice with c_0 so large that rounding a release to whole numbers costs next to nothing."""
    c = choice.strategy.coefficients
    if c[0] >= FINE:
        return choice
    finer = Toeplitz(choice.strategy.periods, tuple(n * FINE for n in c))
    return Choice(finer, choice.participation, choice.workload, choice.reason)
