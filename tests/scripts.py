"""Scripts of this folder, run as processes of their own, so that forking is safe."""

import json
import os
import subprocess
import sys
from pathlib import Path

__all__ = ["script"]

HERE = Path(__file__).parent


def script(name, *arguments):
    """What a script, named by its path in this folder, prints as JSON."""
    done = subprocess.run(
        [sys.executable, HERE / name, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
