"""The documentation is built with what is installed."""

import shutil
import subprocess
import sys
from pathlib import Path

CLONE = Path(__file__).resolve().parents[2]


def test_the_site_is_built_without_a_warning(tmp_path):
    for name in (
        "docs",
        "CHANGELOG.md",
        "README.md",
        "SECURITY.md",
        "CONTRIBUTING.md",
        "CITATION.cff",
        "examples",
        "src",
        "dev",
    ):
        source = CLONE / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    built = [
        sys.executable,
        "-m",
        "sphinx",
        "--builder",
        "html",
        "--fail-on-warning",
        "--keep-going",
        "--quiet",
        "docs",
        "site",
    ]
    done = subprocess.run(built, check=False, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "index.html").is_file()
