"""The paper's final theorem: five statements about one mechanism, and the arrow from each to each."""

import itertools

import numpy as np
import pytest

from psidp import (
    auc_from_psi,
    delta_from_psi,
    fnr_from_psi,
    psi_from_auc,
    psi_from_epsilon_delta,
    psi_from_rates,
    psi_from_rho,
    rho_from_psi,
    tpr_from_psi,
)

EPSILON, ALPHA, FPR = 0.7, 3.0, 0.05
STATEMENTS = {  # each is written down from psi, and read back to psi
    "profile": (lambda psi: delta_from_psi(psi, EPSILON), lambda delta: psi_from_epsilon_delta(EPSILON, delta)),
    "gdp": (lambda psi: fnr_from_psi(psi, FPR), lambda fnr: psi_from_rates(1.0 - fnr, FPR)),
    "rdp": (lambda psi: rho_from_psi(psi, ALPHA), lambda rho: psi_from_rho(rho, ALPHA)),
    "roc": (lambda psi: tpr_from_psi(psi, FPR), lambda tpr: psi_from_rates(tpr, FPR)),
    "auc": (auc_from_psi, psi_from_auc),
}


@pytest.mark.parametrize(("start", "end"), list(itertools.permutations(STATEMENTS, 2)))
@pytest.mark.parametrize("psi", [0.05, 0.5, 1.0, 2.5, 5.0])
def test_each_statement_follows_from_each_other(start, end, psi):
    write, read = STATEMENTS[start]
    recovered = read(write(psi))
    # conditioning: what one rounding of the written number is worth in psi
    step = abs(write(psi * (1 + 1e-6)) - write(psi)) / (1e-6 * psi)
    assert recovered == pytest.approx(psi, abs=1e-14 + 60 * np.spacing(write(psi)) / step, rel=2e-13)
    there = STATEMENTS[end][0]
    assert there(recovered) == pytest.approx(there(psi), rel=1e-9)


def test_the_roc_curve_is_one_minus_the_tradeoff():
    x = np.linspace(0, 1, 101)
    assert tpr_from_psi(1.3, x) == pytest.approx(1 - fnr_from_psi(1.3, x), rel=1e-13, abs=1e-15)
