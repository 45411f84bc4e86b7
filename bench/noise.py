"""Exact noise beside NumPy's unsafe one and the peers': vectors, single releases, and time against |noise|."""

import os
import time
from collections.abc import Callable

import numpy as np
from scipy.stats import spearmanr

from bench.timing import Report, interleave
from psidp import GaussianMechanism

SIZE = 1_000_000
PEER_SIZE = 10_000
SIGMA = 1.3
YARDSTICK = "x + rng.normal(0, sigma, n)"
Calls = dict[str, Callable[[], object]]


def run(full: bool, seed: int) -> list[Report]:
    """Nanoseconds an entry, microseconds a release, ratios, and a rank correlation."""
    rng = np.random.default_rng(seed)
    return [_vectors(rng, 60 if full else 30), _singles(rng), _peers(rng), _timing(100_000)]


def _vectors(rng: np.random.Generator, rounds: int) -> Report:
    """A million entries at a time."""
    x = rng.normal(0.0, 10.0, SIZE)
    own, single, whole = x.copy(), x.astype(np.float32), rng.integers(0, 10**6, SIZE)
    mechanism, fine = GaussianMechanism(1.0, SIGMA), GaussianMechanism(1.0, SIGMA, grid=2.0**-40)
    best = interleave(
        {
            YARDSTICK: lambda: x + rng.normal(0.0, SIGMA, SIZE),
            "rng.standard_normal(n)": lambda: rng.standard_normal(SIZE),
            "ours, noise alone": lambda: mechanism._noise.noise(SIZE),
            "ours, release of x": lambda: mechanism.release(x),
            "ours, release of x in place": lambda: mechanism.release(own, out=own),
            "ours, release of x in float32": lambda: mechanism.release(single),
            "ours, release of whole numbers": lambda: mechanism.release(whole, integers=True),
            "ours, release of x, grid sigma 2^-40": lambda: fine.release(x),
            "os.urandom alone, 8 bytes an entry": lambda: os.urandom(8 * SIZE),
        },
        rounds,
        seconds=40.0,
    )
    report = Report("Noise, vectors of 1e6, grid sigma 2^-24 (times x + rng.normal in brackets)")
    targets = {"ours, noise alone": 0.75, "ours, release of x": 0.80}
    for name, seconds in best.items():
        report.add(name, seconds / SIZE * 1e9, "ns/entry", note=f"({seconds / best[YARDSTICK]:.2f} x)")
    for name, target in targets.items():
        report.add(f"{name}, over {YARDSTICK}", best[name] / best[YARDSTICK], "x", at_most=target)
    return report


def _singles(rng: np.random.Generator) -> Report:
    """One release at a time, the result object included."""
    mechanism, vector, calls = GaussianMechanism(1.0, SIGMA), np.zeros(100), 2000
    best = interleave(
        {
            "a float": lambda: _repeat(lambda: mechanism.release(123.4), calls),
            "an integer": lambda: _repeat(lambda: mechanism.release(123), calls),
            "100 floats": lambda: _repeat(lambda: mechanism.release(vector), calls),
            "x + rng.normal(0, sigma), one float": lambda: _repeat(lambda: 123.4 + rng.normal(0.0, SIGMA), calls),
        },
        rounds=10,
    )
    report = Report("Single releases")
    for name, seconds in best.items():
        report.add(name, seconds / calls * 1e6, "us", at_most=10.0 if name == "a float" else None)
    return report


def _peers(rng: np.random.Generator) -> Report:
    """Float-safe and other peers, where they are installed: vectors of 1e4, and one float at a time."""
    mechanism, x = GaussianMechanism(1.0, SIGMA), rng.normal(0.0, 10.0, PEER_SIZE)
    report = Report("Peers, vectors of 1e4 and single floats")
    vectors: Calls = {"ours, vector": lambda: mechanism.release(x)}
    singles: Calls = {"ours, one float": lambda: mechanism.release(123.4)}
    for name, peer in (("opendp", _opendp), ("diffprivlib", _diffprivlib)):
        try:
            more_vectors, more_singles = peer(x)
        except Exception as error:
            report.say(name, f"does not run here: {error}")
            continue
        vectors |= more_vectors
        singles |= more_singles
    _compare(report, vectors, "ours, vector", "ns/entry", 1e9 / PEER_SIZE, 20)
    _compare(report, singles, "ours, one float", "us", 1e6, 400)
    return report


def _compare(report: Report, calls: Calls, ours: str, unit: str, factor: float, times: int) -> None:
    """Ours beside the others; ours so many times in a turn that it is warm, the slow ones once or a few times."""
    turns = {name: times if name == ours or unit == "us" else 1 for name in calls}
    best = interleave({name: lambda n=name: _repeat(calls[n], turns[n]) for name in calls}, rounds=5)
    each = {name: seconds / turns[name] for name, seconds in best.items()}
    for name, seconds in each.items():
        note = "" if name == ours else f"{seconds / each[ours]:,.1f} x ours"
        report.add(name, seconds * factor, unit, note=note)


def _opendp(x: np.ndarray) -> tuple[Calls, Calls]:
    """OpenDP's make_gaussian on our grid and on its own; safe."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=x.size)
    values = x.tolist()
    grids = {"our grid": -24, "its own grid": None}
    made = {name: dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=SIGMA, k=k) for name, k in grids.items()}
    vectors = {f"opendp {dp.__version__}, vector, {name}": lambda m=m: m(values) for name, m in made.items()}
    one = dp.m.make_gaussian(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=SIGMA)
    return vectors, {f"opendp {dp.__version__}, one float, its own grid": lambda: one(123.4)}


def _diffprivlib(_: np.ndarray) -> tuple[Calls, Calls]:
    """diffprivlib's Gaussian, which takes one float at a time; not safe against floating-point attacks."""
    import diffprivlib

    mechanism = diffprivlib.mechanisms.GaussianAnalytic(epsilon=1.0, delta=1e-5, sensitivity=1.0)
    return {}, {f"diffprivlib {diffprivlib.__version__}, one float": lambda: mechanism.randomise(123.4)}


def _timing(calls: int) -> Report:
    """Whether the time of a release tells the size of its noise: Spearman's rank correlation."""
    mechanism = GaussianMechanism(1.0, SIGMA)
    report = Report("Rank correlation of the time of a release with |noise|, in standard errors of no correlation")
    for name, x, n in (("a float", 0.0, calls), ("100 floats", np.zeros(100), calls // 4)):
        seconds, size = np.empty(n), np.empty(n)
        for i in range(n):
            start = time.perf_counter_ns()
            release = mechanism.release(x)
            seconds[i] = time.perf_counter_ns() - start
            size[i] = np.abs(release.value).sum()
        found = float(spearmanr(seconds, size).statistic)
        note = f"Spearman {found:+.5f}"
        report.add(f"{name}, {n:,} calls", abs(found) * np.sqrt(n), "standard errors", at_most=3.5, note=note)
    return report


def _repeat(call: Callable[[], object], times: int) -> None:
    """Call it so many times."""
    for _ in range(times):
        call()
