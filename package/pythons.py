"""The Pythons of this machine that psidp is for."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

__all__ = ["MINORS", "found"]

MINORS = range(11, 16)
"""Python 3.11 and what comes after it, up to the one that is made now."""


def found() -> dict[int, str]:
    """The interpreter for each minor version, where there is one that runs and can make environments."""
    there = ((minor, next((path for path in _candidates(minor) if _runs(path, minor)), "")) for minor in MINORS)
    return {minor: path for minor, path in there if path}


def _candidates(minor: int) -> Iterator[str]:
    """What is on the PATH; then what pyenv has, whose own commands may point at versions that are not chosen."""
    path = shutil.which(f"python3.{minor}")
    if path:
        yield path
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    yield from map(str, sorted(root.glob(f"versions/3.{minor}.*/bin/python")))


def _runs(path: str, minor: int) -> bool:
    """Whether it starts, is that version, and has venv."""
    code = f"import sys, venv; sys.exit(sys.version_info[:2] != (3, {minor}))"
    return subprocess.run([path, "-c", code], capture_output=True, check=False).returncode == 0
