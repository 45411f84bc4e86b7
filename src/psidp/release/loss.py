"""Loss: what releases cost together, psi^2 to the last bit and kappa never rounded down."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isqrt, nextafter
from typing import Self

from psidp.guarantee import Guarantee

__all__ = ["ZERO", "Loss", "shares"]

KAPPA_BITS = 192
"""Digits kept of 1 - prod(1 - kappa_i); what is beyond is rounded up."""

SHARE_BITS = 256
"""Digits kept of a share of a budget; what is beyond goes to the last share."""


@dataclass(frozen=True, slots=True)
class Loss:
    """psi^2 and kappa as exact dyadic rationals.

    A double is an integer times a power of two, so its square is too, and so are sums of them: psi^2 is never
    rounded. kappa composes as 1 - (1 - a)(1 - b), rounded up once it has more than 192 binary digits.

    Examples:
        >>> total = Loss.of(Guarantee(0.1)) + Loss.of(Guarantee(0.2))
        >>> total.square == Fraction(0.1) ** 2 + Fraction(0.2) ** 2
        True
    """

    square: Fraction
    kappa: Fraction

    @classmethod
    def of(cls, guarantee: Guarantee) -> Self:
        """What one guarantee costs."""
        return cls(Fraction(guarantee.psi) ** 2, Fraction(guarantee.kappa))

    def __add__(self, other: "Loss") -> "Loss":
        if self == ZERO or other == ZERO:
            return other if self == ZERO else self
        kappa = self.kappa + other.kappa
        if self.kappa and other.kappa:
            kappa = _rounded(kappa - self.kappa * other.kappa, KAPPA_BITS, up=True)
        return Loss(self.square + other.square, kappa)

    def __or__(self, other: "Loss") -> "Loss":
        """The larger of each: what disjoint parts of the data cost together."""
        return Loss(max(self.square, other.square), max(self.kappa, other.kappa))

    def fits(self, cap: "Loss") -> bool:
        """Whether neither psi^2 nor kappa is above the cap's."""
        return self.square <= cap.square and self.kappa <= cap.kappa

    def left(self, cap: "Loss") -> "Loss":
        """The largest loss that can be added without going above the cap, in psi^2 and in kappa by itself."""
        square = max(cap.square - self.square, Fraction(0))
        if not self.kappa < cap.kappa:
            return Loss(square, Fraction(0))
        kappa = (cap.kappa - self.kappa) / (1 - self.kappa)
        return Loss(square, _rounded(kappa, KAPPA_BITS, up=False) if self.kappa else kappa)

    @property
    def psi(self) -> float:
        """The smallest double whose square is at or above psi^2."""
        below = psi_below(self.square)
        return below if Fraction(below) ** 2 == self.square else nextafter(below, inf)

    @property
    def psi_below(self) -> float:
        """The largest double whose square is at or below psi^2."""
        return psi_below(self.square)

    def guarantee(self, like: Guarantee) -> Guarantee:
        """What was spent, as a guarantee for the same unit and adjacency; rounded up."""
        return Guarantee(self.psi, -_below(-self.kappa), like.adjacency, like.unit)

    def guarantee_below(self, like: Guarantee) -> Guarantee:
        """What is left, as a guarantee for the same unit and adjacency; rounded down, so that spending it fits."""
        return Guarantee(self.psi_below, _below(self.kappa), like.adjacency, like.unit)

    def text(self) -> list[str]:
        """Both numbers as text: an odd hexadecimal integer and a power of two, "3p-4" for 3/16."""
        return [_text(self.square), _text(self.kappa)]

    @classmethod
    def read(cls, text: list[str]) -> Self:
        """The loss that text() wrote."""
        square, kappa = text
        return cls(_read(square), _read(kappa))


ZERO = Loss(Fraction(0), Fraction(0))


def psi_below(square: Fraction) -> float:
    """The largest double whose square is at or below `square`.

    Examples:
        >>> psi_below(Fraction(9, 16))
        0.75
    """
    if not square > 0:
        return 0.0
    shift = max(0, 128 + square.denominator.bit_length() - square.numerator.bit_length())
    shift += shift % 2
    root = Fraction(isqrt((square.numerator << shift) // square.denominator), 1 << (shift // 2))
    psi = float(root)
    while Fraction(psi) ** 2 > square:
        psi = nextafter(psi, 0.0)
    while Fraction(nextafter(psi, inf)) ** 2 <= square:
        psi = nextafter(psi, inf)
    return psi


def shares(whole: Loss, weights: Mapping[str, float]) -> dict[str, Loss]:
    """`whole` in shares proportional to the weights; the last takes the exact remainder, so that the sum is exact.

    Examples:
        >>> parts = shares(Loss.of(Guarantee(1.0)), {"a": 1, "b": 1, "c": 1})
        >>> sum(part.square for part in parts.values()) == 1
        True
    """
    if not weights or not all(0 < weight < inf for weight in weights.values()):
        raise ValueError(f"weights of shares must be above 0 and finite, got {dict(weights)}.")
    total = sum(Fraction(weight) for weight in weights.values())
    parts: dict[str, Loss] = {}
    rest = whole
    for name in list(weights)[:-1]:
        ratio = Fraction(weights[name]) / total
        parts[name] = Loss(_share(whole.square, ratio), _share(whole.kappa, ratio))
        rest = Loss(rest.square - parts[name].square, rest.kappa - parts[name].kappa)
    return parts | {list(weights)[-1]: rest}


def _below(value: Fraction) -> float:
    """The largest double at or below `value`."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else nextafter(nearest, -inf)


def _share(whole: Fraction, ratio: Fraction) -> Fraction:
    return _rounded(whole * ratio, SHARE_BITS, up=False)


def _rounded(value: Fraction, bits: int, up: bool) -> Fraction:
    """`value`, at or above 0, with so many binary digits."""
    shift = bits + value.denominator.bit_length() - value.numerator.bit_length()
    if not value > 0 or (value.numerator.bit_length() <= bits and not value.denominator & (value.denominator - 1)):
        return value
    scaled = value * (Fraction(2) ** shift)
    whole = -(-scaled.numerator // scaled.denominator) if up else scaled.numerator // scaled.denominator
    return Fraction(whole) / (Fraction(2) ** shift)


def _text(value: Fraction) -> str:
    if not value:
        return "0"
    power = value.denominator.bit_length() - 1
    if value.denominator != 1 << power:
        raise ValueError(f"{value} is no integer times a power of two.")
    zeros = (value.numerator & -value.numerator).bit_length() - 1
    return f"{value.numerator >> zeros:x}p{zeros - power}"


def _read(text: str) -> Fraction:
    digits, _, power = text.partition("p")
    value, shift = int(digits, 16), int(power or 0)
    return Fraction(value << shift) if shift >= 0 else Fraction(value, 1 << -shift)
