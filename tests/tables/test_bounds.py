"""Bounds that nobody knows: chosen privately, near the best ones, at a stated price, failing on no column."""

import json
from dataclasses import replace
from math import inf, nan, sqrt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from psidp import Curator, PrivateGroups, ask
from psidp.cli.main import app
from psidp.tables import table
from psidp.tables.choices.bounds import (
    BOUNDS_SHARE,
    SHARES,
    SIZE_EDGES,
    Bounds,
    NoisyBins,
    chosen_bounds,
    seen_range,
    tail_edges,
)
from psidp.tables.estimate import Estimate
from psidp.tables.flags import judged
from psidp.tables.question import AUTO_SHARE, CLIPPING_SHARE, prepared
from reference.repeated import repeated

PSI = 1.0


def released(curator, asked, times, contribution=1.0):
    """Answers with fresh noise, choice of bounds included."""
    return repeated(curator.ask(asked, contribution=contribution), PSI, times)


def rmse(answers, name, truth):
    return sqrt(np.mean([(answer.value(name) - truth) ** 2 for answer in answers]))


def best_error(values, psi):
    """The least error of the mean at this psi over bounds at the values' own quantiles."""
    found = []
    for q in (0.0, 0.001, 0.005, 0.01, 0.02, 0.05):
        low, high = np.quantile(values, [q, 1 - q])
        mean, half = np.clip(values, low, high).mean(), (high - low) / 2
        t = (mean - (low + high) / 2) / half
        noise = half * sqrt(2 * (1 + t * t)) / psi / len(values)
        found.append(sqrt(noise**2 + (mean - values.mean()) ** 2))
    return min(found)


DICE = np.random.default_rng(5)
COLUMNS = {
    "skewed, both signs": DICE.gamma(0.5, 30.0, 3000) - 8.0,
    "far from zero": DICE.normal(1017.0, 7.5, 3000),
    "tiny": DICE.beta(2.0, 5.0, 3000) * 1e-6,
    "mostly zero": np.where(DICE.random(3000) < 0.8, 0.0, DICE.gamma(2.0, 5000.0, 3000)),
    "negative": -DICE.lognormal(3.0, 1.0, 3000),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_the_mean_under_chosen_bounds_is_nearly_as_good_as_under_the_best(name):
    values = COLUMNS[name]
    answers = released(Curator(pa.table({"x": values}), None), ask.mean("x", bounds="auto"), 12)
    assert rmse(answers, "mean of x", values.mean()) < 2.5 * best_error(values, PSI)


@pytest.mark.parametrize("contribution", [1.0, 20.0, "auto"])
def test_units_with_many_rows_get_bounds_that_fit(contribution):
    """400 units of 1 to 40 rows each; the truth is that of a fixed, wide bound without noise."""
    dice = np.random.default_rng(3)
    who = np.repeat(np.arange(400), dice.integers(1, 41, 400))
    rows = pd.DataFrame({"who": who, "x": dice.gamma(2.0, 50.0, who.size)})
    answers = released(Curator(rows, "who"), ask.mean("x", bounds="auto"), 5, contribution)
    assert rmse(answers, "mean of x", rows.x.mean()) < 6.0
    wide = released(Curator(rows, "who"), ask.mean("x", 0.0, 2.0**13), 5, contribution)
    assert rmse(wide, "mean of x", rows.x.mean()) > 12.0


def test_sums_variances_and_deviations_get_bounds_too():
    values = np.random.default_rng(8).gamma(2.0, 50.0, 5000)
    curator = Curator(pa.table({"x": values}), None)
    total = released(curator, ask.sum("x", bounds="auto"), 5)
    assert rmse(total, "sum of x", values.sum()) < 0.01 * values.sum()
    spread = released(curator, ask.deviation("x", bounds="auto"), 5)
    assert rmse(spread, "deviation of x", values.std()) < 0.05 * values.std()
    square = released(curator, ask.variance("x", bounds="auto"), 5)
    assert rmse(square, "variance of x", values.var()) < 0.1 * values.var()


def test_edges_are_chosen_where_the_values_are():
    values = np.random.default_rng(9).integers(100, 400, 20_000)
    curator = Curator(pa.table({"x": values}), None)
    answer = curator.ask(ask.histogram("x", "auto"), ask.quantiles("x", "auto", at=[0.1, 0.5, 0.9])).release(psi=PSI)
    for q in (0.1, 0.5, 0.9):
        assert answer.value(f"quantile {q} of x") == pytest.approx(np.quantile(values, q), abs=5.0)
    bins = [row["value"] for row in answer if row["statistic"].startswith("histogram")]
    assert 10 <= len(bins) <= 30
    assert sum(bins) == pytest.approx(20_000, abs=100)


@pytest.mark.parametrize("q", [0.01, 0.5, 0.9])
def test_edges_of_quantiles_are_close_where_they_are_asked_for_and_few_where_they_make_noise(q):
    values = np.sort(np.random.default_rng(7).gamma(2.0, 50.0, 50_000))
    bins = NoisyBins(np.linspace(0.0, 600.0, 61), np.histogram(values, np.linspace(0.0, 600.0, 61))[0] + 0.0, 5.0)
    counts, noises = [], []
    for noise in (1000.0, 10.0):  # a group of middle size has 5 and 500 times a bin's noise
        found = Bounds(0.0, 600.0, 0.0, True, bins)
        asked = ask.quantiles("x", "auto", at=[q]).measure.bounded(found, noise=noise, groups=10, whole=False)
        edges = np.array(asked.edges)
        ranks = np.searchsorted(values, edges) / values.size
        above, below = np.diff(ranks[ranks >= q - 0.005]), np.diff(ranks[ranks <= q + 0.005])
        assert edges[0] == 0.0
        assert edges[-1] == 600.0
        assert min(*above, *below) < 0.3
        assert min(abs(ranks - q)) < 0.01
        counts.append(len(edges) - 1)
        noises.append(sqrt(q**2 * above.size + (1 - q) ** 2 * below.size))  # at the quantile, in a bin's noise
    assert counts[0] < counts[1] <= 40
    assert noises[0] < 1.5
    assert noises[1] < 0.75 * sqrt(counts[1])


def test_what_chosen_bounds_take_from_a_mean_is_in_its_interval():
    """A long tail and much noise: the bounds cut, and the third histogram knows about how much."""
    values = np.random.default_rng(6).lognormal(3.0, 1.2, 40_000)
    edges = np.concatenate([[0.0], 2.0 ** np.arange(1, 13)])
    tails = NoisyBins(edges, np.histogram(values, edges)[0] + 0.0, 1.0)
    even = np.linspace(0.0, 4096.0, 65)
    middle = NoisyBins(even, np.histogram(values, even)[0] + 0.0, 1.0)
    found = chosen_bounds(ask.mean("x", bounds="auto").measure, middle, tails, noise=200.0, groups=10)
    truth = np.maximum(values - found.upper, 0.0).mean()
    assert truth > 0.5
    assert found.taken[1] == pytest.approx(truth, rel=0.5)
    assert found.taken[0] == pytest.approx(np.maximum(found.lower - values, 0.0).mean(), abs=0.5)
    part = Estimate("mean of x", 30.0, 1.0, 28.0, 32.0)
    asked = ask.mean("x", bounds="auto").measure.bounded(found, noise=200.0, groups=10, whole=False)
    reaching = replace(part, lower=28.0 - found.taken[0], upper=32.0 + found.taken[1])
    assert judged(asked.spread, [[part]], nan) == [[reaching]]


def of_lognormal(sigma, seen):
    """A column with a long tail, what three histograms say of it with noise, and bounds; the first saw up to `seen`."""
    dice = np.random.default_rng(8)
    values, answers = dice.lognormal(3.0, 1.0, 100_000), []
    even = np.linspace(0.0, seen, 33)
    held = np.minimum(values, seen * (1 - 1e-9))
    for _ in range(40):
        middle = NoisyBins(even, np.histogram(held, even)[0] + dice.normal(0.0, 1.5 * sigma, 32), 1.5 * sigma)
        edges = np.array(tail_edges(middle))
        counts = np.histogram(np.minimum(values, edges[-1] * (1 - 1e-9)), edges)[0]
        tails = NoisyBins(edges, counts + dice.normal(0.0, sigma, counts.size), sigma)
        answers.append(chosen_bounds(ask.mean("x", bounds="auto").measure, middle, tails, noise=2.0 * sigma, groups=1))
    return values, answers


@pytest.mark.parametrize("sigma", [50.0, 200.0, 500.0])
def test_a_mean_reaches_to_what_a_hidden_tail_may_add_and_not_far_beyond(sigma):
    """The first histogram saw values up to 256; the half percent of the rows beyond is hidden by noise, or nearly."""
    values, answers = of_lognormal(sigma, 256.0)
    truth = np.array([np.maximum(values - found.upper, 0.0).mean() for found in answers])
    said = np.array([found.taken[1] for found in answers])
    assert np.mean(said >= 0.9 * truth) >= 0.7
    assert 0.0 < np.median(said - truth) <= 1.0


def test_a_range_that_ends_at_zero_is_not_looked_for_beyond_it():
    middle = NoisyBins(np.linspace(0.0, 64.0, 5), np.array([900.0, 300.0, 100.0, 40.0]), 1.0)
    edges = tail_edges(middle)
    assert edges[0] == 0.0
    assert 64.0 in edges
    half = edges[-1] - 4.0 * (edges[-1] - edges[-2]) / 2.0
    assert 64.0 - half == pytest.approx((edges[-1] - edges[-2]) / 2.0)
    mirrored = tail_edges(NoisyBins(-middle.edges[::-1], middle.counts[::-1], 1.0))
    assert mirrored == pytest.approx([-e for e in reversed(edges)], rel=1e-6)


def test_intervals_of_a_mean_reach_as_far_as_the_notes_say():
    dice = np.random.default_rng(2)
    rows = pa.table({"who": np.arange(4000) % 400, "g": np.arange(4000) % 4, "x": dice.lognormal(3.0, 1.2, 4000)})
    question = Curator(rows, "who").ask(
        ask.mean("x", bounds="auto"), by="g", groups=range(4), contribution=10.0, clipping_share=0.0
    )
    drawn = prepared(question.at(PSI))()
    (asked,), taken = drawn.priced.asks, drawn.priced.found.bounds["mean of x"].taken
    plain = asked.measure.estimates(drawn.noisy[0].cells(range(4), 0.95))
    answer = table._answer(drawn)
    for (_, shown), (e,) in zip(answer.rows, plain, strict=True):
        assert (e.lower - shown.lower, shown.upper - e.upper) == pytest.approx(taken, abs=1e-9)
    assert sum(taken) > 0.0
    assert f"lower it by {taken[1]:.2g} on average over all groups" in " ".join(map(str, answer.notes))


def even_edges(lower, upper, whole=False):
    found = Bounds(lower, upper, 0.0, True)
    return ask.histogram("x", "auto").measure.bounded(found, noise=1.0, groups=1, whole=whole).edges


def test_edges_are_short_decimals():
    assert even_edges(-0.3, 1.1)[:4] == (-0.3, -0.2, -0.1, 0.0)
    assert even_edges(97.0, 1430.0)[:3] == (0.0, 100.0, 200.0)
    assert even_edges(-0.2, 2.9, whole=True) == (-1.0, 0.0, 1.0, 2.0, 3.0)


def test_the_three_histograms_cost_what_is_said():
    table = pa.table({"who": [1, 2], "x": [1.0, 2.0]})
    for contribution, apart in ((1.0, CLIPPING_SHARE), ("auto", AUTO_SHARE)):
        question = Curator(table, "who").ask(ask.mean("x", bounds="auto"), ask.count(), contribution=contribution)
        priced = question.at(PSI)
        mean = priced.asks[0]
        paid = priced.psi_of(mean) ** 2 + priced.psi_of_sizes(mean) ** 2
        paid += sum(priced.psi_of_bounds(mean, stage) ** 2 for stage in range(3))
        assert 0.5 * (1 - 1e-12) < paid / PSI**2 <= 0.5
        assert priced.psi_of(mean) ** 2 == pytest.approx(0.5 * (1 - BOUNDS_SHARE - apart))
    assert sum(SHARES) == pytest.approx(BOUNDS_SHARE)


def test_noise_alone_is_not_taken_for_values():
    """A false alarm would be a range of 2^60; 4.5 sigma in 196 bins is one in 1,500."""
    dice, bins = np.random.default_rng(11), len(SIZE_EDGES) - 1
    noise = [NoisyBins(np.array(SIZE_EDGES), dice.normal(size=bins), 1.0) for _ in range(2000)]
    assert sum(seen_range(n) is not None for n in noise) <= 6
    held = np.where(np.array(SIZE_EDGES[:-1]) == 64.0, 30.0, 0.0)
    found = [seen_range(NoisyBins(np.array(SIZE_EDGES), held + dice.normal(size=bins), 1.0)) for _ in range(2000)]
    widest = [max(abs(SIZE_EDGES[i]), abs(SIZE_EDGES[j + 1])) for i, j in found]
    assert max(widest) <= 2.0**11  # [64, 128) is seen as that, or a few times as wide
    assert np.mean(np.array(widest) == 128.0) > 0.9


@pytest.mark.parametrize(
    "values",
    [[], [None], [nan] * 9, [inf, -inf, 1e308, -1e308], [5e-324] * 500, [0.0] * 500, [7.0] * 500, [1e300] * 500],
    ids=["empty", "missing", "nan", "infinite", "subnormal", "zero", "constant", "huge"],
)
def test_no_column_makes_the_choice_fail(values):
    table = pa.table({"x": pa.array(values, pa.float64())})
    for psi in (1e-3, 1e6):
        asks = [ask.mean("x", bounds="auto"), ask.sum("x", bounds="auto"), ask.variance("x", bounds="auto")]
        asks += [ask.histogram("x", "auto"), ask.quantiles("x", "auto")]
        answer = Curator(table, None).ask(*asks).release(psi=psi)
        assert all(row["lower"] <= row["upper"] for row in answer)


def test_plan_and_answer_say_bounds_and_price():
    question = Curator(pa.table({"x": np.arange(1000.0)}), None).ask(ask.mean("x", bounds="auto"))
    plan = question.plan(psi=PSI)
    assert "15% of the measure's psi^2" in plan.summary()
    assert "with bounds 100 apart a mean over 10,000 rows is off by about " in plan.summary()
    assert len(plan.sql) == 1
    notes = "\n".join(map(str, question.release(psi=PSI).notes))
    assert "mean of x: bounds [" in notes
    assert "chosen with 15% of its psi^2" in notes
    empty = Curator(pa.table({"x": pa.array([], pa.float64())}), None).ask(ask.mean("x", bounds="auto"))
    assert "no value could be told from noise" in "\n".join(map(str, empty.release(psi=PSI).notes))


def test_bounds_are_chosen_over_groups_that_are_given_or_chosen():
    dice = np.random.default_rng(2)
    rows = pa.table({"who": np.arange(4000), "g": ["a", "b"] * 2000, "x": dice.normal(50.0, 5.0, 4000)})
    curator = Curator(rows, "who")
    answer = curator.ask(ask.mean("x", bounds="auto"), by="g", groups=["a", "b"]).release(psi=PSI)
    assert all(abs(row["value"] - 50.0) < 1.0 for row in answer)
    chosen = curator.ask(ask.mean("x", bounds="auto"), by="g", groups=PrivateGroups(kappa=1e-9, at_most=1))
    assert [row["g"] for row in chosen.release(psi=PSI)] == ["a", "b"]


def test_the_largest_groups_by_a_sum_whose_bounds_are_chosen():
    rows = pa.table({"who": np.arange(4000), "g": ["a", "b"] * 2000, "x": [1.0, 3.0] * 2000})
    top = Curator(rows, "who").ask(ask.top(1, ask.sum("x", bounds="auto")), by="g", groups=["a", "b"])
    ((key, e),) = top.release(psi=10.0).rows
    assert key == ("b",)
    assert e.value == pytest.approx(6000.0, rel=0.02)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ask.mean("x"),
        lambda: ask.mean("x", 0),
        lambda: ask.mean("x", 0, 1, bounds="auto"),
        lambda: ask.sum("x", bounds="all"),
        lambda: ask.histogram("x", "all"),
    ],
)
def test_bounds_are_given_or_chosen_and_not_both(wrong):
    with pytest.raises(ValueError, match=r"bounds of 'x' must be|edges of 'x' must be"):
        wrong()


def test_the_command_line_takes_auto_for_bounds(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("x\n" + "\n".join(str(n % 50) for n in range(2000)) + "\n")
    words = ["release", "table", str(path), "--rows-are-units", "--mean", "x:auto", "--quantiles", "x:auto:0.5"]
    done = CliRunner().invoke(app, [*words, "--histogram", "x:auto", "--psi", "2", "--json"])
    assert done.exit_code == 0, done.output
    rows = {row["statistic"]: row["value"] for row in json.loads(done.stdout)["rows"]}
    assert rows["mean of x"] == pytest.approx(24.5, abs=1.0)
    assert rows["quantile 0.5 of x"] == pytest.approx(24.5, abs=3.0)
