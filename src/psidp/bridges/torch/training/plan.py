"""The plan: how much noise for how many steps, fixed before anything of the data is seen."""

from dataclasses import replace
from fractions import Fraction
from math import floor, inf, log10
from typing import Any

from psidp.accounting import DPSGD, BandMF, FixedOrder, PrivacyCurve, account, calibrate
from psidp.accounting.calibration import largest_steps
from psidp.accounting.events import whole_steps
from psidp.bridges.torch.step.slots import enough, overflow
from psidp.guarantee import Guarantee
from psidp.symbols import float_below, symbol

__all__ = [
    "RESERVE",
    "Run",
    "cost_of",
    "curve_of",
    "epoch_of",
    "grouped",
    "length_of",
    "planned",
    "reserved",
    "rounded_up",
    "shortened",
    "slots_for",
]

Run = DPSGD | BandMF | FixedOrder

RESERVE = 2.0**-20
"""Part of delta and of kappa that is kept for draws which exceed their places; see PrivateStep."""


def planned(
    *,
    sampling_rate: float,
    noise_multiplier: float | None,
    steps: int | None,
    epochs: float | None,
    epsilon: float | None,
    psi: float | None,
    delta: float,
    kappa: float,
    unit: str,
) -> DPSGD:
    """The run that meets what was asked: two of noise, length and target, or all three; then the shorter length.

    Examples:
        >>> asked = {"sampling_rate": 0.01, "epsilon": 2.0, "delta": 1e-5, "psi": None, "kappa": 1e-10, "unit": "one"}
        >>> planned(**asked, noise_multiplier=1.0, steps=None, epochs=None).steps
        1202
        >>> planned(**asked, noise_multiplier=None, steps=1000, epochs=None).noise_multiplier
        0.959102
    """
    rate = symbol("sampling_rate").number(sampling_rate)
    if not rate > 0.0:
        raise ValueError(f"sampling_rate (chance of a record to be in a batch) must be in (0, 1], got {rate}.")
    _refuse_slack(delta, kappa)
    length = length_of(rate, steps, epochs)
    target = _target(epsilon, psi, delta * (1.0 - RESERVE), kappa * (1.0 - RESERVE))
    if noise_multiplier is None:
        if length is None or target is None:
            raise TypeError(
                "two of these must be given: noise_multiplier; steps or epochs; a target, epsilon or psi. "
                f"Got noise_multiplier=None with steps={steps}, epochs={epochs}, epsilon={epsilon}, psi={psi}."
            )
        noise = rounded_up(calibrate(sampling_rate=rate, steps=length, **target))
        return DPSGD(noise, rate, length, unit=unit)
    noise = symbol("noise_multiplier").number(noise_multiplier)
    if target is not None:
        length = _within(target, noise, rate, length)
    if length is None:
        raise TypeError("a run must end: give steps or epochs, or a target, epsilon or psi, at which it stops.")
    return DPSGD(noise, rate, length, unit=unit)


def epoch_of(sampling_rate: float) -> int:
    """Steps in an epoch: after so many, a record has been in one batch on average."""
    return max(1, round(1.0 / sampling_rate))


def curve_of(run: Run, failure: float) -> PrivacyCurve:
    """The certified curve of a run that fails outright with a small chance, once in all its steps."""
    return account([run, Guarantee(0.0, failure, run.adjacency or "add-remove", run.unit)])


def shortened(run: Run, steps: int) -> Run:
    """The same run, of so many steps."""
    if isinstance(run, FixedOrder):
        epoch = -(-run.steps // run.epochs)
        return replace(run, epochs=min(run.epochs, -(-steps // epoch)), steps=min(run.steps, steps))
    return replace(run, steps=min(run.steps, steps))


def grouped(run: Run, size: int) -> Run:
    """The same run for a group of so many units, all of which are there or none, or a refusal."""
    unit = run.unit if size == 1 else f"group of {size} {run.unit}s"
    if isinstance(run, FixedOrder):
        return replace(run, noise_multiplier=float_below(Fraction(run.noise_multiplier) / size), unit=unit)
    if isinstance(run, BandMF) or run.adjacency != "add-remove":
        raise ValueError(
            f"a group of {size} must be of a run without bands, under add-remove, got "
            f"{f'bands={run.bands}' if isinstance(run, BandMF) else f'adjacency={run.adjacency!r}'}. No account of "
            "the others is proved here."
        )
    if not size * run.sampling_rate <= 1.0:
        raise ValueError(
            f"size (units in a group) must be at most 1/sampling_rate, {floor(1.0 / run.sampling_rate)}, got {size}."
        )
    return replace(run, group=size, unit=unit)


def cost_of(curve: PrivacyCurve, delta: float, kappa: float) -> tuple[float, float]:
    """Certified epsilon at delta and psi at kappa, the upper ends."""
    return float(curve.epsilon(delta).upper), curve.guarantee(kappa).psi


def slots_for(mean: float, run: DPSGD | BandMF, delta: float, kappa: float) -> int:
    """Places for draws of this mean, so many that the whole run exceeds them with the reserved chance at most."""
    return enough(mean, RESERVE * min(delta, kappa) / run.steps * (1.0 - 2.0**-30))


def reserved(run: DPSGD | BandMF, slots: int, records: int, delta: float, kappa: float) -> float:
    """What is promised as the chance that some draw of the run exceeds its places: all that was kept for it.

    The chance itself would tell the number of records; refused where it is more than was kept.
    """
    kept = RESERVE * min(delta, kappa)
    if not run.steps * overflow(run.sampling_rate * records, slots) * (1.0 + 2.0**-40) <= kept:
        raise ValueError(
            "expected_batch (a public number that sums are divided by) must be about as large as the sampling_rate "
            f"times the number of records, or larger: places for {slots} examples a step are too few."
        )
    return kept


def _refuse_slack(delta: float, kappa: float) -> None:
    """Refuse a delta or a kappa at which a sampled run has no finite price."""
    for name, value in (("delta", delta), ("kappa", kappa)):
        if not 0.0 < symbol(name).number(value) < 1.0:
            raise ValueError(f"{name} ({symbol(name).meaning}) must be in (0, 1), got {name}={value}.")


def length_of(rate: float, steps: int | None, epochs: float | None) -> int | None:
    """Steps that were asked for."""
    if steps is not None and epochs is not None:
        raise TypeError(f"give steps or epochs, not both, got steps={steps} and epochs={epochs}.")
    if epochs is None:
        return None if steps is None else whole_steps(steps)
    if isinstance(epochs, bool) or not (isinstance(epochs, int | float) and 0 < epochs < inf):
        raise ValueError(f"epochs (steps times sampling_rate) must be a number in (0, inf), got epochs={epochs}.")
    return whole_steps(max(1, round(epochs / rate)))


def _target(epsilon: float | None, psi: float | None, delta: float, kappa: float) -> dict[str, Any] | None:
    """The target as calibration takes it, if there is one."""
    if epsilon is not None and psi is not None:
        raise TypeError(f"one target must be given, epsilon at delta or psi at kappa, got {epsilon} and {psi}.")
    for name, value in (("epsilon", epsilon), ("psi", psi)):
        if value is not None and not 0.0 < symbol(name).number(value) < inf:
            raise ValueError(f"{name} ({symbol(name).meaning}) must be in (0, inf) as a target, got {name}={value}.")
    if epsilon is not None:
        return {"epsilon": epsilon, "delta": delta}
    return None if psi is None else {"psi": psi, "kappa": kappa}


def _within(target: dict[str, Any], noise: float, rate: float, length: int | None) -> int:
    """The steps that were asked for, or as many as the target allows."""
    if length is not None and _meets(DPSGD(noise, rate, length), **target):
        return length
    allowed = largest_steps(noise_multiplier=noise, sampling_rate=rate, **target)
    if not allowed >= 1:
        asked = " and ".join(f"{name}={value:.5g}" for name, value in target.items())
        raise ValueError(
            f"not one step meets {asked} with noise_multiplier={noise} and sampling_rate={rate}. "
            "Give more noise, a lower rate or a larger target."
        )
    return allowed if length is None else min(length, allowed)


def _meets(run: DPSGD, *, epsilon: float = inf, delta: float = 0.5, psi: float = inf, kappa: float = 0.5) -> bool:
    """Whether a run stays within its target, certified."""
    spent = cost_of(account(run), delta, kappa)
    return spent[0] <= epsilon and spent[1] <= psi


def rounded_up(noise: float) -> float:
    """`noise` rounded up to six digits: two machines, whose last digits differ, plan the same run."""
    digits = 5 - floor(log10(noise))
    short = round(noise, digits)
    return short if short >= noise else round(short + 10.0**-digits, digits)
