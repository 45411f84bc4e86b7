"""Conversions between psi, epsilon and delta: vectors of a million, scalars, and the roads that people take today."""

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from bench.timing import Report, interleave
from psidp import epsilon_from_psi, log_delta_from_psi, psi_from_epsilon_delta

SIZE = 1_000_000


def paper_epsilon(psi: float, delta: float) -> float:
    """The paper's method: Brent on Phi(psi/2 - epsilon/psi) - e^epsilon Phi(-psi/2 - epsilon/psi) - delta."""

    def gap(epsilon: float) -> float:
        first = norm.cdf(psi / 2 - epsilon / psi)
        return float(first - np.exp(epsilon) * norm.cdf(-psi / 2 - epsilon / psi) - delta)

    return float(brentq(gap, 0.0, 300.0, xtol=1e-12)) if gap(0.0) > 0.0 else 0.0


def run(full: bool, seed: int) -> list[Report]:
    """Nanoseconds per element, microseconds per scalar call, and ratios."""
    rng = np.random.default_rng(seed)
    psi, delta = 10 ** rng.uniform(-1, 1, SIZE), 10 ** rng.uniform(-12, -2, SIZE)
    epsilon = epsilon_from_psi(psi, delta)
    vectors = interleave(
        {
            "epsilon_from_psi": lambda: epsilon_from_psi(psi, delta),
            "log_delta_from_psi": lambda: log_delta_from_psi(psi, epsilon),
            "psi_from_epsilon_delta": lambda: psi_from_epsilon_delta(epsilon, delta),
        },
        rounds=30 if full else 10,
    )
    report = Report("Conversions, vectors of 1e6, psi in [0.1, 10], delta in [1e-12, 1e-2]")
    targets = {"epsilon_from_psi": 250.0, "log_delta_from_psi": 120.0, "psi_from_epsilon_delta": 400.0}
    for name, seconds in vectors.items():
        report.add(name, seconds / SIZE * 1e9, "ns/element", at_most=targets[name])
    return [report, _scalars(vectors, psi[:20], delta[:20], epsilon[:20])]


def _scalars(vectors: dict[str, float], psi: np.ndarray, delta: np.ndarray, epsilon: np.ndarray) -> Report:
    """One call at a time: ours, the paper's, dp-accounting's."""
    contenders = {
        "ours, epsilon": lambda: [epsilon_from_psi(p, d) for p, d in zip(psi, delta, strict=True)],
        "ours, log delta": lambda: [log_delta_from_psi(p, e) for p, e in zip(psi, epsilon, strict=True)],
        "ours, psi": lambda: [psi_from_epsilon_delta(e, d) for e, d in zip(epsilon, delta, strict=True)],
        "brentq (the paper), epsilon": lambda: [paper_epsilon(p, d) for p, d in zip(psi, delta, strict=True)],
    }
    try:
        from dp_accounting import get_epsilon_gaussian, get_sigma_gaussian

        contenders["dp-accounting, epsilon"] = lambda: [
            get_epsilon_gaussian(1.0 / p, d) for p, d in zip(psi, delta, strict=True)
        ]
        contenders["dp-accounting, sigma"] = lambda: [
            get_sigma_gaussian(e, d) for e, d in zip(epsilon, delta, strict=True)
        ]
    except ImportError:
        pass
    times = {name: seconds / psi.size for name, seconds in interleave(contenders, rounds=20).items()}
    report = Report("One call at a time")
    rival = {"epsilon": vectors["epsilon_from_psi"] / SIZE, "sigma": vectors["psi_from_epsilon_delta"] / SIZE}
    for name, seconds in times.items():
        if name.startswith("ours"):
            report.add(name, seconds * 1e6, "us", at_most=150.0)
        else:
            kind = name.split(", ")[1]
            note = f"{seconds / rival[kind]:,.0f} times our vectorised time"
            report.add(name, seconds * 1e6, "us", note=note)
    if not any(name.startswith("dp-accounting") for name in times):
        report.say("dp-accounting", "not installed in this environment")
    return report
