"""Units of several columns: a row belongs to the pair of its values, on every engine, in every kind of release."""

import datetime
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psidp as package
from psidp import Curator, PrivateGroups, ask
from psidp.errors import MismatchError
from released import released

PAIR = ("carrier", "day")
SURE = 2.0**20
"""A psi with so little noise that answers are exact."""


def rows(n=240):
    """Rows whose pairs collide where their texts are only put beside each other, some without a part of their unit."""
    random, found = Random(7), []
    for _ in range(n):
        carrier = random.choice(["a", "a|", "a|b", "1", "11", "", None])
        day = random.choice(["|b", "b", "1", "11", "", "a", None])
        ward, cost = random.choice("AB"), float(random.randrange(1, 9))
        arrived = datetime.date(2026, 1, 5) + datetime.timedelta(days=random.randrange(28))
        found.append({"carrier": carrier, "day": day, "ward": ward, "cost": cost, "arrived": arrived})
    return found


def whole(table):
    """The same rows with one column whose values are the pairs, told apart beforehand."""
    numbers = {}
    for row in table:
        key = row["carrier"], row["day"]
        row["pair"] = None if None in key else numbers.setdefault(key, len(numbers))
    return table


ROWS = whole(rows())


NAMES = "carrier text, day text, ward text, cost double precision, arrived date, pair bigint"


@pytest.fixture(params=["duckdb", "postgres", "spark"])
def table(request):
    """The rows on an engine, and their name there."""
    if request.param == "duckdb":
        return {"table": pa.Table.from_pylist(ROWS)}
    connection = request.getfixturevalue(request.param)
    values = [tuple(row.values()) for row in ROWS]
    if request.param == "postgres":
        connection.execute(f"DROP TABLE IF EXISTS pairs; CREATE TABLE pairs ({NAMES})")
        connection.cursor().executemany("INSERT INTO pairs VALUES (%s, %s, %s, %s, %s, %s)", values)
    else:
        names = NAMES.replace("text", "string").replace("double precision", "double")
        connection.createDataFrame(values, names).createOrReplaceTempView("pairs")
    return {"table": connection, "name": "pairs"}


def numbers(answer):
    """Each number of an answer, with so little noise that it is exact."""
    return [(key, e.statistic, round(e.value, 1)) for key, e in answer.rows]


def test_a_pair_of_columns_is_the_unit_that_one_column_of_the_pairs_is(table):
    pair, one = Curator(unit=PAIR, **table), Curator(unit="pair", **table)
    measures = [
        ask.count(),
        ask.units(),
        ask.sum("cost", 0, 10),
        ask.distinct("arrived", 2),
        ask.histogram("cost", [0, 4, 9]),
    ]
    public = {"by": "ward", "groups": ["A", "B"]}
    private = {"by": "ward", "groups": PrivateGroups(kappa=1e-9, at_most=1)}
    for terms in ({}, public, private, {**public, "contribution": "auto"}):
        answers = [numbers(released(curator, *measures, psi=SURE, **terms)) for curator in (pair, one)]
        assert answers[0] == answers[1]
    units = {(row["carrier"], row["day"]) for row in ROWS if None not in (row["carrier"], row["day"])}
    assert round(released(pair, ask.units(), psi=SURE).value("units")) == len(units), "a row without a part has no unit"
    for bound in ("rows", "image"):
        terms = {"measures": measures[:1], "bound": bound, "contribution": 2}
        questions = [curator.cube({"ward": ["A", "B"]}, ask.up_to(1), **terms) for curator in (pair, one)]
        cubes = [question.release(psi=2**10) for question in questions]
        values = [[round(e.value) for _, e in cube.table("ward").rows] for cube in cubes]
        assert values[0] == values[1]


def test_a_stream_of_pairs_counts_what_one_column_of_the_pairs_counts(table, tmp_path):
    published = []
    for name, unit in (("pair", PAIR), ("one", "pair")):
        clock = lambda: datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)  # noqa: E731
        ledger = package.Ledger(tmp_path / f"{name}.db", clock=clock)
        ledger.open("b", psi=2.0**21, unit="pair", purpose="a test")
        terms = {"every": "week", "since": "2026-01-05", "periods": 4, "arrived": "arrived"}
        for cap in (ask.cap(2), ask.cap(apart=2), ask.cap(each=2)):
            curator = Curator(unit=unit, ledger=ledger, budget="b", **table)
            stream = curator.stream(f"{name} {cap}", ask.count(), ask.units(), cap=cap, **terms).open(psi=SURE)
            published.append((name, [round(row.value) for row in stream.publish()]))
    assert [rows for name, rows in published if name == "pair"] == [rows for name, rows in published if name == "one"]


def test_the_ledger_keeps_the_columns_whatever_their_order(tmp_path):
    ledger = package.Ledger(tmp_path / "ledger.db")
    ledger.open("b", psi=10.0, unit="pair", purpose="a test")
    table = pa.Table.from_pylist(ROWS)
    released(Curator(table, PAIR, ledger=ledger, budget="b"), ask.count(), psi=1.0, retry_key="k")
    event = next(entry for entry in ledger.entries() if entry.state == "spent").details()
    assert (event["unit_column"], event["table_unit"]) == (["carrier", "day"], "carrier and day")
    again = released(Curator(table, PAIR[::-1], ledger=ledger, budget="b"), ask.count(), psi=1.0, retry_key="k")
    assert again.stored
    for other in ("carrier", "pair", ("carrier", "ward"), None):
        with pytest.raises(MismatchError, match="must be"):
            Curator(table, other, ledger=ledger, budget="b")
    assert ledger.verify()


def test_words_name_all_columns_and_refusals_look_at_each():
    table = pa.Table.from_pylist(ROWS)
    curator = Curator(table, PAIR)
    assert curator.protects == "carrier and day"
    notes = released(curator, ask.count(), psi=1.0).notes
    assert any("'carrier' or 'day' is missing" in note.text for note in notes)
    assert Curator(table, ["carrier"]).unit == "carrier"
    for wrong, kind in (((), TypeError), (("carrier", "carrier"), TypeError), (("carrier", 1), TypeError),
                        (("carrier", "nothing"), ValueError), (("carrier", "cost"), TypeError)):  # fmt: skip
        with pytest.raises(kind, match="unit"):
            Curator(table, wrong)
    wards = {"by": ["carrier"], "groups": ["a"], "psi": 1.0}
    assert released(curator, ask.count(), **wards).by == ("carrier",), "a part of the unit makes groups of many units"
    with pytest.raises(ValueError, match="every group would be one unit"):
        curator.ask(ask.count(), by=["day", "carrier"], groups=[("b", "a")])


def test_the_command_line_takes_several_unit_columns_in_every_command(tmp_path, psidp):
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    ledger = package.Ledger(tmp_path / "ledger.db")
    ledger.open("b", psi=100.0, unit="pair", purpose="a test")
    paid = ["--ledger", tmp_path / "ledger.db", "--budget", "b", "--psi", 1]
    often = ["--every", "week", "--since", "2026-01-05", "--periods", 4, "--arrived", "arrived", "--at-most", 1]
    for words in (
        ["release", "table", tmp_path / "rows.parquet", "--units"],
        ["release", "cube", tmp_path / "rows.parquet", "--column", "ward:A,B"],
        ["stream", "open", tmp_path / "rows.parquet", "--name", "s", "--count", *often],
    ):
        code, _, err = psidp(*words, "--unit-column", "carrier", "--unit-column", "day", *paid)
        assert code == 0, err
    events = [entry.details() for entry in ledger.entries() if entry.state == "spent"]
    assert [event["table_unit"] for event in events] == ["carrier and day"] * 3
    code, out, _ = psidp("ledger", "show", tmp_path / "ledger.db", "b")
    assert code == 0
    assert "columns carrier and day name each pair" in out
