"""Makes tests/reference/corners.jsonl, on standard output: delta of random corner settings, between proved ends.

    python tests/reference/make_corners.py --seed 1 --each 20 > tests/reference/corners.jsonl
    python tests/reference/make_corners.py --seed 2 --each 200 --seconds 0.5 --all | gzip -9n > corners.2000.jsonl.gz

Shares no code with src. Closed forms where there are any; else the contour integral
(1/2 pi i) int M(z) e^(-z epsilon)/(z (z+1)) dz by the trapezoid rule on a line (corner_contour.py), with the aliases,
the truncated tail and the error of M bounded in balls too; where that is too long, a lattice in whole numbers, whose
bounds from both sides are up to 5 % apart ("way" says so). A setting for which all this takes too long is left out, and
another one is drawn; with --all it is written without delta, so that no setting is chosen by what the oracle can do.
The ends are decimal numbers, rounded outwards. How many settings are answered depends on the machine's speed, which
settings are drawn does not.
"""

import argparse
import json
import math
import random
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
from flint import arb, ctx, fmpz, fmpz_poly

sys.path.insert(0, str(Path(__file__).parent.parent))
from reference.corner_contour import contour, rough
from reference.corners import TooLong, gaussian, one_step, upper_tail

SECONDS = 2.0
"""CPU time after which a setting is given up."""
LOOSE = 0.05
"""Relative width beyond which a lattice's bounds say too little."""
PLACES = 1 << 13
KINDS = (
    "one step",
    "plain",
    "few steps",
    "few steps, small rate",
    "tiny noise",
    "nearly all",
    "long",
    "long, small rate",
    "mixture",
    "kappa",
)
Runs = list[tuple[float, float, int]]


def draw(random_: random.Random, kind: str) -> tuple[Runs, float, float, float]:
    """Runs (sigma, q, steps), psi and kappa of a plain Gaussian beside them, and the target delta."""
    runs = []
    for _ in range({"one step": 1, "plain": 0, "mixture": random_.randrange(2, 6)}.get(kind, 1)):
        sigma = _log_uniform(random_, 0.02, 0.12) if kind == "tiny noise" else _log_uniform(random_, 0.02, 1e3)
        q = _log_uniform(random_, 1e-8, 0.5)
        q = 1.0 - q if kind == "nearly all" or random_.random() < 0.2 else q
        steps = int(_log_uniform(random_, 1.0, 1e9))
        if kind in ("few steps", "few steps, small rate", "tiny noise") or random_.random() < 0.2:
            steps = random_.randrange(2, 30)
        if kind == "few steps, small rate":
            sigma, q = _log_uniform(random_, 0.1, 50.0), _log_uniform(random_, 1e-8, 1e-3)
        if kind == "long, small rate":
            sigma, q, steps = (
                _log_uniform(random_, 0.5, 20.0),
                _log_uniform(random_, 1e-8, 1e-3),
                10 ** random_.randrange(3, 9),
            )
        runs.append((sigma, q, 1 if kind == "one step" else steps))
    kappa = 10.0 ** random_.uniform(-12, -2) if kind == "kappa" else 0.0
    psi = 10.0 ** random_.uniform(-3, 1) if kappa or kind == "plain" or random_.random() < 0.1 else 0.0
    least = -300.0 if random_.random() < 0.2 else -15.0
    return runs, 0.0 if kind == "one step" else psi, kappa, 10.0 ** random_.uniform(least, math.log10(0.4))


def _log_uniform(random_: random.Random, low: float, high: float) -> float:
    return math.exp(random_.uniform(math.log(low), math.log(high)))


def lattice(runs: Runs, psi: float, epsilon: float, sign: int, places: int, limit: float) -> arb:
    """A ball with delta from a law above and one below on a lattice of losses: bounds from both sides.

    delta = P - e^epsilon Q + sum over the losses L <= epsilon of P(L) (e^(epsilon - L) - 1), P and Q being all the mass
    of the law; so losses beyond epsilon are never needed. Masses are whole numbers of 2^-bits.
    """
    bits = 100 + int((epsilon + 60.0) / math.log(2.0))
    if bits > 1200:
        raise TooLong
    ctx.prec = bits + 64
    parts = [(arb(s), arb(q), n, sign, sign * (1 - arb(q)).log() + _lowest(s, q, n, sign)) for s, q, n in runs]
    if psi:
        parts.append((1 / arb(psi), arb(1), 1, 1, arb(-12.0 * psi)))
    start = sum((n * low for _, _, n, _, low in parts), arb(0))
    eta = arb(1.001 * float(((arb(epsilon) - start) / (places - 2)).mid()))
    if not eta > 0:
        raise TooLong
    ends, unit = [], fmpz(1 << bits)
    for up in (1, 0):
        ones = fmpz_poly([up] * places)
        product, p_all, q_all = fmpz_poly([1]) * unit, arb(1), arb(1)
        for sigma, q, n, kind, low in parts:
            mass, p_one, q_one = (_above if up else _below)(sigma, q, kind, low, eta, places)
            if time.process_time() > limit:
                raise TooLong
            whole = [_whole(m, bits, up) for m in mass]
            if not sum(whole) <= 2 << bits:
                raise TooLong  # the lattice is too coarse for its bits
            poly = fmpz_poly(whole)
            power, k = fmpz_poly([1]) * unit, n
            while k:
                if k & 1:
                    power = power.mul_low(poly, places) // unit + ones
                k >>= 1
                if k:
                    poly = poly.mul_low(poly, places) // unit + ones
            product = product.mul_low(power, places) // unit + ones
            p_all, q_all = p_all * p_one**n, q_all * q_one**n
        value, here, fall = p_all - arb(epsilon).exp() * q_all, (arb(epsilon) - start).exp(), (-eta).exp()
        for m in product.coeffs():
            if not here > 1:
                break
            value += m * (here - 1) / unit
            here *= fall
        else:
            raise TooLong
        ends.append(value)
    return max(ends[1].lower(), arb(0)).union(min(ends[0].upper(), arb(1)))


def _lowest(sigma: float, q: float, n: int, sign: int) -> float:
    """A loss, from that of the atom on, under which hardly a path lies: 0 where the record is removed."""
    if sign > 0:
        return 0.0
    g = math.sqrt(2.0 * (math.log(n) + 45.0))
    return -float(np.logaddexp(0.0, math.log(q) - math.log1p(-q) + g / sigma - 0.5 / sigma**2))


def _beyond(sigma: arb, q: arb, sign: int, x: arb) -> tuple[arb, arb]:
    """P(loss > x) and Q(loss > x)."""
    ratio = ((sign * x).exp() - 1 + q) / q
    if not ratio > 0:
        return (arb(1), arb(1)) if sign > 0 else (arb(0), arb(0))
    g = sigma * ratio.log() + 1 / (2 * sigma)
    if sign > 0:
        return (1 - q) * upper_tail(g) + q * upper_tail(g - 1 / sigma), upper_tail(g)
    return upper_tail(-g), (1 - q) * upper_tail(-g) + q * upper_tail(1 / sigma - g)


def _above(sigma: arb, q: arb, sign: int, low: arb, eta: arb, places: int) -> tuple[list[arb], arb, arb]:
    """P's masses with every cell split between its ends so that P and Q stay; what is below goes to the first place."""
    tails = [_beyond(sigma, q, sign, low + i * eta) for i in range(places + 1)]
    mass = [arb(0)] * (places + 1)
    mass[0] = 1 - tails[0][0]
    q_all = mass[0] * (-low).exp()
    for i in range(places):
        p, r = tails[i][0] - tails[i + 1][0], tails[i][1] - tails[i + 1][1]
        here, there = (-low - i * eta).exp(), (-low - (i + 1) * eta).exp()
        left = ((r - p * there) / (here - there)).nonnegative_part()
        mass[i] += left
        mass[i + 1] += p - left
        q_all += r
    return mass[:places], arb(1), q_all + tails[-1][1]  # a step beyond decides, so its Q counts as it is


def _below(sigma: arb, q: arb, sign: int, low: arb, eta: arb, places: int) -> tuple[list[arb], arb, arb]:
    """P's masses with all of a cell, a little above its place, put there; what is below the first cell is left out."""
    tails = [_beyond(sigma, q, sign, low + (i - arb(0.48)) * eta) for i in range(places + 1)]
    mass, q_all = [arb(0)] * places, arb(0)
    lost = 1 - tails[0][0]
    for i in range(places):
        p, r = tails[i][0] - tails[i + 1][0], tails[i][1] - tails[i + 1][1]
        at = i if p >= r * (low + i * eta).exp() else i - 1
        if at < 0:
            lost += p
            continue
        mass[at] += p
        q_all += p * (-low - at * eta).exp()
    return mass, 1 - lost, q_all + tails[-1][1]  # a step beyond decides, so its Q counts as it is


def _whole(mass: arb, bits: int, up: int) -> int:
    scaled = mass * arb(2) ** bits
    return max(int((scaled.upper().ceil() if up else scaled.lower().floor()).unique_fmpz()), 0)


def enclosure(
    runs: Runs, psi: float, epsilon: float, sign: int, bits: int = 90, seconds: float = SECONDS
) -> tuple[arb, str]:
    """A ball with delta(epsilon) of one direction, without kappa, and how it was found."""
    ctx.prec = bits
    if not runs:
        ctx.prec = 4000
        return gaussian(arb(psi), epsilon), "closed form"
    if len(runs) == 1 and runs[0][2] == 1 and psi == 0.0:
        return one_step(*runs[0][:2], epsilon, sign), "closed form"
    if sign < 0 and psi == 0.0 and arb(epsilon) >= -sum((n * (1 - arb(q)).log() for _, q, n in runs), arb(0)):
        return arb(0), "closed form"
    try:
        found = contour(runs, psi, sign, epsilon, time.process_time() + 2.0 * seconds)
        if found.rad() <= 1e-9 * abs(found.mid()):
            return found, "contour"
    except (TooLong, ValueError, ZeroDivisionError, OverflowError):
        pass
    return lattice(runs, psi, epsilon, sign, PLACES, time.process_time() + 3.0 * seconds), "lattice"


def reference(runs: Runs, psi: float, kappa: float, epsilon: float, seconds: float = SECONDS) -> tuple[arb, arb, str]:
    """Both ends of delta(epsilon) of a series, in the worse direction and with kappa, and how they were found."""
    found = [enclosure(runs, psi, epsilon, sign, seconds=seconds) for sign in ((1, -1) if runs else (1,))]
    ctx.prec = 400
    low, high = max(b.lower() for b, _ in found), max(b.upper() for b, _ in found)
    ways = sorted({way for _, way in found})
    low, high = (arb(kappa) + (1 - arb(kappa)) * end for end in (low, high))
    return low, high, ", ".join(ways)


def setting(random_: random.Random, kind: str, seconds: float = SECONDS) -> dict[str, object]:
    """A random setting with its reference; without one where ball arithmetic would take too long or say too little."""
    runs, psi, kappa, target = draw(random_, kind)
    found = {"kind": kind, "runs": runs, "psi": psi, "kappa": kappa}
    unanswered = found | {"target": max(target, 2.0 * kappa)}
    try:
        epsilon = float(guess(runs, psi, target)) if runs else psi * random_.uniform(0.0, 6.0)
        low, high, way = reference(runs, psi, kappa, epsilon, seconds)
    except (TooLong, ValueError, ZeroDivisionError, OverflowError):
        return unanswered
    if not (0 < low <= high < 1 and high <= (1 + LOOSE) * low and low > arb(10) ** -305):
        return unanswered
    ends = {"lower": _decimal(low.lower(), -1), "upper": _decimal(high.upper(), 1)}
    return found | {"epsilon": epsilon, "delta": ends, "way": way}


def _decimal(x: arb, side: int) -> str:
    """30 digits of a number, rounded to one side."""
    mantissa, exponent = (int(part) for part in x.man_exp())
    value = Fraction(mantissa) * Fraction(2) ** exponent
    place = 30 - math.floor(math.log10(2.0) * (mantissa.bit_length() + exponent))
    scaled = value * Fraction(10) ** place
    return f"{math.floor(scaled) if side < 0 else math.ceil(scaled)}e{-place}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=20, help="settings of each kind")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="about how long to try each setting")
    parser.add_argument("--all", action="store_true", help="write settings without a reference too")
    options = parser.parse_args()
    dice = {kind: random.Random(f"{options.seed} {kind}") for kind in options.kinds}
    written = dict.fromkeys(dice, 0)
    while open_ := [kind for kind, count in written.items() if count < options.each]:
        for kind in open_:
            found = setting(dice[kind], kind, options.seconds)
            if options.all or "delta" in found:
                print(json.dumps(found), flush=True)
                written[kind] += 1


def guess(runs: Runs, psi: float, target: float) -> float:
    """An epsilon whose delta is about the target: Chernoff's bound where the record is removed, roughly."""
    best = math.inf
    for c in np.exp(np.linspace(math.log(1e-3), math.log(1e8), 150)).tolist():
        log_m = 0.5 * psi * psi * c * (c + 1.0) + sum(n * rough(s, q, 1.0 + c, 0.0, 0.0) for s, q, n in runs)
        best = min(best, (log_m - math.log(target)) / c - math.log1p(c) / c - math.log1p(1.0 / c))
    return max(best, 1e-6)


if __name__ == "__main__":
    main()
