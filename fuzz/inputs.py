"""Numbers of every accepted type and size are read exactly, or rounded so that no promise is too strong."""

from collections.abc import Callable
from math import inf
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import mpmath
import numpy as np

import psidp
from fuzz.campaign import Relapse
from psidp import (
    DPSGD,
    BandMF,
    Counter,
    FixedOrder,
    GaussianMechanism,
    Guarantee,
    Ledger,
    RandomAllocation,
    sensitivity,
)
from psidp.theory import region_tpr, renyi_divergence

__all__ = ["RELAPSES", "explore"]

RELAPSES: dict[str, Relapse] = {}

Number = Any
"""An exact number in mpmath."""


def explore(random: Random) -> None:
    """Every public call once, on numbers that floats of 64 bits often do not hold."""
    with mpmath.workprec(1400):  # whole numbers of this campaign have at most 1,100 bits
        for name, call in {**ABOVE, **BELOW}.items():
            arguments, found, truth = call(random)
            fits = found >= truth if name in ABOVE else found <= truth
            assert fits, f"{name} of {arguments!r} is {found!r}, on the wrong side of {mpmath.nstr(truth, 25)}"


def large(random: Random) -> Any:
    """A whole number above 2^53, as Python's or NumPy's."""
    bits = random.choice((54, 55, 60, 63, 64, 200, 900))
    whole = 2 ** (bits - 1) + random.choice((1, 3, random.randrange(2 ** (bits - 1))))
    kinds = [int] + [np.uint64] * (bits <= 64) + [np.int64] * (bits <= 63)
    return random.choice(kinds)(whole)


def small(random: Random) -> Any:
    """A positive number down to the subnormals, as a float of any width."""
    kind = random.choice((float, np.float64, np.float32, np.float16))
    least = -7 if kind is np.float16 else -44 if kind is np.float32 else -323
    return kind(10.0 ** random.uniform(least, 0)) or kind(5e-324) or np.float16(6e-8)


def positive(random: Random) -> Any:
    """Either."""
    return random.choice((large, small))(random)


def inner(random: Random) -> Any:
    """A probability from 1e-3 to 1/2, as a float of any width."""
    return random.choice((float, np.float64, np.float32, np.float16))(random.uniform(1e-3, 0.5))


def given(random: Random, value: Any) -> Any:
    """A number by itself, or in an array or a list that has other numbers too."""
    wraps: list[Callable[[Any], Any]] = [
        lambda x: x,
        lambda x: np.array(x),
        lambda x: [x, 1],
        lambda x: [[x], [0.5]],
        lambda x: np.array([x, 1], dtype=object),
    ]
    return random.choice(wraps)(value)


def exact(value: Any) -> Number:
    """The number as it is."""
    numerator, denominator = (int(value), 1) if not hasattr(value, "dtype") or value.dtype.kind != "f" else (0, 0)
    if isinstance(value, float) or not denominator:
        numerator, denominator = float(value).as_integer_ratio()
    return mpmath.mpf(numerator) / denominator


def first(result: Any) -> Number:
    """The answer to the number that was asked for, from an array of answers."""
    found = float(np.ravel(result)[0])
    return mpmath.inf if found == inf else mpmath.mpf(found)


def _of(
    call: Callable[..., Any], truth: Callable[..., Number], *kinds: Callable[[Random], Any], arrays: bool = True
) -> Callable[[Random], tuple[tuple[Any, ...], Number, Number]]:
    """A call on random arguments, and the exact value that its answer is judged by."""

    def once(random: Random) -> tuple[tuple[Any, ...], Number, Number]:
        values = tuple(kind(random) for kind in kinds)
        shown = tuple(given(random, values[0]) if arrays and i == 0 else value for i, value in enumerate(values))
        return values, first(call(*shown)), truth(*map(exact, values))

    return once


def _delta(psi: Number, epsilon: Number) -> Number:
    """The exact profile; in tails, so that nothing cancels."""
    a, b = epsilon / psi - psi / 2, epsilon / psi + psi / 2
    return _tail(a) - mpmath.exp(epsilon) * _tail(b) if a < 10**6 and epsilon < 10**9 else mpmath.mpf(0)


def _tail(x: Number) -> Number:
    """The mass of a standard normal above x; its limits where mpmath's numbers end."""
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2 if abs(x) < 10**4 else mpmath.mpf(x < 0)


def _epsilon_is_enough(psi: Any, delta: Any) -> float:
    """0 if the epsilon that is found has this delta or less, 1 if it has more."""
    found = np.ravel(psidp.epsilon_from_psi(psi, delta))[0]
    p = exact(np.ravel(np.array(psi, dtype=object))[0])
    return float(found < inf and _delta(p, mpmath.mpf(float(found))) > exact(delta))


def _psi_is_small(epsilon: Any, delta: Any) -> float:
    found = mpmath.mpf(float(np.ravel(psidp.psi_from_epsilon_delta(epsilon, delta))[0]))
    e = exact(np.ravel(np.array(epsilon, dtype=object))[0])
    return float(found > 0 and _delta(found, e) > exact(delta))


def _roc(psi: Number, fpr: Number) -> Number:
    return mpmath.mpf(1) if psi > 100 else _tail(_quantile(fpr) - psi)


def _quantile(tail: Number) -> Number:
    """Where a standard normal's tail is this; a root to a few hundred bits, by Newton's method."""
    x = mpmath.mpf(0)
    for _ in range(60):
        step = (_tail(x) - tail) * mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(x * x / 2)
        x += step
        if abs(step) < mpmath.mpf(2) ** -500:
            break
    return x


def _pure(epsilon: Number) -> Number:
    """psi of epsilon-DP."""
    return 2 * _quantile(1 / (1 + mpmath.exp(epsilon))) if epsilon > 1e-20 else epsilon * mpmath.sqrt(mpmath.pi / 2)


def _order(random: Random) -> Any:
    return large(random) if random.random() < 0.5 else random.randrange(2, 100)


def _converted(rho: Number, alpha: Number, delta: Number) -> Number:
    least = rho + mpmath.log((alpha - 1) / alpha) - (mpmath.log(delta) + mpmath.log(alpha)) / (alpha - 1)
    return max(least, mpmath.mpf(0))


def _cap(psi: Any) -> float:
    with TemporaryDirectory() as folder:
        ledger = Ledger(f"{folder}/ledger.db")
        ledger.open("b", psi=psi, unit="record", actor="Ann", purpose="exactness")
        return ledger.budget("b").guarantee.psi


def _root(x: Number) -> Number:
    return mpmath.sqrt(x)


ROUNDED = 1 + mpmath.mpf(2) ** -1000
"""What the truth itself may be off by, in mpmath."""

ABOVE = {
    "Guarantee": _of(lambda p: Guarantee(p).psi, lambda p: p, positive, arrays=False),
    "Guarantee.gaussian": _of(
        lambda s: Guarantee.gaussian(sensitivity=s, sigma=2**53 + 1).psi, lambda s: s / (2**53 + 1), large, arrays=False
    ),
    "Guarantee.sigma": _of(lambda s: Guarantee(2.0).sigma(s), lambda s: s / 2, positive, arrays=False),
    "Guarantee.group": _of(lambda k: Guarantee(0.1).group(int(k)).psi, lambda k: k * exact(0.1), large, arrays=False),
    "Guarantee.from_pure": _of(
        lambda e: Guarantee.from_pure(e).psi, lambda e: _pure(e) / ROUNDED, small, arrays=False
    ),
    "Guarantee.delta": _of(lambda e: Guarantee(1e8).delta(e), lambda e: _delta(mpmath.mpf(10) ** 8, e), positive),
    "Guarantee.rdp": _of(lambda a: Guarantee(1.0).rdp(a), lambda a: a / 2, _order, arrays=False),
    "GaussianMechanism": _of(
        lambda s, n: GaussianMechanism(s, n).guarantee.psi, lambda s, n: s / n, large,
        lambda random: random.choice((3, 2**53 + 1)), arrays=False,
    ),
    "GaussianMechanism.calibrate": _of(
        lambda s: GaussianMechanism.calibrate(s, psi=0.75).guarantee.sigma(s) * 0.75, lambda s: s, large, arrays=False
    ),
    "epsilon_from_psi": _of(lambda p, d: -_epsilon_is_enough(p, d), lambda p, d: 0, positive, inner),
    "psi_from_epsilon_delta": _of(lambda e, d: -_psi_is_small(e, d), lambda e, d: 0, positive, inner),
    "delta_from_psi": _of(psidp.delta_from_psi, _delta, positive, positive),
    "advantage_from_psi": _of(psidp.advantage_from_psi, lambda p: 1 - 2 * _tail(p / 2), positive),
    "auc_from_psi": _of(psidp.auc_from_psi, lambda p: 1 - _tail(p / _root(mpmath.mpf(2))), positive),
    "tpr_from_psi": _of(psidp.tpr_from_psi, lambda p, x: _roc(p, x) / ROUNDED, positive, inner),
    "rho_from_psi": _of(psidp.rho_from_psi, lambda p, a: p * p * a / 2, positive, _order),
    "zcdp_from_psi": _of(psidp.zcdp_from_psi, lambda p: p * p / 2, positive),
    "epsilon_from_rdp": _of(psidp.epsilon_from_rdp, _converted, positive, _order, inner),
    "region_tpr": _of(
        lambda e, x: region_tpr(x, e, 0.0), lambda e, x: min(mpmath.exp(e) * x if e < 99 else mpmath.inf,
        1 - mpmath.exp(-e) * (1 - x)), positive, inner
    ),
    "renyi_divergence": _of(
        lambda s, d: renyi_divergence(2, d, s, s), lambda s, d: (d / s) ** 2, large, large, arrays=False
    ),
    "sensitivity.count": _of(lambda k: sensitivity.count("add-remove", int(k)), lambda k: k, large, arrays=False),
    "sensitivity.clipped_sum": _of(
        lambda a, b: sensitivity.clipped_sum(-int(a), b, "replace-one"), lambda a, b: a + b, large, positive,
        arrays=False,
    ),
    "sensitivity.clipped_vector": _of(
        lambda a: sensitivity.clipped_vector(a, "replace-one"), lambda a: 2 * a, positive, arrays=False
    ),
    "FixedOrder.psi": _of(lambda n: FixedOrder(n, 4).psi, lambda n: 2 / n, large, arrays=False),
    "DPSGD steps": _of(
        lambda q: DPSGD(1.0, q, epochs=1).steps,
        lambda q: mpmath.ceil(1 / q) - (abs(1 / q - mpmath.nint(1 / q)) < mpmath.mpf(2) ** -52 / q),
        lambda random: 10.0 ** random.uniform(-15, -1), arrays=False,
    ),
    "compose": _of(
        lambda p, o: psidp.compose([Guarantee(p), Guarantee(o)]).psi, lambda p, o: _root(p * p + o * o) / ROUNDED,
        positive, positive, arrays=False,
    ),
}  # fmt: skip
"""What must not be below the truth."""

BELOW = {
    "fnr_from_psi": _of(psidp.fnr_from_psi, lambda p, x: (1 - _roc(p, x)) * ROUNDED, small, inner),
    "psi_from_rho": _of(psidp.psi_from_rho, lambda r, a: _root(2 * r / a) * ROUNDED, positive, _order),
    "psi_from_zcdp": _of(psidp.psi_from_zcdp, lambda r: _root(2 * r) * ROUNDED, positive),
    "psi_from_auc": _of(
        lambda a: psidp.psi_from_auc(a), lambda a: -_root(mpmath.mpf(2)) * _quantile(a) * ROUNDED,
        lambda random: np.float32(random.uniform(0.5, 0.99)),
    ),
    "psi_from_advantage": _of(
        psidp.psi_from_advantage, lambda a: 2 * _quantile((1 - a) / 2) * ROUNDED, inner
    ),
    "clip_sum": _of(lambda n: psidp.clip_sum([0.5], n).norm, lambda n: n, large, arrays=False),
    "Counter": _of(lambda p: Counter(psi=p, periods=2, at_most=1).psi, lambda p: p, large, arrays=False),
    "Ledger.open": _of(_cap, lambda p: p, large, arrays=False),
    "DPSGD": _of(lambda n: DPSGD(n, 0.1, 1).noise_multiplier, lambda n: n, positive, arrays=False),
    "BandMF": _of(lambda n: BandMF(n, 0.1, 4, bands=2).noise_multiplier, lambda n: n, large, arrays=False),
    "RandomAllocation": _of(lambda n: RandomAllocation(n, 4).noise_multiplier, lambda n: n, large, arrays=False),
}  # fmt: skip
"""What must not be above it."""
