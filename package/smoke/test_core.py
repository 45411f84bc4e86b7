"""Without any extra: README's tour, accounting on every platform, exact noise, a budget, an audit, a card."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

import psidp

README = Path(__file__).resolve().parents[2] / "README.md"
RUNS = {  # the interval's place, as the suite proves it
    "a short run": (psidp.DPSGD(1.0, 0.01, 1000), 1e-5, 1.828236666),
    "a long run": (psidp.DPSGD(1.0, 0.9, 10**7), 1e-3, 4081754.1653990657),
    "far out": (psidp.DPSGD(0.02, 1e-5, 1), 1e-6, None),
    "tiny delta": (psidp.DPSGD(2.0, 0.02, 5000), 1e-18, None),
    "guarantees": ([psidp.Guarantee(0.75), psidp.Guarantee(1.0)], 1e-5, psidp.epsilon_from_psi(1.25, 1e-5)),
}


def test_the_tour_of_the_readme_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = "\n".join(re.findall(r"^```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE))
    tour = doctest.DocTestParser().get_doctest(source, {}, "README", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(tour).failed == 0
    assert len(tour.examples) > 20


@pytest.mark.parametrize("long_double", ["as it is here", "a double"])
@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_accounted_with_and_without_long_doubles(name, long_double, monkeypatch):
    """On ARM and macOS a long double is a double: there is no contour in extended precision then."""
    events, delta, place = RUNS[name]
    here = psidp.account(events).epsilon(delta)
    if long_double == "a double":
        monkeypatch.setattr(np, "longdouble", np.float64)
    found = psidp.account(events).epsilon(delta)
    assert long_double != "a double" or "extended" not in found.method
    assert found.lower <= here.upper
    assert here.lower <= found.upper
    assert found.upper - found.lower <= 1e-6 * found.upper
    assert place is None or found.upper == pytest.approx(place, rel=1e-9)


def test_calibration_keeps_the_promise_without_long_doubles(monkeypatch):
    monkeypatch.setattr(np, "longdouble", np.float64)
    sigma = psidp.calibrate(epsilon=2.0, delta=1e-5, sampling_rate=0.01, steps=1000)
    assert psidp.account(psidp.DPSGD(sigma, 0.01, 1000)).epsilon(1e-5).upper <= 2.0


def test_noise_has_the_width_that_was_asked():
    drawn = psidp.GaussianMechanism(sensitivity=1, sigma=3.0).release(np.zeros(40_000)).value
    assert abs(float(np.mean(drawn))) < 6 * 3.0 / 200  # a false alarm in 1e9
    assert abs(float(np.std(drawn)) / 3.0 - 1) < 6 / np.sqrt(80_000)


def test_a_budget_pays_refuses_and_verifies(tmp_path):
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("survey", psi=1.0, actor="Ann", purpose="a try")
    release = psidp.GaussianMechanism(sensitivity=1, sigma=2.0)
    with ledger.spend("survey", release.guarantee, purpose="a count"):
        release.release(1234)
    with pytest.raises(psidp.errors.BudgetExceededError, match="left"):
        ledger.spend("survey", psidp.Guarantee(0.9), purpose="too much").__enter__()
    ledger.verify()
    assert ledger.report("survey").spent.psi == 0.5
    ledger.dispose()


def test_an_audit_finds_psi():
    dice = np.random.default_rng(1)
    assert 0.9 < psidp.audit(dice.normal(1.0, 1.0, 10_000), dice.normal(0.0, 1.0, 10_000)).psi < 1.0


def test_a_card_goes_there_and_back():
    card = psidp.card(psidp.Guarantee(1.0), title="A try", date="2026-01-31")
    assert psidp.Card.from_json(card.to_json()) == card
