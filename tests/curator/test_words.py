"""Questions and answers in words: conditions on every kind of column, summaries that say what was asked and done."""

import datetime
import json
from decimal import Decimal

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from psidp import Curator, PrivateGroups, ask

NEVER = 1e6


@pytest.fixture
def curator():
    rows = {"patient": [1, 1, 2, 3], "age": [50, 51, 52, 20], "cost": [1.0, 2.0, 3.0, 4.0]}
    return Curator(pa.table(rows), "patient")


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("n < 1.5", 1),
        ("n <= 99999999999999999999", 3),
        ("price > 1.25", 2),
        ("price = 2", 1),
        ("day >= 2026-01-02", 2),
        ("at > 2026-01-01T13:00+02:00", 2),
        ("at > 2026-01-01T11:00", 2),
        (ibis._.price > 1.25, 2),
        (ibis._.day.between("2026-01-02", "2026-01-03"), 2),
        (ibis._.ward.lower().isin(["a", "b", None]) & ~(ibis._.n == 1), 1),
        (lambda t: t.ward.fill_null("c") == "c", 1),
        (lambda t: t.made > 1.0, 2),
    ],
)
def test_where_compares_every_kind_of_column(where, left):
    days = [datetime.date(2026, 1, day) for day in (1, 2, 3)]
    rows = pa.table(
        {
            "n": [1, 2, 3],
            "price": [Decimal("1.25"), Decimal("1.50"), Decimal("2.00")],
            "day": days,
            "at": pa.array([datetime.datetime(2026, 1, 1, hour) for hour in (11, 12, 13)], pa.timestamp("us", "UTC")),
            "ward": ["A", "b", None],
        }
    )
    table = ibis.memtable(rows)
    curator = Curator(table.mutate(made=table.n / 1), None)
    assert round(curator.release(ask.count(), psi=NEVER, where=where).value("count")) == left


@pytest.mark.parametrize(
    "term",
    [
        {"where": "ns < 9999-12-31"},
        {"where": ibis._.ns < datetime.datetime(9999, 12, 31)},
        {"where": ibis._.ns < "9999-12-31"},
        {"where": "fine < 5000"},
        {"where": ibis._.fine < 5000},
        {"where": ibis._.fine < 5000.5},
        {"where": "wide > 1.5"},
        {"where": ibis._.wide > 1.5},
        {"where": "natural > -1"},
        {"where": ibis._.natural.isin([-1, 1])},
        {"by": "fine", "groups": [Decimal(5000)]},
        {"by": "fine", "groups": [Decimal("9." + 38 * "9")]},
        {"by": "wide", "groups": [Decimal("NaN")]},
    ],
    ids=str,
)
def test_whether_a_unit_is_there_decides_no_failure(term):
    """Constants that no cast can read, and columns that would be cast too far, behind a condition that finds unit 7 or
    nobody: answered or refused, but the same for both."""
    connection = ibis.duckdb.connect()
    connection.raw_sql(
        "create table visits as select 7 as who, timestamp_ns '2026-01-01 00:00:00' as ns, 1.5::decimal(38, 37) fine, "
        "170141183460469231731687303715884105727::hugeint as wide, 1::ubigint as natural"
    )
    curator = Curator(connection.table("visits"), "who")
    outcomes = []
    for who in ("who = 7", "who = 8"):
        try:
            curator.release(ask.count(), psi=1.0, **term | {"where": [who, term["where"]] if "where" in term else who})
            outcomes.append("answered")
        except (ValueError, TypeError) as refusal:
            outcomes.append(str(refusal))
    assert outcomes[0] == outcomes[1]


def test_summaries_say_which_rows_and_what_one_row_means(curator):
    rows = ["age >= 50", lambda t: t.age.isin([50, 51]) & (t.cost > 1)]
    text = curator.release(ask.count(), ask.histogram("cost", [1e6, 1e6 + 1, 2e6]), psi=0.25, where=rows).summary()
    assert """Asked: count, histogram of cost where age >= 50 and "age" IN (50, 51) AND ("cost" > 1).""" in text
    assert "at most one row's worth" in text
    assert "four rows of one patient in one group count as one row" in text
    assert "No ledger keeps count" in text
    assert "four rows" not in curator.release(ask.count(), psi=0.25, contribution=4).summary()


@pytest.mark.parametrize(
    ("asked", "known", "form", "of"),
    [
        (ask.mean("cost", bounds="auto"), ask.mean("cost", 0, 100), "a mean over 10,000 rows is off by about {}; ", 2),
        (
            ask.deviation("cost", bounds="auto"),
            ask.deviation("cost", 0, 100),
            "over 10,000 rows is off by about {}; ",
            2,
        ),
        (ask.variance("cost", bounds="auto"), ask.variance("cost", 0, 100), "over 10,000 rows is off by about {}; ", 2),
        (
            ask.sum("cost", bounds="auto"),
            ask.sum("cost", 0, 100),
            "from 0 to 100{also} a sum is off by about {}; ",
            None,
        ),
        (
            ask.histogram("cost", "auto"),
            ask.histogram("cost", range(9)),
            "standard error of a bin's count is {}.",
            None,
        ),
        (ask.median("cost", "auto"), ask.median("cost", range(33)), "a median's rank is off by {} or so", "ranks"),
    ],
)
@pytest.mark.parametrize("contribution", [3, "auto"])
def test_a_plan_with_bounds_to_be_chosen_has_an_example_that_comes_true(curator, asked, known, form, of, contribution):
    """The example's number is what the plan says once bounds 100 apart, 32 bins or a contribution of 64 are given."""
    (plan,) = curator.plan(asked, psi=200.0, contribution=contribution).expected
    (given,) = curator.plan(known, psi=200.0, contribution=64 if contribution == "auto" else contribution).expected
    error = given.by_rows[2][1] if of == 2 else given.ranks if of == "ranks" else given.standard_error
    error *= given.psi / plan.psi
    also = " and a contribution of 64" if contribution == "auto" else ""
    said = [form.format(f"{float(f'{error:.{digits}g}'):,.15g}", also=also) for digits in (2, 3)]
    assert any(words in plan.sentence() for words in said), plan.sentence()
    assert ("contribution of 64" in plan.sentence()) is (contribution == "auto")
    assert "e+" not in plan.sentence()


def test_bins_have_names_of_their_own(curator):
    edges = [0.1, 1000000, 1000001, 1000002.5]
    names = [row["statistic"] for row in curator.release(ask.histogram("cost", edges), psi=0.25)]
    assert [name.partition(": ")[2] for name in names] == [
        "[0.1, 1000000)",
        "[1000000, 1000001)",
        "[1000001, 1000002.5]",
    ]


def test_numbers_and_keys_may_be_numpys_arrows_and_ibis(curator):
    asks = [ask.sum("cost", np.float32(0), np.int64(5), weight=np.int64(2)), ask.quantiles("age", np.arange(9), at=0.5)]
    json.dumps([a.to_dict() for a in asks])
    assert curator.release(*asks, psi=NEVER, contribution=np.int64(4)).value("sum of cost") == pytest.approx(
        10.0, abs=0.1
    )
    for keys in (np.array([50, 20]), pa.array([50, 20]), ibis.memtable({"age": [50, 20]}).age, pd.Index([50, 20])):
        answer = curator.release(ask.count(), by="age", groups=keys, psi=NEVER, contribution=4)
        assert sorted((row["age"], round(row["value"])) for row in answer) == [(20, 1), (50, 1)]
    assert curator.release(ask.count(), by=None, psi=1.0).by == ()


def test_an_answer_without_keys_says_why(curator):
    answer = curator.release(ask.count(), by="age", groups=PrivateGroups(kappa=1e-9, at_most=3), psi=0.1)
    assert list(answer) == []
    assert "noisy number of patients exceeds" in answer.summary()
    assert "No group came through." in answer.summary()
    with pytest.raises(KeyError, match="each with a key of age"):
        curator.release(ask.count(), by="age", groups=[50], psi=0.1).value("count")


def test_a_value_has_its_key_in_parts_or_as_a_tuple(curator):
    answer = curator.release(ask.count(), by="age", groups=[50], psi=0.1)
    assert answer.value("count", 50) == answer.value("count", (50,))
    with pytest.raises(KeyError, match="no 'count' for 50, 20; there are 'count', each with a key of age"):
        answer.value("count", (50, 20))


def test_a_condition_is_stated_as_it_is_whatever_text_is_in_it():
    table = ibis.memtable({"g": ["a  b", '"t0".x', "c"], "n": [1, 2, 3]})
    curator = Curator(table, None)
    conditions = [
        (ibis._.g == "a  b", "\"g\" = 'a  b'"),
        (ibis._.g == '"t0".x', '"g" = \'"t0".x\''),
        (ibis._.g == "x AS y FROM z", "\"g\" = 'x AS y FROM z'"),
        (["n = 1 or n = 2", "g = 'c'"], "(n = 1 or n = 2) and g = 'c'"),
        (["n = 1 or n = 2"], "n = 1 or n = 2"),
        ([["n = 1 or n = 2"], "g = 'c'"], "(n = 1 or n = 2) and g = 'c'"),
        ([(ibis._.n == 1) | (ibis._.n == 2), "n > 1 and n < 3"], '(("n" = 1) OR ("n" = 2)) and n > 1 and n < 3'),
    ]
    for where, words in conditions:
        assert f"Asked: count where {words}." in curator.release(ask.count(), psi=1.0, where=where).summary()
