"""Prices in the notion that a caller has, and prices of wanted errors: turned into psi in the open."""

import datetime
import json
from math import sqrt

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import psidp
from psidp import Curator, Guarantee, PrivateGroups, ask
from psidp.cli.main import app
from psidp.errors import BudgetExceededError
from psidp.tables.price import psi_from_notion
from psidp.tables.question import prepared

NOTIONS = [
    {"psi": 0.3}, {"epsilon": 1.0, "delta": 1e-6}, {"auc": 0.6}, {"advantage": 0.2}, {"tpr": 0.2, "fpr": 0.1},
    {"zcdp": 0.05}, {"alpha": 2.0, "rho": 0.1},
]  # fmt: skip


@pytest.fixture(scope="module")
def curator():
    dice = np.random.default_rng(4)
    who = np.repeat(np.arange(500), dice.integers(1, 4, 500))
    return Curator(
        pa.table({"who": who, "ward": dice.choice(["A", "B"], who.size), "cost": dice.uniform(0, 90, who.size)}), "who"
    )


@pytest.mark.parametrize("notion", NOTIONS, ids=lambda n: " ".join(n))
def test_every_notion_of_a_gaussian_is_a_price(curator, notion):
    question, cube = curator.ask(ask.count()), curator.cube({"ward": ["A", "B"]}, ["ward"])
    answer = question.release(**notion)
    assert answer.guarantee.psi == Guarantee.gaussian(**notion).psi
    assert question.plan(**notion).guarantee == answer.guarantee
    assert cube.plan(**notion).guarantee.psi == pytest.approx(answer.guarantee.psi)


def test_plan_and_answer_say_it(curator):
    words = "Price: epsilon 1 and delta 1e-06 together are psi 0.237."
    question, cube = curator.ask(ask.count()), curator.cube({"ward": ["A", "B"]}, ["ward"])
    assert words in question.plan(epsilon=1, delta=1e-6).summary()
    assert words in question.release(epsilon=1, delta=1e-6).summary()
    assert words in cube.plan(epsilon=1, delta=1e-6).summary()
    assert "Price" not in question.plan(psi=0.3).summary()


KAPPA = 1e-3
KEPT = {
    "delta": ({"epsilon": 1.0, "delta": 0.01}, lambda g: g.delta(1.0)),
    "auc": ({"auc": 0.6}, lambda g: g.auc),
    "advantage": ({"advantage": 0.2}, lambda g: g.advantage),
    "tpr": ({"tpr": 0.2, "fpr": 0.1}, lambda g: g.roc(0.1)),
}


@pytest.mark.parametrize("name", KEPT)
def test_the_kappa_of_private_groups_comes_out_of_the_notion(curator, name):
    notion, measured = KEPT[name]
    answer = curator.ask(ask.count(), by="ward", groups=PrivateGroups(kappa=KAPPA, at_most=2)).release(**notion)
    wanted = notion[name]
    assert answer.guarantee.kappa == KAPPA
    assert wanted * (1 - 1e-9) <= measured(answer.guarantee) <= wanted * (1 + 1e-15)
    assert answer.guarantee.psi < Guarantee.gaussian(**notion).psi
    assert f"of which kappa {KAPPA:g} goes into choosing groups" in answer.summary()


@pytest.mark.parametrize(
    "notion",
    [{"epsilon": 1.0, "delta": KAPPA}, {"epsilon": 1.0, "delta": 1e-9}, {"zcdp": 0.1}, {"alpha": 2.0, "rho": 0.1},
     {"auc": 0.5}, {"advantage": KAPPA / 2}, {"tpr": 0.1, "fpr": 0.1}],
    ids=str,
)  # fmt: skip
def test_a_notion_that_kappa_uses_up_is_refused(curator, notion):
    with pytest.raises(ValueError, match="leaves nothing for noise"):
        curator.ask(ask.count(), by="ward", groups=PrivateGroups(kappa=KAPPA, at_most=2)).plan(**notion)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "a release must have a price"),
        ({"psi": 1.0, "auc": 0.6}, "exactly one notion must be given"),
        ({"epsilon": 1.0}, "Give delta as well"),
        ({"mu": 1.0}, "mu is called psi here"),
        ({"psi": 1.0, "contributions": 3}, "'contributions' is neither an argument nor a notion"),
        ({"psi": 1.0, "error": 3.0}, "psi, another notion, or error must be given"),
        ({"auc": 0.6, "error": 3.0}, "psi, another notion, or error must be given"),
    ],
)
def test_a_price_is_named_once(curator, given, words):
    with pytest.raises(TypeError, match=words):
        curator.ask(ask.count()).release(**given)


def test_a_wanted_error_is_the_error(curator):
    """Of each aggregate in its own unit; measured over 400 draws of the same totals."""
    asks = [ask.count(), ask.sum("cost", 0, 100), ask.mean("cost", 0, 100), ask.histogram("cost", [0, 50, 100])]
    wanted = {"count": 7.0, "sum of cost": 900.0, "mean of cost": (3.0, 1000), "histogram of cost": 12.0}
    question = curator.ask(*asks, contribution=2)
    plan = question.plan(error=wanted)
    errors = {e.name: e for e in plan.expected}
    for name, error in wanted.items():
        want, rows = error if isinstance(error, tuple) else (error, 1)
        assert errors[name].standard_error / rows == pytest.approx(want, rel=1e-9)
        assert errors[name].standard_error / rows <= want * (1 + 1e-12)
    assert "standard errors of 7 for count" in plan.summary()
    draw = prepared(question.priced(None, wanted, {}))
    counts = [draw().noisy[0].cells([0], 0.95).value[0, 0] for _ in range(400)]
    assert np.std(counts) == pytest.approx(7.0, rel=0.15)
    assert plan.guarantee.psi == pytest.approx(sqrt(sum(e.psi**2 for e in plan.expected)), rel=0.02)


def test_one_error_needs_no_name_and_quantiles_have_it_in_ranks(curator):
    assert curator.ask(ask.count()).plan(error=10).expected[0].standard_error == pytest.approx(10)
    assert curator.ask(ask.mean("cost", 0, 100)).plan(error=(2, 500)).expected[0].standard_error == pytest.approx(1000)
    rows = Curator(pa.table({"x": [1.0]}), None)
    for edges in ([0, 1, 2], range(60)):
        assert rows.ask(ask.quantiles("x", edges)).plan(error=25).expected[0].ranks == pytest.approx(25)


def test_choosing_groups_is_paid_beside_the_errors(curator):
    plan = curator.ask(ask.count(), by="ward", groups=PrivateGroups(kappa=1e-6, at_most=2)).plan(error=5.0)
    assert plan.expected[0].standard_error == pytest.approx(5.0)
    assert plan.guarantee.psi > curator.ask(ask.count()).plan(error=5.0).guarantee.psi


def test_an_error_that_the_budget_cannot_pay_is_refused_before_anything_is_spent(tmp_path):
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("survey", psi=0.5, unit="who", actor="Ann", purpose="test")
    curator = Curator(pa.table({"who": [1, 2]}), "who", ledger=ledger, budget="survey")
    with pytest.raises(BudgetExceededError, match=r"has psi 0\.5 left; this release needs"):
        curator.ask(ask.count()).release(error=1.0)
    assert ledger.remaining("survey").psi == 0.5
    assert curator.ask(ask.count()).release(error=4.0).guarantee.psi == pytest.approx(0.25, rel=0.02)
    ledger.dispose()


@pytest.mark.parametrize(
    ("asks", "more", "words"),
    [
        ([ask.count()], {"error": 0.0}, r"must be in \(0, inf\)"),
        ([ask.count()], {"error": float("nan")}, r"must be in \(0, inf\)"),
        ([ask.count()], {"error": (5.0, 100)}, "must be one number"),
        ([ask.count(), ask.units()], {"error": 5.0}, "error must name each of 'count', 'units'"),
        ([ask.count(), ask.units()], {"error": {"count": 5.0}}, "error must name each of 'count', 'units'"),
        ([ask.mean("cost", 0, 9)], {"error": 5.0}, "number of rows of a group"),
        ([ask.mean("cost", bounds="auto")], {"error": (5.0, 9)}, "must be given where an error is wanted"),
        ([ask.count()], {"error": 5.0, "contribution": "auto"}, "must be given where an error is wanted"),
        ([ask.count(weight=2)], {"error": 5.0}, "weight of 'count' must be left out"),
    ],
)  # fmt: skip
def test_an_error_that_says_too_little_is_refused(curator, asks, more, words):
    error = more.pop("error")
    question = curator.ask(*asks, **more)
    with pytest.raises(ValueError, match=words):
        question.plan(error=error)


def test_a_stream_takes_a_notion_too(tmp_path):
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("survey", psi=2.0, unit="who", actor="Ann", purpose="test")
    rows = pa.table({"who": [1, 2], "day": pa.array([0, 1], pa.date32())})
    curator = Curator(rows, "who", ledger=ledger, budget="survey")
    terms = {"every": "month", "since": "2026-01-01", "periods": 3, "arrived": "day", "cap": ask.cap(1)}
    plan = curator.stream("s", ask.count(), **terms).plan(epsilon=1, delta=1e-6)
    assert plan.guarantee.psi == pytest.approx(0.2367, abs=1e-4)
    ledger.dispose()


def test_no_price_is_above_its_notion():
    for epsilon, delta in ((0.1, 1e-9), (1.0, 1e-6), (4.0, 1e-3)):
        psi, _ = psi_from_notion(None, {"epsilon": epsilon, "delta": delta}, kappa=delta / 3)
        assert Guarantee(psi, delta / 3).delta(epsilon) <= delta


def test_the_command_line_has_notions_and_errors(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("who,x\n" + "\n".join(f"{n},{n % 50}" for n in range(300)) + "\n")
    words = ["release", "table", str(path), "--unit-column", "who", "--count", "--plan", "--json"]
    found = CliRunner().invoke(app, [*words, "--epsilon", "1", "--delta", "1e-6"])
    assert json.loads(found.stdout)["guarantee"]["psi"] == pytest.approx(0.2367, abs=1e-4)
    found = CliRunner().invoke(app, [*words, "--error", "5"])
    assert json.loads(found.stdout)["expected"][0]["standard_error"] == pytest.approx(5.0)
    both = [*words, "--mean", "x:0:50", "--error", "count:5", "--error", "mean of x:2:100"]
    found = CliRunner().invoke(app, both)
    assert [e["standard_error"] for e in json.loads(found.stdout)["expected"]] == pytest.approx([5.0, 200.0])
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 2 or "must have a price" in str(found.exception)
    cube = ["release", "cube", str(path), "--unit-column", "who", "--bins", "x:0,25,50", "--auc", "0.6"]
    cube += ["--plan", "--json"]
    found = CliRunner().invoke(app, cube)
    assert json.loads(found.stdout)["guarantee"]["psi"] == pytest.approx(Guarantee.gaussian(auc=0.6).psi)


ROWS = pa.table({"who": [1, 2, 3], "ward": ["A", "B", "A"], "day": [datetime.date(2026, 1, 5)] * 3})


def test_sensitivity_and_sigma_are_no_price_of_a_table_a_cube_or_a_stream(tmp_path, run):
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("b", psi=10.0, unit="who", purpose="a test")
    curator = Curator(ROWS, "who", ledger=ledger, budget="b")
    terms = {"every": "week", "since": "2026-01-05", "periods": 4, "arrived": "day", "cap": ask.cap(1)}
    table, cube = curator.ask(ask.count()), curator.cube({"ward": ["A", "B"]}, ask.up_to(1))
    stream = curator.stream("s", ask.count(), **terms)
    calls = [table.release, table.plan, cube.release, cube.plan, stream.plan, stream.open]
    for call in calls:
        for price in ({"sensitivity": 1, "sigma": 2}, {"sigma": 2}, {"psi": 1.0, "sigma": 2}):
            with pytest.raises(TypeError, match="sensitivity follows from the measures"):
                call(**price)
    assert [entry.state for entry in ledger.entries()] == ["opened"]


def test_the_command_line_refuses_a_sigma_as_well_and_does_not_offer_them(tmp_path, run):
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    psidp.Ledger(tmp_path / "ledger.db").open("b", psi=10.0, unit="who", purpose="a test")
    paid = ["--unit-column", "who", "--ledger", tmp_path / "ledger.db", "--budget", "b"]
    often = ["--every", "week", "--since", "2026-01-05", "--periods", 4, "--arrived", "day", "--at-most", 1]
    commands = [
        ["release", "table", tmp_path / "rows.parquet", "--count", *paid],
        ["release", "cube", tmp_path / "rows.parquet", "--column", "ward:A,B", *paid],
        ["stream", "open", tmp_path / "rows.parquet", "--name", "s", "--count", *often, *paid],
    ]
    for words in commands:
        code, _, err = run(*words, "--sensitivity", 1, "--sigma", 2)
        assert code == 2
        assert "sensitivity follows from the measures" in err
        code, out, _ = run(*words[:2], "--help")
        assert code == 0
        assert "--epsilon" in out
        assert "--sigma" not in out
    assert [entry.state for entry in psidp.Ledger(tmp_path / "ledger.db").entries()] == ["opened"]
