"""Shortcuts are bounds too: Chernoff's for the easier direction, RDP at real orders for the comparison."""

import numpy as np
import pytest
from scipy.integrate import quad

from psidp import DPSGD, account, epsilon_from_rdp
from psidp.accounting.comparison import rdp_epsilon, rdp_of_sampled_gaussian
from psidp.accounting.composition import Composition
from psidp.accounting.easier_direction import stays_below
from psidp.accounting.methods import delta_bounds


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_shortcut_that_says_below_is_right_and_often_says_so(sign):
    rng = np.random.default_rng(11)
    said = 0
    for _ in range(25):
        sigma, q, steps = rng.uniform(0.8, 2.0), 10 ** rng.uniform(-2.3, -1.3), float(rng.integers(300, 3000))
        one = np.ones(1)
        run = Composition(sigma * one, q * one, steps * one, sign * one)
        epsilon = float(rng.uniform(0.5, 3.0))
        low, high, _ = delta_bounds(run, np.array([epsilon]))
        if not (low[0] > -100.0 and high[0] - low[0] < 1e-3):
            continue
        target = min(float(high[0]) + rng.uniform(-2.0, 4.0), 0.0)
        if stays_below(run, epsilon, target):
            said += 1
            assert low[0] <= target
    assert said >= 3  # else the test above has proved nothing


@pytest.mark.parametrize("alpha", [1.25, 2.0, 2.5, 7.3, 32.0])
def test_renyi_divergence_at_a_real_order_is_the_integral(alpha):
    sigma, q = 1.3, 0.02

    def integrand(g):
        loss = np.log1p(q * np.expm1(g / sigma - 0.5 / sigma**2))
        return np.exp(alpha * loss - g * g / 2) / np.sqrt(2 * np.pi)

    truth = np.log(quad(integrand, -14, 14 + alpha, epsabs=0, epsrel=1e-12, limit=400)[0]) / (alpha - 1)
    assert rdp_of_sampled_gaussian(sigma, q, alpha) == pytest.approx(truth, rel=1e-7, abs=1e-11)


def test_renyi_accounting_is_no_worse_at_real_orders_and_never_below_the_certified_epsilon():
    run = DPSGD(1.0, 0.01, 1000)
    whole = [run.steps * rdp_of_sampled_gaussian(1.0, 0.01, n) for n in range(2, 30)]
    at_whole = min(epsilon_from_rdp(rho, float(n), 1e-5) for n, rho in zip(range(2, 30), whole, strict=True))
    assert account(run).epsilon(1e-5).upper < rdp_epsilon(run, 1e-5) < at_whole
    assert rdp_epsilon(run, 1e-5) == pytest.approx(2.1013, abs=2e-4)  # what other RDP accountants report


@pytest.mark.parametrize("alpha", [1.0, 0.5, np.inf, np.nan])
def test_an_order_outside_one_to_infinity_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha"):
        rdp_of_sampled_gaussian(1.0, 0.01, alpha)
