"""The profile in ball arithmetic, as the textbook has it: the judge of every digit. No cleverness, only precision."""

import numpy as np
from flint import arb, ctx

BITS = 600  # of which exp(-a^2/2) loses up to 93 and the difference of the tails up to 75 in the tested range


def upper_tail(x: arb) -> arb:
    """1 - Phi(x); above x = 100, where arb's erfc knows only that it is small, by the asymptotic series."""
    if not x > 100:
        return (x / arb(2).sqrt()).erfc() / 2
    term, total = 1 / x, arb(0)
    for k in range(1, 400):
        total += term
        term *= -(2 * k - 1) / (x * x)
        if abs(term) < arb(2) ** (-ctx.prec):
            break
    total += arb(0, abs(term).upper())  # alternating: the rest is at most the first term left out
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt() * total


def delta(psi: float, epsilon: float) -> arb:
    """Phi(psi/2 - epsilon/psi) - e^epsilon Phi(-psi/2 - epsilon/psi)."""
    ctx.prec = BITS + _extra(psi, epsilon)
    p, e = arb(float(psi)), arb(float(epsilon))
    return upper_tail(e / p - p / 2) - e.exp() * upper_tail(e / p + p / 2)


def slope_in_epsilon(psi: float, epsilon: float) -> arb:
    """-d delta/d epsilon = e^epsilon Phi(-psi/2 - epsilon/psi)."""
    ctx.prec = BITS + _extra(psi, epsilon)
    p, e = arb(float(psi)), arb(float(epsilon))
    return e.exp() * upper_tail(e / p + p / 2)


def slope_in_psi(psi: float, epsilon: float) -> arb:
    """d delta/d psi = phi(epsilon/psi - psi/2)."""
    ctx.prec = BITS
    p, e = arb(float(psi)), arb(float(epsilon))
    a = e / p - p / 2
    return (-a * a / 2).exp() / (2 * arb.pi()).sqrt()


def _extra(psi: float, epsilon: float) -> int:
    """Bits that the difference of two nearly equal tails loses: those of psi and of m psi."""
    return int(2 * max(0.0, -np.log2(psi))) + int(2 * np.log2(2.0 + epsilon / psi))


def points(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """psi in [1e-8, 1e3] and epsilon in {0} and [1e-300, 1e6]: at random, about a = 0, at both ends, in the corners."""
    rng = np.random.default_rng(seed)
    psi = 10 ** rng.uniform(-8, 3, count)
    near = psi * psi / 2 * (1 + rng.choice([-1, 1], count) * 10 ** rng.uniform(-16, 0, count))
    epsilon = np.select(
        [rng.random(count) < share for share in (0.2, 0.25, 0.3, 0.35)],
        [10 ** rng.uniform(-300, 6, count), near, np.zeros(count), psi * 10 ** rng.uniform(-3, 2, count)],
        psi * np.abs(psi / 2 + rng.uniform(-10, 40, count)),
    )
    corners = np.array([(p, e) for p in (1e-8, 1e-3, 1.0, 1.25, 30.0, 1e3) for e in (0, 1e-300, 1e-8, 1, 700, 1e6)])
    psi[: len(corners)], epsilon[: len(corners)] = corners.T
    return psi, np.clip(epsilon, 0, 1e6)
