"""Streams on two neighbours through the audit: consistent with psi, and noise that is too small is caught.

The noise is scripted, by a seeded generator; `./dev bench streams` runs 10,000 streams with the exact noise.
"""

import numpy as np
import pytest

from psidp import Guarantee, audit
from psidp.mechanism import stream_plan, stream_series
from psidp.strategies import Participation, Workload

STREAMS, PERIODS, PSI = 4000, 8, 1.0


def scores(plan, totals, direction, dice, noise, monkeypatch):
    """How much each stream looks like the neighbour with the unit: the likelihood ratio of all that it released."""
    monkeypatch.setattr(
        stream_series, "noisy_integer", lambda g, n: round(n + noise * g.sigma * dice.standard_normal())
    )
    (part,) = plan.parts
    return [
        sum(d * stream_series.drawn(plan, part, totals[:t]) for t, d in enumerate(direction, 1)) / part.sigma**2
        for _ in range(STREAMS)
    ]


@pytest.mark.parametrize(("noise", "kept"), [(1.0, True), (0.9, False)])
def test_the_best_attack_on_thousands_of_streams_finds_psi_and_finds_noise_that_is_too_small(noise, kept, monkeypatch):
    plan = stream_plan.StreamPlan.made([("total", 1, 1.0, 0)], Workload.together(PERIODS), Participation(2), PSI)
    without = [50, 60, 55, 70, 40, 65, 52, 48]
    inside = [n + (t < 2) for t, n in enumerate(without)]  # the worst unit: in the first periods that it may be in
    direction = [plan.strategy.newest(inside[:t]) - plan.strategy.newest(without[:t]) for t in range(1, PERIODS + 1)]
    dice = np.random.default_rng(16)
    found = [scores(plan, totals, direction, dice, noise, monkeypatch) for totals in (inside, without)]
    result = audit(*found, claimed=Guarantee(PSI), method="ranks", seed=1)
    assert (result.p_value > 0.05) is kept
    assert (result.psi <= PSI) is kept
    assert result.psi > 0.9 * PSI
