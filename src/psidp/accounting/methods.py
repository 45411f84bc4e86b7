"""The methods: which method answers a question about one direction, and how its bounds become an answer.

Closed forms come first, then levels, the contour, a windowed contour, one in extended precision, the lattice, jumps,
and contours that are long. Every method gives proved bounds, so several of them are intersected. The last bounds need
no method: a composition loses no more than its unsampled Gaussians and no less than one of its steps.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from sys import float_info

import numpy as np
from numpy.typing import NDArray

from psidp.accounting import chernoff
from psidp.accounting.closed_form import Closed
from psidp.accounting.composition import Array, Composition
from psidp.accounting.contours.contour import Contour, NotCertified, TooLong
from psidp.accounting.contours.mgf_table import ULP
from psidp.accounting.contours.saddle import Saddle, saddle_at_delta, saddle_at_epsilon
from psidp.accounting.contours.window import Window
from psidp.accounting.crude import log_any, log_distance, unsampled, unsampled_psi
from psidp.accounting.interval import agreed
from psidp.accounting.levels import SMALL, Levels
from psidp.accounting.pld.jumps import Jumps
from psidp.accounting.pld.loss_grid import Lattice
from psidp.accounting.search import (
    BROAD,
    LATTICE_POINTS,
    LONG,
    SMALLEST,
    Found,
    Method,
    crossing,
    enough,
    jumps_at,
    lattices,
    nearby,
    one_step,
    pair_lattices,
    room,
    settled_jumps,
    smallest,
)
from psidp.accounting.small_groups import SHARE, Apart, set_apart
from psidp.maths.profile import log_delta_from_psi

__all__ = ["Known", "delta_bounds", "epsilon_bounds", "epsilon_near"]

TOLERANCE = 1e-12
LOOSER = 1e-9
NARROW = 1e-4
"""Width of log delta at which no larger lattice is made."""
VANISHING = (3.0, -710.0)
"""From which epsilon on to ask whether delta is below the smallest float, and the log delta that counts as such."""
ATTAINED = 0.25
"""The width of log delta, at most, that is taken for the best there is elsewhere: a bad point tells little of them."""
MANY = 10**7
"""Steps beyond which a lattice is too coarse, and a contour short."""
SHORT, SHORTER = 0.06, 0.015
"""Shares of a contour's limits within which it is tried before a lattice; extended precision is slower."""
WIDE = 8e-4
"""And above which a mixture is answered by the groups that matter, and a lattice is laid that will hardly do."""


@np.errstate(all="ignore")
def epsilon_bounds(steps: Composition, log_delta: float, delta: Fraction | None = None) -> tuple[float, float, str]:
    """Proved lower and upper bounds of the epsilon at which this direction has this log delta, and the method taken.

    With tiny noise epsilon may hang on digits of delta that its logarithm does not have; `delta` has them all.
    """
    found = _tried_first(steps, log_delta, delta)
    if found.wide(LONG) and steps.ordinary:
        _tried_last(found)
    if found.wide(WIDE) and steps.ordinary:
        _small_groups_apart(found, delta)
    return found.low, found.high, found.method or "crude bounds"


def epsilon_near(steps: Composition, log_delta: float) -> float | None:
    """What the first short contour finds, without proof, for a search; None where there is no such contour."""
    with suppress(NotCertified), np.errstate(all="ignore"):
        saddle = saddle_at_delta(steps, log_delta)
        return _settled(_plain(steps, saddle, log_delta, SHORT), saddle.epsilon, log_delta)[1]
    return None


def _tried_first(steps: Composition, log_delta: float, delta: Fraction | None) -> Found:
    """Bounds from the methods that are tried first, and from none at all."""
    found = Found(steps, log_delta)
    if not (steps.sampled or steps.plain.high) or (delta is not None and steps.sampled_at_most(delta)):
        found.meet(0.0, 0.0, Closed.method)
        return found
    tiny = steps.sigma.max(initial=0.0) <= SMALL and steps.ordinary and not Closed.fits(steps)
    if delta is not None and tiny and Levels.fits(steps, delta):
        found.meet(*Levels(steps, delta).epsilon(), Levels.method)
        if found.high - found.low <= enough(steps, found.low):
            return found
    if steps.ordinary or Closed.fits(steps):
        found.left = _methods_for_epsilon(steps, log_delta)
    if not found.taken(found.left):
        found.meet(0.0, unsampled(steps, log_delta))
        if not Closed.fits(steps):
            found.meet(one_step(steps, log_delta), float(np.inf))
    return found


def _small_groups_apart(found: Found, delta: Fraction | None) -> None:
    """Bounds of epsilon from the groups that matter; what the others add is a shift and a failure probability."""
    apart = set_apart(found.steps, found.high, found.log_delta)
    if apart is None:
        return

    def bounds(steps: Composition, log_delta: float, delta: Fraction | None) -> Found:
        rest = _tried_first(steps, log_delta, delta)
        if rest.wide(LONG):
            _tried_last(rest)
        return rest

    rest = bounds(apart.rest, found.log_delta, delta)
    found.meet(rest.low, float(np.inf))
    first = apart.unsampled_first(-found.log_delta / found.high)
    for unsampled_gaussians in (first, not first):
        if unsampled_gaussians and found.wide(LONG):
            found.meet(0.0, bounds(apart.unsampled, found.log_delta, delta).high)
        elif found.wide(LONG):
            log_less = found.log_delta - 2.0 * SHARE - 4.0 * ULP * (1.0 + abs(found.log_delta))
            less = None if delta is None else delta * (1 - 2 * Fraction(SHARE))
            found.meet(0.0, (bounds(apart.rest, log_less, less).high + apart.most) * (1.0 + 4.0 * ULP))
    found.method = found.method if found.wide(WIDE) else rest.method


def _tried_last(found: Found) -> None:
    """Narrower bounds from what takes long: jumps, the lattices that are left, long contours."""
    steps = found.steps
    if steps.steps > MANY:
        found.taken(_long_methods(steps, found.log_delta, found.high), LONG)
    if Jumps.fits(steps) and found.wide(LONG) and found.high < np.inf:
        found.taken(settled_jumps(steps, found.low, found.high, found.log_delta), LONG)
    if found.wide(WIDE):
        found.taken(found.left, LONG)
    if steps.steps <= MANY and found.wide(WIDE if Jumps.fits(steps) else LONG):
        found.taken(_long_methods(steps, found.log_delta, found.high), LONG)


def _methods_for_epsilon(steps: Composition, log_delta: float) -> Iterator[tuple[Method, float]]:
    """Candidates in order of cost, each with a guess of epsilon."""
    if Closed.fits(steps):
        closed = Closed(steps)
        yield closed, crossing(closed, log_delta, 1.0)
        return
    if steps.pairs:
        yield from pair_lattices(steps, chernoff.epsilon_near(steps, log_delta), log_delta)
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
    if not steps.ordinary:
        covering = log_delta_from_psi(min(unsampled_psi(steps), float_info.max), flat)
        return low, np.minimum(high, covering), "crude bounds"
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
            known.attained = min(float(high[center] - low[center]), ATTAINED)
        left[where] &= high[where] - low[where] > max(close, 2.0 * known.attained)
        left[center] = False
    agreed("log delta", low, high)
    return low, high, method


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
        yield from _lattices_at(steps, epsilon, chernoff.log_delta_near(steps, epsilon))
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
    low, high = -np.inf, 0.0
    for lattice in _lattices_at(steps, epsilon, log_delta) if Lattice.method not in without else ():
        yield lattice
        below, above = (float(x[0]) for x in lattice.log_delta(np.array([epsilon])))
        low, high = max(low, below), min(high, above)
    if high - low > BROAD and Jumps.method not in without and Jumps.fits(steps):
        yield from jumps_at(steps, max(epsilon, SMALLEST))
    apart = set_apart(steps, epsilon, low) if high - low > BROAD and low > -np.inf else None
    if apart is not None:
        yield _Rest(apart)


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


@dataclass
class _Rest:
    """The groups that matter, for questions about all of them: a shift of epsilon and a failure probability more."""

    apart: Apart
    method: str = "small groups"

    def log_delta(self, epsilon: Array) -> tuple[Array, Array]:
        """Proved lower and upper bounds of log delta at each epsilon."""
        less = (epsilon - self.apart.most) * (1.0 - 4.0 * ULP)
        low, high = delta_bounds(self.apart.rest, epsilon)[0], delta_bounds(self.apart.rest, np.maximum(less, 0.0))[1]
        high = np.logaddexp(high, self.apart.log_kappa + 1e-9)
        return low, np.where(less >= 0.0, np.minimum(high + 4.0 * ULP * (1.0 + np.abs(high)), 0.0), 0.0)


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
