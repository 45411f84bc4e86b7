"""The Gaussian mechanism: what it promises, what it refuses, and that nothing depends on the data but the value."""

import dataclasses
import inspect
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import psidp
from psidp import GaussianMechanism, Guarantee, clip_sum
from psidp.noise import normal_source as dice_module
from psidp.noise.normal_source import NormalSource


class Counted:
    """The key stream, counting."""

    def __init__(self):
        self.stream, self.drawn = dice_module.KeyStream(), 0

    def fill(self, words):
        self.stream.fill(words)
        self.drawn += words.size

    def rekey(self):
        self.stream.rekey()


@pytest.fixture
def counted(monkeypatch):
    """NormalSource whose draws are counted."""
    dice = NormalSource(Counted())
    monkeypatch.setattr(dice_module, "_idle", [dice])
    return dice.words


@pytest.mark.parametrize(("sensitivity", "sigma"), [(1.0, 2.0), (0.1, 0.3), (1e-300, 1e-290), (7.0, 1e290), (0.0, 1.0)])
def test_the_guarantee_is_psi_and_never_less(sensitivity, sigma):
    mechanism = GaussianMechanism(sensitivity, sigma)
    assert Fraction(mechanism.guarantee.psi) * Fraction(sigma) >= Fraction(sensitivity)
    assert mechanism.guarantee.psi == pytest.approx(sensitivity / sigma, rel=1e-15)
    assert mechanism.guarantee.kappa == 0.0


def test_adjacency_and_unit_travel_with_the_release():
    mechanism = GaussianMechanism(1.0, 2.0, adjacency="replace-one", unit="patient")
    guarantee = mechanism.release(0.0).guarantee
    assert (guarantee.adjacency, guarantee.unit) == ("replace-one", "patient")
    with pytest.raises(ValueError, match="adjacency must be"):
        GaussianMechanism(1.0, 2.0, adjacency="neighbours")


@pytest.mark.parametrize("sensitivity", [1.0, 0.37, 1e6])
def test_calibration_keeps_what_was_asked_for_and_wastes_nothing(sensitivity):
    for target in (Guarantee(0.5), Guarantee(0.123, unit="user"), Guarantee(1.0, kappa=1e-9)):
        mechanism = GaussianMechanism.calibrate(sensitivity, guarantee=target)
        assert mechanism.guarantee.psi <= target.psi
        assert mechanism.guarantee.unit == target.unit
        assert mechanism.sigma == pytest.approx(sensitivity / target.psi, rel=1e-15)
    mechanism = GaussianMechanism.calibrate(sensitivity, epsilon=1.0, delta=1e-6, adjacency="replace-one")
    assert mechanism.guarantee.delta(1.0) <= 1e-6
    assert mechanism.guarantee.adjacency == "replace-one"
    assert mechanism.guarantee.epsilon(1e-6) == pytest.approx(1.0, rel=1e-9)


def test_calibration_takes_one_wish():
    with pytest.raises(TypeError, match="a guarantee or epsilon, delta, not both"):
        GaussianMechanism.calibrate(1.0, guarantee=Guarantee(1.0), epsilon=1.0, delta=1e-6)
    with pytest.raises(TypeError, match="exactly one notion"):
        GaussianMechanism.calibrate(1.0, epsilon=1.0)


def test_numbers_in_numbers_out():
    mechanism = GaussianMechanism(1.0, 1e-9)
    assert type(mechanism.release(3.25).value) is float
    assert type(mechanism.release(np.float64(3.25)).value) is float
    assert mechanism.release(3).value == pytest.approx(3.0, abs=1e-7)
    assert mechanism.release(3, integers=True).value == 3
    assert type(mechanism.release(10**30, integers=True).value) is int
    assert mechanism.release(10**30, integers=True).value == 10**30
    for value in (np.float32(2.5), np.array(2.5)):
        assert mechanism.release(value).value == pytest.approx(2.5, abs=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3,), (2, 5), (0,), (4, 1, 3), (70_000,)])
def test_arrays_keep_shape_and_type(dtype, shape):
    x = np.full(shape, 2.0, dtype)
    value = GaussianMechanism(1.0, 2.0**-20).release(x).value
    assert (value.shape, value.dtype) == (shape, dtype)
    assert (abs(value - x) < 0.01).all()


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.uint64, np.int32])
def test_whole_numbers_come_out_whole_on_request(dtype):
    x = np.array([[0, 1, 100]], dtype)
    mechanism = GaussianMechanism(1.0, 2.0**-20)
    assert mechanism.release(x).value.dtype == np.float64
    whole = mechanism.release(x, integers=True).value
    assert whole.dtype == np.int64
    assert whole.tolist() == [[0, 1, 100]]


def test_lists_and_anything_with_an_array_inside_will_do():
    class Column:
        def __array__(self, dtype=None, copy=None):
            return np.array([1.0, 2.0])

    mechanism = GaussianMechanism(1.0, 1e-9)
    assert mechanism.release([1.0, 2.0]).value == pytest.approx([1, 2], abs=1e-7)
    assert mechanism.release(Column()).value == pytest.approx([1, 2], abs=1e-7)


def test_in_place_changes_nothing_but_the_array_given():
    x = np.zeros(100_000)
    release = GaussianMechanism(1.0, 1.0).release(x, out=x)
    assert release.value is x
    assert 0.95 < x.std() < 1.05
    y = np.zeros(10)
    GaussianMechanism(1.0, 1.0).release(y)
    assert not y.any()


def test_clipped_sums_reach_the_noise_as_integers():
    rows = np.tile([[3.0, 4.0]], (1000, 1))
    total = clip_sum(rows, norm=1.0)
    value = GaussianMechanism(1.0, 1e-6).release(total).value
    assert value == pytest.approx([600, 800], abs=1e-4)
    assert GaussianMechanism(2.0, 1e-6, adjacency="replace-one").release(
        clip_sum([5.0, 0.5], 1.0)
    ).value == pytest.approx(1.5, abs=1e-4)


def test_a_clipped_sum_that_moves_further_than_the_sensitivity_is_refused(counted):
    total = clip_sum([[3.0, 4.0]], norm=1.0)
    with pytest.raises(
        ValueError, match=r"must be at least 1.0 for this clipped sum under add-remove, got sensitivity=0.5"
    ):
        GaussianMechanism(0.5, 1.0).release(total)
    with pytest.raises(ValueError, match=r"must be at least 2.0 for this clipped sum under replace-one"):
        GaussianMechanism(1.0, 1.0, adjacency="replace-one").release(total)
    assert counted.drawn == 0


@pytest.mark.parametrize(
    "x",
    [1j, "3", b"3", None, True, [True], [1j], ["3"], [None], {}, np.longdouble(1), np.array([1, None], object),
     np.ma.masked_array([1.0], [True]), np.array(["2020-01-01"], "datetime64[D]")],
)  # fmt: skip
def test_what_is_no_number_is_refused_before_anything_is_drawn(x, counted):
    with pytest.raises(TypeError, match=r"x \(the value to release\) must be a number"):
        GaussianMechanism(1.0, 1.0).release(x)
    assert counted.drawn == 0


def test_what_does_not_fit_is_refused_before_anything_is_drawn(counted):
    mechanism = GaussianMechanism(1.0, 1.0)
    x = np.zeros(3)
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    for out in (np.zeros(4), np.zeros(3, np.float32), frozen, [0.0, 0.0, 0.0]):
        with pytest.raises(ValueError, match="out must be a writeable array of float64 and shape"):
            mechanism.release(x, out=out)
    with pytest.raises(TypeError, match="integers=True must be used with whole numbers"):
        mechanism.release(x, integers=True)
    with pytest.raises(TypeError, match="integers=True must be used with whole numbers"):
        mechanism.release(1.5, integers=True)
    with pytest.raises(TypeError, match="out must be used with arrays of floats"):
        mechanism.release(np.arange(3), out=x)
    with pytest.raises(TypeError, match="without integers= and out="):
        mechanism.release(clip_sum([1.0], 1.0), integers=True)
    assert counted.drawn == 0


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf, "1", 1j, None])
def test_a_sigma_that_is_none_is_refused(sigma):
    with pytest.raises((ValueError, TypeError), match=r"sigma \(standard deviation of the noise\) must be"):
        GaussianMechanism(1.0, sigma)


@pytest.mark.parametrize("sensitivity", [-1.0, math.nan, math.inf, "1", 1j])
def test_a_sensitivity_that_is_none_is_refused(sensitivity):
    with pytest.raises((ValueError, TypeError), match=r"sensitivity \(L2 sensitivity of the query\) must be"):
        GaussianMechanism(sensitivity, 1.0)


@pytest.mark.parametrize("x", [math.nan, math.inf, -math.inf, 1e300, 5e-324, 0.0])
@pytest.mark.parametrize("sigma", [1e-290, 1.0, 1e290])
def test_no_value_makes_a_release_fail_or_stand_out(x, sigma):
    mechanism = GaussianMechanism(1.0, sigma)
    for given in (x, np.full(5, x), np.full(5000, x)):
        assert np.isfinite(mechanism.release(given).value).all()


def test_nothing_can_be_seeded():
    for thing in (GaussianMechanism, GaussianMechanism.release, GaussianMechanism.calibrate, clip_sum):
        names = inspect.signature(thing).parameters
        assert not {"seed", "rng", "random_state", "generator", "words"} & set(names)


def test_a_mechanism_travels_to_other_processes_without_dice():
    mechanism = GaussianMechanism(1.0, 2.0, unit="user", grid=2.0**-10)
    text = pickle.dumps(mechanism)
    assert len(text) < 2000
    assert pickle.loads(text) == mechanism
    assert pickle.loads(text).release(1.0).guarantee == mechanism.guarantee


def test_a_mechanism_is_a_value():
    one, two = GaussianMechanism(1.0, 2.0), GaussianMechanism(1.0, 2.0)
    assert one == two
    assert hash(one) == hash(two)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.sigma = 3.0
    assert psidp.GaussianMechanism is GaussianMechanism


@pytest.mark.parametrize("large", [2**63, 2**64, -(2**64), 10**400])
def test_a_list_of_whole_numbers_may_hold_any(large):
    """NumPy's type of a list depends on its values: beyond 64 bits it was a refusal, which tells of the data."""
    mechanism = GaussianMechanism(1.0, 1.0)
    far = 2.0**60
    for value in ([large, 3], [[large], [3]]):
        for integers in (False, True):
            released = np.asarray(mechanism.release(value, integers=integers).value)
            assert (
                released.dtype == np.asarray(mechanism.release([[1], [3]][: len(value)], integers=integers).value).dtype
            )
            assert abs(float(released.flat[0])) > far
            assert abs(float(released.flat[1]) - 3) < 12
    mixed = mechanism.release([large, 0.5]).value
    assert abs(mixed[0]) > far
    assert abs(mixed[1] - 0.5) < 12
