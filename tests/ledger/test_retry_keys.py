"""Under an idempotency key a retry gets the same answer and spends nothing."""

import numpy as np
import pytest

import psidp
from psidp import Guarantee, Ledger
from psidp.ledger.spend import request_digest

G = Guarantee(0.25)


def ask(ledger, key="q-1", request="mean age", draw=lambda: 41.5):
    with ledger.spend("survey", G, purpose="mean age", retry_key=key, request=request) as entry:
        return entry.answer(draw)


def test_a_retry_gets_the_stored_answer_and_spends_nothing(survey, url):
    dice = iter([41.123456789012345, 99.0])
    first = ask(survey, draw=lambda: next(dice))
    head, left = survey.head(), survey.remaining("survey")
    other = Ledger(url)
    assert ask(other, draw=lambda: next(dice)) == ask(survey, draw=lambda: next(dice)) == first
    assert (survey.head(), survey.remaining("survey")) == (head, left)
    assert [e.state for e in survey.entries()] == ["opened", "spent", "answered"]
    survey.verify()
    other.dispose()


def test_the_answer_is_durable_before_it_is_returned(survey, url):
    with survey.spend("survey", G, purpose="mean age", retry_key="q-1", request=1) as entry:
        value = entry.answer(lambda: 41.5)
        other = Ledger(url)
        assert [e.answer for e in other.entries() if e.state == "answered"] == [str(value)]
        other.dispose()


def test_a_different_request_under_the_same_key_is_refused(survey):
    ask(survey)
    head = survey.head()
    with pytest.raises(psidp.errors.KeyConflictError, match="another request"):
        ask(survey, request="median age")
    with (
        pytest.raises(psidp.errors.KeyConflictError),
        survey.spend("survey", Guarantee(0.3), purpose="mean age", retry_key="q-1", request="mean age"),
    ):
        pass
    assert survey.head() == head


def test_spent_without_an_answer_means_that_a_retry_spends_anew(survey):
    def fails():
        raise OSError("the database went away")

    with pytest.raises(OSError, match="went away"):
        ask(survey, draw=fails)
    assert ask(survey) == 41.5
    assert [e.state for e in survey.entries()] == ["opened", "spent", "interrupted", "spent", "answered"]
    assert sum(e.psi**2 for e in survey.entries()) == 2 * 0.25**2
    survey.verify()


def test_where_two_ask_at_once_both_pay_and_the_first_answer_stands(survey):
    with survey.spend("survey", G, purpose="mean age", retry_key="q-1", request=1) as one:
        with survey.spend("survey", G, purpose="mean age", retry_key="q-1", request=1) as two:
            assert two.answer(lambda: 2.0) == 2.0
        assert one.answer(lambda: 1.0) == 2.0
    assert [e.state for e in survey.entries()] == ["opened", "spent", "spent", "answered"]


def test_a_block_that_raises_after_its_answer_was_stored_keeps_the_answer(survey):
    with (
        pytest.raises(RuntimeError),
        survey.spend("survey", G, purpose="mean age", retry_key="q-1", request=1) as entry,
    ):
        raise RuntimeError(f"after the answer {entry.answer(lambda: 7.0)}")
    with survey.spend("survey", G, purpose="mean age", retry_key="q-1", request=1) as entry:
        assert entry.answered
        assert entry.answer(lambda: 8.0) == 7.0


INF, NAN = float("inf"), float("nan")


VALUES = {
    "array": (np.array([[1.5, -0.1], [0.3, 2.0]]), [[1.5, -0.1], [0.3, 2.0]]),
    "array of float32": (np.array([np.inf, -np.inf, 1.0], np.float32), [INF, -INF, 1.0]),
    "float32": (np.float32(np.inf), INF),
    "inf": (INF, INF),
    "minus inf": (-INF, -INF),
    "nan": (NAN, NAN),
    "minus zero": (-0.0, -0.0),
    "huge": (10**5000, 10**5000),
    "minus huge": (-(10**5000), -(10**5000)),
    "true": (True, True),
    "none": (None, None),
    "NumPy inside": (
        {"mean": np.float64(1.5), "n": np.int64(7), "ok": np.bool_(True)},
        {"mean": 1.5, "n": 7, "ok": True},
    ),
    "nested": ([(1, np.array([2.0, NAN]))], [[1, [2.0, NAN]]]),
    "odd names": ({1: {2.5: "x"}, None: [INF]}, {1: {2.5: "x"}, None: [INF]}),
    "our name": ({"psidp_float": "inf"}, {"psidp_float": "inf"}),
    "tuples as names": ({(1, ("a", 2)): 3.0}, {(1, ("a", 2)): 3.0}),
    "our names": ({"psidp_pairs": [{"psidp_int": 3}]}, {"psidp_pairs": [{"psidp_int": 3}]}),
    "odd text": ("\ud800 \0 \u00e9", "\ud800 \0 \u00e9"),
}


@pytest.mark.parametrize(("drawn", "back"), VALUES.values(), ids=VALUES)
def test_whatever_is_drawn_is_stored_and_comes_back_the_same(survey, drawn, back):
    first = ask(survey, draw=lambda: drawn)
    again = ask(survey, draw=lambda: None)
    for value in (first, again):
        np.testing.assert_equal(value, back)
        assert type(value) is type(back)
    assert [e.state for e in survey.entries()] == ["opened", "spent", "answered"]
    survey.verify()


@pytest.mark.parametrize("drawn", [object(), 1j, {1, 2}, np.longdouble(1.0), b"bytes"], ids=lambda x: type(x).__name__)
def test_what_is_no_value_is_no_answer(survey, drawn):
    with pytest.raises(TypeError):
        ask(survey, draw=lambda: drawn)
    assert [e.state for e in survey.entries()] == ["opened", "spent", "interrupted"]


def test_an_answer_stored_by_an_earlier_version_comes_back(survey):
    """Written as plain JSON in UTF-8."""
    old = '{"by":["ward"],"notes":["d\u00e9j\u00e0"],"rows":[1.5,10000000000000000000000]}'
    assert psidp.ledger.json_value.from_json(old) == {"by": ["ward"], "notes": ["déjà"], "rows": [1.5, 10**22]}


def test_an_answered_request_is_answered_even_when_the_budget_is_spent_or_closed(survey):
    ask(survey)
    left = survey.remaining("survey")
    with survey.spend("survey", left, purpose="the rest"):
        pass
    assert ask(survey) == 41.5
    survey.close("survey", actor="Ann", purpose="done")
    assert ask(survey) == 41.5
    with pytest.raises(psidp.errors.BudgetClosedError):
        ask(survey, key="q-2")


def test_an_answer_under_a_key_whose_spend_had_another_price_never_comes_back(sqlite_url):
    """Whoever knows the question can claim its digest in an entry of psi 0; the answer would be a stranger's number."""
    claimed = request_digest("mean age", G, {"kind": "guarantee"}, "")
    with Ledger(sqlite_url) as ledger:
        ledger.open("survey", psi=1.0, purpose="a test")
        free = ledger.spend("survey", Guarantee(0.0), purpose="q", actor="bob", retry_key="q-1", request="x")
        free.request = claimed
        with free as entry:
            entry.answer(lambda: 999.0)
        head = ledger.head()
        with pytest.raises(psidp.errors.KeyConflictError, match="another request"):
            ask(ledger)
        assert ledger.head() == head
