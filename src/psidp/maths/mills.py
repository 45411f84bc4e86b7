"""The Mills ratio R(x) = Phi(-x)/phi(x) and its differences, to a few units in the last place.

Only + - * / and sqrt are used, so that every error can be bounded and nothing depends on a library's erfc.
The letters are those of Phi(psi/2 - m) - e^(psi m) Phi(-psi/2 - m) = phi(a) (R(a) - R(b)): m = epsilon/psi, h = psi/2,
a = m - h, b = m + h.
"""

import numpy as np

from psidp.maths.elementwise import Array, Entries, Mask, select

__all__ = ["mills", "mills_difference"]

# tests/reference/make_mills.py makes both tables and tests/maths/test_mills.py makes them again.
# fmt: off
MILLS = (
    7.1459286679478146e-09, -9.562416579419204e-09, -8.334439782839275e-08, 4.442603253685984e-08,
    4.768683648117597e-07, 1.260252039585072e-07, -1.7382006088739798e-06, -2.1296259504912865e-06,
    4.036582134256308e-06, 1.2556232760133224e-05, -1.9942337782720876e-06, -5.396521258817954e-05,
    -4.213393088386537e-05, 0.00020752618364085603, 0.00033298457068503903, -0.0008557379534967888,
    -0.001929121724288638, 0.004690756545490368, 0.009572082732820805, -0.03714163870811446,
    -0.015125015098798662, 0.3226775062521282, -0.9737247696625603, 1.7731541493774758, -2.293602539846009,
    2.2118286241612264,
)
RATIO = (
    1.605374653283998e-10, 5.388853713981537e-10, 1.0174721260905713e-09, 4.965839222786877e-09,
    1.5046361341087172e-08, 5.4668569213388315e-08, 3.6140236929323334e-07, 4.288714347547059e-07,
    6.959430216662349e-06, 3.178038028649189e-05, -2.755121109360667e-05, 0.002578702418549879,
    7.673384315637471e-05, 0.9973325084674064,
)
# fmt: on
TERMS = 23
"""Order at which the midpoint series starts its backward recurrence: the first term left out is below 1e-17."""


def mills(x: Entries) -> Array:
    """R(x) for x >= -0.625, relative error below 7e-16 (tests/maths/test_mills.py)."""
    x = np.minimum(x, 1e300)
    return _horner(MILLS, (x - 2.75) / (x + 4.0)) / (x + 4.0)


def mills_difference(a: Array, m: Array, psi: Array) -> Array:
    """R(a) - R(a + psi) > 0 for a >= -0.625, without cancellation.

    Direct where the two ratios are far apart, by the midpoint series where they are close, by the asymptotic
    series where m > 1000; relative error below 2e-15 in the first two, below 1e-10 in the last, where log delta < -4e5.
    """
    near = (psi <= 1.25) | (m >= 2.5 * psi)
    far = near & (m > 1e3)  # so that a is large too
    if far.any():
        return select(far, _asymptotic(a, a + psi, psi), _finite(a, np.minimum(m, 1e3), psi, near))
    return _finite(a, m, psi, near)


def _finite(a: Array, m: Array, psi: Array, near: Mask) -> Array:
    """The difference for m <= 1000, computing only the methods that some entry needs."""
    if near.all():
        return _midpoint(m, psi)
    direct = mills(np.maximum(a, -0.625)) - mills(a + psi)
    return select(near, _midpoint(m, psi), direct) if near.any() else direct


def _asymptotic(a: Array, b: Array, psi: Array) -> Array:
    """psi/(ab) (1 - 1/a^2 - 1/(ab) - 1/b^2), from R(x) = 1/x - 1/x^3 + ..."""
    u, v = 1.0 / a, 1.0 / b
    return psi * u * v * (1.0 - (u * u + u * v + v * v))


def _midpoint(m: Array, psi: Array) -> Array:
    """R(m - h) - R(m + h) = psi sum_j T_{2j+1}(m) h^{2j}, T_k = M_k(m)/k! and M_k = int_0^inf t^k e^{-mt - t^2/2} dt.

    T_{k-1} = m T_k + (k + 1) T_{k+1} runs down from k = 23, divides nothing and adds only positive terms;
    m T_0 + T_1 = 1 fixes the scale.
    """
    w = np.sqrt(m * m + (4.0 * TERMS + 2.0))
    ratio = _horner(RATIO, 2.0 * m / w - 1.0) * (2.0 / (m + w))  # T_23/T_22
    x, y, z = (v.item() if v.size == 1 else v for v in (m, ratio, 0.25 * psi * psi))
    upper, lower = y, 1.0 + 0.0 * y  # T_k, T_{k-1} for odd k
    total = upper + 0.0
    for k in range(TERMS - 1, 1, -2):
        upper = upper * (k + 1)
        upper += x * lower  # T_{k-1}, k - 1 odd
        lower = lower * k
        lower += x * upper  # T_{k-2}, even
        total *= z
        total += upper
    return psi * total / (x * lower + upper)


def _horner(coefficients: tuple[float, ...], x: Entries) -> Array:
    """The polynomial, highest coefficient first; a lone entry runs as a plain float, thirty times faster."""
    t = x.item() if x.size == 1 else x
    y = coefficients[0] * t
    for c in coefficients[1:-1]:
        y += c
        y *= t
    y += coefficients[-1]
    return np.float64(y) if x.size == 1 else y  # type: ignore[return-value]
