"""A version of psidp in a process of its own, which answers line by line (worker.py)."""

import subprocess
import sys
import tempfile
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

    def __init__(self, python: Path, version: str, sources: list[Path], home: Path, libraries: Iterable[str]) -> None:
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115  what engines print, shown if the process ends
        words = [python, "-P", "-m", "bench.since_0_2.worker", version, *libraries]
        self._process = subprocess.Popen(
            words, cwd=ROOT, text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said,
            env=environment.variables([ROOT, ROOT / "tests", *sources]),
        )  # fmt: skip
        self._thread = ThreadPoolExecutor(1)
        found = self.ask({"do": "where"})
        if not Path(found.get("folder", "/")).is_relative_to(home):
            raise RuntimeError(f"the worker of {version} must use the psidp of {home}, got {found}.")

    @classmethod
    def of_0_2(cls, libraries: Iterable[str] = ()) -> Self:
        """Version 0.2 in its environment, which may take libraries that it has not from other folders."""
        return cls(environment.PYTHON, "0_2", [], environment.HOME, libraries)

    @classmethod
    def now(cls, libraries: Iterable[str] = ()) -> Self:
        """The version of this tree, in the environment that runs this."""
        return cls(Path(sys.executable), "now", [ROOT / "src"], ROOT / "src", libraries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._thread.shutdown(cancel_futures=True)
        self._said.close()

    def ask(self, asked: Data) -> Data:
        """What it answers; {"error": ...} where it could not."""
        try:
            print(dumps(asked), file=self._process.stdin)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return loads(line) if line else {"error": f"the process ended: {self._last_words()}"}

    def _last_words(self) -> str:
        self._said.seek(0)
        return self._said.read()[-2000:]

    def answers(self, lines: Iterable[Data]) -> Iterator[Data]:
        """The answers to many, which it works on whether somebody waits or not."""
        return self._thread.map(self.ask, lines)
