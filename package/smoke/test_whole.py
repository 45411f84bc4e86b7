"""What README shows first."""

import subprocess
import sys
from pathlib import Path

PSIDP = str(Path(sys.executable).with_name("psidp"))


def test_the_demo_runs_to_its_end(tmp_path):
    done = subprocess.run([PSIDP, "demo"], check=False, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "8. What it means" in done.stdout
    made = {path.name for path in (tmp_path / "psidp-demo").iterdir()}
    assert {"visits.csv", "wards_answer.csv", "plan.sql", "weekly.svg", "tables.svg", "ledger.db"} <= made
