"""Bisection whose ends were both tested: the caller takes the end at which its promise was seen to hold."""

from collections.abc import Callable

__all__ = ["between", "bracket", "halvings", "ratio_of", "within"]

Wide = Callable[[float, float], bool]
"""Whether two ends are still too far apart."""


def bracket(
    holds: Callable[[float], bool], low: float, high: float, wide: Wide, geometric: bool = False
) -> tuple[float, float]:
    """Ends low and high, no longer `wide` apart. Whenever they moved, holds(low) was seen true and holds(high) false.

    Take `low` where the promise is that the condition holds, `high` where it is that it does not. The condition is
    asked once at each middle, whether it is monotone or not.

    Examples:
        >>> low, high = bracket(lambda x: x * x <= 2.0, 1.0, 2.0, within(1e-9))
        >>> low * low <= 2.0 < high * high
        True
    """
    while wide(low, high):
        middle = _geometric(low, high) if geometric else 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def _geometric(low: float, high: float) -> float:
    """sqrt(low high), also where the product underflows."""
    product = low * high
    return float(product**0.5 if product > 1e-290 else low**0.5 * high**0.5)


def between(holds: Callable[[int], bool], low: int, high: int) -> tuple[int, int]:
    """Neighbouring whole numbers between the ends, the condition true at the first and false at the second.

    Examples:
        >>> between(lambda n: n * n <= 30, 0, 30)
        (5, 6)
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def within(distance: float) -> Wide:
    """Wide while the ends are further apart than this."""
    return lambda low, high: high - low > distance


def ratio_of(ratio: float) -> Wide:
    """Wide while the upper end is more than so many times the lower one."""
    return lambda low, high: high > low * ratio


def halvings(number: int) -> Wide:
    """Wide for so many rounds."""
    rounds = iter(range(number))
    return lambda low, high: next(rounds, None) is not None
