"""Numbers as one publishes them: rounded to the digits that the noise leaves, and groups of few left out.

All of it looks at noisy numbers and public thresholds alone, so that it costs nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from math import floor, inf, isfinite, log10
from re import compile
from typing import Any

from psidp.curator.estimate import Estimate

__all__ = ["few", "is_count", "judge_of", "noise_step", "on_steps"]

COUNTS = ("count", "units")
COUNTED = compile(r"(top \d+ by )?(count|units)|histogram of .*")
"""The names of statistics that are below 0 for no table."""
MOST_NAMED = 20
"""Groups that a note names."""


def is_count(statistic: str) -> bool:
    """Whether a statistic of this name is a number of rows or units.

    Examples:
        >>> is_count("top 2 by count"), is_count("top 2 by sum of count")
        (True, False)
    """
    return COUNTED.fullmatch(statistic) is not None


def judge_of(statistics: Iterable[str]) -> str | None:
    """The statistic by whose noisy value small groups are left out; None where there is none."""
    known = set(statistics)
    return next((name for name in COUNTS if name in known), None)


def noise_step(estimate: Estimate) -> int | None:
    """The power of ten to which a number is rounded: two digits of its standard error, so that 337 is shown as 340.

    Rounding so adds at most a hundredth to the error. None where the noise says nothing.
    """
    error = estimate.standard_error
    if not 0.0 < error < inf:
        error = (estimate.upper - estimate.lower) / 4.0
    if not 0.0 < error < inf:
        return None
    return floor(log10(error)) - 1


def on_steps(estimate: Estimate) -> Estimate:
    """The number rounded to its step, its interval widened to steps and its standard error rounded up."""
    step = noise_step(estimate)
    if step is None:
        return estimate
    return replace(
        estimate,
        value=_rounded(estimate.value, step, ROUND_HALF_EVEN),
        standard_error=_rounded(estimate.standard_error, step, ROUND_CEILING),
        lower=_rounded(estimate.lower, step, ROUND_FLOOR),
        upper=_rounded(estimate.upper, step, ROUND_CEILING),
    )


def _rounded(value: float, step: int, how: str) -> float:
    """The multiple of 10^step on the asked side."""
    if not isfinite(value):
        return value
    scaled = Decimal(repr(float(value))).scaleb(-step)
    return float(scaled.to_integral_value(how).scaleb(step)) + 0.0  # no negative zero


def few(rows: Sequence[tuple[Any, Estimate]], below: float, by: Sequence[str]) -> tuple[set[Any], str]:
    """The groups whose noisy count is below a public threshold, and the note about them.

    Refused where the answer holds no count to judge by.
    """
    if not 0.0 < below < inf:
        raise ValueError(
            f"below (the public threshold for a group's noisy count) must be in (0, inf), got below={below}."
        )
    judge = judge_of(e.statistic for _, e in rows)
    if judge is None:
        raise ValueError(
            "answer must hold a count or units for suppressed: ask for psidp.ask.count() in the same release."
        )
    small = {key for key, e in rows if e.statistic == judge and not e.value >= below}
    named = [" / ".join("NULL" if k is None else str(k) for k in key) for key in dict.fromkeys(k for k, _ in rows)
             if key in small]  # fmt: skip
    more = f", and {len(named) - MOST_NAMED:,} more" if len(named) > MOST_NAMED else ""
    who = f" ({', '.join(named[:MOST_NAMED])}{more})" if named and by else ""
    groups = len({key for key, _ in rows})
    return small, (
        f"suppressed: {len(small):,} of {groups:,} groups, whose noisy {judge} is below {below:g}, were left out{who}, "
        "at no cost. What is left is larger on average than the truth where counts are near the threshold."
    )
