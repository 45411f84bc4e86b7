"""How fast exact noise is, beside NumPy's unsafe one and the peers: `python -m bench.noise`.

CPU time of the thread, everything in one process taken in turn, round after round; the best round and the median are
shown. Peers live in an environment of their own, .venv-peers, and bring their own measurement of the yardstick:

    python3 -m venv .venv-peers && .venv-peers/bin/pip install opendp==0.16.0 diffprivlib==0.6.6 scikit-learn==1.8.0
"""

import argparse
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

import psidp

SIGMA = 1.3
YARDSTICK = "x + rng.normal(0, sigma, n)"
PEERS = Path(__file__).parents[1] / ".venv-peers" / "bin" / "python"
GOALS = {
    "psidp noise, sigma 2^-24": 0.75,
    "psidp x plus noise, sigma 2^-24": 0.80,
}


def contestants(n: int) -> dict[str, Callable[[], object]]:
    """What is timed, by name; each call makes n entries."""
    rng = np.random.default_rng()
    x = rng.normal(0.0, 10.0, n)
    own = x.copy()
    single = x.astype(np.float32)
    whole = rng.integers(0, 10**6, n)
    mechanism = psidp.GaussianMechanism(1.0, SIGMA)
    fine = psidp.GaussianMechanism(1.0, SIGMA, grid=2.0**-40)
    return {
        YARDSTICK: lambda: x + rng.normal(0.0, SIGMA, n),
        "rng.normal(0, sigma, n)": lambda: rng.normal(0.0, SIGMA, n),
        "rng.standard_normal(n)": lambda: rng.standard_normal(n),
        "psidp noise, sigma 2^-24": lambda: mechanism._noise.noise(n),
        "psidp x plus noise, sigma 2^-24": lambda: mechanism.release(x),
        "psidp x plus noise, in place": lambda: mechanism.release(own, out=own),
        "psidp x plus noise, float32": lambda: mechanism.release(single),
        "psidp integers": lambda: mechanism.release(whole, integers=True),
        "psidp x plus noise, sigma 2^-40": lambda: fine.release(x),
        "os.urandom alone, 8 bytes an entry": lambda: os.urandom(8 * n),
    }


def in_turn(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """CPU seconds of each call in each round, all in turn."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.thread_time()
            call()
            taken[name].append(time.thread_time() - start)
    return taken


def vectors(n: int, rounds: int) -> None:
    """Nanoseconds an entry, and how they compare with the yardstick."""
    taken = in_turn(contestants(n), rounds)
    best, middle = min(taken[YARDSTICK]), float(np.median(taken[YARDSTICK]))
    print(f"\nn = {n:,}, CPU time, {rounds} rounds in turn")
    print(f"{'':40}{'best ns':>10}{'median ns':>11}{'ratio':>8}{'of medians':>12}")
    for name, seconds in taken.items():
        ratio = min(seconds) / best
        goal = GOALS.get(name)
        mark = "" if goal is None else f"   goal {goal:.2f}: {'met' if ratio <= goal else 'MISSED'}"
        print(
            f"{name:40}{min(seconds) / n * 1e9:10.2f}{np.median(seconds) / n * 1e9:11.2f}{ratio:8.2f}"
            f"{np.median(seconds) / middle:12.2f}{mark}"
        )


def scalars(calls: int) -> None:
    """Microseconds of a single release, the result object included."""
    mechanism = psidp.GaussianMechanism(1.0, SIGMA)
    rng = np.random.default_rng()
    vector = np.zeros(100)
    kinds = {
        "psidp release of a float": lambda: mechanism.release(123.4),
        "psidp release of an int": lambda: mechanism.release(123),
        "psidp release of 100 floats": lambda: mechanism.release(vector),
        "x + rng.normal(0, sigma), one float": lambda: 123.4 + rng.normal(0.0, SIGMA),
    }
    print(f"\nsingle releases, CPU time, mean of {calls:,} calls, best of five")
    for name, call in kinds.items():
        best = min(_mean(call, calls) for _ in range(5))
        goal = f"   goal 10: {'met' if best <= 1e-5 else 'MISSED'}" if name.endswith("a float") else ""
        print(f"{name:40}{best * 1e6:10.2f} us{goal}")


def _mean(call: Callable[[], object], calls: int) -> float:
    """Mean CPU seconds of a call."""
    start = time.thread_time()
    for _ in range(calls):
        call()
    return (time.thread_time() - start) / calls


def timing(calls: int) -> None:
    """Rank correlation of time and |noise|; without any, it is 0 up to its own error."""
    mechanism = psidp.GaussianMechanism(1.0, SIGMA)
    print("\nrank correlation of the time of a release with its noise")
    for name, x, n in (("a float", 0.0, calls), ("100 floats", np.zeros(100), calls // 4)):
        seconds, size = np.empty(n), np.empty(n)
        for i in range(n):
            start = time.perf_counter_ns()
            release = mechanism.release(x)
            seconds[i] = time.perf_counter_ns() - start
            size[i] = np.abs(release.value).sum()
        found = float(spearmanr(seconds, size).statistic)
        error = 1 / np.sqrt(n)
        verdict = "within its own noise" if abs(found) < 3 * error else "BEYOND its own noise"
        print(f"{name + f', {n:,} calls':40}{found:+10.4f}   standard error {error:.4f}: {verdict}")


def peers(n: int) -> None:
    """The peers, measured by the same rules in their own environment."""
    print(f"\npeers, n = {n:,}, CPU time, ratio to psidp x plus noise at the same n")
    if not PEERS.exists():
        print("  not installed; the first lines of bench/noise.py say how")
        return
    script = Path(__file__).with_name("noise_peers.py")
    done = subprocess.run([str(PEERS), str(script), str(n), str(SIGMA)], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"  failed: {done.stderr.strip().splitlines()[-1]}")
        return
    mechanism, x = psidp.GaussianMechanism(1.0, SIGMA), np.zeros(n)
    ours = min(in_turn({"ours": lambda: mechanism.release(x)}, 50)["ours"]) / n
    one = min(_mean(lambda: mechanism.release(123.4), 5000) for _ in range(5))
    print(f"{'psidp x plus noise':40}{ours * 1e9:12.1f} ns an entry")
    print(f"{'psidp release of a float':40}{one * 1e9:12.1f} ns")
    for row in json.loads(done.stdout):
        if row["seconds"] is None:
            print(f"{row['name']:40}{'':>12} {row['note']}")
            continue
        base = one if row["scalar"] else ours
        print(f"{row['name']:40}{row['seconds'] * 1e9:12.1f} ns{row['seconds'] / base:12,.1f} x {row['note']}")


def main(words: list[str] | None = None) -> None:
    """All of it, or a quick look."""
    parser = argparse.ArgumentParser(prog="bench.noise", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    quick = parser.parse_args(words).quick
    print(f"psidp {psidp.__version__}, numpy {np.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    vectors(10**6, 5 if quick else 40)
    scalars(2000 if quick else 20_000)
    timing(10_000 if quick else 100_000)
    peers(10**4)


if __name__ == "__main__":
    main()
