"""Flags: intervals hold what clipping may have moved, or carry a flag; from noisy numbers alone."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from psidp import Curator, ask
from psidp.tables.choices.unit_sizes import UnitNorms, best_contribution
from psidp.tables.estimate import Estimate
from psidp.tables.flags import judged
from psidp.tables.unit_bounds import SIZES
from reference.repeated import repeated


def counted(norms):
    """Units by the size of their norm, as the engine counts them."""
    return np.histogram(norms, [0.0, *(np.nextafter(s, np.inf) for s in SIZES), np.inf])[0]


def test_a_mean_is_flagged_by_how_much_groups_differ():
    """Groups that differ by 10 and lose 0.3: a bias of 3 matters for an interval of 4, not for one of 30."""
    asked = ask.mean("x", 0, 100)
    values = [40.0, 60.0, 45.0, 55.0, 50.0, 35.0, 65.0]
    narrow = [[Estimate("mean of x", v, 0.5, v - 1, v + 1)] for v in values]
    wide = [[Estimate("mean of x", v, 0.5, v - 15, v + 15)] for v in values]
    assert {e.flag for (e,) in judged(asked.measure.spread, narrow, 0.3)} == {"clipping"}
    assert {e.flag for (e,) in judged(asked.measure.spread, wide, 0.3)} == {""}
    assert {e.flag for (e,) in judged(asked.measure.spread, narrow, 0.0)} == {""}
    assert {e.flag for (e,) in judged(asked.measure.spread, narrow, float("nan"))} == {""}
    alike = [[replace(e, value=50.0)] for (e,) in narrow]
    assert {e.flag for (e,) in judged(asked.measure.spread, alike, 0.3)} == {
        ""
    }  # no difference, and 1 % of 50 is little


def test_a_mean_reaches_both_ways_by_what_clipping_may_have_moved_and_not_beyond_its_bounds():
    values = [40.0, 60.0, 45.0, 55.0, 50.0, 35.0, 65.0]
    plain = [[Estimate("mean of x", v, 2.0, v - 33, v + 33)] for v in values]
    reached = [e for (e,) in judged(ask.mean("x", 0, 100).measure.spread, plain, 0.3)]
    bias = {round(e.value - 33 - e.lower, 9) for e in reached if e.lower > 0.0}
    assert len(bias) == 1
    assert 2.0 < bias.pop() < 0.3 * 14.0  # 0.3 of how much groups differ
    assert (reached[5].lower, reached[6].upper) == (0.0, 100.0)
    few = [e for (e,) in judged(ask.mean("x", 0, 100).measure.spread, plain[:3], 0.3)]
    assert few[0].upper == pytest.approx(40.0 + 33.0 + 0.3 * 0.1 * 50.0)  # nobody knows: a tenth of half the range


def skewed(kind):
    """Rows by person: a lognormal or a power law of rows, or 300 with 200 rows beside many with few, in one ward."""
    dice = np.random.default_rng(1)
    if kind == "two kinds":
        rows, ward = (
            np.r_[dice.integers(1, 6, 10_000), np.full(300, 200)],
            np.r_[dice.integers(0, 6, 10_000), [0] * 300],
        )
    elif kind == "lognormal":
        rows = np.ceil(dice.lognormal(1.5, 1.2, 8000)).astype(int)
        ward = np.where(rows > 30, 0, dice.integers(0, 6, rows.size))
    else:
        rows = np.minimum(2000, np.ceil(dice.pareto(1.3, 20_000) + 1)).astype(int)
        ward = dice.integers(0, 6, rows.size)
    return rows, ward


@pytest.mark.parametrize("kind", ["lognormal", "two kinds"])
def test_means_cover_or_are_flagged_where_units_with_many_rows_have_other_values(kind):
    """Those with the most rows lie 15 higher, and in one ward, by which the others can tell."""
    rows, ward = skewed(kind)
    dice = np.random.default_rng(4)
    who = np.repeat(np.arange(rows.size), rows.astype(int))
    x = np.clip(50 + 15 * (rows >= np.quantile(rows, 0.95))[who] + dice.normal(0, 15, who.size), 0, 100)
    truth = np.bincount(ward[who], x) / np.bincount(ward[who])
    curator = Curator(pa.table({"who": who, "ward": ward[who], "x": x}), "who")
    question = curator.ask(ask.mean("x", 0, 100), by="ward", groups=range(6), contribution="auto")
    found = [(e, truth[key[0]]) for answer in repeated(question, 1.0, 15) for key, e in answer.rows]
    sure = [e.lower <= t <= e.upper for e, t in found if not e.flag]
    assert sum(not covered for covered in sure) <= 0.06 * len(sure)


@pytest.mark.parametrize("kind", ["lognormal", "power law", "two kinds"])
@pytest.mark.parametrize("psi", [0.1, 0.3, 1.0])
def test_intervals_of_counts_cover_what_was_not_clipped_or_are_flagged(kind, psi):
    """200 releases with NumPy's noise at the contribution that "auto" chooses; before, down to 0 of them covered.

    A power law is flagged nearly always: of what is left a third covers, since noise made its tail look shorter.
    """
    rows, ward = skewed(kind)
    truth, exact, dice = np.bincount(ward, rows), counted(rows), np.random.default_rng(2)
    covered = []
    for _ in range(200):
        sigma = 1.0 / (psi * 0.1**0.5)
        norms = UnitNorms(exact + sigma * dice.normal(size=exact.size), sigma)
        c = best_contribution(ask.count().measure, norms, 6, psi * 0.9**0.5)
        noise = c / (psi * 0.9**0.5)
        noisy = np.bincount(ward, np.minimum(rows, c)) + noise * dice.normal(size=6)
        found = [[Estimate("count", v, noise, v - 1.96 * noise, v + 1.96 * noise)] for v in noisy]
        reached = judged(ask.count().measure.spread, found, *norms.at_most(c))
        covered += [e.lower <= t <= e.upper for (e,), t in zip(reached, truth, strict=True) if not e.flag]
    assert sum(not c for c in covered) <= 0.07 * (1200 if kind == "power law" else len(covered))


def test_a_total_reaches_to_what_clipping_may_have_taken_on_the_side_where_that_lies():
    found = [[Estimate("sum of x", 100.0, 10.0, 80.0, 120.0)]]
    for (lower, upper), ends in (((0, 5), (80.0, 130.0)), ((-5, 0), (70.0, 120.0)), ((-5, 5), (70.0, 130.0))):
        ((e,),) = judged(ask.sum("x", lower, upper).measure.spread, found, 0.5, 2.0)
        assert (e.lower, e.upper, e.flag) == (*ends, "")
    ((e,),) = judged(ask.count().measure.spread, found, 0.5, 41.0)
    assert (e.lower, e.upper, e.flag) == (80.0, 120.0, "clipping")
    ((e,),) = judged(ask.count().measure.spread, found, 0.01)
    assert e.upper == pytest.approx(120.0 + 2.0 * 100.0 * 0.01 / 0.99)


def test_where_noise_hides_everybody_clipping_may_have_taken_anything():
    hidden = UnitNorms(np.zeros(len(SIZES) + 1), 5.0)
    assert hidden.at_most(8.0) == (1.0, float("inf"))
    ((e,),) = judged(ask.count().measure.spread, [[Estimate("count", 9.0, 1.0, 7.0, 11.0)]], *hidden.at_most(8.0))
    assert e.flag == "clipping"


@pytest.mark.parametrize("asked", [ask.count(), ask.histogram("x", [0, 1])], ids=lambda a: a.name)
def test_a_flag_that_is_there_stays_beside_the_new_one(asked):
    found = [[Estimate(asked.name, 9.0, 1.0, 7.0, 11.0, "noise")]]
    ((e,),) = judged(asked.measure.spread, found, 1.0, 1e9)
    assert e.flag == "noise, clipping"


def test_intervals_of_quantiles_stay_where_they_are():
    found = [[Estimate("median of x", 9.0, 1.0, 7.0, 11.0)]]
    ((e,),) = judged(ask.median("x", range(20)).measure.spread, found, 0.1)
    assert e == found[0][0]
