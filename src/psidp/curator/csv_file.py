"""A CSV file as rows of text, a few million bytes at a time, by the rules of csv_line.py."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psidp.curator.csv_line import LONGEST, check_columns, column_line, whole_lines

__all__ = ["CsvFile"]

LINE_FEED, RETURN, COMMA, QUOTE = b'\n\r,"'


class CsvFile:
    """Rows of text for whoever reads Arrow streams; read anew for each, and never held whole.

    Args:
        paths: one or more files of the same columns. Their first lines name these, and are read now; the others when
            asked for.
    """

    def __init__(self, *paths: Path) -> None:
        self.paths = paths
        self.names = self._first_line(paths[0])
        check_columns(self.names, paths[0])
        for path in paths[1:]:
            if self._first_line(path) != self.names:
                raise ValueError(f"several .csv files must have the same first line, got another in {str(path)!r}.")

    @staticmethod
    def _first_line(path: Path) -> list[str]:
        with path.open("rb") as file:
            return column_line(file, str(path))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A fresh stream over the rows."""
        import pyarrow as pa

        schema = pa.schema([(name, pa.string()) for name in self.names])
        batches = (pa.record_batch(columns, schema=schema) for columns in self._columns())
        return pa.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__(requested_schema)

    def _columns(self) -> Iterator[list[Any]]:
        """The columns of some lines at a time."""
        for path in self.paths:
            with path.open("rb") as file:
                column_line(file, str(path))
                for lines in whole_lines(file):
                    yield split(lines, len(self.names))


def split(lines: bytes, width: int) -> list[Any]:
    """The fields of whole lines as `width` columns of text."""
    short = None if lines.isascii() else _short(np.flatnonzero(_bytes(lines) == LINE_FEED))
    lines = lines if short is None else _as_utf8(lines)
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
    """Lines in which what was no UTF-8 is shown; commas, quotes and line ends stay."""
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
    """Arrow arrays of the chosen fields. Every second text of `flat` is a field, those between are what parts them."""
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
