"""A clean environment: a Python, one end of the dependencies, some extras, and psidp as it will be published."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ENDS", "Broken", "Environment"]

ROOT = Path(__file__).parent.parent
ENDS = {"lowest": ["--resolution", "lowest-direct"], "newest": []}
"""Direct dependencies at their lower bounds (the first above with a wheel for this Python), or the newest of all."""

UV = str(Path(sys.executable).with_name("uv"))


class Broken(Exception):
    """What did not install or run, in its own words."""


@dataclass(frozen=True)
class Environment:
    """One row of the matrix, in a folder of its own."""

    folder: Path
    python: str
    end: str
    extras: tuple[str, ...]
    archive: Path

    def install(self) -> None:
        """Make it, with psidp from the archive alone."""
        wanted = [word for extra in self.extras for word in ("--extra", extra)]
        wheels = ["--only-binary", ":all:", "--no-binary", "pyspark"]  # PySpark is published as source alone
        pins = self.folder / "pins.txt"
        self._run(UV, "venv", "--quiet", "--python", self.python, str(self.folder / "venv"))
        self._run(
            UV, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python", self.interpreter, *wheels,
            *ENDS[self.end], *wanted, "--output-file", str(pins), str(ROOT / "pyproject.toml"),
        )  # fmt: skip
        named = f"psidp[{','.join(self.extras)}] @ {self.archive.as_uri()}"
        built = [*wheels, "--no-binary", "psidp"] if self.archive.suffix == ".gz" else wheels
        self._run(
            UV, "pip", "install", "--quiet", "--python", self.interpreter, *built, "--constraint", str(pins), named,
            "pytest",
        )  # fmt: skip

    def passed(self, files: list[Path]) -> int:
        """How many smoke tests passed; all of them, or it is broken."""
        said = self._run(
            self.interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-c",
            os.devnull,
            f"--rootdir={self.folder}", f"--confcutdir={ROOT / 'package'}", "-W", "ignore", *map(str, files),
        )  # fmt: skip
        last = said.strip().splitlines()[-1]
        counted = re.fullmatch(r"(\d+) passed in .*", last)
        if not counted:
            raise Broken(last)
        return int(counted[1])

    @property
    def interpreter(self) -> str:
        """Its Python."""
        return str(self.folder / "venv" / "bin" / "python")

    def version(self, *names: str) -> str:
        """The versions of a few libraries in it."""
        pins = dict(line.split("==") for line in (self.folder / "pins.txt").read_text().split() if "==" in line)
        return ", ".join(f"{name} {pins[name]}" for name in names if name in pins)

    def _run(self, *command: str) -> str:
        """What a command prints; it knows nothing of the clone."""
        clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        clean["PATH"] = f"{self.folder / 'venv' / 'bin'}{os.pathsep}{clean['PATH']}"
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, env=clean)
        if done.returncode != 0:
            raise Broken(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout
