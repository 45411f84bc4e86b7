"""Measures: what each kind says of cells, its refusals, JSON, words and options; and a new kind in one file."""

import json
import random
from collections import Counter
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from psidp import Curator, PrivateGroups, ask
from psidp.cli.main import app
from psidp.tables.ask import Ask
from psidp.tables.estimate import Cells, Estimate, Spread
from psidp.tables.measures import KINDS, Measure, measure_from, options
from psidp.tables.measures.measure import register
from psidp.tables.strategies.identity import IndependentTotals
from psidp.tables.vector import Rows, Vector
from reference.bounded_totals import distinct as distinct_totals
from reference.odd_tables import random_table
from reference.repeated import repeated

NEVER = 1e8


def visits(seed=1, units=300):
    """Units with 1 to 12 visits to three wards, stays of some days, skewed costs, ten diagnoses."""
    dice = np.random.default_rng(seed)
    who = np.repeat(np.arange(units), dice.integers(1, 13, units))
    days = dice.integers(1, 15, who.size)
    return pa.table({
        "who": who,
        "ward": dice.choice(["A", "B", "C", "D"], who.size, p=[0.5, 0.3, 0.15, 0.05]),
        "days": days,
        "cost": days * dice.gamma(2.0, 100.0, who.size),
        "age": dice.integers(18, 90, who.size),
        "code": dice.choice([f"d{i}" for i in range(40)], who.size),
        "w": dice.uniform(0.5, 2.0, who.size),
    })  # fmt: skip


@pytest.fixture(scope="module")
def table():
    return visits()


@pytest.fixture(scope="module")
def frame(table):
    return table.to_pandas()


@pytest.fixture(scope="module")
def curator(table):
    return Curator(table, "who")


def test_with_little_noise_each_is_the_truth(curator, frame):
    asks = [
        ask.median("age", np.arange(17.5, 91.0)), ask.min("age", np.arange(17.5, 91.0)),
        ask.max("age", np.arange(17.5, 91.0), at=0.9), ask.weighted_sum("cost", 0, 1e5, weights="w", most=2.0),
        ask.ratio(ask.sum("cost", 0, 1e5), ask.sum("days", 0, 20)), ask.distinct("code", 1000),
    ]  # fmt: skip
    answer = curator.ask(*asks, by="ward", groups=["A", "B"], contribution=64).release(psi=NEVER)
    rows = frame[frame.ward == "B"]
    assert answer.value("median of age", "B") == pytest.approx(rows.age.median(), abs=1.0)
    assert answer.value("min (quantile 0.01) of age", "B") == pytest.approx(rows.age.quantile(0.01), abs=1.5)
    assert answer.value("max (quantile 0.9) of age", "B") == pytest.approx(rows.age.quantile(0.9), abs=1.5)
    assert answer.value("sum of cost weighted by w", "B") == pytest.approx((rows.cost * rows.w).sum(), rel=1e-5)
    assert answer.value("ratio of sum of cost to sum of days", "B") == pytest.approx(
        rows.cost.sum() / rows.days.sum(), rel=1e-5
    )
    assert answer.value("distinct of code", "B") == pytest.approx(rows.code.nunique(), abs=1e-3)


def test_names_say_which_quantile_min_and_max_are(curator):
    answer = curator.ask(ask.min("age", range(101)), ask.max("age", range(101))).release(psi=1.0)
    assert [row["statistic"] for row in answer] == ["min (quantile 0.01) of age", "max (quantile 0.99) of age"]
    assert "no private answer has them" in answer.summary()


def test_a_ratio_has_the_error_and_the_coverage_that_it_says(curator, frame):
    """400 draws; 12 rows' worth is more than any unit has, so that nothing is clipped."""
    asked = ask.ratio(ask.sum("cost", 0, 20_000), ask.sum("days", 0, 15))
    truth = frame.cost.sum() / frame.days.sum()
    found = [answer.rows[0][1] for answer in repeated(curator.ask(asked, contribution=12.0), 1.0, 400)]
    error = np.array([e.value - truth for e in found])
    assert np.sqrt(np.mean(error**2)) == pytest.approx(np.mean([e.standard_error for e in found]), rel=0.15)
    assert 0.92 <= np.mean([e.lower <= truth <= e.upper for e in found]) <= 0.98


def test_a_ratio_keeps_its_value_where_units_are_clipped():
    """Every unit has the ratio 7: scaling both terms by one weight leaves it, at any contribution."""
    rows = pa.table({"who": [1] * 500 + [2] * 3, "a": [7.0] * 503, "b": [1.0] * 503})
    for contribution in (1.0, 10.0):
        asked = ask.ratio(ask.sum("a", 0, 10), ask.sum("b", 0, 10))
        answer = Curator(rows, "who").ask(asked, contribution=contribution).release(psi=NEVER)
        assert answer.value("ratio of sum of a to sum of b") == pytest.approx(7.0, rel=1e-5)


def test_a_ratio_over_what_may_be_nothing_has_the_whole_line():
    empty = Curator(pa.table({"who": pa.array([], pa.int64()), "a": pa.array([], pa.float64())}), "who")
    row = next(iter(empty.ask(ask.ratio(ask.sum("a", 0, 1), ask.count())).release(psi=0.1)))
    assert "noise" in row["flag"]
    assert (row["lower"], row["upper"]) == (-inf, inf)


def test_no_unit_moves_distinct_values_further_than_its_bound():
    """Every unit of random tables left out in turn: the totals move by at_most at most, exactly."""
    dice = random.Random(11)
    for _ in range(200):
        rows, most = random_table(dice), dice.choice([1.0, 1.5, 3.0])
        full = distinct_totals(rows, "u", ("g",), "h", most)
        for unit in {row["u"] for row in rows}:
            less = distinct_totals([row for row in rows if row["u"] != unit], "u", ("g",), "h", most)
            moved = [full.get(g, 0) - less.get(g, 0) for g in full.keys() | less.keys()]
            assert sum(x * x for x in moved) <= (most * 2**20) ** 2


def test_a_unit_with_many_values_counts_a_part_for_each():
    rows = pa.table({"who": [1] * 10 + [2], "code": [f"d{i}" for i in range(10)] + ["d0"]})
    answer = Curator(rows, "who").ask(ask.distinct("code", 5)).release(psi=NEVER)
    assert answer.value("distinct of code") == pytest.approx(9 * 0.5 + 1.0, abs=1e-3)
    assert "counts for at most 5 values" in answer.summary()


def test_the_largest_groups_come_in_order_with_intervals_for_all_groups(curator, frame):
    groups = ["A", "B", "C", "D", "E"]
    asks = [ask.top(2), ask.top(1, ask.sum("cost", 0, 20_000)), ask.units()]
    answer = curator.ask(*asks, by="ward", groups=groups, contribution=12).release(psi=2.0)
    counted = Counter(frame.ward)
    top = [(row["ward"], row["value"]) for row in answer if row["statistic"] == "top 2 by count"]
    assert [ward for ward, _ in top] == ["A", "B"]
    assert top[0][1] == pytest.approx(counted["A"], abs=60)
    assert [row["ward"] for row in answer if row["statistic"].startswith("top 1 by sum")] == ["A"]
    assert len([row for row in answer if row["statistic"] == "units"]) == len(groups)
    row = next(row for row in answer if row["statistic"] == "top 2 by count")
    assert (row["value"] - row["lower"]) / row["standard_error"] == pytest.approx(2.576, abs=0.01)  # 1 - 0.05/5
    assert "hold for all groups at once" in answer.summary()


def test_intervals_of_the_largest_hold_although_they_were_picked():
    """20 groups of 100 rows each: the noisy largest is far above 100, and its interval must know."""
    rows = pa.table({"g": [f"g{i % 20:02d}" for i in range(2000)]})
    curator = Curator(rows, None)
    groups = [f"g{i:02d}" for i in range(20)]
    answers = repeated(curator.ask(ask.top(1), by="g", groups=groups), 0.1, 300)
    found = [answer.rows[0][1] for answer in answers]
    assert np.mean([e.value for e in found]) > 112.0
    assert np.mean([e.lower <= 100.0 <= e.upper for e in found]) >= 0.93
    assert np.mean(["rank" in e.flag for e in found]) > 0.9


def test_private_groups_can_have_a_top_and_distinct_values(curator):
    chosen = PrivateGroups(kappa=1e-6, at_most=4)
    answer = curator.ask(ask.top(1), ask.distinct("code", 4), by="ward", groups=chosen).release(psi=3.0)
    assert next(row["ward"] for row in answer if row["statistic"] == "top 1 by count") == "A"


def test_the_expected_error_is_in_the_plan(curator):
    plan = curator.ask(ask.distinct("code", 4)).plan(psi=2.0)
    assert plan.expected[0].standard_error == pytest.approx(2.0, rel=1e-9)
    weighted = ask.weighted_sum("cost", 0, 100, weights="w", most=2.0)
    plan = curator.ask(weighted, clipping_share=0).plan(psi=2.0)
    assert plan.expected[0].standard_error == pytest.approx(100.0)
    ratio = curator.ask(ask.ratio(ask.sum("cost", 0, 900), ask.sum("days", 0, 15))).plan(psi=1.0).expected[0]
    assert ratio.by_rows[2][1] == pytest.approx(60.0 * sqrt(2.0) * sqrt(2.0) / 10_000, rel=0.02)
    plan = curator.ask(ask.top(2), by="ward", groups=["A"]).plan(error=5.0)
    assert plan.expected[0].standard_error == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: ask.ratio(ask.mean("x", 0, 1), ask.count()), "a ratio must be of"),
        (lambda: ask.ratio(ask.count(), ask.count()), "two different things"),
        (lambda: ask.ratio(ask.count(weight=2), ask.sum("x", 0, 1)), "given to the ratio itself"),
        (lambda: ask.ratio(ask.sum("x", bounds="auto"), ask.count()), "a ratio must be of"),
        (lambda: ask.distinct("x", 0), r"must be in \[1, 2\^20\]"),
        (lambda: ask.distinct("x", float("nan")), r"must be in \[1, 2\^20\]"),
        (lambda: ask.top(0), "k"),
        (lambda: ask.top(2, ask.mean("x", 0, 1)), "top must be by"),
        (lambda: ask.weighted_sum("x", 0, 1, weights="w", most=float("nan")), "most"),
        (lambda: ask.weighted_sum("x", 0, 1, weights="w", most=0), "most"),
        (lambda: ask.min("x", [0, 1], at=1.5), "at"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        wrong()


def test_columns_are_checked_against_the_schema(curator):
    with pytest.raises(ValueError, match="by must name the columns"):
        curator.ask(ask.top(2))
    with pytest.raises(TypeError, match=r"'cost' of type .* cannot make groups"):
        curator.ask(ask.distinct("cost", 2))
    with pytest.raises(TypeError, match="column 'code' must hold numbers"):
        curator.ask(ask.weighted_sum("cost", 0, 1, weights="code", most=1))
    with pytest.raises(ValueError, match="column must be a column"):
        curator.ask(ask.ratio(ask.sum("nothing", 0, 1), ask.count()))


ASKS = [
    ask.count(), ask.units(weight=2.0), ask.sum("x", -1, 5, contribution="auto"), ask.mean("x", bounds="auto"),
    ask.variance("x", 0, 1), ask.deviation("x", 0, 1), ask.histogram("x", [0, 1, 2]), ask.histogram("x", "auto"),
    ask.quantiles("x", range(5), at=[0.1, 0.9]), ask.median("x", "auto"), ask.max("x", range(9), at=0.95),
    ask.weighted_sum("x", 0, 1, weights="w", most=3), ask.ratio(ask.sum("x", 0, 1), ask.count(), contribution=4),
    ask.distinct("x", 7), ask.top(3), ask.top(2, ask.sum("x", bounds="auto", contribution=2.0)),
]  # fmt: skip


@pytest.mark.parametrize("asked", ASKS, ids=lambda a: a.name)
def test_a_question_is_the_same_after_json(asked):
    assert Ask.from_dict(json.loads(json.dumps(asked.to_dict()))) == asked


def test_questions_of_streams_and_cubes_of_version_0_2_are_read():
    assert Ask.from_dict({"kind": "count", "weight": 1.0, "contribution": 1.0}) == ask.count(contribution=1.0)
    old = {"kind": "sum", "weight": 2.0, "contribution": None, "column": "x", "lower": 0.0, "upper": 5.0}
    assert Ask.from_dict(old) == ask.sum("x", 0, 5, weight=2.0)
    assert Ask.from_dict(old | {"kind": "mean"}) == ask.mean("x", 0, 5, weight=2.0)
    with pytest.raises(ValueError, match="kind of a measure must be one of count, units, sum"):
        measure_from({"kind": "mode"})


def test_an_approval_names_all_that_bounds_a_question():
    words = {a.name: a.words() for a in ASKS}
    assert words["sum of x"] == "sum of x (lower -1, upper 5, contribution auto)"
    assert words["mean of x"] == "mean of x (bounds auto)"
    assert words["quantiles of x"] == "quantiles of x (edges 0, 1, 2, 3, 4, at 0.1, 0.9)"
    assert words["sum of x weighted by w"] == "sum of x weighted by w (lower 0, upper 1, weights of at most 3)"
    assert words["ratio of sum of x to count"] == (
        "ratio of sum of x to count (sum of x (lower 0, upper 1); count; contribution 4)"
    )
    assert words["top 2 by sum of x"] == "top 2 by sum of x (bounds auto, contribution 2)"
    assert ask.histogram("x", range(500)).words().endswith("18, 19, ... (500 in all))")


@pytest.mark.parametrize("asked", ASKS, ids=lambda a: a.name)
def test_columns_of_another_name_are_read_instead(asked):
    renamed = asked.measure.renamed({"x": "y", "w": "v"})
    assert renamed.uses == tuple({"x": "y", "w": "v"}[name] for name in asked.measure.uses)
    assert renamed.renamed({"y": "x", "v": "w"}) == asked.measure


def test_every_option_of_the_command_line_makes_its_measure_or_says_what_it_needs():
    texts = {
        "count": "", "units": "", "sum": "x:0:5", "mean": "a:b:-1:5", "variance": "x:auto", "deviation": "x:0:5",
        "histogram": "x:0,1,2", "quantiles": "x:0,1,2:0.5", "median": "x:auto", "min": "x:0,1", "max": "x:0,1",
        "weighted-sum": "x:0:5:w:2", "ratio": "x:0:5/count", "distinct": "x:3", "top": "2:x:0:5", "share": "x > 1",
        "geometric-mean": "x:1:5",
    }  # fmt: skip
    known = {option.name: option for option in options()}
    for name, text in texts.items():
        assert isinstance(known[name].parse(text), Measure)
    assert next(o for o in options() if o.name == "mean").parse("a:b:-1:5").column == "a:b"
    for name in ("sum", "mean", "histogram", "quantiles", "weighted-sum", "ratio", "distinct", "top"):
        option = next(o for o in options() if o.name == name)
        with pytest.raises(ValueError, match="such as"):
            option.parse("x")
    with pytest.raises(ValueError, match="'a' in 'x:a:5' must be a number"):
        next(o for o in options() if o.name == "sum").parse("x:a:5")


def of_totals(asked, totals, sigma, confidence=0.95):
    """What a measure says of noisy totals, in rows' worth: groups by bins by coordinates."""
    ones = (1.0,) * asked.measure.vector.parts
    cells = IndependentTotals(np.asarray(totals, float), sigma, 0.0, ones).cells(range(len(totals)), confidence)
    return asked.measure.estimates(cells)


def test_a_count_that_cannot_be_told_from_zero_is_marked():
    (mean,) = of_totals(ask.mean("x", 0, 100), np.zeros((1, 1, 2)), 1.0)[0]
    assert (mean.flag, mean.lower, mean.upper) == ("noise", 0.0, 100.0)
    for n, flag in ((2.9, "noise"), (3.1, "")):
        ((count,),) = of_totals(ask.count(), [[[n]]], 1.0)
        assert (count.flag, count.counts) == (flag, "rows")
    ((total,),) = of_totals(ask.sum("x", 0, 1), [[[0.0]]], 1.0)
    assert (total.flag, total.counts) == ("", "")


@pytest.mark.parametrize(("n", "flag"), [(100.0, ""), (10.0, "noise")])
def test_a_mean_that_noise_leaves_half_open_is_marked_though_its_rows_can_be_told_from_zero(n, flag):
    """A mean of 10 rows, under noise of 2.5: its count is four of them above zero, and says nothing of the mean."""
    for asked, totals in (
        (ask.mean("x", -30, 180), [n, -0.6 * n]),
        (ask.variance("x", -30, 180), [n, -0.6 * n, 0.0]),
        (ask.deviation("x", -30, 180), [n, -0.6 * n, 0.0]),
    ):
        ((e,),) = of_totals(asked, [[totals]], 2.5)
        assert e.flag == flag
    ratio = ask.ratio(ask.sum("x", 0, 10), ask.sum("y", 0, 10)).measure
    cells = Cells(np.array([[5.0 * n, 10.0 * n]]), np.array([25.0, 25.0]), 0.0, 0.95)
    assert ratio.estimates(cells)[0][0].flag == flag


def test_quantiles_of_few_rows_over_many_bins_do_not_drift():
    """342 rows in 600 bins, sigma 1: counts below 0 set to 0 led 63 away from the truth, here less than 8."""
    asked = ask.quantiles("x", np.linspace(-100, 500, 601), at=[0.1, 0.25, 0.5, 0.75, 0.9])
    dice = np.random.default_rng(1)
    x = dice.gamma(1.2, 30, size=342) - 20
    held, _ = np.histogram(x, np.asarray(asked.measure.edges))
    truth, errors, covered = np.quantile(x, asked.measure.at), [], []
    for found in of_totals(asked, held[None, :, None] + dice.normal(size=(60, 600, 1)), 1.0):
        errors.append([e.value for e in found] - truth)
        covered += [e.lower <= t <= e.upper for e, t in zip(found, truth, strict=True)]
    assert np.abs(errors).mean() < 8.0
    assert abs(np.mean(errors)) < 3.0
    assert np.mean(covered) > 0.95


def test_a_new_measure_is_one_class_and_nothing_else_has_to_name_it(curator, frame):
    """Twice the number of rows: asked, planned, released, written to JSON and offered on the command line."""

    @register
    @dataclass(frozen=True, slots=True)
    class Twice(Measure):
        kind = "twice"
        vector = Vector((Rows(),))
        spread = Spread(ratio=False, low=0.0, high=inf, reach=2.0, one=2.0)

        def estimates(self, cells):
            (value, error), z = cells.coordinate(0), cells.z
            pairs = zip(2.0 * value, 2.0 * np.broadcast_to(error, value.shape), strict=True)
            return [[Estimate(self.name, v, e, v - z * e, v + z * e)] for v, e in pairs]

    try:
        question = curator.ask(Ask(Twice()), by="ward", groups=["A"], contribution=12)
        assert question.plan(psi=1.0).expected[0].standard_error == pytest.approx(2 * 12 / 0.98**0.5, rel=1e-6)
        assert question.release(psi=NEVER).value("twice", "A") == pytest.approx(2 * sum(frame.ward == "A"), abs=1e-3)
        chosen = curator.ask(Ask(Twice()), contribution="auto").release(psi=NEVER)
        assert chosen.value("twice") == pytest.approx(2 * len(frame), abs=1e-2)
        assert Ask.from_dict(Ask(Twice()).to_dict()) == Ask(Twice())
    finally:
        del KINDS["twice"]


def test_the_command_line_has_all_of_them(tmp_path, frame):
    path = tmp_path / "visits.csv"
    frame.to_csv(path, index=False)
    words = ["release", "table", str(path), "--unit-column", "who", "--by", "ward", "--groups", "A,B,C", "--psi", "1e8"]
    words += ["--contribution", "64", "--median", "age:0,20,40,60,80,100", "--min", "age:auto", "--max", "age:auto"]
    words += ["--weighted-sum", "cost:0:100000:w:2", "--ratio", "cost:0:100000/days:0:20", "--ratio", "days:0:20/count"]
    words += ["--distinct", "code:1000", "--top", "2", "--top", "1:cost:0:100000", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    rows = {(*row["key"], row["statistic"]): row["value"] for row in json.loads(done.stdout)["rows"]}
    some = frame[frame.ward == "A"]
    assert rows["A", "ratio of sum of cost to sum of days"] == pytest.approx(
        some.cost.sum() / some.days.sum(), rel=1e-4
    )
    assert rows["A", "distinct of code"] == pytest.approx(some.code.nunique(), abs=1e-3)
    assert rows["A", "top 2 by count"] == pytest.approx(len(some), rel=1e-4)
    assert rows["A", "sum of cost weighted by w"] == pytest.approx((some.cost * some.w).sum(), rel=1e-4)


@pytest.mark.parametrize("flag", ["--weighted-sum", "--ratio", "--distinct", "--top"])
def test_words_that_are_no_aggregate_are_refused_by_their_form(tmp_path, flag):
    path = tmp_path / "visits.csv"
    path.write_text("who\n1\n")
    done = CliRunner().invoke(app, ["release", "table", str(path), "--unit-column", "who", flag, "x", "--psi", "1"])
    assert done.exit_code != 0
    assert "such as" in f"{done.output}{done.exception}"


def test_numbers_of_numpy_are_numbers_in_json():
    asked = ask.count(weight=np.float32(2), contribution=np.int64(4))
    assert asked.worth == 4.0
    terms = PrivateGroups(np.float64(1e-6), 3, np.float32(2), np.int64(1))
    assert json.loads(json.dumps([asked.to_dict(), terms.to_dict()]))[0]["contribution"] == 4.0


def test_terms_of_a_ratio_may_be_measures():
    assert ask.ratio(ask.sum("cost", 0, 9).measure, ask.count()).name == "ratio of sum of cost to count"


def test_more_quantiles_than_chosen_edges_allow_are_refused_before_payment():
    several = np.linspace(0.001, 0.999, 257)
    with pytest.raises(ValueError, match="at must be at most 256 quantiles where edges are chosen, got 257"):
        ask.quantiles("cost", "auto", several)
    assert len(ask.quantiles("cost", [0, 1], several).measure.at) == 257
    rows = pa.table({"x": np.random.default_rng(1).normal(size=500)})
    answer = Curator(rows, None).ask(ask.quantiles("x", "auto", several[:256])).release(psi=1e6)
    assert len(answer.rows) == 256
