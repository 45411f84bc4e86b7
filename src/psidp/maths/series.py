"""Power series, cut off after so many coefficients: products and reciprocals, by fast Fourier transforms.

A lower-triangular Toeplitz matrix is its first column read as a power series, and its inverse is the reciprocal.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["correlation", "product", "reciprocal"]

Series = NDArray[np.float64]


def product(a: Series, b: Series, length: int) -> Series:
    """The first coefficients of a(z) b(z).

    Examples:
        >>> product(np.array([1.0, 2.0]), np.array([1.0, 3.0]), 3).round(12).tolist()
        [1.0, 5.0, 6.0]
    """
    a, b = a[:length], b[:length]
    size = _smooth(min(a.size + b.size - 1, 2 * length))
    both = np.fft.irfft(np.fft.rfft(a, size) * np.fft.rfft(b, size), size)[:length]
    return np.pad(both, (0, length - both.size))


def correlation(a: Series, b: Series) -> Series:
    """sum_t a_{t + j} b_t for j = 0, 1, ...: the transpose of multiplying by b.

    Examples:
        >>> correlation(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0])).round(12).tolist()
        [3.0, 5.0, 3.0]
    """
    return product(a[::-1], b, a.size)[::-1]


def reciprocal(c: Series, length: int) -> Series:
    """The first coefficients of 1/c(z), c_0 not 0, by Newton's iteration b <- b (2 - c b).

    Guarantees:
        For c_0 >= c_1 >= ... >= 0 all zeros of c lie on or outside the unit circle, so that the coefficients do not
        blow up; the error was below 1e-12 c_0^-1 against exact fractions, see tests/maths/test_series.py.

    Examples:
        >>> reciprocal(np.array([1.0, 0.5]), 4).round(12).tolist()
        [1.0, -0.5, 0.25, -0.125]
    """
    b = np.array([1.0 / c[0]])
    while b.size < length:
        size = min(2 * b.size, length)
        error = -product(c, b, size)
        error[0] += 1.0
        known = b.size
        b = np.pad(b, (0, size - known))
        b[known:] = product(b[:known], error, size)[known:]
    return b


def _smooth(least: int) -> int:
    """A length of at least so many that the transform does quickly: 2^k or 3 * 2^k."""
    power = 1 << max(least - 1, 1).bit_length()
    return 3 * power // 4 if 3 * power // 4 >= least else power
