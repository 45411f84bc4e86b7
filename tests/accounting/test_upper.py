"""The upper ends of a curve: those of its intervals, rates on tangents, and odds, each against another method."""

import numpy as np
import pytest
from scipy.stats import norm

from psidp import Guarantee
from psidp.accounting import DPSGD, account
from psidp.accounting.upper import UpperEnds

RATES = np.array([1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.999])


@pytest.mark.parametrize("event", [DPSGD(1.0, 0.01, 1000), DPSGD(0.6, 0.05, 200), Guarantee(2.0)])
def test_they_are_the_upper_ends_and_rates_are_bounds_that_are_nearly_so(event):
    curve = account(event)
    ends = UpperEnds(curve)
    assert ends.epsilon(1e-6) == curve.epsilon(1e-6).upper
    assert ends.delta(0.5) == curve.delta(0.5).upper
    assert (ends.advantage, ends.auc) == (curve.advantage.upper, curve.auc.upper)
    exact, found = curve.roc(RATES), ends.roc(RATES)
    assert np.all(found >= exact.lower)
    assert np.all(found <= exact.upper * (1.0 + 1e-5))
    assert ends.roc(0.01) == pytest.approx(found[2], rel=1e-12)


def test_rates_begin_at_nothing_and_end_at_all_and_failure_is_in_them():
    series = [DPSGD(1.0, 0.01, 1000), Guarantee(0.0, 1e-3)]
    ends, plain = UpperEnds(account(series)), UpperEnds(account(series[0]))
    assert (plain.roc(0.0), plain.roc(1.0)) == (0.0, 1.0)
    assert ends.roc(0.0) == pytest.approx(1e-3, rel=1e-9)
    assert ends.kappa == pytest.approx(1e-3, rel=1e-9)
    assert ends.roc(0.01) == pytest.approx(account(series).roc(0.01).upper, rel=1e-5)
    assert (ends.adjacency, ends.unit) == ("add-remove", "record")


def test_coarse_rates_stay_bounds():
    curve = account(DPSGD(1.0, 0.01, 1000))
    coarse = UpperEnds(curve).roc(RATES, fine=0.5)
    assert np.all((curve.roc(RATES).lower <= coarse) & (coarse <= curve.roc(RATES).upper * 1.01))


@pytest.mark.parametrize("psi", [0.1, 1.0, 4.0])
def test_odds_grow_no_more_than_that_but_for_the_stated_chance(psi):
    ends = UpperEnds(account(Guarantee(psi)))
    for probability in (0.1, 0.01, 1e-4):
        factor = ends.odds_multiplier(probability)
        exceeded = norm.sf((np.log(factor) - psi**2 / 2) / psi)  # of the Gaussian mechanism's privacy loss
        assert exceeded <= probability
        assert factor <= Guarantee(psi).odds_multiplier(probability) * (1.0 + 1e-3)
    assert ends.odds_multiplier(0.0) == np.inf


def test_odds_of_a_run_are_below_those_of_the_psi_that_covers_it():
    curve = account(DPSGD(1.0, 0.01, 1000))
    assert UpperEnds(curve).odds_multiplier(0.01) < 0.9 * curve.guarantee(1e-10).odds_multiplier(0.01)
