"""Columns without a type in where and by: how a constant makes them read, what is refused, and how it is reported."""

import re

import pyarrow as pa
import pytest

from psidp import Curator, Ledger, PrivateGroups, ask
from psidp.tables.conditions import Condition, derived_columns, readings_words, unread
from psidp.tables.sources import open_source

FEES = [*range(2, 12), 20, 100, 1000]
DAYS = ["2025-02-27", "2025-03-01", "2025-03-01 08:00:00", "2025-11-07T10:00:00Z", "07.11.2025", "", "unknown"]


@pytest.fixture
def loans(tmp_path):
    lines = [f"{n},{DAYS[n % 7]},{fee},{'NS'[n % 2]}" for n, fee in enumerate(FEES * 7)]
    (tmp_path / "loans.csv").write_text("\n".join(["who,borrowed,fee,branch", *lines]) + "\n")
    return tmp_path / "loans.csv"


def condition(source, where):
    return Condition.parse(where, source.schema, source.untyped)


def counted(source, where):
    sql = condition(source, where).sql(source.dialect)
    return source.engine.rows(f"SELECT count(*) FROM {source.text} AS source WHERE {sql}")[0][0]


NUMBERS = [
    "10",
    "10.5",
    "-3",
    "+7",
    ".5",
    "5.",
    "1e3",
    "1,000",
    "1 000",
    "1'000",
    "1.000.000",
    "5%",
    "10 €",
    "$3",
    " 7 ",
]
DATES = [
    "03/01/2025", "3/1/2025", "01.03.2025", "1.3.25", "2025-3-1", "2025/03/01", "2025-03", "03/2025", "2025-02-31",
    "1 Mar 2025", "March 1, 2025", "Sat 1st Mar 2025", "01-Jan-2025", "03/01/2025 10:00 pm", "10:30", "2025-3-1T8:00Z",
    "2025-03-01 8:00",
]  # fmt: skip
TEXTS = ["M", "Smith, Jo", "", "North 7", "A-1", "7a", "Mar", "May Street 5", "x10", "12 Oak Road", "0x10", "Z" * 5000]


def test_quoted_numbers_and_dates_put_no_column_without_a_type_in_order(loans):
    """As text, '9' is above '10', and '03/01/2025' below every 2025-...: a wrong count, and no sign of it."""
    source, declared = open_source(loans), open_source(loans, types={"fee": "string"})
    for text in NUMBERS + DATES:
        written = text.replace("'", "''")
        wanted = "a number" if text in NUMBERS else "a date as 2025-03-01"
        for where in (f"fee > '{written}'", f"'{written}' <= fee", f"fee between '{written}' and 'x'"):
            with pytest.raises(ValueError, match=f"^where must put 'fee' in order with {wanted} .*--type fee:string"):
                condition(source, where)
        assert condition(source, f"fee = '{written}' or fee in ('{written}')").readings == (("fee", "string"),)
        assert condition(declared, f"fee > '{written}'").readings == ()


@pytest.mark.parametrize("text", ["2025-3-1", "01.03.2025", "1.000.000", "03/01/2025"])
def test_no_refusal_of_a_bare_word_leads_into_quotes(loans, text):
    with pytest.raises(ValueError, match=r"^where must have numbers such as 1000.5 and dates such as") as refusal:
        condition(open_source(loans), f"fee > {text}")
    assert "quotes" not in str(refusal.value)


def test_other_text_may_put_a_column_in_order(loans):
    source = open_source(loans)
    for text in TEXTS:
        assert condition(source, f"branch > '{text}'").readings == (("branch", "string"),)
    assert counted(source, "branch > 'M'") == 91


def test_a_quoted_date_reads_dates_and_a_zone_is_known(loans):
    source = open_source(loans)
    whole = ["borrowed >= '2025-03-01'", "borrowed >= 2025-03-01", "borrowed > '2025-02-28T23:00:00-00:30'"]
    assert [counted(source, where) for where in whole] == [39] * 3
    assert counted(source, "borrowed between '2025-03-01' and '2025-03-31'") == 26
    assert counted(source, "borrowed > 2025-11-07T10:59:00+01:00") == 13
    assert counted(source, "borrowed > '2025-11-07T11:00:00+01:00'") == 0
    assert counted(source, "fee > 10") == 28


CELLS = ["1", "2.5", " 7 ", "-3", "1e3", "nan", "inf", "1,000", "true", "False", "0", "", None, "9", "10", "07.11.2025",
         "2025-03-01", "2025-03-01T10:00:00Z", "2025-02-31", "M", "0x10", "12:00"]  # fmt: skip


def as_number(cell):
    """A cell as Python reads a number, true as 1; NULL, in SQL, for the rest."""
    known = {"true": 1.0, "False": 0.0}
    if cell is None or cell in known:
        return known.get(cell)
    return float(cell) if re.fullmatch(r"\s*-?[0-9]+(\.[0-9]+)?(e[0-9]+)?\s*|nan|inf", cell) else None


@pytest.mark.parametrize(
    ("where", "meaning"),
    [
        ("cell > 2", lambda cell: None if (x := as_number(cell)) is None else x > 2),
        ("not cell > 2", lambda cell: None if (x := as_number(cell)) is None else not x > 2),
        ("cell in (1, 7)", lambda cell: None if (x := as_number(cell)) is None else x in (1.0, 7.0)),
        ("cell = '1'", lambda cell: None if cell is None else cell == "1"),
        ("cell != 'M'", lambda cell: None if cell is None else cell != "M"),
        ("cell = true", lambda cell: {"true": True, "1": True, "False": False, "0": False}.get(cell)),
        ("cell in (true, false)", lambda cell: {"true": True, "1": True, "False": True, "0": True}.get(cell)),
        ("cell >= 2025-03-01", lambda cell: True if cell in ("2025-03-01", "2025-03-01T10:00:00Z") else None),
        ("cell > '2025-03-01'", lambda cell: {"2025-03-01": False, "2025-03-01T10:00:00Z": True}.get(cell)),
        ("hour(cell) = 10", lambda cell: {"2025-03-01": False, "2025-03-01T10:00:00Z": True}.get(cell)),
        ("cell is null", lambda cell: cell is None),
    ],
)
def test_a_cell_that_cannot_be_parsed_is_missing(where, meaning):
    import pandas as pd

    source = open_source(pd.DataFrame({"cell": pd.Series(CELLS, dtype=object)}))
    found = source.engine.rows(f"SELECT {condition(source, where).sql(source.dialect)} FROM {source.text} AS source")
    assert [value for (value,) in found] == [meaning(cell) for cell in CELLS]


READ = (
    "In conditions and groups, columns without a type are read so: 'borrowed' as dates such as 2025-12-31; 'fee' as "
    "numbers such as 1000.5; 'branch' as text. Values that cannot be parsed are missing."
)


def test_readings_of_conditions_and_derived_columns_are_one_line(loans):
    source = open_source(loans)
    made = derived_columns(["month(borrowed)"], source.schema, source.untyped)["month(borrowed)"]
    where = condition(source, "fee > 3 and branch != 'x' and fee in (1, 2)")
    assert readings_words((*made.readings, *where.readings)) == READ
    assert readings_words(()) == unread(()) == unread([("branch", "string")]) == ""
    assert "Perhaps 'borrowed' holds no dates such as 2025-12-31, or 'fee' holds no numbers" in unread(
        [("borrowed", "date"), ("fee", "int64"), ("branch", "string")]
    )
    typed = open_source(loans, types={"borrowed": "timestamp", "fee": "int64", "branch": "string"})
    assert condition(typed, "fee > 3 and branch != 'x'").readings == ()
    frame = open_source(pa.table({"n": [1], "s": ["a"]}))
    assert condition(frame, "n > 3 and s = 'x'").readings == ()


def notes(terms):
    """The notes of a plan or an answer, as text."""
    return [note.text for note in terms.notes]


def test_plan_and_answer_report_how_where_and_by_read_columns_without_a_type(loans):
    terms = {"by": ["month(borrowed)", "branch"], "groups": ["N", "S"], "where": "fee > 3 and branch != 'x'"}
    question = Curator(loans, "who").ask(ask.count(), **terms)
    assert READ in notes(question.plan(psi=1.0))
    assert READ in notes(question.release(psi=1.0))
    typed = Curator(loans, "who", types={"borrowed": "timestamp", "fee": "int64", "branch": "string"})
    assert not any("without a type" in note for note in notes(typed.ask(ask.count(), **terms).plan(psi=1.0)))
    plain = Curator(loans, "who").ask(ask.count(), by="branch", groups=PrivateGroups(1e-9, 2)).plan(psi=1.0)
    assert "In conditions and groups, columns without a type are read so: 'branch' as text." in notes(plain)
    numbered = Curator(loans, "who").ask(ask.count(), by="fee", groups=[1, 2]).plan(psi=1.0)
    assert any("'fee' as numbers such as" in note for note in notes(numbered))


def test_cubes_and_streams_read_and_refuse_alike(loans, tmp_path):
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.open("b", psi=1.0, unit="who", purpose="loans")
        curator = Curator(loans, "who", ledger=ledger, budget="b")
        columns = {"month(borrowed)": None, "branch": ["N", "S"]}
        assert READ in notes(curator.cube(columns, ask.up_to(2), where="fee > 3").plan(psi=1.0))
        stream = {
            "every": "month", "since": "2025-01-01", "periods": 12, "arrived": "borrowed", "cap": ask.cap(at_most=1),
        }  # fmt: skip
        plan = curator.stream("s", ask.count(), **stream, where="fee > 3").plan(psi=1.0)
        assert "are read so: 'fee' as numbers" in plan.counted
        for asked in (
            lambda where: curator.cube(columns, ask.up_to(2), where=where),
            lambda where: curator.stream("s", ask.count(), **stream, where=where),
        ):
            with pytest.raises(ValueError, match="must put 'fee' in order with a number"):
                asked("fee > '10'")


def test_an_answer_of_noise_alone_says_which_columns_may_hold_nothing_that_is_parsed(tmp_path):
    """07.11.2025 is no date: every month is empty, and noise alone passes for rows once in 740 times."""
    rows = "".join(f"{n},07.11.2025,{n % 90}\n" for n in range(900))
    (tmp_path / "v.csv").write_text("who,borrowed,fee\n" + rows)
    curator, doubt = Curator(tmp_path / "v.csv", "who"), "Perhaps 'borrowed' holds no dates such as 2025-12-31"
    question = curator.ask(ask.count(), ask.sum("fee", 0, 90), by="quarter(borrowed)")
    assert any(doubt in question.release(psi=2.0).summary() for _ in range(3))
    assert doubt not in curator.ask(ask.count(), where="fee > 3").release(psi=2.0).summary()
    typed = Curator(pa.table({"who": range(9), "n": range(9)}), "who")
    assert "Perhaps" not in typed.ask(ask.count(), where="n > 100").release(psi=0.1).summary()
