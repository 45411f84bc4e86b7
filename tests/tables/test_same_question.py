"""Two questions are one only where they mean the same: names that meet, digests of releases, names of streams."""

import datetime

import pyarrow as pa
import pytest

from psidp import Curator, Ledger, ask
from psidp.errors import KeyConflictError

START = datetime.date(2026, 1, 5)
ROWS = pa.table({
    "p": list(range(40)), "zip": ["123", "124", "223", "193"] * 10, "w": ["A", "B", "C", "A"] * 10,
    "d": [START] * 40, "v": [1.0, 1.2, 3.0, 0.0] * 10,
})  # fmt: skip
NORTH = {"w": ["A", "B"], "region": ["north", "south"]}
SOUTH = {"w": ["A", "B"], "region": ["south", "north"]}


@pytest.fixture
def book(tmp_path):
    clock = lambda: datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)  # noqa: E731
    with Ledger(tmp_path / "ledger.db", clock=clock) as made:
        made.open("survey", psi=9.0, unit="patient", actor="Ann", purpose="a test")
        yield made


@pytest.fixture
def curator(book):
    return Curator(ROWS, "p", ledger=book, budget="survey")


def exact(question):
    priced = question.at(1.0)
    return [next(iter(tables.values())) for tables in priced.totals.exact(priced.source, priced.dialect).cells]


@pytest.mark.parametrize("by", ["left(zip, 2) as ZIP", ["left(zip, 2) as a", "left(zip, 1) as A"]])
def test_a_derived_column_has_a_name_that_differs_by_more_than_case(by):
    """DuckDB and Spark would take the table's own column, or the first of the two."""
    with pytest.raises(ValueError, match="name that no other has"):
        Curator(ROWS, "p").ask(ask.count(), by=by, groups=["12"])


def test_a_public_column_has_a_name_that_differs_by_more_than_case():
    with pytest.raises(ValueError, match="must not have a column that the table has"):
        Curator(ROWS, "p").join({"w": ["A"], "V": [2.0]}, on="w")


def test_groups_and_measures_cannot_give_one_name_to_two_columns():
    """The measure's column would be what makes the groups."""
    curator = Curator(ROWS, "p")
    with pytest.raises(ValueError, match="name that no other has"):
        curator.ask(ask.count(), ask.distinct("left(zip, 1) as x", 2), by="left(zip, 2) as x", groups=["12"])
    with pytest.raises(ValueError, match="name that no other has"):
        curator.cube({"year(d) as x": [2026]}, ["x"], measures=[ask.sum("month(d) as x", 0, 12)])
    with pytest.raises(ValueError, match="different names"):
        curator.cube({"month(d)": None, " month(d)": None}, ask.up_to(2))


@pytest.mark.parametrize("second", ["month( d) as x", "month(d)  as x"])
def test_a_measure_that_is_written_in_two_ways_is_asked_once(second):
    """What is found for a measure goes by its name: noise for one contribution would lie on totals of another."""
    first, second = ask.sum("month(d) as x", bounds="auto"), ask.sum(second, bounds="auto", contribution=1000)
    curator = Curator(ROWS, "p")
    with pytest.raises(ValueError, match="ask for different things"):
        curator.ask(first, second)
    with pytest.raises(ValueError, match="ask for different things"):
        curator.cube({"w": ["A"]}, ["w"], measures=[ask.sum("month(d)", 0, 12), ask.sum(" month(d)", 0, 12)])


def test_a_condition_may_begin_as_a_derived_column_does():
    """ "v > 1" makes a column of the share, which is no part of "v > 1.5"."""
    curator = Curator(ROWS, "p")
    question = curator.ask(ask.share("v > 1"), where="v > 1.1 and v>1")
    assert question.where.text == "v > 1.1 and v > 1"
    assert exact(question)[0].tolist() == exact(curator.ask(ask.share("v > 1"), where="v in (1.2, 3)"))[0].tolist()
    assert curator.question(question.to_dict()) == question
    late = curator.ask(ask.count(), by="v > 1 as late", where="late", groups=[True, False])
    assert late.where.text == "late"
    assert exact(late)[0].argmin() == 1


def test_a_cube_of_a_named_derived_column_is_the_same_after_json(curator):
    cube = curator.cube({"month(d) as m": None, "w": ["A", "B"]}, ask.up_to(2))
    assert curator.question(cube.to_dict()) == cube


def test_a_key_tells_public_tables_apart_by_what_they_say(curator):
    def released(public):
        question = curator.join(public, on="w").ask(ask.count(), by="region", groups=["north", "south"])
        return question.release(psi=1.0, retry_key="regions")

    first = released(NORTH)
    assert released({name: values[::-1] for name, values in NORTH.items()}).rows == first.rows  # in another order
    with pytest.raises(KeyConflictError):
        released(SOUTH)


def test_a_key_tells_missing_words_apart(book, tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("p,w\n1,A\n2,NA\n3,none\n")

    def released(missing):
        question = Curator(path, "p", missing=missing, ledger=book, budget="survey").ask(
            ask.count(), by="w", groups=["A", None]
        )
        return question.release(psi=1.0, retry_key="words")

    first = released(["NA", "none"])
    assert released(("none", "NA")).rows == first.rows
    for missing in (None, "NA"):
        with pytest.raises(KeyConflictError):
            released(missing)


def test_a_stream_opens_again_only_for_the_same_columns(curator):
    """A name in `by` says nothing of what it stands for."""

    def opened(name, by, public):
        joined = curator.join(public, on="w")
        terms = {"every": "week", "since": START, "periods": 4, "arrived": "d", "cap": ask.cap(2)}
        return joined.stream(name, ask.count(), by=by, groups=["12", "north"], **terms).open(psi=0.5)

    opened("zips", "left(zip, 2) as x", NORTH)
    opened("zips", "left(zip,2) as x", NORTH)
    with pytest.raises(KeyConflictError, match="derived was"):
        opened("zips", "left(zip, 1) as x", NORTH)
    opened("regions", "region", NORTH)
    with pytest.raises(KeyConflictError, match="joined was"):
        opened("regions", "region", SOUTH)
