"""The suite's properties hold for examples that nobody has seen, and its tests of chance under fresh keys."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from random import Random

from fuzz.campaign import Relapse

__all__ = ["RELAPSES", "check", "explore", "slices"]

ROOT = Path(__file__).parents[1]
RELAPSES: dict[str, Relapse] = {}
"""None: the tests run in a process of their own, where nothing is patched."""


def explore(random: Random) -> None:
    """One file of properties, or one test of the noise's law, once more."""
    check(random.choice(slices()), random.randrange(2**32))


def slices() -> list[list[str]]:
    """What pytest is told to run in one round."""
    properties = [
        [str(path), "-m", "hypothesis"]
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if any(_is_property(test) for test in _tests(path))
    ]
    law = ROOT / "tests" / "noise" / "test_law.py"
    return properties + [[f"{law}::{test.name}"] for test in _tests(law)]


def _tests(path: Path) -> list[ast.FunctionDef]:
    """The tests of a file, read and not run."""
    body = ast.parse(path.read_text()).body
    return [node for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def _is_property(test: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator).startswith("given(") for decorator in test.decorator_list)


def check(part: list[str], seed: int) -> None:
    """Run a part of the suite on fresh examples; what fails is told as pytest tells it, shortest example included."""
    options = ["-p", "no:cacheprovider", "-q", "-x", f"--hypothesis-seed={seed}", "--no-header", "--tb=short"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *part],
        cwd=ROOT,
        env=os.environ | {"PSIDP_EXAMPLES": "fresh", "PSIDP_SEED": str(seed)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"pytest {' '.join(part)} --hypothesis-seed={seed}\n{done.stdout[-8000:]}{done.stderr}"
