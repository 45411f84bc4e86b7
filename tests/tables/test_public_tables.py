"""Public tables: a key that is unique there gives every row one value, on every engine, and no row is doubled."""

import datetime
import random
from collections import Counter

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from psidp import Curator, ask
from released import released

COLUMNS = {
    "duckdb": "who bigint, ward varchar, floor bigint, day date, x double",
    "postgres": "who bigint, ward text, floor bigint, day date, x double precision",
    "spark": "who bigint, ward string, floor bigint, day date, x double",
}
WARDS = ["A", "a", "it's \\ %", "", "Z", None]
REGIONS = {"ward": ["A", "it's \\ %", "", "nobody"], "region": ["north", "south", None, "west"], "beds": [10, 20, 5, 7]}


def rows_at_random():
    dice, day = random.Random(5), datetime.date(2026, 1, 1)
    return [(i // 4, dice.choice(WARDS), dice.choice([None, 1, 2, 3]), day, float(i % 7)) for i in range(400)]


ROWS = rows_at_random()


@pytest.fixture(scope="module", params=list(COLUMNS))
def connection(request):
    """The rows on each engine, as the table `looked`."""
    if request.param == "spark":
        session = request.getfixturevalue("spark")
        session.createDataFrame(ROWS, COLUMNS["spark"]).createOrReplaceTempView("looked")
        return session
    made = request.getfixturevalue("postgres") if request.param == "postgres" else duckdb.connect()
    mark = "%s" if request.param == "postgres" else "?"
    with made.cursor() as cursor:
        cursor.execute(f"create table looked ({COLUMNS[request.param]})")
        cursor.executemany(f"insert into looked values ({', '.join([mark] * 5)})", ROWS)
    return made


@pytest.fixture
def curator(connection):
    """A curator of the rows."""
    return Curator(connection, "who", name="looked")


def region(row):
    """The region of a row's ward, in Python."""
    return dict(zip(REGIONS["ward"], REGIONS["region"], strict=True)).get(row[1])


def test_a_public_column_has_the_totals_of_a_column_that_holds_it(curator):
    """Integers, to the last unit: by group, in a condition and as a value."""
    beds = dict(zip(REGIONS["ward"], REGIONS["beds"], strict=True))
    plain = pa.table({
        "who": [row[0] for row in ROWS], "x": [row[4] for row in ROWS], "region": [region(row) for row in ROWS],
        "beds": pa.array([beds.get(row[1]) for row in ROWS], pa.int64()),
    })  # fmt: skip
    found = []
    for one in (curator.join(REGIONS, on="ward"), Curator(plain, "who")):
        asked = one.ask(
            ask.count(), ask.mean("beds", 0, 30), by="region", groups=["north", "south", "west", None],
            where="x > 1 and (beds <= 10 or beds is null)", contribution=1.5,
        ).at(1.0)  # fmt: skip
        exact = asked.totals.exact(asked.source, asked.dialect)
        found.append([next(iter(tables.values())).tolist() for tables in exact.cells])
    assert found[0] == found[1]


def test_rows_without_a_match_are_null_and_groups_come_from_the_public_table(curator):
    curator = curator.join(REGIONS, on="ward", columns=["region"])
    assert "beds" not in curator.source.schema
    answer = released(curator, ask.count(), by="region", contribution=9)
    truth = Counter(map(region, ROWS))
    assert [(row["region"], round(row["value"])) for row in answer] == [
        (r, truth[r]) for r in ("north", "south", "west")
    ]
    missing = released(curator, ask.count(), where="region is null", contribution=9)
    assert round(missing.value("count")) == truth[None]
    both = released(curator, ask.count(), by=["region", "floor"], groups={"floor": [1, 2, 3]}, contribution=9)
    pairs = Counter((region(row), row[2]) for row in ROWS)
    assert all(round(row["value"]) == pairs[row["region"], row["floor"]] for row in both)
    assert len(both.rows) == 9


def test_a_second_public_table_goes_on_from_the_first(curator):
    country = {"region": ["north", "south"], "country": ["N", "S"]}
    floors = {"floor": [1, 2], "high": [False, True]}
    curator = curator.join(REGIONS, on="ward").join(country, on="region").join(floors, on="floor")
    found = released(curator, ask.count(), by=["country", "high"], contribution=9)
    truth = Counter(({"north": "N", "south": "S"}.get(region(row)), {1: False, 2: True}.get(row[2])) for row in ROWS)
    assert {(row["country"], row["high"]): round(row["value"]) for row in found} == {
        (c, h): truth[c, h] for c in "NS" for h in (False, True)
    }


def test_a_public_table_may_be_a_frame_or_a_file(tmp_path):
    rows = {"who": range(60), "ward": ["A", "B", "C"] * 20, "floor": [1, 2, 3] * 20}
    pq.write_table(pa.table({"ward": ["A", "B"], "region": ["n", "s"]}), tmp_path / "wards.parquet")
    (tmp_path / "wards.csv").write_text("ward,region,beds,code\nA,n,10,007\nB,s,20.5,010\n")
    frame = pd.DataFrame({"ward": ["A", "B"], "region": ["n", "s"]})
    forms = [
        frame,
        pa.Table.from_pandas(frame),
        tmp_path / "wards.parquet",
        tmp_path / "wards.csv",
    ]
    for public in forms:
        answer = released(Curator(pa.table(rows), "who").join(public, on="ward"), ask.count(), by="region")
        assert [(row["region"], round(row["value"])) for row in answer] == [("n", 20), ("s", 20)]
    typed = Curator(pa.table(rows), "who").join(tmp_path / "wards.csv", on="ward").source.schema
    assert (str(typed["beds"]), str(typed["code"])) == ("DOUBLE", "VARCHAR")
    (tmp_path / "v.csv").write_text("who,ward,floor\n" + "".join(f"{i},{'ABC'[i % 3]},{i % 3}\n" for i in range(60)))
    for public, on in ((tmp_path / "wards.csv", "ward"), ({"floor": [0, 1], "region": ["n", "s"]}, "floor")):
        answer = released(Curator(tmp_path / "v.csv", "who").join(public, on=on), ask.count(), by="region")
        assert [(row["region"], round(row["value"])) for row in answer] == [("n", 20), ("s", 20)]


@pytest.mark.parametrize(
    ("public", "terms", "words"),
    [
        ({"ward": ["A", "A"], "region": ["n", "s"]}, {}, "each key of 'ward' once, got 'A' twice"),
        ({"ward": ["A", None], "region": ["n", "s"]}, {}, "a key in every row"),
        ({"ward": [], "region": []}, {}, "1 to 20,000 rows"),
        ({"ward": ["A"], "who": [1]}, {}, "must not have a column that the table has"),
        ({"ward": ["A"]}, {}, "a column besides 'ward'"),
        ({"ward": ["A"], "region": ["n"]}, {"columns": ["beds"]}, "columns must be of the public table"),
        ({"ward": ["A"], "region": ["n"]}, {"on": "wing"}, "on must be a column"),
        ({"ward": [1], "region": ["n"]}, {}, "can be compared with"),
        ({"x": [1.0], "region": ["n"]}, {"on": "x"}, "can be compared with"),
        ({"ward": ["A", "B"], "region": ["n", 1]}, {}, "all of one kind"),
        ({"ward": ["A", "B"], "region": [None, None]}, {}, "1 to 1,000 different values"),
        (
            {"ward": list(map(str, range(1001))), "region": list(map(str, range(1001)))},
            {},
            "1 to 1,000 different values",
        ),
        ({"ward": ["A", "B"], "region": ["n"]}, {}, "columns of one length"),
        ("nothing.csv", {}, "file that exists"),
        (7, {}, "a frame or a file, got int"),
    ],
    ids=str,
)
def test_what_is_no_public_table_is_refused(public, terms, words):
    curator = Curator(pa.table({"who": [1], "ward": ["A"], "x": [1.0]}), "who")
    with pytest.raises((ValueError, TypeError), match=words):
        curator.join(public, **({"on": "ward"} | terms))


def test_a_public_table_is_not_the_private_one_and_is_part_of_the_question():
    rows = pd.DataFrame({"who": [1, 2], "ward": ["A", "B"], "kind": ["x", "y"]})
    with pytest.raises(ValueError, match="must not come from the table itself"):
        Curator(rows, "who").join(rows[["ward", "kind"]], on="ward")
    curator = Curator(pa.table({"who": [1, 2], "ward": ["A", "B"]}), "who")
    asked = [
        curator.join({"ward": ["A", "B"], "region": regions}, on="ward").ask(ask.count(), by="region").to_dict()
        for regions in (["n", "s"], ["s", "n"])
    ]
    assert asked[0] != asked[1]


def test_keys_of_a_public_table_are_compared_as_the_column_holds_them():
    """A frame has fractions for whole numbers and instants for days; a key that the column cannot hold meets no row."""
    rows = pa.table({
        "who": range(4), "floor": pa.array([1, 2, 3, None], pa.int8()),
        "day": [datetime.date(2026, 1, d) for d in (1, 2, 3, 4)],
    })  # fmt: skip
    days = pd.DataFrame({"day": pd.to_datetime(["2026-01-01 00:00", "2026-01-02 05:00"]), "kind": ["a", "b"]})
    for public, on, found in (
        ({"floor": [1.0, 2.5, 300.0], "kind": ["a", "b", "b"]}, "floor", {"a": 1, "b": 0}),
        (days, "day", {"a": 1, "b": 0}),
        ({"day": ["2026-01-01", "2026-01-02"], "kind": ["a", "b"]}, "day", {"a": 1, "b": 1}),
    ):
        answer = released(Curator(rows, "who").join(public, on=on), ask.count(), by="kind")
        assert {row["kind"]: round(row["value"]) for row in answer} == found
