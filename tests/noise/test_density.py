"""Bounds of the normal density from integers, judged by ball arithmetic."""

import numpy as np
import pytest
from flint import arb, ctx

from psidp.noise.density import density_bounds


def phi(x):
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


@pytest.mark.parametrize("precision", [32, 96, 160, 700])
def test_bounds_hold_the_density_and_are_three_apart_at_most(precision):
    ctx.prec = precision + 200
    rng = np.random.default_rng(1)
    for shift in (41, 91, 155):
        for x in [0.0, 1e-9, 3.5139, 9.514, 12.0, *rng.uniform(0, 14, 60)]:
            number = int(x * 2**shift)
            low, high = density_bounds(number, number, shift, precision)
            true = phi(arb(number) / arb(2) ** shift) * arb(2) ** precision
            assert low <= true <= high
            assert high - low <= 3
    ctx.prec = 53


def test_bounds_hold_the_density_on_a_whole_interval():
    ctx.prec = 300
    for low in (0, 3 << 90, 9 << 90):
        high = low + (1 << 85)
        least, most = density_bounds(low, high, 91, 96)
        assert least <= phi(arb(high) / arb(2) ** 91) * arb(2) ** 96
        assert phi(arb(low) / arb(2) ** 91) * arb(2) ** 96 <= most
    ctx.prec = 53
