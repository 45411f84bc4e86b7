"""Participation: in which of the columns (periods, steps, cells) of a strategy one unit can be."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Self, final

from psidp.symbols import whole

__all__ = ["Participation"]


@final
@dataclass(frozen=True, slots=True)
class Participation:
    """The periods that one unit can add something to: how many, how far apart, or how many buckets.

    Args:
        at_most: the number of periods in all; None for as many as the rest allows.
        apart: any two of a unit's periods t < s have s - t >= apart.
        each: at most one period in each bucket, in the order of time: of so many periods each, or of the lengths listed
            (months of 31, 28, ... days; the first may be what is left of its month). Two periods of different buckets
            may be neighbours, so that this promises less than `apart`.

    The caller has to enforce it; `Strategy.squared` is what it costs.

    Examples:
        >>> print(Participation(at_most=4), Participation(at_most=4, apart=30), Participation(each=30), sep="; ")
        at most 4 periods; at most 4 periods, any two at least 30 apart; at most one of each 30 periods
        >>> Participation(at_most=3, apart=30).starts(365), Participation(at_most=3, each=30).gaps(365)
        ([0, 30, 60], [0, 1, 31])
    """

    at_most: int | None = None
    apart: int = 1
    each: int | tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.at_most is not None:
            object.__setattr__(self, "at_most", whole("at_most", self.at_most))
        object.__setattr__(self, "apart", whole("apart", self.apart))
        if self.each is None:
            return
        if self.apart != 1:
            raise TypeError(
                f"apart and each must not be given together, got apart={self.apart} and each={self.each}. "
                "A separation of b periods implies at most one period in each bucket of b."
            )
        object.__setattr__(self, "each", _buckets(self.each))

    def starts(self, periods: int) -> list[int]:
        """For j = 0, 1, ...: the earliest period, counted from 0, that can be a unit's period number j."""
        lengths = self._lengths(periods)
        begun = [0, *accumulate(lengths)] if lengths else list(range(0, periods, self.apart))
        return [start for start in begun if start < periods][: self.at_most]

    def gaps(self, periods: int) -> list[int]:
        """For d = 0, 1, ...: the shortest way from one of a unit's periods to the d-th after it."""
        number, lengths = len(self.starts(periods)), self._lengths(periods)
        if not lengths:
            return [d * self.apart for d in range(number)]
        if len(set(lengths)) == 1:
            return [0, *((d - 1) * lengths[0] + 1 for d in range(1, number))]
        ends, inner = [0, *accumulate(lengths)], len(lengths) - 1
        return [0, *(1 + min(ends[i + d - 1] - ends[i] for i in range(1, inner - d + 2)) for d in range(1, number))]

    def _lengths(self, periods: int) -> list[int]:
        """Lengths of the buckets that cover the periods; none where there are no buckets."""
        if self.each is None:
            return []
        if isinstance(self.each, int):
            return [self.each] * -(-periods // self.each)
        ends = list(accumulate(self.each))
        if not ends[-1] >= periods:
            raise ValueError(
                f"each (lengths of the buckets) must cover all {periods} periods, got lengths that sum to {ends[-1]}."
            )
        return list(self.each[: next(i for i, end in enumerate(ends) if end >= periods) + 1])

    def __str__(self) -> str:
        parts = [] if self.at_most is None else [f"at most {self.at_most} period{'s' if self.at_most > 1 else ''}"]
        if self.apart > 1:
            parts.append(f"any two at least {self.apart} apart")
        if isinstance(self.each, int):
            parts.append(f"at most one of each {self.each} periods")
        elif self.each is not None:
            parts.append(f"at most one in each of {len(self.each)} bucket{'s' if len(self.each) > 1 else ''}")
        return ", ".join(parts) or "every period"

    def to_dict(self) -> dict[str, Any]:
        """The promise as plain values."""
        each = list(self.each) if isinstance(self.each, tuple) else self.each
        values = {"at_most": self.at_most, "apart": self.apart if self.apart > 1 else None, "each": each}
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The promise that to_dict wrote."""
        unknown = set(values) - {"at_most", "apart", "each"}
        if unknown:
            raise ValueError(f"a participation has at_most, apart and each, got {sorted(values)}.")
        return cls(**values)


def _buckets(each: int | Sequence[int]) -> int | tuple[int, ...]:
    """One length, or a tuple of them."""
    if not isinstance(each, Sequence) or isinstance(each, str):
        return whole("each", each)
    if not each:
        raise ValueError("each (lengths of the buckets) must be one or more whole numbers, got none.")
    return tuple(whole("each", length) for length in each)
