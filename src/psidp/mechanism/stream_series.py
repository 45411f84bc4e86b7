"""Series: what a stream has released, decoded. Any window, total or range, with standard errors and intervals."""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple, Self

import numpy as np

from psidp.maths.normal import quantile_error, two_sided
from psidp.mechanism.stream_plan import StreamPart, StreamPlan
from psidp.noise.gaussian import RoundedGaussian, noisy_integer
from psidp.strategies import Question

__all__ = ["Point", "cell_points", "drawn", "named_question", "points", "range_point"]


class Point(NamedTuple):
    """One published number: the period (counted from 1) it ends in, its standard error, and an interval."""

    period: int
    value: float
    standard_error: float
    lower: float
    upper: float


def drawn(plan: StreamPlan, part: StreamPart, totals: Sequence[int]) -> int:
    """What the newest period releases: its row of the strategy times all totals so far, plus exact noise, whole."""
    return noisy_integer(RoundedGaussian(part.sigma), plan.strategy.newest(totals))


def named_question(question: str | int, periods: int) -> Question:
    """The question "single period", "total to date", or the sum of so many periods."""
    if isinstance(question, int) and not isinstance(question, bool):
        return Question.window(periods, question)
    known = {q.name: q for q in (Question.period(periods), Question.total(periods))}
    if question not in known:
        raise ValueError(
            f"question must be one of {', '.join(map(repr, known))}, or a number of periods to sum, got {question!r}."
        )
    return known[question]


def points(
    plan: StreamPlan, part: StreamPart, released: Sequence[int], question: Question, confidence: float
) -> list[Point]:
    """The answer to a question in every period so far in which it is asked. A number once shown never changes."""
    return cell_points(plan, part, [released], question, confidence)[0]


def cell_points(
    plan: StreamPlan,
    part: StreamPart,
    cells: Sequence[Sequence[int]],
    question: Question,
    confidence: float,
    after: int = 0,
) -> list[list[Point]]:
    """`points` of several cells with as many periods each, all decoded at once; only of periods after this one."""
    count = len(cells[0])
    if not count > after:
        return [[] for _ in cells]
    decoded = plan.strategy.decode(np.array([[float(y) for y in cell] for cell in cells]).T) * part.scale
    sums = np.cumsum(np.concatenate([np.zeros((1, len(cells))), decoded]), axis=0)
    errors, margin = plan.deviations(question, part), _Margin.of(part, confidence)
    asked = [(t, length) for t, length in enumerate(question.lengths[:count], 1) if length and t > after]
    halves = [margin.half(t, float(errors[t - 1])) for t, _ in asked]
    return [
        [
            _point(t, float(column[t] - column[t - length]), float(errors[t - 1]), half)
            for (t, length), half in zip(asked, halves, strict=True)
        ]
        for column in sums.T
    ]


def range_point(
    plan: StreamPlan, part: StreamPart, released: Sequence[int], first: int, last: int, confidence: float
) -> Point:
    """The sum of the periods first to last, both among those released."""
    if not 1 <= first <= last <= len(released):
        raise ValueError(
            f"periods must be published ones, 1 to {len(released)}, the first no later than the last, "
            f"got first={first} and last={last}."
        )
    weights = np.zeros(last)
    weights[first - 1 :] = 1.0
    value = float((plan.strategy.decode([float(y) for y in released[:last]]) * part.scale)[first - 1 :].sum())
    error = float(plan.strategy.deviation(weights, part.sigma)) * part.scale
    return _point(last, value, error, _Margin.of(part, confidence).half(last, error))


class _Margin(NamedTuple):
    """What half an interval's width is made of: the normal quantile with its error, half a rounding, sigma."""

    z: float
    rounding: float
    sigma: float

    @classmethod
    def of(cls, part: StreamPart, confidence: float) -> Self:
        z = two_sided(1.0 - confidence)
        return cls(z + float(quantile_error(z)), 0.5 * (1.0 + RoundedGaussian(part.sigma).grid), part.sigma)

    def half(self, period: int, error: float) -> float:
        """Half the width of an interval that holds rounding as well.

        Every number released was rounded by at most half a grid step plus 1/2; |u|_1 <= sqrt(t) |u|_2 for the weights
        u that decode it, and |u|_2 = error/sigma.
        """
        return error * (self.z + self.rounding * sqrt(period) / self.sigma) * (1.0 + 1e-9)


def _point(period: int, value: float, error: float, half: float) -> Point:
    return Point(period, value, error, value - half, value + half)
