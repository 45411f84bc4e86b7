"""Cost: what releases cost together, psi^2 to the last bit and kappa never rounded down."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from typing import Self

from psidp.guarantee import Guarantee
from psidp.maths.rounding import root_above, root_below
from psidp.symbols import float_above, float_below

__all__ = ["ZERO", "Cost", "shares"]

KAPPA_BITS = 192
"""Digits kept of 1 - prod(1 - kappa_i); what is beyond is rounded up."""

SHARE_BITS = 256
"""Digits kept of a share of a budget; what is beyond goes to the last share."""


@dataclass(frozen=True, slots=True)
class Cost:
    """psi^2 and kappa as exact dyadic rationals.

    A double is an integer times a power of two, so its square is too, and so are sums of them: psi^2 is never
    rounded. kappa composes as 1 - (1 - a)(1 - b), rounded up once it has more than 192 binary digits.

    Examples:
        >>> total = Cost.of(Guarantee(0.1)) + Cost.of(Guarantee(0.2))
        >>> total.square == Fraction(0.1) ** 2 + Fraction(0.2) ** 2
        True
    """

    square: Fraction
    kappa: Fraction
    _written: tuple[str, str] = field(init=False, repr=False, compare=False)

    @classmethod
    def of(cls, guarantee: Guarantee) -> Self:
        """What one guarantee costs."""
        top, bottom = guarantee.psi.as_integer_ratio()
        return cls(Fraction(top * top, bottom * bottom), Fraction(guarantee.kappa) if guarantee.kappa else _NOTHING)

    def __add__(self, other: "Cost") -> "Cost":
        if not other:
            return self
        if not self:
            return other
        if not self.kappa or not other.kappa:
            return Cost(self.square + other.square, self.kappa or other.kappa)
        kappa = self.kappa + other.kappa - self.kappa * other.kappa
        return Cost(self.square + other.square, _rounded(kappa, KAPPA_BITS, up=True))

    def __bool__(self) -> bool:
        """Whether it is anything at all."""
        return self.square.numerator != 0 or self.kappa.numerator != 0

    def __or__(self, other: "Cost") -> "Cost":
        """The larger of each: what disjoint parts of the data cost together."""
        return Cost(max(self.square, other.square), max(self.kappa, other.kappa))

    def fits(self, cap: "Cost") -> bool:
        """Whether neither psi^2 nor kappa is above the cap's."""
        return self.square <= cap.square and self.kappa <= cap.kappa

    def left(self, cap: "Cost") -> "Cost":
        """The largest loss that can be added without going above the cap, in psi^2 and in kappa by itself."""
        square = max(cap.square - self.square, Fraction(0))
        if not self.kappa < cap.kappa:
            return Cost(square, Fraction(0))
        kappa = (cap.kappa - self.kappa) / (1 - self.kappa)
        return Cost(square, _rounded(kappa, KAPPA_BITS, up=False) if self.kappa else kappa)

    @property
    def psi(self) -> float:
        """The smallest double whose square is at or above psi^2."""
        return root_above(self.square)

    @property
    def psi_below(self) -> float:
        """The largest double whose square is at or below psi^2."""
        return root_below(self.square)

    def guarantee(self, like: Guarantee) -> Guarantee:
        """What was spent, as a guarantee for the same unit and adjacency; rounded up."""
        return Guarantee(self.psi, float_above(self.kappa), like.adjacency, like.unit)

    def guarantee_below(self, like: Guarantee) -> Guarantee:
        """What is left, as a guarantee for the same unit and adjacency; rounded down, so that spending it fits."""
        return Guarantee(self.psi_below, float_below(self.kappa), like.adjacency, like.unit)

    def text(self) -> list[str]:
        """Both numbers as text: an odd hexadecimal integer and a power of two, "3p-4" for 3/16."""
        if not hasattr(self, "_written"):  # a cap and a total are written again and again
            object.__setattr__(self, "_written", (_text(self.square), _text(self.kappa)))
        return list(self._written)

    @classmethod
    def read(cls, text: list[str]) -> Self:
        """The loss that text() wrote."""
        square, kappa = text
        return cls(_read(square), _read(kappa))


_NOTHING = Fraction(0)
ZERO = Cost(_NOTHING, _NOTHING)


def shares(whole: Cost, weights: Mapping[str, float]) -> dict[str, Cost]:
    """`whole` in shares proportional to the weights; the last takes the exact remainder, so that the sum is exact.

    Examples:
        >>> parts = shares(Cost.of(Guarantee(1.0)), {"a": 1, "b": 1, "c": 1})
        >>> sum(part.square for part in parts.values()) == 1
        True
    """
    if not weights or not all(0 < weight < inf for weight in weights.values()):
        raise ValueError(f"weights of shares must be above 0 and finite, got {dict(weights)}.")
    total = sum(Fraction(weight) for weight in weights.values())
    parts: dict[str, Cost] = {}
    rest = whole
    for name in list(weights)[:-1]:
        ratio = Fraction(weights[name]) / total
        parts[name] = Cost(_share(whole.square, ratio), _share(whole.kappa, ratio))
        rest = Cost(rest.square - parts[name].square, rest.kappa - parts[name].kappa)
    return parts | {list(weights)[-1]: rest}


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
