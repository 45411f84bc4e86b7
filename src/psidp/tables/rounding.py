"""Numbers as one publishes them: rounded to the digits that the noise leaves. From noisy numbers alone, at no cost."""

from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from math import floor, inf, isfinite, log10

from psidp.tables.estimate import Estimate

__all__ = ["noise_step", "on_steps"]


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
