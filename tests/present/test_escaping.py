"""Names and values from data are shown as they are in every kind of document, and act in none."""

import csv
import io
import json
import re

import pyarrow as pa
import pytest

import psidp
from psidp.escaping import json_text, latex, markdown, one_line, visible
from psidp.tables.answer import Answer
from psidp.tables.estimate import Estimate
from psidp.tables.notes import Note

NASTY = (
    "\x1b[2J\x1b[31mred", "a\x00b",
    "\x9b31m", "bell\x07", "\u202etxt.exe", "\u2066x\u2069", "two\nlines", "two\r\nlines",
    "[bold]loud[/bold]", "[/]", ":smile:", "a|b", "`code`", "<script>alert(1)</script>", "<b>x</b>", "&amp;", "# head",
    "[x](javascript:alert(1))", "http://evil.example", "www.evil.example", "ann@evil.example", "*a* _b_ ~~c~~",
    "1. one",
    "- item", "+ item", "===", "---", "> quote", "\\", "\\textbf{x}", "a & b % c $ d $ # _ { } ~ ^", "[5pt] x",
    "* x", "--",
    "=1+1", "+1", "-1", "@SUM(1)", "'quoted'", '"quoted"', "\ufffe", "\u2028", "tab\tbed", "{role}`x`", "a_b^2", "!x",
    "=HYPERLINK(0)", "12) twelve", "```", "\U000e0041", "x \\", "\\n",
)  # fmt: skip
ACTS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
"""What acts on a terminal without being seen; line breaks and tabs apart."""


def answer(keys=NASTY):
    rows = tuple(((key,), Estimate(keys[0] or "count", 5.0, 1.0, 3.0, 7.0)) for key in keys)
    notes = tuple(Note("asked", f"Asked: count where {key}.", {"unit_column": "u"}) for key in keys)
    return Answer((keys[0],), rows, psidp.Guarantee(1.0, unit=keys[0]), 0.95, notes)


def cells(html):
    return re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", html, re.DOTALL)


def test_markdown_gives_back_the_same_text_in_the_same_cell():
    markdown_it = pytest.importorskip("markdown_it")
    reader = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"])
    text = answer().markdown()
    assert not ACTS.search(text)
    (head, rule, *_) = text.splitlines()
    assert (head.count(" | "), rule) == (1, "| --- | ---: |")
    tokens = reader.parse(text)
    inline = [token for token in tokens if token.type == "inline"]
    assert all({child.type for child in token.children} <= {"text", "hardbreak", "text_special"} for token in inline)
    found = ["".join(child.content for child in token.children) for token in inline]
    assert found[:2] == [one_line(NASTY[0]), one_line(NASTY[0])]
    assert found[2 : 2 + 2 * len(NASTY) : 2] == [one_line(key) for key in NASTY]
    assert not any(token.type in ("heading_open", "bullet_list_open", "hr", "blockquote_open") for token in tokens)
    alone = [reader.parse(markdown(key)) for key in NASTY]
    assert all([t.type for t in each] == ["paragraph_open", "inline", "paragraph_close"] for each in alone)


def test_latex_has_no_special_letter_that_is_not_escaped():
    """What is left after our own escapes are taken out is text; no cell begins like an option of the line before."""
    for key in NASTY:
        text = latex(key)
        plain = re.sub(
            r"\\(?:text(?:backslash|ascii\w+|less|greater|bar)|char34)\{\}|\\[&%$#_{}]|\{[\[\]*]\}|\{\}", "", text
        )
        assert not re.search(r"[\\&%$#_{}~^<>|\"\[\]*\n]", plain), (key, text)
        assert not ACTS.search(text)
        assert text[0] not in "[*"
    lines = answer().latex().splitlines()
    assert sum(line.endswith(r" \\") for line in lines) == 1 + len(NASTY)


def test_a_workbook_holds_every_name_as_text_and_can_be_opened(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(answer().excel(tmp_path / "a.xlsx"))
    rows = list(book["answer"].iter_rows())
    assert [row[0].value for row in rows[1:]] == [visible(key) for key in NASTY]
    assert all(row[0].data_type == "s" for row in rows)


def test_csv_and_json_are_read_back_as_they_were(tmp_path):
    from psidp.cli.publishing import write_answer

    file = io.StringIO()
    write_answer(answer(), file)
    assert [row[0] for row in csv.reader(io.StringIO(file.getvalue(), newline=""))][1:] == list(NASTY)
    text = json_text(json.dumps(NASTY, ensure_ascii=False))
    assert tuple(json.loads(text)) == NASTY
    assert not ACTS.search(text)


def test_every_figure_is_drawn_whatever_the_groups_are_called(tmp_path):
    """A control character ended the process inside the library that draws."""
    pytest.importorskip("altair")
    answers = [answer(), answer(("end \\",))]
    for two in (NASTY[:6], NASTY[6:12]):
        rows = tuple(((a, b), Estimate(two[0], 5.0, 1.0, 3.0, 7.0, "clipping")) for a in two for b in two)
        answers.append(Answer((two[0], two[1]), rows, psidp.Guarantee(1.0, unit=two[2]), 0.95, ()))
    for number, one in enumerate(answers):
        path = psidp.figures.save(one.figure(), tmp_path / f"{number}.svg")
        assert not ACTS.search(path.read_text())
    mechanisms = {key: psidp.Guarantee(0.5 + i / 9) for i, key in enumerate(NASTY[:4])}
    psidp.figures.save(psidp.figures.roc(mechanisms), tmp_path / "c.svg")


def test_cards_in_every_format_show_names_as_they_are(tmp_path):
    from psidp.present.card.html import to_html
    from psidp.present.card.markdown import to_markdown

    for key in filter(str.strip, NASTY):
        made = psidp.card(answer((key,)), title=key, publisher=key, date="2026-01-31")
        page, text, data = to_html(made), to_markdown(made), made.to_json()
        for each in (page, text, data):
            assert not ACTS.search(each), key
        assert "<script>alert" not in page
        assert "<b>x" not in page
        assert text.splitlines()[0] == f"# {markdown(key)}"
        assert json.loads(data)["title"] == key


def test_nothing_that_a_command_prints_acts_on_the_terminal(tmp_path, run):
    table, groups = tmp_path / "t.parquet", tmp_path / "g.parquet"
    column = "w\x1b[2J\u202e[bold]"
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"u": list(range(len(NASTY))), column: list(NASTY)}), table)
    pq.write_table(pa.table({column: [key for key in NASTY if "\0" not in key]}), groups)
    ledger, who = tmp_path / "l.db", "Ann"
    purpose = "why\x1b[31m\u202e [red]loud[/red] | `x`\n2026-01-01 forged"
    spoken = []

    def said(*words):
        code, out, err = run(*map(str, words))
        spoken.append((words[:2], code, out, err))
        return code

    with psidp.Ledger(ledger, actor=who) as book:
        book.open("b[bold]", psi=50.0, unit="unit\x1b[2J [/]", purpose="p [bold]x[/bold]")
        with book.spend("b[bold]", psidp.Guarantee(0.1, unit="unit\x1b[2J [/]"), purpose="by [hand]"):
            pass
    ask_ = ("--unit-column", "u", "--count", "--psi", "1", "--by", column, "--groups", groups)
    paid = ("--ledger", ledger, "--budget", "b[bold]")
    assert said("release", "table", table, *ask_, "--plan") == 0
    assert said("release", "table", table, *ask_, *paid, "--purpose", "by [hand]", "--json") == 0
    for kind in ("csv", "md", "tex"):
        assert said("release", "table", table, *ask_, "-o", tmp_path / f"o.{kind}") == 0
    said("release", "table", table, *ask_, *paid, "--purpose", purpose)
    said("release", "table", table, "--unit-column", column + "x", "--count", "--psi", "1")
    said("release", "table", str(tmp_path / "no\x1b[2J"), "--unit-column", "u", "--count", "--psi", "1")
    said("release", "cube", table, "--unit-column", "u", "--column", f"{column}:a\x1b[2J,b", "--psi", "1")
    for words in (("list",), ("show",), ("report",), ("list", "--json"), ("list", "--actor", "x\x1b[2J")):
        said("ledger", words[0], ledger, *words[1:])
    for budget in ("b[bold]", "x\x1b[2J"):
        said("ledger", "show", ledger, budget)
    for form in ("html", "md", "json"):
        assert said("card", *paid, "--format", form) == 0
    said("explain", "--psi", "1", "--unit", "u\x1b[2J[bold]x[/bold]")
    said("compare", "a\x1b[2J[bold]:psi=1", "b:psi=2")
    for words, code, out, err in spoken:
        assert code in (0, 1, 2), (words, err)
        assert "Traceback" not in err
        csv_of_data = words[0] == "release" and out.startswith(f"{column},")  # in a pipe, as it is
        assert not ACTS.search(err if csv_of_data else out + err), (words, out[:400], err[:400])
    everything = "".join(out + err for _, _, out, err in spoken)
    assert "[bold]" in everything
