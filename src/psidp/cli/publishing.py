"""Answers as one publishes them: what is done to the numbers, and the files they go to."""

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from psidp.cli.echo import echo
from psidp.cli.from_values import OptionGroup
from psidp.cli.number_files import check_writable
from psidp.errors import MissingExtraError
from psidp.present.figures.files import SUFFIXES, save
from psidp.tables.answer import Answer
from psidp.tables.ask import Ask

__all__ = ["Output", "paid_and_stored", "save_answer", "save_figure", "write_answer"]

DOCUMENTS = (".csv", ".md", ".tex", ".xlsx")


@dataclass(frozen=True, slots=True)
class Output(OptionGroup):
    """What is done to the numbers of an answer, and the files they go to."""

    output: Annotated[
        str, typer.Option("--output", "-o", help="write the answer to this .csv, .md, .tex or .xlsx file")
    ] = ""
    figure: Annotated[
        str, typer.Option("--figure", help="draw the answer: a .svg, .png, .pdf, .html or .json file")
    ] = ""
    rounded: Annotated[bool, typer.Option("--round", help="round to the digits that the noise leaves")] = False
    whole: Annotated[bool, typer.Option("--whole", help="round counts to whole numbers")] = False
    non_negative: Annotated[bool, typer.Option("--non-negative", help="set counts below 0 to 0")] = False
    suppress_below: Annotated[
        float, typer.Option("--suppress-below", help="leave out groups of smaller noisy count")
    ] = 0.0

    def check(self, asks: Sequence[Ask]) -> None:
        """Refuse files that could not be written, and steps that the answer would have no numbers for, before anything
        is paid for."""
        _check_files(self.output, self.figure)
        counts = [ask.measure.counts_of for ask in asks]
        if (self.whole or self.non_negative) and not any(counts):
            raise ValueError(
                "--whole and --non-negative must have counts: ask for --count, --units or --histogram too."
            )
        if self.suppress_below != 0.0 and not 0.0 < self.suppress_below < float("inf"):
            raise ValueError(f"--suppress-below (a public threshold) must be in (0, inf), got {self.suppress_below}.")
        if self.suppress_below and not {"rows", "units"} & set(counts):
            raise ValueError("--suppress-below must have a count to judge by: ask for --count or --units too.")

    def steps(self, answer: Answer) -> Answer:
        """The answer after the asked steps, in this order: groups left out, whole counts, none below 0, digits."""
        if answer.rows:
            answer = answer.suppressed(self.suppress_below) if self.suppress_below else answer
        if answer.rows:
            answer = answer.whole() if self.whole else answer
            answer = answer.non_negative() if self.non_negative else answer
        return answer.rounded() if self.rounded else answer


def _check_files(output: str, figure: str) -> None:
    if output and not (Path(output).suffix.lower() in DOCUMENTS and Path(output).parent.is_dir()):
        kinds = ", ".join(DOCUMENTS)
        raise ValueError(f"the output must be a file of {kinds} in a folder that exists, got {output!r}.")
    if output.lower().endswith(".xlsx"):
        _need("openpyxl", "openpyxl", "excel")
    if figure and not (Path(figure).suffix in SUFFIXES and Path(figure).parent.is_dir()):
        raise ValueError(f"the figure must be a {', '.join(SUFFIXES)} file in a folder that exists, got {figure!r}.")
    if figure:
        _need("altair", "altair and vl-convert-python", "plot")
        _need("vl_convert", "altair and vl-convert-python", "plot")
    for file in filter(None, (output, figure)):
        check_writable(Path(file))


def _need(module: str, library: str, extra: str) -> None:
    try:
        __import__(module)
    except ImportError:
        raise MissingExtraError(library, extra) from None


@contextmanager
def paid_and_stored(retry_key: str, write: Callable[[], None]) -> Iterator[None]:
    """Within it a released answer is shown; `write` puts it on standard output where that fails.

    Args:
        retry_key: the key under which the ledger keeps the answer; "" without a ledger, where this is the only copy.
    """
    try:
        yield
    except Exception as error:
        write()
        again = f" The same command with --retry-key {retry_key} shows it again at no cost." if retry_key else ""
        why = (error.strerror if isinstance(error, OSError) else "") or str(error) or type(error).__name__
        raise ValueError(
            f"the answer could not be shown as asked: {why}. It is released and stands on standard output.{again}"
        ) from error


def save_answer(answer: Answer, output: str) -> None:
    """The answer in a file."""
    kind = Path(output).suffix.lower()
    if kind == ".xlsx":
        answer.excel(output)
    elif kind in (".md", ".tex"):
        Path(output).write_text(answer.markdown() if kind == ".md" else answer.latex(), encoding="utf-8")
    else:
        with Path(output).open("w", newline="", encoding="utf-8") as file:
            write_answer(answer, file)


def save_figure(answer: Answer, figure: str) -> None:
    """The picture in a file; what it cannot show is said, since the answer is shown all the same."""
    try:
        save(answer.figure(), figure)
    except Exception as error:
        echo(f"No figure was drawn: {error}", err=True)


def write_answer(answer: Answer, file: Any) -> None:
    """CSV, one line for each group and statistic."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(answer.names)
    writer.writerows(list(row.values()) for row in answer)
