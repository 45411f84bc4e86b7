"""Trainings with correlated noise killed at lines of a step; the suite takes a sample of the lines.

Every line: `python tests/bridges/training_kills.py FOLDER sampled 1`, in a folder that is empty.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize(("order", "stride", "kills"), [("sampled", 97, 5), ("fixed", 173, 3)])
def test_killed_at_lines_of_a_step_the_price_is_as_planned_and_no_file_holds_a_secret(tmp_path, order, stride, kills):
    done = subprocess.run(
        [sys.executable, HERE / "training_kills.py", tmp_path, order, str(stride)],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] >= kills
    assert (found["leaks"], found["unpaid"]) == (0, 0)
    assert found["lost"] <= found["kills"]  # a kill loses one step at most
    assert 0.9 < found["most"] <= 1.0  # of the bound, in exact integers, between neighbours
    assert found["apart"] > kills
