"""Certified accounting: our times and widths, and the peers' numbers with the side of the proved interval they are on.

Peers run in the environment of bench/peers.txt (.venv-peers), each call in a process of its own with a time limit.
"""

import json
import subprocess
import sys
from pathlib import Path
from textwrap import indent
from time import perf_counter

import numpy as np

from bench.timing import Report, interleave
from psidp import DPSGD, account, calibrate

ROOT = Path(__file__).parent.parent
RUNS = {
    "A": (1.0, 0.01, 1000),
    "B": (0.8, 0.004, 15000),
    "C": (0.6, 0.001, 100000),
    "D": (2.0, 0.05, 2000),
    "E": (1.1, 256 / 60000, 14062),
}
TARGETS = {"A": 2.0, "B": 4.0, "C": 6.0, "D": 5.0, "E": 2.0}
PEERS = {
    "dp-accounting 0.6.0, default grid": """
import dp_accounting as d
step = d.PoissonSampledDpEvent(q, d.GaussianDpEvent(s))
value = d.pld.PLDAccountant().compose(d.SelfComposedDpEvent(step, T)).get_epsilon(delta)
""",
    "prv-accountant 0.2.0, eps_error 0.1, upper": """
from prv_accountant.dpsgd import DPSGDAccountant
value = DPSGDAccountant(noise_multiplier=s, sampling_probability=q, eps_error=0.1, delta_error=delta / 1000,
                        max_steps=T).compute_epsilon(delta=delta, num_steps=T)[2]
""",
    "Opacus RDP": "from opacus.accountants import RDPAccountant as K",
    "Opacus PRV": "from opacus.accountants import PRVAccountant as K",
    "Opacus GDP": "from opacus.accountants import GaussianAccountant as K",
}
OPACUS = "\nk = K()\nk.history = [(s, q, T)]\nvalue = k.get_epsilon(delta)\n"


def run(full: bool, seed: int) -> list[Report]:
    """Ours first, then the peers at two deltas, then (full) two hundred proofs by ball arithmetic and the whole box."""
    reports = [_ours(), _peers(1e-5, 120.0), _peers(1e-12, 120.0)]
    return [*reports, _box(2000, seed), _proofs(seed)] if full else reports


def _ours() -> Report:
    """Median over the five settings of the best CPU time of each question."""
    report = Report("Certified accounting, pure NumPy, five settings, delta = 1e-5 (median of best times)")
    curves = {name: account(DPSGD(*values)) for name, values in RUNS.items()}
    schedule = account([DPSGD(1.0 + 0.02 * i, 0.01, 20) for i in range(50)])

    def median(contenders: dict[str, object]) -> float:
        times = interleave(contenders, rounds=15, seconds=8.0)  # type: ignore[arg-type]
        return float(np.median(list(times.values()))) * 1e3

    report.add(
        "epsilon, both directions", median({n: lambda c=c: c.epsilon(1e-5) for n, c in curves.items()}), "ms", 3.0
    )
    noise = {
        n: lambda n=n: calibrate(epsilon=TARGETS[n], delta=1e-5, sampling_rate=RUNS[n][1], steps=RUNS[n][2])
        for n in RUNS
    }
    report.add("calibrate", median(noise), "ms", 10.0)
    report.add(
        "guarantee(kappa=1e-10)", median({n: lambda c=c: c.guarantee(1e-10) for n, c in curves.items()}), "ms", 20.0
    )
    report.add("epsilon of a 50-group schedule", median({"s": lambda: schedule.epsilon(1e-5)}), "ms", 40.0)
    widths = [interval.width / interval.lower for interval in (c.epsilon(1e-5) for c in curves.values())]
    report.add("largest relative width", max(widths), "", 1e-9)
    return report


def _peers(delta: float, limit: float) -> Report:
    """Each peer's number and time, and whether the number is on the safe side of the proved interval."""
    report = Report(f"Peers at delta = {delta:g}: their epsilon, their seconds, and where it stands")
    python = ROOT / ".venv-peers" / "bin" / "python"
    if not python.exists():
        report.say("peers", "no .venv-peers here; make it from bench/peers.txt")
        return report
    for name, values in RUNS.items():
        interval = account(DPSGD(*values)).epsilon(delta)
        report.say(f"{name} certified", f"[{interval.lower:.12g}, {interval.upper:.12g}]")
        for peer, code in PEERS.items():
            answer = _ask(python, code + (OPACUS if peer.startswith("Opacus") else ""), values, delta, limit)
            if isinstance(answer, str):
                report.say(f"{name} {peer}", answer)
                continue
            epsilon, seconds = answer
            side = "safe" if epsilon >= interval.upper else ("UNSAFE" if epsilon < interval.lower else "inside")
            report.rows.append((f"{name} {peer}", f"{epsilon:.8g}", f"{seconds:.3g} s", side))
    return report


def _ask(
    python: Path, code: str, values: tuple[float, float, int], delta: float, limit: float
) -> tuple[float, float] | str:
    """A peer's value and seconds, or what went wrong in one line."""
    s, q, steps = values
    lines = [f"s, q, T, delta = {s!r}, {q!r}, {steps!r}, {delta!r}", "import json, time, warnings"]
    lines += ["warnings.simplefilter('ignore')", "for _ in range(2):  # the second time without the imports"]
    lines += ["    t = time.process_time()", indent(code.strip(), "    ")]
    lines += ["print(json.dumps([float(value), time.process_time() - t]))"]
    try:
        done = subprocess.run(
            [str(python), "-c", "\n".join(lines)], capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {limit:g} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["failed"])[-1][:90]
    value, seconds = json.loads(done.stdout.strip().splitlines()[-1])
    return float(value), float(seconds)


def _box(cases: int, seed: int) -> Report:
    """Random settings of the DP-SGD box: how many are answered narrowly enough."""
    rng, missed, methods = np.random.default_rng(seed), 0, {}
    begin = perf_counter()
    for _ in range(cases):
        sigma, q = np.exp(rng.uniform(np.log([0.5, 5e-4]), np.log([5.0, 0.3])))
        steps, delta = int(np.exp(rng.uniform(0.0, np.log(3e5)))), 10.0 ** rng.uniform(-12.0, -2.0)
        interval = account(DPSGD(float(sigma), float(q), steps)).epsilon(float(delta))
        missed += not interval.width <= max((1e-6 if steps >= 50 else 1e-3) * interval.lower, 1e-9)
        methods[interval.method] = methods.get(interval.method, 0) + 1
    report = Report(f"{cases} random settings of the DP-SGD box, seed {seed}")
    report.add("wider than asked", missed, "", 0)
    report.say("methods", ", ".join(f"{count} {method}" for method, count in sorted(methods.items())))
    report.say("time", f"{perf_counter() - begin:.0f} s in all")
    return report


def _proofs(seed: int, cases: int = 200) -> Report:
    """Intervals proved again by ball arithmetic on another contour."""
    script = ROOT / "tests" / "accounting" / "proof.py"
    words = [sys.executable, "-W", "ignore", str(script), "--seed", str(seed), "--cases", str(cases)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    report = Report(f"{cases} random intervals proved again by ball arithmetic, seed {seed}")
    report.add("not proved", cases - done.stdout.count("proved ["), "", 0)
    if done.returncode:
        report.say("failure", (done.stderr.strip().splitlines() or ["?"])[-1])
    return report
