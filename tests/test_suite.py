"""The suite itself: the same draws in every run, whatever ran before, and a quiet end."""

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("tests", "fuzz") for path in (ROOT / folder).rglob("*.py"))

DRAWS = """
import random
import numpy as np
from hypothesis import given, strategies as st
import psidp
from psidp.mechanism.gaussian import GaussianMechanism

def draw():
    noise = GaussianMechanism(1.0, 1.0).release(np.zeros(3)).value.tolist()
    return noise, GaussianMechanism(1.0, 1.0).release(0.0).value, random.random(), np.random.random()

AT_IMPORT = draw()

def test_one():
    print("import", AT_IMPORT)
    print("one", draw())

def test_two():
    print("two", draw())

@given(st.floats())
def test_three(x):
    print("three", x)
"""


def pytest_run(folder, source, *options, **environment):
    """What a run of the suite's own settings prints on a file of tests."""
    file = folder / "test_it.py"
    file.write_text(source)
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-c", os.devnull, "-q", "-s"]
    surroundings = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])} | environment
    done = subprocess.run(
        [*command, *options, str(file)], capture_output=True, text=True, cwd=folder, env=os.environ | surroundings
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def lines(done, *words):
    return [line.lstrip(".") for line in done.stdout.splitlines() if line.lstrip(".").startswith(words)]


def test_a_test_draws_the_same_in_every_run_whichever_ran_before(tmp_path):
    whole, again = pytest_run(tmp_path, DRAWS), pytest_run(tmp_path, DRAWS)
    assert len(lines(whole, "import", "one", "two", "three")) > 50
    assert whole.stdout.splitlines()[:-1] == again.stdout.splitlines()[:-1]  # the last says how long it took
    alone = pytest_run(tmp_path, DRAWS, "-k", "two")
    assert lines(alone, "two") == lines(whole, "two")


def test_fresh_examples_are_fresh(tmp_path):
    first, second = (pytest_run(tmp_path, DRAWS, PSIDP_EXAMPLES="fresh") for _ in range(2))
    for word in ("one", "two", "three"):
        assert lines(first, word) != lines(second, word)


def test_a_seed_repeats_fresh_draws(tmp_path):
    first, again, other = (
        lines(
            pytest_run(tmp_path, DRAWS, f"--hypothesis-seed={seed}", PSIDP_EXAMPLES="fresh", PSIDP_SEED=seed),
            "one",
            "three",
        )
        for seed in ("5", "5", "6")
    )
    assert first == again != other


def unseeded(tree):
    """Generators that are made from nothing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and not node.args and not node.keywords:
            name = ast.unparse(node.func)
            if name.endswith(("default_rng", "random.Random", "RandomState", "Generator().seed")) or name == "Random":
                yield f"{name}() in line {node.lineno}"


def test_no_test_makes_a_generator_without_a_seed():
    found = {str(path): list(unseeded(ast.parse(path.read_text()))) for path in FILES}
    assert {path: names for path, names in found.items() if names} == {}
    assert list(unseeded(ast.parse("np.random.default_rng()"))) != []
