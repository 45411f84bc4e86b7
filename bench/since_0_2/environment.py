"""Version 0.2.0, out of this repository's own history, in an environment of its own: .venv-0.2."""

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["COMMIT", "HOME", "PYTHON", "ROOT", "install", "variables"]

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".venv-0.2"
PYTHON = HOME / "bin" / "python"
COMMIT = "b98e338"
EXTRAS = "db,postgres,spark"
SHARED = ("numpy", "scipy", "duckdb", "pyarrow", "pandas", "polars", "psycopg", "pyspark")
"""Libraries of which both environments have the same version, since numbers and speeds depend on them."""


def install() -> None:
    """Make the environment, once for each set of shared versions."""
    wanted = [f"{name}=={found}" for name in SHARED if (found := _installed(name))]
    stamp, text = HOME / ".installed", f"{COMMIT}[{EXTRAS}] {' '.join(wanted)}"
    if stamp.exists() and stamp.read_text() == text:
        return
    sys.stderr.write(f"installing psidp 0.2.0 ({COMMIT}) with {EXTRAS} into {HOME.name} (once)\n")
    archive = subprocess.run(["git", "archive", COMMIT], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        sys.exit(f"The history here must hold commit {COMMIT}. In a shallow clone: git fetch --unshallow.")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(HOME / "source", filter="data")
    subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"{HOME / 'source'}[{EXTRAS}]", *wanted], check=True)
    stamp.write_text(text)


def _installed(name: str) -> str:
    """The version of a library here, or nothing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def variables(paths: Sequence[Path] = ()) -> dict[str, str]:
    """Of a worker: only these folders beside its own libraries, one thread for linear algebra, and UTC."""
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "TZ": "UTC",
    }
