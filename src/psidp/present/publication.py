"""Answers as documents: tables in Markdown and LaTeX, and workbooks. The one door to openpyxl."""

import re
from pathlib import Path
from typing import Any

from psidp.errors import MissingExtraError
from psidp.escaping import latex as in_latex
from psidp.escaping import markdown as in_markdown
from psidp.escaping import visible
from psidp.tables.estimate import NOISE, RANK
from psidp.tables.flags import CLIPPING
from psidp.tables.rounding import noise_step, on_steps
from psidp.tables.words import FLAGS

__all__ = ["excel", "latex", "markdown"]

MOST_ACROSS = 4
"""Statistics that stand beside each other; more stand below each other."""

WHOLE = re.compile(r"0|-?[1-9][0-9]{0,14}")
"""A whole number that a workbook keeps to the last digit; a code such as 01 is none."""

MARKS = {CLIPPING: "c", NOISE: "n", RANK: "r"}
"""The letter behind a number that has a flag."""

ASIDE = {"scaling", "advice", "method", "public", "flag"}
"""Kinds of notes that are for the analyst: advice, how psidp works, and flags, which have letters here."""


def markdown(answer: Any) -> str:
    """A table with a row for each group, a column for each statistic, and the words of the answer below it."""
    width = len(answer.by) + (not _across(answer))
    header, rows = _table(answer, in_markdown)
    lines = [f"| {' | '.join(row)} |" for row in (header, *rows)]
    lines.insert(1, "|" + "".join(" --- |" if i < width else " ---: |" for i in range(len(header))))
    return "\n".join(lines) + "\n\n" + "\n".join(f"{in_markdown(line)}  " for line in _words(answer)) + "\n"


def latex(answer: Any) -> str:
    """A tabular of booktabs with a row for each group, and the words of the answer below it."""
    header, rows = _table(answer, in_latex)
    width = len(answer.by) + (not _across(answer))
    columns = "l" * width + "r" * (len(header) - width)
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", " & ".join(header) + r" \\", r"\midrule"]
    lines += [" & ".join(row) + r" \\" for row in rows]
    lines += [r"\bottomrule", r"\end{tabular}", "", r"\begin{small}"]
    return "\n".join([*lines, *(f"{in_latex(line)}\n" for line in _words(answer)), r"\end{small}", ""])


def excel(answer: Any, path: str | Path) -> Path:
    """A workbook: one sheet with every number as it is, one with what was asked, done and paid."""
    try:
        from openpyxl import Workbook  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise MissingExtraError("openpyxl", "excel") from None
    target = Path(path)
    if target.suffix.lower() != ".xlsx":
        raise ValueError(f"a workbook's file must end in .xlsx, got {target.name!r}.")
    book = Workbook()
    numbers = book.active
    numbers.title = "answer"
    width = len(answer.by)
    keys = _whole_numbers([list(key) for key, _ in answer.rows])
    rows = [key + list(row.values())[width:] for key, row in zip(keys, answer, strict=True)]
    _fill(numbers, [answer.names, *rows])
    numbers.freeze_panes = "A2"
    published = answer.settled("", False)  # what the budget has left, and who asked before, is for those who keep it
    _fill(book.create_sheet("notes"), [[line] for line in published.summary().splitlines()])
    book.save(target)
    return target


def _whole_numbers(keys: list[list[Any]]) -> list[list[Any]]:
    """The keys of groups; a column of text that holds whole numbers alone, as a file's may, holds them as numbers."""
    columns = [list(column) for column in zip(*keys, strict=True)]
    read = [[k and int(k) for k in column] if all(map(_is_whole, column)) else column for column in columns]
    return [list(key) for key in zip(*read, strict=True)] if read else keys


def _is_whole(key: Any) -> bool:
    """Whether a text is a whole number as it would be written, or missing."""
    return key is None or (isinstance(key, str) and WHOLE.fullmatch(key) is not None)


def _fill(sheet: Any, rows: list[list[Any]]) -> None:
    """Values into cells; text stays text, also where it begins like a formula."""
    for at, row in enumerate(rows, 1):
        for place, value in enumerate(row, 1):
            cell = sheet.cell(row=at, column=place)
            if isinstance(value, str):
                cell.value = visible(value)
                cell.data_type = "s"
            elif value is None or value != value:
                cell.value = None
            else:
                cell.value = value


def _across(answer: Any) -> bool:
    """Whether the statistics of a group stand in one row."""
    return len({e.statistic for _, e in answer.rows}) <= MOST_ACROSS


def _table(answer: Any, written: Any) -> tuple[list[str], list[list[str]]]:
    """Header and rows; `written` makes a text fit for its document."""
    keys = [*map(written, answer.by)]
    words = {key: [written("NULL" if k is None else str(k)) for k in key] for key, _ in answer.rows}
    if not _across(answer):
        rows = [[*words[key], written(e.statistic), _cell(e)] for key, e in answer.rows]
        return [*keys, "statistic", "value"], rows
    statistics = list(dict.fromkeys(e.statistic for _, e in answer.rows))
    cells: dict[Any, dict[str, str]] = {}
    for key, e in answer.rows:
        cells.setdefault(key, {})[e.statistic] = _cell(e)
    rows = [[*words[key], *(have.get(name, "") for name in statistics)] for key, have in cells.items()]
    return [*keys, *map(written, statistics)], rows


def _cell(estimate: Any) -> str:
    """A number and its interval, with the digits that noise leaves; letters say what its flag is."""
    step, e = noise_step(estimate), on_steps(estimate)
    places = 2 if step is None else max(0, -step)
    mark = "".join(letter for flag, letter in MARKS.items() if flag in e.flag)
    shown = f"{e.value:,.{places}f} ({e.lower:,.{places}f} to {e.upper:,.{places}f})"
    return f"{shown} {mark}" if mark else shown


def _words(answer: Any) -> list[str]:
    """What a reader of the table has to know."""
    g = answer.guarantee
    kappa = f", kappa = {g.kappa:.3g}" if g.kappa else ""
    chance = f"the interval beside each holds it with chance {answer.confidence:g} over that noise"
    said = [f"Numbers have Gaussian noise; {chance}. psi = {g.psi:.6g}{kappa} ({g.adjacency}, per {g.unit})."]
    said += [f"{MARKS[flag]}: {FLAGS[flag]}." for flag in FLAGS if any(flag in e.flag for _, e in answer.rows)]
    return said + [str(note) for note in answer.notes if note.kind not in ASIDE]
