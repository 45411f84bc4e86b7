"""Basis: how the values of one column of a table differ from their mean, in whole numbers.

Its n - 1 rows u_k sum to 0 and span all vectors that sum to 0. Together with the mean they determine n totals; products
of bases determine tables of several columns (docs/design/cubes.md).
"""

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Basis"]

Floats = NDArray[np.float64]


class Basis(ABC):
    """A matrix U of whole numbers, n - 1 by n, with rows that sum to 0, and a scale m_k for each row.

    The release is U x with row k divided by m_k, so that all rows get noise of the same sigma. Arrays are transformed
    along their first axis.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def size(self) -> int:
        """n, the number of values."""

    @property
    @abstractmethod
    def squares(self) -> tuple[int, ...]:
        """m_k^2 of each row, whole numbers."""

    @property
    @abstractmethod
    def share(self) -> Fraction:
        """The largest sum_k (u_kj/m_k)^2 over the values j: psi^2 of one row of a table at sigma = 1, exactly."""

    @property
    @abstractmethod
    def errors(self) -> tuple[float, float]:
        """Mean squared error of the column's questions, in units of sigma^2, in two parts: from noise on the rows of U,
        and from noise on the total."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """The largest |u_kj|: a coefficient is at most this times the sum of all |x_j|."""

    @abstractmethod
    def encode(self, totals: NDArray[Any]) -> NDArray[Any]:
        """U x: exact for whole numbers, of 64 bits or Python's own; also for doubles."""

    @abstractmethod
    def decode(self, coefficients: Floats) -> Floats:
        """The vector with mean 0 whose coefficients these are: U^+ c."""

    @abstractmethod
    def weights(self, question: Floats) -> Floats:
        """Weights of the coefficients in the answer to a question q, a number for each value: (U^+)^T q."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The basis as plain values, which are stored with what it released and never computed again."""
