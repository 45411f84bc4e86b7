"""Far beyond the usual psi, where epsilon/psi passes 1000 while delta is still large: right, finite, and private."""

import numpy as np
import pytest
from flint import arb

from psidp import delta_from_psi, epsilon_from_log_delta, epsilon_from_psi, log_delta_from_psi, psi_from_epsilon_delta
from reference import oracle

OFFSETS = np.array([-8.0, -0.7, -0.2, 0.0, 1e-3, 0.3, 1.0, 5.0, 30.0])
"""a = epsilon/psi - psi/2, on which delta depends almost alone."""


@pytest.mark.parametrize("psi", [1999.0, 2001.0, 1e4, 1e6, 1e8])
def test_delta_of_a_huge_psi_is_right_where_it_is_neither_nothing_nor_one(psi):
    for epsilon in psi * (psi / 2 + OFFSETS):
        exact, value = oracle.delta(psi, epsilon), delta_from_psi(psi, epsilon)
        assert arb(float(value)) >= exact
        assert arb(float(value)) <= exact * (1 + 1e-14)
        assert log_delta_from_psi(psi, epsilon) == pytest.approx(float(exact.log()), rel=1e-13)


@pytest.mark.parametrize("psi", [1999.0, 2001.0, 1e4, 1e6, 1e8])
@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.01, 0.3, 0.49, 0.51, 0.999])
def test_epsilon_of_a_huge_psi_never_promises_more_privacy_than_there_is(psi, delta):
    epsilon = epsilon_from_psi(psi, delta)
    assert oracle.delta(psi, epsilon) <= arb(delta)
    assert oracle.delta(psi, epsilon * (1 - 1e-13)) >= arb(delta)
    assert epsilon_from_log_delta(psi, np.log(delta)) == pytest.approx(epsilon, rel=1e-12)
    assert psi_from_epsilon_delta(epsilon, delta) == pytest.approx(psi, rel=1e-12)
    assert oracle.delta(psi_from_epsilon_delta(epsilon, delta), epsilon) <= arb(delta)


@pytest.mark.parametrize("huge", [1e50, 1e100, 1e154, 1e200, 1.7e308])
@pytest.mark.parametrize("delta", [5e-324, 1e-5, 0.3, 0.5, 1 - 2**-53])
def test_no_size_of_psi_or_epsilon_gives_nan(huge, delta):
    for value in (
        delta_from_psi(huge, huge),
        delta_from_psi(1.0 / huge, huge),
        log_delta_from_psi(huge, huge),
        epsilon_from_psi(huge, delta),
        epsilon_from_log_delta(huge, np.log(delta)),
        psi_from_epsilon_delta(huge, delta),
        psi_from_epsilon_delta(1.0 / huge, delta),
    ):
        assert not np.isnan(value)
