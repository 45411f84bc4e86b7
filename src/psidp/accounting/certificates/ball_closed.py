"""Closed forms in balls: plain Gaussians, a single sampled step, and the bounds of everything else that they give."""

from collections.abc import Callable

import numpy as np

from psidp.accounting.certificates.ball_step import BallStep, TooLong
from psidp.accounting.certificates.balls import Ball, ball, cut, gaussian, library, precision, root, tail
from psidp.accounting.closed_form import Closed
from psidp.accounting.composition import Composition
from psidp.accounting.contours.saddle import saddle_at_epsilon
from psidp.accounting.exact_sums import Squares

__all__ = ["BallBounds", "BallClosed", "BallNothing", "beyond_all_losses"]

PRECISIONS = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)
ENOUGH = 60
"""Bits of delta that are enough."""


class BallClosed:
    """delta of plain Gaussians, or of one sampled step."""

    method = "closed form"

    def __init__(self, steps: Composition) -> None:
        if not Closed.fits(steps):
            raise TooLong
        self.steps = steps

    def delta(self, epsilon: float) -> Ball:
        """A ball with delta at this epsilon."""
        if not self.steps.count.size:
            return _plain(self.steps.plain, epsilon)
        sigma, q, sign = (float(x[0]) for x in (self.steps.sigma, self.steps.q, self.steps.sign))
        return one_step(sigma, q, sign, epsilon)


class BallNothing:
    """delta where no loss reaches epsilon."""

    method = "closed form"

    def __init__(self, steps: Composition) -> None:
        self.steps = steps

    def delta(self, epsilon: float) -> Ball:
        """A ball with delta at this epsilon."""
        if not beyond_all_losses(self.steps, epsilon):
            raise TooLong
        return ball(0)


class BallBounds:
    """What no method can take away: at least one step, at most the unsampled Gaussians, Chernoff and the distances."""

    method = "crude bounds"

    def __init__(self, steps: Composition) -> None:
        self.steps = steps

    def delta(self, epsilon: float) -> Ball:
        """A ball with delta at this epsilon."""
        steps, arb = self.steps, library().arb
        low, high = arb(0), arb(1)
        columns = list(zip(steps.sigma.tolist(), steps.q.tolist(), steps.sign.tolist(), strict=True))
        lows = [one_step(*column, epsilon) for column in columns]
        lows += [_plain(steps.plain, epsilon)] if steps.plain.high else []
        for found in lows:
            low = max(low, found.lower())
        total = steps.plain + Composition.merge([(s, 1.0, n, 1) for s, n in _counts(steps)]).plain
        high = min(high, _plain(total, epsilon).upper())
        if (np.abs(steps.sign) == 1.0).all():
            high = min(high, _distances(steps).upper(), _chernoff(steps, epsilon))
        with precision(128):
            return low.union(high) if high > low else low


def _counts(steps: Composition) -> list[tuple[float, float]]:
    return list(zip(steps.sigma.tolist(), steps.count.tolist(), strict=True))


def one_step(sigma: float, q: float, sign: float, epsilon: float) -> Ball:
    """delta of one sampled step in one direction; C_gamma has that of the record removed."""

    def value() -> Ball:
        s, rate, a = ball(sigma), ball(q), ball(epsilon).exp()
        if sign > 0:
            g = cut(s, rate, a)
            return (1 - rate) * tail(g) + rate * tail(g - 1 / s) - a * tail(g)
        if 1 / a <= 1 - rate:
            return ball(0)
        g = cut(s, rate, 1 / a)
        return tail(-g) - a * ((1 - rate) * tail(-g) + rate * tail(1 / s - g))

    return _accurate(value)


def _plain(squares: Squares, epsilon: float) -> Ball:
    if not squares.high:
        return ball(0)
    return _accurate(lambda: gaussian(root(squares), ball(epsilon).exp()))


def _distances(steps: Composition) -> Ball:
    """The sum of the steps' total variations: delta is never more."""

    def value() -> Ball:
        total = _plain(steps.plain, 0.0)
        for sigma, q, n in zip(steps.sigma.tolist(), steps.q.tolist(), steps.count.tolist(), strict=True):
            half = 1 / (2 * ball(sigma))
            total += ball(n) * ball(q) * (tail(-half) - tail(half))
        return total

    return _accurate(value)


def _chernoff(steps: Composition, epsilon: float) -> Ball:
    """M(c) e^(-c epsilon) c^c/(1+c)^(1+c), at the saddle's c."""
    c = saddle_at_epsilon(steps, epsilon).c
    with precision(160):
        x = ball(c)
        try:
            total = _log_gauss(steps.plain, x) - x * ball(epsilon) + x * x.log() - (1 + x) * (1 + x).log()
            for sigma, q, n, sign in zip(
                steps.sigma.tolist(), steps.q.tolist(), steps.count.tolist(), steps.sign.tolist(), strict=True
            ):
                total += ball(n) * BallStep(sigma, q, 1.0 + c if sign > 0 else -c).ceiling(0.0, 0.0, 50)
        except (TooLong, OverflowError, ValueError):
            return ball(1)
        bound = total.exp().upper()
        return bound if bound <= 1 else ball(1)


def _log_gauss(squares: Squares, c: Ball) -> Ball:
    return root(squares) ** 2 * c * (c + 1) / 2 if squares.high else ball(0)


def beyond_all_losses(steps: Composition, epsilon: float) -> bool:
    """Whether no loss reaches epsilon for certain: where the record is added, none exceeds -sum T log(1 - q)."""
    if steps.plain.high or not (steps.sign == -1.0).all():
        return False
    with precision(160):
        total = ball(0)
        for q, n in zip(steps.q.tolist(), steps.count.tolist(), strict=True):
            total -= ball(n) * (1 - ball(q)).log()
        return bool(ball(epsilon) >= total)


def _accurate(value: Callable[[], Ball]) -> Ball:
    """The value with as many bits as it takes to know it well, or the most that there are."""
    found = None
    for bits in PRECISIONS:
        with precision(bits):
            found = value()
            if found == 0 or found.rel_accuracy_bits() >= ENOUGH:
                break
    return found
