"""A spend is paid for before anything is released; lists, reports and the budget say what became of each."""

import json

import pyarrow as pa
import pytest

from psidp import DPSGD, Curator, Guarantee, ask
from psidp.ledger.listing import Selection
from psidp.present.ledger_report import written


@pytest.fixture
def mixed(survey):
    """Spends 2 to 9 and what became of them."""
    terms = {"purpose": "q", "request": "q"}
    with survey.spend("survey", Guarantee(0.1), **terms, retry_key="a") as entry:
        entry.answer(lambda: 1.5)
    with survey.spend("survey", Guarantee(0.1), **terms):
        pass
    survey.spend("survey", Guarantee(0.1), **terms, retry_key="b").once()
    with pytest.raises(KeyError), survey.spend("survey", Guarantee(0.1), **terms):
        raise KeyError
    with pytest.raises(ZeroDivisionError), survey.spend("survey", Guarantee(0.2), **terms, retry_key="c") as entry:
        entry.answer(lambda: 1 // 0)
    with survey.spend("survey", DPSGD(noise_multiplier=9.0, sampling_rate=0.01, steps=10), **terms, kappa=1e-9) as run:
        pass
    survey.record_usage(run.entry, 5)
    return survey


EXPECTED = ["answer stored", "not kept", "no answer stored", "failed", "interrupted", "in parts"]


def test_a_list_says_what_became_of_each_spend(mixed, run, url):
    found = mixed.list(Selection())[::-1]
    assert [mixed.results(found)[entry.id] for entry in found] == EXPECTED
    code, out, _ = run("ledger", "list", url, "--json")
    assert code == 0
    assert [entry["result"] for entry in json.loads(out)["entries"]][::-1] == EXPECTED
    assert all(word in run("ledger", "list", url)[1] for word in ("failed", "interrupted"))


def test_a_report_adds_up_spends_by_what_became_of_them(mixed, run, url):
    statement = mixed.statement()
    assert {name: total["spends"] for name, total in statement.results.items()} == dict.fromkeys(EXPECTED, 1)
    assert {line.result for line in statement.largest} == set(EXPECTED)
    assert {one["result"] for one in json.loads(written(statement, "json"))["results"]} == set(EXPECTED)
    for form in ("md", "html"):
        assert all(word in written(statement, form) for word in ("By result", *EXPECTED))


def test_a_budget_shows_what_it_paid_for_spends_that_failed_or_were_interrupted(mixed, run, url):
    report = mixed.report("survey")
    count, lost = report.unreleased
    assert (count, lost.psi) == (2, pytest.approx(0.05**0.5))
    assert report.to_dict()["unreleased"]["spends"] == 2
    assert "of which failed or interrupted, 2 spends" in run("ledger", "show", url, "survey")[1]


def test_every_release_of_a_curator_has_its_answer_stored_with_a_key_of_the_caller_or_without(survey):
    survey.open("clinic", psi=1.0, unit="patient", purpose="q")
    with Curator(pa.table({"p": [1, 2]}), unit="p", ledger=survey, budget="clinic") as curator:
        given = curator.ask(ask.count()).release(psi=0.1, retry_key="k")
        made = curator.ask(ask.count()).release(psi=0.1)
    assert list(survey.results(survey.list()).values()) == ["answer stored", "answer stored"]
    assert given.retry_key == "k" != made.retry_key
    for answer in (given, made):
        assert survey.answer(answer.retry_key)["rows"] == answer.to_dict()["rows"]
