"""What every test stands on: the same draws each time, Triton in its interpreter, no tests of torch without torch.

The suite gives the same answer on every machine at every load. Hypothesis draws the same examples each time and keeps
none of them; neither a deadline nor a health check asks how fast the machine is. Each test has keys, global generators
and seeds of its own, made from its name. PSIDP_EXAMPLES=fresh draws everything afresh; with PSIDP_SEED, which `./dev
fuzz` sets as well, afresh but so that the same seed repeats it.
"""

import gc
import os
import random
import re
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

EXAMPLES = os.environ.get("PSIDP_EXAMPLES", "same")
SEED = os.environ.get("PSIDP_SEED", "")
SCRIPTED = EXAMPLES == "same" or bool(SEED)
BY_MACHINE = (
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
)
settings.register_profile("same", database=None, deadline=None, suppress_health_check=BY_MACHINE, derandomize=True)
settings.register_profile("fresh", settings.get_profile("same"), derandomize=False)
settings.load_profile(EXAMPLES)
os.environ["TRITON_INTERPRET"] = "1"
os.environ.pop("COLUMNS", None)  # as wide as the test says, and not as the process that started this one

ROOT = Path(__file__).parent
TORCH = re.compile(r"^(import|from) (torch|triton|opacus|transformers|peft)\b", re.MULTILINE)
NEED_TORCH = {path for path in (*ROOT.glob("tests/**/*.py"), *ROOT.glob("src/psidp/bridges/**/*.py"))
              if TORCH.search(path.read_text(encoding="utf-8"))}  # fmt: skip
SERVERS = {"server", "postgres", "postgresql", "spark", "chromium", "served", "tab"}
SPARK_CAMPAIGNS = {"conditions", "neighbours"}
LONGEST = (
    "spark",
    "tests/test_fuzz.py",
    "tests/tables/test_stream.py",
    "tests/bridges/test_torch_kernels.py",
)
"""Groups of tests that take longest; they begin first, so that no process ends long after the others."""

collect_ignore = ["tests/bridges/ranked.py"]  # a script, which has no tests
if not (find_spec("torch") and find_spec("triton")):
    collect_ignore += [str(path) for path in NEED_TORCH] + [str(ROOT / "src" / "psidp" / "bridges" / "torch")]


class ScriptedEntropy:
    """The operating system's bytes, the same in every run for each test.

    Other processes and threads have the real ones: a child that repeats its parent's keys is what tests look for.
    """

    def __init__(self):
        self.real = os.urandom
        self.process = os.getpid()
        self.bytes = random.Random(0)

    def begin(self, name):
        """Start the bytes of a test."""
        self.bytes = random.Random(name)

    def __call__(self, n):
        """So many bytes."""
        mine = os.getpid() == self.process and threading.current_thread() is threading.main_thread()
        return self.bytes.randbytes(n) if mine else self.real(n)


entropy = ScriptedEntropy()
os.register_at_fork(after_in_child=gc.freeze)  # to end a DuckDB connection of the parent in a child crashes the child


def pytest_configure():
    """From here on, imports of test modules included, keys are scripted."""
    if SCRIPTED:
        os.urandom = entropy
        _begin("collection")


def pytest_collection_modifyitems(items):
    """Mark what needs a server, a browser, Spark or torch as slow; let the groups that take longest begin."""
    for item in items:
        if item.path in NEED_TORCH or {*item.fixturenames, *_chosen(item)} & SERVERS:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: _turn(item.nodeid))


def pytest_xdist_make_scheduler(config, log):
    """Tests of a file stay in one process, and so do all tests of Spark, which is slow to start."""
    if config.getoption("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return _group(nodeid)

    return Groups(config, log)


def _turn(nodeid):
    """When a test's group begins."""
    names = {_group(nodeid), nodeid.partition("::")[0]}
    return next((turn for turn, name in enumerate(LONGEST) if name in names), len(LONGEST))


def _group(nodeid):
    """The group of tests that share a process."""
    file, _, rest = nodeid.partition("::")
    words = set(re.split(r"[^a-z]", rest))
    if file == "tests/test_fuzz.py":  # campaigns share nothing but Spark
        return "spark" if words & SPARK_CAMPAIGNS else nodeid
    return "spark" if words & {"spark", "sparks"} else file


def _chosen(item):
    """Words among the parameters of a test, such as the name of an engine."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return {value for value in parameters if isinstance(value, str)}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Each test has draws of its own, whichever tests ran before it."""
    if SCRIPTED:
        _begin(item.nodeid)
    return (yield)


def pytest_unconfigure():
    """Leave entropy as it was."""
    os.urandom = entropy.real


def _begin(name):
    """Seed everything that could be drawn from; torch and the pools of noise only once they are loaded."""
    name = SEED + name
    entropy.begin(name)
    random.seed(name)
    seed = random.Random(name).randrange(2**32)
    np.random.seed(seed)  # noqa: NPY002  what libraries may use
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
    if "psidp.noise.normal_source" in sys.modules:
        sys.modules["psidp.noise.normal_source"].forget()
