"""The composition: sampled Gaussian steps seen from one direction, merged into columns the contour can read.

Letters follow docs/design/accounting.md. One step adds sigma*g with g ~ N(0, 1); with t = g/sigma - 1/(2 sigma^2)
the likelihood ratio is F(g) = 1 - q + q e^t and the loss l = log F. The moment generating function of the loss is
A(1+z) in the remove direction and A(-z) in the add direction, A(s) = E[F(g)^s].
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from psidp.accounting.exact_sums import BITS, NOTHING, UNIT, Squares, power

__all__ = ["Array", "ComplexArray", "Composition", "Pair", "cut", "exponent", "loss"]

Array = NDArray[Any]
"""Real numbers, of double or extended precision."""
ComplexArray = NDArray[Any]
FAR, NEAR = 700.0, 2.0
"""From where on e^t, or e^x/q, is written as a logarithm."""
LEAST_NOISE, MOST_NOISE = 1e-6, 1e12
"""Noise multipliers for which the methods are made; beyond, their floats overflow or have no digits."""
LEAST_RATE = 1e-100
MOST_SQUARE = 1e9
"""About psi^2 of everything, the rate of sampling included."""
MOST_STEPS = 2**53
"""As many steps as a float counts one by one."""


def loss(sigma: Array, q: Array, g: Array) -> tuple[Array, Array]:
    """l = log F(g) and v = q e^t/F(g), the derivative of l being v/sigma; v increases with g from 0 to 1."""
    t = g / sigma - 0.5 / (sigma * sigma)
    far = t.size > 0 and not t.max() <= FAR
    near = np.minimum(t, FAR) if far else t
    log_f = np.log1p(q * np.expm1(near))
    if q.max(initial=0.0) > 0.5:  # 1 + q (e^t - 1) would cancel where F is small; 1 - q is exact there
        log_f = np.where((q > 0.5) & (t < -0.5), np.log((1.0 - q) + q * np.exp(np.minimum(t, 0.0))), log_f)
    v = q * np.exp(near - log_f)
    if not far:
        return log_f, v
    log_far = np.logaddexp(np.log1p(-q), np.log(q) + t)  # e^t is no float, and q may be as small as e^-t
    return np.where(t > FAR, log_far, log_f), np.where(t > FAR, np.exp(np.log(q) + t - log_far), v)


def exponent(q: Array | float, x: Array, nudge: float = 0.0) -> Array:
    """The t where l = x, log(1 + (e^x - 1)/q), with that ratio moved up by a share `nudge`; -inf below all losses."""
    grown = np.expm1(np.minimum(x, NEAR))
    ratio = grown / q
    near = np.log1p(np.maximum(ratio + nudge * np.abs(ratio), -1.0))
    near = np.where(ratio < 1e300, near, np.log(np.maximum(grown, 0.0) + q) - np.log(q))
    far = x - np.log(q) + np.log1p(-(1.0 - q) * np.exp(-np.maximum(x, NEAR)))
    return np.where(x > NEAR, far, near)


def cut(sigma: Array | float, q: Array | float, x: Array, nudge: float = 0.0) -> Array:
    """The g where l = x, from `exponent`."""
    return np.asarray(sigma * exponent(q, x, nudge) + 0.5 / sigma)


class Pair(Protocol):
    """Equal steps of another kind, known as two laws that only the lattice can read."""

    called: ClassVar[str]
    """What the steps are called, in words."""

    @property
    def count(self) -> float:
        """How many steps."""
        ...

    @property
    def psi(self) -> float:
        """psi of a Gaussian mechanism that covers one step."""
        ...

    @property
    def most(self) -> float:
        """The largest loss of one step; inf where there is none."""
        ...

    @property
    def mirrored(self) -> "Pair":
        """The same steps seen from the other direction."""
        ...

    def law(self, log_lost: float) -> Any:
        """The law for a lattice on which a mass of e^log_lost may be counted as infinite."""
        ...


@dataclass(frozen=True)
class Composition:
    """`count` steps each of the sampled Gaussian (sigma, q), some of them mirrored, and plain Gaussians.

    `sign` is +1 where the record is removed (the mixture is the numerator), -1 where it is added, and 2 for
    C_gamma, the symmetric bound for batches drawn without replacement. `plain` is the sum of the squared psi of the
    plain Gaussians, `pairs` are steps of other kinds.
    """

    sigma: Array
    q: Array
    count: Array
    sign: Array
    plain: Squares = NOTHING
    pairs: tuple[Pair, ...] = ()

    @classmethod
    def merge(
        cls, rows: Iterable[tuple[float, float, float, int]], plain: Squares | float = 0.0, pairs: Iterable[Pair] = ()
    ) -> "Composition":
        """The composition of rows (sigma, q, count, sign), equal rows added up, unsampled ones moved into plain."""
        counts: dict[tuple[float, float, int], int] = {}
        for sigma, q, count, sign in rows:
            if q > 0.0:
                key = (sigma, q, 0 if q == 1.0 else sign)
                counts[key] = counts.get(key, 0) + int(count)
        total = plain if isinstance(plain, Squares) else Squares.of([(Fraction(plain), 1)])
        total += Squares.of((1 / Fraction(sigma) ** 2, n) for (sigma, _, sign), n in counts.items() if not sign)
        keys = sorted(key for key in counts if key[2])
        if not all(counts[key] <= MOST_STEPS for key in keys):
            raise ValueError("steps (number of noisy steps) must be at most 2^53 for all equal runs together.")
        columns = np.array([(*key[:2], counts[key], key[2]) for key in keys], dtype=np.float64).reshape(-1, 4)
        return cls(columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3], total, tuple(pairs))

    @property
    def mirrored(self) -> "Composition":
        """The same steps seen from the other direction."""
        sign = np.where(self.sign == 2.0, 2.0, -self.sign)
        return replace(self, sign=sign, pairs=tuple(pair.mirrored for pair in self.pairs))

    @property
    def sampled(self) -> bool:
        """Whether anything is in it besides plain Gaussians."""
        return bool(self.count.size or self.pairs)

    @property
    def most(self) -> float:
        """The largest loss of all steps together, rounded up; inf where there is none."""
        if self.plain.high or not (self.sign == -1.0).all():
            return float(np.inf)
        pairs = sum(pair.count * pair.most for pair in self.pairs)
        return float(-(self.count * np.log1p(-self.q)).sum() + pairs) * (1.0 + 1e-12)

    @property
    def gauss(self) -> float:
        """The sum of the squared psi of the plain Gaussians, to the nearest float."""
        return self.plain.value

    @cached_property
    def steps(self) -> float:
        """How many sampled steps there are."""
        return float(self.count.sum())

    @cached_property
    def ordinary(self) -> bool:
        """Whether the methods apply: elsewhere closed forms, levels and crude bounds answer."""
        noise = [*self.sigma.tolist(), *(1.0 / max(pair.psi, 1e-300) for pair in self.pairs)]
        if not (all(LEAST_NOISE <= each <= MOST_NOISE for each in noise) and bool((self.q >= LEAST_RATE).all())):
            return False
        return float((self.count * (self.q / self.sigma) ** 2).sum()) + self.gauss <= MOST_SQUARE

    def sampled_at_most(self, delta: Fraction) -> bool:
        """Whether any step samples the record with a chance of at most delta: then epsilon is 0, in both directions."""
        most = float(delta) * (1.0 + 1e-9)
        if self.q.max(initial=0.0) > most or self.plain.high or self.pairs or (self.sign == 2.0).any():
            return False
        if not -np.expm1((self.count * np.log1p(-self.q)).sum()) <= most:
            return False
        none = UNIT
        for q, count in zip(self.q.tolist(), self.count.tolist(), strict=True):
            none = (none * power(UNIT - int(Fraction(q) * UNIT), int(count))[0]) >> BITS
        return bool(UNIT - none <= delta * UNIT)

    def order(self, c: float) -> Array:
        """Real part of s on the line Re z = c, per group."""
        return np.where(self.sign > 0, 1.0 + c, -c)
