"""python -m bench [NAME ...] [--full] [--seed N]: run the chosen benchmarks and print their tables.

With --against 0.2, the same subjects beside version 0.2 in one run (bench/since_0_2).
"""

import argparse
import platform
from importlib import import_module
from pathlib import Path

import numpy as np
import scipy
from rich.console import Console

OTHERS = {
    "__init__",
    "__main__",
    "device",
    "journeys",
    "timing",
    "correlated_training",
    "training_models",
    "cube_peers",
    "curator_peers",
    "noise_peers",
    "opacus_step",
    "strategy_peers",
}
FILES = {p.stem.replace("_", "-"): p.stem for p in Path(__file__).parent.glob("*.py") if p.stem not in OTHERS}
NAMES = sorted(FILES)


def main() -> None:
    """Each benchmark is a module with run(full, seed), which gives its reports back."""
    parser = argparse.ArgumentParser(prog="./dev bench", description="Our speeds beside the peers', in one run.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)}; all when none is given")
    parser.add_argument("--full", action="store_true", help="the long versions as well")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random settings (default 1)")
    parser.add_argument("--against", choices=["0.2"], help="this version beside that one, in turns, instead of peers")
    parser.add_argument("--seconds", type=float, default=6.0, help="CPU seconds of a row of --against (default 6)")
    chosen = parser.parse_args()
    if chosen.against:
        import_module("bench.since_0_2.speed").run(chosen.names, chosen.seconds)
        return
    names = [name.replace("_", "-") for name in chosen.names]
    unknown = set(names) - set(NAMES)
    if unknown:
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    console = Console(highlight=False)
    console.print(
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, one process."
    )
    console.print("CPU time, best of many, in turns, one thread for linear algebra; a table that differs says so.\n")
    for name in names or NAMES:
        for report in import_module(f"bench.{FILES[name]}").run(full=chosen.full, seed=chosen.seed):
            report.show(console)


if __name__ == "__main__":
    main()
