"""One sampled step in balls: moments of its likelihood ratio on and beside the real line, and sums of them on a grid.

Letters as in docs/design/accounting.md: F = 1 - q + q e^t, t = g/sigma - 1/(2 sigma^2), A(s) = E[F^s], and F_y for F
at g + iy, theta = y/sigma.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log, pi, sqrt

import numpy as np

from psidp.accounting.certificates.balls import Ball, ball, library, tail
from psidp.accounting.composition import Array

__all__ = ["BallStep", "TooLong"]

SHARES = (0.85, 0.6, 0.4, 0.25, 0.15, 0.08, 0.04, 0.02, 0.01, 0.003, 0.001)
"""Angles theta to try, as shares of the largest one."""
LONGEST, CROWD = 4000.0, 30_000
"""A range of noise, and a number of nodes in it, that would take too long."""


class TooLong(ArithmeticError):
    """Ball arithmetic would take too long this way."""


@dataclass(frozen=True)
class BallStep:
    """A sampled step (sigma, q) at the real order s >= 0 (the record is removed) or s < 0 (it is added)."""

    sigma: float
    q: float
    s: float

    @property
    def widest(self) -> float:
        """The largest theta: |F_y|^s must stay bounded."""
        return pi if self.s >= 0 else pi / 2

    def rough(self, u: float = 0.0, theta: float = 0.0) -> float:
        """log of e^(y^2/2) E[|F_y|^s e^(-u arg F_y)] in floats: a guess."""
        g, x = self._exponents(40.0, u, theta)
        top = float(x.max())
        with np.errstate(under="ignore"):
            mean = float(np.exp(x - top).sum()) * float(g[1] - g[0]) / sqrt(2 * pi)
        return top + log(mean) + 0.5 * (theta * self.sigma) ** 2

    def best_angle(self, u: float) -> float:
        """The theta with the least bound of |A| beyond u: a guess."""
        return min((share * self.widest for share in SHARES), key=lambda theta: self.rough(u, theta))

    def ceiling(self, u: float, theta: float, bits: int) -> Ball:
        """log of a bound of |A(s + iu')| for all u' >= u: e^(y^2/2) E[|F_y|^s e^(-u arg F_y)]; A itself at theta 0."""
        flint = library()
        low, high = self._range(bits * log(2.0) + 10.0, u, theta)
        sigma, q, s, angle = ball(self.sigma), ball(self.q), ball(self.s), ball(theta)
        turn, shift = flint.acb(0, angle), 1 / (2 * sigma * sigma)

        def integrand(g: Ball, analytic: bool) -> Ball:
            t = g / sigma - shift
            if theta == 0.0:
                return (s * (1 - q + q * t.exp()).log(analytic=analytic) - g * g / 2).exp()
            up = (1 - q + q * (t + turn).exp()).log(analytic=analytic)
            down = (1 - q + q * (t - turn).exp()).log(analytic=analytic)
            return (s * (up + down) / 2 - ball(u) * (up - down) / flint.acb(0, 2) - g * g / 2).exp()

        about = self.rough(u, theta) - 0.5 * (theta * self.sigma) ** 2
        body = _integral(integrand, low, high, bits, about).real / (2 * flint.arb.pi()).sqrt()
        total = (body + self._tails(low, high, max(-u, 0.0), theta)).upper()
        return total.log() + (angle * sigma) ** 2 / 2

    def orders(self, du: float, count: int, need: float, bits: int) -> list[Ball]:
        """A(s + iku du) for k = 0, 1, ... count, each with an error of at most about e^-need A(s)."""
        found: list[Ball] = []
        first, last = 0, min(64, count + 1)
        while first < count + 1:
            found += self._block(du, first, last, need, bits)
            first, last = last, min(4 * last, count + 1)
        return found

    def nodes(self, u: float, need: float) -> tuple[float, float, float, float]:
        """Step, angle and range of a trapezoid sum of A up to u: guesses, the step a power of 2 times few bits."""
        level = self.rough()
        best, angle = 0.0, 0.0
        for share in SHARES:
            theta = share * self.widest
            room = self.rough(-u, theta) - level + need
            step = 2 * pi * theta * self.sigma / max(room, 1.0)
            best, angle = (step, theta) if step > best else (best, angle)
        mantissa, exponent = np.frexp(best)
        return float(np.ldexp(np.floor(mantissa * 256.0) / 256.0, exponent)), angle, *self._range(need)

    def _block(self, du: float, first: int, last: int, need: float, bits: int) -> list[Ball]:
        """The orders first <= k < last, by one trapezoid sum in g."""
        flint = library()
        top = du * (last - 1)
        h, theta, low, high = self.nodes(top, need)
        start, stop = ceil(low / h), ceil(high / h)
        if not 0 < stop - start <= CROWD:
            raise TooLong
        around = self.ceiling(-top, theta, 30).exp()
        y = ball(theta) * ball(self.sigma)
        error = 2 * around / ((2 * flint.arb.pi() * y / ball(h)).exp() - 1) + self._tails(start * h, (stop - 1) * h)
        sigma, q, s = ball(self.sigma), ball(self.q), ball(self.s)
        weights, losses = [], []
        scale = ball(h) / (2 * flint.arb.pi()).sqrt()
        for j in range(start, stop):
            g = ball(j) * ball(h)
            loss = (1 - q + q * (g / sigma - 1 / (2 * sigma * sigma)).exp()).log()
            weights.append((s * loss - g * g / 2).exp() * scale)
            losses.append(loss * ball(du))
        sums = _waves(weights, losses, first, last - first)
        slack = flint.acb(flint.arb(0, error.upper()), flint.arb(0, error.upper()))
        return [value + slack for value in sums]

    def _exponents(self, need: float, u: float, theta: float) -> tuple[Array, Array]:
        """Noise from end to end, and log phi |F_y|^s e^(-u arg F_y) there."""
        extra = -self.s * -float(np.log1p(-self.q)) if self.s < 0 else 0.0
        reach = sqrt(2.0 * (need + extra + max(-u, 0.0) * theta)) + 1.0
        low, high = -reach, max(self.s, 0.0) / self.sigma + reach
        if not high - low <= LONGEST:
            raise TooLong
        g = np.linspace(low, high, int(max((high - low) * max(40.0, 3.0 / self.sigma), 1500.0)))
        with np.errstate(all="ignore"):
            modulus, argument = self._log_f(g, theta)
            return g, self.s * modulus - u * argument - 0.5 * g * g

    def _range(self, need: float, u: float = 0.0, theta: float = 0.0) -> tuple[float, float]:
        """Noise beyond which little is left, e^-need of the whole: guesses, judged by `_tails`."""
        top = float(self._exponents(need, u, theta)[1].max())
        g, x = self._exponents(need + max(-top, 0.0), min(u, 0.0), theta if u < 0.0 else 0.0)
        inside = g[x >= top - need]
        low, high = float(inside[0]) - 0.5, max(float(inside[-1]) + 0.5, max(self.s, 0.0) / self.sigma + 1.0, 1.5)
        while self.s < 0 and 1.01 * -self.s * self.q * np.exp(low / self.sigma - 0.5 / self.sigma**2) > -low * (
            self.sigma * (1.0 - self.q)
        ):
            low -= 0.5
        return min(low, -1.0), high

    def _log_f(self, g: Array, theta: float) -> tuple[Array, Array]:
        t = g / self.sigma - 0.5 / self.sigma**2
        a, b = np.log1p(-self.q), np.log(self.q) + t
        top = np.maximum(a, b)
        w = np.exp(a - top) + np.exp(b - top + 1j * theta)
        return top + np.log(np.abs(w)), np.angle(w)

    def _tails(self, low: float, high: float, u: float = 0.0, theta: float = 0.0) -> Ball:
        """Bound of the integral of phi F^s e^(u arg F_y) beyond [low, high], theta <= pi/2 where s < 0.

        For u = 0 it bounds every trapezoid sum beyond, too: phi F^s falls outwards there. arg F_y rises with g, up to
        theta. F <= 1 below, F <= k e^t above with k = F e^-t at the end; for s < 0 F >= 1 - q, and F rises.
        """
        sigma, q, s, a, b = (ball(x) for x in (self.sigma, self.q, self.s, low, high))
        shift, widest = 1 / (2 * sigma * sigma), ball(u) * ball(theta)
        if not (a < 0 and b > 1 and b > s / sigma):
            raise TooLong
        grown = q * (a / sigma - shift).exp()
        if self.s < 0 and not -a > -s * grown / (1 - q) / sigma:
            raise TooLong
        below = self._turn(grown, u, theta).exp() * tail(-a) * (ball(1) if self.s >= 0 else (1 - q) ** s)
        between, b = self._cells(b, u, theta)
        log_f = (1 - q + q * (b / sigma - shift).exp()).log()
        if self.s < 0:
            return (below + between + widest.exp() * (s * log_f).exp() * tail(b)).upper()
        log_k = log_f - b / sigma + shift
        far = (widest + s * log_k + s * (s - 1) * shift).exp() * tail(b - s / sigma)
        return (below + between + far).upper()

    def _cells(self, high: Ball, u: float, theta: float) -> tuple[Ball, Ball]:
        """Bound of the integral from `high` on to where e^(u theta) matters no more, cell by cell; and that place."""
        top = max(self.s, 0.0) / self.sigma + sqrt(2.0 * (u * theta + 60.0)) + 1.0
        start = float(high.mid())
        if u * theta < 1.0 or not top > start:
            return ball(0), high
        count = ceil((top - start) * 8.0)
        if count > LONGEST:
            raise TooLong
        sigma, q, s = ball(self.sigma), ball(self.q), ball(self.s)
        ends = [high + (ball(top) - high) * i / count for i in range(count + 1)]
        growth = [q * (g / sigma - 1 / (2 * sigma * sigma)).exp() for g in ends]
        total = ball(0)
        for (left, right), (before, after) in zip(pairwise(ends), pairwise(growth), strict=True):
            level = s * (1 - q + (after if self.s >= 0 else before)).log()
            total += (right - left) * (self._turn(after, u, theta) + level - left * left / 2).exp()
        return total, ends[-1]

    def _turn(self, grown: Ball, u: float, theta: float) -> Ball:
        """u arg F_y where q e^t is `grown`."""
        acb = library().acb
        return ball(u) * (1 - ball(self.q) + grown * acb(0, theta).exp()).arg() if u > 0.0 else ball(0)


def _integral(integrand: Callable[[Ball, bool], Ball], low: float, high: float, bits: int, about: float) -> Ball:
    """The integral in pieces of about 2, good to 2^-bits of e^about."""
    flint = library()
    pieces = max(ceil((high - low) / 2.0), 1)
    cuts = [low + (high - low) * i / pieces for i in range(pieces + 1)]
    small = ball(about).exp() * ball(2) ** -bits
    total = flint.acb(0)
    for a, b in pairwise(cuts):
        total += flint.acb.integral(integrand, a, b, rel_tol=ball(2) ** -bits, abs_tol=small, eval_limit=20_000)
    return total


def _waves(weights: list[Ball], losses: list[Ball], first: int, count: int) -> list[Ball]:
    """sum of w e^(ikl) for k = first, ...: a matrix of small steps times a matrix of large ones."""
    flint = library()
    small = max(ceil(sqrt(count)), 1)
    large = ceil(count / small)
    begin = [w * flint.acb(0, x * first).exp() for w, x in zip(weights, losses, strict=True)]
    step = [flint.acb(0, x).exp() for x in losses]
    stride = [flint.acb(0, x * small).exp() for x in losses]
    rows = _powers(begin, step, small)
    columns = _powers([flint.acb(1)] * len(losses), stride, large)
    product = flint.acb_mat(rows) * flint.acb_mat(columns).transpose()
    entries = product.tolist()
    return [entries[k % small][k // small] for k in range(count)]


def _powers(begin: list[Ball], ratio: list[Ball], count: int) -> list[list[Ball]]:
    """Rows begin * ratio^k, each power the product of two half as large: balls in the plane grow with every product."""
    powers = [[library().acb(1)] * len(ratio), ratio]
    for k in range(2, count):
        powers.append([a * b for a, b in zip(powers[k // 2], powers[k - k // 2], strict=True)])
    return [[a * b for a, b in zip(begin, row, strict=True)] for row in powers[:count]]
