"""A budget pays only for an answer that is stored and printed: every pair of measure, groups, output and the rest."""

from decimal import Decimal
from itertools import combinations, product

import pyarrow as pa
import pyarrow.parquet as pq

import psidp
from fuzz.payments import FACTORS, pay
from psidp import Curator, PrivateGroups, ask
from psidp.errors import EngineError
from psidp.tables import table
from psidp.tables.table import TableQuestion


def pairwise(factors):
    """Rows in which every two choices of different factors occur together; each takes the most of what is left."""
    names = sorted(factors, key=lambda name: -len(factors[name]))
    left = {pair for a, b in combinations(names, 2) for pair in product(_of(factors, a), _of(factors, b))}
    while left:
        row = dict(min(left))
        for name in names:
            if name not in row:
                row[name] = max(factors[name], key=lambda choice: len(left & _pairs(names, {**row, name: choice})))
        left -= _pairs(names, row)
        yield {name: row[name] for name in factors}


def _of(factors, name):
    return [(name, choice) for choice in factors[name]]


def _pairs(names, row):
    """The pairs of choices in a row."""
    return set(combinations([(name, row[name]) for name in names if name in row], 2))


def test_a_budget_pays_only_for_an_answer_that_is_stored_and_printed():
    rows = list(pairwise(FACTORS))
    answered = sum(map(pay, rows))
    assert answered > len(rows) / 4, f"only {answered} of {len(rows)} were answered"


def test_private_groups_of_long_decimals_keep_every_digit(tmp_path):
    """Arithmetic on decimals rounds to 28 digits: two groups became one, and a whole number ended the release."""
    for kind, texts in (
        ((38, 35), [f"111.{'0' * 34}{n}" for n in (1, 2)]),
        ((38, 0), [f"{10**37 + n}" for n in (1, 2)]),
    ):
        values = [Decimal(text) for text in texts]
        frame = pa.table({"who": range(400), "price": pa.array(values * 200, pa.decimal128(*kind))})
        groups = PrivateGroups(kappa=1e-9, at_most=1)
        answer = Curator(frame, "who").ask(ask.count(), by="price", groups=groups).release(psi=100.0)
        assert [key for key, _ in answer.rows] == [(value,) for value in values]
        assert [round(e.value) for _, e in answer.rows] == [200, 200]


def test_a_letter_that_no_figure_can_show_does_not_end_the_process(tmp_path):
    frame = pa.table({"w\x01": ["A\x1b", "B\uffff"] * 5})
    answer = Curator(frame, None).ask(ask.count(), by="w\x01", groups=["A\x1b", "B\uffff"]).release(psi=1.0)
    assert "A\N{SET MINUS}x1b" in psidp.figures.save(answer.figure(), tmp_path / "f.svg").read_text()


def test_what_fails_in_showing_leaves_the_answer_and_says_how_to_have_it_again(tmp_path, run, monkeypatch):
    """Another process may take the folder away meanwhile: the answer is on standard output, and under its key."""
    pq.write_table(pa.table({"who": range(40)}), tmp_path / "rows.parquet")
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("b", psi=10.0, unit="who", purpose="a test")
    (tmp_path / "folder").mkdir()
    release = TableQuestion.release

    def interfered(*arguments, **terms):
        answer = release(*arguments, **terms)
        (tmp_path / "folder").rmdir()
        return answer

    words = ["release", "table", tmp_path / "rows.parquet", "--unit-column", "who", "--count", "--psi", 1]
    words += ["--ledger", tmp_path / "ledger.db", "--budget", "b"]
    monkeypatch.setattr(TableQuestion, "release", interfered)
    code, out, err = run(*words, "--output", tmp_path / "folder" / "a.md")
    monkeypatch.undo()
    assert code == 2
    assert out.startswith("statistic,value")
    key = err.partition("--retry-key ")[2].split()[0]
    before = ledger.remaining("b")
    assert run(*words, "--retry-key", key)[1] == out
    assert ledger.remaining("b") == before


def test_a_spend_whose_release_fails_says_that_no_answer_is_stored(tmp_path, run, monkeypatch):
    pq.write_table(pa.table({"who": range(40)}), tmp_path / "rows.parquet")
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("b", psi=10.0, unit="who", purpose="a test")
    words = ["release", "table", tmp_path / "rows.parquet", "--unit-column", "who", "--count", "--psi", 1]
    words += ["--ledger", tmp_path / "ledger.db", "--budget", "b"]

    def broken(*_):
        raise EngineError("duckdb", "a fault")

    monkeypatch.setattr(table, "_rows", broken)
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert "Entry 2 of budget 'b' stays spent, and no answer is stored." in err
    assert [entry.state for entry in ledger.entries()] == ["opened", "spent", "interrupted"]


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_paid_for(tmp_path, run):
    pq.write_table(pa.table({"who": range(40)}), tmp_path / "rows.parquet")
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("b", psi=10.0, unit="who", purpose="a test")
    (tmp_path / "a.csv").mkdir()
    long = tmp_path / f"{'a' * 300}.csv"
    table = ["release", "table", tmp_path / "rows.parquet", "--unit-column", "who", "--count", "--psi", 1]
    column = ["release", "column", tmp_path / "rows.parquet", "--sensitivity", 1, "--psi", 1, "--purpose", "a test"]
    cube = ["release", "cube", tmp_path / "rows.parquet", "--rows-are-units", "--column", "who:1,2", "--psi", 1]
    paid = ["--ledger", tmp_path / "ledger.db", "--budget", "b"]
    for words in (
        [*table, "-o", tmp_path / "a.csv"], [*table, "-o", long], [*table, "--figure", tmp_path / "none" / "f.svg"],
        [*table, "-o", tmp_path / ".xlsx"], [*cube, "-o", tmp_path / ("a" * 300)],
        [*column, "-o", tmp_path / "a.csv"], [*column, "-o", long],
        [*cube, "--bins", "who:0,1,2", "--no-count", "--sum", "who:0:1", "--quantiles", "who:0.5"],
    ):  # fmt: skip
        assert run(*words, *paid)[0] == 2
    assert [entry.state for entry in ledger.entries()] == ["opened"]
    left = {file.name for file in tmp_path.iterdir() if not file.name.startswith("ledger.db")}
    assert left == {"a.csv", "rows.parquet"}
