"""Opacus with the certified accountant."""

import psidp
from psidp.bridges import opacus


def test_its_epsilon_is_the_certified_upper_end():
    accountant = opacus.register()()
    accountant.history = [(1.0, 0.01, 1000)]
    assert accountant.get_epsilon(1e-5) == psidp.account(psidp.DPSGD(1.0, 0.01, 1000)).epsilon(1e-5).upper
