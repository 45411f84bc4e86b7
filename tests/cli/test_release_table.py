"""psidp release table on the command line: answers, plans, ledgers, engines and refusals."""

import csv
import io
import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from psidp import Ledger
from psidp.cli import main, release_table


@pytest.fixture
def psidp(monkeypatch, capsys):
    """Run the command: exit code, standard output, standard error."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["psidp", "release", "table", *map(str, words)])
        with pytest.raises(SystemExit) as exit:
            main.main()
        out, err = capsys.readouterr()
        return exit.value.code or 0, out, err

    return run


@pytest.fixture
def files(tmp_path):
    """visits.parquet, wards.csv and a ledger with a budget."""
    rows = [{"patient_id": n % 40, "ward": "AB"[n % 2], "cost": float(n), "age": n % 90} for n in range(200)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "visits.parquet")
    (tmp_path / "wards.csv").write_text("ward\nA\nB\nC\n")
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open("survey", psi=1.0, kappa=1e-6, unit="patient", actor="Ann", purpose="test")
    ledger.dispose()
    return tmp_path


def test_a_plan_under_a_retry_key_says_that_the_stored_answer_costs_nothing(psidp, files):
    paid = [
        "--unit-column",
        "patient_id",
        "--count",
        "--psi",
        0.9,
        "--ledger",
        files / "ledger.db",
        "--budget",
        "survey",
    ]
    assert psidp(files / "visits.parquet", *paid, "--retry-key", "k")[0] == 0
    code, out, _ = psidp(files / "visits.parquet", *paid, "--retry-key", "k", "--plan")
    assert (code, "comes again and costs nothing" in out, "refused: " in out) == (0, True, False)
    code, out, _ = psidp(files / "visits.parquet", *paid, "--retry-key", "another", "--plan")
    assert "less than this release needs: it would be refused" in out


def test_the_line_of_the_help_works(psidp, files):
    words = [
        "--unit-column",
        "patient_id",
        "--count",
        "--sum",
        "cost:0:5000",
        "--by",
        "ward",
        "--groups",
        files / "wards.csv",
    ]
    paid = ["--psi", 0.2, "--ledger", files / "ledger.db", "--budget", "survey"]
    code, out, err = psidp(files / "visits.parquet", *words, *paid, "--actor", "ann")
    assert code == 0
    assert Ledger(files / "ledger.db").list()[0].details()["by"] == "ann"
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["ward"], row["statistic"]) for row in rows][:3] == [
        ("A", "count"),
        ("A", "sum of cost"),
        ("B", "count"),
    ]
    assert "Budget 'survey' has psi = 0.979795 left." in err
    code, out, err = psidp(files / "visits.parquet", *words, *paid[2:], "--psi", 3)
    assert (code, out) == (2, "")
    assert "this release needs 3" in err


def test_another_unit_than_the_budgets_needs_words_which_show_tells(psidp, files, monkeypatch, capsys):
    asked = [files / "visits.parquet", "--count", "--psi", 0.1, "--ledger", files / "ledger.db", "--budget", "survey"]
    code, out, err = psidp(*asked, "--rows-are-units")
    assert (code, out) == (2, "")
    assert "every row would count as one patient" in " ".join(err.split())
    assert psidp(*asked, "--unit-column", "patient_id")[0] == 0
    code, out, err = psidp(*asked, "--unit-column", "age")
    assert (code, out) == (2, "")
    assert "must be 'patient_id' for budget 'survey', as entry 2 says, got unit='age'" in " ".join(err.split())
    assert psidp(*asked, "--unit-column", "age", "--same-unit", "each has an age of their own")[0] == 0
    assert psidp(*asked, "--rows-are-units", "--same-unit", "one row each")[0] == 0
    monkeypatch.setattr(sys, "argv", ["psidp", "ledger", "show", str(files / "ledger.db"), "survey"])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main.main()
    shown = " ".join(capsys.readouterr().out.split())
    for line in (
        "entry 2 column patient_id names each patient",
        "entry 4 column age names each patient, the same as column patient_id names: each has an age of their own",
        "entry 6 every row is one patient, the same as column patient_id names: one row each",
    ):
        assert line in shown
    Ledger(files / "ledger.db").verify()


def test_a_csv_file_is_read_by_use_or_by_declared_types(psidp, files):
    lines = [f"{n},{n % 3},{n % 90}" for n in range(180)]
    (files / "v.csv").write_text("\n".join(["patient_id,floor,age", *lines, '180,"0,7', "181,n/a,n/a"]) + "\n")
    words = [
        "--unit-column",
        "patient_id",
        "--count",
        "--mean",
        "age:0:90",
        "--by",
        "floor",
        "--groups",
        "0,1,2",
        "--psi",
        1e6,
    ]
    for more in ([], ["--type", "floor:int64", "--type", "age:float64"]):
        code, out, _ = psidp(files / "v.csv", *words, *more, "--where", "age >= 45")
        assert code == 0
        rows = [float(row["value"]) for row in csv.DictReader(io.StringIO(out))]
        assert [round(value, 1) for value in rows] == [30.0, 66.0, 30.0, 67.0, 30.0, 68.0]


def test_a_plan_shows_sql_and_spends_nothing(psidp, files):
    words = [
        files / "visits.parquet",
        "--unit-column",
        "patient_id",
        "--count",
        "--by",
        "ward",
        "--groups",
        "A,B",
        "--psi",
        0.5,
    ]
    code, out, _ = psidp(*words, "--plan", "--sql", "--ledger", files / "ledger.db", "--budget", "survey")
    assert code == 0
    assert "GROUP BY" in out
    assert "sigma 2.02031, standard error 2.02" in out  # 2 % of psi^2 measure what clipping takes
    words += ["--clipping-share", 0]
    assert json.loads(psidp(*words, "--plan", "--json")[1])["expected"][0]["sigma"] == pytest.approx(2.0)
    ledger = Ledger(files / "ledger.db")
    assert [entry.state for entry in ledger.entries()] == ["opened"]
    ledger.dispose()


def test_every_aggregate_has_its_flag(psidp, files):
    flags = ["--units", "--mean", "cost:0:200", "--variance", "cost:0:200", "--deviation", "cost:0:200"]
    flags += ["--histogram", "age:0,30,60,90", "--quantiles", "age:0,30,60,90:0.5", "--where", "age >= 10"]
    terms = ["--unit-column", "patient_id", "--psi", 5, "--contribution", "auto", "--json", "--output", files / "a.csv"]
    code, out, _ = psidp(files / "visits.parquet", *flags, *terms)
    assert code == 0
    assert len(json.loads(out)["rows"]) == 8
    assert (files / "a.csv").read_text().startswith("statistic,value,standard_error,lower,upper,flag\n")
    code, out, _ = psidp(
        files / "visits.parquet", "--rows-are-units", "--count", "--psi", 1, "--adjacency", "replace-one", "--json"
    )
    assert json.loads(out)["guarantee"] == {"psi": 1.0, "kappa": 0.0, "adjacency": "replace-one", "unit": "record"}
    code, out, _ = psidp(
        files / "visits.parquet",
        "--unit-column",
        "patient_id",
        "--units",
        "--by",
        "ward",
        "--private-groups",
        "1e-9:2",
        "--psi",
        3,
    )
    assert code == 0


REFUSED = {
    "no unit": (["--count", "--psi", 1], "--rows-are-units"),
    "no bounds": (["--unit-column", "patient_id", "--sum", "cost", "--psi", 1], "column:lower:upper"),
    "bounds of words": (["--unit-column", "patient_id", "--sum", "cost:a:b", "--psi", 1], "must be a number"),
    "bounds reversed": (["--unit-column", "patient_id", "--sum", "cost:5:0", "--psi", 1], "lower < upper"),
    "both kinds of keys": (
        [
            "--unit-column",
            "patient_id",
            "--count",
            "--by",
            "ward",
            "--groups",
            "A",
            "--private-groups",
            "1e-9:2",
            "--psi",
            1,
        ],
        "not both",
    ),
    "half a private key": (
        ["--unit-column", "patient_id", "--count", "--by", "ward", "--private-groups", "1e-9", "--psi", 1],
        "kappa:at_most",
    ),
    "edges": (["--unit-column", "patient_id", "--histogram", "age", "--psi", 1], "column:edge"),
    "psi": (["--unit-column", "patient_id", "--count", "--psi", "nan"], "got psi=nan"),
    "output": (["--unit-column", "patient_id", "--count", "--psi", 1, "--output", "x.doc"], ".csv"),
    "budget alone": (["--unit-column", "patient_id", "--count", "--psi", 1, "--budget", "x"], "given together"),
    "engine": (["--unit-column", "patient_id", "--count", "--psi", 1, "--engine", "oracle://x"], "engine must be"),
    "no type": (
        ["--unit-column", "patient_id", "--count", "--psi", 1, "--type", "age"],
        "column:type, such as age:int64",
    ),
    "type of a typed column": (
        ["--unit-column", "patient_id", "--count", "--psi", 1, "--type", "age:int64"],
        "types must name",
    ),
    "percent": (
        ["--unit-column", "patient_id", "--quantiles", "age:0,5,90:90", "--psi", 1],
        "got at=[90.0]. Write 0.9 for the 90th percentile.",
    ),
    "percent sign": (
        ["--unit-column", "patient_id", "--quantiles", "age:0,5,90:90%", "--psi", 1],
        "got '90%' in 'age:0,5,90:90%'. Write 0.9 for the 90th percentile.",
    ),
    "no quantile": (["--unit-column", "patient_id", "--quantiles", "age:auto", "--psi", 1], "fee:auto:0.9"),
    "a list for two columns": (
        ["--unit-column", "patient_id", "--count", "--by", "ward", "--by", "age", "--groups", "A,B", "--psi", 1],
        "whose first line is ward,age, and each other line a group",
    ),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_a_refusal_is_a_sentence_and_exit_code_two(psidp, files, case):
    words, said = REFUSED[case]
    code, out, err = psidp(files / "visits.parquet", *words)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def test_weights_share_psi_between_the_statistics(psidp, files):
    asked = [files / "visits.parquet", "--unit-column", "patient_id", "--count", "--units", "--psi", 1, "--plan"]
    code, out, _ = psidp(*asked, "--weight", "count:3", "--json")
    assert code == 0
    count, units = (found["psi"] for found in json.loads(out)["expected"])
    assert count**2 == pytest.approx(3 * units**2, rel=0.05)  # clipping of counts is measured besides
    for wrong in ("mean:2", "count", "count:x"):
        code, _, err = psidp(*asked, "--weight", wrong)
        assert code == 2
        assert "must be" in err


def test_a_bar_is_drawn_while_somebody_watches(psidp, files, monkeypatch):
    real = release_table.Console
    monkeypatch.setattr(release_table, "Console", lambda stderr: real(stderr=stderr, force_terminal=True))
    code, _, err = psidp(files / "visits.parquet", "--unit-column", "patient_id", "--count", "--psi", 1)
    assert code == 0
    assert "the engine counts" in err


def test_answers_come_as_one_publishes_them(psidp, files):
    """Whole counts of groups that are not small, in a document of each kind, and a picture beside it."""
    asked = [files / "visits.parquet", "--unit-column", "patient_id", "--count", "--by", "ward", "--contribution", 5]
    asked += [
        "--groups",
        files / "wards.csv",
        "--psi",
        50,
        "--suppress-below",
        10,
        "--whole",
        "--non-negative",
        "--round",
    ]
    for name in ("a.csv", "a.md", "a.tex", "a.xlsx"):
        code, _, err = psidp(*asked, "--output", files / name, "--figure", files / "a.svg")
        assert code == 0
        assert "1 of 3 groups, whose noisy count is below 10, were left out (C)" in err
        assert (files / name).stat().st_size > 50
    assert "| A | 100.00 (99.00 to 101.00)" in (files / "a.md").read_text()
    assert (files / "a.svg").read_text().startswith("<svg")
    for wrong in (["--output", "a.doc"], ["--figure", "a.gif"], ["--suppress-below", "nan"]):
        code, out, err = psidp(*asked, *wrong)
        assert (code, out) == (2, "")
        assert "must be" in err
    code, _, err = psidp(files / "visits.parquet", "--rows-are-units", "--mean", "cost:0:9", "--psi", 1, "--whole")
    assert code == 2
    assert "must have counts" in err


def test_a_plan_says_what_it_costs_first_and_names_the_budget(psidp, files):
    asked = [files / "visits.parquet", "--unit-column", "patient_id", "--count", "--plan"]
    paid = ["--ledger", files / "ledger.db", "--budget", "survey"]
    code, out, _ = psidp(*asked, *paid, "--psi", 0.2)
    assert code == 0
    assert "Budget 'survey' has psi = 1 left, enough for this release." in out
    assert "SELECT" not in out
    assert "Add --sql to see the SQL that would run." in out
    _, out, _ = psidp(*asked, *paid, "--psi", 0.2, "--sql")
    assert out.index("It would cost psi = 0.2") < out.index("-- query 1 of 1") < out.index("WITH")
    code, _, err = psidp(*asked[:-1], *paid, "--psi", 0.2, "--sql")
    assert (code, "--sql must come with --plan" in err) == (2, True)
    _, out, _ = psidp(*asked, *paid, "--psi", 1.2)
    assert "less than this release needs: it would be refused." in out


def test_months_and_conditions_are_written_on_the_command_line(psidp, files):
    lines = ["who,at,ward"] + [f"{n},2026-{1 + n % 3:02d}-11 10:00:00,{'AB'[n % 2]}" for n in range(60)]
    (files / "v.csv").write_text("\n".join(lines) + "\n")
    asked = [files / "v.csv", "--unit-column", "who", "--count", "--psi", 1e6]
    code, out, _ = psidp(
        *asked, "--by", "ward", "--by", "month(at) as m", "--groups", "A,B", "--where", "ward in ('A', 'B')"
    )
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["m"] for row in rows] == 2 * [str(m) for m in range(1, 13)]
    assert [round(float(row["value"])) for row in rows] == 2 * [10, 10, 10, *[0] * 9]


def test_a_public_table_is_joined_on_the_command_line(psidp, files):
    (files / "regions.csv").write_text("ward,region\nA,north\nB,south\n")
    asked = [files / "visits.parquet", "--unit-column", "patient_id", "--count", "--by", "region", "--psi", 1e6]
    code, out, _ = psidp(*asked, "--contribution", 5, "--join", f"{files / 'regions.csv'}:ward")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["region"], round(float(row["value"]))) for row in rows] == [("north", 100), ("south", 100)]
    code, _, err = psidp(*asked, "--join", "regions.csv")
    assert code == 2
    assert "must be file:column" in err


def test_blanks_around_keys_are_no_part_of_them_and_a_plan_names_the_first(psidp, files):
    asked = [files / "visits.parquet", "--unit-column", "patient_id", "--count", "--contribution", 5, "--psi", 1e6]
    code, out, _ = psidp(*asked, "--by", "ward", "--groups", "A, B")
    assert code == 0
    assert [(row["ward"], round(float(row["value"]))) for row in csv.DictReader(io.StringIO(out))] == [
        ("A", 100),
        ("B", 100),
    ]
    _, out, _ = psidp(*asked, "--by", "ward", "--groups", "A, B", "--plan")
    assert "2 public groups ('A', 'B'); those absent" in " ".join(out.split())


def test_a_key_with_a_comma_stands_in_quotes(psidp, files):
    asked = [files / "visits.parquet", "--unit-column", "patient_id", "--count", "--psi", 1, "--by", "ward"]
    code, out, _ = psidp(*asked, "--groups", 'A, "B, left"')
    assert code == 0
    assert [row["ward"] for row in csv.DictReader(io.StringIO(out))] == ["A", "B, left"]
    for where in ([], ["--plan"]):
        _, _, err = psidp(*asked, "--groups", "A,B, left", *where)
        assert "' left' is a group; a key with a comma stands in quotes, such as \"B, left\"." in err
    for plain in ("A, B, left", "A,B,left", 'A,"B, left"', 'A, "B, left", C', "A", '"A", B'):
        assert "of its own" not in psidp(*asked, "--groups", plain, "--plan")[2]
    code, out, err = psidp(*asked, "--groups", 'A,"B, left')
    assert (code, out) == (2, "")
    assert "must close the quotes that they open" in " ".join(err.split())


def test_groups_of_several_columns_stand_in_a_file_with_their_names(psidp, files):
    (files / "g.csv").write_text("age,ward\n3,A\n4,B\n")
    asked = [
        files / "visits.parquet",
        "--unit-column",
        "patient_id",
        "--count",
        "--by",
        "ward",
        "--by",
        "age",
        "--psi",
        1,
    ]
    code, out, _ = psidp(*asked, "--groups", files / "g.csv")
    assert code == 0
    assert [(row["ward"], row["age"]) for row in csv.DictReader(io.StringIO(out))] == [("A", "3"), ("B", "4")]


def test_whole_numbers_are_counted_up_in_a_list_of_groups(psidp, files):
    asked = [files / "visits.parquet", "--unit-column", "patient_id", "--count", "--contribution", 5, "--psi", 1e6]
    code, out, _ = psidp(*asked, "--by", "age", "--groups", "3..5")
    assert code == 0
    assert [row["age"] for row in csv.DictReader(io.StringIO(out))] == ["3", "4", "5"]
    code, out, err = psidp(*asked, "--by", "age", "--groups", "5..3")
    assert (code, out) == (2, "")
    assert "must count up, such as 1..12" in " ".join(err.split())


def test_a_misspelled_column_is_named_with_the_one_that_was_meant(psidp, files):
    words = ["--unit-column", "patient_id", "--count", "--psi", 0.2]
    code, _, err = psidp(files / "visits.parquet", *words, "--by", "wrad", "--groups", "A,B")
    assert code == 2
    assert "must be a column of the table (patient_id, ward, cost, age), got 'wrad'. Did you mean 'ward'?" in err
    code, _, err = psidp(files / "visits.parquet", *words, "--mean", "costs:0:9")
    assert "Did you mean 'cost'?" in err
    code, _, err = psidp(files / "visits.parquet", *words, "--by", "xyzzy", "--groups", "A,B")
    assert "got 'xyzzy'." in err
    assert "Did you mean" not in err


def test_a_single_group_that_looks_like_a_range_is_warned_of_in_the_plan(psidp, files):
    (files / "v.csv").write_text("who,month\n1,2\n2,3\n")
    words = ["--unit-column", "who", "--count", "--psi", 0.2, "--plan", "--by", "month", "--groups"]
    code, out, _ = psidp(files / "v.csv", *words, "1-12")
    assert code == 0
    assert "Warning: '1-12' is one group; the numbers from 1 to 12 are 1..12." in out
    for groups in ("1..12", "0-17,18-64"):
        assert "Warning" not in psidp(files / "v.csv", *words, groups)[1]
    assert psidp(files / "v.csv", *words, "1-12", "--type", "month:int64")[0] == 2
