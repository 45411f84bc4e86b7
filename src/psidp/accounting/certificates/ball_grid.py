"""The lattice in balls: delta of short and of uneven runs, from laws above and below, composed in whole numbers.

delta = P's mass - e^epsilon + E[(e^epsilon - R)_+]: only losses up to epsilon are needed, so products of polynomials
are cut off there and no tail is left to bound. The masses are whole numbers of 2^-bits, rounded up above and down
below, with so many bits that the difference loses nothing.
"""

from collections.abc import Iterator
from math import ceil, floor, log, log2

from psidp.accounting.certificates.ball_law import BallLaw, Masses
from psidp.accounting.certificates.ball_step import TooLong
from psidp.accounting.certificates.balls import Ball, ball, library, precision
from psidp.accounting.composition import Composition

__all__ = ["BallLattice"]

SIZES = (1 << 11, 1 << 13, 1 << 15)
"""Places on the lattice; each has a sixteenth of the width of the one before."""
MOST_WORK = 2.5e8
"""Places times bits^1.6 of all laws together: some seconds."""
MOST_PRODUCTS = 1.5e9
"""Places times bits times products of polynomials."""
SHARE = 1e-9
"""What of delta may be lost where the lattice begins."""


class BallLattice:
    """Both laws for questions near one epsilon, where delta is about e^level."""

    method = "lattice"

    def __init__(self, steps: Composition, epsilon: float, level: float, places: int) -> None:
        self.laws = _laws(steps)
        total = sum(law.count for law in self.laws)
        self.bits = 64 + ceil((epsilon - level) / log(2.0) + log2(places) + 2.0 * log2(total + 1.0))
        products = sum(2.0 * log2(law.count + 1.0) for law in self.laws)
        work = len(self.laws) * places * self.bits**1.6
        if not (work <= MOST_WORK and products * places * self.bits <= MOST_PRODUCTS):
            raise TooLong
        with precision(self.bits + 2 * ceil(log2(places)) + 64):
            share = level + log(SHARE) - log(total)
            starts = [law.lowest(share) for law in self.laws]
            bases = [float(law.base.mid()) for law in self.laws]
            span = epsilon - sum(law.count * (a + b) for law, a, b in zip(self.laws, starts, bases, strict=True))
            if not span > 0.0:
                raise TooLong
            eta = span / places
            firsts = [round(a / eta) if abs(a) > 8.0 * eta else floor(a / eta) for a in starts]
            begin = sum(law.count * (i * eta + b) for law, i, b in zip(self.laws, firsts, bases, strict=True))
            needed = int((1.05 * epsilon - begin) / eta) + 2
            if not needed <= 3 * places:
                raise TooLong
            self.eta = ball(eta)
            laws = list(zip(self.laws, firsts, strict=True))
            self.high = self._composed([law.above(self.eta, first, needed) for law, first in laws], needed, 1)
            self.low = self._composed([law.below(self.eta, first, needed) for law, first in laws], needed, 0)

    @classmethod
    def around(cls, steps: Composition, epsilon: float) -> Iterator["BallLattice"]:
        """Lattices for one epsilon, from small to large."""
        level = -40.0
        for size in (SIZES[0] // 4, SIZES[0] // 4, SIZES[0] // 4, *SIZES):
            lattice = cls(steps, epsilon, level, size)
            found = lattice.delta(epsilon)
            if size >= SIZES[0]:
                yield lattice
            with precision(64):
                high = found.abs_upper()
                level = min(float(high.log().mid()), 0.0) - 3.0 if high > 0 else 3.0 * level

    def delta(self, epsilon: float) -> Ball:
        """A ball with delta at this epsilon."""
        with precision(self.bits + 64):
            low, high = self._value(self.low, epsilon), self._value(self.high, epsilon)
            lower, upper = max(low.lower(), ball(0)), min(high.upper(), ball(1))
            if not lower <= upper:
                raise ArithmeticError("the lattice is too coarse")
            return lower.union(upper)

    def _value(self, side: tuple[list[int], Ball, Ball, Ball], epsilon: float) -> Ball:
        """P's mass - a + sum of (a - R)_+, a = e^epsilon."""
        mass, start, nothing, whole = side
        a, unit = ball(epsilon).exp(), ball(2) ** -self.bits
        grown, ratio = self.eta.exp(), start.exp()
        flint = library()
        first, second = flint.fmpz(0), ball(0)
        for value in mass:
            if not ratio < a:
                break
            first += value
            second += ratio * value
            ratio *= grown
        else:
            raise TooLong
        return whole - a + a * nothing + (a * first - second) * unit

    def _composed(self, parts: list[Masses], places: int, up: int) -> tuple[list[int], Ball, Ball, Ball]:
        """Masses of the composition, the loss at the first, the mass where the ratio is 0, and P's mass."""
        flint = library()
        one = flint.fmpz_poly([1]) * flint.fmpz(1 << self.bits)
        ones = flint.fmpz_poly([up] * places)
        unit = flint.fmpz(1 << self.bits)
        product, start, kept, whole = one, ball(0), ball(1), ball(1)
        for law, part in zip(self.laws, parts, strict=True):
            rounded = [_whole(m, self.bits, up) for m in part.mass]
            if not sum(rounded) <= 2 << self.bits:
                raise TooLong
            poly = flint.fmpz_poly(rounded)
            power, n = one, law.count
            while n:
                if n & 1:
                    power = power.mul_low(poly, places) // unit + ones
                n >>= 1
                if n:
                    poly = poly.mul_low(poly, places) // unit + ones
            product = product.mul_low(power, places) // unit + ones
            start += law.count * (law.base + part.first * self.eta)
            kept *= (1 - part.nothing) ** law.count
            whole *= part.whole**law.count
        masses = list(product.coeffs())
        return masses + [0] * (places - len(masses)), start, 1 - kept, whole


def _whole(mass: Ball, bits: int, up: int) -> int:
    """A mass in units of 2^-bits, rounded up or down, at least 0."""
    scaled = mass * ball(2) ** bits
    value = scaled.upper().ceil() if up else scaled.lower().floor()
    return max(int(value.unique_fmpz()), 0)


def _laws(steps: Composition) -> list[BallLaw]:
    columns = zip(steps.sigma.tolist(), steps.q.tolist(), steps.count.tolist(), steps.sign.tolist(), strict=True)
    laws = [BallLaw(int(n), int(sign), sigma, q) for sigma, q, n, sign in columns]
    return laws + ([BallLaw(1, 1, squares=steps.plain)] if steps.plain.high else [])
