"""The search: from bounds of log delta to bounds of epsilon, and where to lay a lattice for them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from psidp.accounting.closed_form import Closed
from psidp.accounting.composition import Array, Composition
from psidp.accounting.contours.error_bounds import NotCertified
from psidp.accounting.contours.mgf_table import ULP
from psidp.accounting.contours.saddle import saddle_at_delta, saddle_at_epsilon
from psidp.accounting.crude import unsampled
from psidp.accounting.exact_sums import NOTHING
from psidp.accounting.interval import agreed
from psidp.accounting.pld.jumps import Jumps
from psidp.accounting.pld.loss_grid import Lattice

__all__ = [
    "BROAD",
    "LATTICE_POINTS",
    "LONG",
    "SMALLEST",
    "Found",
    "Method",
    "certify",
    "crossing",
    "enough",
    "jumps_at",
    "lattices",
    "nearby",
    "one_step",
    "pair_lattices",
    "room",
    "settled_jumps",
    "smallest",
]

SMALLEST = 1e-9
"""epsilons below this are all the same to a lattice."""
LATTICE_POINTS = (1 << 14, 1 << 16, 1 << 18)
"""Until the answer is narrow enough."""
SETTLING = 8
"""How often the first of them is laid anew, where it finds an epsilon that is far from its own."""
REACHES = (1.0, 1.001, 1.003, 1.01, 1.03, 1.05, 1.1)
"""How far beyond its place a lattice is looked at."""
ENOUGH = 4e-7
"""Relative width of epsilon at which no further method is taken."""
ROUGH = 2e-5
"""And for a lattice, whose cost grows with its narrowness."""
HALVES = 6
"""Further halvings of either end that jumps find."""
LONG = 4e-4
"""Relative width of epsilon above which jumps and a long contour are tried, after all lattices."""
BROAD = 0.02
"""Width of log delta above which jumps are tried after all lattices, and with finer blocks after that."""
FINER = 4
"""How much finer the blocks of small losses are where jumps are too wide otherwise."""
HOPELESS = 0.1
"""Relative width of epsilon that no lattice four times as fine mends."""
LARGEST_LATTICE = 1 << 20
"""For steps that no contour can answer for."""


class Method(Protocol):
    """Anything that bounds log delta at given epsilons."""

    method: str

    def log_delta(self, epsilon: Array) -> tuple[Array, Array]:
        """Proved lower and upper bounds."""
        ...


@dataclass
class Found:
    """Bounds of epsilon so far, and the methods that are left."""

    steps: Composition
    log_delta: float
    low: float = 0.0
    high: float = float(np.inf)
    method: str = ""
    left: Iterator[tuple[Method, float]] = field(default_factory=lambda: iter(()))

    def meet(self, low: float, high: float, method: str = "") -> None:
        """These bounds too; the method is named where they are the narrower ones."""
        if method and (not self.method or high - low < self.high - self.low):
            self.method = method
        self.low, self.high = max(self.low, low), min(self.high, high)
        if not self.low <= self.high:
            agreed("epsilon", self.low, self.high)

    def wide(self, share: float) -> bool:
        """Whether the bounds are further apart than this share of epsilon, and a further method may be worth a try."""
        if self.high - self.low <= max(share * self.low, enough(self.steps, self.low)):
            return False
        return not (Closed.fits(self.steps) or self.steps.pairs or (self.steps.sign == 2.0).any())

    def taken(self, methods: Iterable[tuple[Method, float]], share: float = 0.0) -> bool:
        """Whether these methods, one after the other, lead close enough."""
        for candidate, guess in methods:
            halves = HALVES if isinstance(candidate, Jumps) else 0
            self.meet(*certify(candidate, guess, self.log_delta, halves), candidate.method)
            lattice = isinstance(candidate, Lattice)
            if self.high - self.low <= max(enough(self.steps, self.low), (ROUGH if lattice else share) * self.low):
                return True
            if lattice and not share and self._hopeless(candidate):
                break
        return False

    def _hopeless(self, lattice: Method) -> bool:
        """Whether the bounds are so wide after the second lattice that the largest will hardly do, and jumps may."""
        last = LATTICE_POINTS[1] <= lattice.upper.a.size  # type: ignore[attr-defined]
        return bool(last and self.high - self.low > HOPELESS * self.high and Jumps.fits(self.steps))


def enough(steps: Composition, low: float) -> float:
    """The width at which it is not worth taking a further method."""
    return max((ENOUGH if steps.steps >= 50 else 5e-4) * low, 4e-10)


def lattices(steps: Composition, guess: float, log_delta: float) -> Iterator[tuple[Method, float]]:
    """Lattices for an epsilon that each of them brings nearer: small ones until it settles, then larger ones."""
    low, high = max(one_step(steps, log_delta), SMALLEST), max(unsampled(steps, log_delta), SMALLEST)
    hints = [guess if guess < np.inf else low]
    if (steps.sign == 1.0).all():  # a far tail misleads the saddle; the other direction has none
        hints.append(saddle_at_delta(steps.mirrored, log_delta).epsilon)
    epsilon, points, last, near = min(max(hints.pop(), low), high), smallest(steps), np.inf, nearby(log_delta)
    for _ in range(30):
        lattice = Lattice(steps, epsilon, log_delta, points, near)
        gap, beside = (lattice.log_delta(np.array([1.0, 1.0 + 0.5 * near]) * epsilon)[1] - log_delta).tolist()
        slope = (gap - beside) / (0.5 * near * epsilon)
        if abs(gap) <= min(1.0, gap - beside) or high <= 1.05 * low:
            epsilon = min(epsilon + 1.05 * max(gap, 0.0) / slope, high) if slope > 0.0 else epsilon
            break
        low, high = (max(low, epsilon), high) if gap > 0.0 else (low, min(high, epsilon))
        ahead = epsilon + gap / slope if abs(gap) < 0.5 * last and slope > 0.0 else np.nan
        if hints and gap > 0.0:
            ahead = hints.pop()
        epsilon, last = ahead if low < ahead < high else float(np.sqrt(low) * np.sqrt(high)), abs(gap)
    for points in LATTICE_POINTS:
        for _ in range(SETTLING):
            near = room(lattice, epsilon)
            lattice = Lattice(steps, epsilon, log_delta, points, near)
            found = crossing(lattice, log_delta, epsilon)
            if points > LATTICE_POINTS[0] or not found < (1.0 - near) * epsilon:
                break
            epsilon = max(found, 0.3 * epsilon)
        yield lattice, found
        epsilon = max(found, 0.3 * epsilon) if found < np.inf else epsilon


def pair_lattices(steps: Composition, guess: float, log_delta: float) -> Iterator[tuple[Method, float]]:
    """Lattices for steps of other kinds, which no contour answers for: up to a larger one, from a good guess."""
    low, high = max(one_step(steps, log_delta), SMALLEST), max(unsampled(steps, log_delta), SMALLEST)
    epsilon = min(max(guess, low), high) if guess < np.inf else low
    for points in (*LATTICE_POINTS, LARGEST_LATTICE):
        lattice = Lattice(steps, epsilon, log_delta, points)
        found = crossing(lattice, log_delta, epsilon)
        yield lattice, found
        epsilon = found if found < high else epsilon


def settled_jumps(steps: Composition, low: float, high: float, log_delta: float) -> Iterator[tuple[Method, float]]:
    """Jumps laid anew until they find the epsilon they were made for, by Newton's steps between bounds of it.

    Where small losses decide, that of the other direction, which has no far tail, is a good place to begin; where one
    jump decides, that of any one of the steps.
    """
    low, high = max(low, 1e-3 * high, SMALLEST), max(high, SMALLEST)
    hint = saddle_at_delta(steps.mirrored, log_delta).epsilon
    hint = max(hint, one_step(steps, log_delta - float(np.log(steps.steps))))
    epsilon = hint if low < hint < high else float(np.sqrt(low) * np.sqrt(high))
    for _ in range(SETTLING):
        try:
            jumps = Jumps(steps, epsilon, log_delta)
        except NotCertified:
            return
        gap, beside = (jumps.log_delta(np.array([1.0, 1.003]) * epsilon)[1] - log_delta).tolist()
        slope = (gap - beside) / (0.003 * epsilon)
        ahead = epsilon + gap / slope if slope > 0.0 else np.nan
        if abs(ahead - epsilon) <= 2e-3 * epsilon:
            yield jumps, float(ahead)
            if jumps.small.blocks:
                yield Jumps(steps, float(ahead), log_delta, FINER), float(ahead)
            return
        low, high = (epsilon, high) if gap > 0.0 else (low, epsilon)
        epsilon = float(ahead) if low < ahead < high else float(np.sqrt(low) * np.sqrt(high))


def jumps_at(steps: Composition, epsilon: float) -> Iterator[Method]:
    """Jumps for one epsilon, laid anew where they find a delta far from the guess; none where too many steps lose much.

    The guess is the larger of two: small losses alone, as the other direction has them, and any one step alone.
    """
    one = Closed(replace(steps, count=np.ones(1), plain=NOTHING))
    jump = float(one.log_delta(np.array([epsilon]))[1][0]) + float(np.log(steps.steps))
    log_delta = float(np.clip(np.fmax(saddle_at_epsilon(steps.mirrored, epsilon).log_delta, jump), -745.0, -1e-3))
    for _ in range(3):
        try:
            jumps = Jumps(steps, epsilon, log_delta)
        except NotCertified:
            return
        found = float(jumps.log_delta(np.array([epsilon]))[1][0])
        settled, log_delta = abs(found - log_delta) <= 2.0, max(found, -745.0)
        if settled or not found < 0.0:
            break
    yield jumps
    low, high = jumps.log_delta(np.array([epsilon]))
    if jumps.small.blocks and high[0] - low[0] > BROAD:
        yield Jumps(steps, epsilon, log_delta, FINER)


def smallest(steps: Composition) -> int:
    """Points of a lattice that is just fine enough to find the place: every step is moved by up to a cell."""
    return 1 << int(np.clip(np.ceil(np.log2(16.0 * np.sqrt(steps.steps))), 11, 14))


def room(lattice: Lattice, epsilon: float) -> float:
    """How far beyond epsilon the next grid reaches: a few times the way on which delta falls to a third."""
    return float(np.clip(4.0 / (lattice.upper.c * epsilon), 1e-3, 0.1))


def nearby(log_delta: float) -> float:
    """`room` before anything is known: about as much for a delta that falls like e^(-c epsilon)."""
    return float(np.clip(-4.0 / log_delta, 1e-3, 0.1)) if log_delta < 0.0 else 0.1


def certify(method: Method, guess: float, log_delta: float, halves: int = 0) -> tuple[float, float]:
    """Bounds of epsilon near a guess: where the method's bounds of log delta are on one side of the target.

    Either end may be moved towards the guess afterwards, so many times by half of what is left.
    """
    slack = 4.0 * ULP * (abs(log_delta) + 1.0)
    if not guess < np.inf:
        return 0.0, float(np.inf)
    if guess <= 0.0 and method.log_delta(np.zeros(1))[1][0] <= log_delta - slack:
        return 0.0, 0.0
    here = max(guess, 0.0)
    around = here * (1.0 + 1e-6) + 1e-12
    lows, highs = method.log_delta(np.array([here, around]))
    low_at, high_at = float(lows[0]), float(highs[0])
    slope = max((high_at - float(highs[1])) / (around - here), 1e-300)
    wide = 0.1 * here + 1e-9
    pads = 1.1 * np.array([max(log_delta - low_at, slack), max(high_at - log_delta, slack)]) / slope
    low_pad, high_pad = np.where(pads < wide, pads, wide) + 4.0 * ULP * here
    low, high = None, None
    for _ in range(80):
        ends = np.array([max(here - low_pad, 0.0), here + high_pad])
        bounds = method.log_delta(ends)
        if low is None and (ends[0] == 0.0 or bounds[0][0] >= log_delta + slack):
            low = float(ends[0])
        if high is None and bounds[1][1] <= log_delta - slack:
            high = float(ends[1])
        if low is not None and high is not None:
            break
        low_pad, high_pad = 2.0 * low_pad, 2.0 * high_pad
    if halves and low is not None and high is not None:
        return _halved(method, low, here, high, log_delta, slack, halves)
    return low if low is not None else 0.0, high if high is not None else float(np.inf)


def _halved(
    method: Method, low: float, here: float, high: float, log_delta: float, slack: float, halves: int
) -> tuple[float, float]:
    """Ends moved towards `here` as far as the method's bounds allow."""
    below, above = max(here, low), min(here, high)
    for _ in range(halves):
        ends = 0.5 * np.array([low + below, above + high])
        bounds = method.log_delta(ends)
        low, below = (float(ends[0]), below) if bounds[0][0] >= log_delta + slack else (low, float(ends[0]))
        above, high = (above, float(ends[1])) if bounds[1][1] <= log_delta - slack else (float(ends[1]), high)
    return low, high


def one_step(steps: Composition, log_delta: float) -> float:
    """epsilon of the one step that costs most: a lower bound, since composing only costs."""
    best = 0.0
    for i in np.flatnonzero(steps.sign != 2.0).tolist():
        column = slice(i, i + 1)
        one = Composition(steps.sigma[column], steps.q[column], np.ones(1), steps.sign[column])
        closed = Closed(one)
        best = max(best, certify(closed, crossing(closed, log_delta, 1.0), log_delta)[0])
    return best


def crossing(method: Method, log_delta: float, scale: float) -> float:
    """The epsilon where the middle of the bounds crosses log delta; a guess."""
    for _ in range(2100):
        found = _crossing(lambda e: method.log_delta(e)[1], log_delta, scale)
        if found < np.inf or not scale < 1e300:
            return found
        scale *= 4.0
    return scale


def _crossing(bound: Callable[[Array], Array], log_delta: float, scale: float) -> float:
    """The least of some epsilons up to 1.1 scale where the bound is at or below log delta; inf if there is none.

    A lattice may reach no further than a little beyond scale, and bounds nothing there.
    """
    tried = np.array([0.0, *REACHES])
    at = bound(scale * tried) <= log_delta
    if at[0] or not at.any():
        return 0.0 if at[0] else float(np.inf)
    low, high = 0.0, float(tried[np.argmax(at)]) * scale
    for _ in range(9):
        inside = np.linspace(low, high, 66)
        first = int(np.argmax(bound(inside) <= log_delta))
        low, high = float(inside[max(first - 1, 0)]), float(inside[first])
    return high
