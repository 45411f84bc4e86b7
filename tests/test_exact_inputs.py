"""No number is rounded before the private side begins: integers and subnormals in every public call."""

from decimal import Decimal
from fractions import Fraction
from math import nextafter, pi, sqrt
from random import Random

import numpy as np
import pytest
from typer.testing import CliRunner

import psidp
from fuzz import inputs
from psidp import DPSGD, BandMF, Counter, FixedOrder, GaussianMechanism, Guarantee, Ledger, RandomAllocation, account
from psidp.accounting import calibrate
from psidp.accounting.events import planned_steps
from psidp.cli.main import app
from psidp.cli.options import parse

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


def test_a_target_beyond_the_floats_is_met_from_below():
    assert GaussianMechanism.calibrate(1.0, psi=ODD).guarantee.psi <= 2.0**53


def test_whole_numbers_of_the_command_line_are_read_as_they_are():
    runner = CliRunner()
    for words in (["--psi", str(ODD)], ["--sensitivity", str(ODD), "--sigma", "1"]):
        result = runner.invoke(app, ["convert", *words, "--to", "psi"])
        assert float(result.stdout) == 2.0**53 + 2.0
    assert parse(f"sensitivity={ODD},sigma=1").psi == 2.0**53 + 2.0
    shown = runner.invoke(app, ["release", "value", str(ODD), "--sensitivity", "1", "--sigma", "1e-9"]).stdout
    assert float(shown) == 2.0**53  # the value is exact, and its release the nearest float
    assert runner.invoke(app, ["convert", "--psi", "9" * 5000, "--to", "psi"]).exit_code != 0


def test_subnormal_results_are_rounded_to_their_side_too():
    rng = Random(7)
    root = Fraction(25066282746310005, 10**16)  # sqrt(2 pi), rounded down
    for _ in range(2000):
        advantage = 5e-324 * rng.randrange(1, 2**40)
        assert Fraction(psidp.psi_from_advantage(advantage)) <= Fraction(advantage) * (root + Fraction(1, 10**15))
    # Against 60 digits of mpmath: where epsilon(delta) gives this epsilon, its true delta is at most the one asked for.
    for psi, delta, least in (
        (8.222349564144e-311, 4.952471e-317, Fraction("3.7238463369411933e-310")),
        (1.57647863947903e-310, 1.531124e-318, Fraction("8.3705865939568784e-310")),
    ):
        assert Fraction(psidp.epsilon_from_psi(psi, delta)) >= least


def test_the_logarithm_of_delta_has_no_smallest_value_but_that_of_floats():
    for psi, epsilon, true in (
        (1e-160, 4.086700859913152e-09, -8.3505619592074477633e302),
        (1e-160, 3.106399361141954e-62, -4.8248584954515698958e196),
        (5e-324, 2.0733776702391896e-288, -8.8055710274237648626e70),
        (1e-300, 1e-300, -693.26064892392634652),
    ):
        found = psidp.log_delta_from_psi(psi, epsilon)
        assert true * (1 + 1e-15) <= found <= true * (1 - 1e-9)
        assert psidp.log_delta_from_psi([psi, 1.0], epsilon)[0] == found


def test_rates_below_the_smallest_normal_float_are_bounded_also_where_failure_is_possible():
    fpr, guarantee = 1.13967778817e-313, Guarantee(40.0, 0.17461181977746965)
    tpr, fnr = 0.98738386023159446731, 0.012616139768405532686  # by mpmath
    assert guarantee.roc(fpr) >= tpr
    assert guarantee.tradeoff(fpr) <= fnr
    curve = account(guarantee)
    assert curve.roc(fpr).lower <= tpr <= curve.roc(fpr).upper
    assert curve.tradeoff(fpr).lower <= fnr <= curve.tradeoff(fpr).upper
    assert guarantee.roc(0.0) <= guarantee.kappa * (1 + 2.0**-50)
    assert guarantee.tradeoff([0.0, 1.0])[1] == 0.0


def test_counts_too_long_to_write_are_refused_by_name():
    long = 10**5000
    for name, call in (
        ("k", Guarantee(1.0).group), ("epochs", lambda x: FixedOrder(1.0, x)),
        ("steps", lambda x: FixedOrder(1.0, 1, x)),
        ("batches", lambda x: RandomAllocation(1.0, x)), ("bands", lambda x: BandMF(1.0, 0.1, 10, x)),
        ("group", lambda x: DPSGD(1.0, 0.1, 10, group=x)), ("periods", lambda x: Counter(psi=1, periods=x, at_most=1)),
        ("batch_size", lambda x: DPSGD(1.0, steps=1, batch_size=x, dataset_size=10)),
    ):  # fmt: skip
        for number in (long, -long):
            with pytest.raises(ValueError, match=f"^{name} must be a whole number of at least 1"):
                call(number)
    with pytest.raises(TypeError, match=r"^psi .*of type Fraction"):
        Guarantee(Fraction(long, 3))


def test_a_list_is_accepted_or_refused_by_the_types_of_its_entries_alone():
    mechanism = GaussianMechanism(1.0, 1.0)
    for kinds in (
        (np.int64, int),
        (float, int),
        (np.float64, int),
        (np.float32, int),
        (np.uint64, np.int64),
        (int, int),
    ):
        first = kinds[0](5)
        for second in (kinds[1](7), *([10**30, -(10**400), 2**63] if kinds[1] is int else [])):
            value = mechanism.release([first, second]).value
            assert value.dtype == np.float64
            assert abs(value[0] - 5) < 30
    for values in ([1, True], [1.0, True], [[True], [2]], [1, None], [1, Fraction(1, 3)]):
        with pytest.raises(TypeError, match=r"^x \(the value to release\) must be a number"):
            mechanism.release(values)


def test_whole_numbers_beside_floats_keep_their_last_digit_until_noise_is_added():
    mechanism = GaussianMechanism(1.0, 1e-9)
    released = {mechanism.release([ODD + 2, 0.5]).value[0] for _ in range(60)}
    assert released == {2.0**53 + 2.0, 2.0**53 + 4.0}  # half-way between two floats: the noise decides
    assert mechanism.release([[2**53 - 1], [0.5]]).value[0, 0] == 2.0**53 - 1
