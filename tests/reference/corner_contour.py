"""delta of runs in one direction as a ball: the contour integral, its sums and all their errors in ball arithmetic.

(1/2 pi i) int M(z) e^(-z epsilon)/(z (z+1)) dz over Re z = c by the trapezoid rule, and M(z) = prod E[F^s]^steps by the
trapezoid rule in the noise g. The aliases, the rest of the line and the error in g are bounded by integrals that
python-flint encloses. Floats choose c, the steps and the lengths only. Shares no code with src.
"""

import math
import time

import numpy as np
from flint import acb, acb_mat, arb, ctx

from reference.corners import TooLong, upper_tail

DIGITS = 33.0
"""Each error is at most about e^-DIGITS of delta."""
NODES, WORK = 20_000, 2.5e7
ANGLES = (0.8, 0.5, 0.3, 0.15, 0.07, 0.03, 0.01, 0.003)
ORDERS = np.linspace(math.log(1e-7), math.log(1e9), 140)
Run = tuple[float, float, int]


def contour(runs: list[Run], psi: float, sign: int, epsilon: float, limit: float = math.inf) -> arb:
    """A ball with delta(epsilon), unless the CPU time passes `limit`."""
    c, level, others = _line(runs, psi, sign, epsilon)
    need = level - DIGITS
    c2, length = min(
        ((x, (k - x * epsilon - need) / (x - c)) for x, k in others if k - x * epsilon - need > 0), key=lambda p: p[1]
    )
    period = _short(1.05 * max(length, -need / c))
    du = 2 * math.pi / period
    top, angles = _top(runs, psi, sign, c, epsilon, need, du, limit)
    count = math.ceil(top / du)
    if count > NODES:
        raise TooLong
    ctx.prec = 110 + math.ceil(math.log2(2.0 + abs(level) + (c + top) * epsilon + max(n for _, _, n in runs)))
    e, real, step = arb(epsilon), arb(c), 2 * arb.pi() / arb(period)
    zs = [acb(real, step * k) for k in range(count + 1)]
    terms = [(arb(psi) ** 2 * z * (z + 1) / 2 - z * e).exp() / (z * (z + 1)) for z in zs]
    log_rest = arb(psi) ** 2 * (real * (real + 1) - (step * count) ** 2) / 2 - real * e
    log_m2 = arb(psi) ** 2 * arb(c2) * (arb(c2) + 1) / 2 - arb(c2) * e
    for (sigma, q, n), angle in zip(runs, angles, strict=True):
        s, s2 = (1.0 + c, 1.0 + c2) if sign > 0 else (-c, -c2)
        column = _column(sigma, q, s, step, count, math.log(n) + DIGITS + 5.0, limit)
        terms = [t * (a if sign > 0 else a.conjugate()) ** n for t, a in zip(terms, column, strict=True)]
        log_rest += n * _mean(sigma, q, s, count * du * (1 - 1e-12), angle, 40 + n.bit_length(), limit).log()
        log_m2 += n * _mean(sigma, q, s2, 0.0, 0.0, 40 + n.bit_length(), limit).log()
    total = sum((2 * t.real for t in terms), arb(0)) - terms[0].real
    rest = log_rest.exp() / (arb.pi() * step * count)
    alias = 1 / ((real * period).exp() - 1) + log_m2.exp() / (((arb(c2) - real) * period).exp() - 1)
    return total / arb(period) + arb(0, rest.upper()) - alias.upper() / 2 + arb(0, alias.upper() / 2)


def _short(x: float) -> float:
    """x with 20 bits, rounded up."""
    mantissa, exponent = math.frexp(x)
    return math.ldexp(math.ceil(mantissa * 2**20), exponent - 20)


def rough(sigma: float, q: float, s: float, u: float, theta: float) -> float:
    """log of e^(y^2/2) E[|F_y|^s e^(-u arg F_y)] in floats."""
    extra = max(-u, 0.0) * theta + (s * math.log1p(-q) if s < 0 else 0.0)
    reach = math.sqrt(2.0 * (45.0 + extra)) + 1.0
    high = reach + max(s, 0.0) / sigma
    if high > 1500.0:
        return math.inf
    g = np.linspace(-reach, high, int(min(max(1500, (high + reach) * max(30.0, 3.0 / sigma)), 8000)))
    a, b = math.log1p(-q), math.log(q) + g / sigma - 0.5 / sigma**2
    with np.errstate(all="ignore"):
        top = np.maximum(a, b)
        w = np.exp(a - top) + np.exp(b - top + 1j * theta)
        x = s * (top + np.log(np.abs(w))) - u * np.angle(w) - 0.5 * g * g
        peak = float(x.max())
        mean = float(np.exp(x - peak).sum()) * float(g[1] - g[0]) / math.sqrt(2 * math.pi)
    return peak + math.log(mean) + 0.5 * (theta * sigma) ** 2


def _line(runs: list[Run], psi: float, sign: int, epsilon: float) -> tuple[float, float, list[tuple[float, float]]]:
    """c with the least M(c) e^(-c epsilon)/(c (c+1)), about log delta, and log M at orders beyond c."""

    def log_m(c: float) -> float:
        total = 0.5 * psi * psi * c * (c + 1.0)
        return total + sum(n * rough(s, q, 1.0 + c if sign > 0 else -c, 0.0, 0.0) for s, q, n in runs)

    tried, orders = [], ORDERS
    for _ in range(2):
        tried += [(c, log_m(c)) for c in (_short(math.exp(x)) for x in orders)]
        tried = sorted(p for p in tried if math.isfinite(p[1]))
        if len(tried) < 5:
            raise TooLong
        costs = [k - c * epsilon - math.log(c) - math.log1p(c) for c, k in tried]
        best = min(range(len(tried)), key=lambda i: costs[i])
        ends = math.log(tried[max(best - 1, 0)][0]), math.log(tried[min(best + 1, len(tried) - 1)][0])
        orders = np.linspace(*ends, 14)[1:-1]
    c = tried[best][0]
    return c, min(costs[best] + math.log(c) - 1.0, 0.0), [p for p in tried if p[0] > 1.001 * c]


def _top(
    runs: list[Run], psi: float, sign: int, c: float, epsilon: float, need: float, du: float, limit: float
) -> tuple[float, list[float]]:
    """How long the line has to be, and the angle of each run that shows it."""
    s, widest, u = (1.0 + c, math.pi, 8.0 * du) if sign > 0 else (-c, math.pi / 2, 8.0 * du)
    while u < NODES * du and time.process_time() < limit:
        pairs = [
            min((rough(sigma, q, s, u, share * widest), share * widest) for share in ANGLES) for sigma, q, _ in runs
        ]
        total = sum(n * bound for (_, _, n), (bound, _) in zip(runs, pairs, strict=True))
        total += 0.5 * psi * psi * (c * (c + 1.0) - u * u) - c * epsilon - math.log(math.pi * u)
        if total <= need:
            return u, [angle for _, angle in pairs]
        u *= 1.3
    raise TooLong


def _column(sigma: float, q: float, s: float, step: arb, count: int, need: float, limit: float) -> list[acb]:
    """E[F^(s + i k step)] for k = 0 ... count."""
    widest, u, level = (math.pi if s >= 0 else math.pi / 2), float(step.mid()) * count, rough(sigma, q, s, 0.0, 0.0)
    h, theta = max(
        (2 * math.pi * a * widest * sigma / max(rough(sigma, q, s, -u, a * widest) - level + need, 1.0), a * widest)
        for a in ANGLES
    )
    h = _short(0.99 * h)
    low, high = _ends(sigma, q, s, need + max(-level, 0.0))
    first, last = math.floor(low / h), math.ceil(high / h)
    if not (last - first) * count <= WORK:
        raise TooLong
    wide, rate, order = arb(sigma), arb(q), arb(s)
    y = arb(theta) * wide
    error = 2 * _mean(sigma, q, s, -u * (1 + 1e-12), theta, 40, limit) / ((2 * arb.pi() * y / h).exp() - 1)
    error += _tails(wide, rate, order, arb(first) * h, arb(last) * h)
    weights, turns = [], []
    for j in range(first, last + 1):
        g = arb(j) * arb(h)
        loss = (1 - rate + rate * (g / wide - 1 / (2 * wide * wide)).exp()).log()
        weights.append(acb((order * loss - g * g / 2).exp() * h / (2 * arb.pi()).sqrt()))
        turns.append(loss * step)
    block = math.isqrt(count) + 1
    inner = [[(acb(0, t * k)).exp() for t in turns] for k in range(block)]
    outer = [
        [w * acb(0, t * (k * block)).exp() for w, t in zip(weights, turns, strict=True)]
        for k in range(count // block + 1)
    ]
    table = (acb_mat(outer) * acb_mat(inner).transpose()).tolist()
    slack = acb(arb(0, error.upper()), arb(0, error.upper()))
    return [table[k // block][k % block] + slack for k in range(count + 1)]


def _ends(sigma: float, q: float, s: float, need: float) -> tuple[float, float]:
    """A range of g that leaves out little: for s < 0 the mass below is multiplied by (1 - q)^s."""
    reach = math.sqrt(2.0 * (need + (-s * -math.log1p(-q) if s < 0 else 0.0))) + 1.0
    low = -reach
    while s < 0 and -low * sigma * (1.0 - q) < -1.01 * s * q * math.exp(low / sigma - 0.5 / sigma**2):
        low -= 0.5
    return low, reach + max(s, 0.0) / sigma


def _mean(sigma: float, q: float, s: float, u: float, theta: float, bits: int, limit: float) -> arb:
    """Upper bound of e^(y^2/2) E[|F_y|^s e^(-u arg F_y)]; with u > 0 it bounds E|F^(s + iu')| for every u' >= u."""
    wide, rate, order, angle = arb(sigma), arb(q), arb(s), arb(theta)
    guess, grown = rough(sigma, q, s, u, theta) - 0.5 * (theta * sigma) ** 2, max(-u, 0.0) * theta
    low, high = _ends(sigma, q, s, bits * math.log(2.0) + 8.0 + grown + max(-guess, 0.0))
    if not high - low < 2500.0:
        raise TooLong

    def integrand(g: acb, analytic: bool) -> acb:
        t = g / wide - 1 / (2 * wide * wide)
        up, down = ((1 - rate + rate * (t + x).exp()).log(analytic=analytic) for x in (acb(0, angle), acb(0, -angle)))
        return (order * (up + down) / 2 - arb(u) * (up - down) / acb(0, 2) - g * g / 2).exp()

    pieces = math.ceil((high - low) / 2.0)
    cuts, small = [low + (high - low) * i / pieces for i in range(pieces + 1)], arb(guess).exp() * arb(2) ** -bits
    total = acb(0)
    for i in range(pieces):
        if time.process_time() > limit:
            raise TooLong
        total += acb.integral(
            integrand, cuts[i], cuts[i + 1], rel_tol=arb(2) ** -bits, abs_tol=small, eval_limit=20_000
        )
    body = total.real / (2 * arb.pi()).sqrt() + arb(grown).exp() * _tails(wide, rate, order, arb(low), arb(high))
    return ((angle * wide) ** 2 / 2).exp() * body.upper()


def _tails(sigma: arb, q: arb, s: arb, low: arb, high: arb) -> arb:
    """Bound of E[F^s] beyond [low, high], and of every trapezoid sum of it, since phi F^s falls outwards there."""
    shift = 1 / (2 * sigma * sigma)
    if s < 0:
        if not (-low * sigma * (1 - q) > -s * q * (low / sigma - shift).exp() and high > 0):
            raise TooLong
        return ((1 - q) ** s * (upper_tail(-low) + upper_tail(high))).upper()
    if not (low < 0 and high > s / sigma):
        raise TooLong
    k = q + (1 - q) * (shift - high / sigma).exp()
    return (upper_tail(-low) + k**s * (s * (s - 1) * shift).exp() * upper_tail(high - s / sigma)).upper()
