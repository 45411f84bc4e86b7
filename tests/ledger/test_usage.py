"""What a run really used is written beside what it paid, and gives nothing back."""

import pytest

from psidp import DPSGD, Guarantee, Ledger
from psidp.ledger.event import priced_run

RUN = DPSGD(noise_multiplier=2.0, sampling_rate=0.01, steps=500)


@pytest.fixture
def paid(survey):
    with survey.spend("survey", RUN, kappa=1e-10, purpose="a model") as spend:
        return spend.entry


def test_what_a_run_used_is_an_entry_in_the_chain_and_no_refund(survey, paid):
    left = survey.remaining("survey")
    entry = survey.record_usage(paid, 300)
    used = {"kind": "used", "steps": 300, "by": survey.actor}
    assert (entry.state, entry.refers, entry.details()) == ("answered", paid.id, used)
    assert (entry.psi, entry.kappa) == (0.0, 0.0)
    assert survey.remaining("survey") == left
    assert [change.state for change in survey.report("survey").changes] == ["opened"]
    assert survey.verify() == survey.head()
    assert survey.head().id == entry.id


def test_a_closed_budget_still_hears_what_its_run_used(survey, paid):
    survey.close("survey", actor="Ann", purpose="done")
    assert survey.record_usage(paid, 0).refers == paid.id
    survey.verify()


@pytest.mark.parametrize("steps", [-1, 501, True, 2.0, float("nan"), None])
def test_more_steps_than_were_paid_for_are_refused(survey, paid, steps):
    head = survey.head()
    with pytest.raises(ValueError, match="at most 500, which entry 2 paid for"):
        survey.record_usage(paid, steps)
    assert survey.head() == head


def test_only_the_spend_on_a_run_can_be_spoken_of(survey, paid, tmp_path):
    with survey.spend("survey", Guarantee(0.1), purpose="a count") as count:
        pass
    other = Ledger(tmp_path / "other.db")
    other.open("survey", psi=1.0, kappa=1e-6, actor="Ann", purpose="another")
    with other.spend("survey", RUN, kappa=1e-10, purpose="a model") as spend:
        pass
    for wrong in (count.entry, spend.entry):
        with pytest.raises(ValueError, match="must be the spend on a DP-SGD run that is spoken of"):
            survey.record_usage(wrong, 1)
    opened = next(iter(survey.entries()))
    with pytest.raises(ValueError, match="entry 1 of this ledger must be a spend, got opened"):
        survey.record_usage(opened, 1)
    other.dispose()


def test_a_spend_is_found_by_its_number(survey, paid):
    assert survey.spent(paid.id) == paid
    with pytest.raises(ValueError, match="entry 99 of this ledger must be a spend, got none"):
        survey.spent(99)


def test_a_run_that_may_fail_by_itself_pays_for_that_too(survey):
    with survey.spend("survey", RUN, kappa=1e-10, failure=4e-11, purpose="a model") as spend:
        pass
    plain = priced_run(RUN, 1e-10)[0]
    assert spend.entry.psi > plain.psi
    assert (spend.entry.kappa, spend.entry.details()["failure"]) == (1e-10, 4e-11)
    survey.verify()
    with pytest.raises(ValueError, match=r"kappa .* must exceed what the events already have"):
        survey.spend("survey", RUN, kappa=1e-10, failure=2e-10, purpose="a model")
    with pytest.raises(TypeError, match="kappa and failure must be given with a DP-SGD run"):
        survey.spend("survey", Guarantee(0.1), failure=1e-10, purpose="a count")
