"""Columns without a type in where and by: how a constant makes them read, what is refused, and what is said of it."""

import ibis
import pyarrow as pa
import pytest

from psidp import Curator, Ledger, PrivateGroups, ask

NEVER = 1e9
"""A psi at which noise does not show."""

FEES = [*range(2, 12), 20, 100, 1000]
DAYS = ["2025-02-27", "2025-03-01", "2025-03-01 08:00:00", "2025-11-07T10:00:00Z", "07.11.2025", "", "unknown"]


@pytest.fixture
def loans(tmp_path):
    lines = [f"{n},{DAYS[n % 7]},{fee},{'NS'[n % 2]}" for n, fee in enumerate(FEES * 7)]
    (tmp_path / "loans.csv").write_text("\n".join(["who,borrowed,fee,branch", *lines]) + "\n")
    return tmp_path / "loans.csv"


def counted(curator, where):
    return round(curator.release(ask.count(), where=where, contribution=1024, psi=NEVER).value("count"))


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


@pytest.mark.parametrize("text", NUMBERS + DATES)
def test_quoted_numbers_and_dates_put_no_column_without_a_type_in_order(loans, text):
    """As text, '9' is above '10', and '03/01/2025' below every 2025-...: whoever wrote it got a wrong count, unsaid."""
    written = text.replace("'", "''")
    curator, said = Curator(loans, "who"), "a number" if text in NUMBERS else "a date as 2025-03-01"
    for where in (
        f"fee > '{written}'",
        f"'{written}' <= fee",
        f"fee between '{written}' and 'x'",
        f'fee < "{written}"',
    ):
        with pytest.raises(ValueError, match=f"^where must put 'fee' in order with {said} .*--type fee:string"):
            curator.plan(ask.count(), where=where, psi=1.0)
    assert curator.plan(ask.count(), where=f"fee = '{written}' or fee in ('{written}')", psi=1.0).sql
    declared = Curator(loans, "who", types={"fee": "string"})
    assert declared.plan(ask.count(), where=f"fee > '{written}'", psi=1.0).sql


def test_ibis_puts_text_in_order_only_where_it_looks_like_nothing_else(loans):
    curator = Curator(loans, "who")
    for where in (ibis._.fee > "10", ibis._.fee.between("a", "5"), [ibis._.borrowed < "01.03.2025"]):
        with pytest.raises(ValueError, match=r"^where must put '"):
            curator.plan(ask.count(), where=where, psi=1.0)
    notes = [
        str(note) for note in curator.plan(ask.count(), where=[ibis._.branch > "M", ibis._.fee == "10"], psi=1.0).notes
    ]
    assert "In conditions and groups, columns without a type are read so: 'branch', 'fee' as text." in notes


@pytest.mark.parametrize("text", ["2025-3-1", "01.03.2025", "1.000.000", "03/01/2025"])
def test_no_refusal_of_a_bare_word_leads_into_quotes(loans, text):
    with pytest.raises(ValueError, match=r"^where must put 'fee' in order with (?!.*stand in quotes)"):
        Curator(loans, "who").plan(ask.count(), where=f"fee > {text}", psi=1.0)


@pytest.mark.parametrize("text", TEXTS)
def test_other_text_may_put_a_column_in_order(loans, text):
    curator = Curator(loans, "who")
    assert curator.plan(ask.count(), where=f"branch > '{text}'", psi=1.0).sql
    assert counted(curator, "branch > 'M'") == 91


def test_a_quoted_date_reads_dates_and_a_zone_is_known(loans):
    curator = Curator(loans, "who")
    whole = ["borrowed >= '2025-03-01'", "borrowed >= 2025-03-01", "borrowed > '2025-02-28T23:00:00-00:30'"]
    assert [counted(curator, where) for where in whole] == [39] * 3
    assert counted(curator, "borrowed between '2025-03-01' and '2025-03-31'") == 26
    assert counted(curator, "borrowed > 2025-11-07T10:59:00+01:00") == 13
    assert counted(curator, "borrowed > '2025-11-07T11:00:00+01:00'") == 0
    assert counted(curator, "fee > 10") == 28


SAID = (
    "In conditions and groups, columns without a type are read so: 'borrowed' as dates such as 2025-12-31; 'fee' as "
    "numbers such as 1000.5; 'branch' as text. What does not read so is missing there."
)


def test_plan_and_answer_say_how_where_and_by_read_columns_without_a_type(loans):
    terms = {"by": ["month(borrowed)", "branch"], "groups": ["N", "S"], "where": "fee > 3 and branch != 'x'"}
    curator = Curator(loans, "who")
    assert SAID in map(str, curator.plan(ask.count(), **terms, psi=1.0).notes)
    assert SAID in map(str, curator.release(ask.count(), **terms, psi=1.0).notes)
    typed = Curator(loans, "who", types={"borrowed": "timestamp", "fee": "int64", "branch": "string"})
    assert not any("without a type" in note.text for note in typed.plan(ask.count(), **terms, psi=1.0).notes)
    plain = [str(note) for note in curator.plan(ask.count(), by="branch", groups=PrivateGroups(1e-9, 2), psi=1.0).notes]
    assert "In conditions and groups, columns without a type are read so: 'branch' as text." in plain
    numbered = [str(note) for note in curator.plan(ask.count(), by="fee", groups=[1, 2], psi=1.0).notes]
    assert any("'fee' as numbers such as" in note for note in numbered)


def test_cubes_and_streams_read_and_refuse_alike(loans, tmp_path):
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.open("b", psi=1.0, unit="who", purpose="loans")
        curator = Curator(loans, "who", ledger=ledger, budget="b")
        columns = {"month(borrowed)": None, "branch": ["N", "S"]}
        cube = {"columns": columns, "tables": ask.up_to(2), "psi": 1.0}
        assert SAID in map(str, curator.plan_cube(**cube, where="fee > 3").notes)
        stream = {
            "every": "month", "since": "2025-01-01", "periods": 12, "arrived": "borrowed", "at_most": 1, "psi": 1.0,
        }  # fmt: skip
        said = curator.stream("s", ask.count(), **stream, where="fee > 3").plan().counted
        assert "are read so: 'fee' as numbers" in said
        for asked in (
            lambda w: curator.plan_cube(**cube, where=w),
            lambda w: curator.stream("s", ask.count(), **stream, where=w),
        ):
            with pytest.raises(ValueError, match="must put 'fee' in order with a number"):
                asked("fee > '10'")


def test_an_answer_of_noise_alone_says_which_columns_may_hold_nothing_that_reads(tmp_path):
    """07.11.2025 is no date: every month is empty, and noise alone passes for rows once in 740 times."""
    rows = "".join(f"{n},07.11.2025,{n % 90}\n" for n in range(900))
    (tmp_path / "v.csv").write_text("who,borrowed,fee\n" + rows)
    curator, told = Curator(tmp_path / "v.csv", "who"), "Perhaps 'borrowed' holds no dates such as 2025-12-31"
    terms = {"by": "quarter(borrowed)", "psi": 2.0}
    answers = [curator.release(ask.count(), ask.sum("fee", 0, 90), **terms) for _ in range(3)]
    assert any(told in answer.summary() for answer in answers)
    assert told not in curator.release(ask.count(), where="fee > 3", psi=2.0).summary()
    typed = Curator(pa.table({"who": range(9), "n": range(9)}), "who")
    assert "Perhaps" not in typed.release(ask.count(), where="n > 100", psi=0.1).summary()
