"""The floating-point attack: it works on a naive sampler of our own, and finds nothing in ours."""

import re
from pathlib import Path

import numpy as np
import pytest

from psidp import GaussianMechanism

PAGE = Path(__file__).parents[2] / "docs" / "floating-point-attack.md"
RELEASES = 10**6


def test_the_page_runs_from_top_to_bottom():
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["fine_1"] == 0


def shares(draw):
    """Among outputs near 0, how many are no multiples of 2^-53: for x = 0 and for x = 1."""
    found = []
    for x in (0.0, 1.0):
        y = draw(x)
        near = y[np.abs(y) < 0.1]
        found.append((int((near * 2.0**53 % 1 != 0).sum()), near.size))
    return found


@pytest.mark.parametrize("grid", [None, 2.0**-44, 1.0])
def test_a_million_releases_show_no_difference(grid):
    mechanism = GaussianMechanism(1.0, 1.0, grid=grid)
    (fine_0, near_0), (fine_1, near_1) = shares(lambda x: mechanism.release(np.full(RELEASES, x)).value)
    assert near_0 > 70_000
    assert near_1 > 40_000
    assert fine_0 == fine_1 == 0


def test_single_releases_show_no_difference():
    mechanism = GaussianMechanism(1.0, 1.0)
    draw = np.vectorize(lambda x: mechanism.release(float(x)).value)
    (fine_0, near_0), (fine_1, near_1) = shares(lambda x: draw(np.full(30_000, x)))
    assert min(near_0, near_1) > 500
    assert fine_0 == fine_1 == 0


def test_a_naive_sampler_gives_itself_away():
    rng = np.random.default_rng(1)
    (fine_0, near_0), (fine_1, _) = shares(lambda x: x + rng.normal(0.0, 1.0, RELEASES))
    assert fine_0 > 0.8 * near_0
    assert fine_1 == 0
