"""Synthetic rows through mbi."""

import pandas

import psidp
from psidp import ask
from psidp.bridges import mbi


def test_rows_are_drawn_from_a_cube():
    frame = pandas.DataFrame({"ward": ["A", "B", "B"] * 500, "old": ["yes", "no"] * 750})
    cube = psidp.Curator(frame, None).cube({"ward": ["A", "B"], "old": ["yes", "no"]}, ask.up_to(2)).release(psi=5.0)
    rows = mbi.synthetic_rows(cube, rows=1500, steps=300)
    assert abs(rows["ward"].count("A") - 500) < 30
