"""The methods: which method answers a question about one direction, and how its bounds become an answer.

Closed forms come first, then levels, the contour, a windowed contour, one in extended precision, the lattice, jumps,
and contours that are long. Every method gives proved bounds, so several of them are intersected. The last bounds need
no method: a composition loses no more than its unsampled Gaussians and no less than one of its steps.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from psidp.accounting.chernoff import epsilon_near, log_delta_near
from psidp.accounting.closed_form import Closed
from psidp.accounting.composition import Array, Composition
from psidp.accounting.contours.contour import Contour, NotCertified, TooLong
from psidp.accounting.contours.error_bounds import Survey
from psidp.accounting.contours.mgf_table import ULP
from psidp.accounting.contours.saddle import Saddle, saddle_at_delta, saddle_at_epsilon
from psidp.accounting.contours.window import Window
from psidp.accounting.crude import least_unsampled, log_any, log_distance, unsampled
from psidp.accounting.interval import agreed
from psidp.accounting.levels import SMALL, Levels
from psidp.accounting.pld.jumps import Jumps
from psidp.accounting.pld.loss_grid import Lattice
from psidp.accounting.search import (
    LATTICE_POINTS,
    SMALLEST,
    Method,
    certify,
    crossing,
    lattices,
    nearby,
    one_step,
    pair_lattices,
    room,
    settled_jumps,
    smallest,
)

__all__ = ["Known", "delta_bounds", "epsilon_bounds", "stays_below"]

TOLERANCE = 1e-12
LOOSER = 1e-9
ENOUGH = 4e-7
"""Relative width of epsilon at which no further method is taken."""
ROUGH = 2e-5
"""And for a lattice, whose cost grows with its narrowness."""
NARROW = 1e-4
"""Width of log delta at which no larger lattice is made."""
VANISHING = (3.0, -710.0)
"""From which epsilon on to ask whether delta is below the smallest float, and the log delta that counts as such."""
FEW = 200
"""Steps up to which a small lattice is quicker than a contour."""
MANY = 10**7
"""Steps beyond which a lattice is too coarse, and a contour short."""
SHORT, SHORTER = 0.06, 0.015
"""Shares of a contour's limits within which it is tried before a lattice; extended precision is slower."""
HALVES = 6
"""Further halvings of either end that jumps find."""
LONG = 2e-4
"""Relative width of epsilon above which a long contour is tried, after all lattices."""


@np.errstate(all="ignore")
def epsilon_bounds(steps: Composition, log_delta: float, delta: Fraction | None = None) -> tuple[float, float, str]:
    """Proved lower and upper bounds of the epsilon at which this direction has this log delta, and the method taken.

    With tiny noise epsilon may hang on digits of delta that its logarithm does not have; `delta` has them all.
    """
    if not (steps.sampled or steps.plain.high) or (delta is not None and steps.sampled_at_most(delta)):
        return 0.0, 0.0, Closed.method
    low, high, method = 0.0, float(np.inf), ""
    tiny = steps.sigma.max(initial=0.0) <= SMALL and not Closed.fits(steps)
    if delta is not None and tiny and Levels.fits(steps, delta):
        low, high = Levels(steps, delta).epsilon()
        method = Levels.method
        if high - low <= _enough(steps, low):
            return low, high, method

    def taken(methods: Iterable[tuple[Method, float]], enough: float) -> bool:
        """Whether these methods, one after the other, lead close enough."""
        nonlocal low, high, method
        for candidate, guess in methods:
            a, b = certify(candidate, guess, log_delta, HALVES if isinstance(candidate, Jumps) else 0)
            if not method or b - a < high - low:
                method = candidate.method
            rough = ROUGH if isinstance(candidate, Lattice) else 0.0
            low, high = max(low, a), min(high, b)
            agreed("epsilon", low, high)
            if high - low <= max(_enough(steps, low), rough * low, enough * low):
                return True
        return False

    if taken(_methods_for_epsilon(steps, log_delta), 0.0):
        return low, high, method
    high = min(high, unsampled(steps, log_delta))
    agreed("epsilon", low, high)
    if not Closed.fits(steps):
        low = max(low, one_step(steps, log_delta))
        agreed("epsilon", low, high)
        if not (high - low <= LONG * low or steps.pairs or (steps.sign == 2.0).any()):
            longer = steps.steps > MANY and taken(_long_methods(steps, log_delta, high), LONG)
            if not longer and Jumps.fits(steps) and high < np.inf:
                longer = taken(settled_jumps(steps, low, high, log_delta), LONG)
            if not (longer or steps.steps > MANY):
                taken(_long_methods(steps, log_delta, high), LONG)
    return low, high, method or "crude bounds"


def _enough(steps: Composition, low: float) -> float:
    """The width at which it is not worth taking a further method."""
    return max((ENOUGH if steps.steps >= 50 else 5e-4) * low, 4e-10)


def _methods_for_epsilon(steps: Composition, log_delta: float) -> Iterator[tuple[Method, float]]:
    """Candidates in order of cost, each with a guess of epsilon."""
    if Closed.fits(steps):
        closed = Closed(steps)
        yield closed, crossing(closed, log_delta, 1.0)
        return
    if steps.pairs:
        yield from pair_lattices(steps, epsilon_near(steps, log_delta), log_delta)
        return
    if (steps.sign == 2.0).any():
        as_removed = replace(steps, sign=np.where(steps.sign == 2.0, 1.0, steps.sign))
        yield from lattices(steps, 1.5 * saddle_at_delta(as_removed, log_delta).epsilon, log_delta)
        return
    saddle = saddle_at_delta(steps, log_delta)
    guess = saddle.epsilon
    for attempt, share in ((_plain, SHORT), (_windowed, SHORT), (_extended, SHORTER)):
        try:
            contour, guess = _settled(attempt(steps, saddle, log_delta, share), guess, log_delta)
            yield contour, guess
        except NotCertified:
            continue
    if steps.steps <= MANY:
        yield from lattices(steps, guess, log_delta)


def _long_methods(steps: Composition, log_delta: float, guess: float) -> Iterator[tuple[Method, float]]:
    """Contours that were too long to be tried first, and lattices that are too coarse for that."""
    saddle = saddle_at_delta(steps, log_delta)
    for attempt, share in ((_plain, SHORT), (_windowed, SHORT), (_extended, SHORTER)):
        try:
            attempt(steps, saddle, log_delta, share)
        except TooLong:
            with suppress(NotCertified):
                yield _settled(attempt(steps, saddle, log_delta, share / SHORT), guess, log_delta)
        except NotCertified:
            continue
    if steps.steps > MANY:
        yield from lattices(steps, saddle.epsilon, log_delta)


def _settled(contour: Contour, guess: float, log_delta: float) -> tuple[Contour, float]:
    """A contour and the epsilon it finds, after it has been moved there if that is far."""
    epsilon = contour.solve(guess, log_delta)
    if abs(contour.c * (epsilon - contour.saddle.epsilon)) > 2.0:
        contour = contour.moved(epsilon, log_delta)
        epsilon = contour.solve(epsilon, log_delta)
    return contour, epsilon


def _plain(steps: Composition, saddle: Saddle, log_delta: float, share: float) -> Contour:
    return Contour(steps, saddle, TOLERANCE, share=share)


def _windowed(steps: Composition, saddle: Saddle, log_delta: float, share: float) -> Contour:
    """The contour with the far tail cut off; the window and the saddle are fitted to each other.

    Where the far tail misleads the saddle, the other direction, which has none, knows better where to begin.
    """
    other = saddle_at_delta(steps.mirrored, log_delta)
    saddle = other if other.epsilon < 0.5 * saddle.epsilon and (steps.sign == 1.0).all() else saddle
    for _ in range(3):
        window = Window.around(steps, saddle.c, saddle.epsilon, log_delta + np.log(LOOSER))
        saddle = saddle_at_delta(steps, log_delta, window)
    return Contour(steps, saddle, LOOSER, window, share=share)


def _extended(steps: Composition, saddle: Saddle, log_delta: float, share: float) -> Contour:
    """The contour in extended precision, where the platform has it."""
    return Contour(steps, saddle, TOLERANCE * 1e-4, extended=True, share=share)


@dataclass
class Known:
    """Methods of one composition that were built already, and the names of those that brought no gain where they led.

    `attained` is the width that was left where all methods together did not come as close as was asked, `distance` what
    log delta never exceeds.
    """

    methods: list[Method] = field(default_factory=list)
    useless: set[str] = field(default_factory=set)
    attained: float = 0.0
    distance: float | None = None


@np.errstate(all="ignore")
def delta_bounds(
    steps: Composition, epsilon: Array, close: float = 1e-8, known: Known | None = None
) -> tuple[Array, Array, str]:
    """Proved bounds of log delta at each epsilon >= 0, and the method taken (the last one, if several).

    A contour made for one epsilon also answers for others nearby, where its bounds are within `close` of each other, or
    nearly as close as those for that one.
    Methods in `known` are tried first, and new ones are added to it; those found useless there are not built again.
    """
    flat = np.asarray(epsilon, dtype=np.float64).ravel()
    low, high = np.full(flat.size, -np.inf), np.zeros(flat.size)
    if Closed.fits(steps):
        low, high = Closed(steps).log_delta(flat)
        return low, high, Closed.method
    method = ""
    left = np.isfinite(flat)
    low[~left], high[~left] = -np.inf, -np.inf
    known = Known() if known is None else known
    known.distance = log_distance(steps) if known.distance is None else known.distance
    high[left] = known.distance
    if (flat > min(VANISHING[0], steps.most)).any():
        _vanished(steps, flat, left, high)
    for candidate in known.methods:
        where = np.flatnonzero(left)
        if not where.size:
            break
        a, b = candidate.log_delta(flat[where])
        low[where], high[where], method = np.maximum(low[where], a), np.minimum(high[where], b), candidate.method
        left[where] &= high[where] - low[where] > max(close, 2.0 * known.attained)
    while left.any():
        where = np.flatnonzero(left)
        center = where[np.argsort(flat[where])[where.size // 2]]
        for candidate in _useful_methods(steps, float(flat[center]), known.useless):
            method, before = candidate.method, high[center] - low[center]
            a, b = candidate.log_delta(flat[where])
            low[where], high[where] = np.maximum(low[where], a), np.minimum(high[where], b)
            if not np.isfinite(before) and not high[center] - low[center] <= max(close, 1e-7):
                low[where] = np.maximum(low[where], log_any(steps, flat[where]))
            width = high[center] - low[center]
            if width < before:
                known.methods.append(candidate)
            elif method != CONTOURS_AT[0][0]:
                known.useless.add(method)
            if width <= max(close, 1e-7):
                break
        if close < high[center] - low[center] < np.inf:
            known.attained = float(high[center] - low[center])
        left[where] &= high[where] - low[where] > max(close, 2.0 * known.attained)
        left[center] = False
    agreed("log delta", low, high)
    return low, high, method


@np.errstate(all="ignore")
def stays_below(steps: Composition, epsilon: float, log_delta: float) -> bool:
    """Whether delta(epsilon) <= delta is certain already from a cheap bound; a quick no means nothing.

    The largest loss; or Chernoff, delta(epsilon) <= M(c) e^(-c epsilon) c^c/(1+c)^(1+c), with the survey's proved bound
    of M(c); or a small lattice.
    """
    plain = not steps.count.size or bool(steps.pairs) or bool((steps.sign == 2.0).any())
    if not plain and _chernoff(steps, epsilon, log_delta):
        return True
    if least_unsampled(steps, log_delta) <= epsilon and unsampled(steps, log_delta) <= epsilon:
        return True
    if plain:
        return False
    rest, left = _without_small(steps, epsilon)
    if rest.count.size < steps.count.size and _chernoff(rest, left, log_delta):
        return True
    if not steps.steps <= FEW:
        return False
    lattice = Lattice(steps, max(epsilon, SMALLEST), log_delta, smallest(steps))
    return bool(lattice.log_delta(np.array([epsilon]))[1][0] <= log_delta)


def _without_small(steps: Composition, epsilon: float) -> tuple[Composition, float]:
    """The composition without added groups that lose little at most, and what epsilon is left for the rest."""
    most = np.where(steps.sign == -1.0, -steps.count * np.log1p(-steps.q), np.inf) * (1.0 + 1e-12)
    order = np.argsort(most)
    spent = np.cumsum(most[order])
    small = int((spent <= 0.5 * epsilon).sum())
    rest = np.sort(order[small:])
    left = epsilon - (spent[small - 1] * (1.0 + 1e-12) if small else 0.0)
    return replace(steps, **{name: getattr(steps, name)[rest] for name in ("sigma", "q", "count", "sign")}), float(left)


def _chernoff(steps: Composition, epsilon: float, log_delta: float) -> bool:
    """Whether Chernoff's bound says so."""
    if not steps.count.size:
        return unsampled(steps, log_delta) <= epsilon
    saddle = saddle_at_epsilon(steps, epsilon, rounds=1)
    if not saddle.c < 1e6:  # epsilon is far beyond all that happens; a smaller one will do
        epsilon = min(epsilon, 1.5 * saddle_at_delta(steps, log_delta).epsilon)
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
    beyond = flat > steps.most
    high[beyond], left[beyond] = -np.inf, False
    if steps.pairs or (steps.sign == 2.0).any() or not (flat > VANISHING[0]).any():
        return
    far = saddle_at_delta(steps, VANISHING[1]).epsilon if left.any() else np.inf
    beyond = left & (flat > far)
    if beyond.any():
        high[beyond] = min(candidate.log_delta(np.array([far]))[1][0] for candidate in _first(steps, far))
        left[beyond] = False


def _first(steps: Composition, epsilon: float) -> list[Method]:
    """The first method that answers at all."""
    return [next(_methods_for_delta(steps, epsilon))]


def _useful_methods(steps: Composition, epsilon: float, useless: Collection[str]) -> Iterator[Method]:
    """Candidates for delta at one epsilon, but for those found useless elsewhere; these too, where others fail."""
    answered, without = False, frozenset(useless)
    for candidate in _methods_for_delta(steps, epsilon, without):
        answered |= bool(np.isfinite(candidate.log_delta(np.array([epsilon]))[0][0]))
        yield candidate
    if without and not answered:
        yield from _methods_for_delta(steps, epsilon)


def _methods_for_delta(steps: Composition, epsilon: float, without: Collection[str] = ()) -> Iterator[Method]:
    """Candidates in order of cost for a question about delta at one epsilon."""
    if steps.pairs:
        yield from _lattices_at(steps, epsilon, log_delta_near(steps, epsilon))
        return
    as_removed = replace(steps, sign=np.where(steps.sign == 2.0, 1.0, steps.sign))
    saddle = saddle_at_epsilon(as_removed, epsilon)
    log_delta = min(saddle.log_delta, 0.0) if saddle.log_delta > -745.0 else -745.0  # a guess, maybe no number
    for name, attempt, share in () if (steps.sign == 2.0).any() else CONTOURS_AT:
        if name in without:
            continue
        try:
            contour = attempt(steps, saddle, log_delta, share)
            found = contour.log_delta(np.array([epsilon]))[1][0]
            if abs(found - contour.saddle.log_delta) > 2.0 and found < 0.0:
                contour = contour.moved(epsilon, found)
                log_delta = found
            yield contour
        except NotCertified:
            continue
    if Lattice.method not in without:
        yield from _lattices_at(steps, epsilon, log_delta)


def _lattices_at(steps: Composition, epsilon: float, log_delta: float) -> Iterator[Method]:
    """Lattices for one epsilon, from a guess of log delta there: a small one until it settles, then larger ones."""
    for _ in range(1 if steps.pairs else 4):
        lattice = Lattice(steps, max(epsilon, SMALLEST), log_delta, smallest(steps), nearby(log_delta))
        found = float(lattice.log_delta(np.array([epsilon]))[1][0])
        settled, log_delta = abs(found - log_delta) <= 2.0, max(found, -745.0)
        if settled:
            break
    for points in LATTICE_POINTS[:-1]:
        lattice = Lattice(steps, max(epsilon, SMALLEST), log_delta, points, room(lattice, max(epsilon, SMALLEST)))
        yield lattice
        low, high = lattice.log_delta(np.array([epsilon]))
        if high[0] - low[0] <= NARROW:
            return


def _windowed_at(steps: Composition, saddle: Saddle, log_delta: float, share: float) -> Contour:
    """The windowed contour for one epsilon, its window fitted to the delta found there."""
    epsilon = saddle.epsilon
    for _ in range(3):
        window = Window.around(steps, saddle.c, epsilon, log_delta + np.log(LOOSER))
        saddle = saddle_at_epsilon(steps, epsilon, window)
        log_delta = saddle.log_delta
    return Contour(steps, saddle, LOOSER, window, share=share)


CONTOURS_AT = (
    ("contour", _plain, SHORT),
    ("windowed contour", _windowed_at, SHORT),
    ("extended contour", _extended, SHORTER),
)
