"""Lines of CSV: one line is one row, and what it says reaches no other line.

A line ends at a line feed, with or without a carriage return before it; no quote reaches over it. Fields are parted by
the commas that have an even number of quotes before them in the line. A field that begins and ends with a quote is what
lies between, and two quotes there stand for one. An empty field is missing. A line is left out if its number of quotes
is odd, if its number of fields is not that of the first line, if it is empty, or longer than LONGEST bytes. Bytes that
are no UTF-8 become a backslash, an x and two digits. The first line names the columns; it is public, as a schema is.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

__all__ = ["LONGEST", "check_columns", "column_line", "fields", "whole_lines"]

LONGEST = 1 << 20
"""Bytes of a line."""
LONGEST_NAME = 1_000
"""Letters of a column's name."""

FIELD = re.compile(r',((?:[^",]+|"[^"]*")*)')


def fields(line: bytes) -> list[str | None] | None:
    """The fields of a line, or None where it is left out.

    Examples:
        >>> fields(b'7,"Smith, Jo",,')
        ['7', 'Smith, Jo', None, None]
        >>> fields(b'7,"Smith') is None
        True
    """
    line = line.removesuffix(b"\n")
    short = len(line) <= LONGEST
    line = line.removesuffix(b"\r")
    if not (line and short and line.count(b'"') % 2 == 0):
        return None
    return [_unquoted(field) for field in FIELD.findall("," + line.decode("utf-8", "backslashreplace"))]


def column_line(file: IO[bytes], name: str) -> list[str]:
    """The names of the columns, from the first line of an open file, which then stands at the second."""
    line = file.readline(LONGEST + 2).removeprefix(b"\xef\xbb\xbf")
    words = fields(line)
    if words is None or b"\r" in line.removesuffix(b"\n").removesuffix(b"\r"):
        raise ValueError(
            f"the first line of {name!r} must name the columns, parted by commas, and end in a line feed. "
            "Write the file anew, as Parquet or as CSV with commas."
        )
    return [word or "" for word in words]


def check_columns(names: list[str], path: Path) -> None:
    """Refuse names by which columns could not be told apart, and a first line that is parted by something else."""
    if len(names) == 1 and re.search(r"[;\t|]", names[0]):
        raise ValueError(
            f"the fields of {str(path)!r} must be parted by commas, got the first line {names[0][:60]!r}. Write the "
            "file anew, as Parquet or as CSV with commas."
        )
    if "" in names:
        raise ValueError(
            f"the columns of {str(path)!r} must have names, got none for column {names.index('') + 1}. Where pandas "
            "wrote its index there: frame.to_csv(..., index=False)."
        )
    if not all(len(name) <= LONGEST_NAME for name in names):
        raise ValueError(f"the columns of {str(path)!r} must have names of at most {LONGEST_NAME:,} letters.")
    if len({name.casefold() for name in names}) < len(names):
        raise ValueError(f"the columns of {str(path)!r} must have different names, also without regard to case.")


def whole_lines(file: IO[bytes], block: int = 1 << 21) -> Iterator[bytes]:
    """The rest of a file in pieces that end where a line ends; the last line may lack its end, and gets one.

    No more is held than a block and LONGEST bytes of a line: one byte too long is as bad as a million.
    """
    rest = b""
    while read := file.read(block):
        cut = read.rfind(b"\n") + 1
        if cut:
            yield rest + read[:cut]
            rest = read[cut:]
        else:
            rest = (rest + read)[: LONGEST + 1]
    if rest:
        yield rest + b"\n"


def _unquoted(field: str) -> str | None:
    """What a field says."""
    if len(field) > 1 and field[0] == field[-1] == '"':
        return field[1:-1].replace('""', '"')
    return field or None
