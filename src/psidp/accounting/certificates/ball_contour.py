"""The contour in balls: delta of long runs from the trapezoid rule on a line, every error term a ball.

The terms are those of docs/design/accounting.md, 1 to 4; rounding is what balls are about. Floats only choose the line,
the steps and the lengths; a poor choice costs width.
"""

from collections.abc import Iterator
from math import ceil, log, log2, pi

import numpy as np

from psidp.accounting.certificates.ball_step import BallStep, TooLong
from psidp.accounting.certificates.balls import UNIT, Ball, ball, library, precision
from psidp.accounting.composition import Composition
from psidp.accounting.contours.saddle import Saddle, dyadic

__all__ = ["BallContour"]

TIGHT = 32.0
"""Each of the errors is at most about e^-TIGHT of delta."""
GOOD = 30
"""Bits of delta at which a contour is kept as it is."""
LINES = np.linspace(np.log(1e-7), np.log(1e9), 60)
"""Logarithms of c to begin with."""
MOST_NODES, MOST_WORK = 60_000, 4e7
"""Nodes on the line, and those times the nodes of the noise, that a contour may have."""


class BallContour:
    """A table of M on the line Re z = c, made for epsilons near one."""

    method = "contour"

    def __init__(self, steps: Composition, epsilon: float, level: float | None = None) -> None:
        if not (steps.count.size and (np.abs(steps.sign) == 1.0).all()):
            raise TooLong
        self.steps = steps
        line = self._line(epsilon)
        self.c, self.level = line.c, min(line.log_delta if level is None else level, 0.0)
        if not (np.isfinite(self.level) and 0.0 < self.c < 1e12):
            raise TooLong
        self.c2, self.du = self._period(line, epsilon)
        top = self._top(epsilon)
        count = ceil(top / self.du)
        if not count <= MOST_NODES:
            raise TooLong
        size = abs(self.level) + self.c * epsilon + top * epsilon + float(steps.count.max()) + count
        self.bits = 100 + ceil(log2(size + 2.0))
        with precision(self.bits):
            self._fill(count)

    @classmethod
    def around(cls, steps: Composition, epsilon: float) -> Iterator["BallContour"]:
        """Contours for one epsilon: a second and a third one where the guess of delta was poor."""
        level = None
        for _ in range(3):
            contour = cls(steps, epsilon, level)
            found = contour.delta(epsilon)
            if found.rel_accuracy_bits() >= GOOD:
                break
            with precision(contour.bits):
                level = contour.level - 8.0 if found.upper() <= 0 else float(found.abs_upper().log().mid()) - 8.0
        yield contour

    def delta(self, epsilon: float) -> Ball:
        """A ball with delta at this epsilon."""
        flint = library()
        with precision(self.bits):
            e, c, du = ball(epsilon), ball(self.c), ball(self.du)
            turn, total = flint.acb(0, -du * e), -self.table[0].real
            for k, value in enumerate(self.table):
                total += 2 * (value * (turn * k).exp()).real
            scale = (-c * e).exp()
            period = 2 * flint.arb.pi() / du
            left = 1 / ((c * period).exp() - 1)
            right = (self.log_m2 - ball(self.c2) * e).exp() / (((ball(self.c2) - c) * period).exp() - 1)
            rest = (self.rest * scale).upper()
            value = total * scale / period + flint.arb(0, rest)
            alias = (left + right).upper() / 2
            return value - alias + flint.arb(0, alias)

    def _groups(self, c: float) -> list[tuple[BallStep, int]]:
        steps = self.steps
        orders = (1.0 + c if sign > 0 else -c for sign in steps.sign.tolist())
        columns = zip(steps.sigma.tolist(), steps.q.tolist(), orders, steps.count.tolist(), strict=True)
        return [(BallStep(sigma, q, s), int(count)) for sigma, q, s, count in columns]

    def _line(self, epsilon: float) -> Saddle:
        """Where |M(c) e^(-c epsilon)/(c (c+1))| is least, and what delta is about: guesses."""

        def log_m(log_c: float) -> float:
            c = float(dyadic(np.exp(log_c)))
            try:
                sampled = sum(n * step.rough() for step, n in self._groups(c))
            except (TooLong, ValueError):
                return np.inf
            return sampled + 0.5 * self.steps.gauss * c * (c + 1.0)

        at, seen, values = LINES, np.empty(0), np.empty(0)
        for _ in range(3):
            found = np.array([log_m(x) for x in at.tolist()])
            seen, values = np.concatenate((seen, at)), np.concatenate((values, found))
            order = np.argsort(seen)
            seen, values = seen[order], values[order]
            c = np.exp(seen)
            cost = values - c * epsilon - np.log(c) - np.log1p(c)
            best = int(np.argmin(np.where(np.isnan(cost), np.inf, cost)))
            low, high = seen[max(best - 1, 0)], seen[min(best + 1, seen.size - 1)]
            at = np.linspace(low, high, 12)[1:-1]
        bend = np.polyfit(seen[best - 3 : best + 4] - seen[best], cost[best - 3 : best + 4], 2)[0] if best > 2 else 1.0
        log_delta = float(cost[best]) + seen[best] - 0.5 * log(4 * pi * max(float(bend), 0.1))
        beyond = (c > 1.0001 * c[best]) & np.isfinite(values)
        return Saddle(float(dyadic(c[best])), epsilon, log_delta, c[beyond], values[beyond])

    def _period(self, saddle: Saddle, epsilon: float) -> tuple[float, float]:
        """c2 and du for which both aliases are small: guesses."""
        need = self.level - TIGHT
        c2, k2 = saddle.beyond_c, saddle.beyond_k
        if not c2.size:
            raise TooLong
        lengths = (k2 - c2 * epsilon - need) / (c2 - self.c)
        best = int(np.argmin(np.where(lengths > 0.0, lengths, np.inf)))
        period = 1.03 * max(float(lengths[best]), -need / self.c)
        return float(dyadic(c2[best])), float(dyadic(np.array(2 * pi / period)))

    def _top(self, epsilon: float) -> float:
        """The length of the line: a guess."""
        need, groups = self.level - TIGHT + self.c * epsilon, self._groups(self.c)
        gauss = self.steps.gauss

        def beyond(u: float) -> float:
            total = 0.5 * gauss * (self.c * (self.c + 1.0) - u * u) - log(pi * u)
            return total + sum(n * min(step.rough(u, step.best_angle(u)), step.rough()) for step, n in groups)

        high = 8.0 * self.du
        while beyond(high) > need:
            high *= 1.5
            if high > MOST_NODES * self.du:
                raise TooLong
        return high

    def _fill(self, count: int) -> None:
        """The table M(z)/(z (z+1)) and the bounds of what lies beyond it."""
        flint = library()
        groups, c, u = self._groups(self.c), ball(self.c), ball(self.du) * count
        plain = flint.arb(self.steps.plain.low).union(flint.arb(self.steps.plain.high)) / ball(2) ** UNIT
        work = 0.0
        for step, n in groups:
            h, _, low, high = step.nodes(self.du * count, log(n) + TIGHT + 6.0)
            work += (high - low) / h * count
        if not work <= MOST_WORK:
            raise TooLong
        at = [flint.acb(c, ball(self.du) * k) for k in range(count + 1)]
        logs = [plain * z * (z + 1) / 2 for z in at]
        moments = [flint.acb(1)] * (count + 1)
        log_rest, log_m2 = plain * (c * (c + 1) - u * u) / 2, plain * ball(self.c2) * (ball(self.c2) + 1) / 2
        for (step, n), (other, _) in zip(groups, self._groups(self.c2), strict=True):
            column = step.orders(self.du, count, log(n) + TIGHT + 6.0, self.bits)
            if step.s < 0:
                column = [value.conjugate() for value in column]
            moments = [m * value**n for m, value in zip(moments, column, strict=True)]
            digits = 24 + ceil(log2(n + 1))
            angle = step.best_angle(self.du * count)
            log_rest += n * step.ceiling(self.du * count, angle, digits)
            log_m2 += n * other.ceiling(0.0, 0.0, digits)
        self.table = [m * x.exp() / (z * (z + 1)) for m, x, z in zip(moments, logs, at, strict=True)]
        self.rest = log_rest.exp() / (flint.arb.pi() * u)
        self.log_m2 = log_m2.upper()
