"""The bridge to mbi: it gets a cube's residuals with independent noise, and draws rows that have its tables."""

import json
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from psidp import Curator, ask
from psidp.bridges import mbi
from psidp.errors import MissingExtraError

SCRIPT = """
import sys, json, warnings
warnings.simplefilter("ignore")
import jax
jax.config.update("jax_enable_x64", True)
import numpy as np, psidp
from mbi import Dataset, Factor
from psidp.bridges import mbi
cube = psidp.Cube.from_dict(json.load(sys.stdin))
domain = mbi.domain_of(cube)
shape = tuple(c.size for c in cube.columns)
counts = np.arange(np.prod(shape), dtype=float).reshape(shape) % 7
image = {}
for made in mbi.measurements(cube):
    table = Factor(domain, counts).project(made.clique)
    image["-".join(made.clique)] = [np.asarray(made.query(table)).tolist(), made.stddev,
                                    np.asarray(made.noisy_measurement).tolist()]
print(json.dumps({"image": image, "rows": mbi.synthetic_rows(cube, steps=300)}))
"""  # a process of its own: JAX starts threads, and tests that fork do not get on with them


@pytest.fixture(scope="module")
def cube():
    dice = np.random.default_rng(4)
    frame = pd.DataFrame(
        {"ward": dice.choice(["A", "B", "C"], 3000, p=[0.5, 0.4, 0.1]), "age": dice.integers(0, 90, 3000)}
    )
    columns = {"ward": ["A", "B", "C"], "age": ask.ordered([0, 18, 40, 65, 90])}
    return Curator(frame, None).cube(columns, ask.up_to(2)).release(psi=1.0)


@pytest.fixture(scope="module")
def told(cube):
    if find_spec("mbi") is None:
        pytest.skip("mbi is not installed, ./dev test installs it")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], input=cube.to_json(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_measurement_asks_for_what_was_released(cube, told):
    marginals, counts = cube.marginals, np.arange(12, dtype=np.int64).reshape(3, 4) % 7
    assert len(told["image"]) == len(marginals.residuals)
    for part in marginals.residuals:
        asked, stddev, released = told["image"]["-".join(cube.columns[i].name for i in part)]
        exact = marginals.encode(part, (0, 1), counts) / marginals.scales(part).value
        assert np.allclose(asked, exact.reshape(-1), rtol=1e-6)
        assert stddev == cube.counted.plans[0].sigma(part)
        assert np.allclose(released, (cube.counted.coefficients[0][part] / marginals.scales(part).value).reshape(-1))


def test_synthetic_rows_have_the_tables_of_the_cube(cube, told):
    rows = pd.DataFrame(told["rows"])
    assert len(rows) == round(cube.query().value)
    found = rows.groupby(["ward", "age"]).size()
    for row in cube.table("ward", "age"):
        assert abs(found.get((row["ward"], row["age"]), 0) - row["value"]) < 5 * row["standard_error"]


def test_without_the_library_the_refusal_names_the_install_line(cube, monkeypatch):
    monkeypatch.setitem(sys.modules, "mbi", None)
    with pytest.raises(MissingExtraError, match=r"psidp\[synth\]"):
        mbi.measurements(cube)
