"""Ordered: the basis of a column whose values have an order, made for cumulative sums or for ranges."""

import base64
import zlib
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, Self, final

import numpy as np
from numpy.typing import NDArray

from psidp.strategies.basis import Basis
from psidp.symbols import whole

__all__ = ["Asked", "Ordered", "ordered"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Asked = Literal["prefixes", "ranges"]

BITS = 13
"""The matrix is rounded to multiples of 2^-13; the error grows by less than 1e-3."""

MOST = 2_048
"""Values that a column with an order may have: the matrix is dense."""

LARGEST = 2**24
"""Entries of the matrix in size: the squares of a column add up within 64 bits."""

CLOSE = 2e-3
"""The search ends where the error is within this, relative, of a lower bound for all strategies."""

STEPS = 40


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ordered(Basis):
    """A dense matrix of whole numbers, all rows with the one scale 2^13: `ordered(n)` makes one.

    Any real strategy becomes exact by rounding its matrix: the rounded matrix is the strategy, and what it costs is
    computed from its whole numbers.

    Refused: rows that do not sum to 0, entries beyond 2^24, and matrices that do not tell all values apart.
    """

    matrix: Ints = field(repr=False)
    asked: Asked = "prefixes"
    _inverse: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        u = np.ascontiguousarray(self.matrix, np.int64)
        if not (u.size == 0 or (u.min() >= -LARGEST and u.max() <= LARGEST)):
            raise ValueError("the matrix of a basis must have entries of at most 2^24 in size.")
        if not (u.ndim == 2 and u.shape[1] == u.shape[0] + 1 and not u.sum(axis=1).any()):
            raise ValueError(f"the matrix of a basis must be n - 1 by n with rows that sum to 0, got {u.shape}.")
        object.__setattr__(self, "matrix", u)
        object.__setattr__(self, "_inverse", np.linalg.pinv(u.astype(np.float64)) if u.size else np.zeros((1, 0)))
        if not np.linalg.matrix_rank(self._inverse) == u.shape[0]:
            raise ValueError("the matrix of a basis must have rank n - 1.")

    def __eq__(self, other: object) -> bool:
        """The same whole numbers, made for the same questions."""
        return isinstance(other, Ordered) and self._known == other._known

    def __hash__(self) -> int:
        return hash(self._known)

    @property
    def _known(self) -> tuple[str, tuple[int, ...], bytes]:
        return self.asked, self.matrix.shape, self.matrix.tobytes()

    @property
    def size(self) -> int:
        """The number of values."""
        return int(self.matrix.shape[1])

    @property
    def squares(self) -> tuple[int, ...]:
        """4^13 for every row."""
        return (4**BITS,) * (self.size - 1)

    @property
    def share(self) -> Fraction:
        """The largest squared norm of a column of the matrix, over 4^13."""
        return Fraction(int((self.matrix * self.matrix).sum(axis=0).max(initial=0)), 4**BITS)

    @property
    def errors(self) -> tuple[float, float]:
        """Of cumulative sums or of ranges, on average over all of them."""
        n, asked = self.size, _gram(self.size, self.asked)
        questions = n if self.asked == "prefixes" else n * (n + 1) / 2
        scaled = self._inverse * 2.0**BITS
        return float(np.sum(scaled * (asked @ scaled))) / questions, float(asked.sum()) / n**2 / questions

    @property
    def reach(self) -> int:
        """The largest entry in size."""
        return int(np.abs(self.matrix).max(initial=0))

    def encode(self, totals: NDArray[Any]) -> NDArray[Any]:
        """U x."""
        matrix = self.matrix.astype(totals.dtype) if totals.dtype != np.int64 else self.matrix
        return np.asarray((matrix @ totals.reshape(self.size, -1)).reshape(-1, *totals.shape[1:]))

    def decode(self, coefficients: Floats) -> Floats:
        """U^+ c."""
        return np.asarray(np.tensordot(self._inverse, coefficients, axes=1))

    def weights(self, question: Floats) -> Floats:
        """(U^+)^T q."""
        return np.asarray(np.tensordot(self._inverse.T, question, axes=1))

    def to_dict(self) -> dict[str, Any]:
        """The matrix and what it was made for, as plain values."""
        packed = base64.b64encode(zlib.compress(self.matrix.astype("<i4").tobytes())).decode()
        return {"kind": "ordered", "values": self.size, "asked": self.asked, "matrix": packed}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The basis that to_dict wrote."""
        n = whole("values", values["values"])
        if not n <= MOST:
            raise ValueError(f"a column with an order must have at most {MOST:,} values, got {n:,}.")
        size = 4 * n * (n - 1)
        found = zlib.decompressobj().decompress(base64.b64decode(values["matrix"]), size + 1)
        if len(found) != size:
            raise ValueError(f"the matrix of a basis must be {n - 1} by {n} whole numbers of 32 bits.")
        return cls(np.frombuffer(found, "<i4").reshape(-1, n).astype(np.int64), values["asked"])


@lru_cache(maxsize=16)
def ordered(values: int, asked: Asked = "prefixes") -> Ordered:
    """The basis with nearly the least mean squared error of all cumulative sums, or of all ranges.

    Least tr(V G^-1) over Gram matrices G with diagonal at most 1 is where G's diagonal is 1, G = D^-1/2 (D^1/2 V
    D^1/2)^1/2 D^-1/2 with D diagonal (Xiao et al. 2023 for the frame; the fixed point is that of Denisov et al. 2022).
    Every D gives a lower bound on the error of all strategies, which tells the search when to end.

    Examples:
        >>> basis = ordered(20)
        >>> spread, mean = basis.errors
        >>> round(float((basis.share * spread) ** 0.5 + mean**0.5), 2)  # RMSE of cumulative sums at psi = 1
        1.83
    """
    n = whole("values", values)
    if not n <= MOST:
        raise ValueError(f"a column with an order must have at most {MOST:,} values, got {n:,}. Take coarser edges.")
    if asked not in ("prefixes", "ranges"):
        raise ValueError(f'asked must be "prefixes" or "ranges", got asked={asked!r}.')
    if n == 1:
        return Ordered(np.zeros((0, 1), np.int64), asked)
    gram = _optimum(n, asked)[0]
    spectrum, vectors = np.linalg.eigh(gram)
    root = np.sqrt(np.maximum(spectrum[1:], 0.0))[:, None] * vectors[:, 1:].T
    return Ordered(_rounded(root * 2.0**BITS), asked)


def _optimum(n: int, asked: Asked) -> tuple[Floats, Floats]:
    """The best Gram matrix on vectors that sum to 0, its diagonal at most 1; and D, from that of a coarser column."""
    weights = np.ones(n)
    if n > 24:
        coarse = _optimum(n // 4, asked)[1]
        weights = np.interp(np.linspace(0.0, 1.0, n), np.linspace(0.0, 1.0, coarse.size), coarse)
    asks = _gram(n, asked)
    asks = asks - asks.mean(axis=0)
    asks -= asks.mean(axis=1, keepdims=True)
    for _ in range(STEPS):
        half = np.sqrt(weights)
        spectrum, vectors = np.linalg.eigh(half[:, None] * asks * half)
        roots = np.sqrt(np.maximum(spectrum, 0.0))
        gram = ((vectors * roots) @ vectors.T) / np.outer(half, half)
        diagonal = np.diagonal(gram)
        bound = roots.sum() ** 2 / weights.sum()
        reached = roots.sum() * diagonal.max()  # tr(V G^-1) of G over its largest entry: tr V G^+ is the sum of roots
        if reached <= (1.0 + 2.0 * CLOSE) * bound:
            break
        weights = weights * diagonal**2
    return gram / diagonal.max(), weights


def _gram(n: int, asked: Asked) -> Floats:
    """W^T W of all cumulative sums, or of all ranges."""
    place = np.arange(n)
    later = np.maximum.outer(place, place)
    if asked == "prefixes":
        return np.asarray(n - later, np.float64)
    return np.asarray((np.minimum.outer(place, place) + 1) * (n - later), np.float64)


def _rounded(real: Floats) -> Ints:
    """Rounded, with rows that sum to 0: the excess is taken from the entries that rounding moved most that way."""
    near = np.rint(real)
    for row, target in zip(near, real, strict=True):
        excess = int(row.sum())
        if excess:
            worst = np.argsort(np.sign(excess) * (target - row), kind="stable")[: abs(excess)]
            row[worst] -= np.sign(excess)
    return near.astype(np.int64)
