"""There and back with dp-accounting, and its own accountant from above."""

import dp_accounting

import psidp
from psidp.bridges import dp_accounting as bridge


def test_runs_go_there_and_come_back():
    runs = [psidp.DPSGD(1.0, 0.01, 500), psidp.DPSGD(0.8, 0.004, 2000)]
    assert bridge.from_dp_event(bridge.to_dp_event(runs)) == runs


def test_its_accountant_agrees_from_above():
    run = psidp.DPSGD(1.0, 0.01, 1000)
    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-3)
    theirs = accountant.compose(bridge.to_dp_event(run)).get_epsilon(1e-5)
    assert psidp.account(run).epsilon(1e-5).upper <= theirs <= 1.829
