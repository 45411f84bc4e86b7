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
    assert json.loads(entry.event) == {"kind": "gaussian", "sensitivity": 1.0, "sigma": 2.0, "by": survey.actor}
    survey.verify()


def test_an_exhausted_budget_draws_nothing(mechanism, survey, monkeypatch):
    for _ in range(4):
        mechanism.release(1.0, purpose="mean age")
    drawn = []
    monkeypatch.setattr(type(mechanism._noise), "add_one", lambda *_: drawn.append(1))
    with pytest.raises(psidp.errors.BudgetExceededError, match="No noise is enough"):
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
    first = mechanism.release(x, integers=integers, purpose="q", retry_key="k", request="q")
    left = survey.remaining("survey")
    again = mechanism.release(x, integers=integers, purpose="q", retry_key="k", request="q")
    plain = GaussianMechanism(1.0, 2.0).release(x, integers=integers)
    assert type(first.value) is type(again.value) is type(plain.value)
    assert np.array_equal(first.value, again.value)
    assert getattr(first.value, "dtype", None) == getattr(plain.value, "dtype", None)
    assert survey.remaining("survey") == left


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_a_release_that_overflows_its_type_is_stored_and_comes_back(survey, kind):
    largest = float(np.finfo(kind).max)
    mechanism = GaussianMechanism(sensitivity=largest, sigma=4.0 * largest, ledger=survey, budget="survey")
    x = np.array([largest, -largest] * 20, kind)
    with np.errstate(over="ignore"):
        first = mechanism.release(x, purpose="q", retry_key="k", request="q")
        again = mechanism.release(x, purpose="q", retry_key="k", request="q")
    assert np.isinf(first.value).any()
    assert first.value.dtype == again.value.dtype == kind
    assert np.array_equal(first.value, again.value)
    assert [e.state for e in survey.entries()] == ["opened", "spent", "answered"]
    for release in (first, again):
        low, high = release.confidence_interval(1.0 - 1e-9)
        assert np.all((low <= x) & (x <= high))
        assert np.array_equal(np.isinf(high), release.value == np.inf)
        assert np.array_equal(np.isinf(low), release.value == -np.inf)


def test_an_integer_of_any_size_is_stored_and_comes_back(mechanism):
    asked = {"integers": True, "purpose": "q", "retry_key": "k", "request": "q"}
    first = mechanism.release(10**5000, **asked)
    assert first.value > 10**300
    assert mechanism.release(0, **asked).value == first.value


def test_a_release_says_that_it_is_the_stored_one_whatever_x_is_now(mechanism, survey):
    asked = {"purpose": "q", "retry_key": "k", "request": "q"}
    first = mechanism.release(1000.0, **asked)
    head = survey.head()
    again = mechanism.release(-1000.0, **asked)
    assert (first.stored, again.stored, again.value) == (False, True, first.value)
    assert survey.head() == head
    assert "stored=True" in repr(again)
    assert (first.to_dict()["stored"], again.to_dict()["stored"]) == (False, True)
    assert psidp.denoise.non_negative(again).stored
    assert not mechanism.release(1.0, purpose="q").stored
    assert not GaussianMechanism(1.0, 2.0).release(1.0).stored


def test_of_two_who_ask_at_once_the_second_says_that_its_answer_is_the_stored_one(mechanism, survey, monkeypatch):
    asked, inner = {"purpose": "q", "retry_key": "k", "request": "q"}, []
    real = type(mechanism._noise).add_one

    def meanwhile(noise, x):
        if not inner:
            inner.append(None)
            inner[0] = mechanism.release(2.0, **asked)
        return real(noise, x)

    monkeypatch.setattr(type(mechanism._noise), "add_one", meanwhile)
    outer = mechanism.release(1.0, **asked)
    assert (inner[0].stored, outer.stored, outer.value) == (False, True, inner[0].value)


def test_a_retry_fills_the_array_it_is_given(mechanism):
    x = np.zeros(3)
    first = mechanism.release(x, purpose="q", retry_key="k", request="q").value
    assert mechanism.release(x, out=x, purpose="q", retry_key="k", request="q").value is x
    assert np.array_equal(x, first)


def test_another_unit_is_refused_and_a_ledger_needs_a_budget(survey):
    other = GaussianMechanism.calibrate(1.0, guarantee=Guarantee(0.5, unit="visit"), ledger=survey, budget="survey")
    with pytest.raises(psidp.errors.MismatchError, match="unit"):
        other.release(1.0, purpose="q")
    with pytest.raises(TypeError, match="together"):
        GaussianMechanism(1.0, 2.0, ledger=survey)
    with pytest.raises(TypeError, match="with a ledger"):
        GaussianMechanism(1.0, 2.0).release(1.0, purpose="q")
