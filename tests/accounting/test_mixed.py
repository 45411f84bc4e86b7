"""Mixed runs of up to twenty events: every answer is a probability or a loss, and none crashes."""

import random

import numpy as np
import pytest

from psidp import Guarantee
from psidp.accounting import DPSGD, account


def mixture(seed):
    """Two to twenty events, from next to no noise to a thousand times the clipping norm, and from one step to 10^6."""
    dice = random.Random(seed)
    count = 20 if seed % 3 == 0 else dice.randrange(2, 21)
    runs = [
        DPSGD(
            10.0 ** dice.uniform(-1.3, 3.0),
            dice.choice([10.0 ** dice.uniform(-8.0, 0.0), 1.0 - 10.0 ** dice.uniform(-8.0, -0.5), 1.0]),
            int(10.0 ** dice.uniform(0.0, dice.choice([1.0, 3.0, 6.0]))),
        )
        for _ in range(count - 1)
    ]
    return [
        *runs,
        Guarantee(10.0 ** dice.uniform(-3.0, 1.0), kappa=dice.choice([0.0, 10.0 ** dice.uniform(-12.0, -1.0)])),
    ]


@pytest.mark.parametrize("seed", range(9))
def test_mixed_runs_have_probabilities_between_0_and_1(seed):
    curve = account(mixture(seed))
    for epsilon in (0.0, 0.1, 3.0, 50.0):
        found = curve.delta(epsilon)
        assert 0.0 <= found.lower <= found.upper <= 1.0
    advantage, area = curve.advantage, curve.auc
    assert 0.0 <= advantage.lower <= advantage.upper <= 1.0
    assert 0.5 <= area.lower <= area.upper <= 1.0
    delta = max(2.0 * curve.kappa, 1e-6)
    if delta < 1.0:
        loss = curve.epsilon(delta)
        assert 0.0 <= loss.lower <= loss.upper < np.inf
