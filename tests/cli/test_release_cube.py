"""psidp release cube: the same tables as in Python, in a folder or as CSV, refused before anything is spent."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

import psidp
from psidp.cli.main import app, main
from psidp.cli.release_cube import _file
from psidp.cli.release_table import shown
from psidp.tables.answer import Answer
from psidp.tables.estimate import Estimate

ASKED = (
    "--rows-are-units --column ward:A,B --column month:1..3 --ordered wait:0,10,20,40 --psi 1 --mean wait:0:40 "
    "--quantiles wait:0.5,0.9:ward"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    dice = np.random.default_rng(8)
    frame = pd.DataFrame(
        {"who": dice.integers(0, 50, 500), "ward": dice.choice(["A", "B"], 500), "month": dice.integers(1, 4, 500)}
    ).assign(wait=dice.gamma(2.0, 8.0, 500))
    frame.to_parquet(tmp_path / "visits.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, ["release", "cube", "visits.parquet", *" ".join(words).split()])


def refused(capsys, monkeypatch, words):
    monkeypatch.setattr("sys.argv", ["psidp", "release", "cube", "visits.parquet", *words.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_a_folder_holds_a_file_for_each_table_and_the_cube_itself(folder):
    done = run(ASKED, "--up-to 2 -o tables")
    assert done.exit_code == 0, done.output
    names = sorted(path.name for path in (folder / "tables").iterdir())
    assert names[0] == "01-ward.csv"
    assert "04-ward-month.csv" in names
    assert names[-2:] == ["07-quantiles-wait-ward.csv", "cube.json"]
    cube = psidp.Cube.from_dict(json.loads((folder / "tables" / "cube.json").read_text()))
    with (folder / "tables" / "04-ward-month.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["value"]) for row in rows] == [row["value"] for row in cube.table("ward", "month")]
    assert "all tables together" in done.stderr


def test_tables_come_as_csv_where_nobody_watches_and_as_json_where_asked(folder):
    plain = run(ASKED, "--tables ward,month --tables ward,wait")
    assert plain.stdout.startswith("ward,month,statistic,value,standard_error,lower,upper,flag\nA,1,count,")
    assert json.loads(run(ASKED, "--tables ward,wait --json").stdout)["kind"] == "cube"


def test_a_plan_reads_and_spends_nothing_and_wanted_errors_name_their_price(folder):
    words = ASKED.replace("--psi 1", "")
    shown = run(words, "--error 1:5 --error ward,month:9 --error 2:20 --plan")
    assert "It would cost psi = " in shown.stdout
    assert "ward, month (6 cells): standard error of count 8.9" in shown.stdout or "count 9" in shown.stdout
    assert json.loads(run(ASKED, "--plan --json").stdout)["strategies"]["wait"].startswith("3 bins in order")


def test_a_ledger_pays_once_and_a_retry_costs_nothing(folder):
    with psidp.Ledger(folder / "ledger.db") as ledger:
        ledger.open("survey", psi=2.0, unit="patient", actor="Ann", purpose="test")
    words = (
        "--unit-column who --column ward:A,B --psi 1 --contribution auto --ledger ledger.db --budget survey --up-to 1"
    )
    first, again = (run(words, "--retry-key one") for _ in range(2))
    assert first.exit_code == again.exit_code == 0
    assert first.stdout == again.stdout
    assert "answered before" in again.stderr
    with psidp.Ledger(folder / "ledger.db") as ledger:
        assert ledger.remaining("survey").psi == pytest.approx(3**0.5, abs=1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("--rows-are-units --psi 1 --column wrd:A,B", "wrd"),
        ("--rows-are-units --psi 1 --column ward", "column:value"),
        ("--rows-are-units --psi 1 --column month:3..1", "count up"),
        ("--rows-are-units --psi 1 --column ward:A --column ward:B", "different columns"),
        ("--rows-are-units --psi 1 --bins wait:5,3", "'wait'"),
        ("--rows-are-units --psi 1 --column wait:1,2", "--bins or --ordered"),
        ("--rows-are-units --psi 1 --column ward:A --quantiles ward:0.5", "or --ordered"),
        ("--rows-are-units --psi 1 --bins wait:0,5,9 --quantiles wait:90", "got 'wait:90'. Write 0.9 for the 90th"),
        ("--rows-are-units --psi 1 --bins wait:0,5,9 --quantiles wait:half", "0.5,0.9"),
        ("--rows-are-units --psi 1 --up-to 1 --bins wait:0,5 --column ward:A,B --quantiles wait:0.5:ward", "together"),
        ("--rows-are-units --column ward:A,B --error 1:x", "must be a number"),
        ("--rows-are-units --column ward:A,B --error x", "columns:error"),
        ("--psi 1 --column ward:A,B", "--unit-column"),
        ("--rows-are-units --psi 1 --column ward:A,B -o full", "empty folder"),
        ("--rows-are-units --psi 1 --column ward:A,B --tables ward,moon", "moon"),
    ],
)  # fmt: skip
def test_bad_words_are_refused_with_what_to_do(folder, capsys, monkeypatch, change, words):
    (folder / "full").mkdir()
    (folder / "full" / "paid.csv").write_text("kept")
    assert words in refused(capsys, monkeypatch, change)
    assert (folder / "full" / "paid.csv").read_text() == "kept"


def test_a_value_that_a_comma_tore_in_two_is_told(folder):
    words = ["release", "cube", "visits.parquet", "--rows-are-units", "--psi", "1", "--plan", "--column"]
    told = [CliRunner().invoke(app, [*words, given]).stderr for given in ("ward:A,B, left", "ward:A, B, left")]
    assert ["' left' is a group;" in said for said in told] == [True, False]


def test_a_columns_name_leads_out_of_no_folder(folder):
    frame = pd.read_parquet("visits.parquet").rename(columns={"ward": "../../evil"})
    frame.to_parquet("visits.parquet")
    done = run("--rows-are-units --column ../../evil:A,B --psi 1 --up-to 1 -o tables")
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (folder / "tables").iterdir()) == ["01-______evil.csv", "cube.json"]


def test_keys_and_names_with_brackets_are_shown_as_they_are(folder):
    rows = (
        ("[/foo]", Estimate("count", 1.0, 1.0, 0.0, 2.0)),
        ("[bold]x", Estimate("mean of [red]", 1.0, 1.0, 0.0, 2.0)),
    )
    answer = Answer(("[b]ward",), tuple(((key,), e) for key, e in rows), psidp.Guarantee(1.0), 0.95, ())
    screen = Console(width=200, record=True, file=io.StringIO())
    screen.print(shown(answer))
    text = screen.export_text()
    assert all(word in text for word in ("[/foo]", "[bold]x", "mean of [red]", "[b]ward"))


def test_long_names_make_file_names_that_every_system_takes(folder):
    name = _file(7, ("\u6f22" * 60, "\u5b57" * 60, "x"))
    assert len(name.encode()) < 200
    assert name.startswith("07-\u6f22")


def test_a_word_that_stands_for_a_missing_value_is_one_in_a_cube(folder):
    (folder / "v.csv").write_text("who,ward\n" + "NA,A\n" * 300 + "7,A\n")
    words = "release cube v.csv --unit-column who --column ward:A,B --psi 1000 --contribution 400 --up-to 1"
    for more, rows in (("", 301), (" --missing NA", 1)):
        out = CliRunner().invoke(app, (words + more).split()).stdout
        assert float(next(csv.DictReader(io.StringIO(out)))["value"]) == pytest.approx(rows, abs=10)


def test_a_stored_cube_is_refused_before_it_is_paid_for_where_its_output_could_not_be_written(folder, monkeypatch):
    with psidp.Curator("visits.parquet", "who") as curator:
        question = curator.cube({"ward": ["A", "B"]}, psidp.ask.up_to(1))
        (folder / "question.json").write_text(question.to_json())
    (folder / "full").mkdir()
    (folder / "full" / "cube.json").write_text("kept")
    monkeypatch.setattr(psidp.tables.cube.CubeQuestion, "release", None)
    words = ["release", "run", "question.json", "visits.parquet", "--unit-column", "who", "--psi", "1"]
    for more, message in [
        (["-o", "full"], "empty folder"), (["--figure", "x.svg"], "option of a table"), (["--round"], "option of a"),
        (["--sql", "--plan"], "option of a table"),
    ]:  # fmt: skip
        done = CliRunner().invoke(app, [*words, *more])
        assert isinstance(done.exception, ValueError)
        assert message in str(done.exception)
    assert (folder / "full" / "cube.json").read_text() == "kept"
    assert CliRunner().invoke(app, [*words, "--plan"]).exit_code == 0
    for strange in ("[1]", '{"form": "psidp-question-1", "asks": [], "derived": {}, "layout": {"kind": "tree"}}'):
        (folder / "question.json").write_text(strange)
        assert isinstance(CliRunner().invoke(app, words).exception, ValueError)
