"""Haar: the basis of a column whose values have no order. Half against half, quarter against quarter."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from psidp.strategies.basis import Basis
from psidp.symbols import whole

__all__ = ["Haar"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True)
class Haar(Basis):
    """Balanced Haar: each row has b/g on a neighbouring values and -a/g on the next b, g = gcd(a, b).

    Rows are orthogonal, so that independent noise on them is noise of equal variance on all values, whatever their
    order: no basis of whole numbers does better.

    Examples:
        >>> Haar(3).encode(np.array([5, 2, 2]))
        array([6, 0])
        >>> Haar(3).decode(np.array([6.0, 0.0])) + 3  # 9/3, the mean
        array([5., 2., 2.])
        >>> Haar(3).squares, Haar(3).share
        ((6, 2), Fraction(2, 3))
    """

    values: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", whole("values", self.values))

    @property
    def size(self) -> int:
        """The number of values."""
        return self.values

    @property
    def squares(self) -> tuple[int, ...]:
        """a b (a + b)/g^2 of each row: its own squared norm."""
        return _tree(self.values).squares

    @property
    def share(self) -> Fraction:
        """(n - 1)/n."""
        return Fraction(self.values - 1, self.values)

    @property
    def errors(self) -> tuple[float, float]:
        """Of a cell: (n - 1)/n and 1/n^2."""
        return (self.values - 1) / self.values, 1.0 / self.values**2

    @property
    def reach(self) -> int:
        """The largest entry in size: b/g, as the second half is never the shorter one."""
        return int(_tree(self.values).first.max(initial=0))

    def encode(self, totals: NDArray[Any]) -> NDArray[Any]:
        """U x, from cumulative sums."""
        tree = _tree(self.values)
        below = np.concatenate([np.zeros_like(totals[:1]), np.cumsum(totals, axis=0)])
        middle = below[tree.middle]
        left, right = middle - below[tree.start], below[tree.end] - middle
        return np.asarray(left * _upright(tree.first, totals) - right * _upright(tree.second, totals))

    def decode(self, coefficients: Floats) -> Floats:
        """U^+ c, from the root of the tree down."""
        tree = _tree(self.values)
        scaled = coefficients / _upright(np.array(tree.squares, np.float64), coefficients)
        nodes = np.zeros((2 * self.values - 1, *coefficients.shape[1:]))
        for rows, left, right in tree.levels:  # a node holds what its ancestors add to all leaves below
            nodes[left] = nodes[rows] + scaled[rows] * _upright(tree.first[rows], coefficients)
            nodes[right] = nodes[rows] - scaled[rows] * _upright(tree.second[rows], coefficients)
        return np.asarray(nodes[tree.leaves])

    def weights(self, question: Floats) -> Floats:
        """(U^+)^T q."""
        return np.asarray(self.encode(question) / _upright(np.array(self.squares, np.float64), question))

    def to_dict(self) -> dict[str, Any]:
        """The basis as plain values."""
        return {"kind": "haar", "values": self.values}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The basis that to_dict wrote."""
        return cls(values["values"])


class Tree(NamedTuple):
    """Inner nodes 0 to n - 2 of the balanced tree, parents before children; nodes from n - 1 on are its leaves."""

    start: Ints
    middle: Ints
    end: Ints
    first: Ints
    """b/g, on [start, middle)."""
    second: Ints
    """a/g, subtracted on [middle, end)."""
    squares: tuple[int, ...]
    """a b (a + b)/g^2."""
    levels: tuple[tuple[Ints, Ints, Ints], ...]
    """Nodes of one depth with their left and right children."""
    leaves: Ints
    """The leaf of each value."""


@lru_cache(maxsize=64)
def _tree(values: int) -> Tree:
    """Halve [0, n) again and again, the shorter half first."""
    spans: list[tuple[int, int, int]] = []
    children: list[list[int]] = []
    leaves, stages, level = np.zeros(values, np.int64), [], [(0, values, -1)]
    while level:
        inner, below = [], []
        for low, high, parent in level:
            node = len(spans) if high - low > 1 else values - 1 + low
            if parent >= 0:
                children[parent].append(node)
            if high - low == 1:
                leaves[low] = node
                continue
            half = low + (high - low) // 2
            spans.append((low, half, high))
            children.append([])
            inner.append(node)
            below += [(low, half, node), (half, high, node)]
        stages += [np.array(inner, np.int64)] if inner else []
        level = below
    ends: Ints = np.array(spans, np.int64).reshape(-1, 3)
    a, b = ends[:, 1] - ends[:, 0], ends[:, 2] - ends[:, 1]
    common = np.gcd(a, b)
    squares = tuple(int(x) * int(y) * int(x + y) // int(g) ** 2 for x, y, g in zip(a, b, common, strict=True))
    under: Ints = np.array(children, np.int64).reshape(-1, 2)
    steps = tuple((rows, under[rows, 0], under[rows, 1]) for rows in stages)
    return Tree(ends[:, 0], ends[:, 1], ends[:, 2], b // common, a // common, squares, steps, leaves)


def _upright(numbers: NDArray[Any], like: NDArray[Any]) -> NDArray[Any]:
    """A number for each row, as a column that multiplies arrays of any dimension."""
    shaped = numbers.reshape(-1, *([1] * (like.ndim - 1)))
    return shaped.astype(object) if like.dtype == object else shaped
