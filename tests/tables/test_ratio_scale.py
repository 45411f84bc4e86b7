"""Ratios of terms with large or small bounds: the same as those of ordinary ones, in another unit."""

import warnings

import numpy as np
import pytest

from psidp import ask
from psidp.tables.estimate import Cells

VALUES = np.array([[250.0, 100.0], [-3.0, 40.0], [0.5, 0.25]])


def estimates(up, down):
    """Of totals of which each has its own unit, 2^up and 2^down."""
    measure = ask.ratio(ask.sum("x", 0, 2.0**up), ask.sum("y", 0, 2.0**down)).measure
    scales = np.ldexp(1.0, [up, down])
    return [e for (e,) in measure.estimates(Cells(VALUES * scales, np.array([2.0, 3.0]) * scales, 0.0, 0.95))]


@pytest.mark.parametrize(("up", "down"), [(0, 3), (700, 0), (0, 700), (-700, 0), (0, -700), (840, 840), (-840, -840)])
def test_a_ratio_has_an_interval_whatever_the_unit_of_its_terms(up, down):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = estimates(up, down)
    for e, plain in zip(found, estimates(0, 0), strict=True):
        numbers = [(x.value, x.standard_error, x.lower, x.upper) for x in (e, plain)]
        assert numbers[0] == tuple(np.ldexp(numbers[1], up - down))
        assert e.flag == plain.flag
