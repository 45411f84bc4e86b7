"""Corners in balls: closed forms, and values that tests/reference/make_corners.py made. Shares no code with src."""

from fractions import Fraction

from flint import arb, ctx

BITS = 300
LONG = [  # sigma, q, steps, epsilon, delta: remove direction, by make_corners.long
    (1.0, 0.9, 10**7, 4081754.1653990657, "[0.000999999812693340037400484245001 +/- 8.78e-16]"),
    (1.3, 0.5, 3 * 10**6, 250000.0, "[1.06054062109252147856571674781e-70 +/- 2.16e-89]"),
    (0.9, 0.7, 10**6, 350000.0, "[6.09850623723471440654589053440e-294 +/- 1.24e-313]"),
]
LATTICE = [  # sigma, q, steps, epsilon, sign, delta: by make_corners.enclosure
    (1.0, 0.1, 3, 0.2, -1, "[0.0024107741165021 +/- 5.51e-17]"),
    (2.0, 0.3, 5, 1.0, 1, "[0.00151217746625235 +/- 5.16e-18]"),
    (2.0, 0.3, 5, 1.0, -1, "[1.92832831254127e-6 +/- 4.96e-21]"),
    (5.0, 0.02, 200, 0.2, 1, "[5.2116517824706586e-6 +/- 9.60e-23]"),
    (5.0, 0.02, 200, 0.2, -1, "[2.48140683202712911e-6 +/- 8.83e-24]"),
    (50.0, 0.2, 30, 0.1, 1, "[1.36193730828099e-8 +/- 5.99e-23]"),
]


class TooLong(Exception):
    """Ball arithmetic would take too long here."""


def number(text: str) -> arb:
    """A stored decimal number as a ball."""
    ctx.prec = BITS
    return arb(text)


def log_at_most(low: float, exact: arb) -> bool:
    """Whether e^low <= exact for certain."""
    ctx.prec = BITS
    return bool(arb(float(low)).exp() <= exact)


def log_at_least(high: float, exact: arb) -> bool:
    """Whether e^high >= exact for certain."""
    ctx.prec = BITS
    return bool(arb(float(high)).exp() >= exact)


def fraction(x: Fraction) -> arb:
    """A fraction as a ball."""
    return arb(x.numerator) / arb(x.denominator)


def upper_tail(x: arb) -> arb:
    """1 - Phi(x)."""
    return (x / arb(2).sqrt()).erfc() / 2


def gaussian(psi: arb, epsilon: float | arb) -> arb:
    """delta of the Gaussian mechanism, as the textbook has it."""
    e = arb(epsilon)
    return upper_tail(e / psi - psi / 2) - e.exp() * upper_tail(e / psi + psi / 2)


def one_step(sigma: float, q: float, epsilon: float, sign: int) -> arb:
    """delta of one sampled step: two tails of the mixture and of the noise, at the cut where they balance."""
    ctx.prec = 2000
    s, rate, e = arb(float(sigma)), arb(float(q)), arb(float(epsilon))
    ratio = 1 + (e.exp() - 1) / rate if sign > 0 else ((-e).exp() - 1 + rate) / rate
    if sign < 0 and ratio <= 0:
        return arb(0)
    g = s * ratio.log() + 1 / (2 * s)
    if sign > 0:
        return (1 - rate) * upper_tail(g) + rate * upper_tail(g - 1 / s) - e.exp() * upper_tail(g)
    return upper_tail(-g) - e.exp() * ((1 - rate) * upper_tail(-g) + rate * upper_tail(1 / s - g))
