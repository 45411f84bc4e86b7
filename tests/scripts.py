"""Scripts beside the tests of the ledger, run as processes of their own, so that forking is safe."""

import json
import os
import subprocess
import sys
from pathlib import Path

__all__ = ["HERE", "script"]

HERE = Path(__file__).parent / "ledger"


def script(name, *arguments):
    """The outcome of one of the scripts beside this file."""
    done = subprocess.run(
        [sys.executable, HERE / name, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
