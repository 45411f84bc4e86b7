"""Levels: how many steps sampled the record, where the noise is so small that hardly anything else matters.

Between two levels the profile is flat: delta is the chance of so many sampled steps, but for a share like e^-100,
and epsilon hangs on the difference of the two, which no logarithm of delta holds. Here that difference is a whole
number. Given the sampled steps S, the loss is that of a Gaussian mechanism of psi^2 = |S|/sigma^2 plus log w, w the
chance of S, plus a rest that is never negative and hardly ever matters (docs/design/accounting.md, "Levels").
"""

from bisect import bisect_left
from fractions import Fraction
from itertools import accumulate, product
from typing import Any

import numpy as np

from psidp.accounting.closed_form import GRANTED
from psidp.accounting.composition import Array, Composition
from psidp.accounting.contours.mgf_table import ULP
from psidp.accounting.exact_sums import BITS, UNIT, power
from psidp.maths.mills import mills
from psidp.maths.normal import SQRT_2PI, TINY, tail
from psidp.maths.profile import log_delta_from_psi
from psidp.symbols import float_above, float_below

__all__ = ["SMALL", "Levels"]

SMALL = 0.15
"""The largest noise multiplier for which levels are worth a try."""
MOST, GROUPS = 2048, 6
"""Levels in all, and groups of steps, that are affordable."""
NEGLIGIBLE = 1 << 100
"""Levels beyond those that hold all but delta over this are one term of the upper end."""
SHARES = (2e-7, 1e-5, 5e-4)
"""Parts of epsilon granted to what sampled and unsampled steps add to each other's loss; the first that does."""
WOBBLE = 32.0 * ULP
"""Relative error of log w and psi, and of what is computed from them."""
SAFE = 1e-11
"""Relative error of the terms of a sum and of the sum."""


class Levels:
    """Chances of all levels in whole numbers, and the Gaussian mechanism of each; made for one delta."""

    method = "levels"

    def __init__(self, steps: Composition, delta: Fraction) -> None:
        self.steps, self.delta = steps, delta
        sigma, q, count = steps.sigma, steps.q, steps.count
        chances = [_binomial(float(a), int(n), delta) for a, n in zip(q, count, strict=True)]
        rows = list(product(*map(_numbered, chances)))
        found = [_product(row) for row in rows]
        sampled = np.array([[k for k, _, _ in row] for row in rows], dtype=np.float64)
        log_w = sampled @ np.log(q) + (count - sampled) @ np.log1p(-q)
        square = sampled @ (1.0 / sigma**2) + steps.gauss
        order = [int(i) for i in np.argsort(-(0.5 * square + log_w), kind="stable") if square[i] > 0.0]
        self.sampled, self.log_w, self.square = sampled[order], log_w[order], square[order]
        self.center = 0.5 * self.square + self.log_w
        self.psi = np.sqrt(self.square)
        low, high = ([found[i][end] for i in order] for end in (0, 1))
        self.low = np.array([float_below(Fraction(p, UNIT)) for p in low])
        self.high = np.array([float_above(Fraction(p, UNIT)) for p in high])
        self.sums = [list(accumulate(ps, initial=0)) for ps in (low, high)]
        self.left = float_above(Fraction(UNIT - sum(p for p, _ in found), UNIT))
        self.any = UNIT - found[0][0]
        """The chance that any step sampled the record, rounded up."""
        self.alone = not steps.plain.high

    @staticmethod
    def fits(steps: Composition, delta: Fraction) -> bool:
        """Whether all noise is tiny, the record removed, and levels are few."""
        if steps.pairs or not 0 < steps.count.size <= GROUPS or not (steps.sign == 1.0).all():
            return False
        mean = steps.count * steps.q
        rare = float(np.log(2.0)) * (delta.denominator.bit_length() - delta.numerator.bit_length() + 100)
        many = np.minimum(mean + np.sqrt(2.0 * mean * rare) + rare, steps.count) + 1.0
        none = steps.count * -np.log1p(-steps.q)
        return bool(steps.sigma.max() <= SMALL and np.prod(many) <= MOST and none.sum() <= 0.25 * BITS)

    def epsilon(self) -> tuple[float, float]:
        """Bounds of the epsilon at which the profile has this delta."""
        with np.errstate(all="ignore"):
            top = float(self.center[0] + 45.0 * self.psi.max() + 1.0)
            low = _last(lambda e: self._above(e) >= 0.0, top)
            high = np.inf
            for share in SHARES:
                high = min(high, _first(lambda e, share=share: self._below(e, share) <= 0.0, low, top))
                if high <= low * (1.0 + 2.0 * share):
                    break
        return low, float(high)

    def _gap(self, epsilon: float, side: int) -> tuple[int, float]:
        """How many levels lie above epsilon, and their chances less delta, rounded down (0) or up (1)."""
        above = bisect_left(self.center, True, key=lambda center: center <= epsilon)
        exact = Fraction(self.sums[side][above], UNIT) - self.delta
        return above, (float_below, float_above)[side](exact)

    def _log_a(self, epsilon: float) -> float:
        """log of e^epsilon, less the chance of no sampled step where there is nothing else: that path never counts."""
        some = float(Fraction(self.any, UNIT))
        return epsilon + float(np.log(some * np.exp(-epsilon) - np.expm1(-epsilon))) if self.alone else epsilon

    def _above(self, epsilon: float) -> float:
        """A number at or below delta(epsilon) - delta: the loss without its rest."""
        (n, gap), log_a = self._gap(epsilon, 0), self._log_a(epsilon)
        ahead = log_a - self.log_w + WOBBLE * (abs(log_a) - self.log_w)
        missed = self.high[:n] * _deficit(self.psi[:n] * (1.0 - WOBBLE), ahead[:n])
        more = self.low[n:] * _profile(self.psi[n:] * (1.0 - WOBBLE), ahead[n:], -1.0)
        return gap - float((missed * (1.0 + SAFE) + TINY).sum()) * (1.0 + SAFE) + float(more.sum()) * (1.0 - SAFE)

    def _below(self, epsilon: float, share: float) -> float:
        """A number at or above delta(epsilon) - delta: a rest up to eta, and the chance that it is more."""
        (n, gap), log_a = self._gap(epsilon, 1), self._log_a(epsilon)
        eta = share * (epsilon + float(Fraction(self.any, UNIT)))
        if self.alone:
            log_a += float(np.log1p(-np.expm1(0.5 * eta) * np.exp(-log_a) * (1.0 + SAFE)))
        ahead = log_a - eta - self.log_w - WOBBLE * (abs(log_a) - self.log_w)
        missed = self.low[:n] * _deficit(self.psi[:n] * (1.0 + WOBBLE), ahead[:n])
        more = self.high[n:] * _profile(self.psi[n:] * (1.0 + WOBBLE), ahead[n:], 1.0)
        more = np.append(more, self.high * self._rest_matters(epsilon, eta))
        plus = (float((more * (1.0 + SAFE) + TINY).sum()) + self.left) * (1.0 + SAFE)
        return gap + plus - float((missed * (1.0 - SAFE)).sum()) * (1.0 - SAFE)

    def _rest_matters(self, epsilon: float, eta: float) -> Array:
        """Per level, the chance that the rest exceeds eta and the loss epsilon.

        Half of eta is for the sampled steps, half for the others. One sampled step that looks unsampled makes the loss
        that of the other sampled steps, and little more (nothing that counts, where there are none); two such steps, or
        another one that looks sampled, decide.
        """
        steps, k = self.steps, self.sampled
        half, root, odds = 0.5 / steps.sigma, 1.0 / steps.sigma, np.log1p(-steps.q) - np.log(steps.q)
        inner, outer = (np.expm1(0.5 * eta / np.maximum(n, 1.0))[:, None] for n in (k.sum(1), (steps.count - k).sum(1)))
        hidden = k * _chance(half - (odds - np.log(inner)) / root)
        hidden[(k.sum(1) == 1.0) & self.alone] = 0.0
        shown = ((steps.count - k) * _chance(half + (odds + np.log(outer)) / root)).sum(1)
        square = np.maximum(self.square[:, None] - root**2, 0.0)
        ahead = epsilon - eta - np.log1p(1.0 / inner) - (self.log_w[:, None] + odds)
        psi = np.sqrt(square)
        passing = np.where(square > 0.5, _chance(ahead / psi - 0.5 * psi), np.where(ahead > 1e-6 * epsilon, 0.0, 1.0))
        bad = (hidden * passing).sum(1) + 0.5 * hidden.sum(1) ** 2 + shown
        return np.asarray(np.where(bad < 1.0, bad, 1.0))


def _binomial(q: float, count: int, delta: Fraction) -> list[tuple[int, int]]:
    """Chances of 0, 1, ... sampled steps, down and up, until the others are negligible beside delta."""
    rate = int(Fraction(q) * UNIT)  # exact: no float is finer than 2^-1074
    kept, enough = UNIT - rate, int(delta * UNIT) // NEGLIGIBLE
    low, high = power(kept, count)
    found, total = [(low, high)], low
    for k in range(count):
        up, down = (count - k) * rate, (k + 1) * kept
        low, high = low * up // down, -(-high * up // down)
        total += low
        found.append((low, high))
        if UNIT - total <= enough:
            break
    return found


def _numbered(chances: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    return [(k, low, high) for k, (low, high) in enumerate(chances)]


def _product(row: tuple[tuple[int, int, int], ...]) -> tuple[int, int]:
    """The product of the chances of a row, down and up."""
    low = high = UNIT
    for _, a, b in row:
        low, high = (low * a) >> BITS, -((-high * b) >> BITS)
    return low, high


def _deficit(psi: Array, epsilon: Array) -> Array:
    """1 - delta of the Gaussian mechanism, to a relative SAFE, for epsilon <= psi^2/2: two positive terms."""
    a, b = 0.5 * psi - epsilon / psi, 0.5 * psi + epsilon / psi
    return np.asarray(np.exp(-0.5 * a * a) * (mills(np.maximum(a, 0.0)) + mills(np.maximum(b, 0.0))) / SQRT_2PI)


def _profile(psi: Array, epsilon: Array, side: float) -> Array:
    """delta of the Gaussian mechanism at epsilon, rounded to a side; for psi = 0 it is 1 - e^epsilon or 0."""
    log_delta = log_delta_from_psi(psi, np.maximum(epsilon, 0.0))
    found = np.exp(log_delta * (1.0 - side * GRANTED) + side * GRANTED)
    return np.asarray(np.where((epsilon > 0.0) | (side < 0.0), np.minimum(found, 1.0), 1.0))


def _chance(x: Array) -> Array:
    """Phi(-x), rounded up by far more than x is wrong."""
    return np.asarray(tail(x - 1e-9 * (1.0 + np.abs(x)))) * (1.0 + 1e-9) + TINY


def _last(holds: Any, top: float) -> float:
    """About the largest epsilon up to top for which a test holds that fails further on; 0 where it never holds."""
    low, high = 0.0, top
    while high - low > 1e-9 * high and high > 1e-12:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _first(holds: Any, low: float, top: float) -> float:
    """About the least epsilon between low and top for which a test holds; inf where it does not hold at top."""
    if not holds(top):
        return float(np.inf)
    high = top
    while high - low > 1e-9 * high and high > 1e-12:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
