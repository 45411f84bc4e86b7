"""Tail and quantile of the standard normal: the error that their users grant is larger than any error they make."""

import numpy as np
import pytest
from flint import arb

from psidp.maths.normal import UNIT, log_tail, quantile, quantile_error, tail, tail_error
from reference import twins

RNG = np.random.default_rng(0)
HALF = np.concatenate([10 ** RNG.uniform(-300, -1, 300), RNG.uniform(0, 37.5, 1500), [0.0, 1e-320, 0.625, 5.0, 37.6]])
POINTS = np.concatenate([HALF, -HALF])
"""Up to 37.6: beyond, the mass above is subnormal and a relative error means nothing."""


def test_tail_makes_a_smaller_error_than_it_is_granted():
    for x, value, granted in zip(POINTS, tail(POINTS), tail_error(POINTS), strict=True):
        exact = twins.phi(-twins.real(x))
        assert abs(twins.real(value) - exact) <= twins.real(granted) * exact


def test_tail_of_one_number_is_the_tail_of_an_array_of_them():
    assert [float(tail(x)) for x in POINTS[::50]] == list(tail(POINTS[::50].copy()))


@pytest.mark.parametrize("x", [40.0, 1e3, 1e200, np.inf])
def test_tail_far_out_is_nothing_or_everything_without_a_warning(x):
    with np.errstate(all="raise", under="ignore"):
        assert float(tail(np.float64(x))) == 0.0
        assert float(tail(np.float64(-x))) == 1.0


def test_quantile_makes_half_the_error_that_it_is_granted_at_most():
    p = np.concatenate(
        [
            10 ** RNG.uniform(-323, 0, 700),
            RNG.uniform(0, 1, 500),
            1 - 10 ** RNG.uniform(-16, 0, 300),
            0.5 + RNG.choice([-1, 1], 300) * 10 ** RNG.uniform(-16, -1, 300),
        ]
    )
    p = p[(p > 0) & (p < 1)]
    z = quantile(p)
    for q, value, granted in zip(p, z, quantile_error(z), strict=True):
        assert abs(twins.real(value) - twins.quantile(twins.real(q))) <= granted / 2


def test_quantile_is_relatively_accurate_above_one_half():
    for p in np.concatenate([0.5 + 10 ** RNG.uniform(-16, -0.4, 300), [0.5 + 2.0**-53]]):
        if 0.5 < p < 1.0:
            exact = twins.quantile(twins.real(p))
            assert abs(twins.real(quantile(p)) - exact) <= 19 * UNIT * exact * max(1, exact)


def test_log_tail_and_hazard_rate_are_right_to_twenty_roundings():
    for x in np.concatenate([[0.0, 1e-8, 1e3, 1e5], RNG.uniform(0, 90, 300)]):
        value, hazard = log_tail(float(x))
        if x < 95:  # the mass above 95 is below what the twin's erfc resolves
            mass = twins.phi(-twins.real(x))
            assert abs(twins.real(value) / mass.log() - 1) <= 20 * UNIT
            assert abs(twins.real(hazard) * mass / twins.density(twins.real(x)) - 1) <= 20 * UNIT
        else:  # log Phi(-x) = -x^2/2 - log(x sqrt(2 pi)) - 1/x^2 + ...
            series = -(x * x) / 2 - np.log(x * np.sqrt(2 * np.pi)) - 1 / x**2
            assert value == pytest.approx(series, rel=1e-14)
            assert hazard == pytest.approx(x + 1 / x, rel=1e-10)


def test_the_twin_itself_knows_the_table():
    assert abs(twins.phi(arb("1.96")) - arb("0.97500210485177956586")) < 1e-19
