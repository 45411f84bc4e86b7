"""Triton's kernels run in its interpreter here, chosen before the first is read; no torch, no tests of its bridge.

No test asserts a time, so hypothesis sets no deadline either.
"""

import os
from importlib.util import find_spec

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
os.environ["TRITON_INTERPRET"] = "1"

there = find_spec("torch") and find_spec("triton")
collect_ignore_glob = [] if there else ["src/psidp/bridges/torch/*", "tests/bridges/test_torch_*.py"]
