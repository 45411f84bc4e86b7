"""Choice: the strategy of a plan, with correlated or independent noise, the errors of both and the reason."""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from psidp.guarantee import Guarantee
from psidp.strategies.optimise import optimised
from psidp.strategies.participation import Participation
from psidp.strategies.toeplitz import STREAM_BITS, Toeplitz
from psidp.strategies.workload import Question, Workload

__all__ = ["Choice", "Expected", "chosen"]

Floats = NDArray[np.float64]

WORTHWHILE = 0.99
"""Correlated noise is used where its weighted error is below this fraction of that of independent noise."""


class Expected(NamedTuple):
    """Errors of one kind of question over all periods: root mean square, the largest, and the last period's."""

    question: str
    rmse: float
    largest: float
    last: float
    independent: float
    """Root mean square under independent noise at the same psi."""


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy for a stream, its participation, its workload and the reason for it; chosen without reading a row.

    Examples:
        >>> choice = chosen(Workload.together(52, windows=[4]), Participation(at_most=1))
        >>> print(choice.reason)
        Correlated noise has 0.86 times the error of independent noise: single period 1.08, last 4 periods 0.86, \
total to date 0.57.
        >>> [round(row.rmse, 1) for row in choice.expected(psi=0.5)]
        [2.2, 3.4, 5.9]
    """

    strategy: Toeplitz
    participation: Participation
    workload: Workload
    reason: str

    def expected(self, psi: float = 1.0, norm: float = 1.0) -> list[Expected]:
        """The errors of every kind of question, for a unit that adds at most `norm` to a period.

        Under add-remove; for replace-one give twice the norm.
        """
        alone = _sigma(Toeplitz.independent(self.strategy.periods), self.participation, psi, norm)
        return [self._expected(question, alone, psi, norm) for question in self.workload.questions]

    def deviations(self, question: Question, psi: float = 1.0, norm: float = 1.0) -> Floats:
        """Standard deviation of a question in each period, from the first to the last; nan where it is not asked."""
        return self.strategy.window_deviations(question.lengths, _sigma(self.strategy, self.participation, psi, norm))

    def _expected(self, question: Question, alone: float, psi: float, norm: float) -> Expected:
        found = self.deviations(question, psi, norm)
        asked = found[np.isfinite(found)]
        rmse, largest, last = sqrt(np.mean(asked * asked)), float(asked.max()), float(asked[-1])
        return Expected(question.name, rmse, largest, last, alone * sqrt(question.independent))


def chosen(workload: Workload, participation: Participation, bits: int = STREAM_BITS) -> Choice:
    """The strategy of least weighted error: an optimised one, or independent noise where that is as good.

    Independent noise is best for single periods, and as good as any where a unit may be in about half of the periods.
    """
    n = workload.periods
    alone = Toeplitz.independent(n)
    if all(max(question.lengths) == 1 for question in workload.questions):
        reason = "Independent noise: only single periods are asked for, and for these no other noise is better."
        return Choice(alone, participation, workload, reason)
    found = optimised(workload, participation, bits)
    ratio = _error(found, workload, participation) / _error(alone, workload, participation)
    if not ratio < WORTHWHILE:
        places = f"{len(participation.starts(n))} of {n} periods"
        reason = f"Independent noise: correlated noise has {ratio:.3f} of its error, as a unit may be in {places}."
        return Choice(alone, participation, workload, reason)
    choice = Choice(found, participation, workload, "")
    parts = ", ".join(f"{row.question} {row.rmse / row.independent:.2f}" for row in choice.expected())
    reason = f"Correlated noise has {ratio:.2f} times the error of independent noise: {parts}."
    return Choice(found, participation, workload, reason)


def _error(strategy: Toeplitz, workload: Workload, participation: Participation) -> float:
    """Weighted root mean squared error at psi = 1."""
    return sqrt(workload.cost(strategy.inverse())[0] * strategy.squared(participation))


def _sigma(strategy: Toeplitz, participation: Participation, psi: float, norm: float) -> float:
    """The noise at this psi, under add-remove."""
    return Guarantee(psi).sigma(strategy.sensitivity(participation, norm))
