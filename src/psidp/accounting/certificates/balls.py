"""Balls: numbers with their whole error, from python-flint. The only door to that library.

A ball answers `a <= b` with True only where that is certain. Every function here sets no precision: the caller does,
with `precision(bits)`.
"""

from contextlib import AbstractContextManager
from fractions import Fraction
from importlib import import_module
from typing import Any

from psidp.accounting.exact_sums import Squares
from psidp.errors import MissingExtraError
from psidp.symbols import float_above, float_below

__all__ = ["UNIT", "Ball", "above", "ball", "below", "cut", "gaussian", "library", "precision", "root", "tail"]

Ball = Any
"""A real or complex number of python-flint."""
UNIT = 2400
"""The sums of squared psi are whole numbers of 2^-2400."""
FAR = 1200
"""Binary exponents below which a float holds nothing."""


def library() -> Any:
    """python-flint, or the refusal that says how to install it."""
    try:
        return import_module("flint")
    except ImportError as error:
        raise MissingExtraError("python-flint", "certify") from error


def precision(bits: int) -> AbstractContextManager[Any]:
    """The number of bits that balls are computed with inside `with`."""
    return library().ctx.workprec(int(bits))  # type: ignore[no-any-return]


def ball(x: Any) -> Ball:
    """A float or whole number as a ball, exactly."""
    return library().arb(x)


def below(x: Ball) -> float:
    """The largest float that is certainly at or below x."""
    return float_below(_exactly(x.lower()))


def above(x: Ball) -> float:
    """The smallest float that is certainly at or above x."""
    return float_above(_exactly(x.upper()))


def _exactly(x: Ball) -> Fraction:
    """The value of an exact ball, but for what no float can tell from 0 or from infinity."""
    if not x.is_finite():
        raise ArithmeticError("a ball without bounds")
    mantissa, exponent = (int(part) for part in x.man_exp())
    size = mantissa.bit_length() + exponent
    if mantissa and size < -FAR:
        return Fraction(1 if mantissa > 0 else -1, 1 << FAR)
    if size > FAR:
        return Fraction((1 if mantissa > 0 else -1) << FAR)
    return Fraction(mantissa) * Fraction(2) ** exponent


def root(squares: Squares) -> Ball:
    """psi of a sum of squares."""
    low, high = ball(squares.low), ball(squares.high)
    return (low.union(high) / ball(2) ** UNIT).sqrt()


def tail(x: Ball) -> Ball:
    """1 - Phi(x)."""
    return (x / ball(2).sqrt()).erfc() / 2


def gaussian(psi: Ball, ratio: Ball) -> Ball:
    """delta of the Gaussian mechanism at a = e^epsilon > 0, of any size."""
    epsilon = ratio.log()
    return tail(epsilon / psi - psi / 2) - ratio * tail(epsilon / psi + psi / 2)


def cut(sigma: Ball, q: Ball, ratio: Ball) -> Ball:
    """The noise g at which F = 1 - q + q e^t is `ratio`, which is certainly above 1 - q."""
    return sigma * (1 + (ratio - 1) / q).log() + 1 / (2 * sigma)
