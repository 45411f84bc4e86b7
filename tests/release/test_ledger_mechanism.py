"""A Gaussian mechanism with a ledger pays first, draws after, and answers a retry as before."""

import json

import numpy as np
import pytest

import psidp
from psidp import GaussianMechanism, Guarantee


@pytest.fixture
def mechanism(survey):
    return GaussianMechanism(sensitivity=1.0, sigma=2.0, ledger=survey, budget="survey")


def test_a_release_is_paid_for_with_its_event(mechanism, survey):
    release = mechanism.release(123.4, purpose="mean age")
    assert abs(release.value - 123.4) < 40.0
    entry = list(survey.entries())[-1]
    assert (entry.state, entry.psi, entry.purpose) == ("spent", 0.5, "mean age")
    assert json.loads(entry.event) == {"kind": "gaussian", "sensitivity": 1.0, "sigma": 2.0}
    survey.verify()


def test_an_exhausted_budget_draws_nothing(mechanism, survey, monkeypatch):
    for _ in range(4):
        mechanism.release(1.0, purpose="mean age")
    drawn = []
    monkeypatch.setattr(type(mechanism._noise), "add_one", lambda *_: drawn.append(1))
    with pytest.raises(psidp.BudgetExceededError, match="No noise is enough"):
        mechanism.release(1.0, purpose="mean age")
    assert not drawn
    assert survey.head().id == 5


def test_what_cannot_be_released_is_refused_before_it_is_paid_for(mechanism, survey):
    with pytest.raises(TypeError):
        mechanism.release("text", purpose="mean age")
    with pytest.raises(ValueError, match="purpose"):
        mechanism.release(1.0)
    assert survey.head().id == 1


@pytest.mark.parametrize(
    ("x", "integers"),
    [(1.5, False), (7, True), (10**30, True), (np.zeros((2, 3)), False), (np.zeros(4, np.float32), False),
     (np.arange(5), True), (np.arange(5), False)],
)  # fmt: skip
def test_a_retry_gets_the_same_value_of_the_same_kind(mechanism, survey, x, integers):
    first = mechanism.release(x, integers=integers, purpose="q", key="k", request="q")
    left = survey.remaining("survey")
    again = mechanism.release(x, integers=integers, purpose="q", key="k", request="q")
    plain = GaussianMechanism(1.0, 2.0).release(x, integers=integers)
    assert type(first.value) is type(again.value) is type(plain.value)
    assert np.array_equal(first.value, again.value)
    assert getattr(first.value, "dtype", None) == getattr(plain.value, "dtype", None)
    assert survey.remaining("survey") == left


def test_a_retry_fills_the_array_it_is_given(mechanism):
    x = np.zeros(3)
    first = mechanism.release(x, purpose="q", key="k", request="q").value
    assert mechanism.release(x, out=x, purpose="q", key="k", request="q").value is x
    assert np.array_equal(x, first)


def test_another_unit_is_refused_and_a_ledger_needs_a_budget(survey):
    other = GaussianMechanism.calibrate(1.0, guarantee=Guarantee(0.5, unit="visit"), ledger=survey, budget="survey")
    with pytest.raises(psidp.MismatchError, match="unit"):
        other.release(1.0, purpose="q")
    with pytest.raises(TypeError, match="together"):
        GaussianMechanism(1.0, 2.0, ledger=survey)
    with pytest.raises(TypeError, match="with a ledger"):
        GaussianMechanism(1.0, 2.0).release(1.0, purpose="q")
