"""Makes the polynomial coefficients of psidp.maths.mills; run it to print them.

MILLS: (x + 4) R(x), R the Mills ratio, as a polynomial in t = (x - 2.75)/(x + 4), x in [-0.625, inf).
RATIO: (m + w)/46 M_23(m)/M_22(m), w = sqrt(m^2 + 94), as a polynomial in t = 2m/w - 1, m in [0, inf), where
       M_k(m) is the k-th moment of exp(-m t - t^2/2) on t > 0.
Both are Chebyshev interpolants at 60 digits, turned into monomials and rounded last.
"""

import mpmath as mp

mp.mp.dps = 60


def mills(x):
    """R(x) = Phi(-x)/phi(x)."""
    return mp.sqrt(mp.pi / 2) * mp.exp(x * x / 2) * mp.erfc(x / mp.sqrt(2))


def moment_ratio(m, k):
    """M_{k+1}(m)/M_k(m), through the parabolic cylinder function M_k = k! e^{m^2/4} U(k + 1/2, m)."""
    return (k + 1) * mp.pcfu(k + mp.mpf(3) / 2, m) / mp.pcfu(k + mp.mpf(1) / 2, m)


def monomials(function, degree):
    """Coefficients, lowest first, of the Chebyshev interpolant of `function` on [-1, 1]."""
    n = degree + 1
    nodes = [mp.cos(mp.pi * (2 * j + 1) / (2 * n)) for j in range(n)]
    values = [function(t) for t in nodes]
    chebyshev = [
        (2 - (k == 0)) * mp.fsum(v * mp.cos(k * mp.pi * (2 * j + 1) / (2 * n)) for j, v in enumerate(values)) / n
        for k in range(n)
    ]
    total, previous, current = [mp.mpf(0)] * n, [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]
    for k, c in enumerate(chebyshev):
        row = [mp.mpf(1)] if k == 0 else current
        for j, entry in enumerate(row):
            total[j] += c * entry
        if k >= 1:
            doubled = [mp.mpf(0)] + [2 * entry for entry in current]
            padded = previous + [mp.mpf(0)] * (len(doubled) - len(previous))
            previous, current = current, [d - p for d, p in zip(doubled, padded, strict=True)]
    return total


def scaled_mills(t):
    """(x + 4) R(x) at x = (2.75 + 4 t)/(1 - t)."""
    x = (2.75 + 4 * t) / (1 - t)
    return (x + 4) * mills(x)


def scaled_ratio(t):
    """(m + w)/46 M_23/M_22 at 2m/w - 1 = t, so m = sqrt(94) s/sqrt(1 - s^2), s = (1 + t)/2."""
    s = (1 + t) / 2
    m = mp.sqrt(94) * s / mp.sqrt(1 - s * s)
    return (m + mp.sqrt(m * m + 94)) / 46 * moment_ratio(m, 22)


def coefficients():
    """The two tables as floats, highest degree first."""
    return {
        "MILLS": [float(c) for c in reversed(monomials(scaled_mills, 25))],
        "RATIO": [float(c) for c in reversed(monomials(scaled_ratio, 13))],
    }


if __name__ == "__main__":
    for name, table in coefficients().items():
        print(f"{name} = (")
        print("".join(f"    {c!r},\n" for c in table) + ")")
