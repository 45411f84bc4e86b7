"""The Mills ratio and its differences, against ball arithmetic."""

import numpy as np
import pytest
from flint import arb, ctx

from psidp.maths import mills as module
from psidp.maths.mills import mills, mills_difference
from reference.make_mills import coefficients
from reference.oracle import upper_tail


def true_mills(x):
    ctx.prec = 400
    return upper_tail(x) * (x * x / 2).exp() * (2 * arb.pi()).sqrt()


@pytest.mark.parametrize("name", ["MILLS", "RATIO"])
def test_the_stored_coefficients_are_those_their_script_makes(name):
    assert list(getattr(module, name)) == coefficients()[name]


@pytest.mark.parametrize(("low", "high"), [(-0.625, 0), (0, 1), (1, 10), (10, 1e3), (1e3, 1e8)])
def test_mills_is_within_seven_units_of_the_truth(low, high):
    x = np.random.default_rng(1).uniform(low, high, 2000)
    error = [abs(float(arb(float(y)) / true_mills(arb(float(v))) - 1)) for v, y in zip(x, mills(x), strict=True)]
    assert max(error) < 7e-16  # 25 Horner steps without fma


def test_the_difference_does_not_cancel_where_the_ratios_meet():
    rng = np.random.default_rng(2)
    psi = 10 ** rng.uniform(-8, 2, 4000)
    m = np.select([rng.random(4000) < 0.5], [psi * rng.uniform(0.5, 4, 4000)], 10 ** rng.uniform(-8, 2.9, 4000))
    m = np.maximum(m, psi / 2 - 0.6)
    keep = m < 1e3
    psi, m = psi[keep], m[keep]
    difference = mills_difference(m - psi / 2, m, psi)
    for value, p, at in zip(difference, psi, m, strict=True):
        h, middle = arb(float(p)) / 2, arb(float(at))
        truth = true_mills(middle - h) - true_mills(middle + h)
        # a = m - psi/2 is rounded by the caller here, which moves R(a) by at most psi units
        assert abs(float(arb(float(value)) / truth - 1)) < 2e-15 + 3e-16 * p


def test_a_lone_entry_and_a_vector_agree_to_the_last_bit():
    x = np.random.default_rng(3).uniform(-0.6, 50, 200)
    assert [mills(np.float64(v)) for v in x] == list(mills(x))
