"""Series: what a stream has released, decoded. Any window, total or range, with standard errors and intervals."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from psidp.maths.normal import quantile, quantile_error
from psidp.mechanism.stream_plan import StreamPart, StreamPlan
from psidp.noise.gaussian import RoundedGaussian, noisy_integer
from psidp.strategies import Question

__all__ = ["Point", "drawn", "named_question", "points", "range_point"]


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
    count = len(released)
    if not count:
        return []
    sums = np.concatenate([[0.0], np.cumsum(_decoded(plan, part, released))])
    errors = plan.deviations(question, part)
    return [
        _point(t, float(sums[t] - sums[t - length]), float(errors[t - 1]), plan, part, confidence)
        for t, length in enumerate(question.lengths[:count], 1)
        if length
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
    value = float(_decoded(plan, part, released[:last])[first - 1 :].sum())
    error = float(plan.strategy.deviation(weights, part.sigma)) * part.scale
    return _point(last, value, error, plan, part, confidence)


def _decoded(plan: StreamPlan, part: StreamPart, released: Sequence[int]) -> np.ndarray:
    """The totals of single periods."""
    return plan.strategy.decode([float(y) for y in released]) * part.scale


def _point(period: int, value: float, error: float, plan: StreamPlan, part: StreamPart, confidence: float) -> Point:
    """The number with an interval that holds rounding as well.

    Every number released was rounded by at most half a grid step plus 1/2; |u|_1 <= sqrt(t) |u|_2 for the weights u
    that decode it, and |u|_2 = error/sigma.
    """
    z = float(-quantile(0.5 * (1.0 - confidence)))
    rounding = 0.5 * (1.0 + RoundedGaussian(part.sigma).grid) * period**0.5 / part.sigma
    half = error * (z + float(quantile_error(z)) + rounding) * (1.0 + 1e-9)
    return Point(period, value, error, value - half, value + half)
