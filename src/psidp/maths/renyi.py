r"""Renyi divergence: rho = alpha psi^2/2, the two conversions to (epsilon, delta), and Gaussians of unequal variance.

The conversions are bounds, not values: the profile of psi is exact and is what psidp uses; these exist because people
hold RDP numbers, and because the paper compares them.
"""

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import partial
from math import inf, sqrt
from typing import Literal, cast, overload

import numpy as np

from psidp.maths.elementwise import Array, Reals, elementwise, select
from psidp.maths.normal import TINY, UNIT
from psidp.symbols import exact, float_above, symbol, whole

__all__ = [
    "Conversion",
    "alpha_optimal",
    "epsilon_from_rdp",
    "epsilon_via_rdp",
    "psi_from_rho",
    "psi_from_zcdp",
    "renyi_divergence",
    "rho_from_psi",
    "zcdp_from_psi",
]

Conversion = Literal["improved", "standard"]
DIGITS = Context(prec=80, Emin=-999_999, Emax=999_999)
CLAIM = ("rho", "alpha")
"""What is known of any mechanism: rounded so that less is known of it."""
GRANTED = Decimal("1e-40")
"""Relative error granted to a sum of positive terms in 80 digits, some of which lose up to 30 of them."""


@overload
def rho_from_psi(psi: float, alpha: float) -> float: ...
@overload
def rho_from_psi(psi: Reals, alpha: Reals) -> Array: ...
@elementwise
def rho_from_psi(psi: Array, alpha: Array) -> Array:
    r"""Renyi divergence of order alpha of a psi-mechanism, never rounded down.

    .. math:: \rho = \alpha\psi^2/2

    Examples:
        >>> rho_from_psi(1.0, 2.0)
        1.0000000000000004

    References:
        The paper's RDP lemma; Mironov 2017, Proposition 7.
    """
    return select(psi > 0.0, 0.5 * alpha * psi * psi * (1.0 + 4.0 * UNIT) + 2.0 * TINY, 0.0)


@overload
def psi_from_rho(rho: float, alpha: float) -> float: ...
@overload
def psi_from_rho(rho: Reals, alpha: Reals) -> Array: ...
@elementwise
def psi_from_rho(rho: Array, alpha: Array) -> Array:
    r"""Largest psi of a Gaussian mechanism that is (alpha, rho)-RDP, never rounded up.

    .. math:: \psi = \sqrt{2\rho/\alpha}

    Of a Gaussian mechanism only: what (alpha, rho)-RDP of another mechanism is worth, Guarantee.from_rdp tells.

    Examples:
        >>> psi_from_rho(1.0, 2.0)
        0.9999999999999991
    """
    return select(rho < np.inf, sqrt(2.0) * np.sqrt(rho) / np.sqrt(alpha) * (1.0 - 8.0 * UNIT), np.inf)


@overload
def zcdp_from_psi(psi: float) -> float: ...
@overload
def zcdp_from_psi(psi: Reals) -> Array: ...
def zcdp_from_psi(psi: Reals) -> float | Array:
    r"""Zero-concentrated DP parameter of a psi-mechanism, never rounded down: psi^2/2.

    Examples:
        >>> round(zcdp_from_psi(2.0), 12)
        2.0

    References:
        Bun and Steinke 2016, Proposition 1.6.
    """
    return rho_from_psi(psi, 1.0)


@overload
def psi_from_zcdp(zcdp: float) -> float: ...
@overload
def psi_from_zcdp(zcdp: Reals) -> Array: ...
def psi_from_zcdp(zcdp: Reals) -> float | Array:
    """Largest psi of a Gaussian mechanism that is zcdp-zCDP, never rounded up: sqrt(2 zcdp).

    Of a Gaussian mechanism only: what zCDP of another mechanism is worth, Guarantee.from_zcdp tells.

    Examples:
        >>> round(psi_from_zcdp(0.5), 12)
        1.0
    """
    return psi_from_rho(symbol("zcdp").array(zcdp)[()], 1.0)


@overload
def epsilon_from_rdp(rho: float, alpha: float, delta: float, conversion: Conversion = "improved") -> float: ...
@overload
def epsilon_from_rdp(rho: Reals, alpha: Reals, delta: Reals, conversion: Conversion = "improved") -> Array: ...
def epsilon_from_rdp(rho: Reals, alpha: Reals, delta: Reals, conversion: Conversion = "improved") -> float | Array:
    r"""An epsilon at delta for any mechanism that is (alpha, rho)-RDP; a bound, never below 0 and never rounded down.

    .. math:: \text{standard: } \rho + \frac{\log(1/\delta)}{\alpha - 1} \qquad
              \text{improved: } \rho + \log\frac{\alpha - 1}{\alpha} - \frac{\log\delta + \log\alpha}{\alpha - 1}

    Args:
        rho: Renyi divergence, [0, inf].
        alpha: order, [1, inf]; 1 gives inf.
        delta: probability slack, [0, 1].
        conversion: "improved" or "standard".

    Examples:
        >>> round(epsilon_from_rdp(1.0, 2.0, 1e-5), 6)
        11.126631
        >>> round(epsilon_from_rdp(1.0, 2.0, 1e-5, conversion="standard"), 6)
        12.512925

    References:
        Standard: Mironov 2017, Proposition 3. Improved: Balle et al. 2020, Theorem 21; Canonne et al. 2020, Prop. 12.
    """
    if conversion == "standard":
        return cast("Array", _standard(rho, alpha, delta))
    if conversion == "improved":
        return cast("Array", _improved(rho, alpha, delta))
    raise ValueError(f'conversion must be "improved" or "standard", got conversion={conversion!r}.')


@partial(elementwise, opposite=CLAIM)
def _standard(rho: Array, alpha: Array, delta: Array) -> Array:
    extra = -np.log(delta) / (alpha - 1.0)
    return _at_order(rho, alpha, delta, rho + extra, rho + extra)


@partial(elementwise, opposite=CLAIM)
def _improved(rho: Array, alpha: Array, delta: Array) -> Array:
    extra = -(np.log(delta) + np.log(alpha)) / (alpha - 1.0)
    shrink = -np.log1p(1.0 / (alpha - 1.0))
    size = rho - shrink + (np.log(alpha) - np.log(delta)) / (alpha - 1.0)
    return _at_order(rho, alpha, delta, rho + extra + shrink, size)


def _at_order(rho: Array, alpha: Array, delta: Array, epsilon: Array, size: Array) -> Array:
    """The bound at an inner order, rounded up by what its terms can have lost; and its limits at alpha = 1 and inf."""
    inner = np.maximum(epsilon + 8.0 * UNIT * size, 0.0)
    result = select((alpha > 1.0) & (delta > 0.0), inner, np.inf)
    return select(alpha == np.inf, rho, result)


@overload
def alpha_optimal(psi: float, delta: float, conversion: Conversion = "improved") -> float: ...
@overload
def alpha_optimal(psi: Reals, delta: Reals, conversion: Conversion = "improved") -> Array: ...
def alpha_optimal(psi: Reals, delta: Reals, conversion: Conversion = "improved") -> float | Array:
    r"""The order alpha > 1 at which the conversion of a psi-mechanism gives the smallest epsilon.

    .. math:: \text{standard: } 1 + \sqrt{2\log(1/\delta)}/\psi \qquad
              \text{improved: the root of } (\alpha - 1)^2\psi^2/2 + \log\alpha = \log(1/\delta)

    Examples:
        >>> round(alpha_optimal(1.0, 1e-5, conversion="standard"), 4)
        5.7985
        >>> round(alpha_optimal(1.0, 1e-5), 4)
        5.4318
    """
    if conversion == "standard":
        return cast("Array", _alpha_standard(psi, delta))
    if conversion == "improved":
        return cast("Array", _alpha_improved(psi, delta))
    raise ValueError(f'conversion must be "improved" or "standard", got conversion={conversion!r}.')


@elementwise
def _alpha_standard(psi: Array, delta: Array) -> Array:
    return select(delta < 1.0, 1.0 + np.sqrt(-2.0 * np.log(delta)) / psi, 1.0)


@elementwise
def _alpha_improved(psi: Array, delta: Array) -> Array:
    """Newton from above in s = log(alpha - 1), in which the equation is convex and increasing."""
    goal = -np.log(delta)
    s = np.minimum(0.5 * np.log(2.0 * goal) - np.log(psi), goal + np.log(-np.expm1(-goal)))
    for _ in range(40):
        t = np.exp(np.minimum(s, 700.0))  # as large as alpha can be for a float
        value = 0.5 * (psi * t) ** 2 + np.log1p(t) - goal
        s = s - value / ((psi * t) ** 2 + t / (1.0 + t))
    return select(delta < 1.0, select(delta > 0.0, 1.0 + t, np.inf), 1.0)


@overload
def epsilon_via_rdp(psi: float, delta: float, conversion: Conversion = "improved") -> float: ...
@overload
def epsilon_via_rdp(psi: Reals, delta: Reals, conversion: Conversion = "improved") -> Array: ...
def epsilon_via_rdp(psi: Reals, delta: Reals, conversion: Conversion = "improved") -> float | Array:
    r"""The epsilon that RDP gives a psi-mechanism at its optimal order; a bound, never below the exact epsilon.

    Standard, in closed form: psi^2/2 + psi sqrt(2 log(1/delta)).

    Examples:
        >>> round(epsilon_via_rdp(1.0, 1e-5, conversion="standard"), 6)
        5.298526
        >>> round(epsilon_via_rdp(1.0, 1e-5), 6)
        4.728387
    """
    alpha = alpha_optimal(psi, delta, conversion)
    p, d = symbol("psi").array(psi), symbol("delta").array(delta)
    epsilon = np.asarray(epsilon_from_rdp(rho_from_psi(p, alpha), alpha, d, conversion))
    epsilon = np.where((p == 0.0) | (d == 1.0), 0.0, epsilon)
    return float(epsilon) if epsilon.ndim == 0 else epsilon


def renyi_divergence(alpha: float, distance: float, sigma_i: float, sigma_j: float, dimension: int = 1) -> float:
    r"""Renyi divergence of order alpha from N(mu_i, sigma_i^2 I) to N(mu_j, sigma_j^2 I), never rounded down.

    .. math:: d\log\frac{\sigma_j}{\sigma_i} + \frac{d}{2(\alpha - 1)}\log\frac{\sigma_j^2}{s}
              + \frac{\alpha\lVert\mu_i - \mu_j\rVert^2}{2 s}, \quad s = \alpha\sigma_j^2 + (1 - \alpha)\sigma_i^2

    +inf where s <= 0; alpha = 1 is the Kullback-Leibler divergence, alpha = inf the limit.

    Guarantees:
        At least the true value, and at most one float above it, against ball arithmetic in tests/maths/test_renyi.py.
        With w = 1 - sigma_i^2/sigma_j^2 and L(x) = x - log(1 + x) the first two terms are
        d (L(-w) + w^2 (alpha - 1) L(x)/x^2)/2, x = (alpha - 1) w: no term is negative, and nothing cancels near 1.

    Args:
        alpha: order, [1, inf].
        distance: Euclidean distance of the means, [0, inf).
        sigma_i: standard deviation of the first.
        sigma_j: standard deviation of the second.
        dimension: number of coordinates, 1 or more.

    Examples:
        >>> renyi_divergence(2.0, distance=1.0, sigma_i=1.0, sigma_j=1.0)
        1.0000000000000002
        >>> renyi_divergence(3.0, distance=1.0, sigma_i=2.0, sigma_j=1.0)
        inf

    References:
        Gil, Alajaji and Linder 2013, Table 2; the paper's Renyi corollary with variances squared.
    """
    order, length = symbol("alpha").number(alpha), exact(distance, symbol("sensitivity").number(distance))
    si, sj = (exact(sigma, symbol("sigma").number(sigma)) for sigma in (sigma_i, sigma_j))
    d = whole("dimension", dimension)
    w, square = 1 - (si / sj) ** 2, (length / sj) ** 2
    with localcontext(DIGITS):
        if order == inf:
            return _largest_log_ratio(d, w, square)
        excess = exact(alpha, order) - 1
        s = 1 + excess * w  # in units of sigma_j^2, like w and square; exact
        if s <= 0:
            return inf
        spread = _log_gap(-w) + (_decimal(w) ** 2 * _decimal(excess) * _log_gap_over_square(excess * w))
        return _float_above(d * spread / 2 + _decimal(square * (1 + excess) / (2 * s)))


def _log_gap(x: Fraction) -> Decimal:
    """x - log(1 + x) for x > -1, to 40 digits."""
    return _decimal(x) ** 2 * _log_gap_over_square(x)


def _log_gap_over_square(x: Fraction) -> Decimal:
    """(x - log(1 + x))/x^2; 1/2 at 0, and by its series where the difference would lose half its digits."""
    if abs(x) > Fraction(1, 10**18):
        return (_decimal(x) - _decimal(1 + x).ln()) / _decimal(x) ** 2
    y = _decimal(x)
    return Decimal("0.5") - y / 3 + y * y / 4


def _largest_log_ratio(d: int, w: Fraction, square: Fraction) -> float:
    """The divergence of order infinity: the largest log density ratio, -d log(1 - w)/2 + square/(2 w)."""
    if w > 0:
        return _float_above(d * (_decimal(w) + _log_gap(-w)) / 2 + _decimal(square / (2 * w)))
    return 0.0 if w == 0 and square == 0 else inf


def _decimal(x: Fraction) -> Decimal:
    """x to 80 digits."""
    return Decimal(x.numerator) / Decimal(x.denominator)


def _float_above(x: Decimal) -> float:
    """The smallest float that is certainly not below x >= 0, which is known but for a share GRANTED."""
    return float_above(x * (1 + GRANTED))
