"""Workload: the questions that will be asked of a stream, period by period, and how much each kind counts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from psidp.symbols import whole

__all__ = ["Question", "Workload"]

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class Question:
    """One kind of question: in period t, the sum of the last `lengths[t]` periods; 0 where it is not asked.

    Examples:
        >>> Question.total(4).lengths, Question.window(4, 3).lengths, Question.since(5, [0, 2]).lengths
        ((1, 2, 3, 4), (0, 0, 3, 3), (1, 2, 1, 2, 3))
    """

    name: str
    lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        lengths = tuple(int(h) for h in self.lengths)
        if not (lengths and all(0 <= h <= t for t, h in enumerate(lengths, 1)) and any(lengths)):
            raise ValueError(
                "lengths (how many periods a question looks back on) must be 0 to t in period t, counted from 1, and "
                f"above 0 in one at least, got lengths={lengths[:8]}{' and more' if len(lengths) > 8 else ''}."
            )
        object.__setattr__(self, "lengths", lengths)

    @classmethod
    def period(cls, periods: int) -> Self:
        """Each period by itself."""
        return cls("single period", (1,) * whole("periods", periods))

    @classmethod
    def total(cls, periods: int) -> Self:
        """The total to date."""
        return cls("total to date", tuple(range(1, whole("periods", periods) + 1)))

    @classmethod
    def window(cls, periods: int, length: int) -> Self:
        """The last `length` periods, asked as soon as there are so many."""
        if not whole("length", length) <= periods:
            raise ValueError(
                f"length (periods that a window sums) must be at most {periods}, all periods of the stream, got "
                f"length={length}."
            )
        return cls(f"last {length} periods", tuple(length if t >= length else 0 for t in range(1, periods + 1)))

    @classmethod
    def since(cls, periods: int, starts: Iterable[int], name: str = "to date") -> Self:
        """The total since the last of these periods (counted from 0) began: month to date, year to date."""
        begun = sorted(set(starts) | {0})
        places = np.arange(whole("periods", periods))
        last = np.asarray(begun)[np.searchsorted(begun, places, side="right") - 1]
        return cls(name, tuple((places - last + 1).tolist()))

    @property
    def independent(self) -> float:
        """Mean squared error under independent noise of standard deviation 1: the mean length."""
        asked = [h for h in self.lengths if h]
        return sum(asked) / len(asked)

    def to_dict(self) -> dict[str, Any]:
        """Name and lengths."""
        return {"name": self.name, "lengths": list(self.lengths)}


@final
@dataclass(frozen=True, slots=True)
class Workload:
    """Kinds of questions about the same periods; each counts relative to its error under independent noise.

    Args:
        questions: one or more kinds.
        importance: a weight for each; equal by default.

    Examples:
        >>> workload = Workload((Question.period(12), Question.total(12)))
        >>> [question.name for question in workload.questions]
        ['single period', 'total to date']
    """

    questions: tuple[Question, ...]
    importance: tuple[float, ...] = ()
    _plain: Floats = field(init=False, repr=False, compare=False)
    _lagged: tuple[tuple[int, Floats], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        questions = tuple(self.questions)
        importance = tuple(float(w) for w in self.importance) or (1.0,) * len(questions)
        if not (questions and len({len(question.lengths) for question in questions}) == 1):
            raise ValueError("questions must be one or more kinds about the same number of periods.")
        if not (len(importance) == len(questions) and all(0 < w < np.inf for w in importance)):
            raise ValueError(f"importance must be one number above 0 for each question, got importance={importance}.")
        plain, lagged = _counts(questions, importance)
        object.__setattr__(self, "questions", questions)
        object.__setattr__(self, "importance", importance)
        object.__setattr__(self, "_plain", plain)
        object.__setattr__(self, "_lagged", lagged)

    @classmethod
    def together(cls, periods: int, windows: Iterable[int] = ()) -> Self:
        """Single periods, the total to date and windows of these lengths, with equal weights."""
        kinds = (Question.window(periods, length) for length in windows)
        return cls((Question.period(periods), *kinds, Question.total(periods)))

    @property
    def periods(self) -> int:
        """The number of periods that are asked about."""
        return len(self.questions[0].lengths)

    def cost(self, inverse: Floats) -> tuple[float, Floats]:
        """Weighted mean squared error at sigma = 1 of the Toeplitz strategy with this inverse, and its gradient.

        1 for independent noise, whatever is asked.
        """
        sums = np.cumsum(inverse)
        value = float(self._plain @ (sums * sums))
        slope = 2.0 * self._plain * sums
        for lag, counts in self._lagged:
            parts = sums[lag:] - sums[:-lag]
            pull = counts * parts
            value += float(pull @ parts)
            slope[lag:] += 2.0 * pull
            slope[:-lag] -= 2.0 * pull
        return value, np.cumsum(slope[::-1])[::-1]


def _counts(questions: Sequence[Question], importance: Sequence[float]) -> tuple[Floats, Any]:
    """How often, and with what weight, S_a^2 and (S_a - S_(a-h))^2 enter the mean squared errors.

    The variance of a window of h periods that ends in period t is the sum over a <= t of (S_a - S_(a-h))^2, where S are
    the running sums of the inverse's first column, 0 before its beginning.
    """
    n = len(questions[0].lengths)
    place = np.arange(n)
    plain, lagged = np.zeros(n), dict[int, Floats]()
    for question, weight in zip(questions, importance, strict=True):
        lengths = np.asarray(question.lengths)
        share = weight / (sum(importance) * np.count_nonzero(lengths) * question.independent)
        last = np.minimum(place, lengths - 1)[lengths > 0]  # up to there S_(a-h) is before the beginning
        plain += share * np.cumsum(np.bincount(last, minlength=n)[::-1])[::-1]
        for h in np.unique(lengths[(lengths > 0) & (lengths <= place)]).tolist():
            ends = share * np.cumsum((lengths == h)[h:][::-1])[::-1]  # windows of this length that end at a or later
            lagged[h] = lagged.get(h, 0.0) + ends
    return plain, tuple(sorted(lagged.items()))
