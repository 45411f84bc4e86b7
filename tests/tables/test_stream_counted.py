"""What a stream says of its numbers: what counts, what does not, and a flag where that is not everything."""

import datetime

import pyarrow as pa
import pytest

from psidp import Curator, Ledger, ask

SINCE, UNITS, WEEKS, EACH_WEEK = datetime.date(2026, 1, 5), 2_000, 6, 3
TERMS = {"every": "week", "since": SINCE, "periods": WEEKS, "arrived": "a"}
NOT_MEASURED = "How much this takes away is not measured, and no interval holds it."


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    """Units that come three times in each of six weeks."""
    rows = [
        (u, SINCE + datetime.timedelta(7 * w)) for u in range(UNITS) for w in range(WEEKS) for _ in range(EACH_WEEK)
    ]
    table = pa.table({"u": [u for u, _ in rows], "g": ["x"] * len(rows), "a": [a for _, a in rows]})
    with Ledger(tmp_path_factory.mktemp("counted") / "ledger.db") as ledger:
        ledger.open("survey", psi=100.0, unit="aircraft", actor="Ann", purpose="a test")
        yield Curator(table, unit="u", ledger=ledger, budget="survey")


@pytest.mark.parametrize(
    ("cap", "words"),
    [
        ({"at_most": 1}, "counts in the first week in which it has a row, with"),
        ({"at_most": 4}, "counts in the first 4 weeks in which it has a row, with"),
        ({"at_most": 6}, "counts in every week, with"),
        ({"each": 1}, "counts in every week, with"),
        ({"apart": 2}, "counts in weeks before which it had no row for 1 week, with"),
        ({"apart": 4, "at_most": 2}, "counts in weeks before which it had no row for 3 weeks, 2 at most, with"),
        ({"each": 3}, "counts in its first week of each 3 weeks, with"),
        ({"each": "month"}, "counts in its first week of each of 2 buckets, with"),
        ({"each": 3, "at_most": 1}, "counts in its first week of each 3 weeks, 1 at most, with"),
    ],
)
def test_every_cap_is_said_in_words_before_anything_is_spent(curator, cap, words):
    said = str(curator.stream("a plan", ask.count(contribution=8), **TERMS, cap=ask.cap(**cap)).plan(psi=5.0))
    assert f"Numbers are of what counts, not of all rows: one aircraft {words} at most 8 rows' worth" in said
    assert "Everything beyond that, and rows without 'u', are in no number." in said
    assert NOT_MEASURED in said
    assert ("is not counted again: numbers fall from week to week" in said) is (cap.get("at_most", WEEKS) < WEEKS)


def test_contributions_that_differ_are_said_one_by_one(curator):
    asks = ask.count(contribution=2), ask.units()
    made = curator.stream("two", *asks, **TERMS, by="g", groups=["x", "y"], cap=ask.cap(6)).priced(5.0)
    assert "with at most these rows' worth (L2 norm, over all groups: 2 of count, 1 of units) in each." in made.counted


@pytest.mark.parametrize(
    ("question", "cap", "counts", "flag"),
    [
        (ask.count(contribution=3), {"at_most": 2}, [6000, 6000, 0, 0, 0, 0], "capped"),
        (ask.count(), {"at_most": 6}, [2000] * 6, "capped"),
        (ask.units(), {"each": 3}, [2000, 0, 0, 2000, 0, 0], "capped"),
        (ask.units(), {"at_most": 6}, [2000] * 6, ""),
    ],
)
def test_numbers_are_those_of_what_counts_and_are_flagged_where_that_is_not_everything(
    curator, question, cap, counts, flag
):
    """Eight standard errors: one false alarm in 1e15."""
    made = curator.stream(f"{question.name} {cap}", question, **TERMS, cap=ask.cap(**cap)).open(psi=5.0)
    rows = made.publish()
    assert all(abs(row.value - n) < 8 * row.standard_error for row, n in zip(rows, counts, strict=True))
    everything = UNITS * (EACH_WEEK if question.name == "count" else 1)
    assert (counts == [everything] * WEEKS) is (flag == "")
    for shown in (rows, made.series(), made.window(2), made.between(SINCE, "2026-02-01"), made.value(SINCE)):
        assert {row.flag for row in shown} == {flag}
    assert made.capped is bool(flag)
    assert (NOT_MEASURED in made.counted) is bool(flag)


def test_where_rows_are_units_every_row_counts(curator):
    rows = Curator(curator.given, unit=None, ledger=curator.ledger, budget="survey", same_unit="a row is a flight")
    made = rows.stream("rows", ask.count(), **TERMS).priced(5.0)
    assert (made.counted, made.capped) == ("Every row counts, in one period.", False)


def test_refusals_speak_of_dates_groups_and_lengths(curator):
    terms = {**TERMS, "by": "g", "cap": ask.cap(6)}
    made = curator.stream("refusals", ask.count(), **terms, groups=["x", "y"]).priced(5.0)
    with pytest.raises(ValueError, match=r"Open it first: open\(\), or psidp stream open on the command line"):
        made.series()
    made.open()
    with pytest.raises(ValueError, match="must lie in published periods; there is none yet, the first"):
        made.between("2026-01-05", "2026-01-12")
    made.publish()
    with pytest.raises(
        ValueError, match="published periods, 2026-01-05 to 2026-02-15, the first no later than the last"
    ):
        made.between("2026-01-12", "2026-01-05")
    with pytest.raises(ValueError, match=r"length \(periods that a window sums\) must be at most 6, .* got length=7"):
        made.window(7)
    with pytest.raises(KeyError, match="no group 'z' in this stream, which has 'x'; 'y'"):
        made.series("single period", "z")
    with pytest.raises(ValueError, match=r"groups must be given for by=g: .* stays for all periods"):
        curator.stream("none", ask.count(), **terms)


def test_a_stream_says_which_columns_it_reads_as_numbers(tmp_path):
    (tmp_path / "rows.csv").write_text("u,a,cost\n1,2026-01-05,2.5\n")
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.open("survey", psi=100.0, unit="aircraft", actor="Ann", purpose="a test")
        with Curator(tmp_path / "rows.csv", unit="u", ledger=ledger, budget="survey") as curator:
            made = curator.stream("costs", ask.mean("cost", 0, 9), **TERMS, cap=ask.cap(1)).priced(5.0)
            assert "'cost' has no type of its own and is read as numbers" in made.counted
            for asks, more in (([ask.sum("a", 0, 9)], {}), ([ask.count()], {"by": "a", "groups": ["later"]})):
                with pytest.raises(ValueError, match="'a' has no type, and is asked for its instants"):
                    curator.stream("days", *asks, **TERMS, cap=ask.cap(1), **more)
            days = {"by": "a", "groups": [SINCE]}
            assert curator.stream("days", ask.count(), **TERMS, cap=ask.cap(1), **days).open(psi=5.0).publish()
