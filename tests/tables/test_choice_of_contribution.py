"""Choice of a contribution: what clipping took is estimated from noisy numbers alone, and what is chosen is nearly the
best."""

from math import log

import numpy as np
import pyarrow as pa
import pytest

from psidp import Curator, ask
from psidp.tables.choices.unit_sizes import CANDIDATES, UnitNorms, best_contribution, largest_contribution
from psidp.tables.question import prepared
from psidp.tables.unit_bounds import SIZES, NormBound

EXACT = 1e6
"""A psi at which noise is too small to see, so that what is computed can be compared."""


def people(units=2000, each=50):
    """Each person has so many rows, all of value 55, in four groups in turn."""
    n = np.arange(units * each)
    return pa.table({"who": n % units, "ward": (n // units) % 4, "x": np.full(units * each, 55.0)})


def counted(norms):
    """Units by the size of their norm, as the engine counts them."""
    return np.histogram(norms, [0.0, *(np.nextafter(s, np.inf) for s in SIZES), np.inf])[0]


def test_an_answer_says_how_many_were_clipped_and_how_much_that_took():
    """2,000 people with 50 rows in one group: 0.98 is lost at contribution 1, a third of that at 32, nothing at 64."""
    curator = Curator(people(), "who", protects="person")
    for contribution, lost in ((1.0, 0.98), (8.0, 0.84)):
        answer = curator.ask(ask.count(), contribution=contribution).release(psi=EXACT)
        said = str(answer.notes[1])
        assert "About 2,000 of 2,000 units had more. Of the total that they would add without a bound, clipping" in said
        assert float(said.split("took about ")[1].split("%")[0]) == pytest.approx(100 * lost, abs=3)
        assert [row["flag"] for row in answer] == ["clipping"]
        assert 'Flag "clipping" (1 of 1 numbers)' in answer.summary()
    answer = curator.ask(ask.count(), contribution=64).release(psi=EXACT)
    assert "Nobody was seen to have more, but behind the noise clipping may have taken up to" in str(answer.notes[1])
    assert [row["flag"] for row in answer] == [""]
    assert answer.value("count") == pytest.approx(100_000, abs=0.01)


def test_without_a_share_nothing_is_measured_and_the_answer_says_so():
    question = Curator(people(100), "who").ask(ask.count(), clipping_share=0.0)
    answer = question.release(psi=1.0)
    assert "What clipping took was not measured." in answer.summary()
    assert "not measured (clipping_share=0)" in answer.summary()
    priced = question.at(1.0)
    assert priced.psi_of(priced.asks[0]) == pytest.approx(1.0, rel=1e-12)
    assert priced.totals.measured == ()


def test_where_nobody_can_be_clipped_nothing_is_measured():
    assert "clipping took" not in Curator(people(100), None).ask(ask.count()).release(psi=1.0).summary()
    terms = {"by": "ward", "groups": range(4)}
    units = Curator(people(100), "who").ask(ask.units(), contribution=2, **terms).plan(psi=1.0)
    assert units.expected[0].psi == pytest.approx(1.0)
    one = Curator(people(100), "who").ask(ask.units(), contribution=1, **terms).plan(psi=1.0)
    assert one.expected[0].psi == pytest.approx(0.98**0.5)


@pytest.mark.parametrize("share", [-0.1, 0.6, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match=r"clipping_share \(part of psi\^2 .*\) must be in \[0, 0.5\]"):
        Curator(people(10), "who").ask(ask.count(), clipping_share=share)


def test_norms_are_even_on_the_logarithmic_scale_inside_a_bin():
    """Against a fine grid of norms in one bin."""
    counts = np.zeros(len(SIZES) + 1)
    counts[5] = 1000.0  # (16, 32]
    norms = UnitNorms(counts, 0.01)
    fine = np.exp(np.linspace(log(16), log(32), 200_001))
    for c in (1.0, 16.0, 20.0, 31.0, 32.0, 50.0):
        over = np.maximum(fine - c, 0)
        assert norms.excess(c) / 1000 == pytest.approx(over.mean(), abs=1e-3)
        assert norms.lost(c)[0] == pytest.approx(over.mean() / fine.mean(), abs=1e-4)
        assert norms.clipped(c)[0] / 1000 == pytest.approx((fine > c).mean(), abs=1e-4)


def test_errors_of_what_is_said_are_the_errors():
    """2,000 seeded draws of norms without a long tail: right on average, and spread as they say."""
    dice = np.random.default_rng(5)
    exact, sigma = counted(np.minimum(60.0, dice.lognormal(3.0, 0.8, 20_000))).astype(float), 30.0
    drawn = [UnitNorms(exact + sigma * dice.normal(size=exact.size), sigma) for _ in range(2000)]
    for c in (8.0, 24.0):
        lost, said = np.array([n.lost(c) for n in drawn]).T
        assert lost.mean() == pytest.approx(UnitNorms(exact, 1e-9).lost(c)[0], abs=0.001)
        assert lost.std() == pytest.approx(said.mean(), rel=0.15)
        clipped, error = np.array([n.clipped(c) for n in drawn]).T
        assert clipped.std() == pytest.approx(error.mean(), rel=0.15)


def test_noise_alone_makes_no_tail():
    dice = np.random.default_rng(6)
    exact = np.zeros(len(SIZES) + 1)
    exact[2] = 500.0
    drawn = [UnitNorms(exact + 9.0 * dice.normal(size=exact.size), 9.0) for _ in range(1000)]
    assert sum(n.lost(4.0)[0] > 0.0 for n in drawn) <= 2
    assert np.isnan(UnitNorms(np.zeros(22), 1.0).lost(1.0)).all()


@pytest.mark.parametrize("spread", [0.3, 1.2, 2.0])
@pytest.mark.parametrize("groups", [1, 35])
def test_a_chosen_contribution_for_totals_is_nearly_the_best(spread, groups):
    """Errors of all candidates from the exact norms; less than twice the best where one group has the hidden tail."""
    dice = np.random.default_rng(7)
    norms = np.ceil(dice.lognormal(3.0, spread, 5000))
    psi, sigma = 0.5, 6.0
    chosen = best_contribution(
        ask.count().measure, UnitNorms(counted(norms) + sigma * dice.normal(size=22), sigma), groups, psi
    )

    def error(c):
        lost = np.maximum(norms - c, 0).sum() / groups
        return np.sqrt((c / psi) ** 2 + lost**2)

    assert error(chosen) <= (2.0 if groups == 1 else 1.3) * min(error(c) for c in CANDIDATES)


MEASURES = [
    ask.count(), ask.mean("x", 0, 1), ask.variance("x", 0, 1), ask.sum("x", 0, 1), ask.histogram("x", range(5000)),
    ask.units(),
]  # fmt: skip


@pytest.mark.parametrize("asked", MEASURES, ids=lambda a: a.name)
@pytest.mark.parametrize("groups", [1, 35, 1000, 10**6])
def test_what_auto_may_choose_is_never_refused_later(asked, groups):
    """A refusal after the choice would come once psi is spent, and would speak of the data."""
    vector = asked.measure.vector
    most = largest_contribution(asked.measure, groups)
    for c in CANDIDATES:
        if c <= most:
            NormBound.of(vector, c, groups).check(vector, asked.name)
    assert most >= 1.0


def test_auto_has_no_silent_ceiling():
    """A plane with 575 flights: the old candidates ended at 64 without a word."""
    norms = UnitNorms(counted(np.full(3000, 575.0)).astype(float), 3.0)
    assert best_contribution(ask.count().measure, norms, 1, 1.0) == 1024.0
    everything = UnitNorms(counted(np.full(3000, 2.0**22)).astype(float), 3.0)
    assert best_contribution(ask.count().measure, everything, 1, 1.0) == CANDIDATES[-1]


def test_contributions_are_chosen_measure_by_measure_and_others_stay():
    question = Curator(people(), "who").ask(
        ask.count(contribution="auto"), ask.units(), ask.mean("x", 0, 100, contribution="auto"), by="ward",
        groups=range(4), contribution=1.5,
    )  # fmt: skip
    drawn = prepared(question.at(20.0))()
    count, units, mean = (ask.contribution for ask in drawn.priced.asks)
    assert 16.0 <= count <= 64.0  # 50 rows, 12 or 13 in each of four wards: a norm of 25
    assert units == 1.5
    assert mean <= count  # all values are the same, so that clipping costs a mean nothing that is seen
    assert drawn.priced.found.chosen == {"count", "mean of x"}
    assert set(drawn.norms) == {"count", "units", "mean of x"}


def test_a_plan_says_a_means_error_by_the_size_of_its_group_and_a_quantiles_in_ranks():
    asks = [ask.mean("x", 0, 100), ask.quantiles("x", range(101), at=[0.5])]
    plan = Curator(people(10), "who").ask(*asks, contribution=4, clipping_share=0.0).plan(psi=2.0)
    mean, quantile = plan.expected
    sigma = 4.0 * 2.0**0.5 / 2.0
    errors = [min(50.0, 2.0**0.5 * sigma * 50.0 / n) for n in (100, 1000, 10_000)]
    assert mean.by_rows == tuple(
        (n, pytest.approx(e, rel=1e-5)) for n, e in zip((100, 1000, 10_000), errors, strict=True)
    )
    assert "2 in a group of 100 rows, 0.2 in a group of 1,000 rows" in plan.summary()
    assert quantile.ranks == pytest.approx(sigma * 10 / 2)
    assert "standard error of a median's rank 14.1 ranks" in plan.summary()


def test_a_plan_says_what_errors_a_contribution_that_is_to_be_chosen_would_have():
    plan = Curator(people(10), "who").ask(ask.count(), ask.mean("x", 0, 100), contribution="auto").plan(psi=1.0)
    count, mean = plan.expected
    sigma = count.sigma
    said = f"contribution that is chosen: {sigma:.3g} at 1, {64 * sigma:.3g} at 64, {256 * sigma:.3g} at 256"
    assert said in count.sentence()
    assert f"in a group of 10,000 rows {mean.by_rows[2][1]:.3g} at 1, " in mean.sentence()
    assert "is chosen" not in Curator(people(10), "who").ask(ask.count()).plan(psi=1.0).summary()


@pytest.mark.parametrize("psi", [1e-100, 1e100])
@pytest.mark.parametrize("asked", [ask.mean("x", bounds="auto"), ask.count(contribution="auto")])
def test_psi_at_which_a_choice_could_not_draw_noise_is_refused_before_payment(psi, asked):
    priced = Curator(people(20, 2), "who").ask(asked, contribution=2).priced(psi, None, {})
    with pytest.raises(ValueError, match=r"psi of each measure must be in \[2\^-300, 2\^300\]"):
        prepared(priced)


@pytest.mark.parametrize("sigma", [1e-15, 1e-100, 1e-300])
def test_a_tail_behind_next_to_no_noise_is_next_to_nothing(sigma):
    share, rows = UnitNorms(np.array([500.0, 300.0] + [0.0] * 20), sigma).at_most(64.0)
    assert 0.0 <= share <= 1e-12
    assert 0.0 <= rows <= 1e-9
