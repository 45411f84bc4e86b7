"""Makes tests/reference/corners.csv, on standard output: delta of random corner settings, each in a proved ball.

    python tests/reference/make_corners.py --seed 1 --count 200 > tests/reference/corners.csv

Shares no code with src. Closed forms where there are any; one integral in ball arithmetic for two steps; else the
contour integral (1/2 pi i) int M(z) e^(-z epsilon)/(z (z+1)) dz by the trapezoid rule on a line, M by python-flint's
rigorous integration, with the aliases and the truncated tail bounded in balls too. A setting whose contour is too long
for that is left out, and another one is drawn.
"""

import argparse
import csv
import math
import random
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from flint import acb, arb, ctx

sys.path.insert(0, str(Path(__file__).parent.parent))
from reference.corners import gaussian, one_step, upper_tail

SECONDS = 6.0
"""CPU time after which a setting is given up."""
TIGHT = 1e-13
"""Relative width of a ball that is good enough."""
Runs = list[tuple[float, float, int]]


class TooLong(Exception):
    """Ball arithmetic would take too long here."""


def draw(random_: random.Random) -> tuple[Runs, float, float, float]:
    """Runs (sigma, q, steps), psi and kappa of a plain Gaussian beside them, and the target delta."""
    runs = []
    for _ in range(random_.choice([1, 1, 1, 2, 3, 5])):
        sigma = math.exp(random_.uniform(math.log(0.02), math.log(1e3)))
        q = math.exp(random_.uniform(math.log(1e-8), math.log(0.5)))
        q = 1.0 - q if random_.random() < 0.3 else q
        long = math.exp(random_.uniform(0.0, math.log(1e9)))
        runs.append((sigma, q, int(long) if random_.random() < 0.7 else random_.randrange(1, 30)))
    kappa = 10.0 ** random_.uniform(-12, -2) if random_.random() < 0.15 else 0.0
    psi = 10.0 ** random_.uniform(-3, 1) if kappa or random_.random() < 0.15 else 0.0
    least = -300.0 if random_.random() < 0.3 else -15.0
    return runs, psi, kappa, 10.0 ** random_.uniform(least, math.log10(0.4))


class Law:
    """The total loss of runs and of a plain Gaussian in one direction; sign +1 where the record is removed."""

    def __init__(self, runs: Runs, psi: float, sign: int) -> None:
        self.runs, self.psi, self.sign = runs, psi, sign
        self.limit = time.process_time() + SECONDS

    def rough(self, c: float) -> float:
        """log M(c) in floats, to a few digits."""
        total = 0.5 * self.psi**2 * c * (c + 1.0)
        for sigma, q, steps in self.runs:
            s = 1.0 + c if self.sign > 0 else -c
            top = 12.0 + max(s, 0.0) / sigma
            near = np.linspace(-12.0, min(top, 40.0), 3000)
            total += steps * _log_mean(sigma, q, s, near)
            if top > 40.0:
                total = max(total, steps * s * (math.log(q) + 0.5 * (s - 1.0) / sigma**2))
        return total

    def log_moment(self, z: acb) -> acb:
        """log M(z), a branch that does not matter: it is only exponentiated."""
        total = acb(self.psi) ** 2 * z * (z + 1) / 2
        for sigma, q, steps in self.runs:
            if time.process_time() > self.limit:
                raise TooLong
            total += steps * self._moment(arb(sigma), arb(q), 1 + z if self.sign > 0 else -z).log()
        return total

    def _moment(self, sigma: arb, q: arb, s: acb) -> acb:
        """E[F^s]."""
        order = float(s.real.mid())
        high = 16.0 + max(order, 0.0) / float(sigma.mid())
        if high > 400.0:
            raise TooLong

        def integrand(g: acb, analytic: bool) -> acb:
            return (s * _log_f(sigma, q, g, arb(0), analytic) - g * g / 2).exp()

        tail = _tails(sigma, q, s.real, arb(-16), arb(high))
        return _pieces(integrand, -16.0, high) / _root_two_pi() + acb(arb(0, tail), arb(0, tail))

    def log_ceiling(self, c: float, u: float) -> arb:
        """log of an upper bound of |M(c + iu')| for every u' >= u: g is shifted to g + iy in every run."""
        total = arb(self.psi) ** 2 * (arb(c) * (c + 1) - arb(u) ** 2) / 2
        for sigma, q, steps in self.runs:
            best = None
            for share in (0.75, 0.4, 0.2, 0.1, 0.05, 0.02, 0.007):
                bound = self._shifted(sigma, q, c, u, share)
                best = bound if best is None or bound < best else best
            total += steps * best.log()
        return total

    def _shifted(self, sigma: float, q: float, c: float, u: float, share: float) -> arb:
        """e^(y^2/2) E[|F_y|^s e^(-u arg F_y)], y = share pi sigma (half of it for s < 0)."""
        if time.process_time() > self.limit:
            raise TooLong
        theta = arb(share) * (arb.pi() if self.sign > 0 else arb.pi() / 2)
        width, rate = arb(sigma), arb(q)
        s = 1 + arb(c) if self.sign > 0 else -arb(c)
        y = theta * width
        if y > 12:
            return arb(10) ** 30
        high = 16.0 + max(float(s.mid()), 0.0) / sigma

        def integrand(g: acb, analytic: bool) -> acb:
            up, down = _log_f(width, rate, g, theta, analytic), _log_f(width, rate, g, -theta, analytic)
            return (s * (up + down) / 2 - u * (up - down) / acb(0, 2) - g * g / 2).exp()

        crowd = arb(1) if self.sign > 0 else (1 / (theta / 2).cos()) ** (-s)
        body = _pieces(integrand, -16.0, high).real / _root_two_pi()
        return (y * y / 2).exp() * (body + crowd * _tails(width, rate, s, arb(-16), arb(high))).upper()


def _log_mean(sigma: float, q: float, s: float, g: np.ndarray) -> float:
    t = g / sigma - 0.5 / sigma**2
    x = s * np.logaddexp(math.log1p(-q), math.log(q) + t) - 0.5 * g * g
    return float(x.max() + np.log(np.exp(x - x.max()).sum() * (g[1] - g[0]) / math.sqrt(2 * math.pi)))


def _log_f(sigma: arb, q: arb, g: acb, theta: arb, analytic: bool) -> acb:
    t = g / sigma - 1 / (2 * sigma * sigma)
    return (1 - q + q * (t + acb(0, 1) * theta).exp()).log(analytic=analytic)


def _tails(sigma: arb, q: arb, s: arb, low: arb, high: arb) -> arb:
    """Bound of E[F^s] beyond [low, high]: F <= max(1, k e^t) with k = F e^-t at high, F >= 1 - q for s < 0."""
    if s < 0:
        return ((1 - q) ** s * (upper_tail(-low) + upper_tail(high))).upper()
    k = q + (1 - q) * (1 / (2 * sigma * sigma) - high / sigma).exp()
    far = k**s * (s * (s - 1) / (2 * sigma * sigma)).exp() * upper_tail(high - s / sigma)
    return (upper_tail(-low) + far + upper_tail(high)).upper()


def _pieces(integrand, low: float, high: float) -> acb:
    count = max(int((high - low) / 2.0), 1)
    cuts = [low + (high - low) * i / count for i in range(count + 1)]
    tolerance = {"rel_tol": arb(2) ** -ctx.prec, "abs_tol": arb(2) ** -(ctx.prec + 20)}
    return sum((acb.integral(integrand, a, b, **tolerance) for a, b in pairwise(cuts)), acb(0))


def _root_two_pi() -> arb:
    return (2 * arb.pi()).sqrt()


def contour(law: Law, epsilon: float) -> arb:
    """A ball with delta(epsilon) of one direction."""
    c = _saddle(law, epsilon)
    e, scale = arb(epsilon), law.rough(c) - c * epsilon
    period, alias = _aliases(law, e, c, scale)
    du, total, k, check = 2 * arb.pi() / period, arb(0), 0, 12
    while k < 1500:
        z = acb(arb(c), k * du)
        term = ((law.log_moment(z) - z * e).exp() / (z * (z + 1))).real
        total += term if k == 0 else 2 * term
        k += 1
        if k == check:
            check = check * 5 // 4
            u = (k - 1) * du
            rest = ((law.log_ceiling(c, float(u.mid())) - arb(c) * e).exp() / (arb.pi() * arb(float(u.mid())))).upper()
            value = total * du / (2 * arb.pi())
            if rest < TIGHT * abs(value):
                value += arb(0, rest)
                return value - alias / 2 + arb(0, (alias / 2).upper())
    raise TooLong


def _saddle(law: Law, epsilon: float) -> float:
    """Near the minimum of log |M e^(-z epsilon)/(z (z+1))| on the positive axis."""

    def cost(x: float) -> float:
        c = math.exp(x)
        value = law.rough(c) - c * epsilon - math.log(c) - math.log1p(c)
        return value if math.isfinite(value) else 1e300

    grid = np.linspace(math.log(1e-4), math.log(1e9), 120)
    best = int(np.argmin([cost(x) for x in grid]))
    near = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, 119)], 40)
    return math.exp(near[int(np.argmin([cost(x) for x in near]))])


def _aliases(law: Law, e: arb, c: float, scale: float) -> tuple[arb, arb]:
    """The period and a bound of both aliases: delta <= 1 on the left, delta(y) <= M(c') e^(-c' y) on the right."""
    need = scale + math.log(TIGHT) - 3.0 - math.log(c * (c + 1.0))
    lengths = {f: (law.rough(c * f) - c * f * float(e) - need) / (c * (f - 1.0)) for f in (1.02, 1.1, 1.3, 2.0, 3.5)}
    factor = min(lengths, key=lambda f: lengths[f] if lengths[f] > 0 else 1e300)
    period = arb(1.1 * max(lengths[factor], -need / c))
    other = arb(c * factor)
    left = 1 / ((arb(c) * period).exp() - 1)
    log_m = law.log_moment(acb(other)).real
    right = (log_m - other * e).exp() / (((other - c) * period).exp() - 1)
    return period, (left + right).upper()


def enclosure(runs: Runs, psi: float, epsilon: float, sign: int, bits: int = 110) -> arb:
    """A ball with delta(epsilon) of one direction, without kappa."""
    ctx.prec = bits
    if len(runs) == 1 and runs[0][2] == 1 and psi == 0.0:
        return one_step(*runs[0][:2], epsilon, sign)
    if not runs:
        return gaussian(arb(psi), epsilon)
    return contour(Law(runs, psi, sign), epsilon)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    options = parser.parse_args()
    random_, written = random.Random(options.seed), 0
    writer = csv.writer(sys.stdout)
    writer.writerow(["runs", "psi", "kappa", "epsilon", "remove", "add"])
    while written < options.count:
        runs, psi, kappa, target = draw(random_)
        try:
            epsilon = guess(runs, psi, target)
            balls = [enclosure(runs, psi, epsilon, sign) for sign in (1, -1)]
        except (TooLong, ValueError, ZeroDivisionError, OverflowError):
            continue
        if not all(b.rad() <= 1e-9 * abs(b.mid()) and 0 < b < 1 for b in balls):
            continue
        shown = ";".join(f"{s!r}:{q!r}:{t}" for s, q, t in runs)
        writer.writerow([shown, repr(psi), repr(kappa), repr(epsilon), *(b.str(25, more=True) for b in balls)])
        sys.stdout.flush()
        written += 1


def guess(runs: Runs, psi: float, target: float) -> float:
    """An epsilon whose delta is about the target: Chernoff's, roughly."""
    law = Law(runs, psi, 1)
    orders = np.exp(np.linspace(math.log(1e-3), math.log(1e8), 200))
    values = [(law.rough(c) - math.log(target)) / c - math.log1p(c) / c - math.log1p(1.0 / c) for c in orders]
    return max(min(v for v in values if math.isfinite(v)), 1e-6)


if __name__ == "__main__":
    main()
