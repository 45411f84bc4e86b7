"""Streams of tables killed at lines of publish, on both ledgers, with and without a seal.

A kill costs two processes that open engine and ledger, so that the suite takes every seventh line; every line:
`python tests/curator/stream_kills.py ledger.db 1 ""`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ibis")
HERE = Path(__file__).parent


def killed(url, stride, seal=""):
    done = subprocess.run(
        [sys.executable, HERE / "stream_kills.py", url, str(stride), str(seal)],
        capture_output=True,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def unharmed(outcome, kills):
    """Each stream was paid for once and has two periods, stored once and never changed; the last was not killed."""
    assert outcome["kills"] > kills
    assert (outcome["changed"], outcome["twice"], outcome["last"]) == (0, 0, 0)
    assert (outcome["streams"], outcome["answers"]) == (outcome["kills"] + 1, 2 * outcome["kills"] + 2)


def test_killed_at_lines_of_publish_and_resumed_it_has_the_same_numbers_at_one_price(sqlite_url):
    unharmed(killed(sqlite_url, 7), 12)


def test_killed_at_many_lines_with_a_seal(sqlite_url, tmp_path):
    unharmed(killed(sqlite_url, 25, tmp_path / "seal"), 4)


def test_killed_at_many_lines_on_postgresql(server):
    unharmed(killed(server.place("stream_killed"), 29), 3)
