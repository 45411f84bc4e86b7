"""CSV files as rows of text. One line is one row, and what it says reaches no other line.

A line ends at a line feed, with or without a carriage return before it, also inside quotes. Fields are separated by the
commas that have an even number of quotes before them in the line. A field that begins and ends with a quote is what
lies between, and two quotes there stand for one. An empty field is missing. A line is left out if its number of quotes
is odd, if its number of fields is not that of the first line, if it is empty, or longer than LONGEST bytes. Bytes that
are not UTF-8 become a backslash, an x and two digits. The first line names the columns; it is public, as a schema is.

`fields` reads one line in plain Python, for the bare install; `CsvFile` reads a few million bytes at a time for Arrow.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LONGEST", "CsvFile", "column_line", "fields", "whole_lines"]

LONGEST = 1 << 20
"""Bytes of a line."""

LONGEST_NAME = 1_000
"""Letters of a column's name."""

FIELD = re.compile(r',((?:[^",]+|"[^"]*")*)')
LINE_FEED, RETURN, COMMA, QUOTE = b'\n\r,"'


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


def _unquoted(field: str) -> str | None:
    """What a field says."""
    if len(field) > 1 and field[0] == field[-1] == '"':
        return field[1:-1].replace('""', '"')
    return field or None


def column_line(file: IO[bytes], name: str) -> list[str]:
    """The names of the columns, from the first line of an open file, which then stands at the second."""
    line = file.readline(LONGEST + 2).removeprefix(b"\xef\xbb\xbf")
    words = fields(line)
    if words is None or b"\r" in line.removesuffix(b"\n").removesuffix(b"\r"):
        raise ValueError(
            f"the first line of {name!r} must name the columns, separated by commas, and end in a line feed. "
            "Write the file again, as Parquet or as CSV with commas."
        )
    return [word or "" for word in words]


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


class CsvFile:
    """Rows of text for whatever reads Arrow streams; read anew for each stream, and never held whole.

    Args:
        paths: one or more files of the same columns. Only their first lines are read now.
    """

    def __init__(self, *paths: Path) -> None:
        self.paths = paths
        self.names = self._first_line(paths[0])
        _check_columns(self.names, paths[0])
        for path in paths[1:]:
            if self._first_line(path) != self.names:
                raise ValueError(f"several .csv files must have the same first line, got another in {str(path)!r}.")

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A fresh stream over the rows."""
        import pyarrow as pa

        schema = pa.schema([(name, pa.string()) for name in self.names])
        batches = (pa.record_batch(columns, schema=schema) for columns in self._columns())
        return pa.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__(requested_schema)

    @staticmethod
    def _first_line(path: Path) -> list[str]:
        with path.open("rb") as file:
            return column_line(file, str(path))

    def _columns(self) -> Iterator[list[Any]]:
        """The columns of some lines at a time."""
        for path in self.paths:
            with path.open("rb") as file:
                column_line(file, str(path))
                for lines in whole_lines(file):
                    yield split(lines, len(self.names))


def _check_columns(names: list[str], path: Path) -> None:
    """Refuse names by which columns could not be told apart, and a first line with another separator."""
    if len(names) == 1 and re.search(r"[;\t|]", names[0]):
        raise ValueError(
            f"the fields of {str(path)!r} must be separated by commas, got the first line {names[0][:60]!r}. Write the "
            "file again, as Parquet or as CSV with commas."
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


def split(lines: bytes, width: int) -> list[Any]:
    """The fields of whole lines as `width` columns of text; the same as `fields` line by line."""
    short = None if lines.isascii() else _short(np.flatnonzero(_bytes(lines) == LINE_FEED))
    lines = lines if short is None else _as_utf8(lines)  # how long a line is is judged before it is rewritten
    raw = _bytes(lines)
    ends, even = _ends(raw, lines)
    last = raw[ends] == LINE_FEED
    places = np.flatnonzero(last)
    short = _short(ends[places]) if short is None else short
    begins = np.empty_like(ends)
    begins[0], begins[1:] = 0, ends[:-1] + 1
    if b"\r" in lines:
        ends = ends - (last & (ends > begins) & (raw[ends - 1] == RETURN))
    counts = np.diff(places, prepend=-1)
    blank = (counts == 1) & (ends[places] == begins[places])
    first = (places - width + 1)[short & even & ~blank & (counts == width)]
    return _gathered(lines, begins, ends, [first + i for i in range(width)])


def _bytes(lines: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(lines, np.uint8)


def _short(line_feeds: NDArray[Any]) -> NDArray[np.bool_]:
    """Which lines are not too long."""
    return np.asarray(np.diff(line_feeds, prepend=-1) <= LONGEST + 1)


def _as_utf8(lines: bytes) -> bytes:
    """Lines in which bytes that are not UTF-8 are shown; commas, quotes and line ends stay."""
    try:
        lines.decode()
    except UnicodeDecodeError:
        return lines.decode("utf-8", "backslashreplace").encode()
    return lines


def _ends(raw: NDArray[np.uint8], lines: bytes) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where fields end: at commas outside quotes and at line ends; and which lines have an even number of quotes."""
    ends = np.flatnonzero((raw == COMMA) | (raw == LINE_FEED)).astype(np.int32)
    if b'"' not in lines:
        return ends, np.array(True)
    last = raw[ends] == LINE_FEED
    seen = np.cumsum(raw == QUOTE, dtype=np.int32)[ends]
    before = np.concatenate(([0], seen[last][:-1]))  # quotes before each line
    odd = ((seen - before[np.cumsum(last) - last]) & 1).astype(bool)
    return ends[last | ~odd], ~odd[last]


def _gathered(lines: bytes, begins: NDArray[Any], ends: NDArray[Any], columns: list[NDArray[Any]]) -> list[Any]:
    """Arrow arrays of the chosen fields. Every second text of `flat` is a field, those between are separators."""
    import pyarrow as pa
    import pyarrow.compute as pc

    empty, raw, quoted = begins == ends, _bytes(lines), None
    if b'"' in lines:
        quoted = (ends - begins > 1) & (raw[begins] == QUOTE) & (raw[ends - 1] == QUOTE)
        begins, ends = begins + quoted, ends - quoted
    bounds = np.empty(2 * len(ends) + 1, np.int32)
    bounds[0:-1:2], bounds[1::2], bounds[-1] = begins, ends, len(lines)
    valid = pa.py_buffer(np.packbits(np.repeat(~empty, 2), bitorder="little")) if empty.any() else None
    flat = pa.StringArray.from_buffers(2 * len(ends), pa.py_buffer(bounds), pa.py_buffer(lines), valid)
    made = [flat.take(pa.array(2 * fields)) for fields in columns]
    if quoted is None or b'""' not in lines:
        return made
    single = [pc.replace_substring(column, '""', '"') for column in made]
    return [pc.if_else(pa.array(quoted[i]), one, two) for i, one, two in zip(columns, single, made, strict=True)]
