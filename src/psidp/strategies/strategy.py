"""Strategy: a matrix of whole numbers. Totals are encoded by it exactly, noise is added, and what comes out is decoded.

Of totals x (whole numbers) the release is y = C x + sigma N with N independent true normals, each entry rounded once.
If no unit can move C x by more than Delta, all of y together has psi = Delta/sigma (docs/design/strategies.md).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psidp.maths.rounding import integer_root
from psidp.maths.sensitivity import Adjacency, exact_norm, vector_of
from psidp.strategies.participation import Participation
from psidp.symbols import symbol

__all__ = ["Strategy"]

Floats = NDArray[np.float64]


class Strategy(ABC):
    """A matrix C of whole numbers with its exact sensitivity, its decoder and the errors of every linear question.

    A kind of strategy says how it encodes, decodes and weighs, and what its squared sensitivity is; the rest follows.
    Columns are what a unit can be in: periods of a stream, steps of a training, cells of a table.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows (numbers released) and columns (totals encoded)."""

    @abstractmethod
    def squared(self, participation: Participation) -> int:
        """The largest |C v|^2 of a unit that adds at most 1 to each column it may be in, as a whole number.

        Where a unit adds vectors of norm at most 1 to its columns (groups, parameters) the same number holds. It is
        exact or an upper bound, never below the truth.
        """

    @abstractmethod
    def encode(self, totals: Sequence[int]) -> list[int]:
        """C x in exact whole numbers of any size."""

    @abstractmethod
    def decode(self, released: ArrayLike) -> Floats:
        """The totals that explain what was released, without bias."""

    @abstractmethod
    def weights(self, questions: ArrayLike) -> Floats:
        """For each question w (a number per column): the numbers u with u C = w, so that u y estimates w x."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The strategy as plain values: its whole numbers, which are stored and never computed again."""

    def sensitivity(
        self, participation: Participation, norm: float = 1.0, adjacency: Adjacency = "add-remove"
    ) -> float:
        """How far one unit can move C x, in L2 norm, if it adds at most `norm` to a column it is in; rounded up.

        norm sqrt(squared) under add-remove and twice that under replace-one.
        """
        return vector_of(exact_norm(norm) * integer_root(self.squared(participation)), adjacency)

    def deviation(self, questions: ArrayLike, sigma: float = 1.0) -> Floats:
        """Standard deviation of the answer to each question, where every number released has noise of this sigma."""
        return np.asarray(symbol("sigma").number(sigma) * np.linalg.norm(self.weights(questions), axis=-1))

    def covariance(self, questions: ArrayLike, sigma: float = 1.0) -> Floats:
        """Covariances of the answers to several questions, one a row."""
        weights = np.atleast_2d(self.weights(questions))
        return symbol("sigma").number(sigma) ** 2 * (weights @ weights.T)

    def rounding(self, questions: ArrayLike, grid: float) -> Floats:
        """How far rounding every number released to a grid can move each answer at most: grid/2 times |u|_1."""
        return np.asarray(0.5 * grid * np.abs(self.weights(questions)).sum(axis=-1))
