"""psidp stream on the command line: plan, open, publish once, show; the same refusals as in Python."""

import csv
import datetime
import io
import json
import sys

import pytest

from psidp import Ledger
from psidp.cli import main
from psidp.cli.stream import show_published
from psidp.tables.series import Published

NOT_ALL = "not of all rows: one patient counts in the first week in which it has a row, with at most one row's worth"


@pytest.fixture
def psidp(monkeypatch, capsys, tmp_path):
    """Run a command of psidp stream about a stream of three weeks in 2020: exit code, standard output and error."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{i},{'AB'[i % 2]},2020-01-{6 + i % 21:02}" for i in range(420)]
    (tmp_path / "visits.csv").write_text("\n".join(["patient_id,ward,loaded_at", *rows]) + "\n")
    with Ledger("ledger.db") as ledger:
        ledger.open("survey", psi=1.0, unit="patient", actor="Ann", purpose="a test")
    stream = "visits.csv --name visits --every week --since 2020-01-06 --periods 3 --count"
    stream += " --ledger ledger.db --budget survey --by ward"

    def run(
        command, *more, options="--unit-column patient_id --at-most 1", price="--psi 0.5", groups="--groups A,B",
        dated="--arrived loaded_at",
    ):  # fmt: skip
        given = [word for text in (stream, price, options, groups, dated) for word in text.split()]
        words = ["psidp", "stream", command, *given, *more]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as exit:
            main.main()
        out, err = capsys.readouterr()
        return exit.value.code or 0, out, err

    return run


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def entries():
    with Ledger("ledger.db") as ledger:
        ledger.verify()
        return list(ledger.entries())


def test_a_plan_spends_nothing_and_says_what_to_expect(psidp):
    code, out, _ = psidp("plan")
    assert code == 0
    assert "3 periods, psi = 0.5 paid once; a unit is in at most 1 period." in out
    assert "count, total to date" in out
    values = json.loads(psidp("plan", "--json")[1])
    assert values["psi"] <= 0.5
    assert NOT_ALL in out
    assert NOT_ALL in values["counted"]
    assert {row["question"] for row in values["expected"]} == {"single period", "total to date"}
    assert len(entries()) == 1


def test_what_is_not_open_is_not_published(psidp):
    code, out, err = psidp("publish")
    assert (code, out) == (2, "")
    assert err.startswith("psidp: the stream must be open before it publishes or reads anything.")
    assert len(entries()) == 1


def test_open_twice_pays_once_and_publish_twice_publishes_once(psidp):
    for _ in range(2):
        code, out, _ = psidp("open", "--purpose", "visits by week")
        assert code == 0
        assert out.startswith("Stream visits is open: psi 0.5 pays for 3 periods, every week since 2020-01-06. Numbers")
        assert NOT_ALL in out
    code, out, err = psidp("publish")
    first = rows_of(out)
    assert [row["period"] for row in first[::2]] == ["2020-01-06", "2020-01-13", "2020-01-20"]
    assert all(abs(float(row["value"]) - 70) < 8 * float(row["standard_error"]) for row in first)
    assert {row["flag"] for row in first} == {"capped"}
    assert NOT_ALL in err
    assert err.endswith("\nStream visits has 3 periods published.\n")
    _, out, err = psidp("publish")
    assert (rows_of(out), err) == ([], "Stream visits has 3 periods published.\n")
    assert rows_of(psidp("show", "--question", "single period")[1]) == first
    shown = json.loads(psidp("show", "--json")[1])
    assert NOT_ALL in shown["counted"]
    totals = shown["published"]
    assert [row["group"] for row in totals[-2:]] == [["A"], ["B"]]
    assert abs(totals[-1]["value"] - 210) < 8 * totals[-1]["standard_error"]
    assert len(rows_of(psidp("show", "--last", "2")[1])) == 4
    assert [entry.psi > 0 for entry in entries() if entry.state == "spent"].count(True) == 1


def test_rows_that_are_units_all_count_and_nothing_is_flagged(psidp):
    rows = {"options": "--rows-are-units --same-unit one-visit-each"}
    _, out, _ = psidp("open", **rows)
    assert "since 2020-01-06. Every row counts, in one period. In conditions and groups, columns without" in out
    _, out, err = psidp("publish", **rows)
    assert {row["flag"] for row in rows_of(out)} == {""}
    assert err == "Stream visits has 3 periods published.\n"


def test_a_stream_without_its_groups_is_told_of_no_option_that_it_has_not(psidp):
    code, _, err = psidp("plan", groups="")
    assert code == 2
    assert "groups must be given for by=ward" in err
    assert "private" not in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--unit-column patient_id", "at_most (periods in which one unit counts) must be a whole number"),
        ("--at-most 1", "units must be named by --unit-column COLUMN"),
        ("--unit-column patient_id --each day", "each (buckets of which a unit counts once) must be one of month"),
    ],
)
def test_refusals_are_the_sentences_of_python(psidp, options, words):
    code, out, err = psidp("plan", options=options)
    assert (code, out) == (2, "")
    assert err.startswith(f"psidp: {words}")


def test_a_wait_is_a_number_of_hours(psidp):
    code, _, err = psidp("open", "--wait-hours", "-1")
    assert code == 2
    assert "--wait-hours must be in [0, 1000000], got -1.0." in err


def test_a_stream_is_priced_in_any_notion_and_weighs_its_statistics(psidp):
    plain = json.loads(psidp("plan", "--json", price="--epsilon 1 --delta 1e-6")[1])
    assert plain["psi"] == pytest.approx(0.2373, abs=1e-3)
    code, _, err = psidp("plan", "--epsilon", "1", "--delta", "1e-6")
    assert code == 2
    assert "psi" in err
    even, more = (
        {row["statistic"]: row for row in json.loads(psidp("plan", "--units", "--json", *words)[1])["expected"]}
        for words in ([], ["--weight", "units:4"])
    )
    assert more["units"]["last"] < even["units"]["last"]
    assert more["count"]["last"] > even["count"]["last"]
    code, _, err = psidp("plan", "--weight", "mean:4")
    assert code == 2
    assert "--weight must be name:number, once for each name of 'count', got 'mean:4'." in err


def test_a_word_that_stands_for_a_missing_value_may_be_said(psidp):
    code, out, err = psidp("plan", "--missing", "NA")
    assert (code, err) == (0, "")
    assert "3 periods" in out


def test_a_terminal_shows_the_digits_of_small_numbers(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    numbers = (0.034567, 0.001, 0.032, 1234.56)
    show_published([Published(datetime.date(2026, 1, 5), ("A",), "share", *numbers)])
    out = capsys.readouterr().out
    assert all(shown in out for shown in ("0.03457", "0.001", "0.032", "1,234.56"))
