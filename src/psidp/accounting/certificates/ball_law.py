"""The law of one step's loss on a lattice, above and below the true one, in balls.

A pair (P, Q) is described by its likelihood ratio R under Q; D(a) = E[(R - a)_+] is convex. The lattice has the ratios
a_i = e^(base + i eta). The law above has the D that joins those at the a_i by straight lines. For the law below, all
between two middles is merged, and neighbours pass mass to each other until every mean is a lattice point: random maps.
"""

from dataclasses import dataclass
from math import exp, log, log1p, sqrt

from psidp.accounting.certificates.balls import Ball, ball, cut, root, tail
from psidp.accounting.exact_sums import NOTHING, Squares

__all__ = ["BallLaw", "Masses"]


@dataclass(frozen=True)
class Masses:
    """Q's masses at first, first + 1, ...; its mass where the ratio is 0; and P's mass, the part beyond included."""

    first: int
    mass: list[Ball]
    nothing: Ball
    whole: Ball


@dataclass(frozen=True)
class BallLaw:
    """`count` steps of a sampled Gaussian, sign as in Composition; or plain Gaussians (squares), once."""

    count: int
    sign: int
    sigma: float = 1.0
    q: float = 1.0
    squares: Squares = NOTHING

    @property
    def base(self) -> Ball:
        """The loss at place 0: where the law has an atom, or nearly one."""
        if self.squares.high or self.sign == 2:
            return ball(0)
        return self.sign * (1 - ball(self.q)).log()

    def lowest(self, log_share: float) -> float:
        """A loss, from the base on, below which P has little more than e^log_share: a guess."""
        reach = sqrt(2.0 * max(-log_share, 1.0))
        if self.squares.high:
            psi = float(root(self.squares).mid())
            return psi * (0.5 * psi - reach)
        t = (-reach if self.sign == 1 else reach) / self.sigma - 0.5 / self.sigma**2
        if self.sign == 1:
            return log1p(self.q / (1.0 - self.q) * exp(min(t, 0.0)))
        x = log(self.q) + t
        loss = log1p(-self.q) + log1p(exp(x - log1p(-self.q))) if x < 30.0 else x
        return -max(loss, 0.0) if self.sign == 2 else log1p(-self.q) - loss

    def above(self, eta: Ball, first: int, places: int) -> Masses:
        """The law above, at `places` places."""
        ratios = self._ratios(eta, first, places + 1)
        heights = [p - a * q for a, (p, q) in zip(ratios, map(self.tails, ratios), strict=True)]
        slopes = [(heights[0] - 1) / ratios[0]]
        slopes += [(heights[i + 1] - heights[i]) / (ratios[i + 1] - ratios[i]) for i in range(places)]
        mass = [slopes[i + 1] - slopes[i] for i in range(places)]
        return Masses(first, mass, 1 + slopes[0], ball(1))

    def below(self, eta: Ball, first: int, places: int) -> Masses:
        """The law below, at `places` places; what lies under the first cell has the ratio 0."""
        ratios, half = self._ratios(eta, first, places), (-eta / 2).exp()
        ends = [self.tails(a * half) for a in [*ratios, ratios[-1] * eta.exp()]]
        mass = [(ends[i][1] - ends[i + 1][1]).nonnegative_part() for i in range(places)]
        means = [_ratio(ends[i][0] - ends[i + 1][0], mass[i]) for i in range(places)]
        lost = 1 - ends[0][0]
        placed, rest = [ball(0)] * places, list(mass)
        high = [mean is not None and mean.mid() > a.mid() for mean, a in zip(means, ratios, strict=True)]
        for i in range(places - 1, -1, -1):
            if high[i]:
                placed[i], spent = _lowered(rest, means, ratios[i], i)
                lost += spent
        for i in range(places):
            if means[i] is not None and not high[i]:
                placed[i], spent = _raised(rest, means, placed, ratios, i)
                lost += spent
        return Masses(first, placed, 1 - ends[0][1], 1 - lost)

    def tails(self, a: Ball) -> tuple[Ball, Ball]:
        """P(R > a) and Q(R > a)."""
        if self.sign == 2 and not self.squares.high:
            if a < 1:
                p, q = self._removed(1 / a)
                return 1 - q, 1 - p
            return self._removed(a)
        if self.squares.high:
            psi = root(self.squares)
            g = a.log() / psi + psi / 2
            return tail(g - psi), tail(g)
        if self.sign == 1:
            return self._removed(a)
        if not 1 / a > 1 - ball(self.q):
            return ball(0), ball(0)
        p, q = self._removed(1 / a)
        return 1 - q, 1 - p

    def _removed(self, a: Ball) -> tuple[Ball, Ball]:
        sigma, q = ball(self.sigma), ball(self.q)
        if not a > 1 - q:
            return ball(1), ball(1)
        g = cut(sigma, q, a)
        outside = tail(g)
        return (1 - q) * outside + q * tail(g - 1 / sigma), outside

    def _ratios(self, eta: Ball, first: int, places: int) -> list[Ball]:
        base = self.base
        return [(base + (first + i) * eta).exp() for i in range(places)]


def _ratio(p: Ball, q: Ball) -> Ball | None:
    """p/q, or None where there is nothing."""
    return p / q if q > 0 else None


def _lowered(rest: list[Ball], means: list[Ball], ratio: Ball, i: int) -> tuple[Ball, Ball]:
    """Mass at i with a mean above its place, mixed with some from below: what is placed, and what of P is lost."""
    surplus = (means[i] - ratio) * rest[i]
    taken = ball(0)
    if i and means[i - 1] is not None and means[i - 1] < ratio:
        wanted = (surplus / (ratio - means[i - 1])).lower()
        taken = max(min(wanted, rest[i - 1].lower()), ball(0))
        rest[i - 1] = (rest[i - 1] - taken).nonnegative_part()
        surplus -= taken * (ratio - means[i - 1])
    return rest[i] + taken, surplus.upper()


def _raised(rest: list[Ball], means: list[Ball], placed: list[Ball], ratios: list[Ball], i: int) -> tuple[Ball, Ball]:
    """Mass at i with a mean below its place, mixed with some from above: what is placed, and what of P is lost.

    Where there is not enough above, the mass goes to the place before: its mean is above that.
    """
    need = (ratios[i] - means[i]) * rest[i]
    if i + 1 < len(rest) and means[i + 1] is not None:
        final = not placed[i + 1].is_zero()
        mean, store = (ratios[i + 1], placed) if final else (means[i + 1], rest)
        if mean > ratios[i]:
            wanted = (need / (mean - ratios[i])).upper()
            if wanted <= store[i + 1].lower():
                store[i + 1] = (store[i + 1] - wanted).nonnegative_part()
                return rest[i] + wanted, (wanted * (mean - ratios[i]) - need).upper()
    if i and means[i] >= ratios[i - 1]:
        placed[i - 1] += rest[i]
        return ball(0), ((means[i] - ratios[i - 1]) * rest[i]).upper()
    return ball(0), (means[i] * rest[i]).upper()
