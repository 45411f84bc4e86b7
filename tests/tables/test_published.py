"""Answers as one publishes them: the digits that noise leaves, groups of few left out, tables and pictures."""

import builtins
import random
from math import inf, log10, nan

import pyarrow as pa
import pytest

import psidp
from psidp import Curator, Guarantee, ask
from psidp.errors import MissingExtraError
from psidp.tables.answer import Answer
from psidp.tables.estimate import Estimate
from psidp.tables.notes import Note


def answer(*estimates, by=("ward",), keys=None):
    rows = tuple(((keys or "ABCDEFGH")[i],) if by else () for i in range(len(estimates)))
    return Answer(
        by,
        tuple(zip(rows, estimates, strict=True)),
        Guarantee(0.5, unit="patient"),
        0.95,
        (Note("asked", "Asked: count."),),
    )


def number(value, error, statistic="count", flag=""):
    counts = "rows" if statistic == "count" else ""
    return Estimate(statistic, value, error, value - 1.96 * error, value + 1.96 * error, flag, counts)


@pytest.mark.parametrize(
    ("value", "error", "shown", "its_error"),
    [
        (123456.7, 234.0, 123460.0, 240.0),
        (123456.7, 337.0, 123460.0, 340.0),
        (123456.7, 134.0, 123460.0, 140.0),
        (0.123456, 0.0031, 0.1235, 0.0031),
        (-17.26, 1.0, -17.3, 1.0),
        (-0.4, 30.0, 0.0, 30.0),
        (5.0, inf, 5.0, inf),
        (5.0, 0.0, 5.0, 0.0),
    ],
)
def test_numbers_keep_the_digits_that_their_noise_leaves(value, error, shown, its_error):
    made = answer(Estimate("count", value, error, value - error, value + error)).rounded()
    ((_, e),) = made.rows
    if 0 < error < inf:
        assert (e.value, e.standard_error) == (shown, its_error)
        assert str(e.value) == str(shown)
    assert str(made.notes[-1]).startswith("rounded: ")


def test_rounding_adds_little_to_the_error_and_intervals_only_grow():
    dice = random.Random(7)
    for _ in range(2000):
        error = 10 ** dice.uniform(-9, 9)
        before = number(dice.gauss(0, 1) * 10 ** dice.uniform(-9, 9), error)
        ((_, after),) = answer(before).rounded().rows
        assert abs(after.value - before.value) <= 0.051 * error * (1 + 1e-9) or abs(before.value) > 1e13 * error
        assert after.lower <= before.lower
        assert after.upper >= before.upper
        assert after.standard_error >= before.standard_error
        assert abs(log10(after.standard_error / error)) < 0.05
        ((_, again),) = answer(after).rounded().rows
        assert again.value == pytest.approx(after.value, abs=0.51 * error)


def test_a_quantile_without_a_standard_error_is_rounded_by_its_interval():
    ((_, e),) = answer(Estimate("median", 12.3456, nan, 10.1, 14.9)).rounded().rows
    assert (e.value, e.lower, e.upper) == (12.3, 10.1, 14.9)
    assert e.standard_error != e.standard_error


def test_groups_of_few_are_left_out_by_their_noisy_count_and_named():
    rows = [number(9.9, 3.0), number(10.0, 3.0), number(-2.0, 3.0)]
    means = [number(5.0, 1.0, "mean of cost") for _ in rows]
    pairs = tuple((("ABC"[i],), e) for i in range(3) for e in (rows[i], means[i]))
    given = Answer(("ward",), pairs, Guarantee(0.5), 0.95, ())
    made = given.suppressed(below=10)
    assert [(key, e.statistic) for key, e in made.rows] == [(("B",), "count"), (("B",), "mean of cost")]
    assert "2 of 3 groups, whose noisy count is below 10, were left out (A, C)" in str(made.notes[-1])
    for below in (0, -1, nan, inf):
        with pytest.raises(ValueError, match=r"below .* must be in"):
            given.suppressed(below=below)
    with pytest.raises(ValueError, match="must hold a count or units"):
        answer(means[0]).suppressed(below=10)


ODD = "a|b*_<i>&%$#{}\\~^"


def test_tables_hold_the_numbers_and_no_markup_of_keys():
    given = answer(number(1234.5, 30.0), number(7.0, 3.0, flag="noise"), keys=["A", ODD])
    markdown = given.rounded().markdown()
    lines = markdown.splitlines()
    assert lines[:3] == ["| ward | count |", "| --- | ---: |", "| A | 1,234 (1,175 to 1,294) |"]
    assert "\\|b\\*\\_\\<i\\>" in lines[3]
    assert lines[3].endswith("7.0 (1.1 to 12.9) n |")
    assert "psi = 0.5 (add-remove, per patient)" in markdown
    assert "n: the count behind this number" in markdown
    assert "rounded: numbers were rounded" in markdown
    latex = given.latex()
    assert (
        r"a\textbar{}b{*}\_\textless{}i\textgreater{}\&\%\$\#\{\}\textbackslash{}\textasciitilde{}\textasciicircum{}"
        in latex
    )
    assert "1,234 (1,175 to 1,294)" in latex
    assert latex.count(r"\\") == 3
    many = answer(*(number(float(i), 1.0, f"bin {i}") for i in range(6)), by=(), keys="ABCDEF")
    assert "| statistic | value |" in many.markdown()


def test_documents_say_what_makes_the_numbers_true_and_nothing_of_budgets(tmp_path):
    """A mean is that of values inside its bounds: whoever publishes it without them publishes something else."""
    rows = "".join(f"{n % 300},{'ABC'[n % 3]},{n % 50},{n % 50}\n" for n in range(3000))
    (tmp_path / "v.csv").write_text("who,ward,cost,days\n" + rows)
    with psidp.Ledger(tmp_path / "l.db") as ledger:
        ledger.open("survey", psi=50.0, unit="patient", purpose="a survey")
        curator = Curator(tmp_path / "v.csv", "who", ledger=ledger, budget="survey")
        asks = [
            ask.mean("cost", 0, 40), ask.mean("days", bounds="auto"), ask.quantiles("cost", [0, 20, 40], at=[0.5]),
            ask.ratio(ask.sum("cost", 0, 30), ask.count()), ask.weighted_sum("cost", 0, 20, weights="days", most=9),
        ]  # fmt: skip
        answer = curator.ask(*asks, by="ward", groups=["A", "B"], where="days < 45", contribution=2).release(psi=8.0)
    chosen = next(note.text for note in answer.notes if note.text.startswith("mean of days: bounds ["))
    took = next(
        note.text
        for note in answer.notes
        if note.text.startswith("mean of cost: one patient adds at most 2 rows' worth")
    )
    for text in (answer.markdown().replace("\\", ""), answer.latex().replace("\\", "")):
        text = (
            text.replace("textasciicircum{}", "^")
            .replace("{[}", "[")
            .replace("{]}", "]")
            .replace("textless{}", "<")
            .replace("char34{}", '"')
        )
        for said in (
            "holds it with chance 0.95 over that noise. psi = 8 (add-remove, per patient).", chosen, took,
            "by ward where days < 45.", "mean of cost: 'cost' below 0 counts as 0, above 40 as 40.",
            "quantiles of cost: values below 0 or above 40 count in the end bins.",
            "ratio of sum of cost to count: 'cost' below 0 counts as 0, above 30 as 30.",
            "'cost' below 0 counts as 0, above 20 as 20; 'days' below 0 counts as 0, above 9 as 9.",
            "'cost' has no type of its own and is read as numbers; values that cannot be parsed are missing.",
        ):  # fmt: skip
            assert said in text
        for left_out in ("Budget", "psi^2 goes into", "What one patient adds", "Declare its type", 'Flag "', "public"):
            assert left_out not in text


def test_a_mean_that_noise_drove_to_a_bound_is_named():
    rows = pa.table({"who": range(40), "ward": ["A"] * 40, "v": [5.0] * 40})
    answers = [
        Curator(rows, "who").ask(ask.mean("v", 0, 10), by="ward", groups=["A", None, "C"]).release(psi=0.01)
        for _ in range(12)  # about one value in two lies at a bound
    ]
    told = [
        [note.text for note in answer.notes if "the value lies at one of its bounds" in note.text] for answer in answers
    ]
    at = [["NULL" if row["ward"] is None else row["ward"] for row in answer if row["value"] in (0.0, 10.0)]
          for answer in answers]  # fmt: skip
    assert any(at)
    for notes, groups in zip(told, at, strict=True):
        assert [f"in {len(groups)} of 3 groups ({', '.join(groups)})" in note for note in notes] == [True] * bool(
            groups
        )
    sure = Curator(rows, "who").ask(ask.mean("v", 0, 10)).release(psi=1e6)
    assert not any("one of its bounds" in note.text for note in sure.notes)


def test_a_workbook_holds_every_number_and_text_stays_text(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    given = answer(number(1234.5, 30.0), number(-2.0, 3.0, flag="noise"), keys=["=1+1", "\x07B"])
    assert given.excel(tmp_path / "answer.xlsx") == tmp_path / "answer.xlsx"
    book = openpyxl.load_workbook(tmp_path / "answer.xlsx")
    rows = list(book["answer"].iter_rows(values_only=True))
    assert rows[0] == ("ward", "statistic", "value", "standard_error", "lower", "upper", "flag")
    assert rows[1][:4] == ("=1+1", "count", 1234.5, 30)
    assert rows[2][0] == "\\x07B"
    assert book["answer"]["A2"].data_type == "s"
    assert "It cost psi = 0.5" in " ".join(str(row[0]) for row in book["notes"].iter_rows(values_only=True))
    with pytest.raises(ValueError, match=r"must end in \.xlsx"):
        given.excel(tmp_path / "answer.xls")


@pytest.mark.parametrize(
    ("keys", "cells"),
    [
        (["1", "12", "-3"], [1, 12, -3]),
        (["1", None, "0"], [1, None, 0]),
        (["01", "12", "3"], ["01", "12", "3"]),
        (["1", "x", "3"], ["1", "x", "3"]),
        (["1", "1" * 16, "3"], ["1", "1" * 16, "3"]),
        ([2013, 2014, 2015], [2013, 2014, 2015]),
    ],
)
def test_groups_that_are_whole_numbers_are_numbers_in_a_workbook(tmp_path, keys, cells):
    openpyxl = pytest.importorskip("openpyxl")
    given = answer(*(number(1.0, 1.0) for _ in keys), keys=keys)
    sheet = openpyxl.load_workbook(given.excel(tmp_path / "answer.xlsx"))["answer"]
    assert [row[0] for row in sheet.iter_rows(values_only=True, min_row=2)] == cells


def test_a_workbook_for_readers_says_nothing_of_what_a_budget_has_left_or_who_asked_before(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    given = answer(number(1.0, 1.0)).settled("Budget 'survey' has psi = 0.173205 left.", True)
    assert "was answered before" in given.summary()
    notes = openpyxl.load_workbook(given.excel(tmp_path / "answer.xlsx"))["notes"].iter_rows(values_only=True)
    words = " ".join(str(row[0]) for row in notes)
    assert "It cost psi = 0.5" in words
    assert "Budget" not in words
    assert "answered before" not in words


def test_without_openpyxl_the_refusal_names_the_install_line(monkeypatch, tmp_path):
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("openpyxl"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'psidp\[excel\]'"):
        answer(number(1.0, 1.0)).excel(tmp_path / "answer.xlsx")


def test_figures_are_bars_with_intervals_and_heat_maps_of_two_columns(tmp_path):
    pytest.importorskip("altair")
    rows = pa.table(
        {"who": range(300), "a": ["x", "y", None] * 100, "b": [1, 2] * 150, "v": [float(i % 9) for i in range(300)]}
    )
    curator = Curator(rows, "who")
    one = curator.ask(ask.count(), ask.mean("v", 0, 9), by="a", groups=["x", "y", None, "z"]).release(psi=1.0)
    both = one.figure().to_dict()
    assert [part["title"]["text"] for part in both["vconcat"]] == ["count by a", "mean of v by a"]
    assert "config" in both
    assert not any("config" in part for part in both["vconcat"])
    spec = one.figure("count").to_dict()
    values = next(iter(spec["datasets"].values())) if "datasets" in spec else spec["data"]["values"]
    assert [v["group"] for v in values] == ["x", "y", "NULL", "z"]
    assert [v["value"] for v in values] == [row["value"] for row in one if row["statistic"] == "count"]
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["bar", "bar", "rule"]
    assert one.figure("mean of v").to_dict()["title"]["text"] == "mean of v by a"
    two = curator.ask(ask.count(), by=["a", "b"], groups={"a": ["x", "y"], "b": [1, 2]}).release(psi=1.0)
    assert two.figure().to_dict()["layer"][0]["mark"]["type"] == "rect"
    more = curator.ask(ask.count(), ask.mean("v", 0, 9), by=["a", "b"], groups={"a": ["x"], "b": [1]}).release(psi=1.0)
    assert [part["layer"][0]["mark"]["type"] for part in more.figure().to_dict()["vconcat"]] == ["rect", "rect"]
    many = curator.ask(ask.histogram("v", range(9)), by="a", groups=["x", "y"]).release(psi=1.0)
    assert many.figure().to_dict()["title"]["text"] == "histogram of v: [0, 1) by a"
    assert curator.ask(ask.histogram("v", [0, 3, 6, 9])).release(psi=1.0).figure().to_dict()
    assert psidp.figures.save(one.figure(), tmp_path / "a.svg").read_text().startswith("<svg")
    with pytest.raises(ValueError, match="statistic must be one of"):
        one.figure("nothing")
    with pytest.raises(ValueError, match="1 to 200 bars"):
        one.suppressed(1e9).figure()


def test_every_step_says_what_it_did_and_an_answer_has_a_card():
    curator = Curator(pa.table({"who": range(50), "ward": ["A"] * 50}), "who")
    made = curator.ask(ask.count(), by="ward", groups=["A", "B"]).release(psi=1.0)
    steps = made.suppressed(10).whole().non_negative().rounded()
    assert [note.text.partition(":")[0] for note in steps.notes[-4:]] == [
        "suppressed",
        "whole",
        "non_negative",
        "rounded",
    ]
    assert psidp.card(steps).guarantee == made.guarantee
    assert Answer.from_dict(steps.to_dict()).notes == steps.notes
