"""Proof mode: certified intervals judged again by ball arithmetic, on another contour, with other code.

    python tests/accounting/proof.py --seed 1 --cases 20

delta(epsilon) is enclosed by a ball: the moment generating function by python-flint's rigorous integration, the
trapezoid rule on a line Re z = c that the package did not use, its aliases and its truncated tail by bounds that are
themselves balls. Nothing is imported from psidp but the interval under test.
"""

import argparse
from dataclasses import dataclass
from itertools import pairwise

from flint import acb, arb, ctx

PRECISION = 96
LIMIT = 1000


@dataclass(frozen=True)
class Setting:
    """A question: the epsilon of one direction of a run at one delta."""

    sigma: float
    q: float
    steps: int
    delta: float
    sign: int

    def law(self) -> "Law":
        return Law(arb(self.sigma), arb(self.q), self.steps, self.sign)


@dataclass(frozen=True)
class Law:
    """The loss of a run in one direction, in balls."""

    sigma: arb
    q: arb
    steps: int
    sign: int

    def order(self, z: acb) -> acb:
        return 1 + z if self.sign > 0 else -z

    def moment(self, z: acb) -> acb:
        """M(z) of one step: E[F^s] over the real line."""
        s = self.order(z)
        low, high = -14.0, 14.0 + max(float(s.real.mid()), 0.0) / float(self.sigma.mid())

        def integrand(g: acb, analytic: bool) -> acb:
            return (s * self._log_f(g, 0, analytic) - g * g / 2).exp()

        body = pieces(integrand, low, high, 70)
        tail = self._tails(s.real, arb(low), arb(high))
        return body / root_two_pi() + acb(ball(tail), ball(tail))

    def ceiling(self, c: arb, u: arb, y: arb) -> arb:
        """Upper bound of |M(c + iu')| for every u' >= u, by shifting g to g + iy."""
        s = self.order(acb(c)).real
        high = 14.0 + max(float(s.mid()), 0.0) / float(self.sigma.mid())
        theta = y / self.sigma

        def integrand(g: acb, analytic: bool) -> acb:
            up, down = self._log_f(g, theta, analytic), self._log_f(g, -theta, analytic)
            argument = (up - down) / acb(0, 2)
            return (s * (up + down) / 2 - u * argument - g * g / 2).exp()

        body = pieces(integrand, -14.0, high, 50).real
        crowd = 1 if self.sign > 0 else (1 / (theta / 2).cos()) ** (-s)
        return (y * y / 2).exp() * (body / root_two_pi() + crowd * self._tails(s, arb(-14.0), arb(high))).upper()

    def _log_f(self, g: acb, theta: arb | int, analytic: bool) -> acb:
        t = g / self.sigma - 1 / (2 * self.sigma * self.sigma)
        return (1 - self.q + self.q * (t + acb(0, 1) * theta).exp()).log(analytic=analytic)

    def _tails(self, s: arb, low: arb, high: arb) -> arb:
        """Bound of E[F^s] beyond [low, high]: F <= max(1, k e^t) with k = F e^-t at high, F >= 1 - q for s < 0."""
        if s < 0:
            return (1 - self.q) ** s * (above(-low) + above(high))
        k = self.q + (1 - self.q) * (1 / (2 * self.sigma * self.sigma) - high / self.sigma).exp()
        far = k**s * (s * (s - 1) / (2 * self.sigma * self.sigma)).exp() * above(high - s / self.sigma)
        return above(-low) + far + above(high)


def enclosure(law: Law, epsilon: float, c: float, delta: float) -> arb:
    """A ball that contains delta(epsilon), from the trapezoid rule on Re z = c."""
    e, big_t = arb(epsilon), law.steps
    need = delta * 1e-13
    period, alias = _period(law, e, c, need)
    du = 2 * arb.pi() / period
    total, k, check = arb(0), 0, 12
    while k < LIMIT:
        u = k * du
        z = acb(arb(c), u)
        term = (law.moment(z) ** big_t * (-z * e).exp() / (z * (z + 1))).real
        total += term if k == 0 else 2 * term
        k += 1
        if k == check:
            check = check * 5 // 4
            rest = _rest(law, c, (k - 1) * du, e)
            if rest < need:
                total = total * du / (2 * arb.pi())
                return total + ball(rest) - arb(0.5) * alias + ball(arb(0.5) * alias)
    raise ArithmeticError(f"the contour of {law} is longer than {LIMIT} nodes")


def _period(law: Law, e: arb, c: float, need: float) -> tuple[arb, arb]:
    """Lambda and the sum of both aliases: delta <= 1 on the left, delta(y) <= M(c') e^(-c' y) on the right."""
    best, tilt, log_m = None, 0.0, arb(0)
    for factor in (1.02, 1.06, 1.15, 1.3, 1.6, 2.2, 3.5):
        other = c * factor
        power = law.steps * law.moment(acb(other)).real.log()
        if not power.is_finite():
            break
        length = float(((power - other * e - arb(need).log()) / (other - c)).mid())
        if best is None or length < best:
            best, tilt, log_m = length, other, power
    assert best is not None
    period = arb(1.1 * max(best, -float(arb(need).log().mid()) / c))
    left = 1 / ((arb(c) * period).exp() - 1)
    right = (log_m - tilt * e).exp() / ((arb(tilt - c) * period).exp() - 1)
    return period, (left + right).upper()


def _rest(law: Law, c: float, u: arb, e: arb) -> arb:
    """Bound of the contour beyond u: (1/pi) int M^T e^(-c e)/u^2."""
    if u == 0:
        return arb(1)
    widest = 2.4 if law.sign > 0 else 1.2
    ladder = [arb(law.sigma) * widest * 0.6**i for i in range(9)]
    bounds = [law.ceiling(arb(c), u, y) for y in ladder]
    least = min(bounds, key=lambda b: float(b.mid()))
    return ((least**law.steps) * (-c * e).exp() / (arb.pi() * u)).upper()


def pieces(integrand, low: float, high: float, bits: int) -> acb:
    """The integral from low to high in pieces of about 2, which the adaptive rule finds easier than the whole."""
    count = max(int((high - low) / 2.0), 1)
    cuts = [low + (high - low) * i / count for i in range(count + 1)]
    tolerance = {"rel_tol": arb(2) ** -bits, "abs_tol": arb(2) ** -(bits + 15)}
    parts = (acb.integral(integrand, a, b, **tolerance) for a, b in pairwise(cuts))
    return sum(parts, acb(0))


def above(x: arb) -> arb:
    """Phi(-x)."""
    return (x / arb(2).sqrt()).erfc() / 2


def ball(radius: arb) -> arb:
    """The ball of this radius around 0."""
    return arb(0, radius.upper())


def root_two_pi() -> arb:
    return (2 * arb.pi()).sqrt()


def prove(setting: Setting, lower: float, upper: float, c: float) -> None:
    """Raise unless delta(lower) >= delta >= delta(upper) for certain, or delta(0) <= delta where upper = 0."""
    old, ctx.prec = ctx.prec, PRECISION
    try:
        law = setting.law()
        if lower > 0:
            value = enclosure(law, lower, c, setting.delta)
            assert value >= setting.delta, f"{setting}: delta({lower!r}) = {value} is below delta"
        value = enclosure(law, upper, c, setting.delta)
        assert value <= setting.delta, f"{setting}: delta({upper!r}) = {value} is above delta"
    finally:
        ctx.prec = old


def affordable(setting: Setting) -> bool:
    """Whether the package's own contour has few nodes: a matter of cost, not of truth."""
    from psidp.accounting.contours.contour import Contour, NotCertified

    try:
        steps = composition(setting)
        return Contour(steps, saddle(setting)).bounds.nodes <= 120
    except NotCertified:
        return False


def composition(setting: Setting):
    from psidp.accounting.composition import Composition

    return Composition.merge([(setting.sigma, setting.q, setting.steps, setting.sign)])


def saddle(setting: Setting):
    from math import log

    from psidp.accounting.contours.saddle import saddle_at_delta

    return saddle_at_delta(composition(setting), log(setting.delta))


def draw(seed: int, cases: int) -> list[Setting]:
    """Random questions about DP-SGD whose contour is short; a long one takes minutes in ball arithmetic."""
    import numpy as np

    rng = np.random.default_rng(seed)
    settings = []
    while len(settings) < cases:
        sigma = float(np.exp(rng.uniform(np.log(0.5), np.log(5.0))))
        q = float(np.exp(rng.uniform(np.log(1e-3), np.log(0.3))))
        steps = int(np.exp(rng.uniform(np.log(100), np.log(3e5))))
        delta = float(10.0 ** rng.uniform(-12, -2))
        spread = q * np.sqrt(steps * np.expm1(1.0 / sigma**2))
        setting = Setting(sigma, q, steps, delta, int(rng.choice([-1, 1])))
        if spread < 8.0 and affordable(setting):
            settings.append(setting)
    return settings


def main() -> None:
    import time

    import numpy as np

    from psidp.accounting.methods import epsilon_bounds

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=20)
    options = parser.parse_args()
    for setting in draw(options.seed, options.cases):
        lower, upper, method = epsilon_bounds(composition(setting), float(np.log(setting.delta)))
        started = time.perf_counter()
        prove(setting, lower, upper, 0.9 * saddle(setting).c)
        print(
            f"proved [{lower!r}, {upper!r}] by {method}, {setting}, {time.perf_counter() - started:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
