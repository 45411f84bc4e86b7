"""The certificate: answers proved once more in ball arithmetic, so that they rest on no model of floating point.

Fast answers are the candidates. A candidate that balls confirm is the answer, one that they leave open is widened until
they confirm it, and one that they disprove raises ContradictionError.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Protocol

import numpy as np

from psidp.accounting.certificates.ball_closed import BallBounds, BallClosed, BallNothing, beyond_all_losses
from psidp.accounting.certificates.ball_contour import BallContour
from psidp.accounting.certificates.ball_grid import BallLattice
from psidp.accounting.certificates.ball_step import TooLong
from psidp.accounting.certificates.balls import Ball, ball, precision
from psidp.accounting.closed_form import Closed
from psidp.accounting.composition import Composition
from psidp.errors import ContradictionError

__all__ = ["BITS", "certified_delta", "certified_epsilon"]

CLOSE = 1e-7
"""Relative width of delta at which no further method is taken."""
BETTER = 1e-6
"""Relative widening of epsilon at which no further method is taken."""
TRIES, FACTOR, TINY = 70, 4.0, 1e-14
"""How often an end is moved outwards, how much farther each time, and what it is moved by at least."""
BITS = 200
OPEN = (TooLong, ArithmeticError, ValueError)
"""What a method says where it does not lead."""


ROADS = (BallContour, BallLattice)
"""In this order; closed forms go before them, and crude bounds after."""


class BallRoad(Protocol):
    """Anything that encloses delta."""

    method: str

    def delta(self, epsilon: float) -> Ball:
        """A ball with delta at this epsilon."""
        ...


def certified_delta(directions: Sequence[Composition], epsilon: float) -> tuple[Ball, Ball, str]:
    """Proved bounds of the largest delta of these directions at one epsilon, and the method."""
    found = [_delta(steps, epsilon) for steps in directions]
    return max(low for low, _, _ in found), max(high for _, high, _ in found), max(found, key=lambda x: x[1].mid())[2]


def certified_epsilon(
    below_: Sequence[Composition],
    above_: Sequence[Composition],
    interval: tuple[float, float],
    targets: tuple[Fraction, Fraction],
) -> tuple[float, float, str]:
    """Proved bounds of epsilon from an interval that floats gave, and the method of the upper one.

    `targets` are what is left of delta beside the failure probability, for the lower end and for the upper one.
    """
    low, high = interval
    first, second = (_fraction(x) for x in targets)
    methods = {id(steps): _Roads(steps, high if high < np.inf else low) for steps in (*above_, *below_)}
    uppers = [_upper(methods[id(steps)], high, high - low, second) for steps in above_]
    upper = max(end for end, _ in uppers)
    method = next((name for end, name in uppers if end == upper and name != BallBounds.method), uppers[0][1])
    lower = _lower([methods[id(steps)] for steps in below_], low, high - low, first)
    return lower, upper, method


def _fraction(x: Fraction) -> Ball:
    with precision(BITS):
        return ball(x.numerator) / ball(x.denominator)


class _Roads:
    """The methods of one direction, each made when it is needed first."""

    def __init__(self, steps: Composition, epsilon: float) -> None:
        self.bounds = BallBounds(steps)
        self.made: list[BallRoad] = []
        self.rest = _roads(steps, epsilon)

    def __iter__(self) -> Iterator[BallRoad]:
        yield from tuple(self.made)
        for method in self.rest:
            self.made.append(method)
            yield method


def _roads(steps: Composition, epsilon: float) -> Iterator[BallRoad]:
    """Ways to enclose delta near one epsilon, the narrow ones first."""
    if Closed.fits(steps):
        yield BallClosed(steps)
        return
    if beyond_all_losses(steps, epsilon):
        yield BallNothing(steps)
    for kind in ROADS:
        with suppress(*OPEN):
            yield from kind.around(steps, epsilon)
    yield BallBounds(steps)


def _upper(methods: _Roads, start: float, pad: float, target: Ball) -> tuple[float, str]:
    """The smallest epsilon tried, from `start` upwards, at which delta is certainly at most the target."""
    best, name = float(np.inf), "no bound"
    quick = _try(methods.bounds, start) if start < np.inf else None
    if quick is not None and quick <= target and pad <= BETTER * start:
        return start, methods.bounds.method
    for method in methods if start < np.inf else ():
        inner = start - pad
        if pad > BETTER * start and (found := _try(method, inner)) is not None and found <= target:
            return inner, method.method
        for here in _outwards(start, pad, 1.0):
            found = _try(method, here)
            if not here < best or found is None:
                break
            if found > target and here == start:
                raise ContradictionError("epsilon", float(np.nextafter(start, np.inf)), float(start))
            if found <= target:
                best, name = here, method.method
                break
        if best - start <= BETTER * start + TINY:
            break
    return best, name


def _lower(directions: Sequence[_Roads], start: float, pad: float, target: Ball) -> float:
    """The largest epsilon tried, from `start` downwards, at which delta is certainly at least the target."""
    best, disproved = 0.0, 0
    for methods in directions if start > 0.0 else ():
        certain = False
        for method in methods:
            for here in _outwards(start, pad, -1.0):
                found = _try(method, here)
                if not here > best or found is None:
                    break
                certain |= here == start and bool(found < target)
                if found >= target:
                    best = here
                    break
            if certain or start - best <= BETTER * start + TINY:
                break
        disproved += certain
    if start > 0.0 and disproved == len(directions):
        raise ContradictionError("epsilon", start, best)
    return best


def _outwards(start: float, pad: float, side: float) -> Iterator[float]:
    """Points from `start` on in one direction, each farther away than the one before; 0 is the last below."""
    yield start
    pad = max(pad if pad < np.inf else 0.0, 2.0**-46 * start, TINY)
    for _ in range(TRIES):
        yield max(start + side * pad, 0.0)
        if start + side * pad <= 0.0:
            return
        pad *= FACTOR


def _try(method: BallRoad, epsilon: float) -> Ball | None:
    """delta on this method, or None where it does not lead."""
    try:
        found = method.delta(epsilon)
    except OPEN:
        return None
    return found if found.is_finite() else None


def _delta(steps: Composition, epsilon: float) -> tuple[Ball, Ball, str]:
    """Proved bounds of delta in one direction: methods are intersected until they are close."""
    low, high, name = ball(0), ball(1), "no bound"
    if epsilon == np.inf:
        return low, low, BallClosed.method
    for method in _roads(steps, epsilon):
        found = _try(method, epsilon)
        if found is None:
            continue
        with precision(BITS):
            name = method.method if found.upper() - found.lower() < high - low else name
            low, high = max(low, found.lower()), min(high, found.upper())
            if not low <= high:
                raise ContradictionError("delta", float(low), float(high))
            if high - low <= CLOSE * high:
                break
    return low, high, name
