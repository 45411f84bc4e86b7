"""A version of psidp in a process of its own, which answers line by line (worker.py)."""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from bench.since_0_2 import environment
from bench.since_0_2.lines import dumps, loads

__all__ = ["Process"]

Data = dict[str, Any]
ROOT = environment.ROOT


class Process:
    """Started when it is made, ended on leaving."""

    def __init__(self, python: Path, module: str, folders: list[Path], home: Path) -> None:
        self._process = subprocess.Popen(
            [python, "-P", "-m", "bench.since_0_2.worker", module], cwd=ROOT, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment.variables([ROOT, ROOT / "tests", *folders]),
        )  # fmt: skip
        self._thread = ThreadPoolExecutor(1)
        found = Path(self.ask({"do": "where"})["folder"])
        if not found.is_relative_to(home):
            raise RuntimeError(f"{module} must use the psidp of {home}, got {found}.")

    @classmethod
    def of_0_2(cls, folders: Iterable[Path] = ()) -> Self:
        """Version 0.2 in its environment, which may take libraries that it has not from other folders."""
        return cls(environment.PYTHON, "calls_0_2", list(folders), environment.HOME)

    @classmethod
    def now(cls) -> Self:
        """The version of this tree, in the environment that runs this."""
        return cls(Path(sys.executable), "calls_now", [ROOT / "src"], ROOT / "src")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._thread.shutdown(cancel_futures=True)

    def ask(self, asked: Data) -> Data:
        """What it answers; {"error": ...} where it could not."""
        try:
            print(dumps(asked), file=self._process.stdin)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return loads(line) if line else {"error": "the process ended"}

    def answers(self, lines: Iterable[Data]) -> Iterator[Data]:
        """The answers to many, which it works on whether somebody waits or not."""
        return self._thread.map(self.ask, lines)
