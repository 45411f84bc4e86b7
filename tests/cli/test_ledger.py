"""psidp ledger: the same numbers and the same refusals as in Python, for files and servers alike."""

import gc
import json
import sys
from datetime import datetime, timedelta

import pytest

import psidp
from psidp.cli import main
from psidp.cli.balance import plain
from psidp.cli.chart import draw

ODD = "O'Brien \"the\" survey\nenquête 🧬 [bold] '); DROP TABLE psidp_entries; --"


@pytest.fixture
def run(capsys, monkeypatch):
    def call(*words):
        monkeypatch.setattr(sys, "argv", ["psidp", "ledger", *map(str, words)])
        monkeypatch.setenv("COLUMNS", "200")
        try:
            main.main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.fixture
def book(run, tmp_path):
    path = tmp_path / "ledger.db"
    assert run("open", path, "survey", "--psi", 1, "--unit", "patient", "--purpose", "2026", "--actor", "Ann")[0] == 0
    return path


def test_open_spend_show_remaining_verify_head_say_what_python_says(run, book):
    assert run("spend", book, "survey", "--sensitivity", 1, "--sigma", 4, "--purpose", "mean age")[0] == 0
    ledger = psidp.Ledger(book)
    code, out, _ = run("remaining", book, "survey", "--json")
    assert (code, json.loads(out)["remaining"]) == (0, ledger.remaining("survey").to_dict())
    code, out, _ = run("show", book, "survey", "--json")
    shown = json.loads(out)
    assert {k: v for k, v in shown.items() if k != "history"} == ledger.report("survey").to_dict()
    assert [p["psi"] for p in shown["history"]] == [0.0, 0.25]
    assert run("head", book)[1].strip() == str(ledger.head())
    code, out, _ = run("verify", book, "--head", str(ledger.head()), "--json")
    expected = {"verified": True, "entries": 2, "head": str(ledger.head()), "not_recomputed": []}
    assert (code, json.loads(out)) == (0, expected)


def test_show_draws_a_chart_and_says_what_is_left_in_words(run, book):
    run("spend", book, "survey", "--psi", 0.6, "--purpose", "mean age")
    run("reset", book, "survey", "--purpose", "a new year", "--actor", "Bob")
    code, out, _ = run("show", book, "survey")
    assert code == 0
    for words in (
        "█",
        "reset by Bob: a new year",
        "spent since it was opened",
        "a Gaussian release fits",
        "per patient",
    ):
        assert words in out
    assert "0.6" in run("show", book)[1]


def test_exhaustion_is_one_sentence_and_exit_code_2(run, book):
    head = run("head", book)
    code, out, err = run("spend", book, "survey", "--sensitivity", 3, "--sigma", 2, "--purpose", "too much")
    assert (code, out) == (2, "")
    assert err == (
        "psidp: Budget 'survey' has psi 1 left; this release needs 1.5. Raise sigma to 3 or more, or ask for less.\n"
    )
    assert run("head", book) == head


def test_a_foreign_mechanism_is_priced_as_one(run, book):
    code, out, _ = run("spend", book, "survey", "--mechanism", "laplace", "--epsilon", 0.5, "--purpose", "q", "--json")
    assert code == 0
    assert json.loads(out)["entry"]["psi"] == psidp.Guarantee.from_pure(0.5).psi
    code, _, err = run("spend", book, "survey", "--mechanism", "laplace", "--auc", 0.6, "--purpose", "q")
    assert (code, "does not bound its psi" in err) == (2, True)
    assert run("verify", book)[0] == 0


def test_raise_split_close_are_entries(run, book):
    assert run("raise", book, "survey", "--psi", 2, "--purpose", "the board agreed")[0] == 0
    assert run("split", book, "survey", "--share", "a=1", "--share", "b=2", "--purpose", "teams")[0] == 0
    assert run("close", book, "survey", "--purpose", "done")[0] == 0
    assert run("split", book, "a", "--share", "x", "--purpose", "teams")[0] == 2
    shown = json.loads(run("show", book, "--json")[1])["budgets"]
    assert [b["budget"] for b in shown] == ["survey", "a", "b"]
    assert [c["state"] for c in shown[0]["changes"]] == ["opened", "raised", "split", "closed"]


def test_partitions_and_renewal_are_declared_on_the_command_line(run, tmp_path):
    path = tmp_path / "parts.db"
    parts = ["--partition-column", "region", "--partition", "north", "--partition", "south", "--declared-by", "Ann"]
    words = ["open", path, "s", "--psi", 1, "--purpose", "q", *parts, "--renews", "month"]
    assert run(*words)[0] == 0
    assert run("spend", path, "s", "--psi", 0.6, "--partition", "north", "--purpose", "q")[0] == 0
    assert json.loads(run("remaining", path, "s", "--partition", "south", "--json")[1])["remaining"]["psi"] == 1.0
    assert "declared disjoint by Ann" in run("show", path, "s")[1]
    assert run("open", path, "t", "--psi", 1, "--purpose", "q", *parts, "--adjacency", "replace-one")[0] == 2
    assert run("open", path, "t", "--psi", 1, "--purpose", "q", "--renews", "decade")[0] == 2


def test_export_and_import_move_a_ledger(run, book, tmp_path):
    out = tmp_path / "ledger.jsonl"
    assert run("export", book, "--output", out)[0] == 0
    assert run("export", book)[1] == out.read_text()
    code, _, err = run("export", book, "-o", out)
    assert code == 2
    assert "cannot be used: File exists. Nothing was overwritten: choose another name." in " ".join(err.split())
    assert run("import", tmp_path / "copy.db", out)[0] == 0
    assert run("head", tmp_path / "copy.db") == run("head", book)
    code, _, err = run("import", book, out)
    assert (code, "already" in err) == (2, True)


def test_a_moved_ledger_goes_on_once_it_is_said(run, book, tmp_path):
    head = run("head", book)[1].strip()
    gc.collect()  # as at the end of a process: the ledger is closed, and its log is gone
    other = book.rename(tmp_path / "other.db")
    code, out, err = run("spend", other, "survey", "--psi", 0.1, "--purpose", "q")
    assert (code, out) == (2, "")
    assert f'If this is now the only one, say so: psidp ledger moved {other} --purpose "why".' in " ".join(err.split())
    assert run("moved", other, "--purpose", "a better name", "--head", "9:" + "ab" * 32)[0] == 2
    code, out, _ = run("moved", other, "--purpose", "a better name", "--head", head)
    assert (code, out) == (0, f"1 entries were verified; the ledger goes on from here. The head is\n{head}\n")
    assert run("spend", other, "survey", "--psi", 0.1, "--purpose", "q")[0] == 0
    assert json.loads(run("moved", other, "--purpose", "again", "--json")[1])["entries"] == 2


def test_names_are_shown_as_they_are(run, tmp_path):
    path = tmp_path / "odd.db"
    assert run("open", path, ODD, "--psi", 1, "--purpose", ODD, "--unit", ODD)[0] == 0
    assert run("spend", path, ODD, "--psi", 0.5, "--purpose", ODD)[0] == 0
    code, out, _ = run("show", path, ODD)
    assert code == 0
    assert ODD in out
    assert json.loads(run("show", path, ODD, "--json")[1])["budget"] == ODD
    assert run("show", path)[0] == 0


def test_control_characters_do_not_reach_the_terminal():
    assert plain("a\x1b[2Jb\tc").plain == "a\\x1b[2Jb\\tc"


def test_no_password_is_ever_printed(run):
    for words in (
        ["show"],
        ["remaining"],
        ["spend", "--psi", 1, "--purpose", "q"],
        ["open", "--psi", 1, "--purpose", "q"],
    ):
        command, *rest = words
        url = "postgresql://ann:s3cret@127.0.0.1:9/privacy?sslpassword=s3cret&connect_timeout=2"
        code, out, err = run(command, url, "survey", *rest)
        assert code == 2
        assert "s3cret" not in out + err
        assert "ann:***@127.0.0.1:9/privacy" in err


@pytest.mark.parametrize("command", ["show", "remaining", "verify", "head", "export"])
def test_reading_what_is_not_there_creates_nothing(run, tmp_path, command):
    words = [command, tmp_path / "typo.db"] + (["survey"] if command == "remaining" else [])
    code, _, err = run(*words)
    assert (code, "there is no ledger" in err) == (2, True)
    assert not (tmp_path / "typo.db").exists()


def test_a_chart_steps_up_over_time_and_ends_at_the_top():
    day = datetime(2026, 1, 1)
    lines = draw([(day + timedelta(days=k), float(k)) for k in range(11)], width=20, height=4)
    assert lines[-1].strip() == "2026-01-01 to 2026-01-11"
    assert all(line.endswith("█") for line in lines[:-1])
    assert draw([], 20) == []
    assert lines[-1].endswith("2026-01-01 to 2026-01-11")
    assert draw([(day, 0.0), (day + timedelta(seconds=9), 1.0)], 5, 3)[-1].endswith("2026-01-01 00:00:00 to 00:00:09")
    assert draw([(day, 0.0), (day + timedelta(hours=30), 1.0)], 5, 3)[-1].endswith("to 2026-01-02 06:00:00")
    assert len(draw([(day, 0.0)], 5, 3)) == 4


def test_a_release_from_the_command_line_is_paid_for_and_a_retry_costs_nothing(run, book, capsys, monkeypatch):
    def release(*words):
        monkeypatch.setattr(sys, "argv", ["psidp", "release", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main.main()
        return (stop.value.code or 0, *capsys.readouterr())

    words = ["value", 123.4, "--sensitivity", 1, "--unit", "patient", "--ledger", book, "--budget", "survey"]
    code, first, err = release(*words, "--sigma", 2, "--purpose", "visits", "--retry-key", "k-1")
    assert code == 0
    assert "Paid from budget survey. psi 0.866 is left" in err
    assert release(*words, "--sigma", 2, "--purpose", "visits", "--retry-key", "k-1")[1] == first
    assert run("head", book)[1].startswith("3:")
    assert release(*words, "--sigma", 2)[0] == 2
    code, out, err = release(*words, "--sigma", 1, "--purpose", "more", "--retry-key", "k-2")
    assert (code, out, "has psi" in err) == (2, "", True)
    assert run("head", book)[1].startswith("3:")
