"""The privacy curve: everything a series of releases gives away, as intervals with both sides proved."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from psidp.accounting import envelope, roc
from psidp.accounting.certificates import certified
from psidp.accounting.certificates.balls import library
from psidp.accounting.composition import Array, Composition
from psidp.accounting.correlated import BandMF, Event, FixedOrder, Plain, priced
from psidp.accounting.directions import both_ways
from psidp.accounting.easier_direction import stays_below
from psidp.accounting.events import DPSGD, RandomAllocation
from psidp.accounting.exact_sums import failure
from psidp.accounting.interval import ROUNDING, Interval, agreed, between
from psidp.accounting.methods import delta_bounds, epsilon_bounds
from psidp.errors import MismatchError
from psidp.guarantee import Guarantee
from psidp.maths.normal import TINY
from psidp.maths.rounding import bounded
from psidp.maths.sensitivity import Adjacency
from psidp.notebook_view import NotebookView
from psidp.symbols import float_above, float_below, symbol

__all__ = ["PrivacyCurve", "account"]

FEW = 4
"""Points of a profile up to which the easier direction is asked for a cheap bound first."""


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyCurve(NotebookView):
    """What a series of events costs. Made by `account`; every answer is an Interval.

    `below` and `above` hold the compositions whose profiles bound the true one, each from both directions of
    adjacency. They are the same except without replacement, where the truth lies between an attained pair and C_gamma;
    with bands that do not divide the steps; and beside a plain Gaussian too weak for a float. The failure
    probability lies between kappa_below and kappa.
    """

    below: tuple[Composition, ...]
    above: tuple[Composition, ...]
    kappa: float = 0.0
    kappa_below: float = 0.0
    adjacency: Adjacency = "add-remove"
    unit: str = "record"
    events: tuple[Event, ...] = ()
    """What the curve is the account of."""
    certified: bool = False
    """Whether every answer is proved once more in ball arithmetic."""

    def delta(self, epsilon: Any) -> Interval:
        """Smallest delta such that (epsilon, delta)-DP holds, for each epsilon in [0, inf].

        Examples:
            >>> account(DPSGD(1.0, 0.01, 1000)).delta(2.0).upper
            2.66557...e-06
        """
        values = symbol("epsilon").array(epsilon)
        if self.certified:
            lower, upper, method = certified.deltas(self, values.ravel())
            return _shaped(lower, upper, values, method)
        low, high, method = self.log_delta(values.ravel())
        return _shaped(*self._failed(*between(low, high)), values, method)

    def epsilon(self, delta: Any) -> Interval:
        """Smallest epsilon such that (epsilon, delta)-DP holds, for each delta in (0, 1); inf where delta <= kappa.

        Examples:
            >>> account(DPSGD(1.0, 0.01, 1000)).epsilon(1e-5).upper
            1.828236666...
        """
        values = symbol("delta").array(delta)
        if not np.all((values > 0.0) & (values < 1.0)):
            raise ValueError(f"delta (probability slack of (epsilon, delta)-DP) must be in (0, 1), got delta={delta}.")
        answers = [self._epsilon(float(d)) for d in values.ravel()]
        lower, upper = (np.array([answer[i] for answer in answers]) for i in (0, 1))
        return _shaped(lower, upper, values, answers[-1][2] if answers else "")

    def roc(self, fpr: Any) -> Interval:
        """Largest true positive rate of any attack at a false positive rate, in the worse of both directions.

        Computed directly, not as 1 - FNR, so that small rates keep their digits.

        Examples:
            >>> low, high = account(DPSGD(1.0, 0.01, 1000)).roc(1e-5)
            >>> round(low * 1e5, 3), round(high * 1e5, 3)
            (7.207, 7.207)
        """
        return self._rates(fpr, roc.true_positive_rate, np.maximum, self._failed_roc)

    def tradeoff(self, fpr: Any) -> Interval:
        """Smallest false negative rate of any attack at a false positive rate: the f of f-DP."""
        return self._rates(fpr, roc.false_negative_rate, np.minimum, self._failed_fnr)

    @property
    def advantage(self) -> Interval:
        """Largest TPR - FPR of any attack: delta(0), the same in both directions."""
        if self.certified:
            return self.delta(0.0)
        low, high = _at_zero(self.below[0])[0], _at_zero(self.above[0])[1]
        lower, upper = self._failed(*between(low, high))
        return Interval(float(lower), float(upper))

    @property
    def auc(self) -> Interval:
        """Area under the ROC curve of the best attack, the same in both directions.

        AUC = (1 + TV)/2, TV the advantage against the composition of the series with its own mirror image; and a ROC
        curve with advantage A has an area from (1 + A)/2 to 1/2 + A - A^2/2.
        """
        if self.certified:
            return Interval(*certified.auc(self, *(_with_mirror(steps) for steps in (self.below[0], self.above[0]))))
        low, high = np.exp(_at_zero(_with_mirror(self.below[0]))[0]), np.exp(_at_zero(_with_mirror(self.above[0]))[1])
        first, second = np.exp(_at_zero(self.below[0])[0]), min(np.exp(_at_zero(self.above[0])[1]), 1.0)
        low, high = max(low, first), min(high, 1.0 - (1.0 - second) ** 2)
        lower, upper = ((1.0 - k) ** 2 * 0.5 * (1.0 - tv) for k, tv in ((self.kappa_below, low), (self.kappa, high)))
        agreed("the AUC", 1.0 - lower - ROUNDING, 1.0 - upper + ROUNDING)
        return Interval(max(1.0 - float(lower) - ROUNDING, 0.5), min(1.0 - float(upper) + ROUNDING, 1.0))

    def guarantee(self, kappa: float) -> Guarantee:
        """The Guarantee(psi, kappa) with the smallest psi that covers the whole curve, both directions; rounded up.

        A sampled series needs kappa > 0: no psi below that of the unsampled series covers its far tail.

        Examples:
            >>> round(account(DPSGD(1.0, 0.01, 1000)).guarantee(kappa=1e-10).psi, 6)
            0.51...
        """
        rest, sampled = self._remaining(kappa), self.above[0].sampled
        if self.certified and sampled:
            certified.refuse("guarantee(kappa) of a sampled series")
        psi = envelope.covering_psi(self.above, rest) if sampled else self.above[0].plain.psi[1]
        return Guarantee(bounded(psi), kappa, self.adjacency, self.unit)

    def regret(self, kappa: float) -> Interval:
        """How much the one number gives away: the Delta-divergence from this curve to `guarantee(kappa)`.

        The smallest Delta with delta_guarantee(epsilon) <= delta(epsilon) + Delta (1 + e^epsilon) for every epsilon.
        """
        if self.certified:
            certified.refuse("regret(kappa)")
        return envelope.regret(self.guarantee(kappa), self.delta)

    def __repr__(self) -> str:
        steps = self.above[0]
        psi, counts = steps.plain.psi[1], {"sampled steps": steps.steps}
        for pair in steps.pairs:
            counts[pair.called] = counts.get(pair.called, 0.0) + pair.count
        shown = [f"{count:,.0f} {name}" for name, count in counts.items() if count]
        shown += [f"psi={psi:.6g} unsampled"] if psi or not shown else []
        shown += [f"kappa={self.kappa:.6g}"] if self.kappa else []
        return f"PrivacyCurve({', '.join([*shown, self.adjacency, f'per {self.unit}'])})"

    def log_delta(self, epsilon: Array) -> tuple[Array, Array, str]:
        """Bounds of log delta without the failure probability kappa, and the method taken; flat array in."""
        exact = self.below is self.above
        low, high, method = np.full(epsilon.size, -np.inf), np.full(epsilon.size, -np.inf), ""
        for steps in self.above:
            asked = _may_exceed(steps, epsilon, high)
            if asked.any():
                lower, upper, method = delta_bounds(steps, epsilon[asked])
                high[asked] = np.maximum(high[asked], upper)
                low[asked] = np.maximum(low[asked], lower) if exact else low[asked]
        for steps in () if exact else self.below:
            low = np.maximum(low, delta_bounds(steps, epsilon)[0])
        agreed("log delta", low, high)
        return low, high, method

    def _epsilon(self, delta: float) -> tuple[float, float, str]:
        """Bounds of epsilon, and the method; from balls where the curve is certified."""
        answer = self._fast_epsilon(delta)
        return certified.epsilon(self, delta, answer) if self.certified and delta > self.kappa else answer

    def _fast_epsilon(self, delta: float) -> tuple[float, float, str]:
        if not delta > self.kappa_below:
            return float(np.inf), float(np.inf), "failure probability"
        if not delta > self.kappa:
            return 0.0, float(np.inf), "failure probability"
        if self.kappa == 0.0:
            most = least = Fraction(delta)
            log_most = log_least = float(np.log(delta))
        else:
            most, least = (
                (Fraction(delta) - Fraction(kappa)) / (1 - Fraction(kappa)) for kappa in (self.kappa_below, self.kappa)
            )
            log_most, log_least = float(np.log(float_above(most))), float(np.log(float_below(least)))
        both = [epsilon_bounds(self.above[0], log_least, least)]
        for steps in self.above[1:]:
            if not stays_below(steps, both[0][1], log_least):
                both.append(epsilon_bounds(steps, log_least, least))
        lower = max(low for low, _, _ in both)
        same = most is least or (most, log_most) == (least, log_least)
        if not same or self.below is not self.above:
            lower = max(epsilon_bounds(steps, log_most, most)[0] for steps in self.below)
        upper = max(high for _, high, _ in both)
        if not lower <= upper:
            agreed(f"epsilon at delta = {delta!r}", lower, upper)
        return lower, upper, max(both)[2]

    def _failed(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """kappa + (1 - kappa) rate of both ends, rounded to its side."""
        if self.kappa > 0.0:
            lower = (self.kappa_below + (1.0 - self.kappa_below) * lower) * (1.0 - ROUNDING)
            upper = (self.kappa + (1.0 - self.kappa) * upper) * (1.0 + ROUNDING)
        return lower, np.minimum(upper, 1.0)

    def _stretched(self, fpr: Array) -> tuple[Array, Array]:
        """fpr/(1 - kappa), at most 1, rounded down and up."""
        if self.kappa == 0.0:
            return fpr, fpr
        low, high = fpr / (1.0 - self.kappa_below) * (1.0 - ROUNDING), fpr / (1.0 - self.kappa) * (1.0 + ROUNDING)
        low, high = np.maximum(low - 2.0 * TINY, 0.0), np.where(fpr > 0.0, high + 2.0 * TINY, 0.0)
        return np.minimum(low, 1.0), np.minimum(high, 1.0)

    def _failed_roc(self, rate: Callable[[Array], tuple[Array, Array]], fpr: Array) -> tuple[Array, Array]:
        low, high = self._stretched(fpr)
        return self._failed(*_at_both(rate, low, high))

    def _failed_fnr(self, rate: Callable[[Array], tuple[Array, Array]], fpr: Array) -> tuple[Array, Array]:
        low, high = self._stretched(fpr)
        lower, upper = _at_both(rate, high, low)
        least, most = (1.0 - self.kappa) * lower * (1.0 - ROUNDING), (1.0 - self.kappa_below) * upper * (1.0 + ROUNDING)
        return np.maximum(least - 2.0 * TINY, 0.0), np.where(upper > 0.0, most + 2.0 * TINY, 0.0)

    def _rates(self, fpr: Any, rate: Any, worse: Any, failed: Any) -> Interval:
        """Bounds of a rate in the worse direction: the lower profile bounds one side, the upper one the other."""
        values = symbol("fpr").array(fpr)
        if self.certified:
            certified.refuse("roc(fpr) or tradeoff(fpr)")

        def both(x: Array) -> tuple[Array, Array]:
            low = [rate(steps, x) for steps in self.below]
            high = low if self.below is self.above else [rate(steps, x) for steps in self.above]
            first, second = (worse.reduce([pair[i] for pair in pairs]) for i, pairs in ((0, low), (1, high)))
            if self.below is not self.above and worse is np.minimum:
                first, second = worse.reduce([p[0] for p in high]), worse.reduce([p[1] for p in low])
            return first, second

        lower, upper = failed(both, values.ravel())
        agreed("a rate", lower, upper)
        return _shaped(lower, upper, values)

    def _remaining(self, kappa: float) -> float:
        """The failure probability left for the sampled part, after what the events have already spent."""
        kappa = symbol("kappa").number(kappa)
        if not (kappa >= self.kappa and (kappa > self.kappa or not self.above[0].sampled)):
            raise ValueError(
                f"kappa (probability of outright failure) must exceed what the events already have, "
                f"{self.kappa + 0.0:g}, got kappa={kappa}. A sampled run has no finite psi without some, such as 1e-10."
            )
        return max((kappa - self.kappa) / (1.0 - self.kappa) * (1.0 - ROUNDING), 0.0)


def account(events: Event | Iterable[Event], certify: bool = False) -> PrivacyCurve:
    """The privacy curve of one event or of a series: training runs and Guarantees, fixed before any output is seen.

    What is decided on the way, after seeing results, is the ledger's business, not this function's.

    Args:
        events: DPSGD, BandMF, FixedOrder and RandomAllocation runs, and Guarantees.
        certify: prove epsilon, delta, advantage and auc once more in ball arithmetic, which takes seconds instead of
            milliseconds and rests on no model of floating point. It needs python-flint: pip install 'psidp[certify]'.

    Examples:
        >>> curve = account([DPSGD(1.0, 0.01, 500), DPSGD(0.8, 0.004, 2000), Guarantee(0.1)])
        >>> curve.epsilon(1e-5).upper
        2.09499...
        >>> curve
        PrivacyCurve(2,500 sampled steps, psi=0.1 unsampled, add-remove, per record)
    """
    series = list(events) if isinstance(events, Iterable) else [events]
    for event in series:
        if not isinstance(event, DPSGD | BandMF | FixedOrder | RandomAllocation | Guarantee):
            raise TypeError(
                "events must be DPSGD, BandMF, FixedOrder or RandomAllocation runs, or Guarantees, "
                f"got {event!r} of type {type(event).__name__}."
            )
    if not series:
        raise ValueError("account needs at least one event.")
    for name in ("adjacency", "unit"):
        values = sorted({str(getattr(event, name)) for event in series})
        if len(values) > 1:
            raise MismatchError(f"events must share one {name}, got {' and '.join(map(repr, values))}.")
    first = series[0]
    assert first.adjacency is not None
    kappas = [event.kappa for event in series if isinstance(event, Guarantee)]
    cut = [event.truncation for event in series if isinstance(event, DPSGD) and event.truncation]
    kappa_below, kappa = failure(kappas)[0], failure(kappas + cut)[1]
    if not kappa < 1.0:
        raise ValueError(
            "kappa (probability of outright failure) of all events together must be in [0, 1), got kappa=1. Choose "
            "events with a smaller kappa; of a truncated run, a larger truncated_batch_size."
        )
    plain = [event if isinstance(event, Plain) else priced(event) for event in series]
    below, above = both_ways(plain)
    if any(isinstance(event, BandMF) and event.steps % event.bands for event in series):
        below = both_ways([priced(event, attained=True) for event in series])[0]
    if certify:
        library()
        if above[0].pairs:
            certified.refuse("random allocation, groups of records and Poisson sampling under replace-one")
    return PrivacyCurve(below, above, kappa, kappa_below, first.adjacency, first.unit, tuple(series), certify)


def _may_exceed(steps: Composition, epsilon: Array, high: Array) -> Array:
    """Where this direction may have a larger log delta than the other one: at every point, where these are many."""
    if not 0 < epsilon.size <= FEW:
        return np.ones(epsilon.size, dtype=bool)
    known = (high > -np.inf) & (epsilon < np.inf)
    points = zip(epsilon.tolist(), high.tolist(), known.tolist(), strict=True)
    return np.array([not (some and stays_below(steps, e, d)) for e, d, some in points])


def _at_zero(steps: Composition) -> tuple[float, float]:
    low, high, _ = delta_bounds(steps, np.zeros(1))
    return float(low[0]), float(high[0])


def _with_mirror(steps: Composition) -> Composition:
    """The composition together with its mirror image."""
    other = steps.mirrored
    rows = [
        (float(s), float(q), float(t), int(k))
        for one in (steps, other)
        for s, q, t, k in zip(one.sigma, one.q, one.count, one.sign, strict=True)
    ]
    return Composition.merge(rows, steps.plain + steps.plain, steps.pairs + other.pairs)


def _at_both(rate: Callable[[Array], tuple[Array, Array]], first: Array, second: Array) -> tuple[Array, Array]:
    """The lower bound of a rate at one argument and the upper bound at another, which is often the same."""
    lower, upper = rate(first)
    return lower, upper if second is first else rate(second)[1]


def _shaped(lower: Array, upper: Array, like: Array, method: str = "") -> Interval:
    """An Interval of floats for a float, of arrays of the same shape for an array."""
    if like.ndim == 0:
        return Interval(float(lower[0]), float(upper[0]), method)
    return Interval(lower.reshape(like.shape), upper.reshape(like.shape), method)
