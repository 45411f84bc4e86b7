"""A question is a value: the same after JSON, priced by any notion, and paid for only where an answer is stored."""

import datetime
import json
from dataclasses import replace
from decimal import Decimal
from itertools import cycle

import numpy as np
import pyarrow as pa
import pytest

import psidp
from psidp import Curator, PrivateGroups, ask
from released import released

MONDAY = datetime.date(2026, 1, 5)


def visits(units=200, seed=1):
    """Some rows for each unit, with a column of every type that makes groups."""
    dice = np.random.default_rng(seed)
    who = np.repeat(np.arange(units), dice.integers(1, 6, units))
    n = who.size
    day = [MONDAY + datetime.timedelta(days=int(d)) for d in dice.integers(0, 28, n)]
    return pa.table(
        {
            "who": who,
            "visit": np.arange(n),
            "ward": dice.choice(["A", "B", None], n),
            "floor": dice.integers(0, 4, n),
            "night": dice.choice([True, False], n),
            "day": day,
            "at": [datetime.datetime.combine(d, datetime.time(12)) for d in day],
            "price": pa.array([Decimal(int(p)) / 4 for p in dice.integers(0, 8, n)], pa.decimal128(9, 2)),
            "cost": dice.gamma(2.0, 40.0, n),
            "hours": dice.uniform(0, 9, n),
        }
    )


TABLE = visits()
MEASURES = {
    "count": ask.count(),
    "units": ask.units(),
    "sum": ask.sum("cost", 0, 300),
    "sum, bounds chosen": ask.sum("hours", bounds="auto"),
    "mean": ask.mean("cost", 0, 300, weight=2.0),
    "mean, bounds chosen": ask.mean("hours", bounds="auto"),
    "variance": ask.variance("cost", 0, 300),
    "deviation": ask.deviation("hours", bounds="auto"),
    "histogram": ask.histogram("cost", [0, 50, 100, 300]),
    "histogram, edges chosen": ask.histogram("hours", "auto"),
    "quantiles": ask.quantiles("cost", range(0, 301, 20), at=[0.25, 0.5]),
    "median, edges chosen": ask.median("cost", "auto"),
    "min": ask.min("hours", range(10)),
    "max": ask.max("hours", range(10), at=0.9),
    "weighted sum": ask.weighted_sum("cost", 0, 300, weights="hours", most=9),
    "ratio": ask.ratio(ask.sum("cost", 0, 300), ask.sum("hours", 0, 9)),
    "share": ask.share("cost > 80"),
    "geometric mean": ask.geometric_mean("cost", 1, 300),
    "distinct": ask.distinct("price", 3),
    "top": ask.top(2, ask.sum("cost", 0, 300)),
}
GROUPS = {
    "none": {},
    "public": {"by": "ward", "groups": ["A", "B", None, "Z"]},
    "private": {"by": ("floor", "night"), "groups": PrivateGroups(kappa=1e-6, at_most=4)},
    "private, none comes through": {"by": "visit", "groups": PrivateGroups(kappa=1e-12, at_most=9)},
    "derived": {"by": "month(day)", "where": "ward in ('A', 'B') or cost >= 12.5"},
}


@pytest.fixture
def ledger(tmp_path):
    with psidp.Ledger(tmp_path / "ledger.db") as ledger:
        ledger.open("survey", psi=2.0**20, kappa=0.1, unit="who", actor="Ann", purpose="a test")
        yield ledger


@pytest.fixture
def curator(ledger):
    return Curator(TABLE, "who", ledger=ledger, budget="survey")


def questions(curator):
    """Questions of every layout, in which every measure and every type of key occurs."""
    plain = [a for name, a in MEASURES.items() if name != "top"]
    yield curator.ask(*plain, where="hours < 8", confidence=0.9, clipping_share=0.1)
    yield curator.ask(*MEASURES.values(), **GROUPS["public"], contribution="auto")
    yield curator.ask(ask.count(contribution=3.5), ask.units(), **GROUPS["private"])
    yield curator.ask(ask.share("cost > 80 and night as costly"), **GROUPS["derived"])
    keys = {
        "floor": [0, 3, None],
        "night": [True, False],
        "day": [MONDAY, None],
        "price": [Decimal("1.50"), Decimal(0)],
    }
    keys["at"] = [datetime.datetime(2026, 1, 5, 12), None]
    for name, groups in keys.items():
        yield curator.ask(ask.count(), by=name, groups=groups)
    yield curator.ask(ask.mean("cost", 0, 9), by=list(keys), groups=[tuple(groups[0] for groups in keys.values())])
    columns = {"ward": ["A", "B", None], "night": [True, False], "cost": ask.ordered(range(0, 301, 20)),
               "hours": ask.bins([0, 3, 9]), "month(day)": None}  # fmt: skip
    yield curator.cube(columns, ask.up_to(2), measures=[ask.count(), ask.mean("hours", 0, 9)], where="cost > 1")
    del columns["cost"]
    terms = {"balance": "total", "bound": "image", "contribution": 3, "clipping_share": 0.0, "confidence": 0.9}
    yield curator.cube(columns, [("ward", "night"), ("hours",)], **terms)
    often = {"every": "week", "since": MONDAY, "periods": 4, "arrived": "day"}
    yield curator.stream("visits", ask.count(contribution=2), **often, cap=ask.cap(2, apart=2))
    more = {"by": "ward", "groups": ["A", None], "where": "hours < 8", "windows": [2, 3], "confidence": 0.9}
    asks = ask.mean("cost", 0, 300), ask.quantiles("cost", range(0, 301, 20), at=0.5), ask.share("night")
    wait = datetime.timedelta(hours=3)
    yield curator.stream("means", *asks, **often, **more, cap=ask.cap(each="month"), wait=wait, contribution=2)


def test_a_question_is_the_same_after_json(curator):
    number = 0
    for question in questions(curator):
        again = curator.question(json.loads(question.to_json()))
        assert again == question
        assert type(again) is type(question)
        assert again.to_dict() == question.to_dict()
        assert again.plan(psi=0.5) == question.plan(psi=0.5)
        number += 1
    assert number == 14


def test_a_question_that_was_read_gets_the_answer_that_is_stored(curator):
    for question in questions(curator):
        if not hasattr(question, "release"):  # a stream keeps what it published by its name
            continue
        first = question.release(psi=0.5, retry_key=question.to_json()[:200])
        again = curator.question(question.to_dict()).release(psi=0.5, retry_key=question.to_json()[:200])
        assert (first.stored, again.stored) == (False, True)
        assert again.settled("", False).to_dict() == first.settled("", False).to_dict()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"form": "psidp-question-9"}, "psidp-question-9"),
        ({"form": ""}, "a question must state its form"),
        ({"where": "nothing > 3"}, "column of the table"),
        ({"confidence": 1.5}, "confidence"),
        ({"clipping_share": 0.9}, "clipping_share"),
        ({"asks": []}, "at least one measure"),
        ({"asks": [{"kind": "mean", "column": "nothing", "lower": 0, "upper": 1}]}, "column of the table"),
    ],
)
def test_a_question_from_json_is_checked_as_if_it_were_asked_anew(curator, change, words):
    values = curator.ask(ask.count()).to_dict() | change
    with pytest.raises((ValueError, TypeError), match=words):
        curator.question(values)


def test_every_layout_takes_every_notion_as_its_price(curator):
    notions = [
        {"psi": 0.3}, {"epsilon": 1.0, "delta": 1e-6}, {"auc": 0.6}, {"advantage": 0.2}, {"tpr": 0.2, "fpr": 0.1},
        {"zcdp": 0.05}, {"alpha": 2.0, "rho": 0.1},
    ]  # fmt: skip
    often = {"every": "week", "since": MONDAY, "periods": 4, "arrived": "day", "cap": ask.cap(2)}
    asked = [
        curator.ask(ask.count()),
        curator.cube({"ward": ["A", "B"]}, ["ward"]),
        curator.stream("visits", ask.count(), **often),
    ]
    for notion in notions:
        psi = psidp.Guarantee.gaussian(**notion).psi
        for question in asked:
            assert psi * (1 - 1e-9) <= question.plan(**notion).guarantee.psi <= psi


def test_a_plan_has_the_price_of_the_release_and_shows_the_query_that_runs_first(curator, monkeypatch):
    queries = []
    engine = curator.source.engine
    columns, rows = engine.columns, engine.rows
    monkeypatch.setattr(engine, "columns", lambda sql: queries.append(sql) or columns(sql))
    monkeypatch.setattr(engine, "rows", lambda sql: queries.append(sql) or rows(sql))
    for groups in GROUPS.values():
        for contribution in (2.0, "auto"):
            question = curator.ask(ask.count(), ask.mean("cost", 0, 300), **groups, contribution=contribution)
            plan = question.plan(psi=0.5)
            assert not [sql for sql in queries if "WHERE FALSE" not in sql]
            answer = question.release(psi=0.5)
            first = next(sql for sql in queries if "WHERE FALSE" not in sql)
            assert plan.guarantee == answer.guarantee
            assert first == plan.sql[0]
            queries.clear()


def states(ledger, budget):
    return [entry.state for entry in ledger.entries(budget)]


def empty_and_odd():
    """Tables without rows, without units, and without a value."""
    yield TABLE.slice(0, 0)
    nobody = pa.nulls(len(TABLE), TABLE.schema.field("who").type)
    yield TABLE.set_column(0, TABLE.schema.field("who"), nobody)
    values = pa.array([float("nan"), None, float("inf")] * 9, pa.float64())
    rows = TABLE.slice(0, len(values))
    for name in ("cost", "hours"):
        rows = rows.set_column(rows.schema.names.index(name), pa.field(name, pa.float64()), values)
    yield rows


@pytest.mark.parametrize("grouping", list(GROUPS))
def test_psi_is_spent_only_where_an_answer_is_stored(ledger, grouping):
    """Every measure under every grouping, over contributions, prices, adjacencies and odd tables in turn."""
    ledger.open("replaced", psi=2.0**20, kappa=0.1, unit="who", adjacency="replace-one", purpose="a test")
    groups = GROUPS[grouping]
    tables = [TABLE, *empty_and_odd()]
    contributions, prices = cycle([1.0, "auto", 1000.0, 2.0**20, 3.5]), cycle([0.5, 2.0**-30, 1e4])
    answered = 0
    for i, (name, measure) in enumerate(MEASURES.items()):
        budget = ("survey", "replaced")[i % 2]
        for table in (TABLE, tables[1 + i % 3]):
            curator = Curator(table, "who", ledger=ledger, budget=budget)
            try:
                question = curator.ask(measure, **groups, contribution=next(contributions))
            except ValueError:
                assert (name, grouping) == ("top", "none")
                continue
            before = states(ledger, budget)
            try:
                answer = question.release(psi=next(prices))
            except ValueError:  # a row too few steps of the integer grid, say
                assert states(ledger, budget) == before, (name, grouping)
                continue
            assert states(ledger, budget) == [*before, "spent", "answered"]
            assert answer.summary()
            answered += 1
            curator.dispose()
    assert answered >= 30


ADDITIVE = ["count", "sum", "mean", "variance", "weighted sum", "ratio", "share", "geometric mean"]


def test_a_cube_is_paid_only_where_it_is_stored(ledger):
    """Every measure that a cube can have, over bounds, contributions, prices and odd tables in turn."""
    tables, answered = cycle([TABLE, *empty_and_odd()]), 0
    columns = {"ward": ["A", None], "hours": ask.bins([0, 3, 9]), "month(day)": None}
    contributions, prices = cycle([1.0, "auto", 40.0, 2.0**20, 3.5]), cycle([0.5, 2.0**-30, 100.0])
    for name in ADDITIVE:
        for bound in ("rows", "image", "rows"):
            curator = Curator(next(tables), "who", ledger=ledger, budget="survey")
            terms = {"measures": [ask.count(), MEASURES[name]] if name != "count" else [ask.count()]}
            terms |= {"bound": bound, "contribution": next(contributions)}
            terms["measures"] = [replace(measure, weight=1.0) for measure in terms["measures"]]
            question, before = curator.cube(columns, ask.up_to(2), **terms), states(ledger, "survey")
            try:
                cube = question.release(psi=next(prices))
            except ValueError:
                assert states(ledger, "survey") == before, (name, bound)
                continue
            assert states(ledger, "survey") == [*before, "spent", "answered"]
            assert len(list(cube.table("ward"))) > 0
            answered += 1
    assert answered >= 20


def test_a_stream_that_opens_can_publish_whatever_the_table_holds(tmp_path):
    clock = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
    with psidp.Ledger(tmp_path / "ledger.db", clock=lambda: clock) as ledger:
        ledger.open("survey", psi=2.0**20, unit="who", actor="Ann", purpose="a test")
        often = {"every": "week", "since": MONDAY, "periods": 4, "arrived": "day", "cap": ask.cap(2)}
        contributions, prices = cycle([1.0, 40.0, 2.0**20]), cycle([0.5, 2.0**-20, 1e4])
        opened = 0
        for name in [*ADDITIVE, "units", "histogram", "quantiles", "min"]:
            terms = often | {"contribution": next(contributions), "by": "ward", "groups": ["A", None]}
            psi = next(prices)
            for number, table in enumerate([TABLE, *empty_and_odd()]):
                curator = Curator(table, "who", ledger=ledger, budget="survey")
                before = states(ledger, "survey")
                try:
                    stream = curator.stream(f"{name} {number}", MEASURES[name], **terms).open(psi=psi)
                except ValueError:
                    assert states(ledger, "survey") == before, name
                    break
                assert len({row.period for row in stream.publish()}) == 4
                opened += 1
        assert opened >= 24


def test_a_contribution_that_does_not_fit_is_refused_before_anything_is_chosen(ledger, curator):
    for chosen in (ask.count(contribution="auto"), ask.sum("hours", bounds="auto")):
        for groups in (GROUPS["none"], GROUPS["public"]):
            question = curator.ask(chosen, ask.mean("cost", 0, 300, contribution=2.0**20), **groups)
            with pytest.raises(ValueError, match="contribution of 'mean of cost' is too large for so many groups"):
                question.release(psi=0.5)
    assert states(ledger, "survey") == ["opened"]


def test_a_contribution_is_lowered_where_chosen_bins_are_many(curator):
    answer = curator.ask(ask.histogram("hours", "auto"), contribution=2.0**20).release(psi=1e4)
    (most,) = (note.values["at_most"] for note in answer.notes if note.kind == "contribution")
    assert 2.0**10 < most < 2.0**20


def test_a_contribution_is_lowered_where_private_keys_are_many_and_never_refused_after_they_are_paid():
    rows = pa.table({"u": [i % 3000 for i in range(30_000)], "k": [i % 10 for i in range(30_000)]})
    terms = {"by": "k", "groups": PrivateGroups(1e-9, 10, 3.0), "psi": 50.0, "contribution": 2.0**20}
    answer = released(Curator(rows, "u"), ask.count(), **terms)
    assert len(answer.rows) == 10
    assert "one u adds at most 3.707e+05 rows' worth" in str(answer.notes[1])  # 2^18.5 of the 2^20 that were asked for


def test_equal_decimals_are_released_in_one_spelling(postgres):
    """PostgreSQL shows the spelling of a row it met, which is one unit's; exact and not noised."""
    postgres.execute("create table spelled (u bigint, k numeric)")
    rows = [(n, Decimal("1." + "0" * (1 + n % 9))) for n in range(60)]
    rows += [(n, Decimal("2.50")) for n in range(60, 120)]
    postgres.cursor().executemany("insert into spelled values (%s, %s)", rows)
    curator = Curator(postgres, "u", name="spelled")
    answer = released(curator, ask.units(), by="k", groups=PrivateGroups(1e-9, 2), psi=1e6, clipping_share=0.0)
    assert [str(row["k"]) for row in answer] == ["1", "2.5"]


def test_shares_are_those_of_the_rows_in_every_cell_of_a_cube():
    frame = TABLE.to_pandas()
    columns = {"ward": ["A", "B"], "night": [True, False]}
    cube = Curator(TABLE, None).cube(columns, ask.up_to(2), measures=[ask.share("cost > 80")]).release(psi=1000.0)
    for row in cube.table("ward", "night"):
        rows = frame[(frame.ward == row["ward"]) & (frame.night == row["night"])]
        assert row["value"] == pytest.approx((rows.cost > 80).mean(), abs=0.01)
