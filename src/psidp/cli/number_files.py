"""Files of numbers: CSV and NPY on the bare install, Parquet with DuckDB; NaN where a cell has no number."""

import csv
import io
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Literal, TextIO

import numpy as np
from numpy.typing import NDArray

from psidp.tables.sources.csv import column_line, fields, whole_lines
from psidp.tables.sources.files import open_files

__all__ = ["check_target", "check_writable", "column_names", "read_column", "write_column"]

NO_WORDS: Mapping[str, float] = MappingProxyType({})
KINDS = ".csv, .npy or .parquet, or - for CSV on standard input"


def column_names(source: str) -> list[str]:
    """The names of a file's columns; for an array without names their numbers, from 0."""
    kind = Path(source).suffix.lower()
    if kind == ".csv":
        with Path(source).open("rb") as file:
            return column_line(file, source) if file.peek(1) else []
    if kind == ".npy":
        array = _array(source, "r")
        return list(array.dtype.names or map(str, range(array.shape[1] if array.ndim == 2 else 1)))
    if kind == ".parquet":
        with closing(open_files(source, None)) as table:
            return list(table.schema)
    raise ValueError(f"the file must be .csv, .npy or .parquet, got {source!r}.")


def read_column(source: str, column: str | None = None, words: Mapping[str, float] = NO_WORDS) -> NDArray[Any]:
    """The numbers of one column of a file, or the whole array of an .npy file.

    Guarantees:
        Cells that hold no number become NaN without a warning, since a warning would tell something about the data; a
        release counts them as 0. Refusals depend on the names of file and columns alone. A line of CSV is one number,
        whatever it holds; csv.py has the rules.

    Args:
        source: a path that ends in .csv, .npy or .parquet, or "-" for CSV on standard input.
        column: its name; for a two-dimensional array its number, from 0.
        words: what words in the cells of a CSV file stand for, in lower case.
    """
    if source == "-":
        return _from_csv(_standard_input(), column, words)
    kind = Path(source).suffix.lower()
    if kind == ".csv":
        with Path(source).open("rb") as file:
            return _from_csv(file, column, words)
    if kind == ".npy":
        return _from_array(_array(source), column)
    if kind == ".parquet":
        return _from_parquet(source, column)
    raise ValueError(f"the file must be {KINDS}, got {source!r}.")


def check_target(target: str, dimensions: int) -> None:
    """Refuse an output that could not take such numbers; before anything is released."""
    kind = Path(target).suffix.lower()
    if not (target == "-" or kind in (".csv", ".npy")):
        raise ValueError(f"the output must be .csv or .npy, or - for CSV on standard output, got {target!r}.")
    if dimensions != 1 and kind != ".npy":
        raise ValueError(f"an array of {dimensions} dimensions must go to an .npy file, got {target!r}.")
    if not (target == "-" or Path(target).parent.is_dir()):
        raise ValueError(f"the output must lie in a folder that exists, got {target!r}.")
    if target != "-":
        check_writable(Path(target))


def check_writable(file: Path) -> None:
    """Try to write a file, and leave it as it was: OSError says why it cannot be written."""
    new = not file.exists()
    file.open("ab").close()
    if new:
        file.unlink()


def write_column(target: str, column: str | None, values: NDArray[Any]) -> None:
    """Write the numbers to a file that ends in .csv or .npy, or with "-" as CSV to standard output."""
    check_target(target, values.ndim)
    if target == "-":
        _to_csv(sys.stdout, column, values)
    elif Path(target).suffix.lower() == ".npy":
        np.save(target, values)
    else:
        with Path(target).open("w", newline="") as file:
            _to_csv(file, column, values)


def _from_csv(file: IO[bytes], column: str | None, words: Mapping[str, float]) -> NDArray[Any]:
    """One column by the name in the first line."""
    names = column_line(file, getattr(file, "name", "-"))
    place = _place(names, column)
    rows = (fields(line) for lines in whole_lines(file) for line in lines.split(b"\n")[:-1])
    cells = (row[place] if row is not None and len(row) == len(names) else None for row in rows)
    return np.array([np.nan if cell is None else _number(cell, words) for cell in cells], np.float64)


def _standard_input() -> IO[bytes]:
    """The bytes of standard input."""
    return getattr(sys.stdin, "buffer", None) or io.BytesIO(sys.stdin.read().encode("utf-8", "surrogateescape"))


def _from_array(array: NDArray[Any], column: str | None) -> NDArray[Any]:
    """The array, or a column of it by number or field name."""
    if column is None:
        return array
    if array.dtype.names:
        return np.asarray(array[array.dtype.names[_place(list(array.dtype.names), column)]])
    if array.ndim != 2:
        raise ValueError(f"column must be left out for an array of {array.ndim} dimensions, got column={column!r}.")
    return np.asarray(array[:, _place([str(i) for i in range(array.shape[1])], column)])


def _from_parquet(source: str, column: str | None) -> NDArray[Any]:
    """One column; DuckDB makes numbers of it."""
    with closing(open_files(source, None)) as table:
        names = list(table.schema)
        cell = table.dialect.column(names[_place(names, column)])
        numbers = table.engine.rows(f"SELECT TRY_CAST({cell} AS DOUBLE) FROM {table.text} AS source")
    return np.array([np.nan if number is None else number for (number,) in numbers], np.float64)


def _array(source: str, mode: Literal["r"] | None = None) -> NDArray[Any]:
    """What numpy.save wrote, or a refusal that offers no unsafe way."""
    try:
        return np.asanyarray(np.load(source, allow_pickle=False, mmap_mode=mode))
    except (ValueError, EOFError):
        raise ValueError(f"{source!r} must be an array of numbers as numpy.save writes it, and is not.") from None


def _place(names: list[str], column: str | None) -> int:
    """Where the column is, or a refusal that names those there are."""
    if column is None and len(names) == 1:
        return 0
    if column not in names:
        raise ValueError(f"column must be one of {', '.join(names) or 'none at all'}, got column={column!r}.")
    return names.index(column)


def _number(cell: str, words: Mapping[str, float]) -> float:
    """The number in a cell, or NaN."""
    try:
        return float(cell)
    except ValueError:
        return words.get(cell.strip().lower(), float("nan"))


def _to_csv(file: TextIO, column: str | None, values: NDArray[Any]) -> None:
    """A heading and one number a line, with every digit."""
    csv.writer(file, lineterminator="\n").writerow([column or "value"])
    file.writelines(f"{value!r}\n" for value in values.tolist())
