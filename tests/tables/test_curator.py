"""The curator end to end on DuckDB: collected answers, keys, shares, plans, intervals."""

import datetime
import json
from decimal import Decimal
from math import sqrt

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import psidp
from psidp import Curator, Guarantee, PrivateGroups, ask
from psidp.maths.thresholding import kappa_from_threshold
from psidp.tables.answer import Answer
from psidp.tables.question import prepared
from psidp.tables.strategies import identity
from reference.repeated import repeated
from released import NO_NOISE, released


def visits(patients=300, seed=1):
    """Made-up rows: some patients come often and to every ward."""
    dice = np.random.default_rng(seed)
    rows = []
    for patient in range(patients):
        for _ in range(int(dice.integers(1, 5))):
            ward, cost = str(dice.choice(["A", "B", "C"])), float(dice.gamma(2.0, 400.0))
            rows.append({"patient": patient, "ward": ward, "cost": cost, "age": 20 + patient % 60})
    return pa.Table.from_pylist(rows)


@pytest.fixture(scope="module")
def table():
    return visits()


@pytest.fixture(scope="module")
def curator(table):
    return Curator(table, unit="patient")


def test_with_little_noise_the_answers_are_the_truth(curator, table):
    frame = table.to_pandas()
    truth = frame[frame.ward == "B"]
    asks = [
        ask.count(), ask.units(), ask.sum("cost", 0, 10_000), ask.mean("cost", 0, 10_000),
        ask.variance("cost", 0, 10_000), ask.deviation("cost", 0, 10_000),
        ask.histogram("age", [20, 40, 60, 80]), ask.quantiles("age", range(101), at=[0.5]),
    ]  # fmt: skip
    answer = curator.ask(*asks, by="ward", groups=["A", "B"], contribution=16).release(psi=NO_NOISE)
    assert answer.value("count", "B") == pytest.approx(len(truth), abs=1e-3)
    assert answer.value("units", "B") == pytest.approx(truth.patient.nunique(), abs=1e-3)
    assert answer.value("sum of cost", "B") == pytest.approx(truth.cost.sum(), rel=1e-5)
    assert answer.value("mean of cost", "B") == pytest.approx(truth.cost.mean(), rel=1e-5)
    assert answer.value("variance of cost", "B") == pytest.approx(truth.cost.var(ddof=0), rel=1e-4)
    assert answer.value("deviation of cost", "B") == pytest.approx(truth.cost.std(ddof=0), rel=1e-4)
    assert answer.value("histogram of age: [40, 60)", "B") == pytest.approx(truth.age.between(40, 59).sum(), abs=1e-3)
    assert answer.value("quantile 0.5 of age", "B") == pytest.approx(truth.age.median(), abs=1.0)


def test_a_unit_that_touches_k_groups_is_counted_in_all_k():
    """A leading library releases zeros for k = 1 and k - 1 groups else: here answers are collected and compared."""
    for k in (1, 2, 8):
        rows = pa.table({"who": [1] * k, "ward": list(range(k))})
        answer = (
            Curator(rows, "who")
            .ask(ask.count(), by="ward", groups=range(8), contribution=max(1, k))
            .release(psi=NO_NOISE)
        )
        assert [round(row["value"], 3) for row in answer] == [1.0] * k + [0.0] * (8 - k)


def test_a_unit_above_its_bound_is_scaled_and_keeps_every_group():
    rows = pa.table({"who": [1] * 8, "ward": list(range(8))})
    answer = Curator(rows, "who").ask(ask.count(), by="ward", groups=range(8)).release(psi=NO_NOISE)
    assert [row["value"] for row in answer] == pytest.approx([8**-0.5] * 8, abs=1e-5)


def test_public_keys_absent_from_the_data_appear_and_others_do_not(curator):
    answer = curator.ask(ask.count(), by="ward", groups=["A", "Z"]).release(psi=1.0)
    assert [row["ward"] for row in answer] == ["A", "Z"]
    assert abs(answer.value("count", "Z")) < 10


def test_rows_outside_the_keys_do_not_use_up_a_unit():
    rows = pa.table({"who": [1] * 5, "ward": ["A", "B", "C", "D", "E"]})
    answer = Curator(rows, "who").ask(ask.count(), by="ward", groups=["A"]).release(psi=NO_NOISE)
    assert answer.value("count", "A") == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("keys", [[3, 4, 5], [5, 3], [4], [-1, 0, 1, None], [None], [-(2**63), 2**63 - 1]])
def test_whole_number_keys_with_and_without_gaps_keep_their_rows_alone(keys):
    """One unit in many groups: were a row outside the keys let in, its share of the others would fall."""
    groups = [*range(-3, 9), None, -(2**63), 2**63 - 1]
    curator = Curator(pa.table({"who": [1] * len(groups), "day": pa.array(groups, pa.int64())}), "who")
    answer = curator.ask(ask.count(), by="day", groups=keys).release(psi=NO_NOISE)
    assert [row["value"] for row in answer] == pytest.approx([len(keys) ** -0.5] * len(keys), abs=1e-5)


def test_several_columns_make_groups_and_null_is_a_key():
    rows = pa.table({"who": [1, 2, 3, 4], "a": ["x", "x", None, "y"], "b": [1, 2, 1, None]})
    keys = [("x", 1), ("x", 2), (None, 1), ("y", None), ("y", 7)]
    answer = Curator(rows, "who").ask(ask.count(), by=["a", "b"], groups=keys).release(psi=NO_NOISE)
    assert [(row["a"], row["b"], round(row["value"])) for row in answer] == [
        ("x", 1, 1), ("x", 2, 1), (None, 1, 1), ("y", None, 1), ("y", 7, 0)
    ]  # fmt: skip


KEYED = {
    "timestamp": [datetime.datetime(2026, 1, 2, 3, 4, 5), datetime.datetime(1969, 12, 31)],
    "date": [datetime.date(2026, 1, 2), datetime.date(1900, 1, 1)],
    "decimal": [Decimal("1.50"), Decimal("-2.25")],
    "boolean": [True, False],
    "integer": [-(2**63), 2**63 - 1],
    "text": ['O\'Brien "x"; DROP TABLE frame;--', "ünï \n\t 漢字"],
}


@pytest.mark.parametrize("kind", list(KEYED))
def test_keys_of_every_type_are_found_again_also_in_json(kind):
    one, other = KEYED[kind]
    rows = pa.table({"who": [1, 2, 3], "key": [one, one, other]})
    answer = Curator(rows, "who").ask(ask.count(), by="key", groups=[one, other]).release(psi=NO_NOISE)
    assert [(row["key"], round(row["value"])) for row in answer] == [(one, 2), (other, 1)]
    again = Answer.from_dict(json.loads(json.dumps(answer.to_dict())))
    assert list(again) == list(answer)


@pytest.mark.parametrize(
    "name", ['a "quoted" one', "select * from x; --", "täble ünit", "value", "k0", "unit", "c0", "q"]
)
def test_columns_may_have_any_name(name):
    rows = pa.table({"u n'it": [1, 1, 2], name: ["A", "B", "A"], 'ço"st': [1.0, 2.0, 3.0]})
    answer = (
        Curator(rows, "u n'it")
        .ask(ask.sum('ço"st', 0, 5), by=name, groups=["A", "B"], where='ço"st > 0')
        .release(psi=NO_NOISE)
    )
    assert [round(row["value"], 3) for row in answer] == [4.0, 2.0]


def test_rows_without_a_unit_and_values_that_are_no_number_do_not_count():
    rows = pa.table({"who": [1, 2, None, 4], "x": [5.0, float("nan"), 7.0, None]})
    answer = Curator(rows, "who").ask(ask.count(), ask.sum("x", 0, 10), ask.mean("x", 0, 10)).release(psi=NO_NOISE)
    assert [round(row["value"], 3) for row in answer] == [3.0, 5.0, 5.0]


def test_where_is_part_of_the_question(curator, table):
    frame = table.to_pandas()
    answer = released(curator, ask.count(), where="age >= 50", contribution=16)
    assert answer.value("count") == pytest.approx((frame.age >= 50).sum(), abs=1e-3)


def test_every_source_gives_the_same(table, tmp_path):
    frame = table.to_pandas()
    frame.to_parquet(tmp_path / "v.parquet")
    frame.to_csv(tmp_path / "v.csv", index=False)
    with duckdb.connect(tmp_path / "v.duckdb") as database:
        database.execute(f"create table visits as from '{tmp_path / 'v.parquet'}'")
    sources = [table, frame, pl.from_pandas(frame), tmp_path / "v.parquet", str(tmp_path / "v.csv")]
    curators = [Curator(source, "patient") for source in sources]
    curators.append(Curator(tmp_path / "v.duckdb", "patient", name="visits"))
    answers = [round(released(c, ask.sum("cost", 0, 1000)).rows[0][1].value, 1) for c in curators]
    assert len(set(answers)) == 1


def test_shares_of_psi_add_up_and_weights_move_them(curator):
    asks = [ask.count(weight=3.0), ask.sum("cost", 0, 1000), ask.mean("cost", 0, 1000, contribution="auto")]
    priced = curator.ask(*asks, contribution=2.0).at(0.7)
    parts = [Guarantee(priced.psi_of(a)) for a in priced.asks] + [
        Guarantee(priced.psi_of_sizes(a)) for a in priced.asks
    ]
    total = psidp.compose(parts).psi
    assert 0.7 * (1 - 1e-12) < total <= 0.7
    assert [p.psi for p in parts[::3]] == pytest.approx([0.7 * sqrt(0.6 * 0.98), 0.7 * sqrt(0.6 * 0.02)])
    assert [p.psi for p in parts[2::3]] == pytest.approx([0.7 * sqrt(0.2 * 0.9), 0.7 * sqrt(0.2 * 0.1)])


def test_replace_one_doubles_the_bound_and_says_so(table):
    twice = Curator(table, "patient", adjacency="replace-one").ask(ask.count()).plan(psi=0.5)
    once = Curator(table, "patient").ask(ask.count()).plan(psi=0.5)
    assert twice.expected[0].sensitivity == 2 * once.expected[0].sensitivity
    assert "twice" in twice.summary()


def test_a_plan_reads_no_row_and_says_what_comes(table, monkeypatch):
    def refuse(*_):
        raise AssertionError("the engine was asked for rows")

    curator = Curator(table, "patient")
    monkeypatch.setattr(curator.source.engine, "rows", refuse)
    monkeypatch.setattr(curator.source.engine, "columns", refuse)
    asks = (ask.count(), ask.mean("cost", 0, 2000))
    plan = curator.ask(*asks, by="ward", groups=["A"], clipping_share=0.0).plan(psi=0.5)
    assert "GROUP BY" in plan.sql[0]
    assert plan.expected[0].sigma == pytest.approx(1.0 / (0.5 * sqrt(0.5)))
    assert plan.psi_for(2 * plan.expected[0].standard_error, "count") == pytest.approx(0.25)
    assert json.loads(plan.to_json())["expected"][1]["per_row"] is True
    assert "No row was read" in plan.summary()
    private = curator.ask(ask.count(), by="ward", groups=PrivateGroups(kappa=1e-9, at_most=4)).plan(psi=0.5)
    assert private.guarantee.kappa == 1e-9


def test_the_expected_error_is_the_error(curator):
    asks = [ask.count(), ask.mean("cost", 0, 2000)]
    question = curator.ask(*asks, contribution=4)
    expected = question.plan(psi=2.0).expected
    got = [[e.value for _, e in answer.rows] for answer in repeated(question, 2.0, 200)]
    spread = np.std(got, axis=0)
    rows = np.mean(got, axis=0)[0]
    assert spread[0] == pytest.approx(expected[0].standard_error, rel=0.3)  # 6 standard errors of a spread of 200
    assert spread[1] == pytest.approx(expected[1].standard_error / rows, rel=0.3)


def test_intervals_cover_what_was_clipped_and_summed(curator):
    """200 releases; each statistic's interval at 0.9 misses 20 times on average, more than 45 once in 10^7."""
    asks = [ask.count(), ask.mean("cost", 0, 2000), ask.variance("cost", 0, 2000), ask.deviation("cost", 0, 2000),
            ask.quantiles("age", range(0, 101, 10), at=[0.5])]  # fmt: skip
    truth = [e.value for _, e in curator.ask(*asks, contribution=4).release(psi=NO_NOISE).rows]
    missed = np.zeros(len(truth))
    for answer in repeated(curator.ask(*asks, contribution=4, confidence=0.9), 3.0, 200):
        missed += [not e.lower <= t <= e.upper for (_, e), t in zip(answer.rows, truth, strict=True)]
    assert (missed <= 45).all()
    assert missed[0] >= 3  # and they are not empty words: fewer than 3 of 200 with probability 2e-7


def test_private_keys_come_through_only_with_a_crowd():
    many = [{"who": i, "ward": "crowded"} for i in range(500)]
    rows = pa.Table.from_pylist([*many, {"who": 9001, "ward": "alone"}])
    keys = PrivateGroups(kappa=1e-9, at_most=3)  # with which the lone one comes through, 21 times tried: 2e-8
    for _ in range(20):
        answer = Curator(rows, "who").ask(ask.count(), by="ward", groups=keys).release(psi=1.0)
        assert [row["ward"] for row in answer] == ["crowded"]
        assert answer.guarantee == Guarantee(1.0, 1e-9, unit="who")
    (row,) = Curator(rows, None).ask(ask.count(), by="ward", groups=keys).release(psi=1.0)
    assert row["ward"] == "crowded"


def test_a_unit_in_more_keys_than_allowed_counts_nowhere():
    rows = pa.Table.from_pylist([{"who": i, "ward": w} for i in range(300) for w in ("a", "b", "c")])
    assert (
        not Curator(rows, "who")
        .ask(ask.count(), by="ward", groups=PrivateGroups(1e-6, at_most=2))
        .release(psi=1.0)
        .rows
    )
    assert (
        len(
            Curator(rows, "who")
            .ask(ask.count(), by="ward", groups=PrivateGroups(1e-6, at_most=3))
            .release(psi=1.0)
            .rows
        )
        == 3
    )


def test_private_weights_keep_their_norm_in_integers_and_kappa_is_what_the_issue_says():
    for at_most, contribution in ((1, 1.0), (50, 1.0), (4096, 3.7)):
        keys = PrivateGroups(1e-9, at_most, contribution)
        grid, steps = keys.bound.grid, keys.bound.by_keys
        assert all(m * w * w <= grid.bound**2 for m, w in enumerate(steps, 1))
        assert steps[0] == grid.truncated(1.0)
        for sigma in (0.5, 20.0):
            tau = keys.threshold(sigma, sigma * 2**-24)
            assert keys.kappa_at(tau, sigma, sigma * 2**-24) <= 1e-9 < keys.kappa_at(tau - 0.01 * sigma, sigma, 0.0)
    assert kappa_from_threshold(6.0, 1.0, [1.0]) == pytest.approx(2.87e-7, rel=0.01)
    million = 1 / np.sqrt(np.arange(1.0, 1e6 + 1))
    assert kappa_from_threshold(6.0, 1.0, million) == pytest.approx(1e-3, rel=0.05)


def test_the_share_of_lone_keys_that_come_through_is_below_kappa():
    """kappa 0.05, 4,000 lone units with 4 keys each: at most 200 expected, more than 280 once in 10^8."""
    rows = pa.Table.from_pylist([{"who": i, "ward": 4 * i + j} for i in range(4000) for j in range(4)])
    keys = PrivateGroups(kappa=0.05, at_most=4)
    chosen = Curator(rows, "who").ask(ask.units(), by="ward", groups=keys).release(psi=1.0).rows
    owners = {key[0] // 4 for key, _ in chosen}
    assert 100 < len(owners) <= 280


def test_a_contribution_is_chosen_near_what_units_have():
    rows = pa.Table.from_pylist([{"who": i % 2000, "x": 1.0} for i in range(12_000)])  # six rows each
    answers = [Curator(rows, "who").ask(ask.count(), contribution="auto").release(psi=1.0) for _ in range(40)]
    chosen = [answer for answer in answers if "at most 8 rows' worth" in answer.summary()]
    assert len(chosen) >= 30  # a choice of 8 fails about 1 time in 50, so that this fails about 1 time in 1e9
    assert all(abs(answer.value("count") - 12_000) < 100 for answer in chosen)  # twelve standard deviations


def test_frames_come_as_asked(curator):
    answer = curator.ask(ask.count(), by="ward", groups=["A", "B"]).release(psi=1.0)
    names = ["ward", "statistic", "value", "standard_error", "lower", "upper", "flag"]
    assert list(answer.frame().columns) == names
    assert answer.frame("polars").columns == names
    assert answer.frame("arrow").column_names == names


def test_summaries_say_cost_and_what_intervals_do_not_cover(curator):
    text = curator.ask(ask.mean("cost", 0, 1000)).release(psi=0.25).summary()
    for words in (
        "mean of cost",
        "psi = 0.25",
        "per patient",
        "reaches further by what that may have moved, where it was measured",
        "scaled down by one factor",
        "2% of psi^2 goes into saying what clipping took",
    ):
        assert words in text


def test_no_noise_is_drawn_before_the_engine_has_answered(curator, monkeypatch):
    """`prepared` asks the engine; only what it gives back draws."""
    monkeypatch.setattr(identity, "noisy_residuals", None)
    monkeypatch.setattr("psidp.mechanism.gaussian.GaussianMechanism.release", None)
    draw = prepared(curator.ask(ask.count()).at(1.0))
    with pytest.raises(TypeError):
        draw()


def test_ten_thousand_releases_on_neighbours_are_as_far_apart_as_psi_says():
    """Two tables that differ in one unit at its bound; the best attack's advantage against psi, and never above it."""
    n, psi = 5_000, 1.0  # on each of the two
    rows = [{"who": i, "ward": i % 3, "x": 10.0} for i in range(30)]
    extra = [{"who": 99, "ward": w, "x": 10.0} for w in range(3)]
    tables = [Curator(pa.Table.from_pylist(r), "who") for r in (rows, rows + extra)]
    scores = []
    for c in tables:
        asks = ask.count(), ask.sum("x", 0, 10)
        draw = prepared(c.ask(*asks, by="ward", groups=range(3), clipping_share=0.0).at(psi))
        drawn = [draw().noisy for _ in range(n)]
        scores.append(np.array([sum(noisy.totals.sum() / noisy.sigma for noisy in one) for one in drawn]))
    spread = scores[0].std()
    moved = (scores[1].mean() - scores[0].mean()) / spread
    assert moved == pytest.approx(psi, abs=6 * sqrt(2.0 / n))
    found = psidp.audit(scores[1], scores[0], confidence=1 - 1e-6, seed=1)  # a false alarm once in a million
    assert 0.75 * psi < found.psi <= psi  # found: 0.874 with a deviation of 0.024, outside once in 5 million
    for threshold in np.quantile(scores[0], [0.01, 0.1, 0.5, 0.9]):
        fpr, tpr = (scores[0] > threshold).mean(), (scores[1] > threshold).mean()
        assert tpr <= Guarantee(psi).roc(min(1.0, fpr + 6 * sqrt(fpr * (1 - fpr) / n))) + 6 * sqrt(0.25 / n)


def test_a_line_feed_in_a_constant_is_part_of_it():
    rows = pa.table({"who": [1, 2], "text": ["a\n b", "a b"]})
    answer = released(Curator(rows, "who"), ask.count(), by="text", groups=["a\n b"], where="text = 'a\n b'")
    assert round(answer.value("count", "a\n b")) == 1
