"""The simulated rank test: copies laid out in one line count as each alone would, and grow with psi."""

import numpy as np
import pytest

from psidp.auditing.ranks import Experiment, Ranks
from psidp.auditing.scores import Scores


@pytest.mark.parametrize(("n_in", "n_out", "kappa"), [(1, 1, 0.0), (30, 70, 0.0), (500, 125, 0.2)])
def test_each_copy_counts_its_own_pairs(n_in, n_out, kappa):
    experiment = Experiment.draw(n_in, n_out, kappa, 300, np.random.default_rng(1))
    which = np.array([0, 3, 7, 150, 299])
    for psi in (0.0, 1.0, 11.9):
        alone = [(experiment.ins[b][:, None] + psi > experiment.outs[b]).sum() for b in which]
        assert experiment.wins(psi, which).tolist() == alone


def test_counts_never_fall_as_psi_grows():
    experiment = Experiment.draw(40, 40, 0.05, 200, np.random.default_rng(2))
    counts = np.array([experiment.wins(psi, np.arange(200)) for psi in np.linspace(0, 12, 50)])
    assert (np.diff(counts, axis=0) >= 0).all()


def test_the_bound_is_the_largest_psi_whose_p_value_is_small_enough():
    rng = np.random.default_rng(3)
    for n in (50, 2000):
        ranks = Ranks(Scores.of(rng.normal(1, 1, n), rng.normal(0, 1, n)), 0.05, 0.0, 7)
        bound = ranks.psi()
        assert ranks.p_value(bound) <= 0.05
        assert ranks.p_value(bound + 1e-4) > 0.05


def test_the_theorem_is_not_much_weaker_than_the_simulation_where_one_takes_over_from_the_other():
    rng = np.random.default_rng(4)
    scores = Scores.of(rng.normal(1, 1, 1500), rng.normal(0, 1, 1500))
    simulated = Ranks(scores, 0.05, 0.0, 8)
    assert simulated.simulated
    at = simulated.psi()
    assert 0.03 < simulated._law(at).estimate(scores.lost) < 0.07
    assert simulated._law(at - 0.02).tail(scores.lost) <= 0.05
