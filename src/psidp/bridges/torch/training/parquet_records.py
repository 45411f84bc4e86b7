"""Records of Parquet files that no memory holds: each read by its own number, from a few row groups at a time."""

import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from itertools import accumulate
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from psidp.errors import MissingExtraError
from psidp.symbols import whole

__all__ = ["ParquetRecords"]

OPEN = 16
"""Files that are kept open."""

Source = str | os.PathLike[str]


class ParquetRecords:
    """A map-style Dataset over Parquet files: a record is a dict with a value for each column, None where it has none.

    How many records there are is read from the files' footers alone. A record is read with its row group, of which the
    last few are kept; numbers that ascend, as those of a draw do, read each row group once. Works with `workers`.

    Types are those of the files, and all files must have the same. No record stops a run by what it holds: a value that
    Python cannot hold, such as text that is not UTF-8 or a date beyond the year 9999, is None, as a missing one is. A
    list of numbers is an array; a missing number in it is NaN among floats, and makes a list of whole numbers None.

    Args:
        source: a file, a folder with all .parquet files in it and below, or a list of files.
        columns: those to read; all unless told.
        cached: row groups kept in memory at most, in each process.

    Examples:
        >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> table = pa.table({"age": [31, 47, None], "name": ["Ann", "Bob", "Cem"]})
        >>> pq.write_table(table, f"{folder.name}/people.parquet", row_group_size=2)
        >>> records = ParquetRecords(folder.name)
        >>> len(records), records.row_groups, records[2]
        (3, 2, {'age': None, 'name': 'Cem'})
        >>> records.column("name")
        ['Ann', 'Bob', 'Cem']
        >>> folder.cleanup()
    """

    def __init__(self, source: Source | Iterable[Source], columns: Iterable[str] | None = None, *, cached: int = 4):
        self._parquet()
        self.files = _files(source)
        self._cached = whole("cached", cached)
        self._groups: list[tuple[int, int]] = []
        sizes: list[int] = []
        types: dict[str, Any] = {}
        for number, path in enumerate(self.files):
            footer = self._opened(path)
            found = {field.name: field.type for field in footer.schema_arrow}
            if number == 0:
                types, wanted = found, list(found) if columns is None else list(columns)
                self._refuse_columns(wanted, found)
                _refuse_short_dictionaries(wanted, found)
            if any(found.get(name) != types[name] for name in wanted):
                raise ValueError(f"files must have the same columns of the same types; {path.name} has others.")
            self._groups += [(number, group) for group in range(footer.num_row_groups)]
            sizes += [footer.metadata.row_group(group).num_rows for group in range(footer.num_row_groups)]
        self.columns = wanted
        self._starts = [0, *accumulate(sizes)]

    @property
    def row_groups(self) -> int:
        """How many there are in all files."""
        return len(self._groups)

    def __repr__(self) -> str:
        return f"ParquetRecords({len(self.files)} files, {self.row_groups} row groups, columns={self.columns})"

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, number: int) -> dict[str, Any]:
        """One record."""
        if not 0 <= number < len(self):
            raise IndexError(f"record must be in [0, {len(self)}), got {number}.")
        group = bisect_right(self._starts, number) - 1
        table = self._row_group(group)
        row = int(number) - self._starts[group]
        return {name: _value(table.column(name), row) for name in self.columns}

    def column(self, name: str) -> Any:
        """All values of one column, as a list, or as an array of whole numbers where none is missing: ids and users."""
        self._refuse_columns([name], {field.name for field in self._opened(self.files[0]).schema_arrow})
        found: list[Any] = []
        for file, group in self._groups:
            column = self._opened(self.files[file]).read_row_group(group, columns=[name], use_threads=False).column(0)
            plain = _is("is_integer", column.type) and not column.null_count
            found.append(column.to_numpy() if plain else [_value(column, row) for row in range(len(column))])
        if all(isinstance(part, np.ndarray) for part in found):
            return np.concatenate(found)
        return [value for part in found for value in (part.tolist() if isinstance(part, np.ndarray) else part)]

    def _row_group(self, group: int) -> Any:
        """A row group as a table, of which the last few are kept."""
        file, within = self._groups[group]

        def read() -> Any:
            return self._opened(self.files[file]).read_row_group(within, columns=self.columns, use_threads=False)

        return self._kept("tables", group, read, self._cached)

    def _opened(self, path: Path) -> Any:
        """A file, of which the last few stay open; a process does not read from files that another one opened."""

        def read() -> Any:
            try:
                return self._parquet().ParquetFile(path, pre_buffer=False)
            except ValueError as error:
                raise ValueError(f"{path.name} must be a Parquet file that can be read: {error}") from error

        return self._kept("files", path, read, OPEN)

    def _kept(self, kind: str, key: Hashable, make: Callable[[], Any], most: int) -> Any:
        """What was made for a key, here and not long ago; or made now."""
        if self.__dict__.get("_process") != os.getpid():
            self._process = os.getpid()
            self._stores: dict[str, OrderedDict[Hashable, Any]] = {"tables": OrderedDict(), "files": OrderedDict()}
        store = self._stores[kind]
        if key not in store:
            while len(store) >= most:
                store.popitem(last=False)
            store[key] = make()
        store.move_to_end(key)
        return store[key]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_process", "_stores")}

    @staticmethod
    def _parquet() -> Any:
        """pyarrow's reader, or which extra brings it."""
        try:
            import pyarrow.parquet
        except ImportError as missing:
            raise MissingExtraError("pyarrow", "db") from missing
        return pyarrow.parquet

    @staticmethod
    def _refuse_columns(wanted: Iterable[str], known: Iterable[str]) -> None:
        for name in wanted:
            if name not in known:
                raise ValueError(f"columns must be among those of the files, {', '.join(known)}, got {name!r}.")


def _refuse_short_dictionaries(wanted: Iterable[str], types: dict[str, Any]) -> None:
    """Refuse, by type, dictionaries that pyarrow reads as a whole or not at all, as one broken text may decide."""
    for name in wanted:
        if _is("is_dictionary", types[name]) and not _is("is_int32", types[name].index_type):
            raise ValueError(
                f"columns must be plain, or dictionaries with int32 indices, got {name!r} with "
                f"{types[name].index_type}. Write it as plain text: one record could keep all others from being read."
            )


def _files(source: Source | Iterable[Source]) -> list[Path]:
    """The files that are meant, or a refusal."""
    if not isinstance(source, str | os.PathLike):
        found = [Path(one) for one in source]
    elif Path(source).is_dir():
        found = sorted(Path(source).rglob("*.parquet"), key=lambda path: path.as_posix())
    else:
        found = [Path(source)]
    if not found:
        _refuse(f"got none: {source}")
    for path in found:
        if not path.is_file():
            _refuse(f"and {path} is none")
    return found


def _refuse(what: str) -> NoReturn:
    raise ValueError(f"source must be a Parquet file, a folder with .parquet files or a list of files, {what}.")


def _value(column: Any, row: int) -> Any:
    """A value as Python has it; None where there is none, or none that Python can hold."""
    scalar = column[row]
    if not scalar.is_valid:
        return None
    try:
        return _numbers(scalar) if _is_numbers(column.type) else scalar.as_py()
    except (ValueError, OverflowError, TypeError, ArithmeticError):  # ArrowInvalid and UnicodeDecodeError among them
        return None


def _numbers(scalar: Any) -> Any:
    """A list of numbers as an array of its own."""
    values = scalar.values
    if values.null_count and not _is("is_floating", values.type):
        return None
    return np.array(values.to_numpy(zero_copy_only=False))


def _is_numbers(kind: Any) -> bool:
    """Whether a column holds lists of numbers."""
    if not any(_is(test, kind) for test in ("is_list", "is_large_list", "is_fixed_size_list")):
        return False
    return _is("is_integer", kind.value_type) or _is("is_floating", kind.value_type)


def _is(test: str, kind: Any) -> bool:
    """One of pyarrow's questions about a type."""
    import pyarrow.types

    return bool(getattr(pyarrow.types, test)(kind))
