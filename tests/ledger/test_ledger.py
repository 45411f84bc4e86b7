"""A budget is opened once, spent exactly, never overspent, and never forgets."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import psidp
from psidp import Guarantee, Ledger
from psidp.ledger.cost import ZERO, Cost, shares
from psidp.maths.rounding import root_below

NAMES = [
    'O\'Brien "the" survey',
    "line\nbreak\ttab",
    "enquête 🧬 κ",
    "x'); DROP TABLE psidp_entries; --",
    "%s {0} :id ?",
]


def spend(ledger, psi, budget="survey", kappa=0.0, **more):
    with ledger.spend(budget, Guarantee(psi, kappa), purpose="a test", **more) as entry:
        return entry.entry


def test_a_spend_is_durable_before_its_block_begins(survey, url):
    with survey.spend("survey", Guarantee(0.6), purpose="mean age") as entry:
        other = Ledger(url)
        assert [e.state for e in other.entries()] == ["opened", "spent"]
        assert other.remaining("survey").psi == root_below(1 - Fraction(0.6) ** 2)
        other.dispose()
    assert (entry.id, entry.entry.purpose) == (2, "mean age")


def test_a_block_that_raises_stays_spent_and_the_ledger_says_that_nothing_was_released(survey):
    with pytest.raises(KeyError), survey.spend("survey", Guarantee(0.6), purpose="mean age"):
        raise KeyError("patient 17")
    entries = list(survey.entries())
    assert [e.state for e in entries] == ["opened", "spent", "withheld"]
    assert entries[2].refers == 2
    assert json.loads(entries[2].event) == {"kind": "withheld", "error": "KeyError", "by": survey.actor}
    assert "patient 17" not in "".join(survey.export())
    assert survey.remaining("survey").psi == root_below(1 - Fraction(0.6) ** 2)


def test_exhaustion_refuses_before_the_block_and_leaves_the_ledger_as_it_was(survey):
    spend(survey, 0.8)
    head = survey.head()
    event = {"kind": "gaussian", "sensitivity": 3.0, "sigma": 4.0}
    drawn = []
    with (
        pytest.raises(psidp.errors.BudgetExceededError, match=r"has psi 0\.6 left; this release needs 0\.75") as caught,
        survey.spend("survey", Guarantee(0.75), purpose="too much", event=event),
    ):
        drawn.append("noise")
    assert survey.head() == head
    assert not drawn
    smallest = caught.value.sigma
    assert Guarantee.gaussian(sensitivity=3.0, sigma=smallest).psi <= caught.value.psi_left
    assert Guarantee.gaussian(sensitivity=3.0, sigma=np.nextafter(smallest, 0.0)).psi > caught.value.psi_left
    fits = {"kind": "gaussian", "sensitivity": 3.0, "sigma": smallest}
    with survey.spend("survey", Guarantee.gaussian(sensitivity=3.0, sigma=smallest), purpose="fits", event=fits):
        pass


def test_both_caps_hold(survey):
    spend(survey, 0.1, kappa=4e-7)
    spend(survey, 0.1, kappa=4e-7)
    with pytest.raises(psidp.errors.BudgetExceededError, match=r"has kappa .* left; this release needs"):
        spend(survey, 0.1, kappa=4e-7)
    left = survey.remaining("survey")
    spend(survey, left.psi, kappa=left.kappa)
    assert survey.remaining("survey").psi < 1e-7
    survey.verify()


def test_ten_spends_of_a_tenth_fit_exactly_where_floats_would_refuse(ledger):
    whole = psidp.compose([Guarantee(0.1)] * 10)
    ledger.open("ten", psi=whole.psi, actor="Ann", purpose="a test")
    for _ in range(10):
        spend(ledger, 0.1, "ten")
    with pytest.raises(psidp.errors.BudgetExceededError):
        spend(ledger, 1e-8, "ten")
    total = sum(Fraction(e.psi) ** 2 for e in ledger.entries())
    assert total == 10 * Fraction(0.1) ** 2 <= Fraction(whole.psi) ** 2


@given(st.lists(st.floats(0.0, 1e150), max_size=20))
def test_psi_squared_is_totalled_exactly(values):
    total = sum((Cost.of(Guarantee(v)) for v in values), ZERO)
    assert total.square == sum(Fraction(v) ** 2 for v in values)
    assert Cost.read(total.text()) == total


@given(st.lists(st.floats(0.0, 0.999), max_size=20))
def test_kappa_composes_and_is_never_rounded_down(values):
    total = sum((Cost.of(Guarantee(0.0, v)) for v in values), ZERO)
    survival = Fraction(1)
    for v in values:
        survival *= 1 - Fraction(v)
    assert 1 - survival <= total.kappa <= (1 - survival) * (1 + Fraction(len(values), 2**190))


@given(st.fractions(min_value=0, max_value=10**12))
def test_what_is_left_is_the_largest_double_whose_square_fits(square):
    psi = root_below(square)
    assert Fraction(psi) ** 2 <= square < Fraction(np.nextafter(psi, np.inf)) ** 2


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12), st.floats(1e-9, 10.0))
def test_shares_sum_to_the_whole_to_the_last_bit(weights, psi):
    whole = Cost.of(Guarantee(psi, 1e-7))
    parts = shares(whole, {str(i): w for i, w in enumerate(weights)})
    assert sum(p.square for p in parts.values()) == whole.square
    assert sum(p.kappa for p in parts.values()) == whole.kappa
    assert all(p.square >= 0 and p.kappa >= 0 for p in parts.values())


@pytest.mark.parametrize("kappa", [0.0, 1e-9])
def test_52_weekly_shares_fit_to_the_last_week_and_no_53rd_does(ledger, kappa):
    ledger.open("weeks", psi=1.0, kappa=kappa, actor="Ann", purpose="a year of weeks")
    week = Guarantee(1.0, kappa).shares(52)
    for number in range(52):
        with ledger.spend("weeks", week, purpose=f"week {number}"):
            pass
    assert ledger.remaining("weeks").psi < 1e-7
    with pytest.raises(psidp.errors.BudgetExceededError), ledger.spend("weeks", week, purpose="week 53"):
        pass


def test_n_shares_are_no_more_than_the_whole_by_the_ledgers_own_rule():
    for psi, kappa, n in [(1.0, 0.0, 365), (0.1, 1e-6, 52), (1 / 3, 0.5, 1000), (2.0, 1e-300, 7), (0.7, 1.5e-323, 2)]:
        total, share = ZERO, Cost.of(Guarantee(psi, kappa).shares(n))
        for _ in range(n):
            total += share
        assert total.fits(Cost.of(Guarantee(psi, kappa)))


def test_a_split_budget_is_spent_and_its_shares_hold_all_of_it(survey):
    spend(survey, 0.6)
    survey.split("survey", {"ann": 1, "bob": 1, "cy": 1}, actor="Ann", purpose="three teams")
    caps = [
        psidp.ledger.balance.Balance.read(e.standing).cap for e in survey.entries() if e.budget in ("ann", "bob", "cy")
    ]
    assert sum(cap.square for cap in caps) == 1 - Fraction(0.6) ** 2
    assert survey.remaining("survey").psi == 0.0
    spend(survey, survey.remaining("cy").psi, "cy")
    with pytest.raises(psidp.errors.BudgetExceededError):
        spend(survey, 0.01)
    assert survey.report("survey").lifetime.psi == 0.6
    assert survey.report("survey").unit_total.psi > survey.report("cy").lifetime.psi
    survey.verify()


def test_a_budget_is_opened_once(survey):
    with pytest.raises(ValueError, match="opened once"):
        survey.open("survey", psi=2.0, actor="Eve", purpose="more")
    assert survey.head().id == 1


def test_raising_resetting_and_closing_are_entries_in_every_report(survey):
    spend(survey, 0.6)
    survey.raise_to("survey", psi=2.0, kappa=1e-6, actor="Ann", purpose="the board agreed")
    with pytest.raises(ValueError, match="can only be raised"):
        survey.raise_to("survey", psi=1.5, kappa=1e-6, actor="Ann", purpose="less")
    survey.reset("survey", actor="Bob", purpose="a new year")
    spend(survey, 0.8)
    report = survey.report("survey")
    assert [c.state for c in report.changes] == ["opened", "raised", "reset"]
    assert (report.spent.psi, report.lifetime.psi) == (0.8, psidp.compose([Guarantee(0.6), Guarantee(0.8)]).psi)
    survey.close("survey", actor="Ann", purpose="done")
    with pytest.raises(psidp.errors.BudgetClosedError):
        spend(survey, 0.1)
    assert survey.report("survey").to_dict()["changes"][-1]["event"]["by"] == "Ann"
    assert survey.remaining("survey").psi == 0.0
    survey.verify()


def test_reports_add_up_all_budgets_on_the_same_unit(ledger):
    for name, unit in (("a", "patient"), ("b", "patient"), ("c", "visit")):
        ledger.open(name, psi=1.0, unit=unit, actor="Ann", purpose="a test")
        with ledger.spend(name, Guarantee(0.5, unit=unit), purpose="a test"):
            pass
    assert ledger.report("a").unit_total.psi == psidp.compose([Guarantee(0.5)] * 2).psi
    assert ledger.report("c").unit_total.psi == 0.5


@pytest.mark.parametrize("terms", [{"unit": "visit"}, {"adjacency": "replace-one"}])
def test_other_units_and_neighbours_are_refused(survey, terms):
    with (
        pytest.raises(psidp.errors.MismatchError),
        survey.spend("survey", Guarantee(0.1, **terms), purpose="a test"),
    ):
        pass
    assert survey.head().id == 1


def test_a_gaussian_reading_is_not_accepted_for_a_foreign_mechanism(survey):
    claim = {"kind": "claim", "mechanism": "randomised response", "zcdp": 0.1, "kappa": 1e-7}
    gaussian = Guarantee.gaussian(zcdp=0.1)
    with pytest.raises(psidp.errors.MismatchError, match="must be spent at its price"):
        survey.spend("survey", gaussian, purpose="a test", event=claim)
    with pytest.raises(ValueError, match="does not bound its psi"):
        survey.spend("survey", gaussian, purpose="a test", event={"kind": "claim", "mechanism": "laplace", "auc": 0.7})
    with pytest.raises(ValueError, match="kind of an event"):
        survey.spend("survey", gaussian, purpose="a test", event={"kind": "magic"})
    with survey.spend("survey", Guarantee.from_zcdp(0.1, 1e-7), purpose="a test", event=claim):
        pass
    survey.verify()


def test_a_training_run_is_one_entry_at_the_price_of_its_curve(survey):
    run = psidp.DPSGD(noise_multiplier=2.0, sampling_rate=0.01, steps=500)
    with survey.spend("survey", run, kappa=1e-7, purpose="a model") as entry:
        pass
    assert entry.guarantee == psidp.account(run).guarantee(1e-7) == survey.report("survey").spent
    assert entry.entry.details()["steps"] == 500
    with pytest.raises(psidp.errors.MismatchError, match="must be spent at its price"):
        survey.spend("survey", Guarantee(0.01, 1e-7), purpose="cheaper", event=entry.entry.details())
    with pytest.raises(TypeError, match="kappa"):
        survey.spend("survey", Guarantee(0.1), kappa=1e-7, purpose="a model")
    other = psidp.DPSGD(2.0, 0.01, 1, sampling="without-replacement")
    with (
        pytest.raises(psidp.errors.MismatchError, match="adjacency"),
        survey.spend("survey", other, kappa=1e-7, purpose="q"),
    ):
        pass
    survey.verify()


@pytest.mark.parametrize("name", NAMES)
def test_names_are_stored_and_shown_as_they_are(ledger, name):
    ledger.open(name, psi=1.0, unit=name, actor="Ann", purpose=name)
    with ledger.spend(name, Guarantee(0.5, unit=name), purpose=name, retry_key=name, request=name) as entry:
        assert entry.answer(lambda: name) == name
    assert ledger.budgets() == [name]
    report = ledger.report(name).to_dict()
    assert (report["budget"], report["unit"], report["purpose"]) == (name,) * 3
    assert all(e.budget == name for e in ledger.entries())
    ledger.verify()


@pytest.mark.parametrize("name", ["", "  ", "nul\0", "\ud800", 7, None])
def test_names_that_no_database_can_hold_are_refused(sqlite_url, name):
    with pytest.raises(ValueError, match="budget must be"):
        Ledger(sqlite_url).open(name, psi=1.0, actor="Ann", purpose="a test")


@pytest.mark.parametrize("psi", [float("nan"), float("inf"), -1.0])
def test_no_budget_is_opened_for_a_psi_that_is_no_number(sqlite_url, psi):
    with pytest.raises(ValueError, match="psi"):
        Ledger(sqlite_url).open("survey", psi=psi, actor="Ann", purpose="a test")


def test_an_unknown_budget_is_refused_by_name(survey):
    with pytest.raises(psidp.errors.UnknownBudgetError, match="'other'"):
        spend(survey, 0.1, "other")
    with pytest.raises(psidp.errors.UnknownBudgetError):
        survey.remaining("other")


def test_an_export_restores_to_the_same_ledger_anywhere(survey, tmp_path):
    spend(survey, 0.5)
    lines = list(survey.export())
    copy = Ledger.restore(tmp_path / "copy.db", lines)
    assert list(copy.export()) == lines
    assert copy.verify() == survey.verify()
    with pytest.raises(psidp.errors.NotALedgerError, match="already"):
        Ledger.restore(tmp_path / "copy.db", lines)
    for broken in (lines[:-1], lines[:-2] + lines[-1:], [lines[0], lines[2], lines[1], lines[3]], lines[1:], []):
        with pytest.raises(psidp.errors.LedgerError):
            Ledger.restore(tmp_path / "broken.db", broken)
    assert not Ledger(tmp_path / "broken.db")._store.exists() or "no ledger" in _refusal(tmp_path / "broken.db")


def _refusal(path):
    with pytest.raises(psidp.errors.NotALedgerError) as caught:
        Ledger(path).budgets()
    return str(caught.value)
