"""What it costs to begin: the import, the first conversion and the command line, each beside `import numpy`."""

import resource
import subprocess
import sys

from bench.timing import Report

STARTS: dict[str, tuple[list[str], float]] = {
    "import psidp": (["-c", "import psidp"], 0.15),
    "first epsilon_from_psi": (["-c", "import psidp; psidp.epsilon_from_psi(1.0, 1e-5)"], 2.0),
    "psidp convert": (["-m", "psidp", "convert", "--psi", "1", "--to", "auc"], 3.0),
    "psidp --help": (["-m", "psidp", "--help"], 3.0),
}


def run(full: bool, seed: int) -> list[Report]:
    """CPU seconds of a new process, net of an empty interpreter, best of many, in turns."""
    words = {"empty": ["-c", "pass"], "numpy": ["-c", "import numpy"], **{name: w for name, (w, _) in STARTS.items()}}
    best = dict.fromkeys(words, float("inf"))
    for _ in range(40 if full else 15):
        for name, arguments in words.items():
            best[name] = min(best[name], _seconds(arguments))
    net = {name: seconds - best["empty"] for name, seconds in best.items()}
    report = Report("start: CPU time of a new process, net of an empty interpreter")
    report.add("import numpy", net["numpy"], "s CPU")
    for name, (_, most) in STARTS.items():
        report.add(name, net[name] / net["numpy"], "x import numpy", at_most=most, note=f"{net[name]:.3f} s")
    return [report]


def _seconds(arguments: list[str]) -> float:
    """CPU seconds of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
