"""psidp ledger as an officer uses it: every question is answered from the command line alone."""

import json
import re
import shlex
import sqlite3
import subprocess
import sys

import pytest

import psidp
import psidp.errors
from psidp.cli import tables
from psidp.present import ledger_report


@pytest.fixture
def clinic(run, tmp_path, monkeypatch):
    """A clinic's ledger: an officer, an analyst, a limit, and a year with one large release."""
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "clinic.db"

    def call(*words, code=0):
        found, out, err = run("ledger", words[0], path, *words[1:])
        assert found == code, (out, err)
        return out if code == 0 else err

    terms = ("--unit", "patient", "--approval-above", 0.3, "--table", "visits.csv", "--purpose", "the survey")
    call("open", "survey", "--psi", 1, *terms, "--actor", "ann")
    who = ("--table", "visits.csv", "--table-unit", "patient_id", "--actor", "bob")
    call("spend", "survey", "--psi", 0.2, "--purpose", "a count", *who)
    large = ("survey", "--sensitivity", 1, "--sigma", 2, "--purpose", "mean age", *who)
    refusal = call("spend", *large, code=2)
    assert "psidp ledger request" in refusal
    call("request", *large)
    call("approve", 3, "--purpose", "agreed", "--actor", "ann")
    call("spend", *large)
    return call


def test_what_was_spent_by_whom_for_what_and_who_allowed_the_largest(clinic):
    out = clinic("list", "--table", "visits.csv", "--since", "2020")
    for words in ("bob", "visits.csv", "mean age (approved by ann)", "a count", "0.5", "Together psi 0.5386 per "):
        assert words in out
    found = json.loads(clinic("list", "--actor", "bob", "--json"))
    assert [(e["psi"], e["approved_by"], e["table"]) for e in found["entries"]] == [
        (0.5, "ann", "visits.csv"), (0.2, "", "visits.csv"),
    ]  # fmt: skip
    assert found["before"] is None
    page = json.loads(clinic("list", "--size", 1, "--json"))
    assert page["before"] == page["entries"][0]["id"]
    assert f"--before {page['before']}" in clinic("list", "--size", 1)
    assert [e["psi"] for e in json.loads(clinic("list", "--before", page["before"], "--json"))["entries"]] == [0.2]
    assert "Nothing was found for actor bob, in 1999." in clinic(
        "list", "--actor", "bob", "--since", 1999, "--until", 1999
    )
    listed = clinic("list", "--state", "all")
    assert "approved request 3: agreed" in listed
    assert "requested psi 0.5: mean age" in listed
    assert "state must be one of" in clinic("list", "--state", "refunded", code=2)


def test_a_report_of_a_year_is_a_page_of_html_markdown_or_json(clinic, tmp_path):
    year = str(psidp.Ledger(tmp_path / "clinic.db").now().year)
    told = clinic("report", "--year", year)
    for words in (
        "psi 0.5386, in 2 spends",
        "| visits.csv | 2 |",
        "| bob | 2 |",
        "| ann |",
        "0.8426",
        "approval above",
    ):
        assert words in told
    clinic("report", "--year", year, "-o", tmp_path / "year.html")
    page = (tmp_path / "year.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", ""), "it needs nothing from elsewhere"
    values = json.loads(clinic("report", "--year", year, "--json"))
    assert values["largest"][0]["approved_by"] == "ann"
    assert values["standing"][0]["remaining"]["psi"] == pytest.approx(0.71**0.5)
    assert "Nothing was spent." in clinic("report", "--year", "1999")
    assert "year must be given alone" in clinic("report", "--year", "2026", "--since", "2026", code=2)
    assert "must end in one of" in clinic("report", "-o", tmp_path / "year.pdf", code=2)


def test_a_report_spells_out_what_would_act_on_a_terminal_or_turn_letters_round(clinic, tmp_path):
    evil = "q\x1b[2J\u202etxt.\x07\x9b"
    clinic("spend", "survey", "--psi", 0.1, "--purpose", evil, "--table", evil)
    clinic("report", "-o", tmp_path / "page.html")
    code = "q\\x1b[2J\\u202etxt.\\x07\\x9b"
    for told in (clinic("report"), clinic("report", "--table", evil), (tmp_path / "page.html").read_text()):
        assert not set("\x1b\u202e\x07\x9b") & set(told)
    assert code in (tmp_path / "page.html").read_text()
    assert code in clinic("list")
    kept = json.loads(clinic("report", "--json"))
    assert evil in [line["table"] for line in kept["tables"]], "a program gets every letter"


def test_a_name_with_a_slip_in_it_does_not_look_like_nothing_spent(run, clinic, tmp_path):
    path = tmp_path / "clinic.db"
    for words in (
        ("--actor", "Bob"),
        ("--table", "visit.csv"),
        ("--budget", "surveys"),
        ("--budget", "survey", "--actor", "eve"),
    ):
        for command in ("list", "report"):
            code, out, _ = run("ledger", command, path, *words)
            assert (code, out.startswith(f"Nothing matches: no entry has the {words[-2][2:]} {words[-1]!r}.")) == (
                1,
                True,
            )
        code, out, _ = run("ledger", "list", path, *words, "--json")
        assert (code, json.loads(out)) == (0, {"entries": [], "before": None}), "JSON stays as it was"


def test_an_empty_actor_is_refused_and_not_taken_for_none(run, clinic, tmp_path):
    path = tmp_path / "clinic.db"
    for words in (
        ("spend", path, "survey", "--psi", 0.1, "--purpose", "q"),
        ("approve", path, 3, "--purpose", "q"),
        ("pause", path, "survey", "--purpose", "q"),
    ):
        for name in ("", "  "):
            code, _, err = run("ledger", *words, "--actor", name)
            assert (code, "actor must be said in words" in err) == (2, True)
    asked = ("release", "table", tmp_path / "no.csv", "--count", "--psi", 1, "--rows-are-units", "--actor", "")
    assert "actor must be said in words" in run(*asked)[2]


def test_a_refusal_after_a_denial_says_who_denied_it_and_names_the_ledger(clinic, tmp_path):
    large = ("survey", "--psi", 0.6, "--purpose", "more", "--actor", "bob")
    clinic("request", *large)
    clinic("deny", 6, "--purpose", "ask for less", "--actor", "ann")
    refusal = clinic("spend", *large, code=2)
    assert "Request 6 for exactly this was denied by 'ann' in entry 7: 'ask for less'.\nAsk again:\npsidp" in refusal
    assert "denied" not in clinic("spend", "survey", "--psi", 0.7, "--purpose", "more", "--actor", "bob", code=2)
    clinic("request", *large)
    assert "Request 8 waits for it" in clinic("spend", *large, code=2)
    assert "denied request 6: ask for less" in clinic("list", "--state", "denied")
    clinic("pause", "--person", "bob", "--purpose", "has left")
    refusal = clinic("spend", "survey", "--psi", 0.1, "--purpose", "q", "--actor", "bob", code=2)
    assert f"psidp ledger show {tmp_path / 'clinic.db'} survey says who paused it" in refusal


def altered(path, statement, *values):
    """What somebody does who owns the file and has taken the guards away."""
    connection = sqlite3.connect(path)
    for guard in ("psidp_entries_keep", "psidp_entries_stay"):
        connection.execute(f"DROP TRIGGER {guard}")
    connection.execute(statement, values)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE psidp_entries SET psi = 0.01 WHERE id = 2",
        "UPDATE psidp_entries SET actor = 'eve' WHERE id = 2",
        "UPDATE psidp_entries SET event = replace(event, 'bob', 'eve'), actor = 'eve' WHERE id = 2",
    ],
)
def test_there_is_no_report_of_a_ledger_that_was_changed(clinic, tmp_path, change):
    altered(tmp_path / "clinic.db", change)
    page = tmp_path / "year.html"
    for words in ((), ("--json",), ("-o", page), ("--budget", "survey", "--year", "2019")):
        refusal = clinic("report", *words, code=2)
        assert refusal.startswith("psidp: no report was written: entry 2 is not what was written")
    assert not page.exists()
    with pytest.raises(psidp.errors.TamperedLedgerError):
        psidp.Ledger(tmp_path / "clinic.db").verified_statement()


def test_a_report_says_that_every_entry_was_verified(clinic, tmp_path):
    clinic("report", "-o", tmp_path / "year.html")
    for told in (clinic("report"), (tmp_path / "year.html").read_text()):
        assert "All 5 entries were verified." in told
    assert json.loads(clinic("report", "--json"))["verified"] == 5
    unchecked = psidp.Ledger(tmp_path / "clinic.db").statement()
    assert "Its entries were not verified." in ledger_report.to_markdown(unchecked)


def test_words_in_a_report_are_shown_and_never_acted_on(clinic, tmp_path):
    evil = "<script>alert(1)</script> | *x*"
    clinic("spend", "survey", "--psi", 0.1, "--purpose", evil, "--table", evil)
    clinic("report", "-o", tmp_path / "page.html")
    clinic("report", "-o", tmp_path / "page.md")
    assert "<script>" not in (tmp_path / "page.html").read_text() + (tmp_path / "page.md").read_text()


def test_requests_wait_in_a_list_and_can_be_denied(clinic):
    assert "No request waits." in clinic("list", "--waiting")
    clinic("request", "survey", "--psi", 0.6, "--purpose", "more", "--actor", "bob")
    assert "waits" in clinic("list", "--waiting")
    number = json.loads(clinic("list", "--waiting", "--json"))["waiting"][0]["id"]
    assert f"Request {number} of bob waits for an answer" in clinic("show", "survey")
    assert "must be approved by somebody else" in clinic("approve", number, "--purpose", "q", "--actor", "bob", code=2)
    assert "is denied" in clinic("deny", number, "--purpose", "ask for less", "--actor", "ann")
    assert "No request waits." in clinic("list", "--waiting")
    assert "needs no approval" in clinic("request", "survey", "--psi", 0.1, "--purpose", "small", code=2)
    assert "give --approval-above PSI, or --none" in clinic("limit", "survey", "--purpose", "a slip", code=2)
    assert "No spend of budget survey needs" in clinic("limit", "survey", "--none", "--purpose", "no more")


def test_whoever_approves_reads_what_is_asked(clinic):
    clinic("request", "survey", "--sensitivity", 1, "--sigma", 1.5, "--purpose", "more", "--actor", "bob")
    question = {"kind": "guarantee", "question": "count; of /data/visits.csv; where ward = '\x1b[2J\u202e'"}
    clinic("request", "survey", "--psi", 0.6, "--event", json.dumps(question), "--purpose", "q", "--actor", "bob")
    out = clinic("list", "--waiting")
    assert "Request 6 asks: gaussian, sensitivity 1.0, sigma 1.5." in out
    assert r"Request 7 asks: count; of /data/visits.csv; where ward = '\x1b[2J\u202e'." in out
    assert json.loads(clinic("list", "--waiting", "--json"))["waiting"][1]["asked"] == question["question"]
    told = " ".join(clinic("approve", 7, "--purpose", "agreed", "--actor", "ann").split())
    assert "It asks for psi 0.6: count; of /data/visits.csv" in told
    again = ("request", "survey", "--psi", 0.7, "--purpose", "q", "--event")
    for text in ("{", "[]", "7", '{"question": "q"}'):
        assert 'must be JSON with a "kind"' in clinic(*again, text, code=2)
    assert "must be spent at its price" in clinic(
        *again, '{"kind": "gaussian", "sensitivity": 1.0, "sigma": 9.0}', code=2
    )


def test_a_name_that_never_spent_is_mentioned_when_it_is_stopped(run, tmp_path):
    path = tmp_path / "ledger.db"
    run("ledger", "open", path, "survey", "--psi", 1, "--unit", "patient", "--purpose", "p")
    run("ledger", "spend", path, "survey", "--psi", 0.1, "--purpose", "q", "--actor", "bob")
    assert (
        "Nobody has spent here under the name 'bobb'."
        in run("ledger", "pause", path, "--person", "bobb", "--purpose", "has left")[2]
    )
    assert run("ledger", "pause", path, "--person", "bob", "--purpose", "has left")[2] == ""


def test_a_person_or_a_budget_is_stopped_and_goes_on(clinic):
    assert "paused for bob in survey" in clinic("pause", "--person", "bob", "--purpose", "has left")
    spend = ("spend", "survey", "--psi", 0.1, "--purpose", "q", "--actor")
    assert "is paused for 'bob'" in clinic(*spend, "bob", code=2)
    clinic(*spend, "cem")
    assert "paused for bob" in clinic("remaining", "survey")
    assert "paused for bob by" in clinic("show", "survey")
    assert "(paused for bob)" in clinic("show")
    clinic("resume", "--person", "bob", "--purpose", "is back")
    clinic("pause", "survey", "--purpose", "an audit")
    assert "survey (paused)" in clinic("show")
    assert "is paused;" in clinic(*spend, "bob", code=2)
    assert "paused already" in clinic("pause", "survey", "--purpose", "again", code=2)


def test_one_advice_for_a_closed_budget(clinic):
    clinic("close", "survey", "--purpose", "done")
    advice = "It is closed for good: to release more, open a new budget under another name."
    for words in (("remaining", "survey"), ("show", "survey")):
        assert advice in " ".join(clinic(*words).split())
    for words in (
        ("spend", "survey", "--psi", 0.1, "--purpose", "q"),
        ("open", "survey", "--psi", 1, "--purpose", "q"),
        ("raise", "survey", "--psi", 2, "--purpose", "q"),
    ):
        assert advice in clinic(*words, code=2)


def test_a_second_budget_of_the_same_unit_is_mentioned_and_a_script_may_run_again(clinic):
    again = ("open", "second", "--psi", 1, "--unit", "patient", "--purpose", "q", "--exist-ok")
    assert "The same patient is protected by survey" in clinic(*again)
    assert "as entry" in clinic(*again)
    assert "was opened with guarantee" in clinic("open", "second", "--psi", 2, "--purpose", "q", "--exist-ok", code=2)


def test_a_verification_goes_on_from_a_kept_file(clinic, tmp_path):
    where = ("--kept", tmp_path / "kept", "--key", tmp_path / "key")
    assert "All 5 entries are what was written" in clinic("verify", *where)
    assert "All entries after those that" in clinic("verify", *where)


def test_the_command_that_a_refused_release_prints_asks_for_exactly_that_release(run, clinic, tmp_path):
    (tmp_path / "staff.csv").write_text("patient_id,ward\n1,A\n2,B\n")
    question = ["release", "table", tmp_path / "staff.csv", "--unit-column", "patient_id", "--count", "--psi", 0.4]
    question += ["--ledger", tmp_path / "clinic.db", "--budget", "survey", "--purpose", "how many"]
    code, _, err = run(*question)
    assert code == 2
    words = shlex.split(err[err.index("psidp ledger request") :])[1:]
    assert run(*words)[0] == 0
    number = json.loads(clinic("list", "--waiting", "--json"))["waiting"][0]["id"]
    clinic("approve", number, "--purpose", "fine", "--actor", "ann")
    assert run(*[word if word != "--count" else "--units" for word in question])[0] == 2, "another question"
    assert run(*question)[0] == 0
    assert run(*question)[0] == 2, "used once"
    clinic("verify")


def test_a_refused_release_says_words_first_and_its_command_works_when_pasted_into_a_shell(run, clinic, tmp_path):
    (tmp_path / "staff.csv").write_text("patient_id,ward,job\n1,A,nurse\n2,B,it's\n")
    (tmp_path / "groups.csv").write_text("ward,job\nA,nurse\nB,it's $HOME `id`\n")
    question = ["release", "table", tmp_path / "staff.csv", "--unit-column", "patient_id", "--count", "--psi", 0.4]
    question += ["--by", "ward", "--by", "job", "--groups", tmp_path / "groups.csv", "--where", "job <> 'it''s'"]
    question += ["--ledger", tmp_path / "clinic.db", "--budget", "survey", "--purpose", "Ann's question"]
    code, _, err = run(*question)
    words, _, command = err.partition("\nAsk for it:\n")
    assert code == 2
    assert words.startswith("psidp: psi 0.4 of budget 'survey' needs somebody else's approval")
    assert 'by ward, job, 2 groups: A/nurse, B/"it\'s $HOME `id`"; of ' in words
    assert "sha256" not in words
    assert command.startswith(f"psidp ledger request {tmp_path / 'clinic.db'} survey --psi 0.4")
    assert """'"'"'""" not in command.partition("--event ")[2]
    pasted = subprocess.run(
        ["bash", "-c", f'psidp() {{ "{sys.executable}" -m psidp "$@"; }}\n{command}'], capture_output=True, text=True
    )
    assert pasted.returncode == 0, pasted.stderr
    waits = json.loads(clinic("list", "--waiting", "--json"))["waiting"][0]
    assert 'B/"it\'s $HOME `id`"; of ' in waits["asked"]
    clinic("approve", waits["id"], "--purpose", "fine", "--actor", "ann")
    assert run(*question)[0] == 0


def test_roles_are_printed_for_psql(run):
    code, out, _ = run("ledger", "roles")
    assert code == 0
    assert "CREATE TRIGGER psidp_entries_who" in out


def test_a_request_for_more_than_is_left_is_warned_of_on_the_command_line(run, tmp_path, clinic):
    asked = (tmp_path / "clinic.db", "survey", "--psi", 0.9, "--purpose", "again", "--actor", "bob")
    code, out, err = run("ledger", "request", *asked)
    assert (code, "Request 6 asks for psi 0.9" in out) == (0, True)
    assert err.startswith("psidp: Budget 'survey' has psi 0.842")
    assert "psi 0.9 is asked for: approved or not, it cannot be spent before the budget is raised or reset." in err
    code, out, err = run("ledger", "approve", tmp_path / "clinic.db", 6, "--purpose", "yes", "--actor", "ann", "--json")
    assert (code, err) == (0, "")
    assert "cannot be spent before" in json.loads(out)["warnings"][0]


def test_a_ledger_and_its_export_that_were_swapped_are_told_apart(run, clinic, tmp_path):
    export = tmp_path / "clinic.jsonl"
    clinic("export", "-o", export)
    before = export.read_bytes()
    code, _, err = run("ledger", "import", export, tmp_path / "clinic.db")
    assert code == 2
    assert f"FILE (what psidp ledger export wrote) must be lines of JSON, got '{tmp_path / 'clinic.db'}'" in err
    assert "psidp ledger import LEDGER FILE" in err
    assert export.read_bytes() == before
    export.write_bytes(before.replace(b"mean age", b"mean \xff\xfe ", 1))
    code, _, err = run("ledger", "import", tmp_path / "new.db", export)
    assert (code, "is not what was written" in err, "codec" in err) == (2, True, False)


@pytest.mark.parametrize(
    ("number", "what"),
    [
        (1, "entry 1 is a change of budget 'survey' (opened)"),
        (2, "entry 2 is a spend"),
        (4, "entry 4 is the approval of request 3"),
        (99, "no entry has that number"),
    ],
)
def test_an_entry_that_is_no_request_is_called_what_it_is(clinic, number, what):
    for command in ("approve", "deny"):
        refusal = clinic(command, number, "--purpose", "fine", "--actor", "ann", code=2)
        assert f"must be that of a request, got {number}: {what}. psidp ledger list --waiting" in refusal


def test_an_answer_is_called_an_answer(tmp_path, run):
    with psidp.Ledger(tmp_path / "answers.db") as ledger:
        ledger.open("survey", psi=1.0, purpose="a test", actor="ann")
        psidp.GaussianMechanism(1.0, 4.0, ledger=ledger, budget="survey").release(1.0, purpose="n", retry_key="k")
    err = run("ledger", "approve", tmp_path / "answers.db", 3, "--purpose", "fine", "--actor", "bob")[2]
    assert "got 3: entry 3 is the answer to entry 2. " in err


def test_in_a_pipe_a_list_is_as_wide_as_its_content(clinic, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    purpose = "departure delays by airport and airline, for the annual report " * 3
    clinic("spend", "survey", "--psi", 0.1, "--purpose", purpose.strip(), "--table", "flights.csv", "--actor", "bob")
    out = clinic("list")
    (line,) = [line for line in out.splitlines() if line.startswith(" 6 ")]
    assert "flights.csv" in line
    assert purpose.strip() in line
    assert "Together psi" in out.splitlines()[-1]
    assert out.splitlines()[-1].endswith("squares of psi add up.")


def test_on_a_terminal_a_list_keeps_to_its_width(clinic, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(tables.console, "_force_terminal", True)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", clinic("list")).splitlines()
    assert max(map(len, lines)) <= 60
