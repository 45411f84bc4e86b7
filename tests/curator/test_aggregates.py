"""Aggregates by name: median, min and max, weighted sums, ratios, distinct values and the largest groups."""

import json
import random
from collections import Counter
from math import inf, sqrt

import ibis
import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from psidp import Curator, PrivateGroups, ask
from psidp.cli.main import app
from psidp.curator.distinct_sql import DistinctTotals
from psidp.curator.engine import Engine
from psidp.curator.execute import prepare
from psidp.curator.notes import answer_of
from reference.bounded_totals import distinct as oracle
from reference.curator_tables import SCHEMA, random_table

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
    answer = curator.release(*asks, by="ward", groups=["A", "B"], psi=NEVER, contribution=64)
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
    answer = curator.release(ask.min("age", range(101)), ask.max("age", range(101)), psi=1.0)
    assert [row["statistic"] for row in answer] == ["min (quantile 0.01) of age", "max (quantile 0.99) of age"]
    assert "no private answer has them" in answer.summary()


def repeated(curator, asks, times, contribution, psi=1.0, **more):
    """Fresh noise on the same exact totals."""
    question = curator._question(asks, more.get("by", ()), more.get("groups"), None, psi, contribution, 0.95)
    draw = prepare(question, curator._engine)
    return [answer_of(question, draw()) for _ in range(times)]


def test_a_ratio_has_the_error_and_the_coverage_that_it_says(curator, frame):
    """400 draws; 12 rows' worth is more than any unit has, so that nothing is clipped."""
    asked = ask.ratio(ask.sum("cost", 0, 20_000), ask.sum("days", 0, 15))
    truth = frame.cost.sum() / frame.days.sum()
    found = [answer.rows[0][1] for answer in repeated(curator, [asked], 400, 12.0)]
    error = np.array([e.value - truth for e in found])
    assert np.sqrt(np.mean(error**2)) == pytest.approx(np.mean([e.standard_error for e in found]), rel=0.15)
    assert 0.92 <= np.mean([e.lower <= truth <= e.upper for e in found]) <= 0.98


def test_a_ratio_keeps_its_value_where_units_are_clipped():
    """Every unit has the ratio 7: scaling both terms by one weight leaves it, at any contribution."""
    rows = pa.table({"who": [1] * 500 + [2] * 3, "a": [7.0] * 503, "b": [1.0] * 503})
    for contribution in (1.0, 10.0):
        answer = Curator(rows, "who").release(
            ask.ratio(ask.sum("a", 0, 10), ask.sum("b", 0, 10)), psi=NEVER, contribution=contribution
        )
        assert answer.value("ratio of sum of a to sum of b") == pytest.approx(7.0, rel=1e-5)


def test_a_ratio_over_what_may_be_nothing_has_the_whole_line():
    empty = Curator(pa.table({"who": pa.array([], pa.int64()), "a": pa.array([], pa.float64())}), "who")
    row = next(iter(empty.release(ask.ratio(ask.sum("a", 0, 1), ask.count()), psi=0.1)))
    assert "noise" in row["flag"]
    assert (row["lower"], row["upper"]) == (-inf, inf)


def test_distinct_values_are_those_of_plain_python_in_integers():
    dice, connection = random.Random(7), ibis.duckdb.connect()
    for number in range(25):
        rows = random_table(dice)
        place = connection.create_table(f"t{number}", pa.Table.from_pylist(rows, SCHEMA))
        for unit, by, column, most in (("u", ("g",), "h", 2.0), ("u", (), "g", 1.0), (None, ("g",), "h", 1.0)):
            made = DistinctTotals(place, unit, by, ask.distinct(column, most))
            found = {tuple(row[:-1]): int(row[-1]) for row in Engine(place).rows(made.expression()) if row[-1]}
            assert found == oracle(rows, unit, by, column, most)


def test_no_unit_moves_distinct_values_further_than_its_bound():
    """Every unit of random tables left out in turn: the totals move by at_most at most, exactly."""
    dice = random.Random(11)
    for _ in range(200):
        rows, most = random_table(dice), dice.choice([1.0, 1.5, 3.0])
        full = oracle(rows, "u", ("g",), "h", most)
        for unit in {row["u"] for row in rows}:
            less = oracle([row for row in rows if row["u"] != unit], "u", ("g",), "h", most)
            moved = [full.get(g, 0) - less.get(g, 0) for g in full.keys() | less.keys()]
            assert sum(x * x for x in moved) <= (most * 2**20) ** 2


def test_a_unit_with_many_values_counts_a_part_for_each():
    rows = pa.table({"who": [1] * 10 + [2], "code": [f"d{i}" for i in range(10)] + ["d0"]})
    answer = Curator(rows, "who").release(ask.distinct("code", 5), psi=NEVER)
    assert answer.value("distinct of code") == pytest.approx(9 * 0.5 + 1.0, abs=1e-3)
    assert "counts for at most 5 values" in answer.summary()


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_every_engine_has_the_same_answers(request, engine, tmp_path, table):
    """Beside the totals of test_engines: distinct values, and the largest groups, with next to no noise."""
    if engine == "duckdb":
        place = table
    elif engine == "postgres":
        connection = request.getfixturevalue("postgres")
        place = connection.create_table("asks_visits", table, overwrite=True)
    else:
        connection = request.getfixturevalue("spark")
        connection._session.createDataFrame(table.to_pandas()).createOrReplaceTempView("asks_visits")
        place = connection.table("asks_visits")
    curator = Curator(place, "who")
    asks = [ask.distinct("code", 4), ask.top(2), ask.ratio(ask.sum("cost", 0, 900), ask.count())]
    answer = curator.release(*asks, by="ward", groups=["A", "B", "C", "D"], psi=NEVER, contribution=3)
    there = Curator(table, "who").release(*asks, by="ward", groups=["A", "B", "C", "D"], psi=NEVER, contribution=3)
    for ours, theirs in zip(answer, there, strict=True):
        assert (ours["ward"], ours["statistic"]) == (theirs["ward"], theirs["statistic"])
        assert ours["value"] == pytest.approx(theirs["value"], abs=1e-4)


def test_the_largest_groups_come_in_order_with_intervals_for_all_groups(curator, frame):
    groups = ["A", "B", "C", "D", "E"]
    answer = curator.release(
        ask.top(2), ask.top(1, ask.sum("cost", 0, 20_000)), ask.units(), by="ward", groups=groups, psi=2.0,
        contribution=12,
    )  # fmt: skip
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
    answers = repeated(curator, [ask.top(1)], 300, 1.0, 0.1, by="g", groups=groups)
    found = [answer.rows[0][1] for answer in answers]
    assert np.mean([e.value for e in found]) > 112.0
    assert np.mean([e.lower <= 100.0 <= e.upper for e in found]) >= 0.93
    assert np.mean(["rank" in e.flag for e in found]) > 0.9


def test_private_groups_can_have_a_top_and_distinct_values(curator):
    chosen = PrivateGroups(kappa=1e-6, at_most=4)
    answer = curator.release(ask.top(1), ask.distinct("code", 4), by="ward", groups=chosen, psi=3.0)
    assert next(row["ward"] for row in answer if row["statistic"] == "top 1 by count") == "A"


def test_the_expected_error_is_in_the_plan(curator):
    plan = curator.plan(ask.distinct("code", 4), psi=2.0)
    assert plan.expected[0].standard_error == pytest.approx(2.0, rel=1e-9)
    asked = ask.weighted_sum("cost", 0, 100, weights="w", most=2.0)
    assert curator.plan(asked, psi=2.0, clipping_share=0).expected[0].standard_error == pytest.approx(100.0)
    ratio = curator.plan(ask.ratio(ask.sum("cost", 0, 900), ask.sum("days", 0, 15)), psi=1.0).expected[0]
    assert ratio.by_rows[2][1] == pytest.approx(60.0 * sqrt(2.0) * sqrt(2.0) / 10_000, rel=0.02)
    assert curator.plan(ask.top(2), by="ward", groups=["A"], error=5.0).expected[0].standard_error == pytest.approx(5.0)


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
        curator.plan(ask.top(2), psi=1.0)
    with pytest.raises(TypeError, match="'cost' of type float64 cannot make groups"):
        curator.plan(ask.distinct("cost", 2), psi=1.0)
    with pytest.raises(TypeError, match="column 'code' must hold numbers"):
        curator.plan(ask.weighted_sum("cost", 0, 1, weights="code", most=1), psi=1.0)
    with pytest.raises(ValueError, match="column must be a column"):
        curator.plan(ask.ratio(ask.sum("nothing", 0, 1), ask.count()), psi=1.0)
    weighted = ask.weighted_sum("cost", 0, 1, weights="w", most=1)
    with pytest.raises(ValueError, match="a cube must measure"):
        curator.plan_cube({"ward": ["A"]}, ["ward"], measures=[weighted], psi=1.0)


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
