"""Answers proved in ball arithmetic."""

import psidp


def test_balls_agree_with_floats():
    run = psidp.DPSGD(1.0, 0.01, 1000)
    fast, proved = psidp.account(run).epsilon(1e-5), psidp.account(run, certify=True).epsilon(1e-5)
    assert proved.lower <= fast.upper
    assert fast.lower <= proved.upper
    assert proved.upper - proved.lower < 1e-6
