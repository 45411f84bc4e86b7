"""What clipping took is said, from noisy numbers alone; what cannot be trusted is flagged; quantiles do not drift."""

from dataclasses import replace
from math import log

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from psidp import Curator, PrivateGroups, ask
from psidp.curator.contribution import CANDIDATES, UnitNorms, best_contribution, grid_of, largest_contribution
from psidp.curator.contribution_sql import SIZES
from psidp.curator.estimate import Estimate, Noisy, estimates, flagged
from psidp.curator.execute import Drawn, Part, prepare
from psidp.curator.notes import answer_of, what_clipping_took
from psidp.curator.row_sql import coordinates

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
        answer = curator.release(ask.count(), psi=EXACT, contribution=contribution)
        said = str(answer.notes[1])
        assert "About 2,000 of 2,000 units had more. Of the total that they would add without a bound, clipping" in said
        assert float(said.split("took about ")[1].split("%")[0]) == pytest.approx(100 * lost, abs=3)
        assert [row["flag"] for row in answer] == ["clipping"]
        assert 'Flag "clipping" (1 of 1 numbers)' in answer.summary()
    answer = curator.release(ask.count(), psi=EXACT, contribution=64)
    assert "Nobody was seen to have more, but behind the noise clipping may have taken up to" in str(answer.notes[1])
    assert [row["flag"] for row in answer] == [""]
    assert answer.value("count") == pytest.approx(100_000, abs=0.01)


def test_without_a_share_nothing_is_measured_and_the_answer_says_so():
    curator = Curator(people(100), "who")
    answer = curator.release(ask.count(), psi=1.0, clipping_share=0.0)
    assert "What clipping took was not measured." in answer.summary()
    assert "not measured (clipping_share=0)" in answer.summary()
    asked = curator._question([ask.count()], (), None, None, 1.0, 1.0, 0.95, 0.0)
    assert asked.psi_of(asked.asks[0]) == pytest.approx(1.0, rel=1e-12)
    assert asked.totals([1.0], [()], False)[0].measured == ()


def test_where_nobody_can_be_clipped_nothing_is_measured():
    rows = Curator(people(100), None)
    assert "clipping took" not in rows.release(ask.count(), psi=1.0).summary()
    units = Curator(people(100), "who").plan(ask.units(), by="ward", groups=range(4), psi=1.0, contribution=2)
    assert units.expected[0].psi == pytest.approx(1.0)
    one = Curator(people(100), "who").plan(ask.units(), by="ward", groups=range(4), psi=1.0, contribution=1)
    assert one.expected[0].psi == pytest.approx(0.98**0.5)


@pytest.mark.parametrize("share", [-0.1, 0.6, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match=r"clipping_share \(part of psi\^2 .*\) must be in \[0, 0.5\]"):
        Curator(people(10), "who").plan(ask.count(), psi=1.0, clipping_share=share)


def test_a_count_that_cannot_be_told_from_zero_is_marked():
    answer = Curator(people(), "who").release(
        ask.count(), ask.mean("x", 0, 100), ask.sum("x", 0, 100), ask.quantiles("x", [0, 50, 100], at=[0.5]),
        by="ward", groups=[0, 9], psi=EXACT, contribution=64, where="who < 100",
    )  # fmt: skip
    flags = {(row["ward"], row["statistic"]): row["flag"] for row in answer if row["ward"] == 0}
    assert set(flags.values()) == {""}
    empty = Noisy(np.zeros((1, 1, 2)), 1.0, 0.0)
    (mean,) = estimates(ask.mean("x", 0, 100), grid_of(ask.mean("x", 0, 100), 1.0, 1), empty, 0, 0.95)
    assert (mean.flag, mean.lower, mean.upper) == ("noise", 0.0, 100.0)
    (count,) = estimates(ask.count(), grid_of(ask.count(), 1.0, 1), Noisy(np.full((1, 1, 1), 2.9), 1.0, 0.0), 0, 0.95)
    assert count.flag == "noise"
    (count,) = estimates(ask.count(), grid_of(ask.count(), 1.0, 1), Noisy(np.full((1, 1, 1), 3.1), 1.0, 0.0), 0, 0.95)
    assert count.flag == ""


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
        ask.count(), UnitNorms(counted(norms) + sigma * dice.normal(size=22), sigma), groups, psi
    )

    def error(c):
        lost = np.maximum(norms - c, 0).sum() / groups
        return np.sqrt((c / psi) ** 2 + lost**2)

    assert error(chosen) <= (2.0 if groups == 1 else 1.3) * min(error(c) for c in CANDIDATES)


@pytest.mark.parametrize("asked", [ask.count(), ask.mean("x", 0, 1), ask.variance("x", 0, 1), ask.sum("x", 0, 1),
                                   ask.histogram("x", range(5000)), ask.units()], ids=lambda a: a.kind)  # fmt: skip
@pytest.mark.parametrize("groups", [1, 35, 1000, 10**6])
def test_what_auto_may_choose_is_never_refused_later(asked, groups):
    """A refusal after the choice would come once psi is spent, and would speak of the data."""
    most = largest_contribution(asked, groups)
    for c in CANDIDATES:
        if c <= most:
            coordinates(asked, grid_of(asked, c, groups))
    assert most >= 1.0


def test_auto_has_no_silent_ceiling():
    """A plane with 575 flights: the old candidates ended at 64 without a word."""
    asked = Curator(people(10), "who")._question([ask.count()], (), None, None, 1.0, "auto", 0.95)
    norms = UnitNorms(counted(np.full(3000, 575.0)).astype(float), 3.0)
    assert best_contribution(ask.count(), norms, 1, 1.0) == 1024.0
    for c, ends in ((1024.0, False), (CANDIDATES[-1], True)):
        noisy = Noisy(np.zeros((1, 1, 1)), 1.0, 0.0)
        part = Part(asked.asks[0], c, grid_of(ask.count(), c, 1), noisy, norms)
        (said,) = map(str, what_clipping_took(asked, Drawn(((),), (part,))))
        assert ("ended at the largest contribution" in said) is ends


def test_a_mean_is_flagged_by_how_much_groups_differ():
    """Groups that differ by 10 and lose 0.3: a bias of 3 matters for an interval of 4, not for one of 30."""
    asked = ask.mean("x", 0, 100)
    values = [40.0, 60.0, 45.0, 55.0, 50.0, 35.0, 65.0]
    narrow = [[Estimate("mean of x", v, 0.5, v - 1, v + 1)] for v in values]
    wide = [[Estimate("mean of x", v, 0.5, v - 15, v + 15)] for v in values]
    assert {e.flag for (e,) in flagged(asked, narrow, 0.3)} == {"clipping"}
    assert {e.flag for (e,) in flagged(asked, wide, 0.3)} == {""}
    assert {e.flag for (e,) in flagged(asked, narrow, 0.0)} == {""}
    assert {e.flag for (e,) in flagged(asked, narrow, float("nan"))} == {""}
    alike = [[replace(e, value=50.0)] for (e,) in narrow]
    assert {e.flag for (e,) in flagged(asked, alike, 0.3)} == {""}  # no difference, and 1 % of 50 is little


def test_a_mean_reaches_both_ways_by_what_clipping_may_have_moved_and_not_beyond_its_bounds():
    values = [40.0, 60.0, 45.0, 55.0, 50.0, 35.0, 65.0]
    plain = [[Estimate("mean of x", v, 2.0, v - 33, v + 33)] for v in values]
    reached = [e for (e,) in flagged(ask.mean("x", 0, 100), plain, 0.3)]
    bias = {round(e.value - 33 - e.lower, 9) for e in reached if e.lower > 0.0}
    assert len(bias) == 1
    assert 2.0 < bias.pop() < 0.3 * 14.0  # 0.3 of how much groups differ
    assert (reached[5].lower, reached[6].upper) == (0.0, 100.0)
    few = [e for (e,) in flagged(ask.mean("x", 0, 100), plain[:3], 0.3)]
    assert few[0].upper == pytest.approx(40.0 + 33.0 + 0.3 * 0.1 * 50.0)  # nobody knows: a tenth of half the range


@pytest.mark.parametrize("kind", ["lognormal", "two kinds"])
def test_means_cover_or_are_flagged_where_units_with_many_rows_have_other_values(kind):
    """Those with the most rows lie 15 higher, and in one ward, by which the others can tell."""
    rows, ward = skewed(kind)
    dice = np.random.default_rng(4)
    who = np.repeat(np.arange(rows.size), rows.astype(int))
    x = np.clip(50 + 15 * (rows >= np.quantile(rows, 0.95))[who] + dice.normal(0, 15, who.size), 0, 100)
    truth = np.bincount(ward[who], x) / np.bincount(ward[who])
    curator = Curator(pa.table({"who": who, "ward": ward[who], "x": x}), "who")
    question = curator._question([ask.mean("x", 0, 100)], ["ward"], list(range(6)), None, 1.0, "auto", 0.95)
    draw = prepare(question, curator._engine)
    found = [(e, truth[key[0]]) for _ in range(15) for key, e in answer_of(question, draw()).rows]
    sure = [e.lower <= t <= e.upper for e, t in found if not e.flag]
    assert sum(not covered for covered in sure) <= 0.06 * len(sure)


def test_a_plan_says_a_means_error_by_the_size_of_its_group_and_a_quantiles_in_ranks():
    plan = Curator(people(10), "who").plan(
        ask.mean("x", 0, 100), ask.quantiles("x", range(101), at=[0.5]), psi=2.0, contribution=4, clipping_share=0.0
    )
    mean, quantile = plan.expected
    sigma = 4.0 * 2.0**0.5 / 2.0
    errors = [min(50.0, 2.0**0.5 * sigma * 50.0 / n) for n in (100, 1000, 10_000)]
    assert mean.by_rows == tuple(
        (n, pytest.approx(e, rel=1e-5)) for n, e in zip((100, 1000, 10_000), errors, strict=True)
    )
    assert "2 in a group of 100 rows, 0.2 in a group of 1,000 rows" in plan.summary()
    assert quantile.ranks == pytest.approx(sigma * 10 / 2)
    assert "standard error of a median's rank 14.1 ranks" in plan.summary()


def test_quantiles_of_few_rows_over_many_bins_do_not_drift():
    """342 rows in 600 bins, sigma 1: counts below 0 set to 0 led 63 away from the truth, here less than 8."""
    asked = ask.quantiles("x", np.linspace(-100, 500, 601), at=[0.1, 0.25, 0.5, 0.75, 0.9])
    dice = np.random.default_rng(1)
    x = dice.gamma(1.2, 30, size=342) - 20
    held, _ = np.histogram(x, np.asarray(asked.edges))
    errors, covered = [], []
    for _ in range(60):
        noisy = Noisy((held + dice.normal(size=600)).reshape(1, 600, 1), 1.0, 0.0)
        found = estimates(asked, grid_of(asked, 1.0, 1), noisy, 0, 0.95)
        truth = np.quantile(x, asked.at)
        errors.append([e.value for e in found] - truth)
        covered += [e.lower <= t <= e.upper for e, t in zip(found, truth, strict=True)]
    assert np.abs(errors).mean() < 8.0
    assert abs(np.mean(errors)) < 3.0
    assert np.mean(covered) > 0.95


FRAME = pd.DataFrame({"who": [1, 2, 3], "ward": ["a", "b", "a"], "n": [1, 2, 3]})


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "file"])
def test_groups_that_lie_in_the_table_are_refused(kind, tmp_path):
    if kind == "file":
        path = tmp_path / "v.parquet"
        FRAME.to_parquet(path)
        own, public = [path, str(path), tmp_path / "." / "v.parquet"], [["a", "b"]]
        source = path
    else:
        source = {"pandas": FRAME, "polars": pl.from_pandas(FRAME), "arrow": pa.Table.from_pandas(FRAME)}[kind]
        own = [
            source,
            source["ward"],
            {"ward": source["ward"]},
            source[["ward"]] if kind == "pandas" else source.select(["ward"]),
        ]
        other = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[kind]({"ward": ["a", "b"]})
        public = [other, other["ward"], ["a", "b"], np.array(["a"])]
    curator = Curator(source, "who")
    for keys in own:
        with pytest.raises(ValueError, match="groups must not come from the table itself"):
            curator.plan(ask.count(), by="ward", groups=keys, psi=1.0)
    for keys in public:
        assert "groups are taken as public" in curator.plan(ask.count(), by="ward", groups=keys, psi=1.0).summary()
    private = curator.plan(ask.count(), by="ward", groups=PrivateGroups(1e-9, 2), psi=1.0)
    assert "taken as public" not in private.summary()


def test_rows_without_a_unit_are_left_out_and_plan_answer_and_documents_say_so(tmp_path):
    """How many there are is not said: nobody paid for that."""
    table = pa.table({"who": [1, None, 2, None, None], "ward": ["a", "a", "b", "b", "b"]})
    said = "Rows whose 'who' is missing belong to nobody and are left out of every number."
    curator = Curator(table, "who")
    assert said in curator.plan(ask.count(), psi=1.0).summary()
    answer = curator.release(ask.count(), psi=EXACT)
    assert answer.value("count") == pytest.approx(2.0, abs=0.01)
    assert said in answer.summary()
    assert said in answer.markdown().replace("\\", "")
    assert "belong to nobody" in answer.latex()
    assert said in curator.cube({"ward": ["a", "b"]}, ["ward"], psi=1000).table("ward").summary()
    workbook = pytest.importorskip("openpyxl").load_workbook(answer.excel(tmp_path / "a.xlsx"))
    assert said in [row[0] for row in workbook["notes"].iter_rows(values_only=True)]
    assert "belong to nobody" not in Curator(table, None).release(ask.count(), psi=EXACT).summary()


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
        c = best_contribution(ask.count(), norms, 6, psi * 0.9**0.5)
        noise = c / (psi * 0.9**0.5)
        noisy = np.bincount(ward, np.minimum(rows, c)) + noise * dice.normal(size=6)
        found = [[Estimate("count", v, noise, v - 1.96 * noise, v + 1.96 * noise)] for v in noisy]
        judged = flagged(ask.count(), found, *norms.at_most(c))
        covered += [e.lower <= t <= e.upper for (e,), t in zip(judged, truth, strict=True) if not e.flag]
    assert sum(not c for c in covered) <= 0.07 * (1200 if kind == "power law" else len(covered))


def test_a_total_reaches_to_what_clipping_may_have_taken_on_the_side_where_that_lies():
    found = [[Estimate("sum of x", 100.0, 10.0, 80.0, 120.0)]]
    for (lower, upper), ends in (((0, 5), (80.0, 130.0)), ((-5, 0), (70.0, 120.0)), ((-5, 5), (70.0, 130.0))):
        ((e,),) = flagged(ask.sum("x", lower, upper), found, 0.5, 10.0)
        assert (e.lower, e.upper, e.flag) == (*ends, "")
    ((e,),) = flagged(ask.count(), found, 0.5, 41.0)
    assert (e.lower, e.upper, e.flag) == (80.0, 120.0, "clipping")
    ((e,),) = flagged(ask.count(), found, 0.01)
    assert e.upper == pytest.approx(120.0 + 2.0 * 100.0 * 0.01 / 0.99)


def test_where_noise_hides_everybody_clipping_may_have_taken_anything():
    hidden = UnitNorms(np.zeros(len(SIZES) + 1), 5.0)
    assert hidden.at_most(8.0) == (1.0, float("inf"))
    ((e,),) = flagged(ask.count(), [[Estimate("count", 9.0, 1.0, 7.0, 11.0)]], *hidden.at_most(8.0))
    assert e.flag == "clipping"


@pytest.mark.parametrize(("n", "flag"), [(100.0, ""), (10.0, "noise")])
def test_a_mean_that_noise_leaves_half_open_is_marked_though_its_rows_can_be_told_from_zero(n, flag):
    """A mean of 10 rows, under noise of 2.5: its count is four of them above zero, and says nothing of the mean."""
    for asked, totals in (
        (ask.mean("x", -30, 180), [n, -0.6 * n]),
        (ask.variance("x", -30, 180), [n, -0.6 * n, 0.0]),
        (ask.deviation("x", -30, 180), [n, -0.6 * n, 0.0]),
        (ask.ratio(ask.sum("x", 0, 10), ask.sum("y", 0, 10)), [0.5 * n, n]),
    ):
        grid = grid_of(asked, 1.0, 1)
        row = grid.part(asked.parts) * grid.step
        noisy = Noisy(row * np.array(totals).reshape(1, 1, -1), 2.5 * row, 0.0)
        (e,) = estimates(asked, grid, noisy, 0, 0.95)
        assert e.flag == flag


@pytest.mark.parametrize(("psi", "warned"), [(10.0, False), (11.0, True), (1000.0, True)])
def test_a_psi_that_protects_next_to_nobody_is_warned_of_before_and_after(psi, warned):
    curator, said = Curator(people(10), "who"), f"Warning: psi = {psi:g} is hardly any privacy."
    assert (said in curator.plan(ask.count(), psi=psi).summary()) is warned
    assert (said in curator.release(ask.count(), psi=psi).summary()) is warned
    assert (said in curator.plan_cube({"ward": range(4)}, ["ward"], psi=psi).summary()) is warned


def test_a_plan_says_what_errors_a_contribution_that_is_to_be_chosen_would_have():
    plan = Curator(people(10), "who").plan(ask.count(), ask.mean("x", 0, 100), psi=1.0, contribution="auto")
    count, mean = plan.expected
    sigma = count.sigma
    said = f"contribution that is chosen: {sigma:.3g} at 1, {64 * sigma:.3g} at 64, {256 * sigma:.3g} at 256"
    assert said in count.sentence()
    assert f"in a group of 10,000 rows {mean.by_rows[2][1]:.3g} at 1, " in mean.sentence()
    assert "is chosen" not in Curator(people(10), "who").plan(ask.count(), psi=1.0).summary()
