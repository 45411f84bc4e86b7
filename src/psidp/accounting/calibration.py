"""Calibration: the least noise, the most steps or the highest rate that meets a target, checked on the safe side."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import exp, inf, log
from typing import Any, Literal

import numpy as np

from psidp.accounting.composition import Composition
from psidp.accounting.contours.saddle import saddle_at_delta
from psidp.accounting.correlated import BandMF, FixedOrder
from psidp.accounting.curve import PrivacyCurve, account
from psidp.accounting.events import DPSGD, LARGEST_STEPS, RandomAllocation, Sampling, planned_rate
from psidp.accounting.methods import epsilon_near
from psidp.maths.sensitivity import Adjacency
from psidp.symbols import float_above, symbol

__all__ = ["calibrate", "described_run", "largest_sampling_rate", "largest_steps"]

CLOSE = 2e-11
"""Relative distance at which the search stops; what is given back is checked, not only close."""
LAID = 1e-4
"""The same where every look takes a lattice, whose answers are some 1e-4 wide."""
LOWEST, HIGHEST = -14.0, 40.0
"""Logarithms of noise between which it is looked for."""
ANY = f"the target allows any noise_multiplier from {exp(LOWEST):.1e}: it promises next to no privacy."
NONE = f"no noise_multiplier up to {exp(HIGHEST):.1e} meets the target."
LEAST_RATE = 1e-12
"""Below this no rate is looked for: 0 is the answer."""
USUAL = {"sampling": "poisson", "group": 1}
KINDS = {
    "batches": "of an epoch of random allocation",
    "bands": "steps over which noise is correlated",
    "order": "of the records, without sampling",
}
GOES_WITH = {
    "batches": ("epochs", "unit", "adjacency"),
    "bands": ("sampling_rate", "steps", "batch_size", "dataset_size", "epochs", "unit", "adjacency"),
    "order": ("epochs", "steps", "unit", "adjacency"),
}
"""What else may be said of such a run."""
Order = Literal["fixed"]
Loss = Callable[[PrivacyCurve], float]


def calibrate(
    *,
    sampling_rate: float | None = None,
    steps: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    psi: float | None = None,
    kappa: float | None = None,
    advantage: float | None = None,
    sampling: Sampling = "poisson",
    adjacency: Adjacency | None = None,
    batch_size: int | None = None,
    dataset_size: int | None = None,
    epochs: float | None = None,
    group: int = 1,
    truncated_batch_size: int | None = None,
    batches: int | None = None,
    bands: int | None = None,
    order: Order | None = None,
) -> float:
    """Smallest noise_multiplier for which a run meets a target, rounded up.

    The run is described as a DPSGD is; with `bands` as a BandMF; with `batches` and `epochs` alone as a
    RandomAllocation; with order="fixed" and `epochs` alone as a FixedOrder. The target is (epsilon, delta), or (psi,
    kappa) of the covering Guarantee, or the advantage of the best attack.

    Guarantees:
        The upper end of the certified interval at the result meets the target; the result exceeds the smallest such
        noise by a relative 1e-9 at most for Poisson sampling, and by about 1e-3 where only the lattice answers:
        allocation, groups, replace-one (tests/accounting/test_calibration.py).

    Examples:
        >>> calibrate(epsilon=2.0, delta=1e-5, sampling_rate=0.01, steps=1000)
        0.959101552...
        >>> calibrate(epsilon=2.0, delta=1e-5, batch_size=600, dataset_size=60_000, epochs=10)
        0.959101552...
        >>> calibrate(epsilon=2.0, delta=1e-6, sampling_rate=0.0005, steps=2000, bands=64)
        0.98969...
        >>> calibrate(psi=0.5, kappa=0.0, epochs=4, order="fixed")
        4.0...
    """
    loss, goal = _target(epsilon, delta, psi, kappa, advantage)
    run = described_run(
        sampling_rate=sampling_rate,
        steps=steps,
        sampling=sampling,
        adjacency=adjacency,
        batch_size=batch_size,
        dataset_size=dataset_size,
        epochs=epochs,
        group=group,
        truncated_batch_size=truncated_batch_size,
        batches=batches,
        bands=bands,
        order=order,
    )
    if isinstance(run, DPSGD | BandMF) and not run.sampling_rate > 0.0:
        raise ValueError("sampling_rate (chance of a record to be in a batch) must be above 0: nothing is released.")

    def curve(noise: float) -> PrivacyCurve:
        return account(replace(run, noise_multiplier=noise))

    def quick(log_noise: float) -> float:
        """The loss in the direction that is usually the worse one; without proof, where a contour will do."""
        if exact:
            near = epsilon_near(replace(first, sigma=first.sigma * exp(log_noise)), log(delta or 0.5))
            if near is not None:
                return near / goal
        whole = curve(exp(log_noise))
        one = whole.above[:1]
        return loss(whole if delta is None else replace(whole, below=one, above=one)) / goal

    def rough(log_noise: float) -> float:
        """The saddle point's guess of the loss, which costs a tenth."""
        steps = _one_direction(curve(exp(log_noise))) if plain else replace(first, sigma=first.sigma * exp(log_noise))
        return saddle_at_delta(steps, log(delta or 0.5)).epsilon / goal

    unit = account(run)
    first = _one_direction(unit)
    laid, plain = bool(first.pairs), bool(first.plain.high)
    exact = delta is not None and unit.below is unit.above and not (laid or plain or unit.kappa)
    start, slope = _root(rough, 0.0, -1.5, 3e-4) if delta is not None and not laid else (0.0, -1.5)
    root, slope = _root(quick, start, slope, LAID if laid else 1e-5)
    pad, width = (LAID, 1e-3) if laid else (3e-11, 8e-10)
    return _verified(lambda noise: _gap(loss(curve(noise)), goal), root, slope, pad, width)


def described_run(
    *, batches: int | None = None, bands: int | None = None, order: str | None = None, **said: Any
) -> DPSGD | BandMF | FixedOrder | RandomAllocation:
    """The run that was described, with a noise_multiplier of 1; unless batches, bands or order say more, a DPSGD.

    Examples:
        >>> described_run(batches=25, epochs=4).steps, described_run(bands=8, sampling_rate=0.01, steps=100).dpsgd.steps
        (100, 13)
    """
    if order is not None and order != "fixed":
        raise ValueError(f'order (of the records, without sampling) must be "fixed", got order={order!r}.')
    given = {name: value for name, value in said.items() if value is not None and value != USUAL.get(name)}
    kinds = {"batches": batches, "bands": bands, "order": order}
    if sum(value is not None for value in kinds.values()) > 1:
        raise TypeError("give one of batches (random allocation), bands (correlated noise) and order (no sampling).")
    for kind, value in kinds.items():
        other = next((name for name in given if value is not None and name not in GOES_WITH[kind]), None)
        if other:
            raise TypeError(f"{kind} ({KINDS[kind]}) does not go with {other}, got both.")
    if bands is not None:
        return BandMF(1.0, bands=bands, **given)
    if order is not None:
        return FixedOrder(1.0, **given)
    return DPSGD(1.0, **said) if batches is None else RandomAllocation(1.0, batches, **given)


def largest_steps(
    *,
    noise_multiplier: float,
    sampling_rate: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    psi: float | None = None,
    kappa: float | None = None,
    advantage: float | None = None,
    sampling: Sampling = "poisson",
    batch_size: int | None = None,
    dataset_size: int | None = None,
) -> int:
    """Largest number of steps for which a run meets a target; 0 where not even one step does.

    Examples:
        >>> largest_steps(noise_multiplier=1.0, sampling_rate=0.01, epsilon=2.0, delta=1e-5)
        1202
    """
    loss, goal = _target(epsilon, delta, psi, kappa, advantage)
    rate = float_above(planned_rate(sampling_rate, batch_size, dataset_size))

    def fits(steps: int) -> bool:
        return loss(account(DPSGD(noise_multiplier, rate, steps, sampling))) <= goal

    if not fits(1):
        return 0
    if delta is not None:
        rough = partial(_rough_epsilon, noise_multiplier, rate, delta)
        guess = _last(lambda steps: rough(steps) <= goal, 1, 1)
    else:  # psi and advantage grow about as the root of the steps
        there = loss(account(DPSGD(noise_multiplier, rate, 64, sampling)))
        guess = max(1, int(64.0 * min(goal / there, 1e4) ** 2)) if there > 0.0 else 64
    while guess > 1 and not fits(guess):
        guess -= max(guess // 16, 1)
    return _last(fits, guess, max(guess // 64, 1))


def _rough_epsilon(noise_multiplier: float, sampling_rate: float, delta: float, steps: int) -> float:
    """The saddle point's guess of epsilon."""
    return saddle_at_delta(account(DPSGD(noise_multiplier, sampling_rate, steps)).below[0], log(delta)).epsilon


def _last(holds: Callable[[int], bool], low: int, stride: int) -> int:
    """The last whole number from `low`, where it holds, at which it still does: strides that double, then halves."""
    while low + stride < LARGEST_STEPS and holds(low + stride):
        low, stride = low + stride, 2 * stride
    high = min(low + stride, LARGEST_STEPS + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def largest_sampling_rate(
    *,
    noise_multiplier: float,
    steps: int,
    epsilon: float | None = None,
    delta: float | None = None,
    psi: float | None = None,
    kappa: float | None = None,
    advantage: float | None = None,
    sampling: Sampling = "poisson",
) -> float:
    """Largest sampling_rate for which a run meets a target, rounded down; 1 where every rate does.

    Examples:
        >>> round(largest_sampling_rate(noise_multiplier=1.0, steps=1000, epsilon=2.0, delta=1e-5), 6)
        0.010863
    """
    loss, goal = _target(epsilon, delta, psi, kappa, advantage)

    def gap(rate: float) -> float:
        """How far the loss is above the target."""
        return _gap(loss(account(DPSGD(noise_multiplier, rate, steps, sampling))), goal)

    if gap(1.0) <= 0.0:
        return 1.0
    least = log(LEAST_RATE)
    if not gap(exp(least)) <= 0.0:
        return 0.0
    return exp(_crossed(lambda x: gap(exp(x)), least, 0.0))


def _crossed(gap: Callable[[float], float], low: float, high: float, close: float = CLOSE) -> float:
    """About the last x between low and high with gap <= 0, one at which it is: Illinois' rule, or halves."""
    below, above = -inf, inf
    for turn in range(400):
        if high - low <= close:
            break
        middle = 0.5 * (low + high)
        if turn % 4 and below > -inf and above < inf:
            middle = low + min(max(below / (below - above), 1e-3 * close), 1.0 - 1e-9) * (high - low)
            middle = min(max(middle, low + 0.3 * close), high - 0.3 * close)
        found = gap(middle)
        if found <= 0.0:
            low, below, above = middle, min(found, -1e-300), 0.5 * above if below > -inf else above
        else:
            high, above, below = middle, found, 0.5 * below if above < inf else below
    return low


def _target(
    epsilon: float | None, delta: float | None, psi: float | None, kappa: float | None, advantage: float | None
) -> tuple[Loss, float]:
    """What is bounded, as a function of the curve, and by what; exactly one notion."""
    notions = {"epsilon": epsilon, "delta": delta, "psi": psi, "kappa": kappa, "advantage": advantage}
    given = [name for name, value in notions.items() if value is not None]
    if epsilon is not None and delta is not None and len(given) == 2:
        at = symbol("delta").number(delta)
        if not 0.0 < at < 1.0:
            raise ValueError(f"delta (probability slack) must be in (0, 1) as a target, got delta={delta}.")
        goal = symbol("epsilon").number(epsilon)
        if not 0.0 < goal < inf:
            raise ValueError(f"epsilon (privacy loss bound) must be in (0,inf) to calibrate, got epsilon={epsilon}.")
        return lambda curve: float(curve.epsilon(at).upper), goal
    if psi is not None and kappa is not None and len(given) == 2:
        share = symbol("kappa").number(kappa)
        return lambda curve: curve.guarantee(share).psi, _above_zero("psi", psi)
    if advantage is not None and len(given) == 1:
        return lambda curve: float(curve.advantage.upper), _above_zero("advantage", advantage)
    names = ", ".join(given) or "none"
    raise TypeError(f"exactly one target must be given: epsilon and delta | psi and kappa | advantage; got {names}.")


def _above_zero(name: str, value: float) -> float:
    """A target that some noise meets."""
    goal = symbol(name).at_most(value)
    if not goal > 0.0:
        raise ValueError(f"{name} ({symbol(name).meaning}) must be above 0 as a target, got {name}={value}.")
    return goal


def _root(ratio: Callable[[float], float], here: float, slope: float, close: float) -> tuple[float, float]:
    """log noise where the ratio of loss to target is 1, and the slope there of the ratio's logarithm.

    The secant of the logarithm, kept inside a bracket; its last step, by inverse quadratic interpolation where three
    points are known, is taken without another look.
    """
    low, high, before = -inf, inf, None
    seen: list[tuple[float, float]] = []
    for _ in range(100):
        value = ratio(here)
        gap = log(value) if 0.0 < value < inf else (inf if value > 1.0 else -inf)
        if before is not None and abs(gap) < inf > abs(before[1]) and here != before[0]:
            slope = min((gap - before[1]) / (here - before[0]), -1e-3)
        if abs(gap) <= close or high - low <= CLOSE:
            found = _interpolated([*seen, (here, gap)][-3:], slope)
            return min(max(found, LOWEST), HIGHEST), slope
        low, high = (here, high) if gap > 0.0 else (low, here)
        before = (here, gap)
        seen.append(before)
        ahead = here + min(max(-gap / slope, -1.5), 1.5)
        here = ahead if low < ahead < high else 0.5 * (low + high)
        if not LOWEST < here < HIGHEST:
            break
    if here < 0.0:
        raise ValueError(ANY)
    raise ValueError(NONE)


def _interpolated(points: list[tuple[float, float]], slope: float) -> float:
    """Where the gap vanishes: through three points (here, gap) by Lagrange's formula, through fewer along the slope."""
    here, gap = points[-1]
    gaps = [g for _, g in points]
    if len(points) == 3 and len(set(gaps)) == 3 and max(map(abs, gaps)) < 0.5:
        a, b, c = gaps
        weights = (b * c / ((a - b) * (a - c)), a * c / ((b - a) * (b - c)), a * b / ((c - a) * (c - b)))
        return sum(w * x for w, (x, _) in zip(weights, points, strict=True))
    return here - (gap / slope if len(points) > 1 else 0.0)


def _verified(gap: Callable[[float], float], root: float, slope: float, pad: float, width: float) -> float:
    """The noise near a guess of its logarithm that meets the target, as certified, and is hardly more than needed.

    It is known to be so where the gap to the target is small, by the slope; or where less noise was seen to fail.
    """
    fails, meets = -inf, root + pad
    ahead = pad
    while not (found := gap(exp(meets))) <= 0.0:
        ahead *= 4.0
        fails, meets = meets, root + ahead
        if not meets < HIGHEST:
            raise ValueError(NONE)
    if -found <= -slope * width or meets - fails <= width:
        return exp(meets)
    while not fails > -inf:
        pad *= 4.0
        if not root - pad > LOWEST:
            raise ValueError(ANY)
        if gap(exp(root - pad)) <= 0.0:
            meets = root - pad
        else:
            fails = root - pad
    return exp(-_crossed(lambda x: gap(exp(-x)), -meets, -fails, width))


def _one_direction(curve: PrivacyCurve) -> Composition:
    """The upper end's first composition, as a saddle point can read it; the lower end may have no step at all."""
    steps = curve.above[0]
    return replace(steps, sign=np.where(steps.sign == 2.0, 1.0, steps.sign))


def _gap(found: float, goal: float) -> float:
    """How far the loss is above the target; in logarithms where both are positive."""
    return log(found / goal) if 0.0 < found < inf and goal > 0.0 else (inf if found > goal else -inf)
