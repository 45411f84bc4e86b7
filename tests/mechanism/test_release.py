"""What a release tells: the noisy value and its error, never the truth."""

import json

import numpy as np
import pytest

from psidp import GaussianMechanism


def test_the_interval_holds_the_truth_as_often_as_it_says():
    """40,000 entries at three levels; off by 6 standard errors happens once in 10^8."""
    mechanism = GaussianMechanism(1.0, 3.0)
    for grid in (None, 2.0):
        release = GaussianMechanism(1.0, 3.0, grid=grid).release(np.full(40_000, 0.3))
        for level in (0.5, 0.9, 0.99):
            low, high = release.confidence_interval(level)
            held = ((low <= 0.3) & (high >= 0.3)).mean()
            error = 6 * np.sqrt(level * (1 - level) / 40_000)
            assert held > level - error
            if grid is None:
                assert held < level + error
    assert mechanism.release(0.3).confidence_interval()[0] < mechanism.release(0.3).confidence_interval(0.999999)[1]


def test_the_mean_squared_error_is_the_one_seen():
    """10^6 entries: the mean square is off by 1 % with probability below 1e-11."""
    for sigma, grid in ((3.0, None), (1.0, 1.0), (1.7, 1.0)):
        release = GaussianMechanism(1.0, sigma, grid=grid).release(np.full(10**6, 0.3))
        assert ((release.value - 0.3) ** 2).mean() == pytest.approx(release.mean_squared_error, rel=0.01)
    release = GaussianMechanism(1.0, 2.0).release(np.full(10**6, 7), integers=True)
    assert ((release.value - 7) ** 2).mean() == pytest.approx(release.mean_squared_error, rel=0.01)


def test_a_small_sigma_does_not_break_the_interval_of_whole_numbers():
    release = GaussianMechanism(1.0, 0.3).release(np.full(40_000, 7), integers=True)
    low, high = release.confidence_interval(0.9)
    assert ((low <= 7) & (high >= 7)).mean() > 0.89


@pytest.mark.parametrize("value", [1.5, 3, np.float32(2.0), np.array([1.0, 2.0]), np.array([1.0, 2.0], np.float32)])
def test_interval_and_value_have_the_same_shape(value):
    release = GaussianMechanism(1.0, 1.0).release(value)
    low, high = release.confidence_interval()
    assert np.shape(low) == np.shape(high) == np.shape(release.value)
    assert (np.asarray(low) < release.value).all()


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, float("nan")])
def test_a_level_that_is_none_is_refused(level):
    with pytest.raises(
        ValueError, match=r"confidence \(chance that the interval holds the truth\) must be in \(0, 1\)"
    ):
        GaussianMechanism(1.0, 1.0).release(0.0).confidence_interval(level)


def test_the_truth_is_nowhere_in_a_release():
    """Distinctive digits in, none of them out: not in fields, text, dictionary or what it refers to."""
    truth = 987654.321
    release = GaussianMechanism(1.0, 1e5).release(truth)
    text = json.dumps(release.to_dict()) + repr(release)
    assert "987654.321" not in text
    assert all(getattr(release, name) != truth for name in release.__slots__)
    assert set(release.to_dict()) == {"value", "sigma", "grid", "guarantee", "steps", "stored"}


def test_the_dictionary_is_plain():
    release = GaussianMechanism(1.0, 1.0).release(np.zeros((2, 2)))
    assert json.loads(json.dumps(release.to_dict()))["value"] == release.value.tolist()
