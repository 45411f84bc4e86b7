"""python -m package: build wheel and sdist, try both in clean environments, and print what passed in each."""

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from package.environment import ENDS, ROOT, Broken, Environment
from package.pythons import MINORS, found

__all__ = ["LARGE", "SETS", "main"]

SMOKE = ROOT / "package" / "smoke"
SETS = {  # extras that are installed together, and the smoke tests that they are for
    "": ("core", "commands", "missing"),
    "db": ("table",),
    "plot": ("figures",),
    "web": ("page",),
    "certify": ("certified",),
    "db excel": ("table", "excel"),
    "db postgres": ("table", "postgres"),
    "db spark": ("table", "spark"),
    "all": ("core", "commands", "table", "figures", "page", "certified", "whole"),
    "all docs": ("site",),
    "dp-accounting": ("dp_accounting",),
    "db synth": ("table", "synthetic"),
    "torch": ("torch",),
    "opacus": ("torch", "opacus"),
}
LARGE = ("db synth", "torch", "opacus")
"""Sets that bring JAX or torch, gigabytes each."""


def main(words: Sequence[str] | None = None) -> int:
    """Build, try, print; 1 when anything is broken."""
    parser = argparse.ArgumentParser(prog="./dev package", description="Build wheel and sdist and try both.")
    parser.add_argument("--python", action="append", metavar="3.N", help="only these Pythons (all that are found)")
    parser.add_argument("--end", choices=list(ENDS), help="one end of the dependencies (both)")
    parser.add_argument("--extras", action="append", choices=list(SETS), help="only these sets of extras (all)")
    parser.add_argument("--without-large", action="store_true", help="leave out JAX and torch, gigabytes each")
    parser.add_argument("--without-cluster", action="store_true", help="leave out the cluster of Spark")
    chosen = parser.parse_args(words)
    pythons = {minor: path for minor, path in found().items() if f"3.{minor}" in (chosen.python or [f"3.{minor}"])}
    if not pythons:
        parser.error(f"no Python 3.{MINORS[0]} or newer with venv was found on the PATH")
    for minor in MINORS:
        print(f"Python 3.{minor}: {pythons.get(minor, 'left out' if chosen.python else 'not on this machine')}")
    wheel, sdist = build()
    print(f"built {wheel.name} and {sdist.name} in {wheel.parent.name}/\n")
    print("| Python | dependencies | extras | psidp from | tests passed |\n| --- | --- | --- | --- | --- |", flush=True)
    broken: list[Broken] = []
    for path in pythons.values():
        for end in [chosen.end] if chosen.end else ENDS:
            for name in chosen.extras or SETS:
                if chosen.without_large and name in LARGE:
                    continue
                broken += tried(path, end, name, wheel, SETS[name])
        if not chosen.extras:
            broken += tried(path, "newest", "all", sdist, SETS["all"])
            if not chosen.without_cluster:
                broken += tried(path, "newest", "db spark", wheel, ("cluster",))
    return 1 if broken else 0


def build() -> tuple[Path, Path]:
    """The wheel and the sdist, in dist/ and nothing else there."""
    folder = ROOT / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True, capture_output=True)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def tried(python: str, end: str, extras: str, archive: Path, tests: Sequence[str]) -> list[Broken]:
    """Print a row of the table; what broke in it."""
    with tempfile.TemporaryDirectory(prefix="psidp-package-") as folder:
        environment = Environment(Path(folder), python, end, tuple(extras.split()), archive)
        trouble: list[Broken] = []
        try:
            environment.install()
            result = str(environment.passed([SMOKE / f"test_{name}.py" for name in ("installed", *tests)]))
        except Broken as error:
            result, trouble = "BROKEN", [error]
            print(f"{error}\n", file=sys.stderr, flush=True)
        version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
        kind = "sdist" if archive.suffix == ".gz" else "wheel"
        what = f"{extras or 'none'}{' on a cluster' if 'cluster' in tests else ''}"
        print(f"| {version} | {end} | {what} | {kind} | {result} |", flush=True)
        return trouble


def extras_of(project: Path) -> set[str]:
    """The extras that a pyproject.toml names."""
    return set(tomllib.loads(project.read_text())["project"]["optional-dependencies"])


if __name__ == "__main__":
    sys.exit(main())
