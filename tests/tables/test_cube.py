"""A cube: tables that agree, numbers that are near the truth, a price that is never above what was paid."""

import base64
import json
import zlib
from fractions import Fraction
from itertools import combinations, product
from math import inf, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import psidp
from psidp import Guarantee
from psidp.tables import ask
from psidp.tables.choices.private_groups import PrivateGroups
from psidp.tables.cube_answer import Cube
from psidp.tables.curator import Curator
from psidp.tables.estimate import NOISE
from psidp.tables.flags import CLIPPING
from psidp.tables.strategies import residual

COLUMNS = {"site": ["north", "south", "west"], "month": range(1, 7), "delay": ask.bins([-10, 0, 10, 60])}
ORDERED = COLUMNS | {"delay": ask.ordered(np.linspace(-10.5, 60.5, 72))}
MEASURES = [ask.count(), ask.mean("delay", -10, 60), ask.sum("fare", 0, 100)]


@pytest.fixture(scope="module")
def trips():
    """Rides of 300 cars, some with hundreds: where and when is skewed, delays too, some fares are missing."""
    dice = np.random.default_rng(17)
    owner = np.repeat(np.arange(300), 1 + dice.geometric(0.02, 300))
    n = owner.size
    site = np.array(["north", "south", "west", "elsewhere"])[dice.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])]
    fare = np.where(dice.random(n) < 0.1, np.nan, dice.gamma(2.0, 12.0, n))
    return pd.DataFrame(
        {
            "car": owner,
            "site": site,
            "month": dice.integers(1, 7, n),
            "delay": np.clip(dice.gamma(1.2, 12.0, n) - 8.0, -10, 60).round(),
            "fare": fare,
        }
    )


def inside(trips):
    return trips[trips.site != "elsewhere"]


def truth(trips, names):
    """Counts, means of delay and sums of fare, by plain pandas."""
    rows = inside(trips).assign(fare=inside(trips).fare.clip(0, 100))
    rows = rows.assign(
        delay_=pd.cut(rows.delay, [-11, -0.5, 9.5, 61], labels=["[-10, 0) and below", "[0, 10)", "[10, 60] and above"])
    )
    by = [{"delay": "delay_"}.get(name, name) for name in names]
    grouped = rows.groupby(by, observed=False)
    return grouped.size(), grouped.delay.mean(), grouped.fare.sum()


def key_of(row, names):
    key = tuple(row[name] for name in names)
    return key if len(key) > 1 else key[0]


@pytest.mark.parametrize("names", [("site",), ("month", "site"), ("delay", "site", "month")])
def test_without_noise_to_speak_of_every_number_is_the_truth(trips, names):
    cube = Curator(trips, None).cube(COLUMNS, ask.up_to(3), measures=MEASURES).release(psi=1000.0)
    counts, means, sums = truth(trips, names)
    for row in cube.table(*names):
        found = {"count": counts, "mean of delay": means, "sum of fare": sums}[row["statistic"]]
        assert abs(row["value"] - found[key_of(row, names)]) < 6 * row["standard_error"] + 1e-3
        assert row["standard_error"] < 0.5
        assert row["lower"] <= row["value"] <= row["upper"]


def test_all_tables_agree_to_the_last_digits(trips):
    cube = Curator(trips, None).cube(ORDERED, ask.up_to(3)).release(psi=0.3)
    total = cube.query().value
    for names in cube.tables:
        assert sum(row["value"] for row in cube.table(*names)) == pytest.approx(total, rel=1e-12)
    fine = {(r["month"], r["site"]): r["value"] for r in cube.table("month", "site")}
    for row in cube.table("site"):
        assert sum(v for (_, s), v in fine.items() if s == row["site"]) == pytest.approx(row["value"], rel=1e-11)
    for month in range(1, 7):
        assert cube.query({"month": month, "site": "west"}).value == pytest.approx(fine[month, "west"], rel=1e-9)


def test_intervals_of_cells_means_sums_and_ranges_cover_as_promised(trips):
    counts, means, sums = truth(trips, ("site", "month"))
    june = ((inside(trips).month >= 3) & (inside(trips).site == "south")).sum()
    hits = {"count": [], "mean of delay": [], "sum of fare": [], "range": [], "ratio": []}
    question = Curator(trips, None).cube(COLUMNS, ask.up_to(2), measures=MEASURES)
    for _ in range(60):
        cube = question.release(psi=1.0)
        for row in cube.table("site", "month"):
            found = {"count": counts, "mean of delay": means, "sum of fare": sums}[row["statistic"]]
            hits[row["statistic"]].append(row["lower"] <= found[row["site"], row["month"]] <= row["upper"])
        some = cube.query({"month": range(3, 7), "site": "south"})
        hits["range"].append(some.lower <= june <= some.upper)
        ratio = cube.ratio({"site": "south", "month": range(3, 7)}, {"site": "south"})
        share = june / (inside(trips).site == "south").sum()
        hits["ratio"].append(ratio.lower <= share <= ratio.upper)
    for name, found in hits.items():
        rate, room = np.mean(found), 4.9 * sqrt(0.95 * 0.05 / len(found)) + 0.01  # cells of a cube are correlated
        assert abs(rate - 0.95) < room, (name, rate)


def test_quantiles_and_shares_come_near_and_their_intervals_hold_all_at_once(trips):
    cube = Curator(trips, None).cube(ORDERED, [("delay", "site")]).release(psi=1.0)
    rows = inside(trips)
    for row in cube.quantile("delay", [0.5, 0.9], by="site"):
        values = np.sort(rows[rows.site == row["site"]].delay)
        q = float(row["statistic"].split()[1])
        assert row["lower"] <= values[int(q * values.size)] <= row["upper"]
        assert abs(row["value"] - np.quantile(values, q)) < 1.5
    for row in cube.cdf("delay", by="site"):
        values = rows[rows.site == row["site"]].delay
        assert row["lower"] <= (values < row["delay"]).mean() <= row["upper"], row
    whole = cube.cdf("delay")
    assert whole.by == ("delay",)
    assert len(whole.rows) == 70


def test_noise_made_for_cumulative_sums_is_better_at_them(trips):
    edges = np.linspace(-10.5, 60.5, 72)
    curator = Curator(trips, None)
    made = curator.cube({"delay": ask.ordered(edges)}, ["delay"]).release(psi=1.0)
    flat = curator.cube({"delay": ask.bins(edges)}, ["delay"]).release(psi=1.0)
    size = len(edges) - 1
    prefixes = [np.tril(np.ones((size, size)))]
    ours, theirs = (sqrt(c.noisy[0].plans[0].covariances((0,), prefixes).mean()) for c in (made, flat))
    assert ours < 0.45 * theirs


def test_a_unit_with_many_rows_is_cut_and_the_cube_says_so(trips):
    curator = Curator(trips, "car")
    cube = curator.cube(COLUMNS, ask.up_to(1), contribution=4).release(psi=1.0)
    truth = inside(trips).groupby("site").size()
    for row in cube.table("site"):
        assert CLIPPING in row["flag"] or row["lower"] <= truth[row["site"]] <= row["upper"]
    assert CLIPPING in "".join(row["flag"] for row in cube.table("site"))
    cars = inside(trips).groupby("car").size()
    kept = np.minimum(cars, 4).sum()
    assert 1.0 - kept / cars.sum() - 0.05 < cube.lost <= 1.0
    assert any("clipping took about" in note.text for note in cube.notes)
    assert cube.query().value == pytest.approx(kept, abs=5 * cube.query().standard_error)
    silent = curator.cube(COLUMNS, ask.up_to(1), contribution=4, clipping_share=0).release(psi=1.0)
    assert any("not measured" in note.text for note in silent.notes)
    assert silent.lost != silent.lost


@pytest.mark.parametrize("bound", ["rows", "image"])
def test_a_contribution_chosen_privately_keeps_nearly_all(trips, bound):
    cube = Curator(trips, "car").cube(COLUMNS, ask.up_to(2), contribution="auto", bound=bound).release(psi=4.0)
    total = cube.query()
    assert total.value == pytest.approx(len(inside(trips)), rel=0.1)
    assert any("(chosen)" in note.text for note in cube.notes)


def test_the_image_norm_keeps_more_of_units_that_are_in_many_cells(trips):
    curator = Curator(trips, "car")
    rows, image = (
        curator.cube(COLUMNS, ask.up_to(2), contribution=20, bound=b).release(psi=8.0) for b in ("rows", "image")
    )
    assert image.query().value > 1.2 * rows.query().value


def test_wanted_errors_are_reached_for_the_least_psi(trips):
    curator = Curator(trips, None)
    plan = curator.cube(COLUMNS, ask.up_to(2)).plan(errors={("site",): 2.0, 1: 5.0, 2: 10.0})
    assert plan.error("site") <= 2.0
    assert plan.error("month") <= 5.0
    assert plan.error("site", "month") <= 10.0
    less = curator.cube(COLUMNS, ask.up_to(2)).plan(psi=plan.guarantee.psi * 0.99)
    worst = max(less.error("site") / 2.0, less.error("month") / 5.0, less.error("site", "month") / 10.0)
    assert plan.gap <= 1e-3
    assert worst > 1.0
    cube = curator.cube(COLUMNS, ask.up_to(2), measures=MEASURES).release(errors={("site",): 2.0, 1: 5.0, 2: 10.0})
    assert cube.query({"site": "west"}).standard_error <= 2.0 * (1 + 1e-6)


def plans_of(priced):
    """The noise of every number that a row adds, with whether it may have either sign or be missing."""
    found = []
    for noise, vector in zip(priced.noises, priced.vectors, strict=True):
        found += [(plan, not c.every) for plan, c in zip(noise.plans, vector.coordinates, strict=True)]
    return found


def exact_images(plans, marginals, rows):
    """Squared norm of the image of {cell: values by plan}, in fractions."""
    total = Fraction(0)
    for n, (plan, _) in enumerate(plans):
        for part, sigma in zip(marginals.residuals, plan.sigmas, strict=True):
            table = np.zeros(marginals.shape(part), dtype=object)
            for cell, values in rows:
                table[tuple(cell[i] for i in part)] += Fraction(values[n])
            for axis, i in enumerate(part):
                table = table - table.sum(axis=axis, keepdims=True) * Fraction(1, marginals.bases[i].size)
            total += sum(x * x for x in table.reshape(-1)) / Fraction(sigma) ** 2
    return total


@pytest.mark.parametrize("measures", [[ask.count()], MEASURES])
def test_the_bound_on_products_of_rows_holds_for_any_unit(trips, measures):
    """|u|_G^2 <= sum over pairs of gram/2^24, also for measures of either sign and missing ones."""
    question = Curator(trips, "car").cube(
        COLUMNS, ask.up_to(2), measures=measures, contribution=8.0, bound="image", clipping_share=0.0
    )
    priced, layout = question.priced(1.0, None, {}), question.layout
    plans, dice, tight = plans_of(priced), np.random.default_rng(5), 0.0
    own = sum((plan.squared for plan, _ in plans), Fraction(0))
    for _ in range(60):
        cells = [tuple(int(dice.integers(c.size)) for c in layout.columns) for _ in range(int(dice.integers(1, 7)))]
        values = [[Fraction(int(dice.integers(-4, 5)), 4) if signed else 1 for _, signed in plans] for _ in cells]
        pairs = sum(layout.gram[sum((a[i] == b[i]) << i for i in range(3))] for a, b in product(cells, cells))
        image = exact_images(plans, layout.marginals, list(zip(cells, values, strict=True)))
        assert image <= own * Fraction(pairs, 2**24)
        tight = max(tight, float(image / own / Fraction(pairs, 2**24)))
    assert tight > (0.999 if len(measures) == 1 else 0.3)


@pytest.mark.parametrize("columns", [{"site": ["north", "south"]}, COLUMNS])
def test_replacing_one_row_costs_no_more_than_was_paid(trips, columns):
    """Every pair of cells, and a row that goes outside, in exact fractions; under add-remove once."""
    for adjacency, low in (("replace-one", 0.95), ("add-remove", 0.999)):
        question = Curator(trips, None, adjacency=adjacency).cube(columns, ask.up_to(2))
        plans, layout = plans_of(question.priced(1.0, None, {})), question.layout
        cells = list(product(*(range(c.size) for c in layout.columns)))[:60]
        moves = [[(cell, [1])] for cell in cells[:5]]
        if adjacency == "replace-one":
            moves += [[(a, [1]), (b, [-1])] for a, b in combinations(cells, 2)]
        worst = max(exact_images(plans, layout.marginals, move) for move in moves)
        assert low <= float(worst) <= 1.0
        assert worst <= 1
    one = Curator(trips, None, adjacency="replace-one").cube(columns, ask.up_to(2)).plan(psi=1.0)
    many = Curator(trips, "car", adjacency="replace-one").cube(columns, ask.up_to(2), clipping_share=0).plan(psi=1.0)
    assert one.error("site") < 0.8 * many.error("site")


def test_the_price_of_all_layers_and_unit_sizes_is_what_was_paid(trips):
    for unit, terms in ((None, {}), ("car", {"contribution": 7.3}), ("car", {"clipping_share": 0.3})):
        terms = {"contribution": 1.0, "clipping_share": 0.0} | terms
        question = Curator(trips, unit).cube(COLUMNS, ask.up_to(2), measures=MEASURES, balance="total", **terms)
        priced = question.priced(0.7, None, {})
        plans = [plan for plan, _ in plans_of(priced)]
        assert len(plans) == 4
        tables = Fraction(terms["contribution"]) ** 2 * sum((p.squared for p in plans), Fraction(0))
        paid = tables + Fraction(priced.psi_of_sizes(priced.asks[0])) ** 2
        assert paid <= Fraction(0.7) ** 2
        assert float(paid) > 0.7**2 * (1 - 1e-9)


def test_a_stored_cube_comes_back_and_is_never_planned_again(trips, tmp_path, monkeypatch):
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("survey", psi=1.0, unit="car", actor="Ann", purpose="test")
    curator = Curator(trips, "car", ledger=ledger, budget="survey")
    asked, paid = {"contribution": 8, "measures": MEASURES}, {"psi": 0.5, "retry_key": "tables"}
    first = curator.cube(ORDERED, ask.up_to(2), **asked).release(**paid)
    monkeypatch.setattr(residual, "noisy_residuals", None)
    again = curator.cube(ORDERED, ask.up_to(2), **asked).release(**paid)
    assert again.stored
    assert not first.stored
    assert list(again.table("site")) == list(first.table("site"))
    assert ledger.remaining("survey").psi == pytest.approx(sqrt(0.75), abs=1e-9)
    with pytest.raises(psidp.errors.KeyConflictError):
        curator.cube(COLUMNS, ask.up_to(2), **asked).release(**paid)
    (spent,) = [entry for entry in ledger.entries("survey") if entry.state == "spent"]
    assert json.loads(spent.event)["unit_column"] == "car"


def test_other_wanted_errors_are_another_question(trips, tmp_path):
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("survey", psi=90.0, unit="record", actor="Ann", purpose="test")
    curator = Curator(trips, None, ledger=ledger, budget="survey")
    one, two = ({("site",): a, ("month",): b} for a, b in ((2, 5), (5, 2)))
    curator.cube(COLUMNS, ["site", "month"]).release(errors=one, retry_key="e")
    with pytest.raises(psidp.errors.KeyConflictError):
        curator.cube(COLUMNS, ["site", "month"]).release(errors=two, retry_key="e")


@pytest.mark.parametrize(("psi", "contribution"), [(2.0**-30, 1.0), (1e-5, 1e4), (0.001, 2.0**20), (2.0**10, 1.0)])
def test_a_plan_is_made_at_the_ends_of_what_is_allowed(trips, psi, contribution):
    plan = Curator(trips, "car").cube(COLUMNS, ask.up_to(2), contribution=contribution).plan(psi=psi)
    assert plan.guarantee.psi == psi


def test_a_crafted_file_is_refused_before_it_takes_memory(trips):
    cube = Curator(trips, None).cube(ORDERED, ask.up_to(2)).release(psi=1.0)
    for change, words in (
        (lambda v: v["marginals"]["bases"][2].update(matrix=_bomb()), "32 bits"),
        (lambda v: v["marginals"].update(tables=[list(range(3))] * 50_000), "cells together"),
        (lambda v: v["marginals"]["bases"][0].update(values=7), "as many values as its columns"),
        (lambda v: v["layers"][0][0].update(coefficients=""), "coefficients, got 0"),
    ):
        values = json.loads(cube.to_json())
        change(values)
        with pytest.raises(ValueError, match=words):
            Cube.from_dict(values)


def _bomb():
    return base64.b64encode(zlib.compress(bytes(50_000_000))).decode()


def test_a_cube_survives_json(trips):
    cube = Curator(trips, "car").cube(ORDERED, ask.up_to(2), measures=MEASURES, contribution=8).release(psi=1.0)
    again = Cube.from_dict(json.loads(cube.to_json()))
    assert list(again.table("site", "month")) == list(cube.table("site", "month"))
    assert list(again.quantile("delay", by="site")) == list(cube.quantile("delay", by="site"))
    assert again.guarantee == cube.guarantee
    assert again.summary() == cube.summary()


def test_cells_that_noise_hides_are_flagged(trips):
    empty = COLUMNS | {"site": ["north", "nowhere"]}
    cube = Curator(trips, None).cube(empty, ask.up_to(1), measures=MEASURES[:2]).release(psi=1.0)
    flags = {(row["site"], row["statistic"]): row["flag"] for row in cube.table("site")}
    assert flags["nowhere", "count"] == flags["nowhere", "mean of delay"] == NOISE
    assert not flags["north", "count"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"psi": None}, "one of them"),
        ({"errors": {1: 2}}, "one of them"),
        ({"psi": 0.0}, r"2\^10"),
        ({"psi": 1e-10}, r"2\^-30"),
        ({"psi": inf}, "psi"),
        ({"psi": float("nan")}, "psi"),
        ({"columns": {}}, "columns must map"),
        ({"columns": COLUMNS | {"car": [1, 2]}}, "unit's own column"),
        ({"columns": COLUMNS | {"colour": [1]}}, "column of the table"),
        ({"columns": COLUMNS | {"site": PrivateGroups(kappa=1e-9, at_most=3)}}, "must be public"),
        ({"columns": COLUMNS | {"fare": [1.0, 2.0]}}, "must be cut into bins"),
        ({"tables": [("site", "site")]}, "different columns"),
        ({"tables": [("site", "colour")]}, "cube's columns"),
        ({"tables": "site"}, "tables must be"),
        ({"tables": []}, "1 to 200,000"),
        ({"measures": []}, "at least one measure"),
        ({"measures": [ask.units()]}, "count, sum, mean"),
        ({"measures": [ask.quantiles("fare", [0, 9, 20], 0.5)]}, "count, sum, mean"),
        ({"measures": [ask.distinct("fare", 3)]}, "count, sum, mean"),
        ({"measures": [ask.top(2)]}, "count, sum, mean"),
        ({"measures": [ask.sum("colour", 0, 1)]}, "column of the table"),
        ({"measures": [ask.sum("fare", bounds="auto")]}, "must be given in a cube"),
        ({"measures": [ask.count(), ask.count()]}, "one twice"),
        ({"measures": [ask.count(contribution=3)]}, "give it to the cube itself"),
        ({"balance": "best"}, "worst"),
        ({"bound": "L2"}, "rows"),
        ({"columns": ORDERED, "bound": "image"}, "ordered"),
        ({"contribution": 0.5}, "contribution"),
        ({"confidence": 1.0}, "confidence"),
        ({"clipping_share": float("nan")}, "clipping_share"),
        ({"psi": None, "errors": {1: 2}}, "for every table"),
        ({"psi": None, "errors": {1: 2, 2: float("nan")}}, r"2\^80"),
        ({"psi": None, "errors": {1: 1e-9, 2: 1e-9}}, "within reach"),
        ({"psi": None, "errors": {1: 1e160, 2: 1e160}}, r"2\^80"),
        ({"psi": None, "errors": {("colour",): 2}}, "columns of the cube"),
        ({"psi": None, "errors": {1: 2, 2: 2}, "contribution": "auto"}, "number where errors"),
        ({"psi": None, "errors": {1: 2, 2: 2}, "measures": [ask.sum("fare", 0, 9)]}, "ask.count"),
        ({"columns": {c: range(3000) for c in ("month", "delay_m", "car_m")}, "tables": ask.up_to(3)}, "50,000,000"),
        ({"where": "colour = 1"}, "colour"),
    ],
)  # fmt: skip
def test_bad_questions_are_refused_before_anything_is_read_or_spent(trips, tmp_path, monkeypatch, change, words):
    frame = trips.assign(delay_m=trips.month, car_m=trips.month)
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("survey", psi=1.0, unit="car", actor="Ann", purpose="test")
    curator = Curator(frame, "car", ledger=ledger, budget="survey")
    monkeypatch.setattr(curator.source.engine, "columns", None)
    question = {"columns": COLUMNS, "tables": ask.up_to(2), "psi": 0.5} | change
    price = {name: question.pop(name) for name in ("psi", "errors") if name in question}
    for verb in ("release", "plan"):
        with pytest.raises((ValueError, TypeError), match=words):
            getattr(
                curator.cube(
                    question["columns"],
                    question["tables"],
                    **{name: value for name, value in question.items() if name not in ("columns", "tables")},
                ),
                verb,
            )(**price)
    assert ledger.remaining("survey") == Guarantee(1.0, unit="car")


def test_a_column_of_the_wrong_type_is_refused(trips):
    typed = pa.Table.from_pandas(trips)
    for columns, words in (
        ({"site": [1]}, "site"),
        ({"site": ask.bins([0, 1])}, "column of numbers"),
        ({"fare": [1]}, "cut into bins"),
        ({"month": ["May"]}, "month"),
    ):
        with pytest.raises(TypeError, match=words):
            Curator(typed, "car").cube(columns, ask.up_to(1))
    with pytest.raises(TypeError, match="numbers"):
        Curator(typed, "car").cube(COLUMNS, ask.up_to(1), measures=[ask.mean("site", 0, 9)])


def test_variances_ratios_and_weighted_sums_are_those_of_the_rows(trips):
    ratio = ask.ratio(ask.sum("fare", 0, 100), ask.count())
    measures = [ask.variance("delay", -10, 60), ask.deviation("delay", -10, 60), ratio]
    measures.append(ask.weighted_sum("fare", 0, 100, weights="delay", most=60))
    rows = inside(trips)
    sites = rows.groupby("site")
    weighted = (rows.fare.clip(0, 100) * rows.delay.clip(0, 60)).groupby(rows.site).sum()
    mean = rows.fare.clip(0, 100).groupby(rows.site).sum() / sites.size()
    truths = (sites.delay.var(ddof=0), sites.delay.std(ddof=0), mean, weighted)
    right = {measure.name: truth for measure, truth in zip(measures, truths, strict=True)}
    for unit, terms in ((None, {}), ("car", {"contribution": 500, "bound": "image"})):
        cube = Curator(trips, unit).cube(COLUMNS, ask.up_to(2), measures=measures, **terms).release(psi=1000.0)
        for row in cube.table("site"):
            error = abs(row["value"] - right[row["statistic"]][row["site"]])
            assert error < 6 * row["standard_error"] + 1e-3
        again = Cube.from_dict(json.loads(cube.to_json()))
        assert list(again.table("site", "month")) == list(cube.table("site", "month"))


def test_a_question_of_a_cube_is_made_again_from_its_plain_values(trips):
    curator = Curator(trips, "car")
    terms = {"contribution": 8, "balance": "total", "where": "fare > 3", "confidence": 0.9}
    question = curator.cube(ORDERED, [("site", "month"), "delay"], measures=MEASURES, **terms)
    again = curator.question(json.loads(question.to_json()))
    assert again == question
    assert again.plan(psi=0.5) == question.plan(psi=0.5)


def test_a_cube_that_version_0_2_stored_is_read():
    values = json.loads((Path(__file__).parents[1] / "from_0_2" / "cube.json").read_text(encoding="utf-8"))
    cube = Cube.from_dict(values)
    first = next(iter(cube.table("ward")))
    assert first["value"] == pytest.approx(0.915793198576924, rel=1e-15)
    assert first["upper"] == pytest.approx(5.695604541090887, rel=1e-13)
    assert cube.tables == [("ward",), ("day",)]
    assert Cube.from_dict(cube.to_dict()).table("day").rows == cube.table("day").rows


def test_groups_that_come_from_the_table_are_refused(trips):
    with pytest.raises(ValueError, match="must not come from the table"):
        Curator(trips, None).cube({"site": trips.site}, ["site"]).release(psi=1.0)


def test_what_no_table_holds_is_refused_with_what_there_is(trips):
    cube = (
        Curator(trips, None)
        .cube(COLUMNS, [("site", "month"), ("delay",)], measures=[ask.mean("fare", 0, 9)])
        .release(psi=1.0)
    )
    for call, words in (
        (lambda: cube.table("site", "delay"), "holds site, delay together"),
        (lambda: cube.table("colour"), "no column 'colour'"),
        (lambda: cube.table("site", "site"), "different columns"),
        (lambda: cube.query({"site": "moon"}), "no 'moon' in column 'site'"),
        (lambda: cube.query(measure="count"), "no measure 'count'"),
        (lambda: cube.ratio({"site": "west"}, {}), "got a mean"),
        (lambda: cube.quantile("delay"), "counts rows"),
    ):
        with pytest.raises((KeyError, ValueError), match=words):
            call()
    counted = Curator(trips, None).cube(COLUMNS, ask.up_to(1)).release(psi=1.0)
    with pytest.raises(ValueError, match="must be in bins"):
        counted.cdf("month")
    with pytest.raises(ValueError, match="numbers in"):
        counted.quantile("delay", [1.0])


def test_text_of_a_csv_file_is_read_as_what_the_cube_takes_it_for(trips, tmp_path):
    trips.to_csv(tmp_path / "trips.csv", index=False)
    columns = {"site": ["north", "south", "west"], "month": range(1, 7), "delay": ask.bins([-10, 0, 10, 60])}
    cube = Curator(tmp_path / "trips.csv", None).cube(columns, ask.up_to(2), where="fare >= 20").release(psi=1000.0)
    wanted = inside(trips)[inside(trips).fare >= 20].groupby(["site", "month"]).size()
    for row in cube.table("site", "month"):
        assert row["value"] == pytest.approx(wanted.get((row["site"], row["month"]), 0), abs=0.05)


def test_ratios_shares_and_quantiles_are_flagged_where_clipping_may_have_moved_them(trips):
    heavy = trips.assign(delay=np.where(trips.groupby("car").car.transform("size") > 60, 50.0, 0.0))
    curator = Curator(heavy, "car")
    for contribution, flag in ((2, CLIPPING), (1000, "")):
        cube = curator.cube(ORDERED, [("site", "delay")], contribution=contribution).release(psi=40.0)
        rows = [*cube.cdf("delay", by="site"), *cube.quantile("delay", 0.5, by="site")]
        share = cube.ratio({"site": "north"}, {})
        assert all(flag in row["flag"] for row in rows if 0.5 < row["value"] < 0.99 or "quantile" in row["statistic"])
        assert share.flag == flag


def test_bins_are_chosen_by_their_lower_edges_or_between_two_edges(trips):
    cube = Curator(trips, None).cube(COLUMNS, ask.up_to(2)).release(psi=1.0)
    late = cube.query({"delay": slice(0, 60)})
    assert late.value == pytest.approx(cube.query({"delay": [0, 10]}).value, rel=1e-12)
    assert cube.query({"delay": slice(None, None)}).value == pytest.approx(cube.query().value, rel=1e-12)
    for where, words in (({"delay": slice(0, 5)}, "no 5 in column"), ({"site": slice(0, 5)}, "not bins")):
        with pytest.raises(KeyError, match=words):
            cube.query(where)
    labels = [row["delay"] for row in cube.table("delay")]
    assert labels == ["[-10, 0) and below", "[0, 10)", "[10, 60] and above"]
    assert any("beyond the edges of delay" in note.text for note in cube.notes)


def test_a_plan_says_errors_strategies_and_sql_and_reads_nothing(trips, monkeypatch):
    curator = Curator(trips, "car")
    monkeypatch.setattr(curator.source.engine, "columns", None)
    plan = curator.cube(ORDERED, ask.up_to(2), contribution=10, measures=MEASURES).plan(psi=0.5)
    words = plan.summary()
    assert "71 bins in order, noise made for cumulative sums" in words
    assert "One car counts 10 rows at most" in words
    assert "site, month (18 cells)" in words
    assert "No row was read" in words
    assert "psi = 0.5" in words
    assert json.loads(plan.to_json())["tables"][0]["columns"] == ["site"]
    assert any("GROUP BY" in sql for sql in plan.sql)
    assert plan.error("site") < plan.error("delay") * 2


def test_every_order_of_columns_gives_the_same_cells(trips):
    cube = Curator(trips, None).cube(COLUMNS, ask.up_to(3)).release(psi=1.0)
    one = {(r["site"], r["month"], r["delay"]): r["value"] for r in cube.table("site", "month", "delay")}
    two = {(r["site"], r["month"], r["delay"]): r["value"] for r in cube.table("delay", "site", "month")}
    assert one == two


def test_a_cube_does_not_read_the_texts_of_its_units_as_numbers(tmp_path):
    """It would merge units, and drop those whose name is no number."""
    (tmp_path / "trips.csv").write_text("car,month,fare\n1,1,2.5\n1.0,1,3\nx,2,4\n")
    with Curator(tmp_path / "trips.csv", "car") as curator:
        with pytest.raises(ValueError, match="'car' has no type, and is asked for its numbers and for its units"):
            curator.cube({"month": [1, 2]}, ask.up_to(1), measures=[ask.mean("car", 0, 9)])
        plan = curator.cube({"month": [1, 2]}, ask.up_to(1), measures=[ask.mean("fare", 0, 9)]).plan(psi=1.0)
    assert "'fare' has no type of its own and is read as numbers" in plan.summary()


def test_a_cube_read_from_json_knows_its_key(trips, tmp_path):
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("survey", psi=1.0, unit="car", actor="Ann", purpose="test")
    curator = Curator(trips, "car", ledger=ledger, budget="survey")
    cube = curator.cube({"month": [1, 2]}, ask.up_to(1)).release(psi=0.5, retry_key="k")
    again = Cube.from_dict(json.loads(cube.to_json()))
    assert (again.payment(), again.retry_key) == (cube.payment(), "k")
