"""What `./dev package` tries before a release: every extra, with smoke tests that exist, on the Pythons here."""

import sys
from pathlib import Path

from package.__main__ import LARGE, SETS, SMOKE, extras_of
from package.pythons import found

ROOT = Path(__file__).parent.parent
OURS = {"test", "check"}  # for those who work on psidp


def test_every_extra_is_tried():
    tried = {extra for name in SETS for extra in name.split()}
    assert tried == extras_of(ROOT / "pyproject.toml") - OURS
    assert set(LARGE) < set(SETS)


def test_every_smoke_test_is_used_and_there():
    named = {f"test_{name}.py" for names in SETS.values() for name in names} | {"test_installed.py", "test_cluster.py"}
    assert named == {path.name for path in SMOKE.glob("test_*.py")}


def test_a_python_that_is_found_runs():
    assert all(Path(path).exists() and minor >= 11 for minor, path in found().items())
    assert sys.version_info >= (3, 11)
