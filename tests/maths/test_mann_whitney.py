"""The Mann-Whitney law of the Gaussian experiment: moments by a second road, and the bound above the truth."""

from math import inf

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from psidp.maths.mann_whitney import SLACK, MannWhitney

CASES = [(0.0, 0.0), (0.25, 0.0), (1.0, 0.0), (3.0, 0.0), (1.0, 0.05)]


@pytest.mark.parametrize(("psi", "kappa"), CASES)
def test_the_moments_of_one_term_are_those_of_its_integral(psi, kappa):
    law = MannWhitney(psi, kappa, 50, 50)

    def moment(f):
        inside = quad(lambda x: f((1 - kappa) * ndtr(-x)) * norm.pdf(x - psi), -inf, inf, epsabs=1e-13)[0]
        return (1 - kappa) * inside + kappa * f(0.0)

    mean = moment(lambda v: v)
    assert law.loss == pytest.approx(mean, rel=1e-9)
    assert law.term_variance == pytest.approx(moment(lambda v: (v - mean) ** 2), rel=1e-8)
    assert law.term_third == pytest.approx(moment(lambda v: abs(v - mean) ** 3), rel=2 * SLACK)


def experiments(law, copies, seed):
    rng = np.random.default_rng(seed)
    ins, outs = rng.normal(law.psi, 1, (copies, law.n_in)), rng.normal(0, 1, (copies, law.n_out))
    ins[rng.random(ins.shape) < law.kappa], outs[rng.random(outs.shape) < law.kappa] = inf, -inf
    return 1 - (ins[:, :, None] > outs[:, None, :]).mean(axis=(1, 2)), ins, outs


@pytest.mark.parametrize(("psi", "kappa"), CASES)
def test_the_fourth_moment_of_the_rest_is_below_its_bound(psi, kappa):
    law = MannWhitney(psi, kappa, 40, 25)
    lost, ins, outs = experiments(law, 4000, 1)
    lose_in = np.where(ins < inf, (1 - kappa) * ndtr(-ins), 0.0).mean(axis=1)
    lose_out = np.where(outs > -inf, (1 - kappa) * ndtr(outs - psi), 0.0).mean(axis=1)
    rest = lost - lose_in - lose_out + law.loss
    assert (rest**4).mean() < law.rest_fourth  # the true moment is less than half of the bound: never by luck
    assert rest.mean() == pytest.approx(0.0, abs=5 * rest.std() / 4000**0.5)


@pytest.mark.parametrize(("psi", "kappa"), CASES)
def test_the_bound_on_the_tail_is_above_the_simulated_tail(psi, kappa):
    law = MannWhitney(psi, kappa, 60, 60)
    lost, _, _ = experiments(law, 4000, 2)
    for share in (0.01, 0.05, 0.2):
        at = np.quantile(lost, share)
        assert law.tail(at) > share  # the bound charges more than 0.03 at this size, six standard errors
        assert law.estimate(at) == pytest.approx(share, abs=0.05)


def test_the_bound_says_one_where_nothing_is_known():
    assert MannWhitney(1.0, 0.0, 2000, 2000).tail(0.5) == 1.0
    assert MannWhitney(60.0, 0.0, 2000, 2000).tail(0.0) == 1.0
