"""The roads: which method answers a question about one direction, and how its bounds become an answer.

Closed forms first, then the contour, then a windowed or an extended-precision contour, then the lattice. Every road
gives proved bounds, so several of them are intersected; the last of all is what no road can take away: a composition
loses no more than its unsampled Gaussians and no less than one of its steps.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from psidp.accounting.closed import Closed
from psidp.accounting.composition import Array, Composition
from psidp.accounting.contour import Contour, NotCertified
from psidp.accounting.interval import agreed
from psidp.accounting.lattice import Lattice
from psidp.accounting.saddle import Saddle, saddle_at_delta, saddle_at_epsilon
from psidp.accounting.survey import Survey
from psidp.accounting.table import ULP
from psidp.accounting.window import Window
from psidp.maths.implied import epsilon_from_log_delta
from psidp.maths.roc import advantage_from_psi

__all__ = ["Known", "Road", "delta_bounds", "epsilon_bounds", "stays_below", "unsampled_psi"]

TOLERANCE = 1e-12
LOOSER = 1e-9
ENOUGH = 4e-7
"""Relative width of epsilon at which no further road is taken."""
ROUGH = 2e-5
"""And for a lattice, whose cost grows with its narrowness."""
NARROW = 1e-4
"""Width of log delta at which no larger lattice is made."""
VANISHING = (3.0, -710.0)
"""From which epsilon on to ask whether delta is below the smallest float, and the log delta that counts as such."""
SMALLEST = 1e-9
"""epsilons below this are all the same to a lattice."""
LATTICE_POINTS = (1 << 11, 1 << 14, 1 << 16, 1 << 18)
"""To find the place, and then to answer, until the answer is narrow enough."""


class Road(Protocol):
    """Anything that bounds log delta at given epsilons."""

    road: str

    def log_delta(self, epsilon: Array) -> tuple[Array, Array]:
        """Proved lower and upper bounds."""
        ...


@np.errstate(all="ignore")
def epsilon_bounds(steps: Composition, log_delta: float) -> tuple[float, float, str]:
    """Proved lower and upper bounds of the epsilon at which this direction has this log delta, and the road taken."""
    if not (steps.count.size or steps.plain.high):
        return 0.0, 0.0, Closed.road
    low, high, road = 0.0, _unsampled(steps, log_delta), ""
    for candidate, guess in _roads_to_epsilon(steps, log_delta):
        a, b = _certify(candidate, guess, log_delta)
        if not road or b - a < high - low:
            road = candidate.road
        rough = ROUGH if isinstance(candidate, Lattice) else 0.0
        low, high = max(low, a), min(high, b)
        agreed("epsilon", low, high)
        if high - low <= max(_enough(steps, low, high), rough * low):
            return low, high, road
    low = max(low, _one_step(steps, log_delta))
    agreed("epsilon", low, high)
    return low, high, road or "crude bounds"


def _enough(steps: Composition, low: float, high: float) -> float:
    """The width at which it is not worth taking a further road."""
    return max((ENOUGH if steps.steps >= 50 else 5e-4) * low, 4e-10)


def _roads_to_epsilon(steps: Composition, log_delta: float) -> Iterator[tuple[Road, float]]:
    """Candidates in order of cost, each with a guess of epsilon."""
    if Closed.fits(steps):
        closed = Closed(steps)
        yield closed, _bisect(closed, log_delta, 1.0)
        return
    if (steps.sign == 2.0).any():
        as_removed = replace(steps, sign=np.where(steps.sign == 2.0, 1.0, steps.sign))
        yield from _lattices(steps, 1.5 * saddle_at_delta(as_removed, log_delta).epsilon, log_delta)
        return
    saddle = saddle_at_delta(steps, log_delta)
    guess = saddle.epsilon
    for attempt in (_plain, _windowed, _extended):
        try:
            contour = attempt(steps, saddle, log_delta)
            epsilon = contour.solve(guess, log_delta)
            if abs(contour.c * (epsilon - contour.saddle.epsilon)) > 2.0:
                contour = contour.moved(epsilon, log_delta)
                epsilon = contour.solve(epsilon, log_delta)
            guess = epsilon
            yield contour, epsilon
        except NotCertified:
            continue
    yield from _lattices(steps, guess, log_delta)


def _plain(steps: Composition, saddle: Saddle, log_delta: float) -> Contour:
    return Contour(steps, saddle, TOLERANCE)


def _windowed(steps: Composition, saddle: Saddle, log_delta: float) -> Contour:
    """The contour with the far tail cut off; the window and the saddle are fitted to each other."""
    for _ in range(3):
        window = Window.around(steps, saddle.c, saddle.epsilon, log_delta + np.log(LOOSER))
        saddle = saddle_at_delta(steps, log_delta, window)
    return Contour(steps, saddle, LOOSER, window)


def _extended(steps: Composition, saddle: Saddle, log_delta: float) -> Contour:
    """The contour in extended precision, where the platform has it."""
    return Contour(steps, saddle, TOLERANCE * 1e-4, extended=True)


def _lattices(steps: Composition, guess: float, log_delta: float) -> Iterator[tuple[Road, float]]:
    """Lattices for an epsilon that each of them brings nearer: small ones until it settles, then larger ones."""
    low, high = max(_one_step(steps, log_delta), SMALLEST), max(_unsampled(steps, log_delta), SMALLEST)
    epsilon = min(max(guess, low), high) if guess < np.inf else low
    for _ in range(40):
        lattice = Lattice(steps, epsilon, log_delta, LATTICE_POINTS[0])
        upper = _crossing(lambda e: lattice.log_delta(e)[1], log_delta, epsilon)  # noqa: B023
        if 0.8 * epsilon <= upper <= 1.1 * epsilon or high <= 1.1 * low:
            break
        low, high = (max(low, epsilon), high) if upper > epsilon else (low, min(high, max(upper, low)))
        epsilon = high if high <= 2.0 * low else max(0.5 * high if upper <= epsilon else 0.0, min(4.0 * low, high), low)
    for points in LATTICE_POINTS[1:]:
        lattice = Lattice(steps, epsilon, log_delta, points)
        found = _bisect(lattice, log_delta, epsilon)
        yield lattice, found
        epsilon = found if 0.5 * epsilon < found < 1.05 * epsilon else epsilon


def _crossing(bound: Callable[[Array], Array], log_delta: float, scale: float) -> float:
    """The least of some epsilons up to 1.1 scale where the bound is at or below log delta; inf if there is none."""
    low, high = 0.0, 1.1 * scale
    if bound(np.array([0.0]))[0] <= log_delta:
        return 0.0
    if not bound(np.array([high]))[0] <= log_delta:
        return float(np.inf)
    for _ in range(9):
        inside = np.linspace(low, high, 66)
        first = int(np.argmax(bound(inside) <= log_delta))
        low, high = float(inside[max(first - 1, 0)]), float(inside[first])
    return high


def _bisect(road: Road, log_delta: float, scale: float) -> float:
    """The epsilon where the middle of the bounds crosses log delta; a guess."""
    for _ in range(2100):
        found = _crossing(lambda e: road.log_delta(e)[1], log_delta, scale)
        if found < np.inf or not scale < 1e300:
            return found
        scale *= 4.0
    return scale


def _certify(road: Road, guess: float, log_delta: float) -> tuple[float, float]:
    """Bounds of epsilon near a guess: where the road's bounds of log delta are on one side of the target."""
    slack = 4.0 * ULP * (abs(log_delta) + 1.0)
    if not guess < np.inf:
        return 0.0, float(np.inf)
    if guess <= 0.0 and road.log_delta(np.zeros(1))[1][0] <= log_delta - slack:
        return 0.0, 0.0
    here = max(guess, 0.0)
    around = here * (1.0 + 1e-6) + 1e-12
    lows, highs = road.log_delta(np.array([here, around]))
    low_at, high_at = float(lows[0]), float(highs[0])
    slope = max((high_at - float(highs[1])) / (around - here), 1e-300)
    wide = 0.1 * here + 1e-9
    pads = 1.1 * np.array([max(log_delta - low_at, slack), max(high_at - log_delta, slack)]) / slope
    low_pad, high_pad = np.where(pads < wide, pads, wide) + 4.0 * ULP * here
    low, high = None, None
    for _ in range(80):
        ends = np.array([max(here - low_pad, 0.0), here + high_pad])
        bounds = road.log_delta(ends)
        if low is None and (ends[0] == 0.0 or bounds[0][0] >= log_delta + slack):
            low = float(ends[0])
        if high is None and bounds[1][1] <= log_delta - slack:
            high = float(ends[1])
        if low is not None and high is not None:
            break
        low_pad, high_pad = 2.0 * low_pad, 2.0 * high_pad
    return low if low is not None else 0.0, high if high is not None else float(np.inf)


def _unsampled(steps: Composition, log_delta: float) -> float:
    """epsilon of the same composition without sampling: an upper bound, since sampling only helps.

    Where the record is added, no loss exceeds -sum T log(1-q) either.
    """
    whole = float(epsilon_from_log_delta(unsampled_psi(steps), log_delta))
    if steps.gauss == 0.0 and (steps.sign == -1.0).all():
        return min(whole, float(-(steps.count * np.log1p(-steps.q)).sum()) * (1.0 + 1e-12))
    return whole


def unsampled_psi(steps: Composition) -> float:
    """psi of the same composition without sampling, rounded up: it covers the whole curve."""
    square = float((steps.count / steps.sigma**2).sum()) + steps.gauss
    return float(np.sqrt(square)) * (1.0 + 8.0 * ULP * (steps.count.size + 2.0))


def _log_distance(steps: Composition) -> float:
    """Log of the sum of the steps' total variations, q (2 Phi(1/(2 sigma)) - 1) each: delta is never more."""
    if (steps.sign == 2.0).any():
        return 0.0
    each = steps.q * advantage_from_psi(1.0 / steps.sigma)
    total = float((steps.count * each).sum() + advantage_from_psi(np.sqrt(steps.gauss)))
    return min(0.0, float(np.log(total * (1.0 + 1e-12) + 5e-324)))


def _one_step(steps: Composition, log_delta: float) -> float:
    """epsilon of the one step that costs most: a lower bound, since composing only costs."""
    best = 0.0
    for i in np.flatnonzero(steps.sign != 2.0).tolist():
        column = slice(i, i + 1)
        one = Composition(steps.sigma[column], steps.q[column], np.ones(1), steps.sign[column])
        closed = Closed(one)
        best = max(best, _certify(closed, _bisect(closed, log_delta, 1.0), log_delta)[0])
    return best


@dataclass
class Known:
    """Roads of one composition that were built already, and the names of those that brought no gain where they led.

    `attained` is the width that was left where all roads together did not come as close as was asked.
    """

    roads: list[Road] = field(default_factory=list)
    useless: set[str] = field(default_factory=set)
    attained: float = 0.0


@np.errstate(all="ignore")
def delta_bounds(
    steps: Composition, epsilon: Array, close: float = 1e-8, known: Known | None = None
) -> tuple[Array, Array, str]:
    """Proved bounds of log delta at each epsilon >= 0, and the road taken (the last one, if several).

    A contour made for one epsilon also answers for others nearby, where its bounds are within `close` of each other, or
    nearly as close as those for that one.
    Roads in `known` are tried first, and new ones are added to it; those found useless there are not built again.
    """
    flat = np.asarray(epsilon, dtype=np.float64).ravel()
    low, high = np.full(flat.size, -np.inf), np.zeros(flat.size)
    if Closed.fits(steps):
        low, high = Closed(steps).log_delta(flat)
        return low, high, Closed.road
    road = ""
    left = np.isfinite(flat)
    low[~left], high[~left] = -np.inf, -np.inf
    high[left] = _log_distance(steps)
    if (flat > VANISHING[0]).any():
        _vanished(steps, flat, left, high)
    known = Known() if known is None else known
    for candidate in known.roads:
        where = np.flatnonzero(left)
        if not where.size:
            break
        a, b = candidate.log_delta(flat[where])
        low[where], high[where], road = np.maximum(low[where], a), np.minimum(high[where], b), candidate.road
        left[where] &= high[where] - low[where] > max(close, 2.0 * known.attained)
    while left.any():
        where = np.flatnonzero(left)
        center = where[np.argsort(flat[where])[where.size // 2]]
        for candidate in _useful_roads(steps, float(flat[center]), known.useless):
            road, before = candidate.road, high[center] - low[center]
            a, b = candidate.log_delta(flat[where])
            low[where], high[where] = np.maximum(low[where], a), np.minimum(high[where], b)
            width = high[center] - low[center]
            if width < before:
                known.roads.append(candidate)
            elif road != CONTOURS_AT[0][0]:
                known.useless.add(road)
            if width <= max(close, 1e-7):
                break
        if close < high[center] - low[center] < np.inf:
            known.attained = float(high[center] - low[center])
        left[where] &= high[where] - low[where] > max(close, 2.0 * known.attained)
        left[center] = False
    agreed("log delta", low, high)
    return low, high, road


@np.errstate(all="ignore")
def stays_below(steps: Composition, epsilon: float, log_delta: float) -> bool:
    """Whether delta(epsilon) <= delta is certain already from Chernoff's bound; a quick no means nothing.

    delta(epsilon) <= M(c) e^(-c epsilon) c^c/(1+c)^(1+c), with the survey's proved bound of M(c).
    """
    if not steps.count.size or (steps.sign == 2.0).any():
        return False
    saddle = saddle_at_epsilon(steps, epsilon)
    c = saddle.c
    margin = c * np.log(c) - (1.0 + c) * np.log1p(c)
    if not (c < 1e6 and saddle.log_delta < log_delta - 0.5):
        return False
    tilted = replace(saddle, c=c / 1.5, beyond_c=np.array([c]), beyond_k=np.array([0.0]))
    try:
        bound = Survey(steps, tilted, None, 0.5).log_m2 - c * epsilon + margin
    except NotCertified:
        return False
    return bool(bound + 1e-9 * (1.0 + abs(bound)) + 8.0 * ULP * c * (epsilon + 1.0 + abs(np.log(c))) <= log_delta)


def _vanished(steps: Composition, flat: Array, left: NDArray[np.bool_], high: Array) -> None:
    """Answers "below e^-700" where that is so, by monotony; and "0" where the loss cannot reach epsilon."""
    if steps.gauss == 0.0 and (steps.sign == -1.0).all():
        beyond = flat > -(steps.count * np.log1p(-steps.q)).sum() * (1.0 + 1e-12)
        high[beyond], left[beyond] = -np.inf, False
    if (steps.sign == 2.0).any():
        return
    far = saddle_at_delta(steps, VANISHING[1]).epsilon if left.any() else np.inf
    beyond = left & (flat > far)
    if beyond.any():
        high[beyond] = min(candidate.log_delta(np.array([far]))[1][0] for candidate in _first(steps, far))
        left[beyond] = False


def _first(steps: Composition, epsilon: float) -> list[Road]:
    """The first road that answers at all."""
    return [next(_roads_to_delta(steps, epsilon))]


def _useful_roads(steps: Composition, epsilon: float, useless: Collection[str]) -> Iterator[Road]:
    """Candidates for delta at one epsilon, but for those found useless elsewhere; these too, where others fail."""
    answered, without = False, frozenset(useless)
    for candidate in _roads_to_delta(steps, epsilon, without):
        answered |= bool(np.isfinite(candidate.log_delta(np.array([epsilon]))[0][0]))
        yield candidate
    if without and not answered:
        yield from _roads_to_delta(steps, epsilon)


def _roads_to_delta(steps: Composition, epsilon: float, without: Collection[str] = ()) -> Iterator[Road]:
    """Candidates in order of cost for a question about delta at one epsilon."""
    as_removed = replace(steps, sign=np.where(steps.sign == 2.0, 1.0, steps.sign))
    saddle = saddle_at_epsilon(as_removed, epsilon)
    log_delta = max(saddle.log_delta, -745.0)
    for name, attempt in () if (steps.sign == 2.0).any() else CONTOURS_AT:
        if name in without:
            continue
        try:
            contour = attempt(steps, saddle, log_delta)
            found = contour.log_delta(np.array([epsilon]))[1][0]
            if abs(found - contour.saddle.log_delta) > 2.0 and found < 0.0:
                contour = contour.moved(epsilon, found)
                log_delta = found
            yield contour
        except NotCertified:
            continue
    if Lattice.road in without:
        return
    for _ in range(4):
        lattice = Lattice(steps, max(epsilon, SMALLEST), log_delta, LATTICE_POINTS[0])
        found = float(lattice.log_delta(np.array([epsilon]))[1][0])
        settled, log_delta = abs(found - log_delta) <= 2.0, max(found, -745.0)
        if settled:
            break
    for points in LATTICE_POINTS[1:-1]:
        lattice = Lattice(steps, max(epsilon, SMALLEST), log_delta, points)
        yield lattice
        low, high = lattice.log_delta(np.array([epsilon]))
        if high[0] - low[0] <= NARROW:
            return


def _windowed_at(steps: Composition, saddle: Saddle, log_delta: float) -> Contour:
    """The windowed contour for one epsilon, its window fitted to the delta found there."""
    epsilon = saddle.epsilon
    for _ in range(3):
        window = Window.around(steps, saddle.c, epsilon, log_delta + np.log(LOOSER))
        saddle = saddle_at_epsilon(steps, epsilon, window)
        log_delta = saddle.log_delta
    return Contour(steps, saddle, LOOSER, window)


CONTOURS_AT = (("contour", _plain), ("windowed contour", _windowed_at), ("extended contour", _extended))
