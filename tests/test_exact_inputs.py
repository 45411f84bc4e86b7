"""No number is rounded before the private side begins: integers and subnormals in every public call."""

from decimal import Decimal
from fractions import Fraction
from math import nextafter, pi, sqrt
from random import Random

import numpy as np
import pytest

import psidp
from fuzz import inputs
from psidp import DPSGD, BandMF, Counter, FixedOrder, GaussianMechanism, Guarantee, Ledger, RandomAllocation, account
from psidp.accounting import calibrate
from psidp.accounting.events import planned_steps

ODD = 2**53 + 1
"""The smallest integer that no float is."""


def test_integers_floats_and_subnormals_of_every_width_are_never_rounded_to_the_weaker_side():
    for seed in range(12):
        inputs.explore(Random(seed))


def test_an_integer_beyond_the_floats_is_rounded_to_the_private_side_of_the_call():
    assert GaussianMechanism(ODD, 1.0).guarantee.psi == 2.0**53 + 2.0
    assert GaussianMechanism(1.0, ODD).sigma == 2.0**53
    assert Guarantee(ODD).psi == 2.0**53 + 2.0
    assert Guarantee.gaussian(sensitivity=1, sigma=ODD).psi == 2.0**-53
    assert Guarantee(1.0).sigma(ODD) == 2.0**53 + 2.0
    assert Counter(psi=ODD, periods=2, at_most=1).psi == 2.0**53  # a target, not a loss
    assert psidp.clip_sum([1.0], ODD).norm == 2.0**53
    assert DPSGD(ODD, 0.1, 10).noise_multiplier == 2.0**53
    assert account(Guarantee(ODD)).guarantee(0.0).psi == 2.0**53 + 2.0
    assert psidp.delta_from_psi(1e8, [[ODD], [0.5]])[0, 0] == psidp.delta_from_psi(1e8, 2.0**53)


def test_the_smallest_float_is_a_claim_like_any_other():
    for epsilon in (5e-324, 1e-310, 1e-200, 1e-9, 9.99e-9):
        psi = Guarantee.from_pure(epsilon).psi
        assert Fraction(psi) >= Fraction(epsilon) * Fraction(125331413731550025, 10**17)
        assert psi <= nextafter(sqrt(pi / 2) * epsilon, 1.0) * (1 + 1e-15) + 5e-324
    assert Guarantee.from_approximate(5e-324, 0.1).psi > 0.0
    assert GaussianMechanism(5e-324, 1e10).guarantee.psi == 5e-324


def test_an_epoch_has_a_step_more_where_the_last_batch_is_not_whole():
    assert DPSGD(1.0, sampling_rate=1.3e-9, epochs=1).steps == 769_230_770
    for n in (*range(1, 2000), 10**6 + 3, 10**9 + 7, 10**12 + 39, 2**52 - 1):
        assert planned_steps(None, 1, 1 / n) == n
        assert planned_steps(None, 1, Fraction(1, n)) == n
        assert planned_steps(None, 1, nextafter(1 / n, 0.0)) >= n
    for epochs, steps in ((0.1, 100), (0.3, 300), (2.5, 2500), (0.0001, 1), (1.0000001, 1001)):
        assert planned_steps(None, epochs, 0.001) == steps


def test_other_types_of_numbers_are_refused_by_name_everywhere(tmp_path):
    third, run = Fraction(1, 3), {"sampling_rate": 0.1, "steps": 10}
    calls = {
        "psi": [Guarantee, lambda x: Counter(psi=x, periods=2, at_most=1),
                lambda x: calibrate(psi=x, kappa=0.1, **run)],
        "sensitivity": [lambda x: GaussianMechanism(x, 1.0), Guarantee(1.0).sigma],
        "sigma": [lambda x: GaussianMechanism(1.0, x)],
        "noise_multiplier": [lambda x: DPSGD(x, 0.1, 10), lambda x: BandMF(x, 0.1, 10), FixedOrder,
                             lambda x: RandomAllocation(x, 4)],
        "sampling_rate": [lambda x: DPSGD(1.0, x, 10), lambda x: BandMF(1.0, x, 10)],
        "epochs": [lambda x: DPSGD(1.0, 0.1, epochs=x)],
        "epsilon": [lambda x: calibrate(epsilon=x, delta=0.1, **run), Guarantee.from_pure, Guarantee(1.0).delta,
                    lambda x: Guarantee.from_approximate(x, 0.1), account(Guarantee(1.0)).delta],
        "delta": [lambda x: calibrate(epsilon=1.0, delta=x, **run), Guarantee(1.0).epsilon,
                  account(Guarantee(1.0)).epsilon],
        "advantage": [lambda x: calibrate(advantage=x, **run), psidp.psi_from_advantage],
        "kappa": [lambda x: Guarantee(1.0, x), lambda x: calibrate(psi=1.0, kappa=x, **run)],
        "norm": [lambda x: psidp.clip_sum([1.0], x)],
        "lower": [lambda x: psidp.sensitivity.clipped_sum(x, 1.0, "add-remove")],
    }  # fmt: skip
    ledger = Ledger(str(tmp_path / "ledger.db"))
    calls["psi"].append(lambda x: ledger.open("b", psi=x, unit="record", actor="Ann", purpose="exactness"))
    for name, group in calls.items():
        for call in group:
            for value in (third, Decimal("0.25"), np.longdouble(0.25), np.ma.array([0.25], mask=[False])):
                with pytest.raises(TypeError, match=rf"^{name} \(.*(Convert it with float|Fill what is masked)"):
                    call(value)
    for rows in (np.ones(3, np.longdouble), np.ma.array([1.0], mask=[True]), [third]):
        with pytest.raises(TypeError, match=r"^rows must be"):
            psidp.clip_sum(rows, 1.0)
